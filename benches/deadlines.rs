//! Makes docs/deadlines.md from the traces in the folder IDLEWISE_TRACES: `make deadlines`. The service is played on each of them.

#[path = "tables/traces.rs"]
mod traces;

use std::fmt::Write;
use std::path::Path;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::{ReadOptions, open};
use idlewise::{Bytes, Nanos};
use idlewise_service::play::{Disk, Foreground, play};
use idlewise_service::{Config, WhenBehind};

/// So many of the traces are of disks of servers and workstations.
const OF_MACHINES: usize = 10;
const EVERY_DAYS: [u64; 3] = [14, 30, 90];
const SIZE: Bytes = Bytes(30_000_000_000_000);
const USUAL: (Nanos, Nanos) = (Nanos::from_millis(1), Nanos::from_millis(50));
const SPEND: Nanos = Nanos::from_millis(3);

fn main() {
    let Some(folder) = std::env::var_os("IDLEWISE_TRACES") else {
        println!("SKIPPED: IDLEWISE_TRACES does not name a folder of traces");
        return;
    };
    let model = DiskModel::ultrastar_15k450();
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let mut text = String::from(
        "# Are disks verified in time?\n\nMade by `make deadlines`: `simulate --service` on real traces. Everything here is simulated. Each \
         disk has 30 TB and the times of the Hitachi Ultrastar 15K450 of DSN 2012. The trace is its foreground, over and over; where \
         it has no response times, that disk serves it first come first served. The goal is a mean slowdown of 1 ms and a maximum of \
         50 ms. `say` keeps the goal whatever happens. `spend` may allow up to 3 ms where a disk is behind. Four times the deadline is \
         played, from a first start on.\n\nIn each cell: passes that ended in time, of those that were due, and the mean slowdown of the \
         requests that came while the disk was verified. \"late\" is by how much the latest pass missed its deadline. `idlewise simulate \
         FILE --service --disk-size 30TB --days 56 --config CONFIG` shows one cell with its passes: that is for 14 days, which is the default \
         of `verify_every`; others stand in the configuration.\n\n\
         | Trace, disk | Behind | 14 days | 30 days | 90 days |\n|---|---|---|---|---|\n",
    );
    for &(name, file) in &traces::TRACES[..OF_MACHINES] {
        let trace = open(&[Path::new(&folder).join(file)], &options).expect("the trace is readable");
        let disks = Idleness::of_trace(&trace, &model).expect("the model has read and write times");
        // "two disks" are told apart here.
        let name = name.split(',').next().unwrap_or(name);
        let is_one = disks.len() == 1;
        for idleness in disks {
            let of = if is_one { name.to_string() } else { format!("{name}, {}", idleness.volume) };
            rows(&mut text, &of, idleness, &model);
        }
    }
    print!("{text}");
    if std::env::var_os("IDLEWISE_WRITE_DOCS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/deadlines.md"), text)
            .expect("docs/ can be written");
    }
}

/// A row for each way to be behind.
fn rows(text: &mut String, name: &str, idleness: Idleness, model: &DiskModel) {
    let mut foreground: Option<Foreground> = None;
    for (word, behind) in [("say", WhenBehind::Say), ("spend", WhenBehind::Spend)] {
        let cells = EVERY_DAYS.map(|every| {
            let mut wish = Config::default().of(&idleness.volume, Path::new(&idleness.volume)).0;
            wish.verify_every = Nanos::from_secs(every * 86_400);
            wish.when_behind = behind;
            wish.spend_up_to = (behind == WhenBehind::Spend).then_some(SPEND);
            // When a pass begins depends on the name of its disk, so it is that of the command.
            let disk = Disk::new(idleness.volume.clone(), SIZE, wish, USUAL);
            let foreground =
                foreground.get_or_insert_with(|| Foreground::new(idleness.clone(), model.clone(), disk.goal()));
            let played = play(&disk, foreground, 4 * every as u32).expect("the smallest request is short enough");
            let late = played.latest_s().filter(|late| *late > 0.0);
            let late = late.map_or(String::new(), |late| format!(", {:.1} days late", late / 86_400.0));
            let mean = played.cost.mean_s() * 1e3;
            format!("{} of {}, {mean:.2} ms{late}", played.in_time(), played.due())
        });
        writeln!(text, "| {name} | {word} | {} |", cells.join(" | ")).unwrap();
    }
}
