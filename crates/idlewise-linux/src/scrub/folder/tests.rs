//! What is gone on with, what begins anew, and what stays known.

use std::fs::{self, File};
use std::sync::LazyLock;

use idlewise::Bytes;
use idlewise::order::Place;

use super::super::{BadBlocks, Left, Progress};
use super::*;
use crate::device::{Marks, Named, Which};
use idlewise::policy::{Account, Terms};

static MARKS: LazyLock<Marks> = LazyLock::new(|| Marks { boot_id: "b".into(), diskseq: Some(27), ..Marks::default() });
fn subject() -> Subject<'static> {
    Subject {
        identity: "wwn-1/2",
        device: "/dev/x",
        marks: &MARKS,
        named: Named::Alone,
        member_of: None,
        size: 1 << 20,
        block: 512,
        order: Order::SEQUENTIAL,
    }
}

fn open(folder: &Path, subject: &Subject, restart: bool) -> Result<Checkpoint, CheckpointError> {
    StateFolder::choose(Some(folder.into())).open_for(subject, restart)
}

fn saved(folder: &Path, state: State) -> PathBuf {
    let mut checkpoint = open(folder, &subject(), true).unwrap();
    let bad = BadBlocks { lba: 7, blocks: 2, kind: "io".into() };
    checkpoint.save(&Place::after(8192), &Left::default(), &[bad], state, &Progress::default()).unwrap();
    checkpoint.home.path()
}

#[test]
fn resumes_where_it_was_and_begins_anew_when_over() {
    let folder = tempfile::tempdir().unwrap();
    for state in [State::Running, State::Interrupted, State::Failed] {
        saved(folder.path(), state);
        let checkpoint = open(folder.path(), &subject(), false).unwrap();
        assert_eq!((checkpoint.verified(), checkpoint.errors().len()), (Bytes(8192), 1));
    }
    assert_eq!(open(folder.path(), &subject(), true).unwrap().verified(), Bytes(0));
    saved(folder.path(), State::Complete);
    let checkpoint = open(folder.path(), &subject(), false).unwrap();
    assert_eq!((checkpoint.verified(), checkpoint.errors().len()), (Bytes(0), 0));
    assert!(checkpoint.pass.completed_unix_s.is_some());
}

#[test]
fn after_a_whole_pass_another_disk_of_that_name_may_be_smaller() {
    let folder = tempfile::tempdir().unwrap();
    for (named, diskseq) in [(Named::Alone, 27), (Named::ForNow, 27), (Named::ForNow, 28), (Named::ByChoice, 28)] {
        saved(folder.path(), State::Complete);
        let marks = Marks { diskseq: Some(diskseq), ..MARKS.clone() };
        let smaller = Subject { named, marks: &marks, size: 1 << 19, ..subject() };
        let checkpoint = open(folder.path(), &smaller, false).unwrap();
        assert_eq!((checkpoint.begun(), checkpoint.pass.device_bytes), (&Begun::Anew, 1 << 19));
        // What it still has of what was unreadable is not forgotten.
        assert_eq!(checkpoint.pass.known_errors().len(), 1);
        drop(checkpoint);
        saved(folder.path(), State::Complete);
        let larger_blocks = Subject { named, marks: &marks, size: 1 << 19, block: 4096, ..subject() };
        let known = open(folder.path(), &larger_blocks, false).unwrap().pass.known_errors();
        assert_eq!((known.len(), known[0].lba, known[0].blocks), (1, 0, 2));
        saved(folder.path(), State::Complete);
        let tiny = Subject { named, marks: &marks, size: 2_048, ..subject() };
        assert!(open(folder.path(), &tiny, false).unwrap().pass.known_errors().is_empty());
        saved(folder.path(), State::Complete);
        let same = Subject { named, marks: &marks, ..subject() };
        let checkpoint = open(folder.path(), &same, false).unwrap();
        assert_eq!((checkpoint.begun(), checkpoint.pass.known_errors().len()), (&Begun::Anew, 1));
    }
}

/// Other data may be behind nbd and zram: no pass goes on, and what was found is told until the next one has looked.
#[test]
fn what_may_be_changed_without_a_word_is_read_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let never = Subject { named: Named::Never, ..subject() };
    saved(folder.path(), State::Interrupted);
    let states = StateFolder(folder.path().into());
    assert_eq!(states.pass_of(&never).unwrap().unwrap().known_errors().len(), 1);
    let checkpoint = open(folder.path(), &never, false).unwrap();
    assert!(matches!(checkpoint.begun(), Begun::AnewBecause(why) if why.contains("the kernel does not tell")));
    assert_eq!((checkpoint.verified(), checkpoint.pass.known_errors().len()), (Bytes(0), 1));
    drop(checkpoint);
    saved(folder.path(), State::Complete);
    let pass = states.pass_of(&never).unwrap().unwrap();
    assert!(pass.over() && pass.completed_unix_s.is_some());
    assert_eq!(open(folder.path(), &never, false).unwrap().begun(), &Begun::Anew);
}

