//! What is done and why it waits, in words, by its name in files and `--json`.

use super::Doing;

const WORDS: [(&str, &str); 18] = [
    ("observing", "first watching the foreground (for 1 min, or as --observe says)"),
    ("calibrating", "first measuring the disk, whenever it is idle"),
    ("verifying", "verifying"),
    ("narrowing", "narrowing down unreadable blocks"),
    ("foreground-active", "waiting for others' requests"),
    ("idle-wait", "waiting, not idle for long enough"),
    (Doing::OVERDRAWN, "paused for the goal"),
    ("policy-stopped", "waiting for the next idle interval"),
    ("control", "leaving this gap unused, to measure the slowdown"),
    ("retrying", "waiting, the last request was disturbed"),
    ("others", "waiting for another check of the disk"),
    ("too-slow", "waiting, its smallest requests take longer than the max slowdown"),
    ("rate-limit", "waiting for --max-rate"),
    ("hung", "waiting for a request that hangs"),
    (Doing::STOPPED, "stopped by a signal, until SIGCONT"),
    ("runs", "running"),
    ("finishing", "held until its last requests are over"),
    ("paused", "paused until SIGCONT"),
];

/// What a scrub or a command in the gaps does, in words; a name that is not known here is shown as it is.
pub fn in_words(name: &str) -> &str {
    WORDS.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}
