//! Errors on members of arrays, of md and of device-mapper, and members that are lost or replaced: in an emulated machine.

#[path = "common/machine.rs"]
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use machine::{Step, bad, steps};

/// Where the first copy of a sector lies that is at this place of a member, in the arrays of arrays.sh (md(4)): chunks are of 128 sectors.
fn first_copy(array: &str, member: u64, sector: u64) -> u64 {
    const CHUNK: u64 = 128;
    const HALF: u64 = 12_288;
    let (row, within) = (sector / CHUNK, sector % CHUNK);
    match array {
        // Two copies beside each other, on three members.
        "md102" => (row * 3 + member) / 2 * 2 / 3 * CHUNK + within,
        // One in either half.
        "md103" => sector % HALF,
        // One in the next row.
        "md104" => row / 2 * 2 * CHUNK + within,
        _ => sector,
    }
}

/// The sectors of runs in a result.
fn sectors_of(runs: impl Iterator<Item = (u64, u64)>) -> BTreeSet<u64> {
    runs.flat_map(|(lba, blocks)| lba..lba + blocks).collect()
}

/// The sectors that a repair has dealt with in this way.
fn with_fate(repair: &Step, fate: &str) -> BTreeSet<u64> {
    let result = repair.json();
    let runs = result["blocks"].as_array().unwrap().iter().filter(|run| run["result"] == fate);
    sectors_of(runs.map(|run| (run["lba"].as_u64().unwrap(), run["blocks"].as_u64().unwrap())))
}

fn left(after: &Step) -> BTreeSet<u64> {
    sectors_of(after.bad().into_iter())
}

/// Which members are wrong in the sectors that are wrong.
fn wrong_members(injected: &[Vec<u64>]) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut wrong = BTreeMap::<u64, BTreeSet<u64>>::new();
    for one in injected {
        wrong.entry(one[1]).or_default().insert(one[0]);
    }
    wrong
}

/// Of mirrors, what most of them agree upon is put right, and the rest is left.
fn copies_are_repaired(array: &str, injected: &[Vec<u64>], members: usize, repair: &Step, after: &Step) {
    let sectors = wrong_members(injected);
    let known = |wrong: &BTreeSet<u64>| 2 * wrong.len() < members;
    let (cured, undecided): (BTreeMap<_, _>, BTreeMap<_, _>) = sectors.into_iter().partition(|(_, wrong)| known(wrong));
    let [cured, undecided] = [cured, undecided].map(|sectors| sectors.into_keys().collect::<BTreeSet<_>>());
    assert_eq!(
        (with_fate(repair, "repaired"), with_fate(repair, "undecided")),
        (cured.clone(), undecided.clone()),
        "{array}: {repair:?}"
    );
    assert!(members == 2 || cured.len() > 90, "{array}: {cured:?}");
    assert_eq!(left(after), undecided, "{array}: {after:?}");
}

/// Of RAID 6, a parity that is wrong is put right where nothing else is wrong in what md goes through at once; and if the parities are trusted,
/// also the data of members: where no more than two are wrong in a page, which is what md knows, and each sector is wrong on one.
fn parities_are_repaired<'a>(injected: &[Vec<u64>], step: &dyn Fn(&str) -> &'a Step) {
    const UNIT: u64 = 128;
    const PAGE: u64 = 8;
    let sectors = wrong_members(injected);
    let is_parity = |sector: u64, member: u64| {
        let p = 4 - sector / UNIT % 5;
        [p, (p + 1) % 5].contains(&member)
    };
    let only_parity = |(sector, wrong): (&u64, &BTreeSet<u64>)| {
        wrong.len() == 1 && wrong.iter().all(|member| is_parity(*sector, *member))
    };
    let others: BTreeSet<u64> =
        sectors.iter().filter(|one| !only_parity(*one)).map(|(sector, _)| sector / UNIT).collect();
    let cured: BTreeSet<u64> = sectors.keys().copied().filter(|sector| !others.contains(&(sector / UNIT))).collect();
    let foreseen = &step("foreseen").errors;
    assert!(foreseen.contains("would be left (only the parities tell what is right: --trust-parities"), "{foreseen}");
    let (repair, after) = (step("repair"), step("after"));
    assert_eq!(with_fate(repair, "repaired"), cured, "{repair:?}");
    assert!(cured.len() >= 3, "{cured:?}");
    let told = with_fate(repair, "by-parities");
    let by_one = |sector: &u64| sectors[sector].len() == 1;
    let expected =
        sectors.keys().filter(|sector| by_one(sector) && !is_parity(**sector, *sectors[sector].first().unwrap()));
    assert_eq!(told, expected.copied().collect(), "{repair:?}");
    assert_eq!(left(after), sectors.keys().copied().filter(|sector| !cured.contains(sector)).collect(), "{after:?}");
    // Trusted.
    let mut pages = BTreeMap::<u64, (BTreeSet<u64>, bool)>::new();
    for (sector, wrong) in &sectors {
        let page = pages.entry(sector / PAGE).or_default();
        page.0.extend(wrong);
        page.1 |= wrong.len() > 1;
    }
    let cannot = |sector: u64| pages[&(sector / PAGE)].1 || pages[&(sector / PAGE)].0.len() > 2;
    let windows: BTreeSet<u64> = sectors.keys().filter(|sector| cannot(**sector)).map(|sector| sector / UNIT).collect();
    // A parity alone is put right by windows.
    let stays = |sector: &u64| {
        cannot(*sector)
            || windows.contains(&(sector / UNIT))
                && pages[&(sector / PAGE)].0.iter().all(|member| is_parity(*sector, *member))
    };
    let expected: BTreeSet<u64> = sectors.keys().copied().filter(stays).collect();
    assert!(told.range(..1920).next().is_some(), "md has none of them in memory: {told:?}");
    let (repair, after) = (step("repair--trust-parities"), step("after--trust-parities"));
    assert_eq!(left(after), expected, "{repair:?}");
    assert!(expected.len() < 10, "{expected:?}");
    // Byte for byte, and nothing is left marked.
    let same = &step("same").output;
    let differs: BTreeSet<u64> = same.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(differs, expected, "{same}");
    assert_eq!(step("bad-blocks").output.trim(), "");
}