/// What was read of a device was all of it, or it was not.
#[test]
fn of_a_device_that_grew_no_pass_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let completed = |size: u64| {
        saved(folder.path(), State::Complete);
        open(folder.path(), &Subject { size, ..subject() }, false).unwrap().pass.completed_unix_s.is_some()
    };
    assert_eq!([1 << 19, 1 << 20, 1 << 21].map(completed), [true, true, false]);
    // An older complete pass, behind which another one was interrupted.
    saved(folder.path(), State::Complete);
    let mut checkpoint = open(folder.path(), &subject(), false).unwrap();
    let place = Place::after(8192);
    checkpoint.save(&place, &Left::default(), &[], State::Interrupted, &Progress::default()).unwrap();
    drop(checkpoint);
    let completed = |size: u64| {
        let resumed = open(folder.path(), &Subject { size, ..subject() }, false).unwrap();
        (resumed.begun().clone(), resumed.pass.completed_unix_s.is_some())
    };
    assert_eq!([1 << 20, 1 << 21].map(completed), [(Begun::Resumed, true), (Begun::Resumed, false)]);
}

/// Of larger blocks one may be of several runs, which must not overlap: what is saved could not be read again.
#[test]
fn of_larger_blocks_runs_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoint = open(folder.path(), &subject(), true).unwrap();
    let bad = |lba, kind: &str| BadBlocks { lba, blocks: 1, kind: kind.into() };
    let bad = [bad(3, "io"), bad(5, "medium"), bad(7, "io"), bad(9, "io")];
    checkpoint.save(&Place::after(8192), &Left::default(), &bad, State::Complete, &Progress::default()).unwrap();
    drop(checkpoint);
    let larger = Subject { block: 4096, ..subject() };
    let mut checkpoint = open(folder.path(), &larger, false).unwrap();
    checkpoint.mark(State::Running, None, None).unwrap();
    let pass = Pass::parse(&fs::read(checkpoint.home.path()).unwrap()).unwrap();
    let known: Vec<_> = pass.known_errors().into_iter().map(|run| (run.lba, run.blocks)).collect();
    assert_eq!(known, [(0, 1), (1, 1)]);
}

#[test]
fn a_checkpoint_on_its_way_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(folder.path(), State::Interrupted);
    let hidden = format!(".{}", path.file_name().unwrap().to_str().unwrap());
    fs::copy(&path, path.with_file_name(hidden)).unwrap();
    assert_eq!(StateFolder::choose(Some(folder.path().into())).list().unwrap().len(), 1);
}

/// A run without a goal neither earns nor pays back.
#[test]
fn what_is_owed_stays_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoint = open(folder.path(), &subject(), true).unwrap();
    let mut account = Account::new(Nanos(10), Terms::default());
    account.served(9, Nanos(1_000_000_000));
    let progress = Progress { account: Some(account), ..Progress::default() };
    for progress in [&progress, &Progress::default()] {
        checkpoint.save(&Place::after(512), &Left::default(), &[], State::Interrupted, progress).unwrap();
    }
    drop(checkpoint);
    let checkpoint = open(folder.path(), &subject(), false).unwrap();
    assert_eq!(checkpoint.account().map(|account| account.requests), Some(9));
}

#[test]
fn a_second_scrub_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path(), &subject(), false).unwrap();
    let error = open(folder.path(), &subject(), false).unwrap_err().to_string();
    assert!(error.starts_with("/dev/x: another idlewise is scrubbing it"), "{error}");
    let other = Subject { identity: "wwn-1_2", ..subject() };
    assert!(open(folder.path(), &other, false).is_ok());
}

#[test]
fn a_disk_is_forgotten_unless_it_is_scrubbed() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(folder.path(), State::Interrupted);
    let states = StateFolder::choose(Some(folder.path().into()));
    let forget = || states.forget(subject().identity, subject().device);
    let scrub = open(folder.path(), &subject(), false).unwrap();
    assert!(matches!(forget(), Err(CheckpointError::Busy { .. })));
    drop(scrub);
    // What can no longer be read as well.
    assert!(!states.is_damaged(subject().identity));
    fs::write(&path, "{").unwrap();
    assert!(states.is_damaged(subject().identity) && !states.is_damaged("another"));
    forget().unwrap();
    assert!(states.list().unwrap().is_empty() && !states.is_damaged(subject().identity));
}

