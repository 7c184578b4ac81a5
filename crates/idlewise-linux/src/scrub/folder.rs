//! The folder of checkpoints: one file a device, known by its identity.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use idlewise::Nanos;
use idlewise::order::Order;

use super::home::Home;
use super::process::Process;
use super::subject::{Subject, doubtful};
use super::{Begun, Checkpoint, CheckpointError, Doing, Pass, State};
use crate::device::Device;
use crate::files::{Folder, Hold, read_file};

/// Where root's checkpoints are.
const SYSTEM: &str = "/var/lib/idlewise";

/// One checkpoint of a folder.
#[derive(Debug)]
pub struct Listed {
    /// What it holds.
    pub pass: Result<Pass, CheckpointError>,
    /// Whether a scrub is at it now.
    pub running: bool,
    /// Whether a signal has stopped that scrub, until another lets it go on.
    pub stopped: bool,
}

/// The folder in which checkpoints are kept.
#[derive(Clone, Debug)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// `folder`, or else /var/lib/idlewise for root and the user's state folder for others.
    pub fn choose(folder: Option<PathBuf>) -> Self {
        let usual = || if rustix::process::geteuid().is_root() { PathBuf::from(SYSTEM) } else { of_user() };
        Self(folder.unwrap_or_else(usual))
    }

    /// The folders that may hold checkpoints: `folder`, or else that of the system and the user's own.
    pub fn readable(folder: Option<PathBuf>) -> Vec<Self> {
        let own = Self::choose(folder.clone());
        let system = Self(PathBuf::from(SYSTEM));
        if folder.is_some() || own.0 == system.0 { vec![own] } else { vec![system, own] }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes the lock of this name in the folder, for as long as it is held; `None` if another process holds it.
    ///
    /// # Errors
    /// What the file system says, or whose the folder is.
    pub fn hold(&self, name: &str) -> io::Result<Option<Hold>> {
        Hold::take(&Folder::own(&self.0)?, name.as_ref())
    }

    /// Every checkpoint in the folder, and whether a scrub is at it.
    ///
    /// # Errors
    /// If the folder is there and cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, CheckpointError> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            // Of `sudo -u` and the like: the home is another user's, and so is what lies there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.0 == of_user() => {
                return Ok(Vec::new());
            }
            other => other.map_err(|error| CheckpointError::Io { path: self.0.display().to_string(), error })?,
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        // A checkpoint that is on its way has a hidden name.
        let hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let mut paths: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "json") && !hidden(path)).collect();
        paths.sort();
        let listed = |path: PathBuf| {
            let name = path.display().to_string();
            let text = match read_file(&path) {
                // It was there a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                other => other.map_err(|error| CheckpointError::Io { path: name.clone(), error }),
            };
            let pass = text.and_then(|text| {
                Pass::parse(&text).map_err(|problem| CheckpointError::Damaged { path: name.clone(), problem })
            });
            let lock = path.with_extension("lock");
            let saved = fs::metadata(&path).and_then(|file| file.modified()).ok();
            let at_it = |by: &Process| by.is_alive_by(&self.0, lock.file_name().unwrap_or_default(), saved);
            let running = |pass: &Pass| pass.state == State::Running && pass.process.as_ref().is_some_and(at_it);
            let running = pass.as_ref().is_ok_and(running);
            let stopped =
                running && pass.as_ref().ok().and_then(|pass| pass.process.as_ref()).is_some_and(Process::is_stopped);
            Some(Listed { pass, running, stopped })
        };
        Ok(paths.into_iter().filter_map(listed).collect())
    }

    /// The pass that the checkpoint of a device holds, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError`] if it is damaged or of another device.
    pub fn pass(&self, device: &Device) -> Result<Option<Pass>, CheckpointError> {
        let subject = Subject::unread(device, Order::SEQUENTIAL);
        let pass = self.pass_of(&subject)?;
        pass.map(|pass| subject.check_size(&pass, &self.file(&device.identity)).map(|()| pass)).transpose()
    }

    /// The pass over the members of an array, if there is one that can be read; whatever members it has now.
    pub fn pass_by_members(&self, array: &Device) -> Option<Pass> {
        let identity = array.identity.clone() + Device::BY_MEMBERS;
        self.pass_of(&Subject { identity: &identity, ..Subject::unread(array, Order::SEQUENTIAL) }).ok().flatten()
    }

    /// The same, whatever size the device has now.
    fn pass_of(&self, subject: &Subject) -> Result<Option<Pass>, CheckpointError> {
        let path = self.file(subject.identity);
        let io_error = |path: &Path, error| CheckpointError::Io { path: path.display().to_string(), error };
        let folder = Folder::own_if_there(&self.0).map_err(|error| io_error(&self.0, error))?;
        let pass = match folder.map(|folder| folder.read(path.file_name().unwrap_or_default())) {
            None => return Ok(None),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Some(text) => parse(&text.map_err(|error| io_error(&path, error))?, subject, &path)?,
        };
        match subject.is_other(&pass) {
            Some(why) => Err(CheckpointError::OtherDisk { path: path.display().to_string(), why }),
            None => Ok(Some(pass)),
        }
    }

    /// The pass that a scrub in this order would go on with, if there is one.
    ///
    /// # Errors
    /// [`CheckpointError`] if it could not, as the checkpoint is damaged or of another order.
    pub fn unfinished(&self, device: &Device, order: Order) -> Result<Option<Pass>, CheckpointError> {
        let subject = Subject::unread(device, order);
        let pass = match self.pass_of(&subject) {
            Err(CheckpointError::OtherDisk { .. }) => return Ok(None),
            pass => pass?.filter(|pass| !pass.over()),
        };
        let pass = pass.filter(|pass| subject.has_to_begin_anew(pass).is_none());
        pass.map(|pass| subject.resumed(pass, &self.file(&device.identity))).transpose()
    }

    /// Removes the checkpoint of a pass, as of a disk that is gone.
    ///
    /// # Errors
    /// [`CheckpointError::Busy`] if a scrub is at it, or what the file system says.
    pub fn forget(&self, pass: &Pass) -> Result<(), CheckpointError> {
        Home::open(&self.0, (file_name(&pass.identity) + ".json").into(), &pass.device)?.remove()
    }

    /// A file beside the checkpoint of a device.
    pub fn beside(&self, device: &Device, extension: &str) -> PathBuf {
        self.file(&device.identity).with_extension(extension)
    }

    fn file(&self, identity: &str) -> PathBuf {
        self.0.join(file_name(identity) + ".json")
    }

    /// Opens and locks the checkpoint of a device: the one that is there, unless its pass is over, it is of another disk or
    /// `restart` is set, else a new one. The folder must belong to the caller or to root, and nobody else may write to it.
    ///
    /// # Errors
    /// [`CheckpointError`] if another scrub holds it, or it is damaged or of another device.
    pub fn open(&self, device: &Device, order: Order, restart: bool) -> Result<Checkpoint, CheckpointError> {
        self.open_for(&Subject::of(device, order), restart)
    }

    fn open_for(&self, subject: &Subject, restart: bool) -> Result<Checkpoint, CheckpointError> {
        let home = Home::open(&self.0, (file_name(subject.identity) + ".json").into(), subject.device)?;
        let path = home.path();
        // What a damaged checkpoint knew is lost when a new pass is asked for.
        let kept = if restart { read(&home, subject).ok().flatten() } else { read(&home, subject)? };
        let (begun, pass) = match kept {
            None => (Begun::Anew, subject.new_pass(None)),
            Some(before) => match subject.is_other(&before) {
                Some(why) => {
                    let begun = if before.over() || restart { Begun::Anew } else { Begun::AnewBecause(why) };
                    (
                        begun,
                        subject.new_pass(subject.may_be(&before).then(|| doubtful(subject.fitting(before))).as_ref()),
                    )
                }
                None if before.over() || restart => (Begun::Anew, subject.new_pass(Some(&subject.fitting(before)))),
                None => match subject.has_to_begin_anew(&before) {
                    Some(why) => (Begun::AnewBecause(why), subject.new_pass(Some(&subject.fitting(before)))),
                    None => (Begun::Resumed, subject.resumed(before, &path)?),
                },
            },
        };
        let measuring = pass.run.as_ref().is_some_and(|run| run.doing == Doing::Calibrating.name());
        let failed_before = pass.state == State::Failed || pass.state != State::Complete && measuring;
        Ok(Checkpoint { home, pass, begun, pause: Nanos::ZERO, failed_before })
    }
}