/// Errors are put behind the backs of arrays of each layout while they are written to: each is found at its place, no other is invented, and
/// md's own check counts as many. A table of it is printed.
#[test]
fn every_error_on_members_of_arrays_is_found() {
    let Some(steps) = steps("arrays.sh") else { return };
    every_error_is_found(
        &steps,
        &[
            ("md11", "RAID 1, 2 members", 128),
            ("md12", "RAID 1, 3 members", 128),
            ("md4", "RAID 4, 3 members", 8),
            ("md5", "RAID 5, 4 members", 8),
            ("md6", "RAID 6, 5 members", 8),
            ("md101", "RAID 10 near 2, 4 members", 128),
            ("md102", "RAID 10 near 2, 3 members", 128),
            ("md103", "RAID 10 far 2, 3 members", 128),
            ("md104", "RAID 10 offset 2, 3 members", 128),
        ],
    );
    what_nothing_uses_may_differ(&steps);
}

/// The members of a mirror differ everywhere but in what its file system uses: only while that is mounted is it known.
fn what_nothing_uses_may_differ(steps: &BTreeMap<String, Step>) {
    const MIB: u64 = 1 << 20;
    let number = |name: &str| steps[name].output.trim().parse::<u64>().unwrap();
    let told = |step: &Step| step.bad().iter().map(|(_, blocks)| blocks).sum::<u64>() * 512;
    let free = |step: &Step| step.json()["content"]["free_bytes"].as_u64().unwrap();
    let (clean, used, unmounted) = (&steps["free-clean"], &steps["free-used"], &steps["free-unmounted"]);
    assert_eq!((clean.exit, clean.bad()), (0, vec![]), "{clean:?}");
    assert!(free(clean) > 8 * MIB, "{clean:?}");
    assert_eq!((used.exit, used.bad()), (3, vec![(number("free-sector"), 1)]), "{used:?}");
    assert!(unmounted.exit == 3 && told(unmounted) > 8 * MIB, "{unmounted:?}");

    let (copies, parity) = (&steps["free-raid10"], &steps["free-raid5"]);
    assert_eq!((copies.exit, copies.bad()), (0, vec![]), "{copies:?}");
    // One of two pairs of members differs.
    assert!(free(copies) > 4 * MIB, "{copies:?}");
    assert!(parity.exit == 3 && told(parity) > 8 * MIB, "{parity:?}");

    // What no volume has may be anyone's.
    let rest = (10 * MIB / 512, 2 * MIB / 512);
    let (clean, used) = (&steps["volumes-clean"], &steps["volumes-used"]);
    assert_eq!((clean.exit, clean.bad()), (3, vec![rest]), "{clean:?}");
    assert!(free(clean) > 6 * MIB, "{clean:?}");
    assert_eq!((used.exit, used.bad()), (3, vec![(number("volumes-sector"), 1), rest]), "{used:?}");
}

