use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, IdlenessBuilder};
use idlewise::schedule::Windows;
use idlewise::tune::Goal;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::{Config, WhenBehind};

const USUAL: (Nanos, Nanos) = (Nanos::from_millis(1), Nanos::from_millis(50));

/// Requests of 5 ms for a day, with exponential times between them.
pub(super) fn random(hours: f64, mean_s: f64, seed: u64) -> Idleness {
    println!("seed {seed}");
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut builder, mut now) = (IdlenessBuilder::new("d"), 0.0);
    while now < hours * 3600.0 {
        let at = Nanos((now * 1e9) as u64);
        builder.request(at, Nanos(at.0 + 5_000_000));
        now += 0.005 - mean_s * random.random_range(f64::MIN_POSITIVE..1.0).ln();
    }
    builder.finish()
}

fn each(seconds: u64) -> Idleness {
    random(24.0, seconds as f64, 5)
}

fn foreground(seconds: u64) -> Foreground {
    Foreground::new(each(seconds), DiskModel::ultrastar_15k450(), Goal::new(USUAL.0, USUAL.1))
}

fn disk(size: u64, change: impl Fn(&mut Wish)) -> Disk {
    let mut wish = Config::default().of("d", std::path::Path::new("d")).0;
    change(&mut wish);
    Disk::new("d".into(), Bytes(size), wish, USUAL)
}

/// How many bytes a day gives.
fn of_a_day(seconds: u64) -> f64 {
    let mut foreground = foreground(seconds);
    (0..24).map(|hour| foreground.gives(hour, 1.0).unwrap()[0].bytes * 3600.0).sum()
}

#[test]
fn a_disk_that_is_fast_enough_is_verified_in_time() {
    let a_day = of_a_day(30);
    // Two days of work.
    let played = play(&disk((2.0 * a_day) as u64, |_| ()), &mut foreground(30), 60).unwrap();
    println!("{played:?}");
    let long_s = |pass: &Pass| pass.ended_s - pass.began_s;
    assert!(played.passes.iter().all(|pass| (long_s(pass) / DAY_S - 2.0).abs() < 0.01));
    // The first at once; then three times as long before its deadline: 8 days after the one before, for 2 days.
    assert_eq!((played.passes.len(), played.in_time(), played.due()), (6, 6, 6));
    assert!(played.latest_s() < Some(0.0) && played.most_s == 1e-3);
    // A seventh has begun.
    let verified = played.ran_s / DAY_S * a_day;
    assert!(played.ran_s > 12.0 * DAY_S && (played.verified / verified - 1.0).abs() < 0.01, "{verified}");
    assert!(played.cost.mean_s() <= 1e-3 && played.mean_of_all_s() < played.cost.mean_s());
    let a_second = each(30).requests as f64 / each(30).span().as_secs_f64();
    assert!((played.requests / (60.0 * DAY_S * a_second) - 1.0).abs() < 1e-3);
    // Each pass costs what its days cost.
    let of = |pass: &Pass| pass.cost.requests as f64 / (long_s(pass) / DAY_S);
    assert!(played.passes.iter().all(|pass| (of(pass) / (DAY_S * a_second) - 1.0).abs() < 0.01));
}

#[test]
fn one_that_is_too_large_is_late_and_may_spend() {
    let a_day = of_a_day(4);
    let size = (18.0 * a_day) as u64;
    let late = play(&disk(size, |_| ()), &mut foreground(4), 60).unwrap();
    assert!(late.in_time() < late.due() && late.latest_s() > Some(3.0 * DAY_S), "{late:?}");
    let spends = |wish: &mut Wish| {
        (wish.when_behind, wish.spend_up_to) = (WhenBehind::Spend, Some(Nanos::from_millis(3)));
    };
    let played = play(&disk(size, spends), &mut foreground(4), 60).unwrap();
    println!("{late:?}\n{played:?}");
    assert!(played.most_s > 1e-3 && played.most_s <= 3e-3);
    assert!(played.verified > late.verified && played.latest_s() < late.latest_s());
}

/// Where an hour is dearer than the whole trace, less is verified in it.
#[test]
fn a_scrub_is_held_to_its_mean() {
    let gives = Gives { bytes: 100.0, requests: 10.0, slowdown_s: 0.04, longest_s: 0.01 };
    let mut begun = Begun::new(0.0, Bytes(1 << 30));
    assert_eq!(begun.in_force(1e-3), 1e-3);
    let held = begun.best(&[gives], 60.0);
    assert!((held.bytes - 25.0).abs() < 1e-9 && (held.slowdown_s - 0.01).abs() < 1e-12);
    // What a cheap minute leaves over may be spent later.
    let cheap = Gives { slowdown_s: 0.0, ..gives };
    assert_eq!(begun.best(&[cheap], 60.0), cheap);
    assert_eq!(begun.in_force(1.2e-3), 1e-3, "not so much more that its scrub is begun anew");
    assert!((begun.best(&[gives], 60.0).bytes - 50.0).abs() < 1e-9);
    assert_eq!(begun.in_force(1.3e-3), 1.3e-3);
    assert!((begun.best(&[gives], 60.0).bytes - 32.5).abs() < 1e-9);
    // A plan that costs more is no gain where the account is empty.
    let dear = Gives { bytes: 150.0, slowdown_s: 0.12, ..gives };
    assert!((begun.best(&[gives, dear], 60.0).bytes - 32.5).abs() < 1e-9);
}

#[test]
fn windows_are_kept() {
    let a_day = of_a_day(30);
    let nights = |wish: &mut Wish| wish.windows = Windows::new(&["22:07-04:07"]).unwrap();
    let played = play(&disk((0.5 * a_day) as u64, nights), &mut foreground(30), 30).unwrap();
    assert!(played.passes.len() >= 2 && played.in_time() == played.passes.len(), "{played:?}");
    // Two nights of six hours each time; it begins within one.
    for pass in &played.passes {
        let hours = (pass.ended_s - pass.began_s) / 3600.0;
        assert!((24.0..=54.1).contains(&hours), "{hours}");
    }
    // One more may have begun.
    let passes = played.ran_s / (0.5 * DAY_S) - played.passes.len() as f64;
    assert!((-0.15..1.0).contains(&passes), "{}", played.ran_s);
}

#[test]
fn a_goal_that_nothing_meets_is_an_error_and_a_disk_that_never_rests_is_never_verified() {
    let short = Goal::new(Nanos(1), Nanos(10));
    let mut foreground = Foreground::new(each(30), DiskModel::ultrastar_15k450(), short);
    let wish = Config::default().of("d", std::path::Path::new("d")).0;
    assert!(play(&Disk::new("d".into(), Bytes(1), wish, (Nanos(1), Nanos(10))), &mut foreground, 1).is_err());
    let mut builder = IdlenessBuilder::new("d");
    builder.request(Nanos(0), Nanos::from_secs(86_400));
    let mut busy = Foreground::new(builder.finish(), DiskModel::ultrastar_15k450(), Goal::new(USUAL.0, USUAL.1));
    let played = play(&disk(1 << 40, |_| ()), &mut busy, 30).unwrap();
    assert_eq!((played.passes.len(), played.due(), played.verified), (0, 1, 0.0));
    assert!(played.overdue_s > 15.0 * DAY_S);
}
