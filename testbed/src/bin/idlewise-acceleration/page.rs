//! What was found, as a page.

use idlewise::report::{Page, Section, Table, percent};
use idlewise_testbed::lab::kernel;

use crate::Arguments;
use crate::steps::{Compared, Estimate};

/// Everything.
pub fn page(rows: &[Compared], arguments: &Arguments) -> anyhow::Result<Page> {
    let kernel = kernel()?;
    let lead = format!(
        "`idlewise sample` draws at most 50 intervals of 10 s from a trace. How near does a replay of these alone come to a replay of the \
         whole trace? Each trace is replayed on an emulated disk of {}, once whole and once by its plan (seed {}); writes are played as \
         reads. Several replays run at the same time, each on a disk of its own. Written by `make acceleration`, on Linux {kernel}.",
        arguments.size, arguments.seed
    );
    let mut disks: Vec<_> = rows.iter().map(|row| &*row.disk).collect();
    disks.sort_unstable();
    disks.dedup();
    let sections = std::iter::once(summary(rows)).chain(disks.into_iter().map(|disk| section(disk, rows)));
    Ok(Page { title: "A plan against the whole trace".into(), lead, sections: sections.collect() })
}

fn summary(rows: &[Compared]) -> Section {
    let errors = |of: &dyn Fn(&Compared) -> Option<f64>| {
        let errors: Vec<f64> = rows.iter().filter_map(of).collect();
        let worst = errors.iter().fold(0.0, |worst: f64, error| worst.max(*error));
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        format!("{} on average of {}, {} at worst", percent(mean), errors.len(), percent(worst))
    };
    let replayed = |closed| errors(&move |row| (row.closed == closed).then_some(row.replayed.error));
    let within = rows.iter().filter(|row| row.replayed.is_within()).count();
    let mut faster: Vec<_> = rows.iter().map(|row| row.faster).collect();
    faster.sort_by(f64::total_cmp);
    let [least, most] = [faster.first(), faster.last()].map(|one| one.copied().unwrap_or_default());
    let notes = [
        ("step 1, the trace's own response times", format!("error {}", errors(&|row| row.own))),
        ("step 2, the whole replay's in the same intervals", format!("error {}", errors(&|row| Some(row.sampled.error)))),
        ("step 3, these intervals replayed alone, open loop", format!("error {}", replayed(false))),
        ("step 3, closed loop", format!("error {}", replayed(true))),
        ("the paper", "7.6 % on average in step 3, 577 times faster, with traces of a week".into()),
        ("what is stated", format!("in {within} of {} runs step 3 was within the error that it stated (95 %)", rows.len())),
        (
            "time",
            format!(
                "{least:.1} to {most:.1} times faster than the whole trace, warm-ups included. A plan takes up to nine minutes whatever the \
                 trace's length, so of an hour that is little, and of a week it is much"
            ),
        ),
        (
            "solid-state drive",
            "32 dies on 8 channels and a buffer for writes; all its times are 20 times as long as real ones, as FUSE is not fast \
             enough for those"
                .into(),
        ),
    ];
    Section {
        heading: "In short".into(),
        notes: notes.map(|(name, note)| (name.to_string(), note)).into(),
        ..Section::default()
    }
}

fn section(disk: &str, rows: &[Compared]) -> Section {
    let head = [
        "trace",
        "loop",
        "whole",
        "intervals",
        "of the time",
        "step 1",
        "step 2",
        "stated",
        "step 3",
        "stated",
        "faster",
    ];
    let mut table = Table::new(head);
    let stated = |estimate: Estimate| format!("± {}", percent(estimate.stated));
    for row in rows.iter().filter(|row| row.disk == disk) {
        table.row([
            row.name.clone(),
            if row.closed { "closed" } else { "open" }.into(),
            format!("{:.2} ms", row.whole_s * 1e3),
            row.intervals.to_string(),
            percent(row.share),
            row.own.map_or("-".into(), percent),
            percent(row.sampled.error),
            stated(row.sampled),
            percent(row.replayed.error),
            stated(row.replayed),
            format!("{:.1} times", row.faster),
        ]);
    }
    Section { heading: format!("On a {disk}"), table, ..Section::default() }
}
