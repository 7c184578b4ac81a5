//! What is to be done with a disk at a moment: by its deadline, its hours, its windows, and who else is at it.

use idlewise::Bytes;
use idlewise::schedule::{Deadline, Forecast, Standing, WEEK, forecast};

use crate::machine::Moment;
use crate::record::Known;
use crate::{OnBattery, Sleeping, WhenBehind, Wish};

/// Where a disk is read only in windows, there is time for so many times its size before its deadline, where that is possible.
const TIMES: [f64; 3] = [3.0, 2.0, 1.0];

/// A mean slowdown is another one where it differs by so much.
pub const ANOTHER: f64 = 1.25;

/// A disk that sleeps is woken up so many times as long before its deadline as its pass may take, and so much of the time between two
/// deadlines at least; where it is not known how long it takes, so much.
const WAKES: f64 = 2.0;
const LEAST: f64 = 0.05;
const UNKNOWN: f64 = 0.5;

/// What begins within so many seconds begins now.
const SOON: f64 = 1.0;

/// What is known of a disk now.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The time.
    pub now: Moment,
    /// Its size.
    pub size: Bytes,
    /// What is left of a pass that is not over; nothing where there is none.
    pub left: Option<Bytes>,
    /// When the last whole pass ended, in seconds since 1970.
    pub last: Option<f64>,
    /// The mean slowdown where none is wished, in seconds.
    pub usual_mean_s: f64,
    /// The largest.
    pub usual_max_s: f64,
    /// Whether the machine runs on its battery.
    pub on_battery: bool,
    /// What it shares with a disk that is being read.
    pub taken: Option<String>,
    /// When it is tried again, in seconds since 1970: its last scrub failed.
    pub retry: Option<f64>,
    /// Until when it is paused, in seconds since 1970; infinite where nobody has said so.
    pub paused: Option<f64>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing until then, in seconds since 1970: it is verified.
    Rest(f64),
    /// Nothing yet, though a pass is due.
    Wait(Reason),
    /// It is read, with this mean slowdown in seconds.
    Run(f64),
}

/// Why nothing is done though a pass is due.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Somebody wants it so, until then in seconds since 1970, or for ever.
    Paused(f64),
    /// No window is open; one opens after so many minutes by the clock on the wall.
    Window(u32),
    /// The machine runs on its battery.
    Battery,
    /// What it shares with a disk that is being read.
    Taken(String),
    /// Somebody else's scrub is at it.
    Busy,
    /// It sleeps, and there is time.
    Asleep,
    /// It has not answered since then, in seconds since 1970.
    Silent(f64),
    /// A disk of its name was verified, and nobody knows whether it is that one. Its pass begins then, in seconds since 1970.
    Doubtful(f64),
    /// The last scrub failed; it is tried again then, in seconds since 1970.
    Failed(f64),
}

/// How a disk stands with its deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// When its pass has to be over, in seconds since 1970.
    pub deadline: f64,
    /// When that begins.
    pub begins: f64,
    /// When it is expected to end, in seconds from now.
    pub rest: Option<Forecast>,
    /// Whether that is in time.
    pub standing: Standing,
    /// A disk that sleeps is woken up then, in seconds since 1970, so that its pass can end in time.
    pub wakes: f64,
}

