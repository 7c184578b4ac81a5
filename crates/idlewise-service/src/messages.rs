//! Who is told what: a message when something is wrong with a disk, again later as long as it is, and one when it is over. Messages wait in
//! a folder for `idlewise notify`, which sends them: whoever hangs there holds up no scrub.

use std::collections::BTreeMap;

use idlewise::report::printable::one_line;
use idlewise::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::overview::{MISSING, Seen};
use crate::record::Told;

/// Of the format of a message.
pub const VERSION: u32 = 1;
const DAY_S: f64 = 86_400.0;
/// What is told of a slowdown is of so many requests at least, and of a mean that is so much larger than the goal.
const ENOUGH: u64 = 1000;
const ABOVE: f64 = 1.1;

/// What may be wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Blocks cannot be read, or are wrong, that nobody has acknowledged.
    UnreadableBlocks,
    /// It is expected not to be verified in time.
    Behind,
    /// It was not verified in time.
    Overdue,
    /// Its scrub fails, or the disk does not answer.
    ScrubFailed,
    /// It is not there any more.
    Missing,
    /// A pass is over, and part of it was not compared with the checksums that are kept of it.
    NotCompared,
    /// Others are slowed down by more than the goal.
    SlowdownAboveGoal,
    /// Something of these is over.
    Recovered,
    /// Nothing is wrong: somebody wants to see a message.
    Test,
}

/// When it is told again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    /// Never.
    Once,
    /// Every day.
    Daily,
    /// After 1, 2, 4 and so on up to 32 days.
    #[default]
    Diminishing,
}

impl Repeat {
    /// When something is told again that was told so often before, and now.
    fn next(self, now: f64, count: u32) -> f64 {
        let days = match self {
            Self::Once => f64::INFINITY,
            Self::Daily => 1.0,
            Self::Diminishing => 2f64.powi(count.min(5) as i32),
        };
        // No number in a file is infinite.
        (now + days * DAY_S).min(1e18)
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub(crate) version: u32,
    /// When it was written, in seconds since 1970.
    pub unix_s: f64,
    /// What is wrong.
    pub kind: Kind,
    /// The disk.
    pub device: String,
    /// Which one that is.
    pub identity: String,
    /// In a line.
    pub subject: String,
    /// And what to do about it.
    pub text: String,
    /// So many were sent of this before.
    pub before: u32,
    /// When it began, in seconds since 1970.
    pub first_unix_s: f64,
    /// The ways by which it was sent already, while others cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<String>,
}

impl Message {
    /// One that says that messages arrive.
    pub fn test(now: f64) -> Self {
        Self {
            version: VERSION,
            unix_s: now,
            kind: Kind::Test,
            device: String::new(),
            identity: String::new(),
            subject: "a test of idlewise's messages".into(),
            text: "Messages of idlewise arrive here. Nothing is wrong.".into(),
            before: 0,
            first_unix_s: now,
            sent: Vec::new(),
        }
    }

