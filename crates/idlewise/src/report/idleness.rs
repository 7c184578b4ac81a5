//! The page about idle times: the figures of DSN 2012, section V-A, for some traces side by side, each with its reading.

use super::{Chart, Page, Scale, Section, Table, number, percent};
use crate::Nanos;
use crate::idle::{Character, HazardTest, Profile, Statistics};

/// The page about these traces; `sources` says of each, or of the files that they are from, how it was read.
pub fn idle_page(traces: &[(String, Profile)], sources: Vec<(String, String)>) -> Page {
    let names: Vec<&str> = traces.iter().map(|(name, _)| name.as_str()).collect();
    let about = About { all: traces, traces: busiest(traces) };
    let sections = vec![
        about.summary(),
        about.requests_per_hour(),
        about.periods(),
        about.autocorrelation(),
        about.share_of_longest(),
        about.expected_remaining(),
        about.first_percentile(),
        about.usable(),
        about.hazard(),
        about.distribution(),
        about.origin(sources),
    ];
    Page {
        title: format!("Idle times of {}", if names.len() > 3 { format!("{} traces", names.len()) } else { names.join(", ") }),
        lead: "When the disks of these traces had nothing to do, for how long, and what of that background work could use. \
               Figures are numbered as in Practical Scrubbing (DSN 2012)."
            .to_string()
            + &about.which(),
        sections,
    }
}

/// So many traces are drawn and spoken of one by one; of more, the busiest.
const SHOWN: usize = 8;

struct About<'a> {
    /// All of them.
    all: &'a [(String, Profile)],
    /// Those that are drawn.
    traces: Vec<&'a (String, Profile)>,
}

/// Those with the most requests, in the order in which they came.
fn busiest(traces: &[(String, Profile)]) -> Vec<&(String, Profile)> {
    let mut by_requests: Vec<usize> = (0..traces.len()).collect();
    by_requests.sort_by_key(|&at| std::cmp::Reverse(traces[at].1.statistics.requests));
    by_requests.truncate(SHOWN);
    by_requests.sort_unstable();
    by_requests.into_iter().map(|at| &traces[at]).collect()
}

type Points = Vec<(f64, f64)>;