/// What to do with a disk, and how it stands.
pub fn next(identity: &str, wish: &Wish, known: &Known, facts: &Facts) -> (Next, Outlook) {
    let deadline = Deadline {
        every_s: wish.verify_every.as_secs_f64(),
        last: facts.last,
        known_since: known_since(known, facts.now.unix_s),
        spread: spread(identity),
    };
    let Moment { unix_s: now, minute } = facts.now;
    let ends = |left: Bytes| forecast(left, minute, &known.week, &wish.windows);
    let begins = match wish.windows.is_always() {
        true => deadline.begins(ends(facts.size)),
        false => begins_in_windows(&deadline, wish, known, facts),
    };
    let is_due = facts.left.is_some() || known.wanted_unix_s.is_some() || now + SOON >= begins;
    let rest = ends(facts.left.unwrap_or(facts.size));
    // A pass that has not begun is late only by its deadline.
    let standing = match deadline.standing(now, rest) {
        Standing::Behind if !is_due => Standing::InTime,
        standing => standing,
    };
    let needs = rest.map_or(UNKNOWN, |rest| (WAKES * rest.late_s / deadline.every_s).max(LEAST));
    let wakes = deadline.at() - needs * deadline.every_s;
    let outlook = Outlook { deadline: deadline.at(), begins, rest, standing, wakes };
    let spends = wish.when_behind == WhenBehind::Spend;
    let is_open = wish.windows.is_open(minute) || spends && standing == Standing::Overdue;
    let next = match () {
        () if !is_due && facts.last.is_none() => Next::Wait(Reason::Doubtful(begins)),
        () if !is_due => Next::Rest(begins),
        () if facts.paused.is_some() => Next::Wait(Reason::Paused(facts.paused.unwrap_or(f64::INFINITY))),
        () if !is_open => Next::Wait(Reason::Window(wish.windows.changes_after(minute).unwrap_or(0))),
        () if facts.on_battery && wish.on_battery == OnBattery::Pause => Next::Wait(Reason::Battery),
        () => match (facts.retry.filter(|retry| *retry > now), &facts.taken) {
            (Some(retry), _) => Next::Wait(Reason::Failed(retry)),
            (None, Some(taken)) => Next::Wait(Reason::Taken(taken.clone())),
            (None, None) => Next::Run(mean(wish, facts, |goal, most| deadline.spend(now, rest, goal, most))),
        },
    };
    (next, outlook)
}

/// Since when a disk that has no whole pass is there: where it had one, and nobody knows whether it is another disk since then, as after
/// the machine was started again, the next one is due as if it were the same.
fn known_since(known: &Known, now: f64) -> f64 {
    let done = known.passes.iter().map(|done| done.completed_unix_s as f64).filter(|done| *done <= now);
    done.fold(known.since_unix_s.min(now), f64::max)
}

/// When a pass begins that goes on only in windows: as one of them opens, so that its end does not cut the pass in two. There is to be time
/// for several times as much, but for that no pass begins in the window in which the last one has ended.
fn begins_in_windows(deadline: &Deadline, wish: &Wish, known: &Known, facts: &Facts) -> f64 {
    let Moment { unix_s: now, minute } = facts.now;
    let minute_at = |at: f64| (f64::from(minute) + (at - now) / 60.0).rem_euclid(f64::from(WEEK)) as u32;
    let latest = |times: f64| {
        let size = Bytes((facts.size.0 as f64 * times) as u64);
        deadline.begins_at_the_latest(|at| Some(forecast(size, minute_at(at), &known.week, &wish.windows)?.late_s))
    };
    let Some(begins) = latest(TIMES[0]) else { return deadline.begins(None) };
    let opening = |begins: f64| begins - f64::from(wish.windows.open_for(minute_at(begins)) * 60);
    let is_another = |opening: &f64| *opening > deadline.at() - deadline.every_s;
    TIMES.into_iter().filter_map(latest).map(opening).find(is_another).unwrap_or(begins)
}

/// Whether a disk that sleeps is woken up: somebody wants that, or its pass might not end in time.
pub fn wakes(wish: &Wish, known: &Known, outlook: &Outlook, now: f64) -> bool {
    wish.sleeping == Sleeping::Wake || known.wanted_unix_s.is_some() || now >= outlook.wakes
}

/// Whether a mean slowdown is another one, so that a scrub that runs is begun anew for it.
pub fn is_another(mean_s: f64, of_the_scrub_s: f64) -> bool {
    (mean_s / of_the_scrub_s).max(of_the_scrub_s / mean_s) > ANOTHER
}

