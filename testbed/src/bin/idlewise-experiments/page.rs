//! The results as a page and as Markdown: the same sections, the latter without drawings.

use idlewise::report::{Page, Section};

use idlewise_testbed::lab::load::{CHUNK, Load, REQUEST, THINK, requests};
use idlewise_testbed::lab::outcome::Mean;
use idlewise_testbed::lab::scrubber::REGIONS;
use idlewise_testbed::lab::{GOAL, Runs, Settings, WARM_UP, kernel};

/// Everything as a page.
pub fn page(sections: Vec<Section>) -> Page {
    Page {
        title: "The paper's experiments on an emulated disk".into(),
        lead:
            "Amvrosiadis, Oprea and Schroeder, Practical Scrubbing (DSN 2012), figures 3, 6 and 7, repeated by `make \
               experiments`. The disk is emulated: a real block device of the kernel, behind which the times are those \
               computed for a 15,000 rpm drive."
                .into(),
        sections,
    }
}

/// How it was measured.
pub fn settings(settings: Settings, size: idlewise::Bytes, schedulers: &[String]) -> anyhow::Result<Section> {
    let Settings { synthetic: Runs { count, seconds }, replays, seed } = settings;
    let kernel = kernel()?;
    let seeds = (seed..seed + count).map(|seed| seed.to_string()).collect::<Vec<_>>().join(", ");
    let thought = |load: Load| {
        let turns = (seed..seed + count).flat_map(|seed| load.turns(size, seconds, seed));
        Mean::of(turns.map(|(think, _)| think.as_secs_f64())).milliseconds()
    };
    let [sequential, random] = [Load::Sequential, Load::Random].map(thought);
    let reached = idlewise::Bytes(requests(seconds) as u64 * REQUEST.0);
    let notes = [
        (
            "disk",
            format!(
                "emulated, {size}, first come first served, announced to the kernel as rotational; \
                 without a cache of its own, so that a request elsewhere costs the sequential load a seek \
                 that a drive with read-ahead may hide"
            ),
        ),
        ("kernel", format!("Linux {kernel}; I/O schedulers of a loop device: {}", schedulers.join(", "))),
        (
            "foreground",
            format!(
                "one direct read of {REQUEST} at a time, each after an exponential think time of {THINK:?} on average"
            ),
        ),
        (
            "sequential load",
            format!("{CHUNK} from a random sector on, then from another; a run reads the first {reached} of it"),
        ),
        ("random load", "a random sector for every request".into()),
        (
            "runs",
            format!(
                "{count} of about {seconds} s ({} requests) each, seeds {seeds}; replays: {} of {} s",
                requests(seconds),
                replays.count,
                replays.seconds
            ),
        ),
        ("think times drawn", format!("{sequential} in the sequential load's runs, {random} in the random load's")),
        ("scrubbers", format!("direct reads of {REQUEST} by pread on one thread, begun at a random place in each run")),
        ("delay", "from the end of a request to the next one's begin; default priority; scheduler none".into()),
        ("idle class", "back to back, ionice -c 3, under the scheduler named".into()),
        ("staggered", format!("{REGIONS} regions, {REQUEST} a visit")),
        ("idlewise", format!("idlewise scrub {}, after {WARM_UP} s of the load; scheduler none", GOAL.join(" "))),
    ];
    Ok(Section {
        heading: "Settings".into(),
        text: "Runs with the same seed have the same places, the same think times and the same number of requests, \
               whatever scrubs meanwhile, so any difference is due to the scrubber. ± is the standard error: \
               for a mean response time, between the runs; for a difference, between the differences of the \
               same requests. The least and the greatest mean of a run are in the next column."
            .into(),
        notes: notes.map(|(name, note)| (name.to_string(), note)).into(),
        ..Section::default()
    })
}
