//! A fleet of volumes: which of them can be verified in time, and what is in the way of the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cell, Chart, Listing, Page, Scale, Section, Table, percent};
use crate::{Bytes, Nanos, Rate};

/// So many of the slowest are listed.
const SLOWEST: usize = 20;

/// A volume, as a row of the table of a fleet. What is not known of it is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetVolume {
    /// Its name.
    pub volume: String,
    /// Requests in the trace.
    pub requests: Option<u64>,
    /// From the first arrival to the last completion.
    pub span_s: Option<f64>,
    /// Share of that in which it was busy.
    pub utilisation: Option<f64>,
    /// Idle intervals.
    pub idle_intervals: Option<u64>,
    /// Their mean length.
    pub idle_mean_s: Option<f64>,
    /// Their variance, in seconds squared.
    pub idle_variance_s2: Option<f64>,
    /// Their coefficient of variation.
    pub idle_cov: Option<f64>,
    /// Share of the intervals that are longer than 100 ms.
    pub longer_than_100ms: Option<f64>,
    /// Share of the idle time that lies in the longest 15 % of the intervals.
    pub idle_share_longest_15pct: Option<f64>,
    /// Share of the idle time that is left after the first 10 ms of each interval.
    pub usable_after_10ms: Option<f64>,
    /// The same after 100 ms.
    pub usable_after_100ms: Option<f64>,
    /// The same after 1 s.
    pub usable_after_1s: Option<f64>,
    /// The plan: size of a request.
    pub request_size_bytes: Option<u64>,
    /// The plan: how long it waits.
    pub idle_wait_s: Option<f64>,
    /// What the plan scrubs in the time of the trace.
    pub scrubbed_bytes: Option<u64>,
    /// In so many requests.
    pub background_requests: Option<u64>,
    /// So many of which a foreground request met.
    pub collisions: Option<u64>,
    /// Share of the foreground requests that met one.
    pub collision_rate: Option<f64>,
    /// Mean slowdown of the foreground.
    pub mean_slowdown_s: Option<f64>,
    /// Longest slowdown.
    pub max_slowdown_s: Option<f64>,
    /// What the plan scrubs in a second.
    pub throughput_bytes_per_s: Option<f64>,
    /// Share of the idle time that it uses.
    pub utilised_idle: Option<f64>,
    /// Mean slowdown over the mean response time, where those are recorded.
    pub relative_delay: Option<f64>,
    /// Slowdown that 99 % of the foreground requests do not exceed.
    pub slowdown_p99_s: Option<f64>,
    /// Time of a pass over the capacity.
    pub full_pass_s: Option<f64>,
    /// Why to trust the plan less.
    pub warnings: Option<String>,
    /// Why there is no plan.
    pub error: Option<String>,
}

impl FleetVolume {
    fn is_in_time(&self, within: Nanos) -> bool {
        self.full_pass_s.is_some_and(|pass| pass <= within.as_secs_f64())
    }
}

/// A page about a fleet: which of the volumes a pass takes at most `within`, which are too slow, and of which there is no plan and why.
/// `left_out` are files that could not be read, and why.
pub fn fleet_page(volumes: &[FleetVolume], left_out: &BTreeMap<String, String>, within: Nanos) -> Page {
    let count = volumes.len();
    let in_time = volumes.iter().filter(|volume| volume.is_in_time(within)).count();
    let without = volumes.iter().filter(|volume| volume.full_pass_s.is_none()).count();
    let share = |part: usize| format!("{part} ({})", percent(part as f64 / count.max(1) as f64));
    let requests: u64 = volumes.iter().filter_map(|volume| volume.requests).sum();
    let rate: f64 = volumes.iter().filter_map(|volume| volume.throughput_bytes_per_s).sum();
    let overview = Table::of_pairs([
        ("volumes", count.to_string()),
        ("requests", requests.to_string()),
        ("verified in time", share(in_time)),
        ("a pass takes too long", share(count - in_time - without)),
        ("without a plan", share(without)),
        ("all plans together", Rate(rate as u64).to_string()),
        ("files left out", left_out.len().to_string()),
    ]);
    let mut sections = vec![Section {
        heading: "How long a pass takes".into(),
        text: format!("A pass over a volume is to be over within {within}."),
        table: overview,
        drawings: vec![("Time of a pass, by share of the volumes that have a plan".into(), passes(volumes))],
        ..Section::default()
    }];
    let why = reasons(volumes);
    if !why.is_empty() {
        let mut table = Table::new(["volumes", "why there is no plan"]);
        why.into_iter().for_each(|(why, count)| table.row([count.to_string(), why]));
        sections.push(Section { heading: "Volumes without a plan".into(), table, ..Section::default() });
    }
    let mut table = Table::new(["volume", "pass", "rate", "mean slowdown", "idle time used"]);
    for volume in slowest(volumes).into_iter().take(SLOWEST) {
        let [_, _, pass, rate, mean, _, used, ..] = cells(volume).map(|cell| cell.text);
        table.row([volume.volume.clone(), pass, rate, mean, used]);
    }
    if !table.rows.is_empty() {
        sections.push(Section { heading: "The slowest".into(), table, ..Section::default() });
    }
    let head =
        ["volume", "requests", "pass", "rate", "mean slowdown", "request", "idle time used", "utilisation", "remarks"];
    let rows = volumes.iter().map(|volume| cells(volume).to_vec()).collect();
    let listing = Listing { head: head.map(String::from).to_vec(), rows };
    sections.push(Section { heading: "All volumes".into(), listing, ..Section::default() });
    if !left_out.is_empty() {
        let notes = left_out.iter().map(|(file, why)| (file.clone(), why.clone())).collect();
        sections.push(Section { heading: "Files left out".into(), notes, ..Section::default() });
    }
    Page {
        title: format!("A fleet of {count} volumes"),
        lead: format!("{} of {count} can be verified within {within}, by simulation on their traces.", share(in_time)),
        sections,
    }
}

