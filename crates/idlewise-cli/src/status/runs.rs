//! What `idlewise run` holds at the moment.

use idlewise::report::percent;
use idlewise::report::printable::one_line;
use idlewise_linux::command::{RunNote, running};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{self, say};
use crate::scrub::words::{named, seconds};

/// The fields of `status --runs --json`.
#[derive(Serialize)]
struct Held {
    #[serde(flatten)]
    run: RunNote,
}

/// Shows them.
pub fn show(json: bool) -> anyhow::Result<Exit> {
    let runs = running();
    if json {
        output::json(&runs.iter().cloned().map(|run| Held { run }).collect::<Vec<_>>())?;
    } else if !runs.is_empty() {
        output::text(&text(&runs))?;
    }
    if runs.is_empty() {
        say!("idlewise: nothing is run in the gaps at the moment");
        return Ok(Exit::NothingToDo);
    }
    Ok(Exit::Clean)
}

/// A line for each, for those who asked for scrubs.
pub fn lines() -> String {
    text(&running())
}

fn text(runs: &[RunNote]) -> String {
    runs.iter().map(|run| line(run) + "\n").collect()
}

fn line(run: &RunNote) -> String {
    let of = run.disk.as_ref().map(|disk| format!(" of {disk}")).unwrap_or_default();
    let share = percent(run.ran_s / run.elapsed_s.max(1e-9));
    let mut line = format!(
        "{} (idlewise run, process {}): {}{of}, ran {share} of {}",
        run.name,
        run.process.pid,
        named(&run.doing),
        seconds(run.elapsed_s)
    );
    for disk in run.disks.iter().filter(|disk| disk.foreground_requests > 0) {
        let goal = disk.account.map(|account| format!(" (goal {})", seconds(account.goal_mean_slowdown_s)));
        line +=
            &format!("; {}: mean slowdown {}{}", disk.name, seconds(disk.mean_slowdown_s), goal.unwrap_or_default());
    }
    one_line(&line).into_owned()
}
