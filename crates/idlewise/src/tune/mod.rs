//! Request size and idle wait for a slowdown goal (DSN 2012, section V-C).

mod baselines;
mod cautions;
mod compare;
mod cost;
mod explore;
mod frontier;
mod gentlest;
mod goal;
mod grid;
pub mod heldout;
mod moments;
mod plan;
mod point;
mod sample;
mod search;
mod shaped;
mod throttled;
mod waiting;

pub use baselines::{Baseline, baselines, baselines_of_plan};
pub use cautions::{Caution, cautions};
pub use compare::{COMPARED, Comparison, compare};
pub use explore::{PairPoint, Penalty, Plane, Question};
pub use frontier::{FrontierPoint, frontier, upper_edge};
pub use gentlest::{Gentlest, gentlest, smallest};
pub use goal::{Allowed, Arrivals, Goal, RARE, TuneError};
pub use grid::{Cell, grid};
pub use heldout::{Validation, steps_or, validate};
pub use moments::mean_to_keep;
pub use plan::{Plan, PlanError, PlanFile, Predicted, Schedule};
pub use point::{OperatingPoint, Trained, best_within, chosen_within};
pub use search::tune;
pub use shaped::shaped;
pub use throttled::throttled;
