//! The result of a scrub: target, prediction and measurement side by side.

use idlewise::report::printable::one_line;
use idlewise::report::{Table, percent};
use idlewise::tune::{Goal, Predicted};
use idlewise::{Bytes, Nanos, Rate};
use idlewise_linux::device::Device;
use idlewise_linux::scrub::{AccountSoFar, ComparedSoFar, ReactionSoFar, Report, State};
use serde::Serialize;

use super::content::{Content, NotAsked};
use super::kept::Kept;
use super::words::{seconds, signed};
use crate::bad::{Bad, Of, next_step};
use crate::output;

/// The fields of `scrub --json`.
#[derive(Serialize)]
pub struct Result {
    pub device: String,
    identity: String,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Read in this pass, without what `--skip-free` passed over.
    pub verified_bytes: u64,
    device_bytes: u64,
    resumed_at_bytes: u64,
    block_bytes: u32,
    pub errors: Vec<Bad>,
    /// What was wrong before this pass and was not compared in it: it may be wrong still.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors_before: Vec<Bad>,
    /// What the owners of the data said, where they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Owners that could not be asked from the beginning: what is theirs was only read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_asked: Vec<NotAsked>,
    /// What to do about the errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<String>,
    retries: u64,
    verifier: &'static str,
    order: &'static str,
    monitor: &'static str,
    /// Time that it took, with what it learned first.
    elapsed_s: f64,
    /// Bytes verified in a second since it had learned that.
    rate_bytes_per_s: f64,
    request_size_bytes: Option<u64>,
    idle_wait_s: Option<f64>,
    target: Option<Slowdown>,
    /// Simulated.
    predicted: Option<Forecast>,
    measured: Measured,
    /// Whether the target was kept, and on what the time went.
    #[serde(flatten)]
    kept: Kept,
    /// The account of the mean slowdown at the end.
    account: Option<AccountSoFar>,
    /// The mean slowdown by experiment, once enough idle intervals were left alone to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<ComparedSoFar>,
    /// How soon the scrub acted, and how often too late; null where the monitor does not see when.
    reaction: Option<ReactionSoFar>,
    lost_events: u64,
    /// Why the checkpoint of its end could not be saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
}

/// By what a device was scrubbed.
pub struct Names {
    pub verifier: &'static str,
    pub order: &'static str,
    pub monitor: &'static str,
}

#[derive(Clone, Copy, Serialize)]
struct Slowdown {
    mean_slowdown_s: f64,
    /// Of a measurement there is only the share beyond the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_slowdown_s: Option<f64>,
    max_slowdown_s: f64,
}

#[derive(Clone, Copy, Serialize)]
struct Forecast {
    #[serde(flatten)]
    slowdown: Slowdown,
    throughput_bytes_per_s: f64,
    /// Each prediction for as long as it held, against what was verified in that time; absent where the plan was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    while_it_held: Option<WhileItHeld>,
}

#[derive(Clone, Copy, Serialize)]
struct WhileItHeld {
    /// How long there were predictions.
    time_s: f64,
    /// What they add up to.
    predicted_bytes: u64,
    /// What was verified in that time.
    verified_bytes: u64,
}

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    slowdown: Slowdown,
    /// Share of the foreground requests slowed by more than the target's 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    slowed_share: Option<f64>,
    collisions: u64,
    foreground_requests: u64,
    mean_response_s: f64,
}

fn slowdown(mean: Nanos, p99: Option<Nanos>, max: Nanos) -> Slowdown {
    Slowdown {
        mean_slowdown_s: mean.as_secs_f64(),
        p99_slowdown_s: p99.map(Nanos::as_secs_f64),
        max_slowdown_s: max.as_secs_f64(),
    }
}

