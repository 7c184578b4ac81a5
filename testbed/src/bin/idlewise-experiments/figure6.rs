//! Figure 6 of DSN 2012: throughput of foreground and scrubber, for each scrubber beside each load.

use idlewise::report::{Section, Table};

use crate::bars::Bars;
use crate::cells::{Cell, Cells, PLAIN, figure_6};
use idlewise_testbed::lab::load::Load;
use idlewise_testbed::lab::outcome::{Outcome, against, megabytes};
use idlewise_testbed::lab::scrubber::{Pace, Scrubber};

/// What the paper's figure says that the scrubber read, in MB/s: sequential and staggered, by delay. CFQ's idle class
/// read 9.2 and 9.0 beside the sequential load; beside the random one it and a delay of 8 ms read 5.3 and 5.3, 4.9 and
/// 5.3, the text of the figure does not say which is which.
const PAPER: [(u64, [f64; 2], Option<[f64; 2]>); 7] = [
    (0, [12.5, 12.1], Some([12.2, 12.4])),
    (8, [4.9, 5.0], None),
    (16, [3.0, 3.0], Some([2.6, 2.6])),
    (32, [1.5, 1.5], Some([1.4, 1.4])),
    (64, [0.9, 0.9], Some([0.9, 0.9])),
    (128, [0.5, 0.5], Some([0.5, 0.5])),
    (256, [0.2, 0.2], Some([0.2, 0.2])),
];

/// Said of the throughput beside either load.
const THROUGHPUT: &str = "The foreground thinks for most of the time (64KiB in 100 ms are 0.66 MB/s), so that its \
    throughput hardly shows what a scrubber does to it: see its response times, below. For CFQ's idle class with the \
    sequential load, the paper's figure shows 9.2 and 9.0 MB/s.";

