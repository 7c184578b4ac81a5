//! What the page of a disk draws: which part is verified, when the pass will end, how much requests were slowed, what the hours give.

use idlewise::drive::Slowdowns;
use idlewise::{Bytes, Nanos};

use crate::overview::Seen;

/// Charts are so wide.
pub const WIDTH: f64 = 1000.0;

/// A rectangle of a chart.
pub struct Cell {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    /// How opaque, from 0 to 1.
    pub share: String,
    /// What it means; empty where it means nothing alone.
    pub title: String,
}

/// A line across a chart, or a text in it.
pub struct Mark {
    pub x: f64,
    pub y: f64,
    pub text: String,
}

impl Cell {
    fn in_row(x: f64, width: f64, share: f64) -> Self {
        Self { x, y: 0.0, width, height: 20.0, share: format!("{share:.2}"), title: String::new() }
    }
}

/// The parts of the disk that are verified in this pass, from its first byte to its last; parts that are the same are one cell.
pub fn map(shares: &[f64]) -> Vec<Cell> {
    let width = WIDTH / shares.len().max(1) as f64;
    let mut cells: Vec<Cell> = Vec::new();
    for (place, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let next = Cell::in_row(place as f64 * width, width, *share);
        match cells.last_mut().filter(|last| last.share == next.share && (last.x + last.width - next.x).abs() < 0.01) {
            Some(last) => last.width += width,
            None => cells.push(next),
        }
    }
    cells
}

/// When the pass will end, from now to the deadline or to the latest that is likely.
pub struct Ahead {
    pub band: Cell,
    /// Where it is expected to end, and where it has to.
    pub expected: f64,
    pub due: f64,
    pub text: String,
}

/// How a pass that goes on stands with its deadline; nothing where that is not known.
pub fn ahead(disk: &Seen, now: f64, date: impl Fn(f64) -> String) -> Option<Ahead> {
    let [expected, early, late] = disk.expected_end_unix_s.filter(|_| disk.state != "complete")?;
    let last = disk.due_unix_s.max(expected).max(if late.is_finite() { late } else { 0.0 });
    // A tenth is left beside the last one.
    let (from, span) = (now.min(disk.due_unix_s), (last - now.min(disk.due_unix_s)).max(1.0) * 1.1);
    let place = |at: f64| ((at - from) / span).clamp(0.0, 1.0) * WIDTH;
    let (begin, end) = (place(early), if late.is_finite() { place(late) } else { WIDTH });
    let latest = if late.is_finite() { date(late) } else { "never".into() };
    let text = format!(
        "Expected to end {}, in nine cases of ten between {} and {latest}; due {}.",
        date(expected),
        date(early),
        date(disk.due_unix_s)
    );
    let band = Cell::in_row(begin, (end - begin).max(2.0), 0.45);
    Some(Ahead { band, expected: place(expected), due: place(disk.due_unix_s), text })
}

/// How much foreground requests were slowed.
pub struct Slowed {
    pub bars: Vec<Cell>,
    pub labels: Vec<Mark>,
    /// Where the mean and the largest slowdown lie that are allowed.
    pub goals: Vec<Mark>,
    pub text: String,
}

const BASE: f64 = 190.0;
const TALLEST: f64 = 130.0;

/// A bar for each limit, as tall as the number of requests has digits; nothing before the first request.
pub fn slowed(disk: &Seen) -> Option<Slowed> {
    let slowdowns = Slowdowns::of(&disk.slowdowns);
    let (counts, all) = (slowdowns.counts(), slowdowns.requests());
    let most = *counts.iter().max().filter(|most| **most > 0)?;
    let step = WIDTH / counts.len() as f64;
    let digits = |count: u64| (count as f64 + 1.0).log10();
    let limits = Slowdowns::LIMITS;
    let bar = |(place, count): (usize, &u64)| {
        let height = digits(*count) / digits(most) * TALLEST;
        let range = match (place.checked_sub(1).map(|before| limits[before]), limits.get(place)) {
            (None, Some(limit)) => format!("at most {limit}"),
            (Some(before), Some(limit)) => format!("{before} to {limit}"),
            (before, None) => format!("more than {}", before.unwrap_or_default()),
        };
        let title = format!("{range}: {count} requests, {:.3} %", *count as f64 * 100.0 / all as f64);
        let (x, y) = (place as f64 * step + 3.0, BASE - height);
        Cell { x, y, width: step - 6.0, height, share: "1".into(), title }
    };
    let label = |(place, limit): (usize, &Nanos)| Mark {
        x: (place + 1) as f64 * step,
        y: BASE + 22.0,
        text: limit.to_string().replace(' ', "\u{a0}"),
    };
    let goal = |(y, seconds, text): (f64, f64, &str)| Mark {
        x: place_of(seconds, step),
        y,
        text: format!("{} {text}", time(seconds)),
    };
    let (mean, largest) = (disk.goal_mean_slowdown_s, disk.goal_max_slowdown_s);
    let within = limits.iter().take_while(|limit| limit.as_secs_f64() <= largest).count().max(1);
    let beyond: u64 = counts[within..].iter().sum();
    Some(Slowed {
        bars: counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bar).collect(),
        labels: limits.iter().enumerate().step_by(2).map(label).collect(),
        goals: [(20.0, mean, "allowed on average"), (42.0, largest, "allowed at most")].map(goal).into(),
        text: format!(
            "Of {all} foreground requests, {:.2} % were slowed by at most {}, and {beyond} by more than {}. The heights of the bars are \
             logarithmic.",
            counts[0] as f64 * 100.0 / all as f64,
            limits[0],
            limits[within - 1]
        ),
    })
}