/// Whether a mean slowdown is that of the goal, or hardly more. What hours give beyond that is not learned: the next pass would begin too
/// late.
pub fn is_of_the_goal(mean_s: f64, goal_s: f64) -> bool {
    mean_s <= ANOTHER * goal_s
}

/// The mean slowdown that is in force, in seconds.
fn mean(wish: &Wish, facts: &Facts, spend: impl Fn(f64, f64) -> f64) -> f64 {
    let goal = wish.mean_slowdown.map_or(facts.usual_mean_s, |mean| mean.as_secs_f64());
    let max = wish.max_slowdown.map_or(facts.usual_max_s, |max| max.as_secs_f64());
    // What is spent stays below the largest.
    let most = wish.spend_up_to.map_or(goal, |most| most.as_secs_f64()).min(max);
    match wish.when_behind {
        WhenBehind::Say => goal,
        WhenBehind::Spend => spend(goal, most),
    }
}

/// A number from 0 to 1 that is another for each disk, and always the same (FNV-1a, mixed as SplitMix64 does: names differ at their ends).
fn spread(identity: &str) -> f64 {
    let hash = identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use idlewise::Nanos;
    use idlewise::schedule::{Week, Windows};

    use super::*;
    use crate::Config;
    use crate::record::{Cost, Done};

    const DAY: f64 = 86_400.0;

    fn wish() -> Wish {
        Config::default().of("x", std::path::Path::new("/dev/x")).0
    }

    /// One that spends up to 3 ms.
    fn spends() -> Wish {
        Wish { when_behind: WhenBehind::Spend, spend_up_to: Some(Nanos::from_millis(3)), ..wish() }
    }

    /// A disk that gives 10 MB in a second of each hour, known for long.
    fn known() -> Known {
        let mut week = Week::default();
        (0..168).for_each(|hour| week.add(hour * 60, 3600.0, 36_000_000_000));
        Known { week, ..Known::default() }
    }

    fn facts(day: f64) -> Facts {
        let now = Moment { unix_s: day * DAY, minute: (day * 1440.0) as u32 % WEEK };
        let size = Bytes(1_000_000_000_000);
        Facts {
            now,
            size,
            left: None,
            last: Some(100.0 * DAY),
            usual_mean_s: 1e-3,
            usual_max_s: 5e-2,
            on_battery: false,
            taken: None,
            retry: None,
            paused: None,
        }
    }

    #[test]
    fn a_disk_rests_until_its_pass_is_due() {
        // It takes 1.16 days, and three times that are less than a quarter of 14 days.
        let at = |day: f64| next("x", &spends(), &known(), &facts(day));
        let (rest, outlook) = at(101.0);
        assert_eq!((outlook.deadline, outlook.standing), (114.0 * DAY, Standing::InTime));
        let begins = 110.5 - 3.5 * spread("x");
        assert!(rest == Next::Rest(outlook.begins) && (outlook.begins / DAY - begins).abs() < 1e-6, "{outlook:?}");
        assert_eq!(at(begins + 0.1).0, Next::Run(1e-3));
        // It was off meanwhile, and will not be in time any more: as much more is spent.
        let Next::Run(mean) = at(113.0).0 else { panic!() };
        let aim = (1.0 - 0.02 * 14.0) * DAY;
        assert!((mean / 1e-3 - (1e12 / 1e7 / aim).powi(2)).abs() < 1e-6, "{mean}");
        assert_eq!((at(115.0).0, at(115.0).1.standing), (Next::Run(3e-3), Standing::Overdue));
        // Where nobody has said so, nothing is.
        assert_eq!(next("x", &wish(), &known(), &facts(115.0)).0, Next::Run(1e-3));
        // One of which nothing is known begins at once, also when it was never verified.
        let new = Known { since_unix_s: 101.0 * DAY, ..Known::default() };
        let (begins, outlook) = next("x", &wish(), &new, &Facts { last: None, ..facts(101.0) });
        assert_eq!((begins, outlook.standing), (Next::Run(1e-3), Standing::Unknown));
    }

    /// After a restart nobody knows whether a disk without a name of its own is the same; that alone makes nothing overdue.
    #[test]
    fn a_disk_that_may_be_another_one_is_due_as_if_it_were_the_same() {
        let done = |day: f64| Done {
            started_unix_s: 0,
            completed_unix_s: (day * DAY) as u64,
            due_unix_s: 0.0,
            device_bytes: 1,
            bad_blocks: 0,
            cost: Cost::default(),
        };
        let long_known = Known { since_unix_s: 0.0, passes: vec![done(80.0), done(100.0)], ..known() };
        let at = |day: f64| next("x", &spends(), &long_known, &Facts { last: None, ..facts(day) });
        let (rest, outlook) = at(101.0);
        // It is not said to be verified.
        assert_eq!((rest, outlook.deadline), (Next::Wait(Reason::Doubtful(outlook.begins)), 114.0 * DAY));
        assert_eq!((outlook.standing, at(outlook.begins / DAY + 0.1).0), (Standing::InTime, Next::Run(1e-3)));
        assert_eq!(at(115.0).1.standing, Standing::Overdue);
        // What was done at a time that is still to come says nothing.
        assert_eq!(at(90.0).1.deadline, 94.0 * DAY);
        // One that was first seen at such a time is known since now, and its pass is due at once.
        let later = Known { since_unix_s: 200.0 * DAY, ..Known::default() };
        let (begins, outlook) = next("x", &spends(), &later, &Facts { last: None, ..facts(101.0) });
        assert_eq!((begins, outlook.deadline), (Next::Run(1e-3), 115.0 * DAY));
    }

    #[test]
    fn what_begins_within_a_second_begins() {
        let begins = next("x", &spends(), &known(), &facts(101.0)).1.begins;
        let at = |unix_s: f64| {
            let facts = facts(101.0);
            next("x", &spends(), &known(), &Facts { now: Moment { unix_s, ..facts.now }, ..facts }).0
        };
        assert_eq!((at(begins - 0.5), at(begins - 2.0)), (Next::Run(1e-3), Next::Rest(begins)));
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let due = || facts(112.0);
        let with = |wish: Wish, facts: Facts| next("x", &wish, &known(), &facts).0;
        // Day 112 is the first of a week as they are counted here.
        let weekend = Wish { windows: Windows::new(&["Sat,Sun"]).unwrap(), ..spends() };
        assert_eq!(with(weekend.clone(), due()), Next::Wait(Reason::Window(5 * 1440)));
        assert_eq!(with(weekend.clone(), facts(119.0)), Next::Run(3e-3), "overdue: the windows are open");
        let says = Wish { when_behind: WhenBehind::Say, ..weekend };
        assert_eq!(with(says.clone(), facts(119.0)), Next::Wait(Reason::Window(5 * 1440)));
        assert_eq!(with(says, facts(124.0)), Next::Run(1e-3));
        assert_eq!(with(wish(), Facts { on_battery: true, ..due() }), Next::Wait(Reason::Battery));
        assert_eq!(
            with(Wish { on_battery: OnBattery::Run, ..wish() }, Facts { on_battery: true, ..due() }),
            Next::Run(1e-3)
        );
        let taken = Facts { taken: Some("md0".into()), ..due() };
        assert_eq!(with(wish(), taken), Next::Wait(Reason::Taken("md0".into())));
        let failed = Facts { retry: Some(112.1 * DAY), ..due() };
        assert_eq!(with(wish(), failed), Next::Wait(Reason::Failed(112.1 * DAY)));
        let paused = Facts { paused: Some(f64::INFINITY), ..due() };
        assert_eq!(with(wish(), paused.clone()), Next::Wait(Reason::Paused(f64::INFINITY)));
        // What is not due rests.
        assert!(matches!(with(wish(), Facts { paused: paused.paused, ..facts(101.0) }), Next::Rest(_)));
        let over = Facts { retry: Some(111.9 * DAY), ..due() };
        assert_eq!(with(wish(), over), Next::Run(1e-3));
    }

    /// What is closed for five days of seven does not make a pass of a day begin at once.
    #[test]
    fn time_in_which_the_windows_are_closed_is_no_work() {
        let weekend = Wish { windows: Windows::new(&["Sat,Sun"]).unwrap(), ..wish() };
        let at = |day: f64, size: u64| {
            let facts = Facts { size: Bytes(size), ..facts(day) };
            next("x", &weekend, &known(), &facts).1.begins / DAY - 100.0
        };
        // Three hours: at the latest time that there is.
        let latest = 14.0 * (0.75 - 0.25 * spread("x"));
        assert!(
            (at(101.0, 100_000_000_000) - latest).abs() < 1e-6 && (at(105.0, 100_000_000_000) - latest).abs() < 1e-6
        );
        // Three times 1.4 days do not fit between the end of the last pass and day 114; twice that begins as the weekend of day 103 does.
        let begins = at(101.0, 1_200_000_000_000);
        assert!((begins - 3.0).abs() < 0.01, "{begins}");
        // Three times 0.5 days are in the weekend of day 110.
        assert!(at(101.0, 432_000_000_000) > 5.0, "{}", at(101.0, 432_000_000_000));
    }

    #[test]
    fn a_pass_that_somebody_wants_begins_at_once() {
        let wanted = Known { wanted_unix_s: Some(101.0 * DAY), ..known() };
        assert_eq!(next("x", &wish(), &wanted, &facts(101.0)).0, Next::Run(1e-3));
    }

    #[test]
    fn a_disk_sleeps_as_long_as_there_is_time() {
        let at = |day: f64, wish: &Wish, known: &Known| {
            let facts = facts(day);
            wakes(wish, known, &next("x", wish, known, &facts).1, facts.now.unix_s)
        };
        // Its pass takes 1.16 days, and is due on day 114.
        assert_eq!([101.0, 111.0, 112.2, 113.5].map(|day| at(day, &wish(), &known())), [false, false, true, true]);
        // What is short is not left until the last moment, and what is not known not either.
        let mut week = Week::default();
        (0..168).for_each(|hour| week.add(hour * 60, 3600.0, 1 << 50));
        let fast = Known { week, ..Known::default() };
        assert_eq!([112.0, 113.2, 113.4].map(|day| at(day, &wish(), &fast)), [false, false, true]);
        assert_eq!([106.9, 107.1].map(|day| at(day, &wish(), &Known::default())), [false, true]);
        let woken = Wish { sleeping: Sleeping::Wake, ..wish() };
        let wanted = Known { wanted_unix_s: Some(1.0), ..known() };
        assert!(at(101.0, &woken, &known()) && at(101.0, &wish(), &wanted));
    }

    #[test]
    fn a_pass_that_has_begun_goes_on() {
        let begun = Facts { left: Some(Bytes(1_000_000_000)), ..facts(101.0) };
        let slow = Wish { mean_slowdown: Some(Nanos(2_000_000)), max_slowdown: Some(Nanos(3_000_000)), ..spends() };
        let slow = Wish { spend_up_to: Some(Nanos::from_millis(9)), ..slow };
        let (goes_on, outlook) = next("x", &slow, &known(), &begun);
        assert_eq!((goes_on, outlook.rest.unwrap().expected_s.round()), (Next::Run(2e-3), 100.0));
        // What is spent stays below the largest slowdown.
        let late = Facts { last: Some(0.0), ..begun };
        assert_eq!(next("x", &slow, &known(), &late).0, Next::Run(3e-3));
    }

    #[test]
    fn passes_of_disks_that_are_due_together_begin_apart() {
        let mut all: Vec<f64> = (0..100).map(|disk| spread(&format!("wwn-0x5000c500a1b2{disk:04}"))).collect();
        all.sort_by(f64::total_cmp);
        let widest = all.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
        assert!(all[0] < 0.1 && all[99] > 0.9 && widest < 0.15, "{all:?}");
    }
}
