//! How the passes stand, for people.

use idlewise::report::printable::one_line;
use idlewise::report::{Table, percent};
use idlewise::{Bytes, Nanos, Rate};
use idlewise_linux::content::shell_word;
use idlewise_linux::scrub::{AccountSoFar, Doing, RunSoFar};

use super::{NotCompared, Status, names};
use crate::bad::Bad;
use crate::dates::{date, unix_now};
use crate::output;
use crate::scrub::content::Content;
use crate::scrub::words::{idle_wait, named, seconds, signed};

/// What a scrub does before its first request.
const LEARNS: [&str; 2] = ["observing", "calibrating"];

/// Prints a table, then what a cell has no room for; with the unreadable blocks of each if asked for.
pub fn print(all: &[Status], blocks: bool) -> anyhow::Result<()> {
    let names = names::shown(&all.iter().map(|one| (&*one.device, &*one.identity)).collect::<Vec<_>>());
    let short: Vec<_> = names.iter().map(|name| names::short(name)).collect();
    output::text(&table(all, &short).to_string())?;
    // One at a time: others may have chosen how long they are.
    for ((one, name), short) in all.iter().zip(&names).zip(&short) {
        let line = |line: String| format!("{short}: {}\n", one_line(&line));
        output::text(&lines(one, name, blocks).into_iter().map(line).collect::<String>())?;
    }
    Ok(())
}

/// Narrow enough for a terminal of 80 columns; how a run goes is a line of its own.
fn table(all: &[Status], names: &[String]) -> Table {
    let mut table = Table::new(["device", "state", "verified", "of", "bad blocks", "last complete"]);
    for (one, name) in all.iter().zip(names) {
        let overdue = if one.overdue == Some(true) { ", overdue" } else { "" };
        let completed = one.completed_unix_s.map_or(Some("never".into()), date);
        table.row([
            name.clone(),
            one.state.into(),
            percent(one.verified_bytes as f64 / one.device_bytes.max(1) as f64),
            Bytes(one.device_bytes).to_string(),
            Bad::count(&one.errors),
            completed.unwrap_or_else(|| "-".into()) + overdue,
        ]);
    }
    table
}

/// What a running scrub waits for and how the last run goes or went, and which blocks are bad.
fn lines(one: &Status, name: &str, blocks: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = &one.outdated {
        let what =
            if one.state == "outdated" { "is not verified as it is now" } else { "may never have been verified" };
        lines.push(format!("{what}: {why}"));
    }
    if let Some(run) = one.run.as_ref().filter(|_| blocks || one.doing.is_some()) {
        lines.extend(pace(one, run));
        let account = run.account.as_ref().filter(|account| pauses(one.doing.as_deref(), account));
        lines.extend(account.map(|account| paused(run, account)));
    }
    if let Some(due) = one.due_unix_s {
        let waits = one.waits.iter().map(|waits| format!("{waits}; "));
        let due = date(due as u64).map(|due| format!("due {due}"));
        lines.push(format!("daemon: {}{}", waits.collect::<String>(), due.unwrap_or_default()));
    }
    let failure = one.run.as_ref().and_then(|run| run.failure.as_deref());
    lines.extend(failure.filter(|_| one.doing.is_none()).map(|failure| format!("why it ended: {}", one_line(failure))));
    if let Some(NotCompared { bytes, why }) = &one.not_compared_before {
        lines.push(format!("{} of the last whole pass were not compared: {}", Bytes(*bytes), one_line(why)));
    }
    if blocks {
        lines.extend(one.content.iter().flat_map(Content::lines));
        lines.extend(one.errors.iter().map(Bad::line));
    } else {
        lines.extend(one.content.as_ref().and_then(Content::skipped));
    }
    let more = || format!("next: `idlewise status {}` lists them, and says what to do", shell_word(name));
    match &one.next_step {
        Some(steps) if blocks => lines.extend(steps.split("; ").map(String::from)),
        Some(_) => lines.push(more()),
        None => {}
    }
    lines
}

