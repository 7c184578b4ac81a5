//! What background work costs the foreground, by experiment: [`super::SecondClock`] takes the device for one server, which many are not.
//!
//! Some of the intervals that the policy would use are left alone by lot. The foreground requests from one lot to the next are a turn, but
//! for those that arrive long after it, behind many others, or when the account has ended the work for now: of them it says nothing. Their
//! responses, less the slowdowns that the clock saw, are what they would have taken without background work, if the clock is right. If it
//! is, these are the same on average behind the intervals used and behind those left alone. What they differ by is what it does not see.
//!
//! Responses per request are compared, not per turn: a slowed foreground that waits for each request sends fewer. The share of intervals left
//! alone changes with time, so that each turn counts by one over how likely its lot was (the estimator of Hájek 1971). The error is that of
//! a ratio (Cochran, Sampling Techniques, 3rd edition, equation 6.13): it needs no distribution, but enough turns.
//!
//! What a request is charged beyond what the clock saw is taken rather too high. It is normal around zero before anything is known, with a
//! standard deviation of `DOUBT` of what the clock sees; what the turns say moves it and makes it narrower (Gelman and others, Bayesian Data
//! Analysis, 3rd edition, equation 2.10). Its mean and a standard deviation are charged, or what is certain if that is more.

use super::arms::Arms;
use crate::Nanos;
use crate::quantiles::TWO_SIDED;

/// With fewer turns of either kind nothing is certain.
const CERTAIN: u64 = 16;

/// How far the clock is wrong before anything is known: the same requests with and without a scrub on emulated disks of three kinds took up
/// to a third more than it saw.
const DOUBT: f64 = 0.3;

/// No request that arrives so long after a lot belongs to it: an interval is left alone for as long at most, unless told otherwise.
const TURN: Nanos = Nanos::from_secs(10);
/// So many requests of a turn count: a burst that waits for itself must not outweigh all other turns.
const LONGEST: f64 = 32.0;
/// Turns over which the sums are taken, about: the load changes, and whoever would falsify them has to go on doing so.
const MEMORY: f64 = 1_000.0;

/// Compares the foreground requests behind intervals that were used with those behind intervals left alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Experiment {
    /// The turns of this run, and those of earlier ones.
    arms: Arms,
    earlier: Arms,
    turn: Option<Turn>,
    /// How long a turn may be, if that was said.
    longest_turn: Option<Nanos>,
    /// Foreground requests in turns behind intervals that were used, and all slowdowns that the clock saw, in nanoseconds.
    behind_used: f64,
    slowdowns: f64,
    /// What is charged to a request behind an interval that was used, beyond what the clock saw.
    unseen: Nanos,
}

/// What a comparison of intervals used with intervals left alone has found ([`super::Driver::compare`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Mean slowdown of a foreground request, in nanoseconds; below zero where those beside background work were served faster.
    pub mean_slowdown_ns: i64,
    /// The 95 % interval around it.
    pub low_ns: i64,
    /// Its other end.
    pub high_ns: i64,
    /// Turns behind intervals that were used.
    pub used: u64,
    /// Turns behind intervals that were left alone.
    pub left: u64,
}

/// From one lot to the next.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// When the lot was drawn.
    since: Nanos,
    used: bool,
    /// One over how likely the lot was.
    weight: f64,
    requests: f64,
    /// Their responses less the slowdowns that the clock saw, in nanoseconds.
    undisturbed: f64,
}

impl Experiment {
    /// How long a turn may be.
    pub(super) fn longest_turn(&self) -> Nanos {
        self.longest_turn.unwrap_or(TURN)
    }

    /// From now on a turn is no longer than this.
    pub(super) fn set_longest_turn(&mut self, longest: Nanos) {
        self.longest_turn = Some(longest);
    }

    /// The interval that now is will be used, or left alone, by a lot that was so likely.
    pub(super) fn drawn(&mut self, since: Nanos, used: bool, likely: f64) {
        self.end_turn();
        self.turn = Some(Turn { since, used, weight: 1.0 / likely, requests: 0.0, undisturbed: 0.0 });
    }

    /// What comes is behind no lot.
    pub(super) fn interrupted(&mut self) {
        self.turn = None;
    }

