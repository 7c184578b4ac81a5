//! What md is told for a check, or for a part of one, and how it was before: put back in the end, by this process or by whoever comes after it.
//! A limit that is left behind would hold up a rebuild for good, and so would a speed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Undo};

/// KiB a second of each member: as good as none, and as fast as it can.
pub const HELD: &str = "1";
pub const FREE: &str = "100000000";
/// No limit.
pub const NO_LIMIT: &str = "max";

const SPEEDS: [&str; 2] = ["sync_speed_min", "sync_speed_max"];
/// md takes its time to end what it is told to end, and then notes where it was: what was put back is looked at so often, and so far apart.
const LOOKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(50);

/// An array's own settings, as they were found, and what is begun there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knobs {
    /// `md` of the array in /sys.
    folder: PathBuf,
    /// `check`, or `repair`.
    action: String,
    /// In sectors, where it begins.
    begin: u64,
    speeds: [String; 2],
    min: String,
    max: String,
}

impl Knobs {
    /// As they are found, for an action from this sector on: `check`, or `repair`.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn of(folder: &Path, action: &str, begin: u64) -> io::Result<Self> {
        let speed = |file: &str| {
            // What the whole system has is written as a word.
            let found = read(folder, file)?;
            let word = if found.contains("system") { "system" } else { found.split(' ').next().unwrap_or("system") };
            Ok::<_, io::Error>(word.to_string())
        };
        let [speed_min, speed_max] = SPEEDS.map(speed);
        Ok(Self {
            folder: folder.into(),
            action: action.into(),
            begin,
            speeds: [speed_min?, speed_max?],
            min: read(folder, "sync_min")?,
            max: read(folder, "sync_max")?,
        })
    }

    /// Both limits of the speed.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn set_speed(&self, speed: &str) -> io::Result<()> {
        write(&self.folder, "sync_speed_max", speed)?;
        write(&self.folder, "sync_speed_min", speed)
    }

    /// Begins it, with a limit.
    ///
    /// # Errors
    /// The first that cannot be written.
    pub fn start(&self, limit: &str) -> io::Result<()> {
        let begin = self.begin.to_string();
        self.start_writes(limit, &begin).into_iter().try_for_each(|(file, value)| write(&self.folder, file, value))
    }

    /// In this order: the beginning must not lie beyond the limit.
    fn start_writes<'a>(&'a self, limit: &'a str, begin: &'a str) -> [(&'static str, &'a str); 4] {
        [("sync_min", "0"), ("sync_max", limit), ("sync_min", begin), ("sync_action", &self.action)]
    }

    /// Ends it, if it is still at work, and puts back what is still as it was left.
    ///
    /// # Errors
    /// The first that could not be put back.
    pub fn put_back(&self) -> io::Result<()> {
        self.put_back_if(|_| true)
    }

    /// The same, where only what has a limit is surely this: an action without one, at the usual speed, may be anybody's, and ends by itself.
    fn put_back_if(&self, is_surely_this: impl Fn(bool) -> bool) -> io::Result<()> {
        let [action, min, max] = ["sync_action", "sync_min", "sync_max"].map(|file| read(&self.folder, file));
        let (action, min, max) = (action?, min?, max?);
        let speeds = SPEEDS.map(|file| read(&self.folder, file).unwrap_or_default());
        let is_ours = |speed: &str| [HELD, FREE].contains(&speed.trim_end_matches(" (local)"));
        let is_limited = max != NO_LIMIT || speeds.iter().any(|speed| is_ours(speed));
        let is_this = action == self.action && min == self.begin.to_string() && is_surely_this(is_limited);
        // What was interrupted has its beginning where it came to, so that a rebuild meanwhile would stop at the limit.
        let within = |min: u64| min == 0 || min >= self.begin && max.parse().is_ok_and(|max| min <= max);
        let is_over = action != "check" && action != "repair";
        let limit_is_ours = is_over && max != self.max && max != NO_LIMIT && min.parse().is_ok_and(within);
        let mut writes: Vec<(&str, &str)> = Vec::new();
        if is_this {
            writes.push(("sync_action", "idle"));
        }
        let left = SPEEDS.into_iter().zip(&speeds).zip(&self.speeds).filter(|((_, now), _)| is_ours(now));
        writes.extend(left.map(|((file, _), found)| (file, &**found)));
        // Ended by somebody else, md has noted how far it was: whoever checks next would not see what is before that.
        let reached = |min: u64| min == 0 || min >= self.begin;
        let is_begun = is_over && max == self.max && min != self.min && min.parse().is_ok_and(reached);
        let has_limits = is_this || limit_is_ours || is_begun;
        if has_limits {
            // A limit may be raised only, and the beginning not lie beyond it.
            writes.extend([("sync_min", "0"), ("sync_max", &*self.max), ("sync_min", &*self.min)]);
        }
        // Each, whatever becomes of the others.
        let all = |writes: &[(&str, &str)]| -> io::Result<()> {
            let done: Vec<_> = writes.iter().map(|(file, value)| write(&self.folder, file, value)).collect();
            done.into_iter().collect()
        };
        let mut done = all(&writes);
        if !has_limits {
            return done;
        }
        for _ in 0..LOOKS {
            let (action, min, max) =
                (read(&self.folder, "sync_action")?, read(&self.folder, "sync_min")?, read(&self.folder, "sync_max")?);
            let is_back = min == self.min && max == self.max;
            let is_ended = action != self.action;
            // What somebody else has begun meanwhile is his.
            if is_ended && (is_back && done.is_ok() || action != "idle") {
                return done;
            }
            std::thread::sleep(BETWEEN);
            if !is_back || done.is_err() {
                done = all(&writes[usize::from(is_this)..]);
            }
        }
        done.and(Err(io::Error::other("md does not end it, or does not keep what it is told")))
    }
}

