//! Metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::Write;

use idlewise::drive::Slowdowns;
use idlewise::report::printable::one_line;

use crate::overview::{MISSING, Overview, STATES, Seen};

/// Its media type: Prometheus 3 takes no other for it.
pub const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric of each disk: name, kind, what it is, and its value.
type OfDisk = (&'static str, &'static str, &'static str, fn(&Seen) -> f64);

const OF_DISK: [OfDisk; 13] = [
    ("disk_size_bytes", "gauge", "Size of the disk.", |disk| disk.device_bytes as f64),
    ("pass_verified_bytes", "gauge", "Bytes verified in this pass.", |disk| disk.verified_bytes as f64),
    ("pass_started_timestamp_seconds", "gauge", "When this pass began; 0 before the first.", |disk| {
        disk.started_unix_s.unwrap_or(0) as f64
    }),
    ("pass_completed_timestamp_seconds", "gauge", "When the last whole pass ended; 0 if there is none.", |disk| {
        disk.completed_unix_s.unwrap_or(0) as f64
    }),
    ("pass_deadline_timestamp_seconds", "gauge", "When the next pass has to be over.", |disk| disk.due_unix_s),
    (
        "pass_expected_end_timestamp_seconds",
        "gauge",
        "When this pass is expected to end, by what the hours of the week gave so far; NaN if that is not known.",
        |disk| disk.expected_end_unix_s.map_or(f64::NAN, |[expected, ..]| expected),
    ),
    ("verified_bytes_total", "counter", "Bytes verified since the service was started.", |disk| {
        disk.verified_since_start_bytes as f64
    }),
    ("unreadable_blocks_acknowledged", "gauge", "Known bad blocks that somebody has acknowledged.", |disk| {
        disk.acknowledged_blocks as f64
    }),
    (
        "not_compared_bytes",
        "gauge",
        "Bytes of the last whole pass that were not compared with the checksums kept of them, as nobody could be asked.",
        |disk| disk.not_compared.as_ref().map_or(0.0, |(bytes, _)| *bytes as f64),
    ),
    ("goal_mean_slowdown_seconds", "gauge", "Mean slowdown that is allowed now.", |disk| disk.goal_mean_slowdown_s),
    ("goal_max_slowdown_seconds", "gauge", "Largest slowdown that is allowed.", |disk| disk.goal_max_slowdown_s),
    ("request_size_bytes", "gauge", "Size of a verify request; 0 before the first scrub.", |disk| {
        disk.run.as_ref().map_or(0.0, |run| run.request_size_bytes as f64)
    }),
    ("idle_wait_seconds", "gauge", "Idle time after which the scrub begins; 0 before the first scrub.", |disk| {
        disk.run.as_ref().map_or(0.0, |run| run.idle_wait_s)
    }),
];

/// All of them.
pub fn text(overview: &Overview) -> String {
    let mut text = String::new();
    // Another disk may have the name of one that is missing: no series is there twice.
    let is_there = |name| overview.disks.iter().any(|disk| disk.state != MISSING && disk.name() == name);
    let disks: Vec<_> = overview.disks.iter().filter(|disk| disk.state != MISSING || !is_there(disk.name())).collect();
    let head =
        |name: &str, kind: &str, help: &str| format!("# HELP idlewise_{name} {help}\n# TYPE idlewise_{name} {kind}\n");
    let _ = writeln!(
        text,
        "{}idlewise_build_info{{version=\"{}\"}} 1",
        head("build_info", "gauge", "Always 1: the version of idlewise."),
        escaped(overview.version)
    );
    text += &head("disk_info", "gauge", "Always 1: which disk this device is.");
    for disk in &disks {
        let (name, identity) = (escaped(disk.name()), escaped(&disk.identity));
        let _ = writeln!(text, "idlewise_disk_info{{device=\"{name}\",disk=\"{identity}\"}} 1");
    }
    text += &head("disk_state", "gauge", "1 for the state that the disk is in.");
    for disk in &disks {
        for state in STATES {
            let is = u8::from(disk.state == state);
            let _ = writeln!(text, "idlewise_disk_state{{device=\"{}\",state=\"{state}\"}} {is}", escaped(disk.name()));
        }
    }
    text += &head("unreadable_blocks", "gauge", "Blocks known to be unreadable, or wrong, by kind.");
    for disk in &disks {
        // There from the beginning, so that an alert sees it grow.
        let none = [("unreadable", 0)].into_iter().filter(|(kind, _)| !disk.bad_blocks.contains_key(*kind));
        let known = disk.bad_blocks.iter().map(|(kind, count)| (kind.as_str(), *count));
        for (kind, count) in known.chain(none) {
            let (name, kind) = (escaped(disk.name()), escaped(kind));
            let _ = writeln!(text, "idlewise_unreadable_blocks{{device=\"{name}\",kind=\"{kind}\"}} {count}");
        }
    }
    for (name, kind, help, value) in OF_DISK {
        text += &head(name, kind, help);
        for disk in &disks {
            let value = number(value(disk));
            let _ = writeln!(text, "idlewise_{name}{{device=\"{}\"}} {value}", escaped(disk.name()));
        }
    }
    text += &head(
        "foreground_slowdown_seconds",
        "histogram",
        "How long a scrub made a foreground request wait, of those seen while one ran, by the account of the scrub.",
    );
    disks.iter().for_each(|disk| text += &slowdowns(disk));
    let is_well = u8::from(overview.config.problem.is_none());
    for (name, help, value) in [
        ("disks_refused", "Devices that cannot be looked after.", overview.refused.len() as f64),
        ("messages_stuck", "1 if messages reach nobody.", f64::from(u8::from(overview.untold.is_some()))),
        ("config_last_reload_successful", "1 if the configuration as it is now could be read.", f64::from(is_well)),
        (
            "config_last_reload_success_timestamp_seconds",
            "When the configuration that counts was read.",
            overview.config.read_unix_s,
        ),
    ] {
        let _ = writeln!(text, "{}idlewise_{name} {}", head(name, "gauge", help), number(value));
    }
    text
}

/// The histogram of a disk's slowdowns.
fn slowdowns(disk: &Seen) -> String {
    let (mut text, mut sum, device) = (String::new(), 0u64, escaped(disk.name()));
    let name = "idlewise_foreground_slowdown_seconds";
    let limits = Slowdowns::LIMITS.map(|limit| number(limit.as_secs_f64()));
    for (count, limit) in
        Slowdowns::of(&disk.slowdowns).counts().iter().zip(limits.iter().map(String::as_str).chain(["+Inf"]))
    {
        sum = count.saturating_add(sum);
        let _ = writeln!(text, "{name}_bucket{{device=\"{device}\",le=\"{limit}\"}} {sum}");
    }
    let all = number(disk.foreground_slowdown_s.max(0.0));
    let _ = writeln!(text, "{name}_sum{{device=\"{device}\"}} {all}\n{name}_count{{device=\"{device}\"}} {sum}");
    text
}

/// As Prometheus reads it.
fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        _ => value.to_string(),
    }
}