/// What one member cannot read, or two of RAID 6, is rewritten from the others; where nothing is left to do that from it stays.
#[test]
fn what_members_cannot_read_is_rewritten() {
    let Some(steps) = steps("unreadable.sh") else { return };
    // Where nothing is known, or md would write what is wrong as it goes through all of a chunk, it is left.
    for (array, foreseen, left) in [
        ("md1", 8, &[][..]),
        ("md5", 6, &[2000, 2008, 2010, 3000]),
        ("md6", 8, &[2000, 2008, 2010]),
        ("md10", 6, &[2010, 3000]),
    ] {
        let step = |name: &str| &steps[&format!("{array}-{name}")];
        let runs = [(1000, 2), (1500, 1), (1516, 1), (2000, 1), (2008, 1), (2010, 1), (3000, 1)];
        assert_eq!(step("found").bad(), runs, "{array}: {:?}", step("found"));
        let (found, shown) = (step("found").json(), &step("shown").errors);
        let next = found["next_step"].as_str().unwrap();
        assert!(next.starts_with(&format!("next: `idlewise repair /dev/{array} --md` shows")), "{next}");
        assert!(shown.contains(&format!("{foreseen} blocks would be put right")), "{array}: {shown}");
        let left: BTreeSet<u64> = left.iter().copied().collect();
        let all = sectors_of(runs.into_iter());
        assert_eq!(with_fate(step("repair"), "repaired"), &all - &left, "{array}: {:?}", step("repair"));
        assert!(with_fate(step("repair"), "still-bad").is_empty(), "{array}: {:?}", step("repair"));
        assert_eq!(sectors_of(step("after").bad().into_iter()), left, "{array}: {:?}", step("after"));
        assert_eq!(step("data").exit, 0, "{array} holds what it held");
        assert!(!step("log").output.is_empty(), "{array}");
        let limits: Vec<_> = step("limits").output.split_whitespace().collect();
        assert_eq!(limits, ["0", "max", "idle", "0", "0"], "{array}");
    }
    assert_eq!(steps["md6-at-last"].bad(), [], "{:?}", steps["md6-trusted"]);
    let [found, after] = ["left-over", "left-over-after"].map(|name| &steps[name]);
    assert_eq!((found.json()["state"].as_str(), found.bad()), (Some("complete"), vec![(16_520, 1)]), "{found:?}");
    assert_eq!((after.json()["state"].as_str(), after.bad()), (Some("complete"), vec![]), "{after:?}");
}

/// Members of an array that are lost or replaced, arrays that have no names of their own, and a disk with two paths to it.
#[test]
fn members_and_paths_are_told_from_each_other() {
    let Some(steps) = steps("members.sh") else { return };
    let identity = |name: &str| steps[name].json()["identity"].clone();
    assert_ne!(identity("md55"), identity("md66"));
    // Without a member nothing is compared, and what differs stays known.
    let [wrong, replaced] = ["wrong", "replaced"].map(|name| steps[name].json());
    assert_eq!((bad(&wrong), steps["wrong"].exit), (vec![(20_000, 1)], 3), "{wrong}");
    let (lacking, told) = (&steps["lacking"].output, &steps["told"].output);
    assert!(lacking.contains("idlewise_unreadable_blocks{device=\"md77\",kind=\"differs\"} 1"), "{lacking}");
    assert!(told.contains("12.0 MiB were not compared: it lacks members"), "{told}");
    assert!(told.contains("1 block cannot be read, or is wrong") && !told.contains("any more"), "{told}");
    assert_eq!(told.matches("was compared with them").count(), 1, "{told}");
    let (back, compared) = (steps["back"].output.trim().parse::<u64>().unwrap(), steps["compared"].json());
    // What was read of the array as one disk is over.
    assert_eq!(compared.as_array().unwrap().len(), 1, "{compared}");
    assert!(compared[0]["completed_unix_s"].as_u64() >= Some(back), "{compared}");
    // A pass is known by that of its members: it ran when it was wanted, and not again.
    let said = &steps["said"].output;
    let times = |what: &str| said.matches(what).count();
    assert_eq!((times("is being verified"), times("verified; the next pass") >= 1), (2, true), "{said}");
    // What was read of a disk that is gone says nothing of the one in its place.
    let begun = steps["begun"].json()[0]["verified_bytes"].as_u64().unwrap();
    assert!(begun > 1 << 20, "{begun}");
    assert_eq!((replaced["resumed_at_bytes"].as_u64(), bad(&replaced)), (Some(0), vec![(100, 1)]), "{replaced}");
    assert!(steps["replaced"].errors.contains("a member of the array is another disk"));
    // Nor does what was read where a volume lay.
    let [moved, meanwhile] = ["moved", "meanwhile"].map(|name| steps[name].json());
    assert_eq!((moved["resumed_at_bytes"].as_u64(), bad(&moved)), (Some(0), vec![(100, 2)]), "{moved}");
    let inside = steps["inside"].json();
    assert_eq!(inside["resumed_at_bytes"], 0, "{inside}");
    for name in ["moved", "inside"] {
        assert!(steps[name].errors.contains("it lies elsewhere than when it began"), "{name}");
    }
    assert_eq!(meanwhile["state"], "interrupted", "{meanwhile}");
    assert!(meanwhile["failure"].as_str().unwrap().contains("the volume was moved meanwhile"), "{meanwhile}");
    // A snapshot moves nothing, neither as it comes nor as it goes.
    let resumed = steps["no-snapshot"].json()["resumed_at_bytes"].as_u64();
    assert!(resumed > Some(1 << 20), "{resumed:?}: {:?}", steps["snapshot"]);
    for name in ["snapshot", "no-snapshot"] {
        assert!(!steps[name].output.contains("elsewhere") && !steps[name].errors.contains("elsewhere"), "{name}");
    }
    // The disk below a volume is not scrubbed beside it: each would take the other for the foreground.
    let below = &steps["below"];
    assert!(below.exit == 1 && below.errors.contains("another idlewise is scrubbing it"), "{below:?}");
    // Whoever reads by the other path is seen; also where it came later, but for what went there before it was looked for.
    let mut paths = steps["paths"].output.lines();
    assert_eq!(paths.next(), paths.next());
    for name in ["foreground", "later"] {
        let (result, reads) = (steps[name].json(), steps[&format!("{name}-reads")].exit as u64);
        let seen = result["measured"]["foreground_requests"].as_u64().unwrap();
        assert!(seen > 100 && 2 * seen > reads, "{name}: {seen} of {reads}: {result}");
    }
}

