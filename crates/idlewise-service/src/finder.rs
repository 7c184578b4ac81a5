//! Finds the disks of the machine. Each is opened on a thread of its own: one that does not answer holds up no other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use idlewise::Bytes;
use idlewise_linux::content::Array;
use idlewise_linux::device::{Device, Marks};
use idlewise_linux::scrub::{BadBlocks, Pass, StateFolder};

use crate::Config;
use crate::daemon::{Daemon, since_boot};
use crate::disk::Disk;
use crate::machine::{Present, of, paths, twin};
use crate::record::Known;
use crate::told::{Level, say};

/// Those that answer are waited for so long.
const AT_ONCE: Duration = Duration::from_millis(500);
/// One that has not answered for so long is said not to.
const SILENT: Duration = Duration::from_secs(10);

/// What has not changed is asked again after so long.
const AGAIN: Duration = Duration::from_secs(120);

/// A disk that was away for so long is forgotten.
const FORGOTTEN_S: f64 = 180.0 * 86_400.0;

/// What was found at a path.
#[derive(Clone)]
pub enum Found {
    /// A disk, what its checkpoint holds, and what another one does.
    There(Box<Present>, Option<Box<Pass>>, Elsewhere),
    /// Nothing that can be looked after, and why.
    Wrong(String),
    /// It has not answered yet; why that is worth saying, if it is.
    Silent(Option<String>),
}

/// What another checkpoint of a disk holds that still counts: of an array, read as one disk and by its members.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    pub bad: Vec<BadBlocks>,
    pub not_compared: Option<(u64, String)>,
}

impl Elsewhere {
    fn of(pass: Option<Pass>) -> Self {
        let not_compared = pass.as_ref().and_then(Pass::not_compared).map(|(bytes, why)| (bytes.0, why.into()));
        Self { bad: pass.map(|pass| pass.known_errors()).unwrap_or_default(), not_compared }
    }
}

/// Those that were asked and have not answered, and what the others were found to be.
#[derive(Default)]
pub struct Finder {
    asked: BTreeMap<PathBuf, Asked>,
    known: BTreeMap<PathBuf, (Stamp, Instant, Found)>,
}

/// One that was asked: how it will answer, since when, and what it was then.
struct Asked {
    answer: Receiver<Found>,
    since: Instant,
    stamp: Option<Stamp>,
}

/// While these stay the same, so do a disk and its checkpoint.
#[derive(Clone, PartialEq)]
struct Stamp {
    /// The kernel counts the disks that it has seen (since Linux 5.15).
    sequence: String,
    sectors: String,
    /// When a checkpoint, of whichever disk, was last replaced.
    saved: SystemTime,
}

impl Stamp {
    /// That of a whole disk; nothing where the kernel does not tell.
    fn of(path: &Path, states: &StateFolder) -> Option<Self> {
        let folder = Path::new("/sys/class/block").join(path.file_name()?);
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let saved = fs::metadata(states.path()).ok()?.modified().ok()?;
        Some(Self { sequence: read("diskseq")?, sectors: read("size")?, saved })
    }
}

impl Finder {
    /// Whether what is at a path has been asked and has not answered.
    pub fn is_asking(&self, path: &Path) -> bool {
        self.asked.contains_key(path)
    }