impl Undo for Knobs {
    const END: &'static str = "knobs";

    fn undo(&self) -> bool {
        // An array that is gone has nothing to put back.
        !self.folder.exists() || self.put_back_if(|is_limited| is_limited).is_ok()
    }
}

/// Where they are written down.
pub type KnobLedger = Ledger<Knobs>;

/// A setting of an array.
///
/// # Errors
/// If it cannot be read.
pub fn read(folder: &Path, file: &str) -> io::Result<String> {
    let text = fs::read_to_string(folder.join(file));
    text.map(|text| text.trim().into()).map_err(|error| named(file, &error))
}

/// Sets it.
///
/// # Errors
/// If it cannot be written.
pub fn write(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    fs::write(folder.join(file), value).map_err(|error| named(file, &error))
}

fn named(file: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("md/{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::release_in;

    const FILES: [&str; 5] = ["sync_action", "sync_speed_min", "sync_speed_max", "sync_min", "sync_max"];
    const SYSTEM: [&str; 5] = ["idle", "1000 (system)", "200000 (system)", "0", "max"];

    fn array(values: [&str; 5]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        set(folder.path(), values);
        folder
    }

    fn set(folder: &Path, values: [&str; 5]) {
        FILES.iter().zip(values).for_each(|(file, value)| fs::write(folder.join(file), value).unwrap());
    }

    fn values(folder: &Path) -> [String; 5] {
        FILES.map(|file| read(folder, file).unwrap())
    }

    #[test]
    fn what_was_left_is_put_back_and_nothing_else() {
        let of = |action, min, max| [action, SYSTEM[1], SYSTEM[2], min, max];
        let with_speed = |action, speed, min, max| [action, speed, speed, min, max];
        let back = with_speed("idle", "system", "0", "max");
        for (left, expected) in [
            // Killed while the gate is closed, while it is open, at a step's limit, and before it began.
            (with_speed("check", "1 (local)", "128", "max"), back),
            (with_speed("check", "100000000 (local)", "128", "max"), back),
            (of("check", "128", "4096"), SYSTEM),
            (["idle", SYSTEM[1], "1 (local)", "0", "max"], ["idle", SYSTEM[1], "system", "0", "max"]),
            // Somebody else has ended it, and md has noted where it was.
            (of("idle", "5248", "max"), SYSTEM),
            (of("idle", "5248", "8192"), SYSTEM),
            // A rebuild that stands at the limit, behind what the check had come to.
            (with_speed("recover", "1 (local)", "1024", "4096"), with_speed("recover", "system", "0", "max")),
            // Somebody else's.
            (of("check", "128", "max"), of("check", "128", "max")),
            (of("check", "0", "512"), of("check", "0", "512")),
            (of("check", "0", "max"), of("check", "0", "max")),
            (of("repair", "128", "256"), of("repair", "128", "256")),
            (of("idle", "64", "256"), of("idle", "64", "256")),
        ] {
            let folder = array(SYSTEM);
            let knobs = Knobs::of(folder.path(), "check", 128).unwrap();
            set(folder.path(), left);
            assert!(knobs.undo());
            assert_eq!(values(folder.path()), expected, "{left:?}");
        }
        assert!(Knobs::of(Path::new("/nowhere"), "check", 0).is_err());
    }

    /// A note of a check of these sectors, by a process that was killed behind so many of its writes.
    fn killed_after(writes: usize, array: &tempfile::TempDir, states: &Path) {
        let mut ledger = KnobLedger::within(states).unwrap();
        let knobs = Knobs::of(array.path(), "check", 128).unwrap();
        ledger.add(knobs.clone()).unwrap();
        let all = knobs.start_writes("256", "128").into_iter().take(writes);
        all.for_each(|(file, value)| fs::write(array.path().join(file), value).unwrap());
        let before = values(array.path());
        release_in::<Knobs>(states);
        assert_eq!(values(array.path()), before, "its process is there");
        ledger.abandon().unwrap();
    }

    #[test]
    fn what_was_set_is_put_back_at_whatever_write_it_was_killed() {
        for (min, max) in [("0", "max"), ("8", "512")] {
            for writes in 0..=4 {
                let found = ["idle", SYSTEM[1], SYSTEM[2], min, max];
                let (states, array) = (tempfile::tempdir().unwrap(), array(found));
                killed_after(writes, &array, states.path());
                release_in::<Knobs>(states.path());
                assert_eq!(values(array.path()), found, "after {writes} writes");
                assert!(fs::read_dir(states.path()).unwrap().next().is_none());
            }
        }
    }

    /// Whoever cannot put it back leaves the note to the next.
    #[test]
    fn what_cannot_be_put_back_stays_written_down() {
        let (states, array) = (tempfile::tempdir().unwrap(), array(SYSTEM));
        let mut ledger = KnobLedger::within(states.path()).unwrap();
        ledger.add(Knobs::of(array.path(), "check", 128).unwrap()).unwrap();
        ledger.abandon().unwrap();
        set(array.path(), ["check", SYSTEM[1], SYSTEM[2], "128", "256"]);
        let limit = array.path().join("sync_max");
        // It is read, and not even root may write it.
        fs::remove_file(&limit).unwrap();
        std::os::unix::fs::symlink("/proc/sys/kernel/ostype", &limit).unwrap();
        release_in::<Knobs>(states.path());
        assert_eq!(fs::read_dir(states.path()).unwrap().count(), 1);
        fs::remove_file(&limit).unwrap();
        set(array.path(), ["check", SYSTEM[1], SYSTEM[2], "128", "256"]);
        release_in::<Knobs>(states.path());
        assert_eq!(values(array.path()), SYSTEM);
        assert_eq!(fs::read_dir(states.path()).unwrap().count(), 0);
    }
}
