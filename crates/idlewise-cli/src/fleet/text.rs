//! The summary of a fleet.

use std::path::Path;

use idlewise::report::printable::one_line;
use idlewise::report::{Table, percent, reasons, slowest};
use idlewise::{Nanos, Rate};

use super::Report;
use crate::simulate::seconds;

/// So many of the slowest are named.
const SLOWEST: usize = 5;

/// For people.
pub fn text(report: &Report, within: Nanos, out: &Path) -> String {
    let Report { rows, errors } = report;
    let with = slowest(rows);
    let in_time = with.iter().filter(|one| one.full_pass_s.is_some_and(|pass| pass <= within.as_secs_f64())).count();
    let share = |count: usize| format!("{count} ({})", percent(count as f64 / rows.len().max(1) as f64));
    let rate: f64 = with.iter().filter_map(|one| one.throughput_bytes_per_s).sum();
    let table = Table::of_pairs([
        ("volumes", rows.len().to_string()),
        ("a pass within", format!("{within}: {}", share(in_time))),
        ("a pass takes longer", share(with.len() - in_time)),
        ("without a plan", share(rows.len() - with.len())),
        ("all plans together", Rate(rate as u64).to_string()),
    ]);
    let mut text = format!("{table}\n");
    for (why, count) in reasons(rows) {
        text += &format!("{count} without a plan: {}\n", one_line(&why));
    }
    let slow = with.iter().filter(|one| one.full_pass_s.is_some_and(|pass| pass > within.as_secs_f64())).take(SLOWEST);
    for one in slow {
        text += &format!("slow: {}, {} a pass\n", one_line(&one.volume), one.full_pass_s.map_or("-".into(), seconds));
    }
    match with.iter().filter(|one| one.warnings.is_some()).count() {
        0 => {}
        many => text += &format!("{many} plans to be careful with: the column `warnings` says why\n"),
    }
    errors.iter().for_each(|(file, why)| text += &format!("left out: {}: {}\n", one_line(file), one_line(why)));
    // It takes a package that is not everywhere.
    let parquet = if out.join("fleet.parquet").exists() { "fleet.parquet, " } else { "" };
    text + &format!("\nIn {}: fleet.html, {parquet}fleet.json\n", out.display())
}
