//! What a scrub or a command in the gaps does and why it waits, in words.

use idlewise::Nanos;
use idlewise::report::percent;
pub use idlewise_linux::scrub::in_words as named;
use idlewise_linux::scrub::{Doing, Progress};

/// What it does at the moment, and until when it waits: pieces of a line, the first the most important.
pub fn doing(progress: &Progress) -> Vec<String> {
    match &progress.doing {
        Doing::Others(who) => vec![format!("waiting, {who}")],
        Doing::Hung(time) => vec![format!("a request has hung for {time}")],
        Doing::Overdrawn { left } => paused(progress, *left),
        Doing::IdleWait => vec![idle_wait(progress.plan.map(|(_, wait)| wait))],
        other => vec![named(other.name()).into()],
    }
}

/// The disk is idle, but not yet for as long as the scrub waits.
pub fn idle_wait(wait: Option<Nanos>) -> String {
    match wait.filter(|wait| *wait > Nanos::ZERO) {
        Some(wait) => format!("waiting for {wait} of idle time"),
        None => named(Doing::IdleWait.name()).into(),
    }
}

/// The account holds too little: what the mean or the 99th percentile is, and when the scrub goes on.
fn paused(progress: &Progress, left: Nanos) -> Vec<String> {
    let Some(account) = &progress.account else { return vec![named(Doing::OVERDRAWN).into()] };
    let measured = &progress.measured;
    let mut pieces = match account.tail.filter(|_| account.lacks_requests() > 0) {
        Some(tail) => {
            vec![format!("paused: {} slowed by more than {}, goal 1 %", percent(measured.slowed_share()), tail.goal)]
        }
        None => vec![format!("paused: mean {}, goal {}", measured.mean_slowdown(), account.goal)],
    };
    // Either ends the pause.
    let idle = format!("after {left} more of idle time");
    match account.requests_to_go_on() {
        Some(count) => pieces.extend([format!("goes on after {count}+ foreground requests"), format!("or {idle}")]),
        None => pieces.push(format!("goes on {idle}")),
    }
    if account.lacks() > Nanos::ZERO {
        let cost = account.reserve.cost();
        pieces.push(format!(
            "the account lacks {} (one collision may delay requests by {cost} together)",
            account.lacks()
        ));
    }
    pieces
}

/// A time in seconds, with its unit.
pub fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}

/// The same of one that may be below zero.
pub fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", seconds(value.abs()))
}

/// As many of the pieces, in order, as fit into a line of so many characters.
pub fn fit(pieces: &[String], width: usize) -> String {
    let mut line = String::new();
    for piece in pieces {
        let joint = if line.is_empty() { "" } else { ", " };
        if line.chars().count() + joint.len() + piece.chars().count() > width {
            break;
        }
        line += joint;
        line += piece;
    }
    match pieces.first() {
        // Too long a first one is cut between words.
        Some(first) if line.is_empty() => cut(first, width),
        _ => line,
    }
}

fn cut(text: &str, width: usize) -> String {
    let mut line = String::new();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() + 2 > width {
            break;
        }
        line += word;
        line += " ";
    }
    line.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use idlewise::drive::Measured;
    use idlewise::policy::{Account, Terms};

    use super::*;
    use idlewise::TotalTime;

    #[test]
    fn a_pause_says_the_mean_the_goal_and_when_it_ends() {
        let mut account = Account::new(Nanos(100_000), Terms::default());
        account.reserve.expect(Nanos(2_000_000));
        account.served(600, Nanos(60_500_000));
        let measured =
            Measured { foreground_requests: 600, slowdown_sum: TotalTime(60_500_000), ..Measured::default() };
        let doing_now = Doing::Overdrawn { left: Nanos::from_secs(246) };
        let mut progress = Progress { account: Some(account), measured, doing: doing_now, ..Progress::default() };
        let line = fit(&doing(&progress), 200);
        assert_eq!(
            line,
            "paused: mean 101 us, goal 100 us, goes on after 25+ foreground requests, or after 4.10 min more of idle time, the \
             account lacks 2.50 ms (one collision may delay requests by 2.00 ms together)"
        );
        account.goal = Nanos::ZERO;
        progress.account = Some(account);
        let line = fit(&doing(&progress), 80);
        assert_eq!(line, "paused: mean 101 us, goal 0 s, goes on after 4.10 min more of idle time");
    }

    #[test]
    fn a_pause_for_the_99th_percentile_says_the_share() {
        let mut account = Account::new(Nanos(100_000), Terms::default()).and_tail(Nanos(10_000_000));
        account.served(6, Nanos(66_000_000));
        account.served(594, Nanos(0));
        let measured = Measured { foreground_requests: 600, slowed: (6, TotalTime(66_000_000)), ..Measured::default() };
        let doing_now = Doing::Overdrawn { left: Nanos::from_secs(3_000) };
        account.reserve.expect(Nanos(12_000_000));
        let progress = Progress { account: Some(account), measured, doing: doing_now, ..Progress::default() };
        let line = fit(&doing(&progress), 100);
        assert_eq!(
            line,
            "paused: 1.00 % slowed by more than 10.0 ms, goal 1 %, goes on after 180+ foreground requests"
        );
    }

    #[test]
    fn a_line_ends_between_its_pieces_or_words() {
        let pieces = ["waiting for the foreground", "one", "two"].map(String::from);
        assert_eq!(fit(&pieces, 80), "waiting for the foreground, one, two");
        assert_eq!(fit(&pieces, 32), "waiting for the foreground, one");
        assert_eq!(fit(&pieces, 30), "waiting for the foreground");
        assert_eq!(fit(&pieces, 20), "waiting for the");
        assert_eq!(fit(&pieces, 3), "");
        assert_eq!(fit(&[], 10), "");
    }
}
