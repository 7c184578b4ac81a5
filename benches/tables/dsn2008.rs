//! DSN 2008, tables 4 to 10, on stand-ins.

use std::fmt::Write;

use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, Keep, Reducer, Writes};
use idlewise::policy::restrained::Amount;
use idlewise::policy::{Parameters, RELATIVE_DELAY, REQUEST_SIZE, Setting, build};
use idlewise::reliability::{Activities, Errors, Gains, Policies, Study};
use idlewise::simulate::{ParityUpdates, Service, WriteVerification};
use idlewise::trace::synth::PUBLISHED;
use idlewise::{Bytes, Nanos};

/// The paper's: 100,000 requests of 6 ms a pass over 40 GB, a READ of 10 ms and a WRITE of 5 ms an update, a relative delay of 7 %.
const CAPACITY: Bytes = Bytes(40_000_000_000);
const REQUEST: Bytes = Bytes(400_000);
const SCRUB: Nanos = Nanos::from_millis(6);
const READ: Nanos = Nanos::from_millis(10);
const WRITE: Nanos = Nanos::from_millis(5);
const SEGMENT: Bytes = Bytes::from_kib(512);
const DELAY: f64 = 0.07;
const PASSES: u64 = 100;

/// A policy, or one for the scrub and one for the updates, on a trace with its own WRITEs or drawn ones.
struct Case {
    trace: &'static str,
    writes: Writes,
    policy: &'static str,
    parity: Option<&'static str>,
}

/// Appends the tables.
pub fn tables(text: &mut String, model: &DiskModel) {
    text.push_str(
        "\n## What scrubs and parity buy (DSN 2008, tables 4 to 10)\n\nOn stand-ins for T1, T2 and T3: 40 GB in 100,000 requests of \
         6 ms, updates of a READ of 10 ms and a WRITE of 5 ms for each dirty segment of 512 KiB, a relative delay of 7 % allowed; \
         100 passes, so often through the trace. In each cell the paper's number, ours, and the ratio of ours to it. The paper's \
         utilisations of the foreground alone are 17, 4.2 and 2.2 %.\n",
    );
    let case = |trace, writes, policy, parity| Case { trace, writes, policy, parity };
    let own = Writes::Recorded;
    let cases = [
        case("dsn2008-t1", own, "body", None),
        case("dsn2008-t1", own, "tail", None),
        case("dsn2008-t1", own, "body", Some("tail")),
        case("dsn2008-t2", Writes::Drawn(0.01), "body", None),
        case("dsn2008-t2", Writes::Drawn(0.01), "tail", None),
        case("dsn2008-t2", Writes::Drawn(0.1), "body", None),
        case("dsn2008-t2", Writes::Drawn(0.1), "tail", None),
        case("dsn2008-t2", Writes::Drawn(0.5), "body", None),
        case("dsn2008-t2", Writes::Drawn(0.5), "tail", None),
        case("dsn2008-t2", Writes::Drawn(0.9), "body", None),
        case("dsn2008-t2", Writes::Drawn(0.9), "tail", None),
        case("dsn2008-t3", own, "tail", None),
        case("dsn2008-t3", own, "tail-bursty", None),
    ];
    let studies: Vec<(Study, Gains)> = cases.iter().map(|case| case.study(model)).collect();
    let name = |index: usize| {
        let Case { trace, writes, policy, parity } = &cases[index];
        let share = match writes {
            Writes::Drawn(share) => format!(" ({} % WRITEs)", share * 100.0),
            _ => String::new(),
        };
        let both = parity.map_or(String::new(), |parity| format!("+{parity}"));
        format!("{}{share} | {policy}{both}", trace[trace.len() - 2..].to_uppercase())
    };
    passes(text, &studies);
    parity(text, &studies, &name);
    gains(text, &studies, &name);
}

