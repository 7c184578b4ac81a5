//! `idlewise reliability --report`: the tables, and the distributions behind their means.

use idlewise::Cdh;
use idlewise::report::{Chart, Page, Scale, Section, Table};

use super::activities::Simulated;
use super::{Arguments, Reliability, text};

/// The page.
pub fn page(found: &Reliability, arguments: &Arguments) -> Page {
    let mut sections = Vec::new();
    if let Some(simulated) = &found.simulated {
        sections.push(activities(simulated));
    }
    sections.push(section("Mean time to data loss (DSN 2008, tables 5, 9 and 10)", text::losses(found), Vec::new()));
    let lines = found.mlet_staggered.iter().map(|one| (one.regions as f64, one.mlet_s));
    let unseen = Chart {
        x: ("regions of a staggered scan".into(), Scale::Log),
        y: ("mean latent error time, of sequential".into(), Scale::Share),
        lines: vec![("staggered".into(), lines.map(|(regions, mlet_s)| (regions, mlet_s / found.mlet_s)).collect())],
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    };
    let heading = format!(
        "Mean latent error time, in bursts of {} errors {} apart",
        arguments.model.burst_errors, arguments.model.burst_distance
    );
    sections.push(section(&heading, text::unseen(found), vec![unseen]));
    let (title, lead) = match &found.simulated {
        Some(simulated) => {
            (format!("What scrubs and parity buy on {}", simulated.source.trace), text::about(simulated))
        }
        None => ("What scrubs and parity buy".into(), text::lead(found)),
    };
    Page { title, lead: lead.trim().replace('\n', "; "), sections }
}

fn section(heading: &str, table: Table, charts: Vec<Chart>) -> Section {
    let drawings = charts.iter().map(|chart| (String::new(), chart.html())).collect();
    Section { heading: heading.into(), table, drawings, ..Section::default() }
}

/// Figures 2, 3 and 5 of DSN 2008.
fn activities(simulated: &Simulated) -> Section {
    let points =
        |times: &Cdh| times.pairs().into_iter().map(|(time, share)| (time.as_secs_f64(), share)).collect::<Vec<_>>();
    let chart = |x: &str, lines: Vec<(String, Vec<(f64, f64)>)>| Chart {
        x: (x.into(), Scale::LogSeconds),
        y: ("share".into(), Scale::Share),
        lines,
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    };
    let rows = [("alone", &simulated.scrub, &simulated.parity), ("both at once", &simulated.both, &simulated.both)];
    let scans = rows.iter().filter_map(|(name, row, _)| Some((name.to_string(), points(&row.scan.as_ref()?.times))));
    let updates =
        rows.iter().filter_map(|(name, _, row)| Some((name.to_string(), points(&row.update.as_ref()?.times))));
    let charts = [("length of a pass", scans.collect()), ("time from a WRITE to its parity", updates.collect())];
    let charts = charts
        .into_iter()
        .filter(|(_, lines): &(_, Vec<(_, Vec<_>)>)| lines.iter().any(|(_, points)| !points.is_empty()));
    let heading = "Passes and updates in the idle times (DSN 2008, figures 2, 3, 5, 6 and 8)";
    section(heading, text::activities(simulated), charts.map(|(x, lines)| chart(x, lines)).collect())
}