    fn of(disk: &Seen, kind: Kind, now: f64, told: &Told, (subject, next): (String, &str)) -> Self {
        let identity = one_line(&disk.identity);
        let next = next.replace("DISK", &disk.device).replace("IDENTITY", &identity);
        let text = format!("{}: {subject}.\n\nDisk: {identity}\n{next}\n", disk.device);
        Self {
            version: VERSION,
            unix_s: now,
            kind,
            device: disk.device.clone(),
            identity: disk.identity.clone(),
            subject: format!("{}: {subject}", disk.device),
            text,
            before: told.count.saturating_sub(1),
            first_unix_s: told.first_unix_s,
            sent: Vec::new(),
        }
    }
}

/// So many blocks are bad, in words.
pub fn cannot_be_read(blocks: u64) -> String {
    match blocks {
        1 => "1 block cannot be read, or is wrong".into(),
        _ => format!("{blocks} blocks cannot be read, or are wrong"),
    }
}

/// What is wrong with a disk now, how bad that is, in words, and what to do.
fn wrong(disk: &Seen, now: f64) -> Vec<(Kind, u64, (String, &'static str))> {
    let mut wrong = Vec::new();
    let bad = disk.bad();
    if bad > disk.acknowledged_blocks {
        let next = "This lists them and says what to do: idlewise status DISK\nThis ends these messages: idlewise acknowledge DISK";
        wrong.push((Kind::UnreadableBlocks, bad, (cannot_be_read(bad), next)));
    }
    let late = "Allow a larger mean slowdown or longer windows, or verify it less often.";
    match disk.standing {
        "overdue" => {
            let since = Nanos(((now - disk.due_unix_s).max(0.0) * 1e9) as u64);
            wrong.push((Kind::Overdue, 0, (format!("was not verified in time: that was due {since} ago"), late)));
        }
        "behind" => wrong.push((Kind::Behind, 0, ("is expected not to be verified in time".into(), late))),
        _ => {}
    }
    if disk.state == "failed" {
        let next = "`journalctl -u idlewised` says why.";
        let failure = disk.run.as_ref().and_then(|run| run.failure.as_deref()).unwrap_or(&disk.why);
        wrong.push((Kind::ScrubFailed, 0, (format!("its scrub fails: {}", one_line(failure)), next)));
    }
    if disk.state == MISSING {
        let next = "Put it back. If it is gone for good, this has it forgotten: idlewise acknowledge 'IDENTITY'";
        wrong.push((Kind::Missing, 0, (disk.why.clone(), next)));
    }
    if let Some((bytes, why)) = &disk.not_compared {
        let next = "Its pass counts as over, but wrong data there was not looked for. Mend what is in the way, and `idlewise start` it.";
        wrong.push((Kind::NotCompared, *bytes, (format!("{} were not compared: {why}", Bytes(*bytes)), next)));
    }
    let mean = disk.foreground_slowdown_s / disk.foreground_requests.max(1) as f64;
    let goal = disk.foreground_allowed_s / disk.foreground_requests.max(1) as f64;
    let goal = goal.max(disk.goal_mean_slowdown_s);
    // A bad day is not to be lost among months of good ones.
    let since = [
        ("", disk.foreground_requests, mean, goal),
        (" in the last day", disk.last_day.requests, disk.last_day.mean_s(), goal.max(disk.most_mean_slowdown_s)),
    ];
    let is_above = |(_, requests, mean, goal): &(_, u64, f64, f64)| *requests >= ENOUGH && *mean > ABOVE * goal;
    if let Some((when, _, mean, goal)) = since.into_iter().find(is_above) {
        let [mean, goal] = [mean, goal].map(|seconds| Nanos((seconds * 1e9) as u64));
        let subject = format!("scrubs slow other requests by {mean} on average{when}, more than their goal of {goal}");
        wrong.push((
            Kind::SlowdownAboveGoal,
            0,
            (subject, "This should not happen: `idlewise status` shows the account."),
        ));
    }
    wrong
}

/// Whether it is known that something is not wrong with a disk. Of one that is not there, or of which nothing is known yet, it is not.
fn is_well(disk: &Seen, kind: Kind) -> bool {
    match kind {
        Kind::UnreadableBlocks | Kind::NotCompared => disk.is_known,
        Kind::Behind | Kind::Overdue => disk.standing != "unknown",
        Kind::ScrubFailed => disk.state == "complete" || disk.state == "running" && disk.scrubs,
        Kind::SlowdownAboveGoal => disk.foreground_requests >= ENOUGH,
        Kind::Missing | Kind::Recovered | Kind::Test => true,
    }
}

/// What is to be told of a disk now; `told` is what was, and is kept up to date.
pub fn due(disk: &Seen, repeat: Repeat, now: f64, told: &mut BTreeMap<Kind, Told>) -> Vec<Message> {
    let mut messages = Vec::new();
    let wrong = wrong(disk, now);
    let is_over = |kind: &Kind| !wrong.iter().any(|(now, ..)| now == kind) && is_well(disk, *kind);
    let over: Vec<Kind> = told.keys().copied().filter(is_over).collect();
    for kind in over {
        let before = told.remove(&kind).unwrap_or_default();
        let words = match kind {
            Kind::Behind | Kind::Overdue => "is expected to be verified in time again",
            // Those that are acknowledged are not gone.
            Kind::UnreadableBlocks if disk.bad() > 0 => continue,
            Kind::UnreadableBlocks => "no blocks are known to be unreadable or wrong any more",
            Kind::ScrubFailed => "its scrub goes on",
            Kind::Missing => "is there again",
            Kind::NotCompared => "all of it that has checksums was compared with them",
            Kind::SlowdownAboveGoal => "scrubs slow other requests by no more than their goal again",
            Kind::Recovered | Kind::Test => continue,
        };
        // One that was late and is overdue now is not in time.
        if !(kind == Kind::Behind && disk.standing == "overdue") {
            messages.push(Message::of(
                disk,
                Kind::Recovered,
                now,
                &before,
                (words.into(), "Nothing needs to be done."),
            ));
        }
    }
    for (kind, worth, words) in wrong {
        let is_new = !told.contains_key(&kind);
        let known = told.entry(kind).or_insert(Told { first_unix_s: now, ..Told::default() });
        // A clock that was ahead puts nothing off for longer.
        known.next_unix_s = known.next_unix_s.min(repeat.next(now, known.count.saturating_sub(1)));
        if is_new || worth > known.worth || now >= known.next_unix_s {
            known.next_unix_s = repeat.next(now, known.count);
            known.count = known.count.saturating_add(1);
            messages.push(Message::of(disk, kind, now, known, words));
        }
        known.worth = worth;
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cost;

    fn seen(bad: u64, acknowledged: u64, standing: &'static str, state: &'static str) -> Seen {
        Seen {
            device: "/dev/sda".into(),
            identity: "wwn-1".into(),
            state,
            standing,
            goal_mean_slowdown_s: 0.001,
            bad_blocks: [("medium".to_string(), bad)].into_iter().collect(),
            acknowledged_blocks: acknowledged,
            is_known: true,
            ..Seen::default()
        }
    }

    #[test]
    fn what_is_wrong_is_told_again_later_and_later_and_at_once_where_it_grows() {
        let mut told = BTreeMap::new();
        let mut at = |day: f64, bad, acknowledged| {
            let disk = seen(bad, acknowledged, "in-time", "running");
            let messages = due(&disk, Repeat::Diminishing, day * DAY_S, &mut told);
            messages.into_iter().map(|message| (message.kind, message.before)).collect::<Vec<_>>()
        };
        use Kind::{Recovered, UnreadableBlocks};
        assert_eq!(at(0.0, 0, 0), []);
        assert_eq!((at(1.0, 2, 0), at(1.5, 2, 0)), (vec![(UnreadableBlocks, 0)], vec![]));
        assert_eq!(
            (at(2.0, 2, 0), at(3.9, 2, 0), at(4.0, 2, 0)),
            (vec![(UnreadableBlocks, 1)], vec![], vec![(UnreadableBlocks, 2)])
        );
        assert_eq!((at(4.1, 3, 0), at(5.0, 3, 0)), (vec![(UnreadableBlocks, 3)], vec![]));
        assert_eq!(
            (at(5.0, 3, 3), at(6.0, 3, 3), at(7.0, 4, 3), at(8.0, 0, 0)),
            (vec![], vec![], vec![(UnreadableBlocks, 0)], vec![(Recovered, 0)])
        );
    }

    /// A clock that was ahead when something was told puts nothing off for years.
    #[test]
    fn a_clock_that_was_ahead_puts_nothing_off() {
        let (mut told, ill) = (BTreeMap::new(), seen(1, 0, "in-time", "running"));
        let mut count = |day: f64| due(&ill, Repeat::Daily, day * DAY_S, &mut told).len();
        assert_eq!((count(20_000.0), count(10.0), count(10.5), count(11.0)), (1, 0, 0, 1));
    }

    /// A disk that is away, may be another one or has not been looked at yet is not a healthy one.
    #[test]
    fn nothing_is_over_of_which_nothing_is_known() {
        let ill = Seen { not_compared: Some((1, "why".into())), ..seen(8, 0, "overdue", "failed") };
        let slow = Seen { foreground_requests: ENOUGH, foreground_slowdown_s: 2.0, ..ill };
        let mut told = BTreeMap::new();
        assert_eq!(due(&slow, Repeat::Once, 1e9, &mut told).len(), 5);
        let unknown = Seen { is_known: false, ..seen(0, 0, "unknown", "waiting") };
        let missing = Seen { state: MISSING, ..unknown.clone() };
        let begins = Seen { state: "running", ..unknown.clone() };
        let told_of = |disk: &Seen, told: &mut BTreeMap<Kind, Told>| {
            due(disk, Repeat::Once, 1e9, told).into_iter().map(|message| message.kind).collect::<Vec<_>>()
        };
        assert_eq!(told_of(&unknown, &mut told), []);
        assert_eq!(told_of(&begins, &mut told), []);
        assert_eq!(told_of(&missing, &mut told), [Kind::Missing]);
        let well = Seen { scrubs: true, foreground_requests: ENOUGH, ..seen(0, 0, "in-time", "running") };
        assert_eq!(told_of(&well, &mut told), [Kind::Recovered; 6]);
        assert!(told.is_empty());
    }

    #[test]
    fn each_kind_is_told_by_itself() {
        let kinds = |disk: &Seen, told: &mut BTreeMap<Kind, Told>| {
            due(disk, Repeat::Once, 1e9, told).into_iter().map(|message| message.kind).collect::<Vec<_>>()
        };
        let mut told = BTreeMap::new();
        assert_eq!(kinds(&seen(0, 0, "behind", "failed"), &mut told), [Kind::Behind, Kind::ScrubFailed]);
        assert_eq!(kinds(&seen(0, 0, "behind", "failed"), &mut told), []);
        // From behind to overdue is no recovery.
        assert_eq!(kinds(&seen(0, 0, "overdue", "failed"), &mut told), [Kind::Overdue]);
        let well = Seen { scrubs: true, ..seen(0, 0, "in-time", "running") };
        assert_eq!(kinds(&well, &mut told), [Kind::Recovered, Kind::Recovered]);
        let missing = due(&seen(0, 0, "unknown", "missing"), Repeat::Once, 1e9, &mut told).remove(0);
        // Another disk may be where it was.
        assert!(missing.kind == Kind::Missing && missing.text.contains("acknowledge 'wwn-1'"), "{}", missing.text);
        assert_eq!(kinds(&seen(0, 0, "in-time", "running"), &mut told), [Kind::Recovered]);
        let slow = Seen { foreground_requests: ENOUGH, foreground_slowdown_s: 1.2, ..seen(0, 0, "in-time", "running") };
        assert_eq!(kinds(&slow, &mut told), [Kind::SlowdownAboveGoal]);
        // What was spent was allowed.
        let spent = Seen { foreground_allowed_s: 1.5, ..slow };
        assert_eq!(kinds(&spent, &mut BTreeMap::new()), []);
        // A day among months of requests that waited for nothing.
        let day = Cost { requests: ENOUGH, slowdown_s: 2.0 };
        let bad_day = Seen { foreground_requests: 1_000_000_000, foreground_slowdown_s: 2.0, last_day: day, ..spent };
        let told = due(&bad_day, Repeat::Once, 1e9, &mut BTreeMap::new());
        assert!(told[0].subject.contains("by 2.00 ms on average in the last day"), "{}", told[0].subject);
        let spends = Seen { most_mean_slowdown_s: 0.003, ..bad_day };
        assert_eq!(kinds(&spends, &mut BTreeMap::new()), []);
    }
}
