//! Request size and idle wait for a slowdown goal (DSN 2012, section V-C).

mod baselines;
mod compare;
mod explore;
pub mod heldout;
mod plan;
mod sample;
mod search;
mod shaped;
mod waiting;

pub use baselines::{Baseline, baselines};
pub use compare::{Point, best_within, compare};
pub use explore::{PairPoint, Penalty, Plane, Question};
pub use plan::{Plan, PlanError, PlanFile, Predicted};
pub use search::{Arrivals, Goal, TuneError, tune};
pub use shaped::shaped;
