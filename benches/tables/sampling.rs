//! How far estimates from a few intervals are off, on traces with response times.

use std::fmt::Write;
use std::path::Path;

use idlewise::Nanos;
use idlewise::sample::{Amount, Extractor, FeatureSet, Outcome, Rule, Settings, TraceInterval, Way, sample};
use idlewise::trace::{ReadOptions, open};

/// Those of the tests' folder that have response times; and once more the one whose intervals of a second differ most.
const TRACES: [(&str, &str, Nanos); 15] = [
    ("hplajw, two disks", "hplajw.1week.srt", INTERVAL),
    ("wdev_1", "msr/wdev_1.csv", INTERVAL),
    ("wdev_3", "msr/wdev_3.csv", INTERVAL),
    ("hm_0, 148 s", "msr/hm_0.excerpt.csv", INTERVAL),
    ("Hadoop", "blktrace-hadoop/e9.cpu0-3.tar.xz", INTERVAL),
    ("telephone: e-mail", "nexus5/log111_email.txt.xz", INTERVAL),
    ("telephone: music", "nexus5/log131_music.txt.xz", INTERVAL),
    ("telephone: called", "nexus5/log146_callIn.txt.xz", INTERVAL),
    ("telephone: calling", "nexus5/log147_callout.txt.xz", INTERVAL),
    ("telephone: video", "nexus5/log152_YouTube.txt.xz", INTERVAL),
    ("telephone: download", "nexus5/log156_download.txt.xz", INTERVAL),
    ("telephone: booting", "nexus5/log176_Booting.txt.xz", INTERVAL),
    ("telephone: Twitter", "nexus5/log186_twitter.txt.xz", INTERVAL),
    ("telephone: Facebook", "nexus5/log191_facebook.txt.xz", INTERVAL),
    ("hm_0, intervals of 1 s", "msr/hm_0.excerpt.csv", Nanos::from_secs(1)),
];
const INTERVAL: Nanos = Nanos::from_secs(10);
const SEEDS: u64 = 10;
/// Seeds by which it is counted how often the truth lies within what is stated.
const MANY_SEEDS: u64 = 200;
const COUNTS: [usize; 3] = [20, 50, 100];

/// The table.
pub fn table(text: &mut String, folder: &Path) {
    text.push_str(
        "\n## Estimates from a few intervals (SIGMETRICS 2015)\n\nThe mean response time of each trace as `idlewise sample` estimates it from 50 \
         intervals of 10 s at most, against the true one: mean and worst error over seeds 1 to 10. Clusters are the paper's way, with \
         the rule bic. Systematic sampling takes 30 intervals or more (single-min30). Drawn is by lot; beside its error is how far off it says \
         that it may be, on average, and in how many of 200 seeds the truth lies within that, with 20, 50 and 100 intervals. The \
         paper has errors of 3.6 % on average and 12.1 % at worst, on other traces.\n\n| Trace | Intervals with requests | Clusters | Systematic | Drawn | \
         Stated | Within: 20 | 50 | 100 |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut all: [Vec<f64>; 2] = Default::default();
    for (name, file, interval) in TRACES {
        let trace = open(&[folder.join(file)], &ReadOptions::default()).expect("the trace is readable");
        let mut extractor = Extractor::new(interval);
        extractor.requests(&trace.columns);
        let intervals = extractor.finish();
        let clusters = |seed| {
            sampled(&intervals, interval, Way::Clusters { features: FeatureSet::default(), rule: Rule::Bic }, seed)
        };
        let drawn = |count, seed| sampled(&intervals, interval, Way::Drawn(Amount::Intervals(count)), seed);
        let clusters: Vec<_> = (1..=SEEDS).map(clusters).collect();
        let fifty: Vec<_> = (1..=SEEDS).map(|seed| drawn(50, seed)).collect();
        let stated = fifty.iter().map(|one| one.half_width_s.unwrap() / one.estimate_mean_response_s.unwrap());
        let stated = stated.sum::<f64>() / SEEDS as f64;
        let within = COUNTS.map(|count| {
            let is_within = |seed: &u64| {
                let one = drawn(count, *seed);
                let off = one.estimate_mean_response_s.unwrap() - one.true_mean_response_s.unwrap();
                off.abs() <= one.half_width_s.unwrap() + 1e-12
            };
            format!("{:.0} %", (1..=MANY_SEEDS).filter(is_within).count() as f64 * 100.0 / MANY_SEEDS as f64)
        });
        let systematic = fifty[0].systematic.iter().find(|one| one.name == "single-min30").and_then(|one| one.error);
        let errors = [&clusters, &fifty].map(|seeds| seeds.iter().map(|one| one.error.unwrap()).collect::<Vec<_>>());
        let cells = [0, 1].map(|way| {
            all[way].extend(errors[way].iter().filter(|_| interval == INTERVAL));
            both(&errors[way])
        });
        writeln!(
            text,
            "| {name} | {} | {} | {:.1} % | {} | ± {:.1} % | {} |",
            intervals.len(),
            cells[0],
            systematic.unwrap_or(f64::NAN) * 100.0,
            cells[1],
            stated * 100.0,
            within.join(" | ")
        )
        .expect("a string takes it");
    }
    let [clusters, drawn] = all.map(|errors| both(&errors));
    writeln!(text, "| all but the last | | {clusters} | | {drawn} | | | | |").expect("a string takes it");
    text.push_str(
        "\nWhat is drawn was devised on these traces. With the traces of one source left out when its constants were chosen, its mean error on \
         those was up to 5 %, so expect 2 to 4 % on others. A stall that no request of its interval shows, such as a disk that spins up, \
         cannot be foreseen: the stated error does not cover it.\n",
    );
}

fn sampled(intervals: &[TraceInterval], interval: Nanos, way: Way, seed: u64) -> Outcome {
    sample(intervals, &Settings { interval, way, seed }, &|_| ()).expect("the trace has requests")
}

/// Mean and worst.
fn both(errors: &[f64]) -> String {
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    format!("{:.1} %, {:.1} %", mean * 100.0, errors.iter().copied().fold(0.0, f64::max) * 100.0)
}
