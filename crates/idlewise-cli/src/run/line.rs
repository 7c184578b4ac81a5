//! What is said of a command that runs in the gaps: the pieces of a line on a terminal, and a summary at the end.

use idlewise::report::percent;
use idlewise::{Bytes, Nanos};
use idlewise_linux::command::{Progress, Why};

use super::share_run;
use crate::gaps::{slowdown, worst};
use crate::output::say;
use crate::scrub::words::{idle_wait, named};

/// What was over sooner needs no words.
const WORTH_SAYING: Nanos = Nanos::from_secs(1);

/// The most important first.
pub fn pieces(progress: &Progress) -> Vec<String> {
    let mut pieces = vec![doing(progress), format!("ran {}", percent(share_run(progress)))];
    pieces.extend(worst(&progress.disks));
    pieces.push(moved(progress).to_string());
    pieces
}

/// What it read and wrote, on all disks together.
fn moved(progress: &Progress) -> Bytes {
    progress.disks.iter().fold(Bytes(0), |sum, disk| sum + disk.moved())
}

/// Whether it runs, and why not.
fn doing(progress: &Progress) -> String {
    let of = progress.disk.as_ref().map(|disk| format!(", {disk}")).unwrap_or_default();
    match progress.why {
        Why::IdleWait { wait, .. } => idle_wait(Some(wait)) + &of,
        why => named(why.name()).to_owned() + &of,
    }
}

/// Says in the end what it cost.
pub fn summary(progress: &Progress) {
    let (ran, elapsed) = (progress.ran, progress.elapsed);
    if elapsed < WORTH_SAYING {
        return;
    }
    let share = percent(share_run(progress));
    say!("idlewise: ran for {ran} of {elapsed} ({share}), read and wrote {}", moved(progress));
    for disk in progress.disks.iter().filter(|disk| disk.measured.foreground_requests > 0) {
        let (max, goal) = (disk.measured.max_slowdown, disk.goal.max_slowdown);
        let requests = disk.measured.foreground_requests;
        say!("idlewise: {}, max {max} (limit {goal}), {requests} foreground requests", slowdown(disk));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_line_says_why_it_waits_and_for_which_disk() {
        let mut progress = Progress {
            why: Why::Foreground,
            disk: Some("sda".into()),
            elapsed: Nanos::from_secs(8),
            ran: Nanos::from_secs(2),
            spent: BTreeMap::new(),
            disks: Vec::new(),
        };
        assert_eq!(pieces(&progress), ["waiting for others' requests, sda", "ran 25.0 %", "0 B"]);
        progress.why = Why::IdleWait { wait: Nanos::from_millis(20), until: Nanos::ZERO };
        assert_eq!(doing(&progress), "waiting for 20.0 ms of idle time, sda");
    }
}
