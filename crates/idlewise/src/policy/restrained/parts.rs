//! Which of the pairs to use: the body or the tail of the idle times, or the tail and what follows it (DSN 2008, section 4).

use super::pairs::{Amount, NO_END, Pair, pairs, pairs_where, select};
use crate::Nanos;
use crate::cdh::Cdh;

/// The part of the idle times that background work uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Whichever serves most, or soonest: SIGMETRICS 2009.
    #[default]
    Any,
    /// A short wait, and a little work in most intervals.
    Body,
    /// A long wait, and work until the foreground comes in the few long intervals.
    Tail,
    /// The same with a shorter wait after a long interval, as long ones follow each other.
    TailBursty,
}

/// The pairs to use after short and after long intervals; none where nothing may be done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Choice {
    /// After an interval no longer than the mean.
    pub after_short: Option<Pair>,
    /// After a longer one.
    pub after_long: Option<Pair>,
}

/// The idle times seen, by what came before them.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Those after an interval no longer than the mean.
    pub after_short: Cdh,
    /// Those after a longer one.
    pub after_long: Cdh,
}

impl Seen {
    /// All of them.
    pub fn all(&self) -> Cdh {
        let mut all = self.after_short.clone();
        all.merge(&self.after_long);
        all
    }
}

/// The pairs of a part, of which no more than the share `delaying` of the intervals delay the foreground.
pub fn choose(part: Part, seen: &Seen, delaying: f64, service: Nanos, amount: Amount) -> Choice {
    if part == Part::TailBursty {
        return tail_bursty(seen, delaying, service);
    }
    let (all, room) = (seen.all(), amount.room(service));
    let median = all.quantile(0.5);
    let fits = |pair: &Pair| pair.busy_period >= room;
    let short = |pair: &Pair| fits(pair) && pair.idle_wait <= median;
    let candidates = match part {
        Part::Body => {
            let body = pairs_where(&all, delaying, service, |pair| short(pair) && pair.busy_period < NO_END);
            // Where so much may be delayed that no period needs an end, the shortest waits still are the body.
            if body.is_empty() { pairs_where(&all, delaying, service, short) } else { body }
        }
        // The shortest wait of those that work until the end.
        Part::Tail => pairs_where(&all, delaying, service, |pair| pair.busy_period == NO_END),
        _ => pairs_where(&all, delaying, service, fits),
    };
    let pair = select(&candidates, amount);
    Choice { after_short: pair, after_long: pair }
}

/// Divides the share between what follows short and what follows long intervals so that most is served.
fn tail_bursty(seen: &Seen, delaying: f64, service: Nanos) -> Choice {
    let count = (seen.after_short.count() + seen.after_long.count()) as f64;
    if count == 0.0 {
        return Choice::default();
    }
    let tail = |lengths: &Cdh, share: f64| {
        let part = lengths.count() as f64 / count;
        let usable = if part > 0.0 { (share / part).min(1.0) } else { 0.0 };
        let pair = pairs(lengths, usable, service).into_iter().find(|pair| pair.busy_period == NO_END);
        (pair, pair.map_or(0.0, |pair| pair.work * part))
    };
    const STEPS: u32 = 20;
    let divided = (0..=STEPS).map(|step| {
        let to_long = delaying * f64::from(step) / f64::from(STEPS);
        let (after_short, after_long) = (tail(&seen.after_short, delaying - to_long), tail(&seen.after_long, to_long));
        (after_short.1 + after_long.1, Choice { after_short: after_short.0, after_long: after_long.0 })
    });
    divided.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Choice::default(), |(_, choice)| choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn histogram(lengths: impl Iterator<Item = u64>) -> Cdh {
        let mut cdh = Cdh::default();
        lengths.for_each(|ms| cdh.add(Nanos(ms * MS)));
        cdh
    }

    #[test]
    fn the_body_waits_briefly_and_the_tail_long() {
        let after_short = histogram((0..10_000).map(|k| if k % 20 == 0 { 5_000 + k % 777 } else { 20 + k % 40 }));
        let seen = Seen { after_short, ..Seen::default() };
        let choice = |part| choose(part, &seen, 0.06, Nanos(6 * MS), Amount::Infinite).after_short.unwrap();
        let (body, tail) = (choice(Part::Body), choice(Part::Tail));
        assert!(body.idle_wait < Nanos(50 * MS) && body.busy_period < Nanos(30 * MS), "{body:?}");
        assert!(tail.idle_wait > Nanos(50 * MS) && tail.busy_period == NO_END, "{tail:?}");
        assert!(tail.work > 10.0 * body.work);
        assert_eq!(choice(Part::Any), tail);
    }

    #[test]
    fn after_a_long_interval_the_next_is_used_sooner_if_it_is_likely_to_be_long() {
        let after_short = histogram((0..9_000).map(|k| if k % 50 == 0 { 900 } else { 20 }));
        let after_long = histogram((0..1_000).map(|k| if k % 5 == 0 { 20 } else { 900 + k }));
        let seen = Seen { after_short, after_long };
        let choice = choose(Part::TailBursty, &seen, 0.12, Nanos(6 * MS), Amount::Infinite);
        let long = choice.after_long.unwrap();
        assert!(long.idle_wait < Nanos(20 * MS), "{choice:?}");
        assert!(choice.after_short.is_none_or(|short| short.idle_wait >= Nanos(20 * MS)), "{choice:?}");
        let tail = choose(Part::Tail, &seen, 0.12, Nanos(6 * MS), Amount::Infinite).after_short.unwrap();
        let served = choice.after_short.map_or(0.0, |pair| pair.work * 0.9) + long.work * 0.1;
        assert!(served >= tail.work, "{served} {}", tail.work);
    }
}
