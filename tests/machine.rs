//! Disks with faults, on their own command sets: in an emulated machine with a full kernel, SCSI, SATA and NVMe disks, arrays
//! and mapped devices. The scripts are in machine/; what they print is asserted here.

#[path = "common/machine.rs"]
mod machine;

use machine::{bad, steps};
use serde_json::Value;

/// What the kernel writes later for a command is known to be its own, where the kernel says so, and what it writes for others is not.
#[test]
fn what_is_written_later_for_a_command_is_its_own() {
    let Some(steps) = steps("command.sh") else { return };
    let disk = |name: &str| {
        let report = steps[name].json();
        assert_eq!((&report["held_by"], &report["exit_code"]), (&"group".into(), &0.into()), "{name}: {report}");
        (report["writes_later_known"] == true, report["disks"].clone())
    };
    let number = |disk: &Value, name: &str| disk[name].as_u64().unwrap_or_else(|| panic!("{name} of {disk}"));
    let (known, disks) = disk("writes-report");
    let filled = 256 * 65_536;
    assert!(known && number(&disks[0], "moved_bytes") >= filled, "{disks}");
    // What the journal writes is nobody's.
    assert!(number(&disks[0], "foreground_requests") < 100, "{disks}");
    assert_eq!(steps["high"].output.trim(), "33554432", "{:?}", steps["high"]);
    // Of a disk that the command does not use nothing is told.
    let (known, disks) = disk("beside-report");
    let moved: u64 = disks.as_array().unwrap().iter().map(|disk| number(disk, "moved_bytes")).sum();
    assert!(known && moved < 65_536, "{disks}");
    assert!(!disk("inside-report").0);
    assert_eq!([&*steps["groups"].output, &*steps["killed-groups"].output], ["", ""]);
    assert_eq!((steps["killed-free"].exit, steps["unmounted"].exit), (0, 0), "{steps:?}");
}

