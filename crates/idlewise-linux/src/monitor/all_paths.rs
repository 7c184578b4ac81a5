//! A disk watched by all paths to it, also by those that come and go meanwhile.

use std::time::{Duration, Instant};

use super::{Event, Joined, Monitor, MonitorError, Own};
use crate::device::{Device, OtherPaths};

/// Between two looks at which paths there are.
const LOOK: Duration = Duration::from_secs(1);

/// A path that has come may not be ready at so many looks.
const PATIENCE: u8 = 5;

/// Opens the monitor of a whole disk.
type Open = Box<dyn FnMut(&Device) -> Result<Box<dyn Monitor>, String> + Send>;

/// The monitor of the path that is read by, and those of all others. By the others nothing is read.
pub struct AllPaths {
    /// The first is the one that is read by.
    monitors: Joined,
    /// The numbers of the others' disks.
    others: Vec<(u32, u32)>,
    paths: OtherPaths,
    open: Open,
    looked: Instant,
    /// Looks in a row at which a path that is there could not be opened.
    refused: u8,
    tells_each: bool,
    own_lookups: bool,
}

impl AllPaths {
    /// Watches the device's disk by all paths, of which `open` opens each.
    ///
    /// # Errors
    /// [`MonitorError`] if one of them cannot be watched.
    pub fn new(device: &Device, mut open: Open) -> Result<Self, MonitorError> {
        let own = open(device).map_err(failed)?;
        let (monitors, paths) = (Joined::new(vec![(own, vec![0])]), device.other_paths());
        let (others, looked) = (Vec::new(), Instant::now());
        // At first there is no patience with what cannot be watched.
        let refused = PATIENCE;
        let mut watched =
            Self { monitors, others, paths, open, looked, refused, tells_each: false, own_lookups: false };
        watched.look()?;
        Ok(watched)
    }

    /// Watches each path that there is now, and no other.
    fn look(&mut self) -> Result<(), MonitorError> {
        self.looked = Instant::now();
        let now = self.paths.now();
        while let Some(gone) = self.others.iter().position(|path| !now.contains(path)) {
            self.others.remove(gone);
            self.monitors.disks.remove(1 + gone);
        }
        let refused = std::mem::take(&mut self.refused);
        for path in now {
            if self.others.contains(&path) {
                continue;
            }
            let new = Device::with_numbers(path).map_err(|error| error.to_string());
            let mut monitor = match new.and_then(|device| (self.open)(&device)) {
                Ok(monitor) => monitor,
                Err(problem) if refused >= PATIENCE => return Err(failed(problem)),
                // It may be gone again, or not be ready yet.
                Err(_) => {
                    self.refused = refused + 1;
                    continue;
                }
            };
            monitor.tell_each(self.tells_each);
            if self.own_lookups {
                monitor.own_lookups();
            }
            self.others.push(path);
            self.monitors.disks.push((monitor, Vec::new()));
        }
        Ok(())
    }
}

fn failed(problem: String) -> MonitorError {
    MonitorError {
        monitor: "other path",
        problem: format!("another path to the disk has to be watched as well: {problem}"),
    }
}

impl Monitor for AllPaths {
    fn name(&self) -> &'static str {
        self.monitors.name()
    }

    fn is_coarse(&self) -> bool {
        self.monitors.is_coarse()
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        if self.looked.elapsed() >= LOOK {
            self.look()?;
        }
        self.monitors.poll(wait, events)
    }

    fn outstanding(&mut self) -> u64 {
        self.monitors.outstanding()
    }

    fn own(&mut self, own: Own) {
        self.monitors.own(own);
    }

    fn own_lookups(&mut self) {
        self.own_lookups = true;
        self.monitors.own_lookups();
    }

    fn tell_each(&mut self, each: bool) {
        self.tells_each = each;
        self.monitors.tell_each(each);
    }

    fn lost(&self) -> u64 {
        self.monitors.lost()
    }
}