impl Result {
    /// Puts together what is known.
    pub fn new(
        device: &Device,
        report: &Report,
        names: Names,
        goal: Option<Goal>,
        predicted: Option<Predicted>,
        resumed: Bytes,
    ) -> Self {
        let Names { verifier, order, monitor } = names;
        let measured = &report.measured;
        let skipped = report.content.as_ref().map_or(0, |content| content.skipped_bytes);
        let errors =
            Bad::list(&report.errors, device.block, (device.start.0, device.is_by_members()), report.content.as_ref());
        let (path, member) = (device.path.display().to_string(), device.member());
        let owners = report.content.as_ref().map_or(&[][..], |content| &content.owners);
        let of = Of { device: &path, member: member.as_ref(), by_members: device.is_by_members(), owners };
        Self {
            device: device.path.display().to_string(),
            identity: device.identity.clone(),
            state: report.state,
            failure: report.failure.clone(),
            verified_bytes: report.verified.0.saturating_sub(skipped),
            device_bytes: device.size.0,
            resumed_at_bytes: resumed.0,
            block_bytes: device.block,
            next_step: (!errors.is_empty()).then(|| next_step(&of, &errors)),
            errors,
            errors_before: Vec::new(),
            content: report.content.as_ref().map(|so_far| Content::new(so_far, report.verified)),
            not_asked: Vec::new(),
            retries: report.retries,
            verifier,
            order,
            monitor,
            elapsed_s: report.elapsed.as_secs_f64(),
            rate_bytes_per_s: report.verified_now.0 as f64 / report.scrubbing.as_secs_f64().max(1e-9),
            request_size_bytes: report.plan.map(|(size, _)| size.0),
            idle_wait_s: report.plan.map(|(_, wait)| wait.as_secs_f64()),
            target: goal.map(|goal| slowdown(goal.mean_slowdown, goal.p99_slowdown, goal.max_slowdown)),
            predicted: predicted.map(|predicted| Forecast {
                slowdown: slowdown(predicted.mean_slowdown, predicted.p99_slowdown, predicted.max_slowdown),
                throughput_bytes_per_s: predicted.throughput.0 as f64,
                while_it_held: report.forecast.map(|foretold| WhileItHeld {
                    time_s: foretold.time.as_secs_f64(),
                    predicted_bytes: foretold.predicted.0,
                    verified_bytes: foretold.verified.0,
                }),
            }),
            measured: Measured {
                slowdown: slowdown(measured.mean_slowdown(), None, measured.max_slowdown),
                slowed_share: goal.and_then(|goal| goal.p99_slowdown).map(|_| measured.slowed_share()),
                collisions: measured.collisions,
                foreground_requests: measured.foreground_requests,
                mean_response_s: measured.mean_response().as_secs_f64(),
            },
            kept: Kept::new(report, goal, predicted),
            account: report.account.as_ref().map(AccountSoFar::from),
            compared: report.compared.map(ComparedSoFar::from),
            reaction: report.reaction,
            lost_events: report.lost_events,
            unsaved: report.unsaved.clone(),
        }
    }

    /// Prints it, as JSON or for people.
    pub fn print(&self, json: bool) -> anyhow::Result<()> {
        if json { output::json(self) } else { output::text(&self.text()) }
    }