impl About<'_> {
    /// Numbers of each trace, a column a trace.
    fn summary(&self) -> Section {
        let mut table = Table { head: vec![String::new()], rows: Vec::new() };
        table.head.extend(self.all.iter().map(|(name, _)| name.clone()));
        let mut row = |name: &str, cell: &dyn Fn(&Profile) -> Option<String>| {
            let cells = self.all.iter().map(|(_, profile)| cell(profile).unwrap_or_else(|| "too few".into()));
            table.rows.push(std::iter::once(name.to_string()).chain(cells).collect());
        };
        row("requests", &|p| Some(p.statistics.requests.to_string()));
        row("span", &|p| Some(seconds(p.statistics.span_s)));
        row("utilisation", &|p| p.statistics.utilisation.map(percent));
        row("idle intervals", &|p| Some(p.statistics.idle_intervals.to_string()));
        row("mean length", &|p| p.statistics.idle_mean_s.map(seconds));
        row("variance (s²)", &|p| varies(p).and(p.statistics.idle_variance_s2).map(number));
        row("coefficient of variation", &|p| varies(p).and(p.statistics.idle_cov).map(number));
        row("idle time in the 15 % longest", &|p| p.statistics.idle_share_longest_15pct.map(percent));
        row("intervals over 100 ms", &|p| p.statistics.longer_than_100ms.map(percent));
        row("usable after waiting 10 ms", &|p| p.statistics.usable_after_10ms.map(percent));
        row("usable after waiting 100 ms", &|p| p.statistics.usable_after_100ms.map(percent));
        row("usable after waiting 1 s", &|p| p.statistics.usable_after_1s.map(percent));
        row("strongest period", &|p| match p.strongest_period {
            Some(period) => Some(format!("{} h", period.hours)),
            None => (!p.periods.is_empty()).then(|| "none".into()),
        });
        row("autocorrelation, lag 1", &|p| p.autocorrelation.as_ref().map(|acf| format!("{:.3}", acf.lags[0])));
        row("AR order", &|p| p.autoregression.as_ref().map(|ar| ar.coefficients.len().to_string()));
        row("variance that AR explains", &|p| p.autoregression.as_ref().map(|ar| percent(ar.explained())));
        row("Hurst, by fluctuation", &|p| p.hurst_fluctuation.map(|h| format!("{h:.2}")));
        row("Hurst, by local Whittle", &|p| p.hurst_local_whittle.map(|h| format!("{h:.2}")));
        row("burstiness", &|p| p.burstiness.map(|b| format!("{b:.2}")));
        row("hazard decreases (z)", &|p| p.hazard_test.map(|test| format!("{:.1}", test.z)));
        row("use", &|p| p.verdict.as_ref().map(|verdict| character(verdict.character).into()));
        let many = self.all.len() > SHOWN;
        let table = if many { table.turned() } else { table };
        let notes = self.each(|profile| {
            let verdict = profile.verdict.as_ref()?;
            Some(format!("use the {}: {}", character(verdict.character), verdict.reason))
        });
        Section {
            heading: "In numbers".into(),
            text: "Table II of the paper and more. Which part of the idle times background work should use, body or tail, after \
                   DSN 2008, section 4:"
                .into(),
            notes: if many { Vec::new() } else { notes },
            table,
            drawings: Vec::new(), ..Section::default() }
    }

    fn requests_per_hour(&self) -> Section {
        /// Of fewer hours there is nothing to see.
        const FEWEST: usize = 6;
        let long_enough = self.traces.iter().copied().filter(|(_, profile)| profile.requests_per_hour.len() >= FEWEST);
        let chart = |(name, profile): &(String, Profile)| {
            // A level for each hour rather than a slope from hour to hour.
            let counts = (0..).zip(&profile.requests_per_hour);
            let steps = counts
                .flat_map(|(hour, &count)| [(f64::from(hour), count as f64), (f64::from(hour) + 1.0, count as f64)]);
            small(name, "hour", ("requests per hour", Scale::Linear), steps.collect(), Vec::new())
        };
        let notes = self.each(|profile| {
            let counts = &profile.requests_per_hour;
            let (most, total) = (counts.iter().max()?, counts.iter().sum::<u64>());
            let share = *most as f64 / total.max(1) as f64;
            Some(match counts.len() {
                hours if hours < FEWEST => format!("{total} requests in less than {hours} h: not drawn"),
                hours => format!("{hours} hours, {most} requests in the busiest ({})", percent(share)),
            })
        });
        Section {
            heading: "Requests per hour (DSN 2012, figure 8)".into(),
            text: "Repeating peaks are backups, working days, scheduled jobs.".into(),
            notes,
            drawings: long_enough.map(chart).collect(),
            table: Table::default(),
            ..Section::default()
        }
    }

    fn periods(&self) -> Section {
        let points = |profile: &Profile| -> Points {
            profile.periods.iter().map(|period| (period.hours as f64, -period.ln_p / std::f64::consts::LN_10)).collect()
        };
        let notes = self.each(|profile| {
            Some(match (profile.strongest_period, profile.periods.is_empty()) {
                (Some(period), _) => format!("{} h (F = {:.1}, {})", period.hours, period.f, probability(period.p)),
                (None, false) => "none that chance does not explain".into(),
                (None, true) => "too short a trace to tell".into(),
            })
        });
        self.section(
            "Periods (DSN 2012, figure 9)",
            "How well requests per hour repeat with each candidate period, by analysis of variance: the higher, the less likely \
             by chance. A period counts if its p is below 0.01 over the number of candidates.",
            notes,
            ("period (hours)", Scale::Linear),
            ("-log10 p", Scale::Linear),
            points,
        )
    }

    fn autocorrelation(&self) -> Section {
        let charts = self.traces.iter().copied().filter_map(|(name, profile)| {
            let acf = profile.autocorrelation.as_ref()?;
            let points = (1..).zip(&acf.lags).map(|(lag, &r)| (f64::from(lag), r)).collect();
            let marks = vec![acf.bound_95, -acf.bound_95];
            Some(small(name, "lag", ("autocorrelation", Scale::Linear), points, marks))
        });
        let notes = self.each(|profile| {
            let acf = profile.autocorrelation.as_ref()?;
            let word = if acf.strong { "strong" } else { "not strong" };
            let (lag, r) = acf.strongest();
            let at = format!("{:.2} at lag 1, {r:.2} at lag {lag}", acf.lags[0]);
            Some(format!("{word} ({at}; Ljung-Box {})", probability(acf.ljung_box_p)))
        });
        Section {
            heading: "Autocorrelation of idle lengths".into(),
            text: "Whether the lengths of the last intervals tell anything about the next one. Without any, 95 % of the lags lie \
                 between the dashed lines. Strong means: chance would not have the first twenty lags (Ljung-Box p below 0.01), and \
                 one of them is at least 0.1."
                .into(),
            notes,
            drawings: charts.collect(),
            table: Table::default(), ..Section::default() }
    }

    fn share_of_longest(&self) -> Section {
        let points = |profile: &Profile| -> Points {
            let shares = (0..=200).map(|k| f64::from(k) / 400.0);
            shares.filter_map(|share| Some((share, profile.lengths.share_of_longest(share)?))).collect()
        };
        let notes = self.each(|profile| profile.statistics.idle_share_longest_15pct.map(percent));
        self.section(
            "Idle time in the longest intervals (DSN 2012, figure 10)",
            "Of all idle time, the part in the longest intervals. The higher the line rises at the left, the fewer intervals \
                 background work needs. In the 15 % longest the paper found over 80 % in most traces, and here it is:",
            notes,
            ("longest intervals", Scale::Share),
            ("share of idle time", Scale::Share),
            points,
        )
    }

    fn expected_remaining(&self) -> Section {
        let points = |profile: &Profile| over_ages(profile, |age| profile.lengths.expected_remaining(age));
        let notes = self.each(|profile| {
            let at = |age: Nanos| profile.lengths.expected_remaining(age).map(seconds);
            Some(format!("{} at first, {} after 100 ms", at(Nanos::ZERO)?, at(Nanos::from_millis(100))?))
        });
        self.section(
            "Expected remaining idle time (DSN 2012, figure 11)",
            "How long the disk stays idle on average, once it has been idle for the time below. Lines that rise mean that \
                 waiting finds the long intervals, and that work once begun need not stop.",
            notes,
            ("idle for", Scale::LogSeconds),
            ("expected remaining", Scale::LogSeconds),
            points,
        )
    }

    fn first_percentile(&self) -> Section {
        let points = |profile: &Profile| over_ages(profile, |age| profile.lengths.remaining_quantile(age, 0.01));
        let notes = self.each(|profile| {
            let at = |age: Nanos| profile.lengths.remaining_quantile(age, 0.01).map(seconds);
            Some(format!("{} at first, {} after 100 ms", at(Nanos::ZERO)?, at(Nanos::from_millis(100))?))
        });
        self.section(
            "First percentile of remaining idle time (DSN 2012, figure 12)",
            "In 99 of 100 intervals that have lasted so long, at least this much remains.",
            notes,
            ("idle for", Scale::LogSeconds),
            ("remaining, 1st percentile", Scale::LogSeconds),
            points,
        )
    }

    fn usable(&self) -> Section {
        let points = |profile: &Profile| -> Points {
            let ages = (-50..=30).map(|tenth| 10f64.powf(f64::from(tenth) / 10.0));
            let usable = |age: f64| profile.lengths.usable_after(Nanos((age * 1e9) as u64));
            ages.filter_map(|age| Some((age, usable(age)?))).collect()
        };
        let notes = self.each(|profile| profile.statistics.usable_after_100ms.map(percent));
        self.section(
            "Idle time left after waiting (DSN 2012, figure 13)",
            "The price of waiting: of all idle time, the part that is left if background work begins only after the time \
                 below. After 100 ms the paper found 60 to 90 %, and here it is:",
            notes,
            ("wait", Scale::LogSeconds),
            ("share of idle time", Scale::Share),
            points,
        )
    }

    fn hazard(&self) -> Section {
        let points = |profile: &Profile| -> Points {
            profile.hazard.iter().map(|bin| ((bin.from_s.max(bin.to_s / 4.0) * bin.to_s).sqrt(), bin.per_s)).collect()
        };
        let word = |test: HazardTest| match (test.decreasing, test.p > 0.99) {
            (true, _) => "decreases",
            (false, true) => "increases",
            (false, false) => "is as good as constant",
        };
        let notes = self.each(|profile| {
            let later =
                profile.hazard_test_after_100ms.map(|test| format!(", after 100 ms {} (z {:.1})", word(test), test.z));
            profile.hazard_test.map(|test| format!("{} (z {:.1}){}", word(test), test.z, later.unwrap_or_default()))
        });
        self.section(
            "Hazard rate",
            "How likely the idle interval is to end in the next second, by how long it has lasted. Exponential idle times \
                 have a level line; a line that falls is why waiting works. Tested by the cumulative total time on test: a z \
                 below -2.3 stands for a falling line.",
            notes,
            ("idle for", Scale::LogSeconds),
            ("ends per second", Scale::Log),
            points,
        )
    }

    fn origin(&self, sources: Vec<(String, String)>) -> Section {
        let disks = self
            .traces
            .iter()
            .copied()
            .map(|(_, profile)| profile.sequence_volume.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        Section {
            heading: "Where the numbers come from".into(),
            text: format!(
                "Requests without a recorded response time are served first come first served by the model. The volumes of a trace \
                 are one sample, but the order of intervals has a meaning only on one disk: autocorrelation, AR, Hurst and \
                 burstiness are those of the disk with the most intervals ({disks})."
            ),
            notes: sources,
            ..Section::default()
        }
    }

    fn distribution(&self) -> Section {
        self.section(
            "Cumulative data histogram",
            "The share of idle intervals that are no longer than the length below: what schedulers keep of the past, in at most \
             1,000 pairs (SIGMETRICS 2009, section 2.1).",
            Vec::new(),
            ("length", Scale::LogSeconds),
            ("share of intervals", Scale::Share),
            |profile| profile.cdh.clone(),
        )
    }

    fn section(
        &self,
        heading: &str,
        text: &str,
        notes: Vec<(String, String)>,
        x: (&str, Scale),
        y: (&str, Scale),
        points: impl Fn(&Profile) -> Points,
    ) -> Section {
        let lines = self.traces.iter().copied().map(|(name, profile)| (name.clone(), points(profile))).collect();
        let chart = Chart {
            x: (x.0.into(), x.1),
            y: (y.0.into(), y.1),
            lines,
            dots: Vec::new(),
            marks: Vec::new(),
            small: false,
        };
        Section {
            heading: heading.into(),
            text: text.into(),
            notes,
            table: Table::default(),
            drawings: vec![(String::new(), chart.html())],
            ..Section::default()
        }
    }

    /// Which of many traces are drawn, as a sentence behind others.
    fn which(&self) -> String {
        if self.all.len() <= SHOWN {
            return String::new();
        }
        format!(" Of the {} traces the {SHOWN} with the most requests are drawn.", self.all.len())
    }

    /// What there is to say of each trace.
    fn each(&self, say: impl Fn(&Profile) -> Option<String>) -> Vec<(String, String)> {
        let said = |(name, profile): &(String, Profile)| {
            (name.clone(), say(profile).unwrap_or_else(|| "too few intervals to tell".into()))
        };
        self.traces.iter().copied().map(said).collect()
    }
}