#[test]
fn another_order_needs_a_new_pass() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path(), State::Interrupted);
    let staggered = Subject { order: Order::staggered(128, Bytes(65_536)), ..subject() };
    let error = open(folder.path(), &staggered, false).unwrap_err().to_string();
    assert!(error.ends_with("is in sequential order; --restart begins a new pass"), "{error}");
    drop(open(folder.path(), &staggered, true).unwrap());
    saved(folder.path(), State::Complete);
    assert!(open(folder.path(), &staggered, false).is_ok());
}

#[test]
fn damage_and_another_size_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(folder.path(), State::Running);
    let text = fs::read_to_string(&path).unwrap();
    let smaller = Subject { size: 1 << 19, ..subject() };
    let error = open(folder.path(), &smaller, false).unwrap_err().to_string();
    assert!(error.contains("had 1.00 MiB then and has 512 KiB now"), "{error}");
    for damage in [&text[..text.len() / 2], "", "[]", &text.replace("8192", "8191")] {
        fs::write(&path, damage).unwrap();
        let error = open(folder.path(), &subject(), false).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}");
    }
    assert!(open(folder.path(), &subject(), true).is_ok());
}

/// A pass over a device that has grown goes on to its new end.
#[test]
fn what_has_grown_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path(), State::Interrupted);
    let bigger = Subject { size: 2 << 20, ..subject() };
    let checkpoint = open(folder.path(), &bigger, false).unwrap();
    assert_eq!((checkpoint.verified(), checkpoint.pass.device_bytes), (Bytes(8192), 2 << 20));
    assert_eq!(checkpoint.begun(), &Begun::Resumed);
    drop(checkpoint);
    // In regions, places are not what they were.
    let order =
        Order { name: idlewise::order::Name::known("staggered").unwrap(), regions: Some(2), visit: Some(Bytes(4096)) };
    for (size, verified) in [(1 << 20, 8192), (2 << 20, 0)] {
        let mut checkpoint = open(folder.path(), &Subject { order, ..subject() }, true).unwrap();
        let place = Place::after(8192);
        checkpoint.save(&place, &Left::default(), &[], State::Interrupted, &Progress::default()).unwrap();
        drop(checkpoint);
        let checkpoint = open(folder.path(), &Subject { order, size, ..subject() }, false).unwrap();
        assert_eq!(checkpoint.verified(), Bytes(verified));
        assert_eq!(matches!(checkpoint.begun(), Begun::AnewBecause(_)), verified == 0);
    }
}

/// What another disk of the same name was found to be is not gone on with. Its bad blocks are not of this one, unless nothing
/// tells the two from each other: then they are doubtful.
#[test]
fn another_disk_of_that_name_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let marks = |start_bytes, uuid: Option<&str>, boot: &str, diskseq| Marks {
        start_bytes,
        partition_uuid: uuid.map(Into::into),
        boot_id: boot.into(),
        diskseq,
        ..Marks::default()
    };
    let here = marks(4096, Some("u"), "b", Some(27));
    use Named::{Alone, ByChoice, ForNow};
    let (same, other) = (true, false);
    for (named, now, expected) in [
        (Alone, here.clone(), same),
        (Alone, marks(4096, Some("u"), "b", Some(28)), same),
        (Alone, marks(4096, Some("u"), "c", Some(3)), same),
        (Alone, marks(4096, None, "c", None), same),
        (Alone, marks(8192, Some("u"), "b", Some(27)), other),
        (Alone, marks(4096, Some("v"), "b", Some(27)), other),
        (ByChoice, here.clone(), same),
        (ByChoice, marks(4096, Some("u"), "b", Some(28)), other),
        (ByChoice, marks(4096, Some("u"), "c", Some(3)), same),
        (ForNow, here.clone(), same),
        (ForNow, marks(4096, Some("u"), "b", Some(28)), other),
        (ForNow, marks(4096, Some("u"), "c", Some(27)), other),
    ] {
        let subject = Subject { marks: &here, named, ..subject() };
        let bad = BadBlocks { lba: 7, blocks: 2, kind: "io".into() };
        let mut checkpoint = open(folder.path(), &subject, true).unwrap();
        let (place, left, state) = (Place::after(8192), Left::default(), State::Interrupted);
        checkpoint.save(&place, &left, &[bad], state, &Progress::default()).unwrap();
        drop(checkpoint);
        let checkpoint = open(folder.path(), &Subject { marks: &now, ..subject }, false).unwrap();
        assert_eq!(checkpoint.begun() == &Begun::Resumed, expected, "{named:?} {now:?}");
        assert_eq!(checkpoint.verified() > Bytes(0), expected);
        let known: Vec<_> = checkpoint.pass.known_errors().into_iter().map(|run| run.kind).collect();
        let doubtful = if named != Alone { &[BadBlocks::DOUBTFUL][..] } else { &[] };
        assert_eq!(known, if expected { &["io"] } else { doubtful }, "{named:?} {now:?}");
        assert!(expected || matches!(checkpoint.begun(), Begun::AnewBecause(_)));
    }
}

