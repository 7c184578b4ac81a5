//! The demo's page.

use idlewise::report::{Curve, Page, Section, Table, cdf_chart};

use crate::live::Measured;
use crate::{GOAL, table};

/// The page's HTML.
pub fn html(result: &Measured) -> String {
    let curve = |label: &str, samples: &[f64]| Curve { label: label.into(), samples: samples.to_vec() };
    let mut curves = vec![curve("no scrubber", &result.alone.1)];
    curves.extend(result.rows.iter().map(|row| curve(row.name, &row.responses)));
    let mut percentiles = Table::new(["", "median", "90 %", "99 %", "longest"]);
    for curve in &curves {
        let mut sorted = curve.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let value = sorted.get(((sorted.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(0.0);
            idlewise::Nanos((value * 1e9) as u64).to_string()
        };
        percentiles.row([curve.label.clone(), at(0.5), at(0.9), at(0.99), at(1.0)]);
    }
    let slowdowns = Section {
        heading: "What was promised, predicted and measured".into(),
        text: format!(
            "Target: mean slowdown {}, longest {}. idlewise chose requests of {} once the disk has been idle for {}. \
             Predictions are simulated on the foreground's own idle times; measured is what the scrubber saw of each \
             foreground request. Mean response times: {} alone, {} with idlewise, {} with the idle class.",
            GOAL.mean_slowdown,
            GOAL.max_slowdown,
            result.plan.0,
            result.plan.1,
            result.alone.0,
            result.rows[0].response,
            result.rows[1].response
        ),
        table: table(&result.rows),
        ..Section::default()
    };
    let responses = Section {
        heading: "Response times of the foreground".into(),
        text: "The closer a line is to the one without a scrubber, the less the foreground notices.".into(),
        table: percentiles,
        drawings: vec![(String::new(), cdf_chart("response time", &curves))],
        ..Section::default()
    };
    Page {
        title: "idlewise: a scrub that fits into the gaps".into(),
        lead: "PostgreSQL under pgbench, played on an emulated 15,000 rpm hard disk, alone and beside two scrubbers."
            .into(),
        sections: vec![slowdowns, responses],
    }
    .html()
}
