//! A few intervals that stand for a whole trace, so that it need not be replayed whole.
//!
//! ```text
//! requests ─► Extractor ─► intervals ─┬─────────────────────── drawn by lot: Draw ───────────────────────┬─► SamplingPlan
//!                                     └─► Points ─► clusterings ─► Rule ─► representatives (the paper's) ─┘
//! ```
//!
//! "SIGMETRICS 2015" stands for Tarihi, Asadi, Sarbazi-Azad, *DiskAccel: Accelerating Disk-Based Experiments by
//! Representative Sampling*.

mod choose_k;
mod coreset;
mod draw;
mod entropy;
mod extractor;
mod features;
mod kmeans;
mod lloyd;
mod outcome;
mod phases;
mod plan;
mod points;
mod representatives;
mod served;
mod systematic;
mod travel;
mod working_set;

pub use choose_k::{Criterion, FEWEST_CLUSTERS, MOST_CLUSTERS, RULES, Rule, criteria};
pub use draw::{Amount, Draw, Drawn, Estimate};
pub use extractor::{Extractor, TraceInterval};
pub use features::{FEATURES, Feature, FeatureError, FeatureSet};
pub use kmeans::{Clustering, clusterings};
pub use outcome::{Choice, Outcome, Phases, Settings, Way, sample};
pub use phases::phases;
pub use plan::{Chosen, Clusters, Part, SamplingPlan, SamplingPlanError};
pub use points::Points;
pub use representatives::{Representative, mean_response, relative_error, representatives, weighted_response};
pub use served::Served;
pub use systematic::{Systematic, systematic};