/// What was read of a member that is another disk by now says nothing of that one.
#[test]
fn an_array_with_another_member_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let which = |name: &str, diskseq| Which {
        identity: name.into(),
        diskseq: Some(diskseq),
        for_now: name.starts_with("name-"),
    };
    let marks = |boot_id: &str, members: &[(&str, u64)]| Marks {
        boot_id: boot_id.into(),
        members: members.iter().map(|&(name, diskseq)| which(name, diskseq)).collect(),
        ..Marks::default()
    };
    let before = marks("b", &[("wwn-1", 1), ("wwn-2", 2)]);
    let weak = marks("b", &[("name-vda", 1)]);
    assert!(!weak.has_other_members_than(&weak) && marks("c", &[("name-vda", 1)]).has_other_members_than(&weak));
    for (now, resumed) in [
        (before.clone(), true),
        (marks("c", &[("wwn-1", 7), ("wwn-2", 8)]), true),
        (marks("b", &[("wwn-1", 1), ("wwn-2", 3)]), false),
        (marks("c", &[("wwn-1", 1), ("wwn-3", 2)]), false),
        (marks("c", &[("wwn-1", 1)]), false),
    ] {
        let bad = BadBlocks { lba: 7, blocks: 2, kind: "differs".into() };
        let mut checkpoint = open(folder.path(), &Subject { marks: &before, ..subject() }, true).unwrap();
        let (place, left, state) = (Place::after(8192), Left::default(), State::Interrupted);
        checkpoint.save(&place, &left, &[bad], state, &Progress::default()).unwrap();
        drop(checkpoint);
        let checkpoint = open(folder.path(), &Subject { marks: &now, ..subject() }, false).unwrap();
        assert_eq!(checkpoint.verified() > Bytes(0), resumed, "{now:?}");
        assert_eq!(matches!(checkpoint.begun(), Begun::AnewBecause(_)), !resumed, "{now:?}");
        assert_eq!(checkpoint.pass.known_errors().len(), 1, "{now:?}");
    }
}

/// What was read where a volume lay says nothing of where it lies now.
#[test]
fn a_volume_that_was_moved_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let which = |name: &&str| Which {
        identity: name.split('#').next().unwrap().to_string(),
        diskseq: name.split('#').nth(1).map(|number| number.parse().unwrap()),
        for_now: name.starts_with("name-"),
    };
    let marks = |boot_id: &str, below: &[&str]| Marks {
        boot_id: boot_id.into(),
        below: below.iter().map(which).collect(),
        ..Marks::default()
    };
    for (before, now, resumed) in [
        (marks("b", &["wwn-1#1"]), marks("b", &["wwn-1#1"]), true),
        (marks("b", &["wwn-1#1"]), marks("c", &["wwn-1#9"]), true),
        (marks("b", &["wwn-1#1"]), marks("b", &["wwn-2#2"]), false),
        // It has become larger, or is being copied; when that is over, it lies elsewhere.
        (marks("b", &["wwn-1#1"]), marks("b", &["wwn-1#1", "wwn-2#2"]), true),
        (marks("b", &["wwn-1#1", "wwn-2#2"]), marks("b", &["wwn-2#2"]), false),
        // One of two paths to a disk is gone.
        (marks("b", &["wwn-1#1", "wwn-1#2"]), marks("b", &["wwn-1#2"]), true),
        // Another disk has a name that is not its own.
        (marks("b", &["name-vda#1"]), marks("b", &["name-vda#4"]), false),
        (marks("b", &["name-vda#1"]), marks("c", &["name-vdb#4"]), true),
        // Nothing was known of it.
        (marks("b", &[]), marks("b", &["wwn-1#1"]), true),
    ] {
        let mut checkpoint = open(folder.path(), &Subject { marks: &before, ..subject() }, true).unwrap();
        let (place, left, state) = (Place::after(8192), Left::default(), State::Interrupted);
        checkpoint.save(&place, &left, &[], state, &Progress::default()).unwrap();
        drop(checkpoint);
        let checkpoint = open(folder.path(), &Subject { marks: &now, ..subject() }, false).unwrap();
        assert_eq!(checkpoint.verified() > Bytes(0), resumed, "{before:?} {now:?}");
    }
}