/// The paper's, ours, and the ratio.
fn cell(paper: f64, ours: f64, digits: usize) -> String {
    format!("{paper:.digits$}, {ours:.digits$} ({:.2})", ours / paper)
}

/// Tables 4 and 5.
fn passes(text: &mut String, studies: &[(Study, Gains)]) {
    const PAPER: [(usize, &str, f64, f64, f64); 6] = [
        (0, "T1 | body", 3_617.8, 33.1, 4e4),
        (1, "T1 | tail", 6_484.7, 26.8, 3e4),
        (3, "T2 | body", 11_519.6, 9.7, 3e4),
        (4, "T2 | tail", 726.4, 83.1, 5e4),
        (11, "T3 | tail", 4_476.3, 14.3, 4e4),
        (12, "T3 | tail+bursty", 972.9, 62.6, 5e4),
    ];
    text.push_str("\n### Tables 4 and 5: the scrub alone\n\n| Trace | Policy | A pass, s | Utilisation, % | Gain in MTTDL |\n|---|---|---|---|---|\n");
    for (index, name, scan_s, utilisation, gain) in PAPER {
        let (study, gains) = &studies[index];
        let scan = study.scrub.passes.as_ref().expect("a scrub").mean_s;
        let busy = study.scrub.run.utilisation() * 100.0;
        let gained = gains.scrub_s / gains.none_s;
        let gain = format!("{gain:.0e}, {gained:.2e} ({:.2})", gained / gain);
        writeln!(text, "| {name} | {} | {} | {gain} |", cell(scan_s, scan, 0), cell(utilisation, busy, 1)).unwrap();
    }
}

/// Tables 6 to 8.
fn parity(text: &mut String, studies: &[(Study, Gains)], name: &dyn Fn(usize) -> String) {
    text.push_str(
        "\n### Tables 6 to 8: updates of parity alone\n\nThe paper prints no update times of T2 (figure 4).\n\n| Trace | Policy | Update, s | \
         Updates per WRITE, % | Utilisation, % | After 1, 2, 3 WRITEs, paper | ours |\n|---|---|---|---|---|---|---|\n",
    );
    const PAPER: [(usize, Option<[f64; 3]>, [f64; 3]); 10] = [
        (0, Some([180.629, 38.6, 24.7]), [0.65, 0.16, 0.04]),
        (1, Some([3.321, 41.6, 22.9]), [0.44, 0.29, 0.09]),
        (3, None, [0.98, 0.02, 0.0]),
        (4, None, [0.99, 0.01, 0.0]),
        (5, None, [0.75, 0.17, 0.05]),
        (6, None, [0.85, 0.12, 0.02]),
        (7, None, [0.53, 0.22, 0.10]),
        (8, None, [0.65, 0.22, 0.07]),
        (9, None, [0.46, 0.21, 0.11]),
        (10, None, [0.59, 0.24, 0.08]),
    ];
    for (index, printed, hits) in PAPER {
        let parity = &studies[index].0.parity;
        let updates = parity.updates.as_ref().expect("updates");
        let ours = [
            updates.mean_s().unwrap_or(f64::INFINITY),
            updates.completed_ratio() * 100.0,
            parity.run.utilisation() * 100.0,
        ];
        let cells = std::array::from_fn::<_, 3, _>(|k| match printed {
            Some(printed) => cell(printed[k], ours[k], 1),
            None => format!("-, {:.1}", ours[k]),
        });
        let list = |hits: &[f64]| hits.iter().take(3).map(|hit| format!("{hit:.2}")).collect::<Vec<_>>().join(", ");
        writeln!(text, "| {} | {} | {} | {} |", name(index), cells.join(" | "), list(&hits), list(&updates.shares()))
            .unwrap();
    }
}

