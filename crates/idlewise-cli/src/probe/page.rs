//! The page of `probe --report`: the paper's figures 1, 4 and 5, of this device.

use idlewise::Nanos;
use idlewise::report::{Chart, Page, Scale, Section};
use idlewise_linux::probe::{Interfered, Repeat, Scan, Scans, Service};

use super::{Findings, cache_table, interference_table, scans_table, service_table};

/// The page's HTML.
pub fn html(found: &Findings) -> String {
    let read = found.model.read.map_or(String::new(), |read| {
        format!(" Requests at random places take {} and their size at {}.", read.position, read.rate)
    });
    let service = Section {
        heading: "How long a verify takes".into(),
        text: format!(
            "In sequence: the median of requests that follow one another, as in a scan. Head moved: the mean of requests at \
             random places.{read} The disk model's verify times are those in sequence; writes are taken to be as slow as reads."
        ),
        table: service_table(&found.service),
        drawings: vec![(String::new(), service_chart(&found.service))],
        ..Section::default()
    };
    let [by_size, by_regions] = scan_charts(&found.scans);
    let scans = Section {
        heading: "How fast a scan goes".into(),
        text: "Requests one after another: from first byte to last, and a piece of each of 128 regions in turn.".into(),
        table: scans_table("request size", &found.scans.by_size),
        drawings: vec![(String::new(), by_size)],
        ..Section::default()
    };
    let regions = Section {
        heading: "How many regions".into(),
        text: "Requests of 64 KiB, a piece of each region in turn; one region is the sequential order.".into(),
        table: scans_table("regions", &found.scans.by_regions),
        drawings: vec![(String::new(), by_regions)],
        ..Section::default()
    };
    let cache = Section {
        heading: "Whether a verify reads the medium".into(),
        text: found.verdict(),
        table: cache_table(&found.cache),
        drawings: vec![(String::new(), cache_chart(found))],
        ..Section::default()
    };
    let interference = Section {
        heading: "How much of a verify a read waits for".into(),
        text: super::INTERFERENCE.into(),
        table: interference_table(&found.interfered),
        drawings: vec![(String::new(), interference_chart(&found.interfered))],
        ..Section::default()
    };
    Page {
        title: format!("Probe of {}", found.model.name),
        lead: format!("Verified by {}, in the disk's idle times.", found.verifier),
        sections: vec![service, scans, regions, cache, interference],
    }
    .html()
}

fn kib(bytes: idlewise::Bytes) -> f64 {
    bytes.0 as f64 / 1024.0
}

fn mega(scan: &Scan) -> f64 {
    scan.rate.0 as f64 / 1e6
}

fn service_chart(found: &[Service]) -> String {
    let line = |name: &str, time: fn(&Service) -> Nanos| {
        (name.into(), found.iter().map(|one| (kib(one.size), time(one).as_secs_f64())).collect())
    };
    let lines = vec![line("in sequence", |one| one.sequential), line("head moved", |one| one.moved)];
    log_chart("request size (KiB)", ("time of a verify", Scale::LogSeconds), lines)
}

/// Against the size, and against the number of regions.
fn scan_charts(scans: &Scans) -> [String; 2] {
    let by_size = |sequential: bool| {
        let points = scans.by_size.iter().filter(|scan| (scan.regions == 1) == sequential);
        points.map(|scan| (kib(scan.size), mega(scan))).collect()
    };
    let staggered = scans.by_regions.iter().map(|scan| (scan.regions as f64, mega(scan))).collect();
    let alone = scans.by_regions.first().map_or(0.0, mega);
    let flat = scans.by_regions.iter().map(|scan| (scan.regions as f64, alone)).collect();
    let rate = ("rate (MB/s)", Scale::Linear);
    let sizes = vec![("sequential".into(), by_size(true)), ("staggered, 128 regions".into(), by_size(false))];
    let regions = vec![("staggered".into(), staggered), ("sequential".into(), flat)];
    [log_chart("request size (KiB)", rate, sizes), log_chart("regions", rate, regions)]
}

fn cache_chart(found: &Findings) -> String {
    let line = |name: &str, repeats: &[Repeat], time: fn(&Repeat) -> Nanos| {
        (name.into(), repeats.iter().map(|one| (kib(one.size), time(one).as_secs_f64())).collect())
    };
    let cache = &found.cache;
    let mut lines =
        vec![line("first", &cache.as_it_is, |one| one.first), line("repeated", &cache.as_it_is, |one| one.again)];
    if !cache.off.is_empty() {
        lines.push(line("first, cache off", &cache.off, |one| one.first));
        lines.push(line("repeated, cache off", &cache.off, |one| one.again));
    }
    log_chart("request size (KiB)", ("time of a verify", Scale::LogSeconds), lines)
}

fn interference_chart(found: &[Interfered]) -> String {
    let line = |name: &str, part: fn(&Interfered) -> f64| {
        (name.into(), found.iter().map(|one| (kib(one.size), part(one))).collect())
    };
    let lines = vec![line("measured", |one| one.part), line("in the disk model", |one| one.interference().part())];
    log_chart("request size (KiB)", ("interference", Scale::Linear), lines)
}

type Lines = Vec<(String, Vec<(f64, f64)>)>;

fn log_chart(x: &str, (name, scale): (&str, Scale), lines: Lines) -> String {
    Chart {
        x: (x.into(), Scale::Log),
        y: (name.into(), scale),
        lines,
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    }
    .html()
}