    /// Looks at all disks, and devices that are named.
    pub fn look(&mut self, config: &Config, states: &StateFolder) -> Vec<(PathBuf, Found)> {
        let paths = paths(config);
        let mut stamps: BTreeMap<_, _> = paths.iter().map(|path| (path.clone(), Stamp::of(path, states))).collect();
        self.known.retain(|path, (stamp, since, _)| {
            since.elapsed() < AGAIN && stamps.get(path).is_some_and(|now| now.as_ref() == Some(stamp))
        });
        for path in paths.iter().filter(|path| !self.known.contains_key(*path)) {
            let stamp = stamps.remove(path).flatten();
            let begin = || Asked { answer: ask(path, states), since: Instant::now(), stamp };
            self.asked.entry(path.clone()).or_insert_with(begin);
        }
        let until = Instant::now() + AT_ONCE;
        let mut all = Vec::new();
        for path in paths {
            let Some(asked) = self.asked.get(&path) else {
                all.extend(self.known.get(&path).map(|(.., found)| (path, found.clone())));
                continue;
            };
            let since = asked.since;
            let found = match asked.answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(found) => {
                    let stamp = self.asked.remove(&path).and_then(|asked| asked.stamp);
                    // What could not be asked is tried again each time.
                    let stamp = stamp.filter(|_| matches!(found, Found::There(..)));
                    self.known.extend(stamp.map(|stamp| (path.clone(), (stamp, since, found.clone()))));
                    found
                }
                Err(_) => {
                    let why = (since.elapsed() >= SILENT).then(|| format!("{}: it does not answer", path.display()));
                    Found::Silent(why)
                }
            };
            all.push((path, found));
        }
        all
    }
}

/// Asks for one, beside whatever else is done.
fn ask(path: &Path, states: &StateFolder) -> Receiver<Found> {
    let (tell, told) = channel();
    let (path, states) = (path.to_path_buf(), states.clone());
    let work = move || {
        let found = match of(&path) {
            // That of another disk of this name is none. What is wrong with one its scrub says.
            Ok((present, device)) => {
                let (size, pass, elsewhere) = passes(&device, &states);
                Found::There(Box::new(Present { size, ..present }), pass.map(Box::new), elsewhere)
            }
            Err(why) => Found::Wrong(why),
        };
        // Nobody may want it any more.
        let _ = tell.send(found);
    };
    // Where no thread can be made, there is no answer.
    let _ = thread::Builder::new().name("finder".into()).spawn(work);
    told
}

/// What is known of a device by its checkpoints: an array is scrubbed by its members where those can be compared.
fn passes(device: &Device, states: &StateFolder) -> (Bytes, Option<Pass>, Elsewhere) {
    let mut plain = states.pass(device).ok().flatten();
    if let Some(pass) = &mut plain {
        // Where a volume lies now no pass has read.
        let moved = pass.marks.as_ref().is_some_and(|then| device.marks.lies_elsewhere_than(then));
        pass.completed_unix_s = pass.completed_unix_s.filter(|_| !moved);
    }
    let array = match Array::of(device) {
        Ok(None) => return (device.size, plain, Elsewhere::default()),
        // Of one that lacks a member now, its pass before is known all the same.
        array => array.ok().flatten(),
    };
    let mut by_members = states.pass_by_members(device);
    let now = |array: &Array| array.members.iter().map(|member| member.device.which()).collect();
    if let (Some(pass), Some(array)) = (&mut by_members, &array) {
        let marks = Marks { members: now(array), ..device.marks.clone() };
        // What is on a new member no pass has read.
        pass.completed_unix_s = pass
            .completed_unix_s
            .filter(|_| pass.marks.as_ref().is_some_and(|then| !marks.has_other_members_than(then)));
    }
    let saved = |pass: &Option<Pass>| pass.as_ref().map(|pass| pass.saved_unix_s);
    if saved(&plain) > saved(&by_members) || by_members.is_none() && array.is_none() {
        // Only who compares them says that they do not differ any more.
        return (device.size, plain, Elsewhere::of(by_members));
    }
    let size = array.map(|array| array.size).or(by_members.as_ref().map(|pass| Bytes(pass.device_bytes)));
    let is_open = |plain: &Pass| !by_members.as_ref().is_some_and(|members| plain.is_compared_by(members));
    let elsewhere = Elsewhere::of(plain.filter(is_open));
    (size.unwrap_or(device.size), by_members, elsewhere)
}

