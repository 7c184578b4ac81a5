//! What was found, as a page.

use idlewise::Nanos;
use idlewise::report::{Page, Section, Table, percent};
use idlewise_testbed::lab::kernel;

use crate::Arguments;
use crate::disks::DATA;
use crate::judged::{Judged, or_dash};

/// Everything.
pub fn page(rows: &[Judged], arguments: &Arguments) -> anyhow::Result<Page> {
    let Arguments { seconds, observe, together, .. } = *arguments;
    let kernel = kernel()?;
    let lead = format!(
        "Each load runs on an emulated disk for {seconds} s beside `idlewise scrub` with a goal, and alone before and after that. Each time \
         it is the same requests.{} The slowdown is what they took longer than alone, on average of before and after. Written by `make promise`, on Linux {kernel}.",
        if together > 1 { " Loads on different disks run at the same time." } else { "" }
    );
    let mut disks: Vec<_> = rows.iter().map(|row| &*row.disk).collect();
    disks.dedup();
    let sections = std::iter::once(summary(rows, observe)).chain(disks.into_iter().map(|disk| section(disk, rows)));
    let sections = sections.chain([reactions(rows)]);
    Ok(Page { title: "Is the promise kept?".into(), lead, sections: sections.collect() })
}

fn summary(rows: &[Judged], observe: Nanos) -> Section {
    let count = |is: &dyn Fn(&Judged) -> bool| rows.iter().filter(|row| is(row)).count();
    let [all, first] = [0, 1].map(|which| count(&|row| row.kept()[which]));
    let sharp = count(&|row| row.slowdown.error < row.goal);
    let (covered, compared) = (count(&|row| row.covered() == Some(true)), count(&|row| row.covered().is_some()));
    let notes = [
        ("goal kept", format!("in {all} of {} runs, within two standard errors", rows.len())),
        ("goal kept over the first 500 requests", format!("in {first} of {}", rows.len())),
        (
            "how much that says",
            format!(
                "in {sharp} runs the standard error is smaller than the goal. Where the disk is saturated, the same requests differ by far \
                 more than the goal from one play to the next, and nothing can be told"
            ),
        ),
        (
            "experiment",
            format!(
                "in {covered} of the {compared} runs that had enough turns, its 95 % interval holds what was measured, within two \
                 standard errors of that"
            ),
        ),
        ("what the scrub knew", format!("nothing: it began with the load, and watched it for {observe} first")),
        ("standard error", "between the means of 20 stretches of requests, as those of a stretch wait for each other, and what the two plays alone \
             differ"
                .into()),
    ];
    let flash = (
        "solid-state drive",
        "32 dies on 8 channels and a buffer for writes; all its times are 20 times as long as real ones, as FUSE is not fast \
         enough for those. A goal of 1 ms is like one of 50 us on a real drive"
            .into(),
    );
    let flash = rows.iter().any(|row| row.disk == flash.0).then_some(flash);
    Section {
        heading: "In short".into(),
        notes: notes.into_iter().chain(flash).map(|(name, note)| (name.to_string(), note)).collect(),
        ..Section::default()
    }
}

fn section(disk: &str, rows: &[Judged]) -> Section {
    let mut table = Table::new([
        "load",
        "alone, before / after",
        "goal",
        "slowdown",
        "kept",
        "first 500",
        "kept",
        "account",
        "experiment, 95 %",
        "scrub, MB/s",
        "of predicted",
        "paused for the goal",
    ]);
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let word = |kept: bool| if kept { "yes" } else { "NO" }.to_string();
    for row in rows.iter().filter(|row| row.disk == disk) {
        let [all, first] = row.kept().map(word);
        table.row([
            row.load.clone(),
            format!("{:.2} / {:.2} ms", row.alone[0] * 1e3, row.alone[1] * 1e3),
            ms(row.goal),
            row.slowdown.milliseconds(),
            all,
            row.first.milliseconds(),
            first,
            row.account.map_or("-".into(), ms),
            row.experiment.map_or("-".into(), |[low, high]| format!("{:.2} to {:.2} ms", low * 1e3, high * 1e3)),
            or_dash(row.rate, 1e-6),
            row.of_predicted.map_or("-".into(), percent),
            percent(row.paused),
        ]);
    }
    let judged: Vec<f64> = rows.iter().filter(|row| row.disk == disk).filter_map(|row| row.judged).collect();
    let least = judged.iter().copied().fold(1.0, f64::min);
    let note = format!(
        "a btrfs with {DATA} of data is mounted on the disk. Of what was read of it and is not free, {} or more was compared with its \
         checksums. Loads only read here: what they would write is read",
        percent(least)
    );
    let notes = if judged.is_empty() { Vec::new() } else { vec![("compared".into(), note)] };
    Section { heading: format!("On a {disk}"), notes, table, ..Section::default() }
}

/// What it costs that the scrubber is no part of the kernel.
fn reactions(rows: &[Judged]) -> Section {
    let head = ["disk", "load", "goal", "started after", "followed after", "time lost", "requests", "too late"];
    let mut table = Table::new(head);
    let us = |[median, most]: [f64; 2]| format!("{:.0} / {:.0} us", median * 1e6, most * 1e6);
    for (row, reaction) in rows.iter().filter_map(|row| Some((row, row.reaction?))) {
        table.row([
            row.disk.clone(),
            row.load.clone(),
            format!("{:.1} ms", row.goal * 1e3),
            us(reaction.started),
            us(reaction.followed),
            percent(reaction.lost),
            reaction.requests.to_string(),
            percent(reaction.late as f64 / reaction.requests.max(1) as f64),
        ]);
    }
    let text = "What it costs that the scrubber is no part of the kernel, which is the question of the paper's section III-C and figure 3. \
                By the kernel's own times, medians and 99th percentiles: from the end of the idle wait until its request was at the \
                device, and from the end of one of its requests until the next one was. Before each request it looks in memory that the \
                kernel writes whether the disk is idle. Too late are requests that came to the device behind a foreground request that \
                arrived after that look: one that is part of the kernel would not have issued them.";
    Section {
        heading: "How soon does it act, and how often too late?".into(),
        text: text.into(),
        table,
        ..Section::default()
    }
}
