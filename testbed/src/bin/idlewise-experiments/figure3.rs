//! Figure 3 of DSN 2012, measured anew: what the idle I/O priority class does under each of today's schedulers.

use idlewise::report::{Section, Table};

use crate::bars::Bars;
use crate::cells::{Cells, DELAY, figure_3};
use idlewise_testbed::lab::outcome::{Outcome, against, megabytes};

/// Standard errors that a difference must exceed to be called one: with some schedulers compared, two are too few.
const SURE: f64 = 3.0;

/// The section.
pub fn section(cells: &Cells, schedulers: &[String]) -> Section {
    let delayed = format!("default, {DELAY} ms");
    let rows = ["no scrubber", "default", "idle class", &delayed];
    let mut table =
        Table::new(["", "scrubber", "foreground, MB/s", "against alone", "scrub, MB/s", "mean response", "runs, ms"]);
    let (mut notes, mut groups) = (Vec::new(), Vec::new());
    for scheduler in schedulers {
        let measured = figure_3(scheduler).map(|cell| cells.get(&cell));
        let [alone, default, idle, _] = measured;
        for (name, outcome) in rows.iter().zip(measured) {
            table.row([
                scheduler.clone(),
                name.to_string(),
                megabytes(outcome.foreground()),
                against(outcome.foreground(), alone.foreground()),
                format!("{:.1}", outcome.scrub().0 as f64 / 1e6),
                outcome.response().milliseconds(),
                outcome.by_run(),
            ]);
        }
        notes.push((scheduler.clone(), finding(alone, default, idle)));
        let bar = |outcome: &Outcome| (outcome.response().value * 1e3, outcome.response().error * 1e3);
        groups.push((scheduler.clone(), [alone, default, idle].map(|outcome| Some(bar(outcome))).into()));
    }
    Section {
        heading: "Figure 3, measured anew: does the idle I/O priority class have an effect?".into(),
        text: format!(
            "The sequential load, while a scrubber reads in the sequential order: back to back with default priority, \
             back to back in the idle class (ionice -c 3), and with a delay of {DELAY} ms. It counts as an effect if \
             the same requests took longer or shorter by more than {SURE} standard errors. Not timed here: SCSI \
             VERIFY and NVMe Verify are passthrough commands. The kernel executes them by blk_execute_rq, which \
             bypasses the I/O scheduler, so that no scheduler orders them and no I/O priority can act on them, as \
             the paper found with its user-level scrubber; what is measured here holds for reads only."
        ),
        notes,
        table,
        drawings: vec![(
            String::new(),
            Bars { axis: "mean response, ms", series: vec!["no scrubber", "default", "idle class"], groups }.svg(),
        )],
        ..Section::default()
    }
}

/// What the class did under one scheduler, from the measured ratios.
fn finding(alone: &Outcome, default: &Outcome, idle: &Outcome) -> String {
    let (saved, added) = (default.longer_than(idle), default.longer_than(alone));
    let verdict = if saved.value.abs() <= SURE * saved.error {
        "no effect on response times beyond the noise"
    } else if saved.value > 0.0 {
        "an effect: the foreground is faster than beside default priority"
    } else {
        "the reverse effect: the foreground is slower than beside default priority"
    };
    let ratio = idle.response().value / default.response().value;
    format!(
        "{verdict}. Mean response {:.2} times that at default priority ({:.2} ms against {:.2} ms; default less \
         idle class, for the same requests, {}, of {:.2} ms that the scrubber adds at default priority). Foreground throughput {}, scrub {} \
         against default priority.",
        ratio,
        idle.response().value * 1e3,
        default.response().value * 1e3,
        saved.milliseconds(),
        added.value * 1e3,
        against(idle.foreground(), default.foreground()),
        against(idle.scrub(), default.scrub()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use idlewise_testbed::lab::foreground::Played;
    use idlewise_testbed::lab::outcome::Run;

    fn outcome(responses: [f64; 4]) -> Outcome {
        let played = Played { responses: responses.into(), elapsed: 1.0, bytes: 1, read: 1 };
        Outcome { runs: vec![Run { played, scrubbed: 1 }], said: None }
    }

    #[test]
    fn an_effect_is_one_beyond_the_noise() {
        let alone = outcome([0.004, 0.005, 0.004, 0.005]);
        let slow = outcome([0.010, 0.011, 0.010, 0.012]);
        let noisy = outcome([0.011, 0.010, 0.012, 0.010]);
        assert!(finding(&alone, &slow, &alone).starts_with("an effect"));
        assert!(finding(&alone, &alone, &slow).starts_with("the reverse effect"));
        assert!(finding(&alone, &slow, &noisy).starts_with("no effect"));
    }
}
