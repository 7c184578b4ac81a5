//! Policies side by side: how much idle time each uses at which rate of collisions (DSN 2012, figure 14).

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::point::{OperatingPoint, Trained};
use crate::disk::DiskModel;
use crate::idle::{AutoRegression, Idleness, exceeded_by_shares};
use crate::policy::{
    Entry, IDLE_WAIT, Kind, LONGEST, POLICIES, Parameters, REQUEST_SIZE, Setting, Tried, Value, build,
};
use crate::simulate::{Summary, simulate};
use crate::{Bytes, Nanos};

/// Steps along each curve.
const STEPS: usize = 40;
/// Shares of the predictions that thresholds of AR + Waiting exceed (section V-B). With a threshold of zero, the first, it is
/// Waiting.
const THRESHOLDS: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// The rarest share of intervals or predictions that a curve begins with.
const RAREST: f64 = 1e-3;

/// The policies of figure 14.
pub const COMPARED: [&str; 5] = ["oracle", "lossless-waiting", "waiting", "ar-waiting", "ar"];

/// What is compared on which disks.
pub struct Comparison<'a> {
    /// The disks that policies run on.
    pub disks: &'a [Idleness],
    /// What policies learn from, one for each disk. `None` is what they run on, which flatters those that are fitted.
    pub train: Option<&'a [Idleness]>,
    /// Service times.
    pub model: &'a DiskModel,
    /// Size of each request, or of the first.
    pub size: Bytes,
    /// Names in the table of policies.
    pub policies: &'a [&'static str],
}

/// Compares the policies of figure 14, which learn from what they run on.
pub fn compare(
    disks: &[Idleness],
    model: &DiskModel,
    size: Bytes,
    progress: &(dyn Fn(f64) + Sync),
) -> Vec<OperatingPoint> {
    Comparison { disks, train: None, model, size, policies: &COMPARED }.points(progress)
}

impl Comparison<'_> {
    /// Runs each policy with many parameters, all with requests of one size. Waits are lengths that shares of the intervals
    /// exceed, from all of them down to one in a thousand; thresholds are zero, and predictions in the same way. `progress` is
    /// told the share done.
    pub fn points(&self, progress: &(dyn Fn(f64) + Sync)) -> Vec<OperatingPoint> {
        let runs = self.runs();
        let done = AtomicUsize::new(0);
        let point = |(policy, parameters, longer_than): &Run| {
            // The longest intervals are those of all disks together, where the policy would take each disk's.
            let (name, run) = match longer_than {
                Some(length) => ("lossless-waiting", parameters.clone().without(LONGEST).with(IDLE_WAIT, *length)),
                None => (*policy, parameters.clone()),
            };
            let make = |disk: &Idleness| {
                build(name, &run, &Setting::scrub(self.past(disk), self.model))
                    .expect("the parameters are those of the policy")
            };
            let ran = |disks: &[Idleness]| Summary::new(&simulate(disks, self.model, make), disks);
            let Summary { utilised_idle, collision_rate, mean_slowdown_s, throughput_bytes_per_s, .. } =
                ran(self.disks);
            let trained = self.train.filter(|_| longer_than.is_none()).map(ran);
            let trained =
                trained.map(|Summary { utilised_idle, collision_rate, .. }| Trained { utilised_idle, collision_rate });
            progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / runs.len() as f64);
            OperatingPoint {
                policy,
                parameters: parameters.clone(),
                utilised_idle,
                collision_rate,
                mean_slowdown_s,
                throughput_bytes_per_s,
                trained,
            }
        };
        runs.par_iter().map(point).collect()
    }

    /// What a policy on this disk learns from: another one, or itself.
    fn past<'b>(&'b self, disk: &'b Idleness) -> &'b Idleness {
        let at = self.disks.iter().position(|one| std::ptr::eq(one, disk));
        self.train.zip(at).map_or(disk, |(train, at)| &train[at])
    }

    fn runs(&self) -> Vec<Run> {
        let past = self.train.unwrap_or(self.disks);
        let predictions = past.iter().flat_map(|disk| predictions(&series(disk)));
        let mut predicted: Vec<Nanos> = predictions.map(|value| Nanos((value.max(0.0) * 1e9) as u64)).collect();
        predicted.sort_unstable();
        let waits = exceeded_by_shares(&sorted_lengths(past), RAREST, STEPS);
        let longest = longest(&sorted_lengths(self.disks), &waits);
        let past = Past { waits, predicted };
        let entries = self.policies.iter().filter_map(|name| POLICIES.get(name));
        let runs = |entry: &'static Entry| -> Vec<Run> {
            if entry.takes(LONGEST.name) {
                let of_size = Parameters::default().with(REQUEST_SIZE, self.size);
                let run = |&(share, length)| (entry.name, of_size.clone().with(LONGEST, share), Some(length));
                return longest.iter().map(run).collect();
            }
            past.grid(entry, self.size).into_iter().map(|one| (entry.name, one, None)).collect()
        };
        entries.flat_map(runs).collect()
    }
}

