//! Finds the disks of the machine. Each is opened on a thread of its own: one that does not answer holds up no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use idlewise_linux::scrub::{Pass, StateFolder};

use crate::Config;
use crate::machine::{Present, of, paths};

/// Those that answer are waited for so long.
const AT_ONCE: Duration = Duration::from_millis(500);
/// One that has not answered for so long is said not to.
const SILENT: Duration = Duration::from_secs(10);

/// What was found at a path.
pub enum Found {
    /// A disk, and what its checkpoint holds.
    There(Box<Present>, Option<Box<Pass>>),
    /// Nothing that can be looked after, and why.
    Wrong(String),
    /// It has not answered yet; why that is worth saying, if it is.
    Silent(Option<String>),
}

/// Those that were asked and have not answered.
#[derive(Default)]
pub struct Finder {
    asked: BTreeMap<PathBuf, (Receiver<Found>, Instant)>,
}

impl Finder {
    /// Looks at all disks, and devices that are named.
    pub fn look(&mut self, config: &Config, states: &StateFolder) -> Vec<(PathBuf, Found)> {
        let paths = paths(config);
        for path in &paths {
            self.asked.entry(path.clone()).or_insert_with(|| (ask(path, states), Instant::now()));
        }
        let until = Instant::now() + AT_ONCE;
        let mut all = Vec::new();
        for path in paths {
            let Some((answer, since)) = self.asked.get(&path) else { continue };
            let found = match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(found) => {
                    self.asked.remove(&path);
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
                let pass = states.pass(&device).ok().flatten();
                Found::There(Box::new(present), pass.map(Box::new))
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