/// The value of a label.
fn escaped(value: &str) -> String {
    one_line(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_in_the_place_of_another_is_one_series() {
        let disk = |state, identity: &str| Seen {
            device: "/dev/sda".into(),
            identity: identity.into(),
            state,
            ..Seen::default()
        };
        let alone = text(&Overview { disks: vec![disk(MISSING, "old")], ..Overview::default() });
        let both = text(&Overview { disks: vec![disk("running", "new"), disk(MISSING, "old")], ..Overview::default() });
        let series = |text: &str, begins: &str| text.lines().filter(|line| line.starts_with(begins)).count();
        for text in [&alone, &both] {
            assert_eq!(series(text, "idlewise_disk_info{"), 1, "{text}");
            assert_eq!(series(text, "idlewise_foreground_slowdown_seconds_bucket{"), 14, "{text}");
        }
        assert!(alone.contains("state=\"missing\"} 1") && both.contains("state=\"running\"} 1"), "{both}");
    }

    #[test]
    fn labels_and_numbers_are_written_as_prometheus_reads_them() {
        // What a terminal would obey is written out first.
        assert_eq!(escaped("a\"b\\c"), "a\\\"b\\\\c");
        assert!(!escaped("a\nb\u{1b}c").contains(char::is_control));
        assert_eq!(
            [1e-6, 1.5e12, f64::NAN, f64::INFINITY, 0.0].map(number),
            ["0.000001", "1500000000000", "NaN", "+Inf", "0"]
        );
    }
}
