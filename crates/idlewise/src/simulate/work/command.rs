//! A command whose processes are let go in the gaps, and held when the foreground comes.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Detail, Served, Tally, Work};
use crate::disk::Interference;
use crate::{Bytes, Nanos, TotalTime};

/// So many draws stand for a disk: enough for whatever share of uses ends without an overrun.
const DRAWS: u64 = 10_000;

/// Runs from the moment when the policy lets it until the foreground comes. That waits for what the command has asked the disk for until it is
/// held: an overrun, drawn anew each time. The size of a request says nothing of a command, and is not looked at.
///
/// An owner's own scrub is run in the same way. It may need some time until it is at work again, and may know no smaller piece than one that
/// takes seconds: what is cut in its first half is done again, and else the foreground waits for its end.
#[derive(Clone, Debug)]
pub struct Command {
    /// Each as likely as the others.
    overruns: Vec<Nanos>,
    random: Pcg64Mcg,
    /// Time until it is at work, each time.
    opening: Nanos,
    /// How long a piece takes; zero where it goes on anywhere.
    piece: Nanos,
    runs: u64,
    /// How long it was at work for what need not be done again.
    useful: TotalTime,
}

impl Command {
    /// One whose overruns are these, each as likely as the others: zero where the disk had nothing to do for the command when the foreground
    /// came. Without any it never overruns. Always with the same draws.
    pub fn new(overruns: Vec<Nanos>) -> Self {
        let random = Pcg64Mcg::seed_from_u64(2009);
        Self { overruns, random, opening: Nanos::ZERO, piece: Nanos::ZERO, runs: 0, useful: TotalTime(0) }
    }

    /// The same, which takes so long until it is at work each time it is let go.
    #[must_use]
    pub fn opening(self, opening: Nanos) -> Self {
        Self { opening, ..self }
    }

    /// The same, which works in pieces of so much time; zero for any.
    #[must_use]
    pub fn in_pieces(self, piece: Nanos) -> Self {
        Self { piece, ..self }
    }

    /// The mean overrun.
    pub fn mean(overruns: &[Nanos]) -> Nanos {
        let sum: u128 = overruns.iter().map(|time| u128::from(time.0)).sum();
        Nanos(sum.checked_div(overruns.len() as u128).map_or(0, |mean| mean as u64))
    }

    /// Overruns that are each as likely as the others, from what was measured: of so many uses of a disk so many ended with an overrun, whose
    /// percentiles are these in seconds, from the least to the longest. Nothing where they are no times, or none.
    pub fn measured(uses: u64, count: u64, percentiles_s: &[f64]) -> Option<Vec<Nanos>> {
        let known = percentiles_s.iter().all(|time| time.is_finite() && (0.0..1e9).contains(time));
        if !known || percentiles_s.is_empty() || count == 0 {
            return None;
        }
        // Rounded up: what is rare is not never.
        let late = (u128::from(DRAWS) * u128::from(count)).div_ceil(u128::from(uses.max(count))) as u64;
        let time = |draw: u64| {
            let place = (draw as f64 + 0.5) / late as f64 * (percentiles_s.len() - 1) as f64;
            let (below, part) = (place as usize, place.fract());
            let next = percentiles_s[(below + 1).min(percentiles_s.len() - 1)];
            Nanos(((percentiles_s[below] * (1.0 - part) + next * part) * 1e9).round() as u64)
        };
        Some((0..DRAWS).map(|draw| if draw < late { time(draw) } else { Nanos::ZERO }).collect())
    }

    /// Of so long at work, what need not be done again; and the rest of the last piece, where that is waited for.
    fn worked(&self, time: u64) -> (u64, Option<u64>) {
        match time.checked_rem(self.piece.0) {
            None => (time, None),
            Some(begun) if begun > 0 && begun >= self.piece.0 - begun => {
                let rest = self.piece.0 - begun;
                (time.saturating_add(rest), Some(rest))
            }
            Some(begun) => (time - begun, None),
        }
    }
}

impl Work for Command {
    fn waits(&self) -> bool {
        true
    }

    fn serve(&mut self, _began: Nanos, _size: Bytes, _count: u64, room: Nanos) -> Served {
        self.runs += 1;
        let (useful, rest) = self.worked(room.0.saturating_sub(self.opening.0));
        self.useful += TotalTime(useful.into());
        let overrun = match (rest, &self.overruns[..]) {
            (Some(rest), _) => Nanos(rest),
            (None, []) => Nanos::ZERO,
            (None, overruns) => overruns[self.random.random_range(0..overruns.len())],
        };
        let time = Nanos(room.0.saturating_add(overrun.0));
        Served { requests: 1, time, interference: Interference::FULL, ..Served::default() }
    }

    fn tally(&self) -> Tally {
        Tally { completed: self.runs, ..Tally::default() }
    }

    fn detail(&self) -> Detail {
        Detail { useful: self.useful, ..Detail::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
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

    #[test]
    fn measured_overruns_are_drawn_as_often_as_they_were_seen() {
        let percentiles_s: Vec<f64> = (0..=100).map(|hundredth| f64::from(hundredth) * 1e-4).collect();
        let drawn = Command::measured(40, 30, &percentiles_s).unwrap();
        let late: Vec<_> = drawn.iter().filter(|time| **time > Nanos::ZERO).collect();
        assert_eq!((drawn.len(), late.len()), (10_000, 7_500));
        let mean = late.iter().map(|time| time.0).sum::<u64>() as f64 / 7_500.0;
        assert!((mean - 5e6).abs() < 1e3 && late.is_sorted(), "{mean}");
        let rare = Command::measured(20_001, 1, &percentiles_s).unwrap();
        assert_eq!(rare.iter().filter(|time| **time > Nanos::ZERO).count(), 1);
        for wrong in [vec![f64::NAN, 1.0], vec![-1.0], Vec::new()] {
            assert_eq!(Command::measured(40, 30, &wrong), None, "{wrong:?}");
        }
        assert_eq!(Command::measured(40, 0, &percentiles_s), None);
    }

    #[test]
    fn what_opens_slowly_or_is_cut_does_less() {
        let useful = |command: Command, rooms: &[u64]| {
            let mut command = command;
            let times: Vec<_> =
                rooms.iter().map(|room| command.serve(Nanos(0), Bytes(1), 1, Nanos(*room)).time.0 - room).collect();
            (command.detail().useful, times)
        };
        let command = || Command::new(vec![Nanos(3)]);
        assert_eq!(useful(command(), &[5, 100]), (TotalTime(105), vec![3, 3]));
        assert_eq!(useful(command().opening(Nanos(20)), &[5, 100]), (TotalTime(80), vec![3, 3]));
        // Pieces of 10: cut at 4 and at 44, waited for at 27 and at 35, and at 40 just over.
        let pieces = command().in_pieces(Nanos(10));
        assert_eq!(useful(pieces, &[4, 44, 27, 35, 40]), (TotalTime(40 + 30 + 40 + 40), vec![3, 3, 3, 5, 3]));
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