/// What was measured beside one load: alone, with each scrubber in both orders, and with idlewise.
struct Beside<'a> {
    load: Load,
    alone: &'a Outcome,
    /// Name, the scrubber in the sequential order, and in the staggered one.
    scrubbers: Vec<(String, [(Scrubber, &'a Outcome); 2])>,
    idlewise: &'a Outcome,
}

/// The sections about one load: throughput and response times.
pub fn sections(load: Load, cells: &Cells, schedulers: &[String]) -> [Section; 2] {
    let plain = |scrubber| cells.get(&Cell { load, scheduler: PLAIN.into(), scrubber });
    let [one, other] = [false, true].map(|staggered| figure_6(load, staggered, schedulers));
    let pair = |(one, other): (&Cell, &Cell)| (name(one), [one, other].map(|cell| (cell.scrubber, cells.get(cell))));
    let scrubbers = one.iter().zip(&other).map(pair).collect();
    let beside = Beside { load, alone: plain(Scrubber::None), scrubbers, idlewise: plain(Scrubber::Idlewise) };
    let summary = beside.summary(plain(Scrubber::delayed(0, false)), plain(Scrubber::delayed(64, false)));
    [beside.throughput(), beside.responses(summary)]
}

impl Beside<'_> {
    fn rows(&self) -> Vec<(&str, Scrubber, &Outcome)> {
        let mut rows = vec![("no scrubber", Scrubber::None, self.alone)];
        for (name, orders) in &self.scrubbers {
            rows.extend(orders.iter().map(|&(scrubber, outcome)| (name.as_str(), scrubber, outcome)));
        }
        rows.push(("idlewise", Scrubber::Idlewise, self.idlewise));
        rows
    }

    fn throughput(&self) -> Section {
        let head = ["", "order", "foreground, MB/s", "against alone", "scrub, MB/s", "the paper's, MB/s"];
        let mut table = Table::new(head);
        for (name, scrubber, outcome) in self.rows() {
            table.row([
                name.into(),
                scrubber.order().into(),
                megabytes(outcome.foreground()),
                against(outcome.foreground(), self.alone.foreground()),
                format!("{:.2}", outcome.scrub().0 as f64 / 1e6),
                papers(self.load, scrubber),
            ]);
        }
        let mega = |rate: idlewise::Rate| Some((rate.0 as f64 / 1e6, 0.0));
        let mut groups = vec![("no scrubber".to_string(), vec![mega(self.alone.foreground()), None, None])];
        groups.extend(self.scrubbers.iter().map(|(name, [(_, one), (_, other)])| {
            (name.clone(), vec![mega(one.foreground()), mega(one.scrub()), mega(other.scrub())])
        }));
        let idlewise = vec![mega(self.idlewise.foreground()), mega(self.idlewise.scrub()), None];
        groups.push(("idlewise".into(), idlewise));
        let series = vec!["foreground", "sequential scrub", "staggered scrub"];
        Section {
            heading: format!("Figure 6: throughput beside the {} load", self.load.label()),
            text: THROUGHPUT.into(),
            table,
            drawings: vec![(String::new(), Bars { axis: "MB/s", series, groups }.svg())],
            ..Section::default()
        }
    }

    fn responses(&self, summary: String) -> Section {
        let head = ["", "order", "mean response", "runs, ms", "longer than alone", "95 %", "longest"];
        let mut table = Table::new(head);
        for (name, scrubber, outcome) in self.rows() {
            table.row([
                name.into(),
                scrubber.order().into(),
                outcome.response().milliseconds(),
                outcome.by_run(),
                if scrubber == Scrubber::None { "-".into() } else { outcome.longer_than(self.alone).milliseconds() },
                outcome.percentile(0.95).to_string(),
                outcome.percentile(1.0).to_string(),
            ]);
        }
        let bar = |outcome: &Outcome| {
            let mean = outcome.response();
            Some((mean.value * 1e3, mean.error * 1e3))
        };
        let mut groups = vec![("no scrubber".to_string(), vec![bar(self.alone), None])];
        let both = self.scrubbers.iter();
        groups.extend(both.map(|(name, [(_, one), (_, other)])| (name.clone(), vec![bar(one), bar(other)])));
        groups.push(("idlewise".into(), vec![bar(self.idlewise), None]));
        Section {
            heading: format!("Figure 6: mean response time beside the {} load", self.load.label()),
            text: summary,
            table,
            drawings: vec![(
                String::new(),
                Bars { axis: "ms", series: vec!["sequential scrub", "staggered scrub"], groups }.svg(),
            )],
            ..Section::default()
        }
    }

    fn summary(&self, none: &Outcome, long: &Outcome) -> String {
        let did = |outcome: &Outcome| {
            let longer = outcome.longer_than(self.alone).milliseconds();
            format!("scrubs {} and makes the same requests longer by {longer}", outcome.scrub())
        };
        let chosen = self.idlewise.chosen().map(|chosen| format!(" It chose {chosen}.")).unwrap_or_default();
        format!(
            "Alone, a request of the foreground takes {}. In the sequential order, a scrubber without delay {}; one \
             with a delay of 64 ms {}; idlewise {}.{chosen}",
            self.alone.response().milliseconds(),
            did(none),
            did(long),
            did(self.idlewise),
        )
    }
}

/// The paper's scrub throughput, where its figure tells it.
fn papers(load: Load, scrubber: Scrubber) -> String {
    let Scrubber::Reader { pace: Pace::Delay(delay), idle_class: false, staggered, .. } = scrubber else {
        return "-".into();
    };
    let found = PAPER.iter().find(|(other, ..)| *other == delay);
    let orders =
        found.and_then(|&(_, sequential, random)| if load == Load::Sequential { Some(sequential) } else { random });
    orders.map_or("-".into(), |orders| format!("{:.1}", orders[usize::from(staggered)]))
}

/// What a row is called.
fn name(cell: &Cell) -> String {
    match cell.scrubber {
        Scrubber::Reader { idle_class: true, .. } => format!("{}, {}", cell.scrubber.label(), cell.scheduler),
        scrubber => scrubber.label(),
    }
}
