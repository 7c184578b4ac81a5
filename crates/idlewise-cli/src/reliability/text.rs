//! What `idlewise reliability` tells people.

use idlewise::reliability::YEAR;
use idlewise::report::{Table, percent};

use super::activities::{Row, Scan, Simulated, Update};
use super::{Arguments, Reliability};
use crate::simulate::seconds;

/// Everything.
pub fn text(found: &Reliability, arguments: &Arguments) -> String {
    let best = found.mlet_staggered.iter().min_by(|a, b| a.mlet_s.total_cmp(&b.mlet_s));
    let best = best.map_or(String::new(), |best| {
        format!(
            "Errors are found soonest with {} regions, in bursts of {} errors {} apart on average.\n",
            best.regions, arguments.model.burst_errors, arguments.model.burst_distance
        )
    });
    let played = found.played_out.as_ref().map_or(String::new(), |played| {
        let of = format!("Played out {} times (seed {})", played.cycles, played.seed);
        if !played.mttdl_scrub_s.is_finite() {
            return format!(
                "\n{of}, nothing was lost: play it out more often, or with errors that are more frequent.\n"
            );
        }
        let agrees = (played.mttdl_scrub_s - found.mttdl_scrub_s).abs() <= played.margin_s;
        format!(
            "\n{of}: with scrubs {}, give or take {} at 99 % confidence; the equation's {} is {}.\n",
            years(played.mttdl_scrub_s),
            years(played.margin_s),
            years(found.mttdl_scrub_s),
            if agrees { "within that" } else { "not: its approximations do not hold here" }
        )
    });
    format!("{}\n{}{played}\n{}\n{best}", lead(found), losses(found), unseen(found))
}

/// Where the lengths of passes come from.
pub fn lead(found: &Reliability) -> String {
    match &found.simulated {
        Some(simulated) => {
            let notes: String = simulated.notes.iter().map(|note| format!("Note: {note}.\n")).collect();
            let rows = [&simulated.scrub, &simulated.parity, &simulated.both];
            let about_one = rows.iter().any(|row| row.scan.as_ref().is_some_and(|scan| scan.extrapolated));
            let part = if about_one {
                "Note: no pass was completed; how long one takes is extrapolated (about).\n"
            } else {
                ""
            };
            format!("{}\n{}{part}{notes}", about(simulated), activities(simulated))
        }
        None => {
            format!("One pass in {}; {} of it without valid parity.\n", seconds(found.scan_s), percent(found.dirty))
        }
    }
}

/// What was simulated.
pub fn about(simulated: &Simulated) -> String {
    let parameters: String =
        simulated.parameters.iter().map(|(option, value)| format!(" --{option} {value}")).collect();
    let other = simulated.parity_policy.as_ref().map_or(String::new(), |name| format!(", {name} for parity"));
    let Simulated { source, policy, disks, .. } = simulated;
    let disks = if *disks > 1 { format!("{disks} disks, each ") } else { String::new() };
    format!(
        "{}policy {policy}{other}{parameters}, simulated on {}: {disks}{}\n",
        source.line(),
        source.disk,
        simulated.about
    )
}

/// Passes and updates.
pub fn activities(simulated: &Simulated) -> Table {
    let rows = [&simulated.scrub, &simulated.parity, &simulated.both];
    let mut table = Table::new(["", "scrub", "parity", "both at once"]);
    let mut row = |name: &str, cell: &dyn Fn(&Row) -> String| {
        table.rows.push(std::iter::once(name.to_string()).chain(rows.iter().map(|row| cell(row))).collect());
    };
    let scan = |row: &Row, cell: &dyn Fn(&Scan) -> String| row.scan.as_ref().map_or("-".into(), cell);
    let update = |row: &Row, cell: &dyn Fn(&Update) -> String| row.update.as_ref().map_or("-".into(), cell);
    let of = |scan: &Scan, value: f64| if scan.extrapolated { "-".into() } else { seconds(value) };
    row("a pass takes", &|r| {
        scan(r, &|s| match s.extrapolated {
            true if s.mean_s.is_infinite() => "for ever".into(),
            true => format!("about {}", seconds(s.mean_s)),
            false => seconds(s.mean_s),
        })
    });
    row("  90 % of them", &|r| scan(r, &|s| of(s, s.p90_s)));
    row("  completed", &|r| scan(r, &|s| s.completed.to_string()));
    let known = |u: &Update, value: f64| u.mean_s.map_or("-".into(), |_| seconds(value));
    row("a WRITE has parity after", &|r| update(r, &|u| u.mean_s.map_or("never".into(), seconds)));
    row("  50 % of them", &|r| update(r, &|u| known(u, u.p50_s)));
    row("  90 %", &|r| update(r, &|u| known(u, u.p90_s)));
    row("  completed", &|r| update(r, &|u| percent(u.completed_share)));
    for (at, name) in ["updates after 1 WRITE", "  after 2", "  after 3"].into_iter().enumerate() {
        row(name, &|r| update(r, &|u| u.writes_before_update.get(at).map_or("-".into(), |&s| percent(s))));
    }
    row("disk without valid parity", &|r| update(r, &|u| percent(u.dirty)));
    row("mean slowdown", &|r| seconds(r.mean_slowdown_s));
    row("max slowdown", &|r| seconds(r.max_slowdown_s));
    row("relative delay", &|r| percent(r.relative_delay));
    row("disk busy in all", &|r| percent(r.utilisation));
    row("runs through the trace", &|r| r.times.to_string());
    table
}

/// Mean times to data loss.
pub fn losses(found: &Reliability) -> Table {
    let mut table = Table::new(["", "mean time to data loss", "gain"]);
    let mut row = |name: &str, mttdl: f64, gain: f64| table.row([name.into(), years(mttdl), short(gain)]);
    row("neither", found.mttdl_none_s, 1.0);
    row("scrubs", found.mttdl_scrub_s, found.gain_scrub);
    row("parity", found.mttdl_parity_s, found.gain_parity);
    row("both, by the paper's equations", found.mttdl_both_s, found.gain_both);
    row("both, visible errors no rarer", found.mttdl_both_visible_kept_s, found.gain_both_visible_kept);
    table
}

/// Mean latent error times.
pub fn unseen(found: &Reliability) -> Table {
    let mut table = Table::new(["order", "regions", "mean latent error time", "of sequential"]);
    table.row(["sequential".into(), "-".into(), seconds(found.mlet_s), percent(1.0)]);
    for one in &found.mlet_staggered {
        let share = percent(one.mlet_s / found.mlet_s);
        table.row(["staggered".into(), one.regions.to_string(), seconds(one.mlet_s), share]);
    }
    table
}

/// Seconds in years.
pub fn years(seconds: f64) -> String {
    format!("{} years", short(seconds / YEAR))
}

/// Three digits, and a power of ten where there are many.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e5 => format!("{value:.2e}"),
        value if value < 1.0 => format!("{value:.3}"),
        value => format!("{value:.1}"),
    }
}
