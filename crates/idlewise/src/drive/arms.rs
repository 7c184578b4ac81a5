//! The two kinds of turns that [`super::experiment`] compares: what they weigh, and how far their means may be wrong.

use serde::{Deserialize, Serialize};

use crate::quantiles::student;

/// With fewer turns of either kind they say nothing.
const ENOUGH: u64 = 8;

/// The turns behind intervals that were used, and those behind intervals left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arms {
    pub(super) used: Arm,
    pub(super) left: Arm,
}

/// Turns of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arm {
    turns: u64,
    all: Sums,
    /// The one whose responses come to most.
    heaviest: Sums,
}

/// Sums over turns of what they weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sums {
    requests: f64,
    undisturbed: f64,
    /// Of the squares and products, with the weights squared.
    requests_2: f64,
    product: f64,
    undisturbed_2: f64,
}

impl Arms {
    /// With those of earlier runs.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self { used: self.used.and(&other.used), left: self.left.and(&other.left) }
    }

    /// Both alike, as the load changes for both.
    pub(super) fn fade(&mut self, factor: f64) {
        [&mut self.used, &mut self.left].into_iter().for_each(|arm| arm.fade(factor));
    }

    /// What is added to a request behind an interval that was used, beyond what the clock saw, and half its 95 % interval.
    pub(super) fn unseen(&self) -> Option<(f64, f64)> {
        let Self { used, left } = self;
        let turns = used.turns.min(left.turns);
        let error = student(turns.max(2) - 1) * (used.error_squared() + left.error_squared()).sqrt();
        (turns >= ENOUGH).then(|| (used.mean() - left.mean(), error))
    }
}

impl Arm {
    /// A turn of so many requests, whose responses less the slowdowns seen come to so much.
    pub(super) fn add(&mut self, weight: f64, requests: f64, undisturbed: f64) {
        let sums = Sums::of(weight, requests, undisturbed);
        self.turns = self.turns.saturating_add(1);
        self.all = self.all.plus(&sums, 1.0);
        if sums.undisturbed > self.heaviest.undisturbed {
            self.heaviest = sums;
        }
    }

    fn and(&self, other: &Self) -> Self {
        let mine = self.heaviest.undisturbed >= other.heaviest.undisturbed;
        Self {
            turns: self.turns.saturating_add(other.turns),
            all: self.all.plus(&other.all, 1.0),
            heaviest: if mine { self.heaviest } else { other.heaviest },
        }
    }

    /// How many.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// All but the heaviest.
    pub(super) fn without_heaviest(&self) -> Self {
        Self { turns: self.turns.saturating_sub(1), all: self.all.plus(&self.heaviest, -1.0), ..*self }
    }

    /// Each turn weighs so much less.
    fn fade(&mut self, factor: f64) {
        [&mut self.all, &mut self.heaviest].into_iter().for_each(|sums| sums.fade(factor));
    }

    /// Undisturbed response of a request.
    fn mean(&self) -> f64 {
        self.all.undisturbed / self.all.requests
    }

    /// The square of its standard error.
    fn error_squared(&self) -> f64 {
        let (mean, Sums { requests, requests_2, product, undisturbed_2, .. }) = (self.mean(), self.all);
        let residuals = undisturbed_2 - 2.0 * mean * product + mean * mean * requests_2;
        let turns = self.turns as f64;
        residuals.max(0.0) / (requests * requests) * turns / (turns - 1.0)
    }
}

impl Sums {
    fn of(weight: f64, requests: f64, undisturbed: f64) -> Self {
        let square = weight * weight;
        Self {
            requests: weight * requests,
            undisturbed: weight * undisturbed,
            requests_2: square * requests * requests,
            product: square * requests * undisturbed,
            undisturbed_2: square * undisturbed * undisturbed,
        }
    }

    /// With so many times these on top.
    fn plus(&self, other: &Self, times: f64) -> Self {
        Self {
            requests: self.requests + times * other.requests,
            undisturbed: self.undisturbed + times * other.undisturbed,
            requests_2: self.requests_2 + times * other.requests_2,
            product: self.product + times * other.product,
            undisturbed_2: self.undisturbed_2 + times * other.undisturbed_2,
        }
    }

    fn fade(&mut self, factor: f64) {
        [&mut self.requests, &mut self.undisturbed].into_iter().for_each(|sum| *sum *= factor);
        let squares = [&mut self.requests_2, &mut self.product, &mut self.undisturbed_2];
        squares.into_iter().for_each(|sum| *sum *= factor * factor);
    }
}
