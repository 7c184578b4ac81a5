//! A command whose processes are let go in the gaps, and held when the foreground comes.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Served, Tally, Work};
use crate::disk::Interference;
use crate::{Bytes, Nanos};

/// Runs from the moment when the policy lets it until the foreground comes. That waits for what the command has asked the disk for until it is
/// held: an overrun, drawn anew each time. The size of a request says nothing of a command, and is not looked at.
#[derive(Clone, Debug)]
pub struct Command {
    /// Each as likely as the others.
    overruns: Vec<Nanos>,
    random: Pcg64Mcg,
    runs: u64,
}

impl Command {
    /// One whose overruns are these, each as likely as the others: zero where the disk had nothing to do for the command when the foreground
    /// came. Without any it never overruns. Always with the same draws.
    pub fn new(overruns: Vec<Nanos>) -> Self {
        Self { overruns, random: Pcg64Mcg::seed_from_u64(2009), runs: 0 }
    }

    /// The mean overrun.
    pub fn mean(overruns: &[Nanos]) -> Nanos {
        let sum: u128 = overruns.iter().map(|time| u128::from(time.0)).sum();
        Nanos(sum.checked_div(overruns.len() as u128).map_or(0, |mean| mean as u64))
    }
}

impl Work for Command {
    fn waits(&self) -> bool {
        true
    }

    fn serve(&mut self, _began: Nanos, _size: Bytes, _count: u64, room: Nanos) -> Served {
        self.runs += 1;
        let overrun = match self.overruns[..] {
            [] => Nanos::ZERO,
            ref overruns => overruns[self.random.random_range(0..overruns.len())],
        };
        let time = Nanos(room.0.saturating_add(overrun.0));
        Served { requests: 1, time, interference: Interference::FULL, ..Served::default() }
    }

    fn tally(&self) -> Tally {
        Tally { completed: self.runs, ..Tally::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TotalTime;
    use crate::idle::{Idleness, IdlenessBuilder};
    use crate::policy::Waiting;
    use crate::simulate::{Lane, run};

    fn disk(gaps: &[(u64, u64)]) -> Idleness {
        let mut builder = IdlenessBuilder::new("d");
        let mut at = 0;
        for &(gap, service) in gaps {
            at += gap;
            builder.request(Nanos(at), Nanos(at + service));
            at += service;
        }
        builder.finish()
    }

    fn played(disk: &Idleness, wait: u64, overruns: &[u64]) -> crate::simulate::Outcome {
        let lane = |_: &Idleness| {
            let command = Command::new(overruns.iter().map(|&time| Nanos(time)).collect());
            let waiting = Waiting { idle_wait: Nanos(wait), request_size: Bytes(1) };
            vec![Lane::new(Box::new(waiting), Box::new(command))]
        };
        run(std::slice::from_ref(disk), lane).outcome
    }

    #[test]
    fn it_runs_until_the_foreground_comes_and_a_little_longer() {
        // Idle for 100, for 4, and for 60: the first overrun of 7 swallows the second gap, and 3 are left in the third.
        let outcome = played(&disk(&[(0, 10), (100, 10), (4, 10), (60, 10)]), 30, &[7]);
        assert_eq!((outcome.collisions, outcome.used_idle), (2, TotalTime(70 + 27)));
        assert_eq!((outcome.delay_sum, outcome.longest_delay), (TotalTime(7 + 3 + 7), Nanos(7)));
        let outcome = played(&disk(&[(0, 10), (100, 10)]), 30, &[]);
        assert_eq!((outcome.collisions, outcome.used_idle, outcome.delay_sum), (0, TotalTime(70), TotalTime(0)));
        assert_eq!(Command::mean(&[Nanos(2), Nanos(5)]), Nanos(3));
        assert_eq!(Command::mean(&[]), Nanos(0));
    }

    proptest! {
        /// Gap by gap, as anyone would play it.
        #[test]
        fn equals_a_loop_over_the_gaps(
            gaps in prop::collection::vec((1u64..80, 1u64..20), 2..60), wait in 1u64..40,
            overruns in prop::collection::vec(0u64..50, 1..5),
        ) {
            let mut draws = Command::new(overruns.iter().map(|&time| Nanos(time)).collect());
            let (mut carried, mut delays, mut used) = (0, 0u128, 0u128);
            for &(gap, _) in &gaps[1..] {
                if gap > carried && gap - carried > wait {
                    let room = gap - carried - wait;
                    used += u128::from(room);
                    carried = draws.serve(Nanos(0), Bytes(1), 1, Nanos(room)).time.0 - room;
                } else {
                    carried = carried.saturating_sub(gap);
                }
                delays += u128::from(carried);
            }
            let outcome = played(&disk(&gaps), wait, &overruns);
            prop_assert_eq!((outcome.delay_sum, outcome.used_idle), (TotalTime(delays), TotalTime(used)));
        }
    }
}