/// A policy and its parameters; of the oracle also the length that the intervals exceed that it uses.
type Run = (&'static str, Parameters, Option<Nanos>);

/// What parameters are taken from.
struct Past {
    /// Lengths that shares of the idle intervals exceed.
    waits: Vec<Nanos>,
    /// Lengths that are predicted, ascending.
    predicted: Vec<Nanos>,
}

impl Past {
    /// All that a policy is run with.
    fn grid(&self, entry: &Entry, size: Bytes) -> Vec<Parameters> {
        let mut grid = vec![Parameters::default().with(REQUEST_SIZE, size)];
        for &parameter in entry.parameters {
            let with = |base: &Parameters| {
                let values = self.values(parameter.tried, parameter.kind, entry, (base, size));
                values.into_iter().map(|value| base.clone().with(parameter, value)).collect::<Vec<_>>()
            };
            grid = grid.iter().flat_map(with).collect();
        }
        // Without a wait it is the policy that predicts alone, and no worse than that.
        let predicts = entry.parameters.iter().find(|parameter| matches!(parameter.tried, Tried::Predictions));
        if let Some(&threshold) = predicts.filter(|_| entry.takes(IDLE_WAIT.name)) {
            let alone = Parameters::default().with(REQUEST_SIZE, size).with(IDLE_WAIT, Nanos::ZERO);
            let thresholds = exceeded_by_shares(&self.predicted, RAREST, STEPS);
            grid.extend(thresholds.into_iter().map(|one| alone.clone().with(threshold, one)));
        }
        grid
    }

    fn values(&self, tried: Tried, kind: Kind, entry: &Entry, (base, size): (&Parameters, Bytes)) -> Vec<Value> {
        let times = |times: Vec<Nanos>| times.into_iter().map(Value::Time).collect();
        match tried {
            Tried::One(value) => vec![value],
            Tried::AtLeastFirst(least) => vec![least.max(size).into()],
            Tried::IdleLengths => times(self.waits.clone()),
            // Together with waits, a few do.
            Tried::Predictions if entry.takes(IDLE_WAIT.name) => {
                times(THRESHOLDS.map(|share| at_share(&self.predicted, share)).to_vec())
            }
            Tried::Predictions => times(exceeded_by_shares(&self.predicted, RAREST, STEPS)),
            Tried::IdleWaits(multiples) => {
                let wait = base.time(IDLE_WAIT).unwrap_or_default();
                times(multiples.iter().map(|times| Nanos(wait.0.saturating_mul(*times).max(1))).collect())
            }
            Tried::Ratios { from, to, steps } => {
                let value = |number: f64| match kind {
                    Kind::Time => Value::Time(Nanos((number * 1e9) as u64)),
                    Kind::Size { .. } => Value::Size(Bytes(number as u64)),
                    Kind::Number { .. } => Value::Number(number),
                };
                ratios([from, to], steps).into_iter().map(value).collect()
            }
        }
    }
}

/// From one value to another in so many equal ratios.
fn ratios([from, to]: [f64; 2], steps: usize) -> Vec<f64> {
    (0..=steps).map(|step| from * (to / from).powf(step as f64 / steps as f64)).collect()
}

/// Shares of the intervals for the oracle, and the lengths that these exceed: in equal ratios, and for each of
/// the waits those longer than it, so that it can use whatever intervals a policy with these waits uses.
fn longest(sorted: &[Nanos], waits: &[Nanos]) -> Vec<(f64, Nanos)> {
    let longer = |&wait: &Nanos| {
        let count = sorted.len() - sorted.partition_point(|&length| length <= wait);
        (count as f64 / sorted.len().max(1) as f64, wait)
    };
    let steps = ratios([RAREST, 1.0], STEPS).into_iter().map(|share| (share, exceeded_by(sorted, share)));
    let mut shares: Vec<(f64, Nanos)> = steps.chain(waits.iter().map(longer)).collect();
    shares.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    shares.dedup_by_key(|(_, length)| *length);
    shares
}

/// The prediction that this share of sorted ones does not reach; zero for none.
fn at_share(predicted: &[Nanos], share: f64) -> Nanos {
    let rank = (share * predicted.len() as f64) as usize;
    if rank == 0 { Nanos::ZERO } else { predicted[rank] }
}

fn series(disk: &Idleness) -> Vec<f64> {
    disk.intervals.iter().map(|interval| interval.length.as_secs_f64()).collect()
}

/// Idle waits that so many shares of the intervals exceed.
pub fn waits(disks: &[Idleness], steps: usize) -> Vec<Nanos> {
    exceeded_by_shares(&sorted_lengths(disks), RAREST, steps)
}

fn sorted_lengths(disks: &[Idleness]) -> Vec<Nanos> {
    let mut lengths: Vec<Nanos> =
        disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.length).collect();
    lengths.sort_unstable();
    lengths
}