/// The same on those of device-mapper, which LVM's are; and what keeps checksums itself needs nobody to judge for it.
#[test]
fn every_error_on_members_of_mapped_arrays_is_found() {
    let Some(steps) = steps("mapped.sh") else { return };
    every_error_is_found(
        &steps,
        &[
            ("dm1", "RAID 1 of device-mapper, 2 members", 128),
            ("dm12", "RAID 1 of device-mapper, 3 members", 128),
            ("dm5", "RAID 5 of device-mapper, 4 members", 8),
            ("dm6", "RAID 6 of device-mapper, 5 members", 8),
            ("dm10", "RAID 10 of device-mapper, 4 members", 128),
        ],
    );
    // dm-integrity: what differs from its checksum is not read.
    let [clean, found] = ["integrity-clean", "integrity-found"].map(|name| steps[name].json());
    assert_eq!((&clean["state"], bad(&clean)), (&"complete".into(), vec![]), "{clean}");
    assert_eq!(bad(&found), [(1000, 1), (1003, 1), (9001, 1)], "{found}");
    assert!(found["errors"].as_array().unwrap().iter().all(|run| run["kind"] == "protection"), "{found}");
    // What a cache has would hide what the disks below have.
    let cached = &steps["cached"];
    assert_eq!((steps["cache-made"].exit, cached.exit), (0, 64), "{cached:?}");
    assert!(cached.errors.contains("answers from a cache what that has"), "{cached:?}");
    // Nor by dm-verity, in blocks of 4 KiB.
    let [clean, found] = ["verity-clean", "verity-found"].map(|name| steps[name].json());
    assert_eq!((&clean["state"], bad(&clean)), (&"complete".into(), vec![]), "{clean}");
    assert_eq!(bad(&found), [(10, 1), (100, 1)], "{found}");
}

