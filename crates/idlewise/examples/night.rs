//! A policy of one's own: waiting that waits less at night, and keeps away from the hour of the backup. It knows the time of day from
//! whoever drives it. `cargo run --example night`.

use idlewise::drive::{Driver, Next};
use idlewise::policy::{Budget, Decision, Policy, testing};
use idlewise::{Bytes, Nanos};

const HOUR: Nanos = Nanos::from_secs(3_600);

/// Hours are those of UTC.
#[derive(Clone, Default)]
struct Night {
    /// When the idle interval began, in nanoseconds since 1970.
    since: Nanos,
}

impl Policy for Night {
    fn idle_began(&mut self, _busy: Nanos, at: Nanos) {
        self.since = at;
    }

    fn decide(&mut self, elapsed: Nanos) -> Decision {
        let wait = match (self.since + elapsed).0 / HOUR.0 % 24 {
            // The backup runs: ask again a minute later.
            2 => return Decision::Wait { until: elapsed + Nanos::from_secs(60) },
            22.. | 0..6 => Nanos::from_millis(20),
            _ => Nanos::from_millis(500),
        };
        if elapsed < wait {
            return Decision::Wait { until: wait };
        }
        // Asked again behind each, as the hour may be over.
        Decision::Issue { size: Bytes::from_kib(512), count: 1 }
    }
}

fn main() {
    testing::check(Night::default, 1);
    let at = |hour: u64| {
        let policy = Budget::new(Night::default(), Nanos::from_millis(1));
        let mut driver = Driver::new(policy, Nanos::ZERO).with_epoch(Nanos(hour * HOUR.0));
        match driver.next(Nanos::ZERO) {
            Next::AskAt(wait) => wait,
            other => panic!("{other:?} at once"),
        }
    };
    assert_eq!([at(23), at(12), at(2)], [20, 500, 60_000].map(Nanos::from_millis));
    println!("first request at night after {}, by day after {}, during the backup not for {}", at(23), at(12), at(2));
}

#[test]
fn runs() {
    main();
}