/// What AR predicts for each interval; nothing where it cannot be fitted.
fn predictions(series: &[f64]) -> Vec<f64> {
    AutoRegression::fit(series).map(|model| model.predictions(series)).unwrap_or_default()
}

/// The length that this share of sorted lengths exceeds, and no more.
fn exceeded_by(sorted: &[Nanos], share: f64) -> Nanos {
    let rest = sorted.len() - ((share * sorted.len() as f64).round() as usize).min(sorted.len());
    rest.checked_sub(1).map_or(Nanos::ZERO, |last| sorted[last])
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::super::best_within;
    use super::*;
    use crate::policy::THRESHOLD;
    use crate::trace::synth::Shape;

    #[test]
    fn the_oracle_is_above_all_and_lossless_waiting_close_to_it_where_tails_are_long() {
        let shape = Shape {
            requests: 20_000,
            idle_mean: Nanos::from_millis(200),
            idle_cov: 5.0,
            among: Default::default(),
            files: Default::default(),
            burstiness: 0.2,
            requests_per_busy: 2.0,
            together: false,
            tick: Nanos::ZERO,
            service: Nanos::from_millis(5),
            read_share: 0.5,
            sequential: 0.0,
            phase: 1.0,
            length: 4096,
            capacity: Bytes(1 << 40),
        };
        let model = DiskModel::ultrastar_15k450();
        let disks = Idleness::of_trace(&shape.trace(4).unwrap(), &model).unwrap();
        let points = compare(&disks, &model, Bytes::from_kib(64), &|_| ());
        for rate in [0.01, 0.05, 0.1, 0.2] {
            let best = |policy| best_within(&points, policy, rate).unwrap_or(0.0);
            let oracle = best("oracle");
            for policy in ["waiting", "ar", "ar-waiting", "lossless-waiting"] {
                assert!(
                    best(policy) <= oracle + 0.03,
                    "{policy} {} above the oracle's {oracle} at {rate}",
                    best(policy)
                );
            }
            assert!(best("lossless-waiting") > oracle - 0.05, "at {rate}");
            assert!(best("waiting") > best("ar"), "at {rate}");
        }
    }

    /// It knows more, so it uses no less idle time at any rate of collisions.
    #[test]
    fn lossless_waiting_is_never_above_the_oracle() {
        let (disks, other, model) = (shaped(4_000, 3), shaped(4_000, 9), DiskModel::ultrastar_15k450());
        for train in [None, Some(&other[..])] {
            let policies = &["oracle", "lossless-waiting", "waiting"];
            let comparison = Comparison { disks: &disks, train, model: &model, size: Bytes::from_kib(64), policies };
            let points = comparison.points(&|_| ());
            for point in points.iter().filter(|point| point.policy != "oracle") {
                let oracle = best_within(&points, "oracle", point.collision_rate).unwrap();
                assert!(point.utilised_idle <= oracle, "{point:?} is above the oracle's {oracle}");
            }
        }
    }

    fn shaped(requests: u64, seed: u64) -> Vec<Idleness> {
        let like = crate::trace::synth::PUBLISHED[0].shape();
        let shape = Shape { requests, idle_cov: 3.0, burstiness: 0.5, ..like };
        Idleness::of_trace(&shape.trace(seed).unwrap(), &DiskModel::ultrastar_15k450()).unwrap()
    }

    /// AR + Waiting with a threshold of zero is Waiting, and with a wait of zero AR, so that it is worse than neither.
    #[test]
    fn thresholds_and_waits_begin_at_zero() {
        let (disks, model) = (shaped(2_000, 3), DiskModel::ultrastar_15k450());
        let points = compare(&disks, &model, Bytes::from_kib(64), &|_| ());
        let zero = |point: &&OperatingPoint| point.parameters.time(THRESHOLD) == Some(Nanos::ZERO);
        let of = |name: &str| points.iter().filter(|point| point.policy == name).collect::<Vec<_>>();
        let at_once = |point: &&OperatingPoint| point.parameters.time(IDLE_WAIT) == Some(Nanos::ZERO);
        let (alone, both): (Vec<_>, Vec<_>) = of("ar-waiting").into_iter().partition(at_once);
        for ar in of("ar") {
            let same = |point: &&&OperatingPoint| point.parameters.time(THRESHOLD) == ar.parameters.time(THRESHOLD);
            let alone = alone.iter().find(same).unwrap();
            assert_eq!((alone.utilised_idle, alone.collision_rate), (ar.utilised_idle, ar.collision_rate));
        }
        let both: Vec<_> = both.into_iter().filter(zero).collect();
        let waiting: Vec<_> = of("waiting").into_iter().filter(|point| !at_once(point)).collect();
        assert_eq!(both.len(), waiting.len());
        for (both, waiting) in both.iter().zip(waiting) {
            assert_eq!((both.utilised_idle, both.collision_rate), (waiting.utilised_idle, waiting.collision_rate));
        }
        assert_eq!(of("ar").iter().filter(|point| zero(point)).count(), 1);
    }

    #[test]
    fn any_policy_can_be_compared_and_learns_from_what_it_is_trained_on() {
        let (disks, model) = (shaped(400, 3), DiskModel::ultrastar_15k450());
        let policies = POLICIES.names();
        let comparison =
            Comparison { disks: &disks, train: None, model: &model, size: Bytes::from_kib(64), policies: &policies };
        let points = comparison.points(&|_| ());
        for name in &policies {
            assert!(points.iter().any(|point| point.policy == *name && point.utilised_idle > 0.0), "{name}");
        }
        let (other, ar) = (shaped(4_000, 9), ["ar"]);
        let points = |train| Comparison { train, policies: &ar, ..comparison }.points(&|_| ());
        let used = |points: Vec<OperatingPoint>| points.iter().map(|point| point.utilised_idle).collect::<Vec<_>>();
        assert_eq!(used(points(Some(&disks))), used(points(None)));
        assert_ne!(used(points(Some(&other))), used(points(None)));
        // What is chosen by is what the policies do on what they learn from.
        let trained = points(Some(&other)).into_iter().map(|point| point.trained.unwrap());
        let on_other = Comparison { disks: &other, train: None, policies: &ar, ..comparison }.points(&|_| ());
        let on_other = on_other.into_iter().map(|point| point.where_chosen());
        assert!(trained.eq(on_other) && points(None).iter().all(|point| point.trained.is_none()));
        let oracle = Comparison { train: Some(&other), policies: &["oracle"], ..comparison }.points(&|_| ());
        assert!(oracle.iter().all(|point| point.trained.is_none()));
    }

    #[test]
    fn a_disk_without_intervals_compares_nothing() {
        let points = compare(&[Idleness::default()], &DiskModel::ultrastar_15k450(), Bytes::from_kib(64), &|_| ());
        assert!(points.iter().all(|point| point.utilised_idle == 0.0));
    }
}