/// Every injected bad block is found with its exact number, by each command set; nothing is written.
#[test]
fn each_command_set_finds_exactly_the_bad_blocks() {
    let Some(steps) = steps("faults.sh") else { return };
    type Case = (&'static str, &'static str, &'static [(u64, u64)]);
    let cases: &[Case] = &[
        // These answer a verify without reading.
        ("qemu-scsi", "read", &[]),
        ("qemu-sata", "read", &[]),
        ("qemu-nvme", "nvme-verify", &[(5000, 2), (100_000, 1)]),
        ("qemu-nvme-ioctl", "nvme-verify-ioctl", &[(5000, 2), (100_000, 1)]),
        ("plain", "scsi-verify-16", &[(5000, 2), (100_000, 1)]),
        ("staggered", "scsi-verify-16", &[(5000, 2), (100_000, 1)]),
        ("verify-10", "scsi-verify-10", &[(5000, 1)]),
        ("no-verify", "read", &[(5000, 2)]),
        ("ata", "ata-read-verify-ext", &[(300, 2), (99_999, 1)]),
        ("not-found", "ata-read-verify-ext", &[(5000, 1)]),
        ("timed-out-5-15", "ata-read-verify-ext", &[(5000, 1)]),
        ("timed-out", "ata-read-verify-ext", &[(5000, 1)]),
        ("deferred", "scsi-verify-16", &[(5000, 1)]),
        ("descriptor", "scsi-verify-16", &[(77, 1)]),
        ("short", "scsi-verify-16", &[(8000, 4)]),
        ("aborts", "scsi-verify-16", &[(8000, 1)]),
        ("partition", "scsi-verify-16", &[(2952, 1)]),
        ("mapper", "read", &[(8000, 2)]),
        ("scsi-debug", "read", &[(4660, 3)]),
    ];
    for (name, verifier, expected) in cases {
        let step = &steps[*name];
        let result = step.json();
        assert_eq!((&result["state"], &result["verifier"]), (&"complete".into(), &(*verifier).into()), "{name}");
        assert_eq!(bad(&result), *expected, "{name}");
        assert_eq!(step.exit, if expected.is_empty() { 0 } else { 3 }, "{name}: {}", step.errors);
        assert_eq!(result["verified_bytes"], result["device_bytes"], "{name}");
        // Our own commands are not taken for the foreground's.
        assert_eq!(result["measured"]["foreground_requests"], 0, "{name}");
    }
    assert!(steps["aborts"].json()["retries"].as_u64().unwrap() > 0);
    assert_eq!(steps["plain"].json()["retries"], 0);
    assert!(steps["mapper-scsi"].errors.contains("dm-0 is a device-mapper device"), "{:?}", steps["mapper-scsi"]);

    // Its bytes, the kernel's counter of writes, and the disk's own log of commands.
    assert_eq!((steps["plain-hash"].exit, steps["plain-writes"].exit), (0, 0));
    assert_eq!(steps["plain-write-commands"].exit, 1, "{:?}", steps["plain-write-commands"]);

    // Of three disks one dies and one is taken away; the third is scrubbed all the same.
    let many = &steps["many"];
    assert_eq!(many.exit, 1);
    let many = many.json();
    assert_eq!(
        (&many[0]["state"], &many[1]["state"], &many[2]["state"]),
        (&"failed".into(), &"failed".into(), &"complete".into())
    );
    assert!(many[0]["failure"].as_str().unwrap().contains("nothing on it can be read any more"), "{many}");
    assert_eq!(many[1]["failure"], "the device is gone");
    assert_eq!((bad(&many[0]), bad(&many[1]), bad(&many[2])), (vec![], vec![], vec![(9, 1)]));

    // Both sleep on, until a pass of one is wanted.
    let said = &steps["sleepers-said"].output;
    assert_eq!((steps["asleep"].exit, steps["asleep"].output.split_whitespace().count()), (0, 2), "{said}");
    assert_eq!(steps["woken"].output.trim(), "/tmp/scsi-sleeps", "{said}");

    let testing = &steps["self-test"].json();
    assert!(testing["elapsed_s"].as_f64().unwrap() > 6.0, "{testing}");
    let during = steps["self-test-during"].json();
    let running: Vec<&Value> = during.as_array().unwrap().iter().filter(|one| one["state"] == "running").collect();
    assert_eq!((running.len(), &running[0]["doing"]), (1, &"others".into()), "{during}");
}

#[test]
fn redundancy_repairs_and_privileges_are_few() {
    let Some(steps) = steps("redundancy.sh") else { return };
    // Members of one array, in use by it, and scrubbed one after the other.
    let members = steps["members"].json();
    assert_eq!((bad(&members[0]), bad(&members[1])), (vec![(6000, 2)], vec![]));
    assert_eq!(steps["dry-run"].json()[1]["arrays"], serde_json::json!(["md0"]));
    assert_eq!(steps["md-check"].exit, 4);
    assert_eq!(steps["md-check"].json()["verified_bytes"], 0, "md's check was not waited for");

    // Through md: only what was unreadable is written, and by md.
    assert!(steps["md-in-use"].errors.contains("part of an array"), "{:?}", steps["md-in-use"]);
    let fates = |name: &str| -> Vec<(u64, u64, String)> {
        let blocks = steps[name].json()["blocks"].as_array().unwrap().clone();
        let number = |value: &Value| value.as_u64().unwrap();
        let fate =
            |one: &Value| (number(&one["lba"]), number(&one["blocks"]), one["result"].as_str().unwrap().to_string());
        blocks.iter().map(fate).collect()
    };
    assert_eq!(fates("md-repair"), [(6000, 2, "repaired".to_string())]);
    assert_eq!(steps["md-repair"].exit, 0);
    assert_eq!((steps["md-not-yet"].exit, steps["md-writes"].exit), (1, 0), "written before the repair, or not by it");
    // Logged with all that md may write, before and after.
    let logged: Vec<Value> = steps["md-log"].output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!([&logged[0]["event"], &logged[1]["event"]], ["will-check", "checked"]);
    let (first, count) = (logged[0]["lba"].as_u64().unwrap(), logged[0]["blocks"].as_u64().unwrap());
    assert!(first <= 6000 && first + count > 6001 && count <= 256, "{logged:?}");
    // Of a mirror md would overwrite what can be read as well: not where that is something else.
    let differs = &steps["md-differs"];
    assert_eq!(
        (differs.exit, steps["md-differs-writes"].exit, steps["md-differs-same"].exit),
        (1, 1, 0),
        "{differs:?}"
    );
    assert!(differs.errors.contains("holds something else at block 1040"), "{differs:?}");
    let mixed = &steps["mixed"];
    assert_eq!(
        (steps["mixed-before"].bad(), mixed.exit, steps["mixed-same"].exit),
        (vec![(6000, 2)], 1, 0),
        "{mixed:?}"
    );
    assert!(mixed.errors.contains("holds something else at block 6010"), "{mixed:?}");
    // Nothing is said of the array once a member is gone.
    let (goes, gone) = (&steps["member-goes"], steps["member-gone"].output.trim());
    let unjudged = goes.json()["content"]["unjudged_bytes"].as_u64().unwrap();
    assert_eq!((goes.exit, gone), (1, "1"), "{goes:?}");
    assert!(unjudged > 1 << 20 && goes.errors.contains("it lacks members"), "{goes:?}");
    // A pass over an array that was reshaped meanwhile is not over.
    let reshaped = steps["reshaped"].json();
    assert_eq!((steps["reshaped"].exit, &reshaped["state"]), (4, &"interrupted".into()), "{reshaped}");
    assert!(reshaped["failure"].as_str().unwrap().contains("was reshaped") && bad(&reshaped).is_empty(), "{reshaped}");
    assert_eq!(reshaped["verified_bytes"], 0, "the next run begins at the beginning: {reshaped}");
    // A killed repair leaves a check that stands at its limit, and a note: the next scrub puts it back. Without a note it is nobody's.
    let said = |name: &str| (steps[name].exit, steps[name].output.split_whitespace().collect::<Vec<_>>());
    let unknown = &steps["md-stands-unknown"];
    assert!(unknown.exit == 1 && unknown.errors.contains("md1: is busy (check)"), "{unknown:?}");
    assert_eq!((said("md-stands"), said("md-stands-again")), ((0, vec!["check"]), (0, vec!["idle", "max"])));
    assert_eq!(said("md-stands-over"), (0, vec!["idle", "max"]));
    assert_eq!(
        (steps["md-stands-scrub"].exit, steps["md-stands-repair"].exit),
        (0, 0),
        "{:?}",
        steps["md-stands-repair"]
    );
    assert_eq!((steps["md-again"].bad(), steps["md-same"].exit), (vec![], 0));

    // From a mirror: nothing without leave, nothing above the cap, then the blocks that the mirror has.
    assert_eq!(steps["mirror-before"].bad(), [(700, 3), (9000, 1)]);
    assert_eq!((steps["mirror-without-leave"].exit, steps["mirror-cap"].exit, steps["mirror-itself"].exit), (2, 1, 1));
    assert_eq!(steps["mirror-not-yet"].exit, 0, "written without leave");
    let (repaired, left) = ("repaired".to_string(), "source-unreadable".to_string());
    assert_eq!(fates("mirror"), [(700, 3, repaired), (9000, 1, left)]);
    assert_eq!((steps["mirror-again"].bad(), steps["mirror-same"].exit), (vec![(9000, 1)], 0));
    assert_eq!(steps["mirror-log"].output.lines().count(), 6);

    // Without privilege VERIFY works where the device may be read; what more is needed is named.
    assert_eq!((steps["nobody"].exit, &steps["nobody"].json()["verifier"]), (0, &"scsi-verify-16".into()));
    assert!(steps["nobody"].errors.contains("CAP_BPF and CAP_PERFMON"));
    assert!(steps["nobody-ata"].errors.contains("CAP_SYS_RAWIO"));
    let capable = steps["capable"].json();
    assert_eq!((&capable["verifier"], &capable["monitor"]), (&"ata-read-verify-ext".into(), &"bpf".into()));
    assert!(steps["nvme-nobody"].errors.contains("CAP_SYS_ADMIN"));
    assert_eq!(steps["nvme-capable"].json()["verifier"], "nvme-verify");
    assert_eq!(steps["nobody-status"].exit, 3, "what neither mirror could read is still known");

    // A repeated verify that takes no time comes from the cache, until that is switched off; and it is switched back.
    for name in ["cached", "scsi-cached"] {
        let probed = steps[name].json();
        assert_eq!(probed["answered_from_cache"], true, "{probed}");
        let again = |field: &str| -> f64 {
            let times = probed[field].as_array().unwrap().iter().map(|one| one["again_s"].as_f64().unwrap());
            times.fold(f64::INFINITY, f64::min)
        };
        assert!(again("repeated_cache_off") > 0.012 && again("repeated") < 0.012, "{probed}");
        // Off, and on again.
        assert_eq!(steps[&format!("{name}-commands")].output.lines().count(), 2, "{name}");
    }
    assert_eq!((steps["killed-next"].exit, steps["killed-commands"].output.trim()), (0, "2"), "{steps:?}");
}

/// Who uses a volume that is stacked on other disks is seen as on a disk, request by request, and its scrub is told from them.
#[test]
fn users_of_a_volume_are_seen_by_their_bios() {
    let Some(steps) = steps("volumes.sh") else { return };
    for volume in ["mirror", "linear", "secret"] {
        let step = |name: &str| steps[&format!("{volume}-{name}")].json();
        let recorded = step("recorded");
        assert_eq!(
            (&recorded["reads"]["requests"], &recorded["writes"]["requests"]),
            (&50.into(), &25.into()),
            "{volume}: {recorded}"
        );
        let [alone, beside] = ["alone", "beside"].map(step);
        assert_eq!((&alone["state"], &alone["monitor"]), (&"complete".into(), &"bpf".into()), "{volume}: {alone}");
        assert_eq!(alone["measured"]["foreground_requests"], 0, "{volume}: {alone}");
        assert_eq!(beside["measured"]["foreground_requests"], 20, "{volume}: {beside}");
    }
}

/// Since Linux 7.0 XFS is told which blocks cannot be read, each once; before, it cannot be.
#[test]
fn xfs_learns_what_cannot_be_read() {
    let Some(steps) = steps("xfs.sh") else { return };
    assert_eq!((steps["mounted"].exit, steps["whole"].bad()), (0, vec![(5000, 2), (100_000, 1)]), "{steps:?}");
    let release = &steps["release"].output;
    let told = if release.split('.').next().and_then(|major| major.parse().ok()) >= Some(7) {
        "daddr 0x1388 bbcount 0x2 error -61\ndaddr 0x186a0 bbcount 0x1 error -61"
    } else {
        ""
    };
    assert_eq!((steps["told"].output.trim(), steps["can-be-told"].exit == 0), (told, !told.is_empty()), "{release}");
}

/// ZFS's own scrub of a pool: it pauses for others, counts what ZFS counts, is left alone where it is somebody else's, and is paused by whoever
/// comes next where it was killed.
#[test]
fn the_scrub_of_zfs_is_paused_for_others() {
    let Some(steps) = steps("zfs.sh") else { return };
    assert_eq!(steps["made"].exit, 0, "{:?}", steps["made"]);
    let says = |name: &str, words: &str| {
        let step = &steps[name];
        assert!((step.output.clone() + &step.errors).contains(words), "{name}: {step:?}");
    };
    assert_eq!((steps["too-short"].exit, steps["not-yet"].exit), (64, 2));
    says("too-short", "--max-slowdown 3s accepts that");
    assert_eq!(steps["untouched"].output, "");
    let number = |name: &str| steps[name].output.trim().parse::<u64>().unwrap();
    let damaged = number("damaged-counted") - number("damaged-before");
    assert!(damaged > 50, "{damaged}");
    for (name, wrong, exit) in
        [("alone", 0, 0), ("damaged", damaged, 3), ("mended", 0, 0), ("beside", 0, 0), ("resumed", 0, 0)]
    {
        let report = steps[name].json();
        assert_eq!((&report["state"], steps[name].exit), (&"complete".into(), exit), "{name}: {report}");
        assert_eq!(
            (&report["wrong"], &report["done_bytes"]),
            (&wrong.into(), &report["all_bytes"]),
            "{name}: {report}"
        );
    }
    for name in ["alone-after", "damaged-after", "beside-after", "resumed-after"] {
        says(name, "scrub repaired");
    }
    says("damaged-after", "with 0 errors");
    let beside = steps["beside"].json();
    let users = &beside["disks"][0];
    assert!(beside["opens"].as_u64() >= Some(2) && users["monitor"] == "zfs-counters", "{beside}");
    // Each that came while it was at work is taken to have waited until it was paused.
    let seen = users["foreground_requests"].as_u64().unwrap();
    assert!(seen > 0 && seen <= steps["beside-reads"].output.lines().count() as u64, "{beside}");
    let (longest, closing) = (users["max_slowdown_s"].as_f64(), beside["closing_max_s"].as_f64());
    assert!(longest > Some(0.1) && (longest.unwrap() - closing.unwrap()).abs() < 0.1, "{beside}");
    assert_eq!((&steps["ended"].json()["state"], steps["ended"].exit), (&"interrupted".into(), 4));
    says("ended-after", "scrub paused");
    assert_eq!(steps["anew"].exit, 64);
    assert_eq!((steps["beside-another"].exit, steps["taken-away"].exit, steps["other-disk"].exit), (1, 1, 1));
    says("other-disk", "another idlewise is scrubbing it");
    says("beside-another", "begun by somebody else");
    says("another", "scrub in progress");
    says("taken-away-why", "somebody else has paused");
    says("taken-away-after", "scrub paused");
    let lines = |name: &str| steps[name].output.lines().map(String::from).collect::<Vec<_>>();
    // It was at work when it was killed, most times.
    assert!(lines("left").iter().filter(|line| line.contains("in progress")).count() >= 3, "{:?}", steps["left"]);
    assert_eq!(lines("put-back").len(), machine::kills().unwrap_or(5));
    assert!(!lines("put-back").iter().any(|line| line.contains("in progress")));
    assert_eq!(steps["notes"].output, "");
    assert_eq!((steps["degraded"].exit, steps["exported"].exit), (1, 1));
    says("degraded", "DEGRADED");
    says("exported", "is not imported");
}

/// md's own check, as a gate and in steps: it comes to its end alone and beside others, counts what md counts, and whatever it has set is put
/// back, also where it was killed; a rebuild that is started then goes through.
#[test]
fn the_check_of_md_is_held_and_leaves_nothing_behind() {
    let Some(steps) = steps("owners.sh") else { return };
    let before = &steps["before"].output;
    assert_eq!(before.split('\n').next(), Some("idle"), "{before}");
    assert_eq!((steps["not-yet"].exit, &steps["untouched"].output), (2, before), "{:?}", steps["not-yet"]);
    for (name, opens) in [("alone", 1), ("beside", 2)] {
        for by in ["md-gate", "md-steps"] {
            let step = &steps[&format!("{name}-{by}")];
            let report = step.json();
            assert_eq!((&report["state"], step.exit), (&"complete".into(), 3), "{name} {by}: {report}");
            // Two windows of 128 sectors.
            assert_eq!(
                (&report["wrong"], &report["done_bytes"]),
                (&256.into(), &33_488_896.into()),
                "{name} {by}: {report}"
            );
            assert!(report["opens"].as_u64() >= Some(opens), "{name} {by}: {report}");
            assert_eq!(&steps[&format!("{name}-{by}-after")].output, before, "{name} {by}");
        }
    }
    let users = &steps["beside-md-gate"].json()["disks"][0];
    assert_eq!((&users["name"], &users["monitor"]), (&"md0".into(), &"bpf".into()), "{users}");
    let (seen, written) =
        (users["foreground_requests"].as_u64(), steps["beside-md-gate-writes"].output.lines().count());
    assert!(written > 1 && seen >= Some(written as u64 / 2), "{written} of {users}");
    let [ended, resumed] = ["ended", "resumed"].map(|name| steps[name].json());
    assert_eq!((&ended["state"], &steps["ended-after"].output), (&"interrupted".into(), before), "{ended}");
    assert_eq!((&resumed["state"], &resumed["wrong"]), (&"complete".into(), &256.into()), "{ended} {resumed}");
    let again = steps["again"].json();
    let in_one_go = steps["in-one-go"].output.trim().parse::<u64>().unwrap();
    assert_eq!((&again["state"], &again["wrong"]), (&"complete".into(), &in_one_go.into()), "{again}");
    assert!((1..60).contains(&steps["turns"].exit) && in_one_go >= 5 * 128, "{} {in_one_go}", steps["turns"].exit);
    let taken = &steps["taken-away"];
    assert_eq!((&taken.json()["state"], taken.exit), (&"failed".into(), 1), "{taken:?}");
    assert!(taken.errors.contains("somebody else has ended"), "{taken:?}");
    assert_eq!(&steps["taken-away-after"].output, before);
    for name in ["beside-another", "not-beside"] {
        let step = &steps[name];
        assert!(step.exit == 1 && step.errors.contains("md3 (check)"), "{name}: {step:?}");
    }
    assert_eq!(["other", "other-is-over"].map(|name| steps[name].output.trim()), ["check", "idle"]);
    let line = before.replace('\n', " ");
    let put_back: Vec<_> = steps["put-back"].output.lines().map(|line| line.trim_end()).collect();
    assert!(put_back.len() >= 20 && put_back.iter().all(|one| *one == line.trim_end()), "{put_back:#?}");
    // It was killed at work as well.
    let left = &steps["left"].output;
    assert!(left.lines().filter(|one| one.starts_with("check")).count() >= 5, "{left}");
    assert!(steps["degraded"].output.lines().all(|degraded| degraded == "0"), "{:?}", steps["degraded"]);
    assert_eq!(steps["notes"].output, "");
}