/// That a pass could not compare is known until one has, or nobody keeps checksums any more.
#[test]
fn what_nobody_could_compare_is_missed_until_somebody_does() {
    let folder = tempfile::tempdir().unwrap();
    // Of two file systems, the first may be mounted; the other one never is.
    let pass = |content: Option<(u64, u64, u64)>| {
        let mut checkpoint = open(folder.path(), &subject(), false).unwrap();
        if let Some((judged_bytes, unasked_bytes, unmounted)) = content {
            let mut content = checkpoint.content().cloned().unwrap_or_default();
            content.owners = vec!["btrfs".into()];
            (content.judged_bytes, content.unasked_bytes) = (judged_bytes, unasked_bytes);
            content.mounted.extend((judged_bytes + unasked_bytes > 0).then(|| "first".into()));
            content.unmounted = [("first".into(), unmounted), ("second".into(), 100)].into();
            checkpoint.keep_content(&content);
        }
        let (place, left) = (Place::after(1 << 20), Left::default());
        checkpoint.save(&place, &left, &[], State::Complete, &Progress::default()).unwrap();
        let pass = Pass::parse(&fs::read(checkpoint.home.path()).unwrap()).unwrap();
        pass.not_compared().map(|(bytes, _)| bytes.0)
    };
    // Of what was never mounted nothing is missed.
    assert_eq!(pass(Some((0, 0, 9))), None);
    assert_eq!(pass(Some((0, 5, 0))), Some(5));
    assert_eq!([pass(None), pass(Some((0, 0, 9)))], [Some(5), Some(9)]);
    assert_eq!(pass(Some((9, 0, 0))), None);
    assert_eq!([pass(Some((3, 0, 6))), pass(Some((0, 0, 9)))], [Some(6), Some(9)]);
    let mut checkpoint = open(folder.path(), &subject(), false).unwrap();
    checkpoint.nobody_compares();
    assert_eq!((checkpoint.pass.not_compared(), checkpoint.content()), (None, None));
}

/// Anyone may have filled a folder of which `status` tells: in what it holds, and in how much.
#[test]
fn a_folder_of_another_is_read_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.json", "b.json", "c.json"] {
        File::create(folder.path().join(name)).unwrap().set_len(60 << 20).unwrap();
    }
    saved(folder.path(), State::Complete);
    let listed = StateFolder::choose(Some(folder.path().into())).list().unwrap();
    let is_full =
        |listed: &Listed| format!("{listed:?}").contains("the checkpoints of this folder have more than 128 MiB");
    assert_eq!(listed.iter().map(is_full).collect::<Vec<_>>(), [false, false, true, true], "{listed:?}");
    // Short items take more memory than letters.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), "1,".repeat(4 << 20)).unwrap();
    let listed = StateFolder::choose(Some(folder.path().into())).list().unwrap();
    assert!(listed.iter().all(is_full), "{listed:?}");
}

/// No scrub has written more.
#[test]
fn longer_lists_than_there_can_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(saved(folder.path(), State::Complete)).unwrap();
    let mut pass: serde_json::Value = serde_json::from_str(&text).unwrap();
    let runs =
        |count: u64| (0..count).map(|at| serde_json::json!({"lba": 2 * at, "blocks": 1, "kind": "medium"})).collect();
    pass["device_bytes"] = (1u64 << 40).into();
    let mut parse = |count: u64| {
        pass["errors"] = serde_json::Value::Array(runs(count));
        Pass::parse(&serde_json::to_vec(&pass).unwrap()).map(|pass| pass.errors.len())
    };
    assert_eq!(parse(1 << 16), Ok(1 << 16));
    assert_eq!(parse((1 << 16) + 1).unwrap_err(), "65537 runs of unreadable blocks: there are at most 65536");
}

/// A checkpoint written by version 0.1 must stay readable.
#[test]
fn version_1_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = saved(folder.path(), State::Running);
    let text = r#"{"version":1,"identity":"wwn-1/2","device_bytes":1048576,"block_bytes":512,"order":"sequential",
        "position_bytes":4096,"state":"interrupted","errors":[{"lba":1,"blocks":1,"kind":"medium"}],
        "started_unix_s":1,"saved_unix_s":2,"completed_unix_s":null}"#;
    fs::write(path, text).unwrap();
    assert_eq!(open(folder.path(), &subject(), false).unwrap().verified(), Bytes(4096));
}