    /// For people.
    pub fn text(&self) -> String {
        let state = match self.state {
            State::Complete => "complete",
            State::Interrupted | State::Running => "interrupted, run again to go on",
            State::Failed => "failed",
        };
        let resumed = if self.resumed_at_bytes > 0 {
            format!(", resumed at {}", Bytes(self.resumed_at_bytes))
        } else {
            String::new()
        };
        let (verified, size) = (Bytes(self.verified_bytes), Bytes(self.device_bytes));
        let mut text = format!("{}: {state}: {verified} of {size} verified{resumed}\n", one_line(&self.device));
        for bad in &self.errors {
            text += &format!("  {}\n", bad.line());
        }
        if self.state == State::Complete {
            for bad in &self.errors_before {
                text += &format!("  not compared in this pass, so still taken for {}\n", bad.line());
            }
        }
        if let Some(step) = &self.next_step {
            step.split("; ").for_each(|step| text += &format!("  {}\n", one_line(step)));
        }
        if self.errors.is_empty() {
            let so_far = if self.state == State::Complete { "" } else { " so far" };
            let wrong = match self.content.as_ref().filter(|content| content.has_judged()) {
                Some(content) if content.is_whole() => ", and none that differs from its checksum",
                Some(_) => ", and of what was compared none differs from its checksum",
                None => "",
            };
            text += &format!("  no unreadable block{wrong}{so_far}\n");
        }
        if let Some(content) = &self.content {
            content.lines().into_iter().for_each(|line| text += &format!("  {line}\n"));
        }
        self.not_asked.iter().for_each(|one| text += &format!("  {}\n", one.line()));
        if let Some(failure) = &self.failure {
            text += &format!("  {}\n", one_line(failure));
        }
        if self.retries > 0 {
            text +=
                &format!("  {} requests repeated, as something else than the medium was in the way\n", self.retries);
        }
        text += &format!("\n{}", self.table());
        let Measured { collisions, foreground_requests, .. } = self.measured;
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let (of, with) = (plural(collisions), plural(foreground_requests));
        text += &match self.kept.is_of_nothing() {
            true => "\nno scrub request yet".into(),
            false => format!("\n{collisions} collision{of} with {foreground_requests} foreground request{with}"),
        };
        if let Some((size, wait)) = self.request_size_bytes.zip(self.idle_wait_s) {
            text += &format!("; requests of {} after {} idle", Bytes(size), seconds(wait));
        }
        text += &format!("; {} order, by {}, watched by {}\n", self.order, self.verifier, self.monitor);
        if foreground_requests == 0 && self.target.is_some() && !self.kept.is_of_nothing() {
            text += "Nobody else used the disk, so nothing shows whether the goal would be kept.\n";
        }
        if let Some(ComparedSoFar { mean_slowdown_s, low_s, high_s, used, left_alone }) = self.compared {
            let [mean, low, high] = [mean_slowdown_s, low_s, high_s].map(signed);
            text += &format!(
                "By experiment the mean slowdown is {mean}, with 95 % certainty from {low} to {high}:\n\
                 {used} idle intervals were used, {left_alone} were left alone to compare with.\n"
            );
            if low_s <= 0.0 && high_s >= 0.0 {
                text += "It cannot be told from no slowdown at all.\n";
            }
            if self.measured.slowdown.mean_slowdown_s > high_s {
                text += "The account, by which the goal is kept, counts more than that: it is cautious until more is known.\n";
            }
        }
        text += &self.kept.text();
        if self.lost_events > 0 {
            let events = plural(self.lost_events);
            text += &format!(
                "The monitor missed {} event{events}, as the machine was busy: as many requests at most are not in these numbers.\n",
                self.lost_events
            );
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["", "goal", "predicted", "measured"]);
        let forecast = self.predicted.map(|predicted| predicted.slowdown);
        let of =
            |slowdown: Option<Slowdown>, get: fn(Slowdown) -> f64| slowdown.map_or("-".into(), |s| seconds(get(s)));
        let row = |name: &str, get: fn(Slowdown) -> f64| {
            let measured = Some(self.measured.slowdown).filter(|_| self.measured.foreground_requests > 0);
            [name.into(), of(self.target, get), of(forecast, get), of(measured, get)]
        };
        table.row(row("mean slowdown", |slowdown| slowdown.mean_slowdown_s));
        if let Some(p99) = self.target.and_then(|target| target.p99_slowdown_s) {
            let predicted = forecast.and_then(|slowdown| slowdown.p99_slowdown_s).map_or("-".into(), seconds);
            let share = self.measured.slowed_share.filter(|_| self.measured.foreground_requests > 0);
            let measured = share.map_or("-".into(), |share| format!("{} above", percent(share)));
            table.row(["p99 slowdown".into(), seconds(p99), predicted, measured]);
        }
        table.row(row("max slowdown", |slowdown| slowdown.max_slowdown_s));
        let rate = |bytes: f64| Rate(bytes as u64).to_string();
        let predicted = self.predicted.map_or("-".into(), |predicted| rate(predicted.throughput_bytes_per_s));
        table.row(["scrub rate".into(), "-".into(), predicted, rate(self.rate_bytes_per_s)]);
        table
    }
}