/// What it does, how fast it is, when it ends, and what it costs.
fn pace(one: &Status, run: &RunSoFar) -> Option<String> {
    let wait = Nanos((run.idle_wait_s * 1e9) as u64);
    let words = |doing| if doing == Doing::IdleWait.name() { idle_wait(Some(wait)) } else { named(doing).to_string() };
    let doing = one.doing.as_deref().map(words);
    let rate = one.rate_bytes_per_s.map(|rate| Rate(rate as u64).to_string());
    let end = one.left_s.and_then(|left| date(unix_now().saturating_add(left as u64)));
    let goal = run.account.as_ref().map(|account| format!(" (goal {})", seconds(account.goal_mean_slowdown_s)));
    let learns = one.doing.as_deref().is_some_and(|doing| LEARNS.contains(&doing));
    let by = if learns { " by measuring the disk" } else { "" };
    let slowed = format!("mean slowdown{by} {}{}", seconds(run.mean_slowdown_s), goal.unwrap_or_default());
    let slowed = (run.foreground_requests > 0).then_some(slowed);
    let compared = run.compared.map(|compared| {
        let [low, high] = [compared.low_s, compared.high_s].map(signed);
        format!("by experiment {low} to {high}")
    });
    let end = end.map(|end| format!("ends about {end}"));
    let pieces: Vec<_> = [rate, end, slowed, compared].into_iter().flatten().collect();
    // Of a last run that had not read anything there is nothing to say.
    let doing = doing.or_else(|| (!pieces.is_empty()).then(|| "its last run".into()))?;
    Some([vec![doing], pieces].concat().join(", "))
}

/// Whether it is paused for the goal, or would be if the foreground did not use the disk right now.
fn pauses(doing: Option<&str>, account: &AccountSoFar) -> bool {
    doing == Some(Doing::OVERDRAWN) || doing == Some(Doing::ForegroundActive.name()) && account.lacks()
}

/// Why it is paused for the goal, and when the scrub goes on.
fn paused(run: &RunSoFar, account: &AccountSoFar) -> String {
    let mut why = Vec::new();
    if account.lacks_s > 0.0 {
        let [mean, goal] = [run.mean_slowdown_s, account.goal_mean_slowdown_s].map(seconds);
        let [lacks, cost] = [account.lacks_s, account.reserve_s].map(seconds);
        why.push(format!("mean slowdown {mean}, goal {goal}, the account lacks {lacks} (one collision may delay requests by {cost} together)"));
    }
    if let (Some(p99), Some(slowed)) = (account.goal_p99_slowdown_s, run.slowed_requests)
        && account.lacks_requests.is_some_and(|requests| requests > 0)
    {
        let share = percent(slowed as f64 / run.foreground_requests.max(1) as f64);
        why.push(format!("{share} of the requests slowed by more than {}, goal 1 %", seconds(p99)));
    }
    let requests =
        account.requests_to_go_on.map(|count| format!("after at least {count} foreground requests without delay"));
    let idle = account.goes_on_after_idle_s.map(|idle| format!("once the disk is idle for {}", seconds(idle)));
    let when: Vec<_> = requests.into_iter().chain(idle).collect();
    let share = percent(run.overdrawn_s / run.elapsed_s.max(1e-9));
    format!("paused for the goal: {}; goes on {}; paused {share} of this run", why.join("; "), when.join(", or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_explained() {
        let run = RunSoFar { mean_slowdown_s: 142e-6, elapsed_s: 100.0, overdrawn_s: 71.0, ..RunSoFar::default() };
        let mut account = AccountSoFar {
            goal_mean_slowdown_s: 1e-4,
            reserve_s: 0.0024,
            lacks_s: 0.0012,
            requests_to_go_on: Some(12),
            goes_on_after_idle_s: Some(300.0),
            ..AccountSoFar::default()
        };
        assert_eq!(
            paused(&run, &account),
            "paused for the goal: mean slowdown 142 us, goal 100 us, the account lacks 1.20 ms (one collision may delay requests by 2.40 ms \
             together); goes on after at least 12 foreground requests without delay, or once the disk is idle for 5.00 min; paused 71.0 % of this run"
        );
        let run = RunSoFar { foreground_requests: 200, slowed_requests: Some(3), ..run };
        account = AccountSoFar { lacks_s: 0.0, goal_p99_slowdown_s: Some(0.01), lacks_requests: Some(100), ..account };
        let line = paused(&run, &account);
        assert!(
            line.starts_with(
                "paused for the goal: 1.50 % of the requests slowed by more than 10.0 ms, goal 1 %; goes on"
            ),
            "{line}"
        );
    }
}