/// Whether there are enough intervals for their variance.
fn varies(profile: &Profile) -> Option<()> {
    (profile.statistics.idle_intervals >= Statistics::FEWEST_VARYING).then_some(())
}

/// A probability, which may be too small for a number.
fn probability(p: f64) -> String {
    if p < 1e-300 { "p below 1e-300".into() } else { format!("p = {p:.1e}") }
}

/// One of several charts beside each other, with its name above.
fn small(name: &str, x: &str, y: (&str, Scale), points: Points, marks: Vec<f64>) -> (String, String) {
    let lines = vec![(name.to_string(), points)];
    let chart =
        Chart { x: (x.into(), Scale::Linear), y: (y.0.into(), y.1), lines, dots: Vec::new(), marks, small: true };
    (name.into(), chart.html())
}

/// A function of age, from 10 us up to where ten intervals are left.
fn over_ages(profile: &Profile, value: impl Fn(Nanos) -> Option<f64>) -> Points {
    const LEFT: f64 = 10.0;
    let ages = (-100..=120).map(|twentieth| 10f64.powf(f64::from(twentieth) / 20.0));
    let few = LEFT / profile.lengths.len().max(1) as f64;
    let point = |age_s: f64| {
        let age = Nanos((age_s * 1e9) as u64);
        let enough = profile.lengths.share_longer(age)? >= few;
        Some((age_s, value(age)?)).filter(|_| enough)
    };
    ages.map_while(point).collect()
}