/// Where a slowdown lies between the limits, by its logarithm.
fn place_of(seconds: f64, step: f64) -> f64 {
    let limits = Slowdowns::LIMITS.map(|limit| limit.as_secs_f64());
    let above = limits.partition_point(|limit| *limit < seconds);
    let place = match (above.checked_sub(1).map(|before| limits[before]), limits.get(above)) {
        (None, Some(limit)) => seconds / limit,
        (Some(before), Some(limit)) => above as f64 + (seconds / before).ln() / (limit / before).ln(),
        _ => above as f64 + 0.5,
    };
    place * step
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// What the hours of the week give.
pub struct Week {
    pub cells: Vec<Cell>,
    pub labels: Vec<Mark>,
    pub fastest: String,
}

/// The hours of the week; nothing where nothing is known.
pub fn week(rates: &[Option<f64>]) -> Option<Week> {
    let fastest = rates.iter().flatten().copied().fold(0.0, f64::max);
    let cell = |(place, rate): (u32, &Option<f64>)| {
        let (day, hour) = (place / 24, place % 24);
        let told = rate.map_or("nothing is known".into(), |rate| format!("{}/s", Bytes(rate as u64)));
        Cell {
            x: f64::from(60 + hour * 41),
            y: f64::from(30 + day * 39),
            width: 38.0,
            height: 36.0,
            share: format!("{:.2}", rate.unwrap_or(0.0) / fastest),
            title: format!("{} {hour}:00: {told}", DAYS[day as usize % 7]),
        }
    };
    let days = (0..7u32).map(|day| (0, 55 + day * 39, DAYS[day as usize].to_string()));
    let hours = (0..24u32).step_by(3).map(|hour| (62 + hour * 41, 20, format!("{hour}:00")));
    let labels = days.chain(hours).map(|(x, y, text)| Mark { x: f64::from(x), y: f64::from(y), text }).collect();
    let cells = (0..).zip(rates).map(cell).collect();
    (fastest > 0.0).then(|| Week { cells, labels, fastest: Bytes(fastest as u64).to_string() })
}

/// A time in the unit that suits it.
pub fn time(seconds: f64) -> String {
    if seconds < 0.0 { format!("-{}", time(-seconds)) } else { Nanos((seconds * 1e9) as u64).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_beside_each_other_are_one() {
        let cells = map(&[1.0, 1.0, 0.0, 0.5, 0.5, 0.5, 0.0, 0.1]);
        let drawn: Vec<_> = cells.iter().map(|cell| (cell.x, cell.width, cell.share.as_str())).collect();
        assert_eq!(drawn, [(0.0, 250.0, "1.00"), (375.0, 375.0, "0.50"), (875.0, 125.0, "0.10")]);
        assert!(map(&[]).is_empty());
    }

    #[test]
    fn the_end_lies_between_now_and_the_deadline_or_behind_it() {
        let date = |at: f64| format!("t{at}");
        let disk = |due, ends| Seen { state: "running", due_unix_s: due, expected_end_unix_s: ends, ..Seen::default() };
        assert!(ahead(&disk(9.0, None), 0.0, date).is_none());
        let drawn = |due, ends| {
            let Ahead { band, expected, due, text } = ahead(&disk(due, Some(ends)), 1000.0, date).unwrap();
            ([band.x, band.x + band.width, expected, due].map(f64::round), text)
        };
        let (in_time, text) = drawn(2000.0, [1550.0, 1110.0, 1990.0]);
        assert_eq!(in_time, [100.0, 900.0, 500.0, 909.0]);
        assert_eq!(text, "Expected to end t1550, in nine cases of ten between t1110 and t1990; due t2000.");
        // It may never end, and the deadline is over.
        let (late, text) = drawn(900.0, [2000.0, 1450.0, f64::INFINITY]);
        assert!(late == [455.0, 1000.0, 909.0, 0.0] && text.contains("and never; due t900"), "{late:?} {text}");
    }

    #[test]
    fn bars_are_of_the_requests_and_beyond_the_largest_is_counted() {
        let none = Seen { slowdowns: vec![0; 14], ..Seen::default() };
        assert!(slowed(&none).is_none());
        let mut slowdowns = vec![0; 14];
        (slowdowns[0], slowdowns[5], slowdowns[9], slowdowns[13]) = (9_999, 9, 3, 1);
        let disk = Seen { slowdowns, goal_mean_slowdown_s: 1e-3, goal_max_slowdown_s: 5e-2, ..Seen::default() };
        let Slowed { bars, goals, text, .. } = slowed(&disk).unwrap();
        let tall: Vec<_> = bars.iter().map(|bar| (bar.height * 4.0 / TALLEST).round()).collect();
        assert_eq!(
            (tall, bars[1].title.as_str()),
            (vec![4.0, 1.0, 1.0, 0.0], "2.00 ms to 5.00 ms: 9 requests, 0.090 %")
        );
        assert!(
            text.starts_with(
                "Of 10012 foreground requests, 99.87 % were slowed by at most 100 us, and 4 by more than 50.0 ms"
            ),
            "{text}"
        );
        assert_eq!([goals[0].x, goals[1].x].map(f64::round), [286.0, 643.0]);
    }

    #[test]
    fn goals_lie_between_the_limits_around_them() {
        assert_eq!([50e-6, 100e-6, 1e-3, 5.0].map(|seconds| place_of(seconds, 10.0).round()), [5.0, 10.0, 40.0, 135.0]);
        assert!((40.0..50.0).contains(&place_of(1.5e-3, 10.0)));
    }
}
