//! What a run spends its time on.

use std::collections::BTreeMap;

use idlewise::Nanos;

use super::Doing;

/// Time by what was done, under the names of [`Doing`].
#[derive(Clone, Debug)]
pub struct Spent {
    /// What is being done, and since when.
    now: (&'static str, Nanos),
    before: BTreeMap<&'static str, Nanos>,
}

impl Spent {
    /// Nothing was spent yet; begins with `doing`.
    pub fn new(doing: &Doing, at: Nanos) -> Self {
        Self { now: (doing.name(), at), before: BTreeMap::new() }
    }

    /// From now on it does something else, or the same.
    pub fn turn_to(&mut self, doing: &Doing, at: Nanos) {
        let (name, since) = std::mem::replace(&mut self.now, (doing.name(), at));
        self.before.entry(name).or_default().0 += at.since(since).0;
    }

    /// All of it until now.
    pub fn until(&self, at: Nanos) -> BTreeMap<&'static str, Nanos> {
        let mut spent = self.clone();
        spent.turn_to(&Doing::IdleWait, at);
        spent.before
    }

    /// All of it until another began, and what that was until now.
    pub fn with(&self, other: &Self, since: Nanos, at: Nanos) -> BTreeMap<&'static str, Nanos> {
        let mut spent = self.until(since);
        for (name, time) in other.until(at) {
            spent.entry(name).or_default().0 += time.0;
        }
        spent
    }

    /// How long it has been kept from working as the account was overdrawn.
    pub fn paused(&self, at: Nanos) -> Nanos {
        let (doing, since) = self.now;
        let before = self.before.get(Doing::OVERDRAWN).copied().unwrap_or_default();
        if doing == Doing::OVERDRAWN { Nanos(before.0 + at.since(since).0) } else { before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_spent_on_what_was_done_then() {
        let mut spent = Spent::new(&Doing::IdleWait, Nanos(10));
        spent.turn_to(&Doing::Verifying, Nanos(30));
        spent.turn_to(&Doing::Verifying, Nanos(35));
        spent.turn_to(&Doing::Overdrawn { left: Nanos(1) }, Nanos(40));
        assert_eq!(spent.paused(Nanos(70)), Nanos(30));
        spent.turn_to(&Doing::IdleWait, Nanos(80));
        assert_eq!(spent.paused(Nanos(90)), Nanos(40));
        let expected = [("idle-wait", 20 + 20), ("overdrawn", 40), ("verifying", 10)];
        assert_eq!(spent.until(Nanos(100)), expected.map(|(name, time)| (name, Nanos(time))).into());
        let before = Spent::new(&Doing::Observing, Nanos(3));
        let expected = [("idle-wait", 20 + 20), ("observing", 7), ("overdrawn", 40), ("verifying", 10)];
        assert_eq!(before.with(&spent, Nanos(10), Nanos(100)), expected.map(|(name, time)| (name, Nanos(time))).into());
    }
}
