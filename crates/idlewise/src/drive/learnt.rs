//! What comparing has taught, in a form that is kept for the next run.

use serde::{Deserialize, Serialize};

use super::arms::Arms;
use super::displacement::Displacement;

/// What a driver has learnt of the cost of background work by leaving some intervals alone ([`super::Driver::compare`]): the state of its lots,
/// and sums over the turns so far. Any numbers may be read back, however damaged: they make no more than a wrong estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    pub(super) displacement: Displacement,
    pub(super) arms: Arms,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drive::Driver;
    use crate::policy::Waiting;
    use crate::{Bytes, Nanos};

    const US: u64 = 1_000;

    /// So many requests every 10 ms, which take 1 ms, and 1.5 ms where the 5 ms before were used.
    fn run(driver: &mut Driver<Waiting>, begin: u64, turns: u64) -> u64 {
        let mut used = 0;
        for turn in 0..turns {
            let (idle, arrival) = (begin + turn * 10_000 * US, begin + (turn * 10_000 + 8_000) * US);
            let works = matches!(driver.next(Nanos(idle + 1_000 * US)), crate::drive::Next::Step(_));
            if works {
                used += 1;
                driver.step_began(Nanos(idle + 1_000 * US), Bytes(4_096));
                driver.step_ended(Nanos(idle + 6_000 * US));
            }
            driver.arrived(Nanos(arrival));
            driver.completed(Nanos(arrival + if works { 1_500 * US } else { 1_000 * US }), Nanos(arrival));
        }
        used
    }

    fn driver(now: u64) -> Driver<Waiting> {
        let policy = Waiting { idle_wait: Nanos(0), request_size: Bytes(4_096) };
        let mut driver = Driver::new(policy, Nanos(now));
        driver.compare(true);
        driver
    }

    #[test]
    fn the_next_run_goes_on_with_it() {
        let mut first = driver(0);
        run(&mut first, 0, 400);
        let (learnt, cost) = (first.clock().learnt(), first.clock().displacement());
        assert!(cost > Nanos(450 * US), "{cost}");
        let text = serde_json::to_string(&learnt).unwrap();
        let mut next = driver(0);
        next.go_on_with(serde_json::from_str(&text).unwrap());
        assert_eq!(next.clock().displacement(), cost, "means are the same");
        run(&mut next, 0, 1);
        assert_eq!(next.clock().compared(), None, "what this run has found is not what earlier ones have");
        let turns = |clock: &crate::drive::SecondClock| {
            serde_json::to_value(clock.learnt()).unwrap()["arms"]["used"]["turns"].as_u64().unwrap()
        };
        assert!(turns(first.clock()) > 300 && turns(next.clock()) == turns(first.clock()), "nor is that forgotten");
        // One that knows nothing leaves every fourth interval alone at first.
        let (knows, anew) = (run(&mut next, 20_000 * US, 100), run(&mut driver(20_000 * US), 20_000 * US, 100));
        assert!(knows > anew, "{knows} {anew}");
    }

    proptest! {
        /// What was damaged makes no panic.
        #[test]
        fn any_numbers_do(numbers in prop::collection::vec(prop_oneof![any::<f64>(), Just(1e308)], 24), whole in any::<u64>()) {
            let text = serde_json::to_value(Learnt::default()).unwrap();
            let mut numbers = numbers.into_iter().map(|number| if number.is_finite() { number } else { 0.0 });
            fn replace(value: &mut serde_json::Value, whole: u64, next: &mut dyn FnMut() -> f64) {
                match value {
                    serde_json::Value::Object(map) => map.values_mut().for_each(|value| replace(value, whole, next)),
                    value if value.is_u64() => *value = whole.into(),
                    value => *value = next().into(),
                }
            }
            let mut text = text;
            replace(&mut text, whole, &mut || numbers.next().unwrap_or(0.0));
            let mut driver = driver(0);
            driver.go_on_with(serde_json::from_value(text).unwrap());
            run(&mut driver, 0, 40);
            driver.clock().compared();
        }
    }
}
