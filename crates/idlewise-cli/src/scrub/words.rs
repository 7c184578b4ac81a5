//! What a scrub does and why it waits, in words.

use idlewise::Nanos;
use idlewise::report::percent;
use idlewise_linux::scrub::{Doing, Progress};

/// What a scrub does, by its name in files and `--json`.
const WORDS: [(&str, &str); 13] = [
    ("observing", "first watching the foreground"),
    ("calibrating", "first measuring the disk"),
    ("verifying", "verifying"),
    ("narrowing", "narrowing down unreadable blocks"),
    ("foreground-active", "waiting for the foreground"),
    ("idle-wait", "waiting, not idle for long enough"),
    (Doing::OVERDRAWN, "paused for the goal"),
    ("policy-stopped", "waiting for the next idle interval"),
    ("control", "leaving an idle interval unused, to compare"),
    ("retrying", "waiting, the last request was disturbed"),
    ("others", "waiting for another check of the disk"),
    ("rate-limit", "waiting for --max-rate"),
    ("hung", "waiting for a request that hangs"),
];

/// In words; a name that is not known here is shown as it is.
pub fn named(name: &str) -> &str {
    WORDS.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}

/// What it does at the moment, and until when it waits: pieces of a line, the first the most important.
pub fn doing(progress: &Progress) -> Vec<String> {
    match &progress.doing {
        Doing::Others(who) => vec![format!("waiting, {who}")],
        Doing::Hung(time) => vec![format!("a request has hung for {time}")],
        Doing::Overdrawn { left } => overdrawn(progress, *left),
        other => vec![named(other.name()).into()],
    }
}

/// The account is overdrawn: how far from the goal the mean or the 99th percentile is, and when the scrub goes on.
fn overdrawn(progress: &Progress, left: Option<Nanos>) -> Vec<String> {
    let Some(account) = &progress.account else { return vec![named(Doing::OVERDRAWN).into()] };
    let requests = account.requests_to_even().map(|count| format!("after {count} foreground requests"));
    let idle = left.map(|left| format!("after {left} more of idle time"));
    let measured = &progress.measured;
    let mut pieces = match account.tail.filter(|tail| tail.overdrawn() > 0) {
        Some(tail) => {
            vec![format!("paused: {} slowed by more than {}, goal 1 %", percent(measured.slowed_share()), tail.goal)]
        }
        None => vec![format!("paused: mean {}, goal {}", measured.mean_slowdown(), account.goal)],
    };
    // Either ends the pause.
    match (requests, idle) {
        (Some(requests), Some(idle)) => pieces.extend([format!("goes on {requests}"), format!("or {idle}")]),
        (requests, idle) => pieces.extend(requests.or(idle).map(|when| format!("goes on {when}"))),
    }
    if account.overdrawn() > Nanos::ZERO {
        pieces.push(format!("overdrawn by {}", account.overdrawn()));
    }
    pieces
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
    use idlewise::policy::Account;

    use super::*;

    #[test]
    fn a_pause_says_the_mean_the_goal_and_when_it_ends() {
        let mut account = Account::opened(Nanos(100_000), 100, 900, Nanos::from_secs(300));
        account.served(200, Nanos(30_850_000));
        let measured = Measured { foreground_requests: 200, slowdown_sum: 30_850_000, ..Measured::default() };
        let left = Some(Nanos::from_secs(246));
        let mut progress =
            Progress { account: Some(account), measured, doing: Doing::Overdrawn { left }, ..Progress::default() };
        let line = fit(&doing(&progress), 160);
        assert_eq!(
            line,
            "paused: mean 154 us, goal 100 us, goes on after 9 foreground requests, or after 4.10 min more of idle time, \
             overdrawn by 850 us"
        );
        progress.doing = Doing::Overdrawn { left: None };
        let line = fit(&doing(&progress), 160);
        assert_eq!(line, "paused: mean 154 us, goal 100 us, goes on after 9 foreground requests, overdrawn by 850 us");
    }

    #[test]
    fn a_pause_for_the_99th_percentile_says_the_share() {
        let patience = Nanos::from_secs(300);
        let mut account = Account::opened(Nanos(100_000), 100, 900, patience).and_tail(Nanos(10_000_000), 0, 900);
        account.served(3, Nanos(33_000_000));
        account.served(197, Nanos(0));
        let measured = Measured { foreground_requests: 200, slowed: (3, 33_000_000), ..Measured::default() };
        let doing_now = Doing::Overdrawn { left: None };
        let progress = Progress { account: Some(account), measured, doing: doing_now, ..Progress::default() };
        let line = fit(&doing(&progress), 160);
        assert_eq!(
            line,
            "paused: 1.50 % slowed by more than 10.0 ms, goal 1 %, goes on after 100 foreground requests, overdrawn by 3.00 ms"
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
