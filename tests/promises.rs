//! What Budget, Adaptive and Shaped promise, on every real trace; and the paper's comparison of policies.

mod common;

use common::real_trace;
use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::policy::{Adaptive, Budget, Policy, Waiting};
use idlewise::simulate::{Lane, Scrub, Service, Simulation, simulate};
use idlewise::trace::{ReadOptions, open};
use idlewise::tune::{Goal, best_within, compare, shaped};
use idlewise::{Bytes, Nanos, TotalTime};

const TRACES: [&str; 20] = [
    "hplajw.1week.srt",
    "blkreplay_linux-mysql.load.gz",
    "blkreplay_windows-mssql.load.gz",
    "blkreplay_windows-shared-server.load.gz",
    "cloudPhysicsIO.vscsi",
    "msr/wdev_1.csv",
    "msr/wdev_3.csv",
    "msr/web_3.damaged.txt.xz",
    "msr/hm_0.excerpt.csv",
    "blktrace-hadoop/e9.cpu0-3.tar.xz",
    "blktrace-hadoop/nvme.blkparse.txt.xz",
    "nexus5/log111_email.txt.xz",
    "nexus5/log131_music.txt.xz",
    "nexus5/log146_callIn.txt.xz",
    "nexus5/log152_YouTube.txt.xz",
    "nexus5/log156_download.txt.xz",
    "nexus5/log186_twitter.txt.xz",
    "nexus5/log191_facebook.txt.xz",
    "pixel6a/genshin_impact_exec.csv.gz",
    "pixel6a/telegram_exec.csv.gz",
];
const LONGEST: Nanos = Nanos::from_millis(50);
const TARGETS: [Nanos; 2] = [Nanos(250_000), Nanos::from_millis(2)];

fn disks(name: &str, model: &DiskModel) -> Option<Vec<Idleness>> {
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let trace = open(&[real_trace(name)?], &options).unwrap();
    Some(Idleness::of_trace(&trace, model).unwrap())
}

/// Runs a policy inside a budget; the sum of delays must stay within the target times the requests, one collision, one more for each day that began, and what of these is forgotten in six hours.
#[track_caller]
fn keeps_its_bound(name: &str, disk: &Idleness, model: &DiskModel, target: Nanos, policy: Box<dyn Policy>) {
    let work = Box::new(Scrub::new(Service::OfSize(model.clone())));
    let lane = Lane::new(Box::new(Budget::new(policy, target)), work);
    let mut simulation = Simulation::new(disk, vec![lane]);
    let mut requests = disk.leading_requests();
    let (mut costliest, mut before, mut collisions, mut passed) = (TotalTime::ZERO, TotalTime::ZERO, 0, Nanos::ZERO);
    for interval in &disk.intervals {
        simulation.interval(interval, std::iter::empty());
        requests += interval.followers;
        let outcome = &simulation.outcome;
        if outcome.collisions > collisions {
            let own = simulation.carried() * interval.followers;
            (before, collisions) = (outcome.delay_sum.saturating_sub(own), outcome.collisions);
        }
        costliest = costliest.max(outcome.delay_sum.saturating_sub(before));
        passed.0 += interval.busy_before.0 + interval.length.0;
        let days = 1 + passed.0 / Nanos::from_secs(24 * 3_600).0;
        let bound = target * requests + costliest * ((1 + days) * (1 + 4 * days));
        assert!(outcome.delay_sum <= bound, "{name}: {} of {bound} at {target}", outcome.delay_sum);
    }
}

#[test]
fn budget_and_adaptive_hold_their_bound_on_every_trace() {
    let model = DiskModel::ultrastar_15k450();
    for name in TRACES {
        for disk in disks(name, &model).iter().flatten() {
            for target in TARGETS {
                let greedy = Waiting { idle_wait: Nanos::ZERO, request_size: Bytes::from_kib(1024) };
                keeps_its_bound(name, disk, &model, target, Box::new(greedy));
                keeps_its_bound(
                    name,
                    disk,
                    &model,
                    target,
                    Box::new(Adaptive::new(&Goal::new(target, LONGEST), &model)),
                );
            }
        }
    }
}

#[test]
fn shaped_keeps_its_goal_on_every_trace() {
    let model = DiskModel::ultrastar_15k450();
    for name in TRACES {
        let Some(disks) = disks(name, &model) else { continue };
        let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
        for (target, context) in [(TARGETS[0], false), (TARGETS[1], true)] {
            let goal = Goal::new(target, LONGEST);
            let Some((policy, told)) = shaped(&disks, &model, &goal, context) else { continue };
            let outcome = simulate(&disks, &model, |_| Box::new(policy.clone()));
            assert_eq!(outcome, told, "{name}");
            assert!(outcome.delay_sum <= target * requests, "{name} at {target}");
            assert!(outcome.longest_delay <= LONGEST, "{name}: {}", outcome.longest_delay);
        }
    }
}

/// DSN 2012, figure 14: Waiting above AR where idle times have long tails, and Lossless Waiting near the Oracle.
#[test]
fn waiting_is_above_ar_where_tails_are_long_and_lossless_waiting_near_the_oracle() {
    let model = DiskModel::ultrastar_15k450();
    for (name, rate) in
        [("blkreplay_linux-mysql.load.gz", 0.05), ("blkreplay_windows-mssql.load.gz", 0.01), ("hplajw.1week.srt", 0.02)]
    {
        let Some(disks) = disks(name, &model) else { continue };
        let points = compare(&disks, &model, Bytes::from_kib(64), &|_| ());
        let best = |policy| best_within(&points, policy, rate).unwrap_or(0.0);
        assert!(best("waiting") > best("ar"), "{name}");
        assert!(best("lossless-waiting") > best("oracle") - 0.02, "{name}");
    }
}