/// Of each array by its name, with a few words and by how many sectors its own check counts.
fn every_error_is_found(steps: &BTreeMap<String, Step>, arrays: &[(&str, &str, u64)]) {
    println!("| array | errors | bytes | sectors | misdirected | lost | torn | found | invented | transient |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for &(array, about, page) in arrays {
        let step = |name: &str| &steps[&format!("{array}-{name}")];
        let clean = step("clean").json();
        assert_eq!(
            (&clean["state"], &clean["errors"]),
            (&"complete".into(), &serde_json::json!([])),
            "{array}: {clean}"
        );
        assert_eq!(clean["content"]["unjudged_bytes"], 0, "{array}: {clean}");
        let lines = step("injected").output.lines();
        let injected: Vec<Vec<u64>> =
            lines.map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
        let result = step("found").json();
        assert_eq!(result["state"], "complete", "{array}: {result}");
        let found: BTreeSet<u64> = bad(&result).into_iter().flat_map(|(lba, blocks)| lba..lba + blocks).collect();
        let expected: BTreeSet<u64> = injected.iter().map(|one| first_copy(array, one[0], one[1])).collect();
        let kinds = result["errors"].as_array().unwrap().iter().all(|run| run["kind"] == "differs");
        assert!(kinds && step("found").exit == 3, "{array}: {result}");
        assert_eq!(found, expected, "{array}: {result}");
        // Nothing but the member that is wrong is named where that can be told: of three mirrors, and by two parities.
        let disks: Vec<&str> = step("disks").output.split_whitespace().collect();
        if ["md12", "md6", "dm12", "dm6"].contains(&array) {
            for run in result["errors"].as_array().unwrap() {
                let (lba, blocks) = (run["lba"].as_u64().unwrap(), run["blocks"].as_u64().unwrap());
                let wrong = injected.iter().filter(|one| (lba..lba + blocks).contains(&one[1])).map(|one| one[0]);
                let wrong: BTreeSet<_> =
                    wrong.map(|member| disks[member as usize].trim_start_matches("/dev/")).collect();
                let held = run["holds"].to_string();
                assert!(
                    wrong.len() > 1 || wrong.iter().all(|name| held.contains(&format!("member {name}, by"))),
                    "{array}: {run}"
                );
            }
        }
        match array {
            "md11" | "dm1" => copies_are_repaired(array, &injected, 2, step("repair"), step("after")),
            "md12" => {
                copies_are_repaired(array, &injected, 3, step("repair"), step("after"));
                let same = step("same").output.lines().count();
                assert_eq!(same, injected.len() - with_fate(step("repair"), "repaired").len(), "{:?}", step("same"));
            }
            "dm12" => {
                assert!(step("held").errors.contains("others have it open"), "{:?}", step("held"));
                copies_are_repaired(array, &injected, 3, step("repair"), step("after"));
            }
            "md6" => parities_are_repaired(&injected, &step),
            _ => {}
        }
        if let Some(limits) = steps.get(&format!("{array}-limits")) {
            assert_eq!(limits.output.split_whitespace().collect::<Vec<_>>(), ["0", "max", "idle", "0", "0"], "{array}");
        }
        let pages: BTreeSet<u64> = injected.iter().map(|one| first_copy(array, one[0], one[1]) / page).collect();
        let counted: u64 = step("counted").output.trim().parse().unwrap();
        if page == 8 || ["md11", "dm1"].contains(&array) {
            assert_eq!(counted, page * pages.len() as u64, "{array}: md counts other mismatches");
        }
        let of = |kind: u64| injected.iter().filter(|one| one[2] == kind).count();
        println!(
            "| {about} | {} | {} | {} | {} | {} | {} | {} | 0 | {} |",
            injected.len(),
            of(0),
            of(1),
            of(2),
            of(3),
            of(4),
            found.len(),
            result["content"]["transient"],
        );
    }
}

/// What no member can be read for is told by md's own check, which counts none of it: however many other reads fail that md makes up for, whatever
/// the members lie on, and also if the check is killed behind it.
#[test]
fn what_md_cannot_read_in_its_check_is_told() {
    let Some(steps) = steps("unread.sh") else { return };
    for name in ["many", "mapped", "resumed"] {
        let (step, report) = (&steps[name], steps[name].json());
        // A piece of each of two members.
        assert_eq!(
            (&report["state"], &report["skipped_bytes"]),
            (&"complete".into(), &8192.into()),
            "{name}: {step:?}"
        );
        assert_eq!((step.exit, &report["wrong"]), (1, &0.into()), "{name}: {report}");
    }
    assert_eq!(steps["rewritten"].exit, 0, "md has rewritten what it can");
    let kept = steps["kept"].json();
    let places: BTreeSet<_> = kept["unread"].as_array().unwrap().iter().map(|one| one["byte"].as_u64()).collect();
    assert!(kept["done"].as_u64() > Some(2000 * 512) && places.contains(&Some(2000 / 8 * 4096)), "{kept}");
    let (held, looked) = (steps["held"].json(), steps["looked"].json());
    assert_eq!((steps["held"].exit, &held["state"], &held["skipped_bytes"]), (4, &"interrupted".into(), &8192.into()));
    assert!(held["elapsed_s"].as_f64() < Some(10.0), "{held}");
    assert_eq!(steps["meanwhile"].exit, 0, "it is not read while others use the array");
    // Of the two pieces one can be read.
    assert_eq!(
        (steps["looked"].exit, &looked["state"], &looked["skipped_bytes"]),
        (1, &"complete".into(), &4096.into())
    );
    assert!(steps["then"].exit >= 1, "it was read");
}
