//! Shaped steps for a goal: the price of delay is found by bisection over simulations.

use super::Goal;
use crate::Nanos;
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::Shaped;
use crate::policy::shaped::Fit;
use crate::simulate::{Outcome, scrub};

/// Cells each tenfold time: more fit the past better, and the future worse.
pub const PER_DECADE: u32 = 16;
/// Prices tried, in bytes for a nanosecond of one request's delay.
const CHEAPEST: f64 = 1e-7;
const DEAREST: f64 = 1e7;
/// Steps of the bisection for a price, and of the one between two prices.
const PRICES: u32 = 26;
const BETWEEN: u32 = 14;

/// Finds the steps that scrub fastest while the simulated slowdown stays within the goal; `None` if there is no such policy that
/// does anything. `context` lets them differ after long intervals.
///
/// Policies of neighbouring prices may be far apart: of exponential idle times all of them are worth the same, and a price
/// takes all or none. So what is left of the goal is spent by taking the steps of the cheaper price from some elapsed idle
/// time on.
pub fn shaped(disks: &[Idleness], model: &DiskModel, goal: &Goal, context: bool) -> Option<(Shaped, Outcome)> {
    let fit = Fit::new(disks, model, goal.max_slowdown, PER_DECADE, context);
    let allowed = goal.allows(disks);
    let run = |policy: &Shaped| scrub(disks, model, goal.p99_slowdown, |_| Box::new(policy.clone())).outcome;
    let (mut cheap, mut dear) = (CHEAPEST, DEAREST);
    let (mut beyond, mut best) = (fit.at_price(cheap).policy, fit.at_price(dear).policy);
    let mut outcome = run(&best);
    if !allowed.keeps(&outcome) {
        return None;
    }
    for _ in 0..PRICES {
        let middle = (cheap * dear).sqrt();
        let policy = fit.at_price(middle).policy;
        let tried = run(&policy);
        if allowed.keeps(&tried) {
            dear = middle;
            if tried.scrubbed >= outcome.scrubbed {
                (best, outcome) = (policy, tried);
            }
        } else {
            (cheap, beyond) = (middle, policy);
        }
    }
    let longest = disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.length.0).max()?;
    let within = best.clone();
    let (mut low, mut high) = (1.0, longest as f64);
    for _ in 0..BETWEEN {
        let middle = f64::sqrt(low * high);
        let policy = within.until(Nanos(middle as u64), &beyond);
        let tried = run(&policy);
        if allowed.keeps(&tried) {
            high = middle;
            if tried.scrubbed >= outcome.scrubbed {
                (best, outcome) = (policy, tried);
            }
        } else {
            low = middle;
        }
    }
    (outcome.background_requests > 0).then_some((best, outcome))
}
