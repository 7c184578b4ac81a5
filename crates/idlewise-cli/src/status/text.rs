//! How the passes stand, for people.

use idlewise::report::printable::one_line;
use idlewise::report::{Table, percent};
use idlewise::{Bytes, Nanos, Rate};
use idlewise_linux::scrub::{AccountSoFar, Doing, RunSoFar};

use super::Status;
use crate::bad::Bad;
use crate::dates::{date, unix_now};
use crate::scrub::words::named;

/// A table, then what a cell has no room for; with the unreadable blocks of each if asked for.
pub fn text(all: &[Status], blocks: bool) -> String {
    let mut text = table(all).to_string();
    for one in all {
        for line in lines(one, blocks) {
            text += &format!("{}: {}\n", one_line(name(one)), one_line(&line));
        }
    }
    text
}

fn name(one: &Status) -> &str {
    if one.device.is_empty() { &one.identity } else { &one.device }
}

fn table(all: &[Status]) -> Table {
    let mut table = Table::new([
        "device",
        "state",
        "verified",
        "of",
        "rate",
        "ends",
        "bad blocks",
        "mean slowdown",
        "last complete",
    ]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for one in all {
        let state = one.doing.as_ref().map_or(one.state.to_string(), |doing| format!("{} ({doing})", one.state));
        let slowed = one.run.as_ref().filter(|run| run.foreground_requests > 0);
        let overdue = if one.overdue == Some(true) { ", overdue" } else { "" };
        let completed = one.completed_unix_s.map_or(Some("never".into()), date);
        table.row([
            name(one).into(),
            state,
            percent(one.verified_bytes as f64 / one.device_bytes.max(1) as f64),
            Bytes(one.device_bytes).to_string(),
            or_none(one.rate_bytes_per_s.map(|rate| Rate(rate as u64).to_string())),
            or_none(one.left_s.and_then(|left| date(unix_now().saturating_add(left as u64)))),
            Bad::count(&one.errors).to_string(),
            or_none(slowed.map(|run| seconds(run.mean_slowdown_s))),
            or_none(completed) + overdue,
        ]);
    }
    table
}

/// Why it waits, and which blocks are bad.
fn lines(one: &Status, blocks: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(doing), Some(run)) = (&one.doing, &one.run) {
        match &run.account {
            Some(account) if doing == Doing::OVERDRAWN => lines.push(overdrawn(run, account)),
            _ if blocks => lines.push(named(doing).into()),
            _ => {}
        }
    }
    if blocks {
        lines.extend(one.errors.iter().map(Bad::line));
    }
    lines.extend(one.next_step.clone());
    lines
}

/// By how much the account is overdrawn, and when the scrub goes on.
fn overdrawn(run: &RunSoFar, account: &AccountSoFar) -> String {
    let [mean, goal, balance] = [run.mean_slowdown_s, account.goal_mean_slowdown_s, -account.balance_s].map(seconds);
    let mut why = Vec::new();
    if account.balance_s < 0.0 {
        why.push(format!("mean slowdown {mean}, goal {goal}, overdrawn by {balance}"));
    }
    if let (Some(p99), Some(slowed)) = (account.goal_p99_slowdown_s, run.slowed_requests)
        && account.balance_requests.is_some_and(|balance| balance < 0)
    {
        let share = percent(slowed as f64 / run.foreground_requests.max(1) as f64);
        why.push(format!("{share} of the requests slowed by more than {}, goal 1 %", seconds(p99)));
    }
    let requests = account.requests_to_even.map(|count| format!("after {count} foreground requests without delay"));
    let idle = account.goes_on_after_idle_s.map(|idle| format!("once the disk is idle for {}", seconds(idle)));
    let when: Vec<_> = requests.into_iter().chain(idle).collect();
    let share = percent(run.overdrawn_s / run.elapsed_s.max(1e-9));
    format!("paused for the goal: {}; goes on {}; paused {share} of this run", why.join("; "), when.join(", or "))
}

fn seconds(seconds: f64) -> String {
    Nanos((seconds * 1e9) as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_explained() {
        let run = RunSoFar { mean_slowdown_s: 142e-6, elapsed_s: 100.0, overdrawn_s: 71.0, ..RunSoFar::default() };
        let mut account = AccountSoFar {
            goal_mean_slowdown_s: 1e-4,
            balance_s: -0.0012,
            goal_p99_slowdown_s: None,
            balance_requests: None,
            requests_to_even: Some(12),
            goes_on_after_idle_s: Some(300.0),
        };
        assert_eq!(
            overdrawn(&run, &account),
            "paused for the goal: mean slowdown 142 us, goal 100 us, overdrawn by 1.20 ms; goes on after 12 foreground requests \
             without delay, or once the disk is idle for 5.00 min; paused 71.0 % of this run"
        );
        account.goes_on_after_idle_s = None;
        assert!(overdrawn(&run, &account).contains("goes on after 12 foreground requests without delay; paused"));
        let run = RunSoFar { foreground_requests: 200, slowed_requests: Some(3), ..run };
        account =
            AccountSoFar { balance_s: 0.1, goal_p99_slowdown_s: Some(0.01), balance_requests: Some(-100), ..account };
        let line = overdrawn(&run, &account);
        assert!(
            line.starts_with(
                "paused for the goal: 1.50 % of the requests slowed by more than 10.0 ms, goal 1 %; goes on"
            ),
            "{line}"
        );
    }
}
