//! How long an array keeps its data, for people.

use idlewise::reliability::YEAR;
use idlewise::report::{Chart, Page, Scale, Section, Table, percent};

use super::drives::Drives;
use super::{Arguments, Played, Report, Row};
use crate::reliability::years;
use crate::simulate::seconds;

impl Row {
    /// How it is scrubbed, in words.
    fn name(&self) -> String {
        let goal = self.goal_mean_slowdown_s.map(|goal| format!("within {} on average", seconds(goal)));
        match (goal, self.pass_s) {
            (Some(goal), Some(_)) => goal,
            (Some(goal), None) => goal + ": no time for it",
            (None, Some(pass_s)) => format!("every {}", seconds(pass_s)),
            (None, None) => "never".into(),
        }
    }
}

/// What the array is.
pub fn lead(report: &Report, arguments: &Arguments) -> String {
    let Drives { capacity, failures, latent, rebuild_in_gaps, .. } = &arguments.drives;
    let rebuild = report.rows.first().filter(|_| !rebuild_in_gaps).map(|row| seconds(row.rebuild_s));
    format!(
        "{}: {} disks of {}, of which {} may fail\nIn a year, {} of the disks fail and {} get latent errors. A rebuild takes {}.\n",
        report.array,
        report.disks,
        capacity.decimal(),
        report.may_fail,
        percent(failures.0),
        percent(latent.0),
        rebuild.unwrap_or_else(|| "as long as a pass".into())
    )
}

/// A line for each way to scrub.
pub fn table(report: &Report) -> Table {
    let within = format!("loss in {}", years(report.within_s));
    let columns = ["scrubbed", "a pass takes", "error unseen", "mean time to loss", &within, "of all data"];
    let mut table = Table::new(columns);
    for row in &report.rows {
        table.row([
            row.name(),
            row.pass_s.map_or("-".into(), seconds),
            seconds(row.unseen_s),
            years(row.mttdl_s),
            format!("{:.2e}", row.loss_within),
            percent(row.of_everything),
        ]);
    }
    table
}

/// What came of playing it out.
pub fn played(report: &Report) -> String {
    let rows = report.rows.iter().filter_map(|row| Some((row.name(), row.played_out.as_ref()?)));
    let line = |(name, played): (String, &Played)| match (played.mttdl_s, played.margin_s) {
        (Some(mttdl), Some(margin)) => {
            format!("played out, {name}: {} +- {}, {} losses\n", years(mttdl), years(margin), played.losses)
        }
        _ => format!("played out, {name}: nothing was lost in {} cycles\n", played.cycles),
    };
    rows.map(line).collect()
}

/// The table, and what each length of a pass would buy.
pub fn page(report: &Report, arguments: &Arguments) -> Page {
    let days: Vec<f64> = (0..=60).map(|step| 10f64.powf(f64::from(step) / 20.0)).collect();
    let at = |day: &f64| (*day, arguments.row(None, Some(day * 86_400.0)).mttdl_s / YEAR);
    let dots =
        report.rows.iter().filter_map(|row| Some((row.name(), vec![(row.pass_s? / 86_400.0, row.mttdl_s / YEAR)])));
    let chart = Chart {
        x: ("days of a pass".into(), Scale::Log),
        y: ("years to the first loss".into(), Scale::Log),
        lines: vec![(report.array.clone(), days.iter().map(at).collect())],
        dots: dots.collect(),
        marks: Vec::new(),
        small: false,
    };
    let section = Section {
        heading: "Mean time to data loss".into(),
        table: table(report),
        drawings: vec![(String::new(), chart.html())],
        ..Section::default()
    };
    Page {
        title: format!("How long {} keeps its data", report.array),
        lead: lead(report, arguments).trim().replace('\n', " "),
        sections: vec![section],
    }
}