fn character(character: Character) -> &'static str {
    match character {
        Character::Body => "body",
        Character::Tail => "tail",
        Character::TailBursty => "tail, bursty",
    }
}

fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::Idleness;
    use crate::trace::synth::PUBLISHED;

    #[test]
    fn every_figure_is_drawn_for_traces_and_none_breaks_without() {
        let shape = PUBLISHED[0].shape();
        let trace = shape.trace(1).unwrap();
        let disks = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap();
        let profile = Profile::of(&disks);
        let html = idle_page(&[("T1".into(), profile.clone()), ("again".into(), profile.clone())], Vec::new()).html();
        // Two small charts of autocorrelation, a large one in six figures; the trace is too short for hours and periods.
        assert_eq!(html.matches("<svg").count(), 2 + 6, "of {} bytes", html.len());
        for heading in
            ["figure 8)", "figure 9)", "figure 10)", "figure 11)", "figure 12)", "figure 13)", "Hazard", "0.980"]
        {
            assert!(html.contains(heading), "{heading}");
        }
        let many: Vec<_> = (0..9).map(|k| (format!("v{k}"), profile.clone())).collect();
        let html = idle_page(&many, Vec::new()).html();
        assert!(html.contains("Of the 9 traces the 8 with the most requests are drawn."));
        assert!(html.contains("<th>requests") && !html.contains("use the body:"));
        assert!(idle_page(&[("nothing".into(), Profile::of(&[]))], Vec::new()).html().contains("too few intervals"));
    }
}