/// Tables 9 and 10.
fn gains(text: &mut String, studies: &[(Study, Gains)], name: &dyn Fn(usize) -> String) {
    text.push_str(
        "\n### Tables 9 and 10: gains in MTTDL by parity, and by both at once\n\n| Trace | Policy | Parity | Both | Both over the product of \
         each | A pass beside updates, s | An update beside the scrub, s |\n|---|---|---|---|---|---|---|\n",
    );
    const PAPER: [(usize, Option<f64>, Option<f64>); 11] = [
        (0, Some(48.1), Some(1.8e7)),
        (1, Some(48.4), Some(6.3e7)),
        (2, None, Some(7.1e7)),
        (3, Some(48.4), None),
        (4, Some(48.4), Some(1.12e8)),
        (5, Some(46.6), None),
        (6, Some(48.3), Some(1.09e8)),
        (7, Some(38.6), None),
        (8, Some(48.2), Some(1.07e8)),
        (9, Some(35.1), None),
        (10, Some(48.2), Some(1.04e8)),
    ];
    for (index, parity, both) in PAPER {
        let (study, gains) = &studies[index];
        let [scrubbed, with_parity, with_both] =
            [gains.scrub_s, gains.parity_s, gains.both_s].map(|mttdl| mttdl / gains.none_s);
        let both = match both {
            Some(both) => format!("{both:.2e}, {with_both:.2e} ({:.2})", with_both / both),
            None => format!("-, {with_both:.2e}"),
        };
        let parity = parity.map_or(format!("-, {with_parity:.1}"), |parity| cell(parity, with_parity, 1));
        let together = &study.both;
        let scan_s = together.passes.as_ref().expect("a scrub").mean_s;
        let update_s = together.updates.as_ref().expect("updates").mean_s().unwrap_or(f64::INFINITY);
        let scan = if scan_s.is_finite() { format!("{scan_s:.0}") } else { "never".into() };
        writeln!(
            text,
            "| {} | {parity} | {both} | {:.0} | {scan} | {update_s:.1} |",
            name(index),
            with_both / scrubbed / with_parity
        )
        .unwrap();
    }
}

impl Case {
    fn study(&self, model: &DiskModel) -> (Study, Gains) {
        let shape = PUBLISHED.iter().find(|row| row.name == self.trace).expect("it is in the table").shape();
        let trace = shape.trace(1).expect("the table's numbers make sense");
        let keep = Keep { responses: false, writes: self.writes };
        let mut reducer = Reducer::new(model, trace.provenance.resolution).expect("the clock is fine").keeping(keep);
        reducer.requests(&trace.columns).expect("the trace has responses");
        let disks = reducer.finish(Nanos::ZERO);
        let policy = |name: &str, share: f64, setting: &Setting| {
            let parameters = Parameters::default().with(RELATIVE_DELAY, DELAY * share).with(REQUEST_SIZE, REQUEST);
            build(name, &parameters, setting).expect("these take a relative delay")
        };
        let scrub = |disk: &Idleness, share: f64| {
            policy(self.policy, share, &Setting { past: disk, model, service: Some(SCRUB), amount: Amount::Infinite })
        };
        let parity = |disk: &Idleness| {
            let update = Nanos(READ.0 + WRITE.0);
            let amount = WriteVerification::amount(disk, update, None);
            let setting = Setting { past: disk, model, service: Some(Nanos(update.0 / 2)), amount };
            policy(self.parity.unwrap_or(self.policy), 1.0, &setting)
        };
        let updates = ParityUpdates::new(Service::seeded(READ, 2008), Service::seeded(WRITE, 8002), SEGMENT);
        let activities =
            Activities { capacity: CAPACITY, scrub: Service::exponential(SCRUB), updates, segment: SEGMENT };
        let policies = Policies { scrub: &scrub, parity: &parity, shared: self.parity.is_none() };
        let study = activities.study(&disks, PASSES, &policies, &|_, _| ());
        let (alone, together) = study.protections();
        let gains = Gains::of(&Errors::default(), 48.0, alone, together);
        (study, gains)
    }
}