    /// A foreground request took `response`, of which the clock says that so much is slowdown. How much more is charged to it.
    pub(super) fn served(&mut self, arrival: Nanos, response: Nanos, slowdown: Nanos) -> Nanos {
        self.slowdowns += slowdown.0 as f64;
        let longest = self.longest_turn();
        if self.turn.is_some_and(|turn| arrival.since(turn.since) > longest) {
            self.end_turn();
        }
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.requests < LONGEST) else { return Nanos::ZERO };
        turn.requests += 1.0;
        turn.undisturbed += response.since(slowdown).0 as f64;
        if !turn.used {
            return Nanos::ZERO;
        }
        self.behind_used += 1.0;
        self.unseen
    }

    /// Whether the present turn counts each request.
    pub(super) fn wants_each(&self) -> bool {
        self.turn.is_some_and(|turn| turn.requests < LONGEST)
    }

    /// Takes in the turn that ends. One without a request says nothing.
    pub(super) fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take().filter(|turn| turn.requests > 0.0) {
            [&mut self.arms, &mut self.earlier].into_iter().for_each(|arms| arms.fade(1.0 - 1.0 / MEMORY));
            let arm = if turn.used { &mut self.arms.used } else { &mut self.arms.left };
            arm.add(turn.weight, turn.requests, turn.undisturbed);
            self.estimate();
        }
    }

    fn estimate(&mut self) {
        let arms = self.arms();
        let turns = arms.used.turns().min(arms.left.turns());
        // What a single turn says is not certain.
        let without = Arms { used: arms.used.without_heaviest(), ..arms };
        let certain = [arms, without].map(|arms| arms.unseen().map_or(0.0, |(unseen, error)| unseen - error));
        let certain = if turns >= CERTAIN { certain[0].min(certain[1]) } else { 0.0 };
        self.unseen = Nanos(certain.max(self.likely()).max(0.0).round() as u64);
    }

    /// What is likely to be added at most.
    fn likely(&self) -> f64 {
        let doubt = DOUBT * self.seen();
        let Some((unseen, error)) = self.arms().unseen().filter(|_| doubt > 0.0) else { return doubt };
        let known = doubt * doubt / (doubt * doubt + (error / TWO_SIDED).powi(2));
        unseen * known + doubt * (1.0 - known).sqrt()
    }

    /// Mean slowdown, as the clock saw it, of a request behind an interval that was used.
    fn seen(&self) -> f64 {
        self.slowdowns / self.behind_used.max(1.0)
    }

    /// How many times the slowdown that the clock sees is charged, about.
    pub(super) fn charged(&self) -> f64 {
        if self.seen() > 0.0 { 1.0 + self.unseen.0 as f64 / self.seen() } else { 1.0 + DOUBT }
    }

    /// The turns so far, those of earlier runs included.
    pub(super) fn arms(&self) -> Arms {
        self.arms.and(&self.earlier)
    }

    /// Goes on with the turns of earlier runs, which count half.
    pub(super) fn go_on_with(&mut self, arms: Arms) {
        self.earlier = arms;
        self.earlier.fade(0.5);
        self.estimate();
    }

    /// What was found in this run of so many foreground requests, once there are enough turns.
    pub fn compared(&self, requests: u64) -> Option<Compared> {
        let (unseen, error) = self.arms.unseen().filter(|_| requests > 0)?;
        // Only requests behind intervals that were used are slowed.
        let behind_used = self.behind_used / requests as f64;
        let seen = self.slowdowns / requests as f64;
        let mean = |unseen: f64| (seen + unseen * behind_used).round() as i64;
        Some(Compared {
            mean_slowdown_ns: mean(unseen),
            low_ns: mean(unseen - error),
            high_ns: mean(unseen + error),
            used: self.arms.used.turns(),
            left: self.arms.left.turns(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, LogNormal};

    use super::*;

    /// Turn and turn about used and left alone, each of so many requests of such a response, of which the clock saw so much.
    fn play(experiment: &mut Experiment, turns: std::ops::Range<u64>, used: (u64, u64), left: u64) {
        for turn in turns {
            let works = turn % 2 == 0;
            experiment.drawn(Nanos(turn), works, if works { 0.75 } else { 0.25 });
            let (response, slowdown) = if works { used } else { (left, 0) };
            for _ in 0..1 + turn % 3 {
                experiment.served(Nanos(turn), Nanos(response), Nanos(slowdown));
            }
        }
    }

    #[test]
    fn by_hand() {
        let mut experiment = Experiment::default();
        play(&mut experiment, 0..15, (1_400, 100), 1_000);
        assert_eq!(experiment.compared(30), None);
        // 300 ns more than the clock saw beside work, of 100 that it saw.
        play(&mut experiment, 15..16, (1_400, 100), 1_000);
        experiment.drawn(Nanos(16), true, 0.75);
        let found = experiment.compared(31).unwrap();
        // Turns of 1, 3, 2, 1, 3, 2, 1, 3 requests behind used ones, 2, 1, 3, 2, 1, 3, 2, 1 behind the others.
        let expected = ((100.0 + 300.0) * 16.0 / 31.0_f64).round() as i64;
        assert_eq!((found.mean_slowdown_ns, found.used, found.left), (expected, 8, 8));
        assert!(found.low_ns == expected && found.high_ns == expected, "every request took the same: {found:?}");
        let serve = |experiment: &mut Experiment| experiment.served(Nanos(17), Nanos(1_400), Nanos(100));
        assert_eq!(serve(&mut experiment), Nanos(300), "a certain difference counts whole");
        play(&mut experiment, 16..40, (1_400, 100), 1_000);
        experiment.drawn(Nanos(40), true, 0.75);
        assert_eq!(serve(&mut experiment), Nanos(300));
        experiment.drawn(Nanos(18), false, 0.25);
        assert_eq!(serve(&mut experiment), Nanos::ZERO, "behind no work there is nothing unseen");
    }

    /// The doubt is a share of what was seen until something is known, and then what is known with its error.
    #[test]
    fn what_is_not_known_is_charged_as_well() {
        let mut experiment = Experiment::default();
        assert_eq!(experiment.charged(), 1.3);
        let serve = |experiment: &mut Experiment| {
            experiment.drawn(Nanos::ZERO, true, 0.5);
            experiment.served(Nanos::ZERO, Nanos(1_100), Nanos(100))
        };
        assert_eq!(serve(&mut experiment), Nanos::ZERO);
        (0..9).for_each(|_| assert_eq!(serve(&mut experiment), Nanos(30)));
        assert_eq!(experiment.charged(), 1.3);
        // As many turns left alone, of the same mean of 1,000 and a standard error of 100 / 3.
        for turn in 0..10 {
            experiment.drawn(Nanos::ZERO, false, 0.5);
            experiment.served(Nanos::ZERO, Nanos(900 + turn % 2 * 200), Nanos::ZERO);
        }
        experiment.end_turn();
        // Half a 95 % interval of Student's t with 9 degrees of freedom, as if it were normal: 38.5 for the deviation of 30 before.
        let (error, doubt): (f64, f64) = (2.262 / TWO_SIDED * 100.0 / 3.0, 30.0);
        let expected = doubt * error / (doubt * doubt + error * error).sqrt();
        let charged = serve(&mut experiment).0 as f64;
        assert!((charged - expected).abs() < 1.0, "{charged}, expected {expected}");
    }

    /// A backup that waits for itself comes behind a used interval three times in four.
    #[test]
    fn a_burst_is_nothing_certain() {
        let mut experiment = Experiment::default();
        play(&mut experiment, 0..200, (6_000, 0), 6_000);
        for turn in 200..203 {
            experiment.drawn(Nanos(turn), true, 0.75);
            for _ in 0..20_000 {
                experiment.served(Nanos(turn), Nanos(60_000), Nanos::ZERO);
            }
            assert!(experiment.served(Nanos(turn), Nanos(60_000), Nanos::ZERO) == Nanos::ZERO);
            play(&mut experiment, 204..234, (6_000, 0), 6_000);
            experiment.drawn(Nanos(turn), true, 0.75);
            assert_eq!(experiment.served(Nanos(turn), Nanos(6_000), Nanos::ZERO), Nanos::ZERO, "{:?}", experiment.arms);
        }
    }

    /// Of 400 experiments at least 92 in 100 have the truth in their interval: heavy tails, a load that drifts, a share of controls
    /// that falls, and fewer requests where they are slowed.
    #[test]
    fn the_interval_covers_the_truth() {
        let seed = 23;
        println!("seed {seed}");
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(seed);
        let service = LogNormal::new(14.0, 1.0).unwrap();
        let mut covered = 0;
        for _ in 0..400 {
            let mut experiment = Experiment::default();
            let (mut requests, mut slowed) = (0.0, 0.0);
            for turn in 0..600 {
                let every = if turn < 100 { 4 } else { 16 };
                let used = random.random_range(0..every) > 0;
                let likely = 1.0 / f64::from(every);
                experiment.drawn(Nanos::ZERO, used, if used { 1.0 - likely } else { likely });
                let drift = 1.0 + f64::from(turn) / 300.0;
                let count = random.random_range(1..20) - i32::from(used);
                for request in 0..count {
                    let (seen, unseen) = if used && request == 0 { (1_000_000, 700_000) } else { (0, 0) };
                    let response = (service.sample(&mut random) * drift) as u64 + seen + unseen;
                    experiment.served(Nanos::ZERO, Nanos(response), Nanos(seen));
                    requests += 1.0;
                    slowed += (seen + unseen) as f64;
                }
            }
            let (truth, found) = ((slowed / requests) as i64, experiment.compared(requests as u64).unwrap());
            covered += i32::from((found.low_ns..=found.high_ns).contains(&truth));
        }
        assert!(covered >= 368, "{covered} of 400");
    }
}
