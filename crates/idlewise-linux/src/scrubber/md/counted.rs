//! How far a check is for good, and what it has counted until there: md says how much it has been through and how many mismatches it has
//! counted, but what was asked for last comes later, in any order. So the next run begins at a place whose count is sure, or too high by a
//! little; never at one behind which some were forgotten.

/// In sectors: if no place is sure for so long, mismatches lie everywhere, and some may be counted twice.
const FURTHEST: u64 = (256 << 20) / 512;

/// What is sure. Places are in sectors.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// So much is done, and so much was counted there.
    pub place: u64,
    pub wrong: u64,
    /// What may be under way at once.
    window: u64,
    /// How much was done at the last look.
    done: u64,
    /// What is counted now, and the place in front of which all of that lies.
    count: u64,
    before: u64,
}

impl Counted {
    /// From a place on, with what was counted before it.
    pub fn from(place: u64, wrong: u64, window: u64) -> Self {
        Self { place, wrong, window, done: place, count: wrong, before: place }
    }

    /// One look: first what is counted was asked for, then how much is done. `at_rest` is whether nothing was under way in between.
    pub fn look(&mut self, count: u64, done: u64, at_rest: bool) {
        let window = if at_rest { 0 } else { self.window };
        // In front of this, all had come when it was counted.
        let come = self.done.saturating_sub(window).max(self.place);
        if count != self.count {
            (self.count, self.before) = (count, done.saturating_add(window));
        }
        if come >= self.before || at_rest {
            (self.place, self.wrong) = (come, count);
        } else if come - self.place > FURTHEST {
            (self.place, self.wrong, self.before) = (come, count, come);
        }
        self.done = done.max(self.done);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    const ALL: u64 = 4000;
    const WINDOW: u64 = 64;

    /// A check whose sectors are asked for in order and come in any, at most a window apart.
    struct Sectors {
        asked: u64,
        under_way: Vec<u64>,
        wrong: BTreeSet<u64>,
        count: u64,
    }

    impl Sectors {
        fn comes(&mut self, choice: usize) {
            if !self.under_way.is_empty() {
                let sector = self.under_way.remove(choice % self.under_way.len());
                self.count += u64::from(self.wrong.contains(&sector));
            }
        }

        fn goes_on(&mut self, choice: usize) {
            let has_room = self.under_way.first().is_none_or(|first| self.asked - first < WINDOW);
            if choice.is_multiple_of(2) && has_room && self.asked < ALL {
                self.under_way.push(self.asked);
                self.asked += 1;
            } else {
                self.comes(choice / 2);
            }
        }
    }

    proptest! {
        /// Whatever comes late, what is said to be counted before a place is what lies there.
        #[test]
        fn what_is_counted_before_the_place_lies_there(
            begin in 0u64..100,
            wrong in prop_oneof![btree_set(0..ALL, 0..5), btree_set(0..ALL, 500..1000)],
            choices in vec(vec(any::<usize>(), 0..60), 100..300),
        ) {
            let mut counted = Counted::from(begin, 7, WINDOW);
            let mut sectors = Sectors { asked: begin, under_way: Vec::new(), wrong, count: 7 };
            for choices in choices {
                choices.iter().for_each(|choice| sectors.goes_on(*choice));
                let choice = choices.first().copied().unwrap_or(0);
                // Now and then it is held until nothing is under way, and looked at twice.
                if choice % 16 == 0 {
                    (0..WINDOW).for_each(|_| sectors.comes(0));
                    counted.look(sectors.count, sectors.asked, false);
                }
                let (count, at_rest) = (sectors.count, choice % 16 == 0);
                if !at_rest && choice % 3 == 0 {
                    sectors.comes(choice / 3);
                }
                counted.look(count, sectors.asked - sectors.under_way.len() as u64, at_rest);
                let truly = 7 + sectors.wrong.range(begin..counted.place.max(begin)).count() as u64;
                prop_assert_eq!(counted.wrong, truly);
                if at_rest {
                    prop_assert_eq!(counted.place, sectors.asked);
                }
            }
        }
    }

    #[test]
    fn where_mismatches_lie_everywhere_it_goes_on_and_counts_too_many() {
        let mut counted = Counted::from(0, 0, 8192);
        for step in 0..2000u64 {
            counted.look(step, step * 1000, false);
            assert!(counted.place == 0 || counted.wrong >= counted.place / 1000);
        }
        assert!(counted.place > 1_000_000, "{counted:?}");
    }

    #[test]
    fn where_nothing_is_wrong_the_place_follows_by_a_window() {
        let mut counted = Counted::from(100, 3, 64);
        (1..50).for_each(|step| counted.look(3, 100 + step * 10, false));
        assert_eq!((counted.place, counted.wrong), (100 + 480 - 64, 3));
    }
}