impl Daemon {
    /// Takes in which disks are there, and what their checkpoints hold.
    pub(crate) fn find_disks(&mut self, now: f64) {
        let (mut refused, mut is_here) = (self.config.nowhere(), BTreeMap::<String, PathBuf>::new());
        for (path, found) in self.finder.look(&self.config, &self.options.states) {
            let (present, pass, elsewhere) = match found {
                Found::There(present, pass, elsewhere) if present.size.0 > 0 => {
                    (*present, pass.map(|pass| *pass), elsewhere)
                }
                Found::There(..) => continue,
                Found::Wrong(why) => {
                    let identity = Device::identity_at(&path).unwrap_or_default();
                    if !self.config.of(&identity, &path).0.ignore {
                        refused.push(why);
                    }
                    continue;
                }
                Found::Silent(why) => {
                    refused.extend(why);
                    // It is what it was, as far as anybody knows.
                    let known = self.disks.iter().find(|(_, disk)| disk.present.path == path);
                    is_here.extend(known.map(|(identity, _)| (identity.clone(), path)));
                    continue;
                }
            };
            if self.config.of(&present.identity, &present.path).0.ignore {
                continue;
            }
            if let Some(first) = is_here.get(&present.identity) {
                refused.push(twin(&present, first));
                continue;
            }
            is_here.insert(present.identity.clone(), path);
            let known = self.record.disks.entry(present.identity.clone());
            let known = known.or_insert_with(|| Known { since_unix_s: now, ..Known::default() });
            if known.is_of_another(&present) {
                say(
                    Level::Notice,
                    &format!("{}: is another disk than the one that was called so", present.path.display()),
                );
                *known = Known { since_unix_s: now, paused: known.paused.take(), ..Known::default() };
                if self.disks.get(&present.identity).is_some_and(|disk| disk.worker.is_none()) {
                    self.disks.remove(&present.identity);
                }
            }
            known.correct_since(now, since_boot());
            known.seen_unix_s = now;
            known.marks = Some(present.marks.clone());
            known.device = present.path.display().to_string();
            let disk = self.disks.entry(present.identity.clone()).or_insert_with(|| Disk::new(present.clone()));
            (disk.present, disk.pass, disk.elsewhere) = (present, pass, elsewhere);
        }
        refused.iter().filter(|why| !self.refused.contains(why)).for_each(|why| say(Level::Warning, why));
        self.refused = refused;
        let is_idle = is_here.is_empty();
        if is_idle && !self.said_idle {
            say(Level::Warning, "no disk is looked after; `idlewise check-config` shows what each one gets");
        }
        self.said_idle = is_idle;
        // One that is there, and that nobody names any more, is not missing.
        let wanted = paths(&self.config);
        let is_unnamed = |identity: &str, path: &Path| {
            !wanted.iter().any(|one| one == path) && Device::identity_at(path).as_deref() == Some(identity)
        };
        for (identity, known) in &mut self.record.disks {
            if !is_here.contains_key(identity) && is_unnamed(identity, Path::new(&known.device)) {
                known.device.clear();
            }
        }
        // One that is gone, or ignored by now: its scrub ends by itself, or is asked to.
        self.disks.retain(|identity, disk| {
            let is_here = is_here.contains_key(identity);
            if is_here {
                return true;
            }
            if let Some(worker) = &mut disk.worker {
                worker.ask_to_end();
                if worker.ended().is_none() && !worker.is_lost() {
                    return true;
                }
            }
            let path = &disk.present.path;
            let (level, what) = match self.config.of(identity, path).0.ignore {
                true => (Level::Notice, "is ignored, by the configuration"),
                false if is_unnamed(identity, path) => (Level::Notice, "is not named by the configuration any more"),
                false => (Level::Error, "is not there any more"),
            };
            say(level, &format!("{}: {what}", path.display()));
            false
        });
        if self.is_the_clock_right() {
            self.record.disks.retain(|_, known| now - known.seen_unix_s < FORGOTTEN_S);
        }
    }
}