/// The user's own folder.
fn of_user() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let user = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    user.map_or_else(|| PathBuf::from(SYSTEM), |base| base.join("idlewise"))
}

/// Reads the checkpoint that is there.
fn read(home: &Home, subject: &Subject) -> Result<Option<Pass>, CheckpointError> {
    let name = || home.path().display().to_string();
    let text = home.read().map_err(|error| CheckpointError::Io { path: name(), error })?;
    text.map(|text| parse(&text, subject, &home.path())).transpose()
}

/// What a checkpoint at `path` says of a device.
fn parse(text: &[u8], subject: &Subject, path: &Path) -> Result<Pass, CheckpointError> {
    let damaged = |problem: String| CheckpointError::Damaged { path: path.display().to_string(), problem };
    let pass = Pass::parse(text).map_err(damaged)?;
    if pass.identity != subject.identity {
        return Err(damaged(format!("it is of {}", pass.identity)));
    }
    Ok(pass)
}

/// An identity as a file name.
fn file_name(identity: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = identity.chars().map(plain).collect();
    // Long names are cut; what was cut or replaced still counts, through a hash (FNV-1a).
    let hash = identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{}-{hash:016x}", &name[..name.len().min(100)])
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use idlewise::Bytes;
    use idlewise::order::Place;

    use super::super::{BadBlocks, Left, Progress};
    use super::*;
    use crate::device::{Marks, Named, Which};
    use idlewise::policy::{Account, Terms};

    static MARKS: LazyLock<Marks> =
        LazyLock::new(|| Marks { boot_id: "b".into(), diskseq: Some(27), ..Marks::default() });
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
        let forget = || states.forget(&Pass::parse(&fs::read(&path).unwrap()).unwrap());
        let scrub = open(folder.path(), &subject(), false).unwrap();
        assert!(matches!(forget(), Err(CheckpointError::Busy { .. })));
        drop(scrub);
        forget().unwrap();
        assert!(states.list().unwrap().is_empty());
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
        let order = Order {
            name: idlewise::order::Name::known("staggered").unwrap(),
            regions: Some(2),
            visit: Some(Bytes(4096)),
        };
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
            members: Vec::new(),
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
}