/// Why volumes have no plan, and how many for each reason, the most frequent first. Numbers in a reason are those of one volume.
pub fn reasons(volumes: &[FleetVolume]) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::<String, usize>::new();
    for volume in volumes {
        let Some(error) = volume.error.as_deref() else { continue };
        let error = error.strip_prefix(&format!("volume '{}': ", volume.volume)).unwrap_or(error);
        *counts.entry(error.split(':').next().unwrap_or_default().into()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Those with a plan, the longest pass first.
pub fn slowest(volumes: &[FleetVolume]) -> Vec<&FleetVolume> {
    let mut with: Vec<_> = volumes.iter().filter(|volume| volume.full_pass_s.is_some()).collect();
    with.sort_by(|a, b| b.full_pass_s.unwrap_or(0.0).total_cmp(&a.full_pass_s.unwrap_or(0.0)));
    with
}

fn cells(volume: &FleetVolume) -> [Cell; 9] {
    let cell = |number: Option<f64>, text: fn(f64) -> String| Cell { text: number.map_or("-".into(), text), number };
    let time = |number| cell(number, |seconds| Nanos((seconds * 1e9) as u64).to_string());
    [
        Cell { text: volume.volume.clone(), number: None },
        cell(volume.requests.map(|count| count as f64), |count| format!("{count:.0}")),
        time(volume.full_pass_s),
        cell(volume.throughput_bytes_per_s, |rate| Rate(rate as u64).to_string()),
        time(volume.mean_slowdown_s),
        cell(volume.request_size_bytes.map(|size| size as f64), |size| Bytes(size as u64).to_string()),
        cell(volume.utilised_idle, percent),
        cell(volume.utilisation, percent),
        Cell { text: volume.error.as_ref().or(volume.warnings.as_ref()).cloned().unwrap_or_default(), number: None },
    ]
}

fn passes(volumes: &[FleetVolume]) -> String {
    let mut passes: Vec<f64> =
        volumes.iter().filter_map(|volume| volume.full_pass_s).filter(|pass| *pass > 0.0).collect();
    passes.sort_by(f64::total_cmp);
    let points = (1..).zip(&passes).map(|(at, pass)| (*pass, f64::from(at) / passes.len() as f64)).collect();
    if passes.len() < 2 {
        return String::new();
    }
    Chart {
        x: ("time of a pass".into(), Scale::LogSeconds),
        y: ("share of volumes".into(), Scale::Share),
        lines: vec![("volumes".into(), points)],
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    }
    .html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volumes() -> Vec<FleetVolume> {
        let with = |volume: &str, days: f64| FleetVolume {
            volume: volume.into(),
            requests: Some(10),
            full_pass_s: Some(days * 86_400.0),
            throughput_bytes_per_s: Some(2e6),
            ..FleetVolume::default()
        };
        let without = |volume: &str, error: &str| FleetVolume {
            volume: volume.into(),
            error: Some(error.into()),
            ..FleetVolume::default()
        };
        vec![
            with("a<b", 3.0),
            with("c", 20.0),
            with("d", 9.0),
            without("e", "no idle time: of 3"),
            without("f", "volume 'f': no idle time: of 4"),
            without("g", "damaged"),
        ]
    }

    #[test]
    fn the_page_says_how_many_are_in_time_and_why_others_are_not() {
        let volumes = volumes();
        let left_out = BTreeMap::from([("x.csv".to_string(), "line 3".to_string())]);
        let html = fleet_page(&volumes, &left_out, Nanos::from_secs(14 * 86_400)).html();
        assert!(html.contains("2 (33.3 %) of 6 can be verified within 14.0 d"), "{html}");
        assert!(html.contains("a&#60;b") && html.contains("no idle time: of 4") && html.contains("x.csv"), "{html}");
        // Nothing is fetched: the only address is the name of SVG.
        assert!(html.contains("<script>") && !html.replace("xmlns=\"http", "").contains("http"), "{html}");
        assert_eq!(reasons(&volumes), [("no idle time".into(), 2), ("damaged".into(), 1)]);
        let order: Vec<_> = slowest(&volumes).into_iter().map(|volume| &*volume.volume).collect();
        assert_eq!(order, ["c", "d", "a<b"]);
        assert!(!fleet_page(&[], &BTreeMap::new(), Nanos::from_secs(1)).html().contains("<script"));
    }
}
