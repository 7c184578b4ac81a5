//! What a policy did with some parameters, and which parameters are chosen for a rate of collisions.

use serde::{Serialize, Serializer};

use crate::policy::{Parameters, Tried, all_parameters};

/// One policy with its parameters, simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperatingPoint {
    /// Its name in the table of policies.
    pub policy: &'static str,
    /// What it ran with.
    #[serde(serialize_with = "varying")]
    pub parameters: Parameters,
    /// Share of the idle time spent on background work.
    pub utilised_idle: f64,
    /// Collisions per foreground request.
    pub collision_rate: f64,
    /// Sum of delays over all foreground requests.
    pub mean_slowdown_s: f64,
    /// Bytes verified over the span, of all disks together.
    pub throughput_bytes_per_s: f64,
    /// What it did on what it learned from, where that is something else. The oracle knows what it runs on, and learns nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trained: Option<Trained>,
}

/// What parameters did where they are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trained {
    /// Share of the idle time spent on background work.
    pub utilised_idle: f64,
    /// Collisions per foreground request.
    pub collision_rate: f64,
}

/// Only those that vary, as `--json` names them: times in seconds.
fn varying<S: Serializer>(parameters: &Parameters, serializer: S) -> Result<S::Ok, S::Error> {
    let given = all_parameters().into_iter().filter_map(|one| Some((one, parameters.get(one)?)));
    let varying = given.filter(|(one, _)| !matches!(one.tried, Tried::One(_) | Tried::AtLeastFirst(_)));
    serializer.collect_map(varying.map(|(one, value)| (one.field(), value.as_f64())))
}

impl OperatingPoint {
    /// What it did where its parameters are chosen: on what it learned from, or else on what it ran on.
    pub fn where_chosen(&self) -> Trained {
        let Self { utilised_idle, collision_rate, .. } = *self;
        self.trained.unwrap_or(Trained { utilised_idle, collision_rate })
    }
}

/// The parameters with which a policy uses most idle time with at most so many collisions a foreground request; `None` if it never
/// has so few. Where a policy learned from something else, both are of that: what it then did is no reason to choose it.
pub fn chosen_within<'a>(
    points: &'a [OperatingPoint],
    policy: &str,
    collision_rate: f64,
) -> Option<&'a OperatingPoint> {
    let of_policy = points.iter().filter(|point| point.policy == policy);
    let within = of_policy.filter(|point| point.where_chosen().collision_rate <= collision_rate);
    within.max_by(|a, b| a.where_chosen().utilised_idle.total_cmp(&b.where_chosen().utilised_idle))
}

/// The share of the idle time that it uses with these.
pub fn best_within(points: &[OperatingPoint], policy: &str, collision_rate: f64) -> Option<f64> {
    chosen_within(points, policy, collision_rate).map(|point| point.utilised_idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_knows_only_what_it_learned_from() {
        let point = |utilised_idle, collision_rate, trained: Option<(f64, f64)>| OperatingPoint {
            policy: "waiting",
            parameters: Parameters::default(),
            utilised_idle,
            collision_rate,
            mean_slowdown_s: 0.0,
            throughput_bytes_per_s: 0.0,
            trained: trained.map(|(utilised_idle, collision_rate)| Trained { utilised_idle, collision_rate }),
        };
        let untrained = [point(0.5, 0.01, None), point(0.9, 0.02, None)];
        assert_eq!(best_within(&untrained, "waiting", 0.01), Some(0.5));
        assert_eq!((best_within(&untrained, "waiting", 0.001), best_within(&untrained, "ar", 1.0)), (None, None));
        // The first did better where it was run, the second where it was chosen.
        let trained = [point(0.9, 0.005, Some((0.4, 0.01))), point(0.6, 0.03, Some((0.5, 0.01)))];
        let chosen = chosen_within(&trained, "waiting", 0.01).unwrap();
        assert_eq!((chosen.utilised_idle, chosen.collision_rate), (0.6, 0.03));
    }
}
