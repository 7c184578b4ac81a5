//! Which disks come to work while the processes run. To watch one more takes some tenths of a second, so it is done beside the pacing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use crate::device::WholeDisk;
use crate::monitor::{self, Counter, Monitor, MonitorError};

/// Numbers of a disk, major and minor.
pub type Numbers = (u32, u32);

/// A monitor that tells the processes' requests from others, and why it is the coarser one, if it is.
pub type Opened = (Box<dyn Monitor>, Option<String>);

/// A disk, and the monitor that was opened for it.
type Found = (WholeDisk, Result<Opened, MonitorError>);

/// What is known of the disks that are not watched.
#[derive(Default)]
pub struct Disks {
    /// Requests that each had completed at the last look; none where the disks were named.
    completed: BTreeMap<Numbers, u64>,
    /// Those that no monitor could be opened for.
    refused: BTreeSet<Numbers>,
    /// Monitors that are being opened.
    opening: Option<Receiver<Found>>,
}

impl Disks {
    /// All disks of the machine, those with the most requests so far first, and what each of them had.
    pub fn all(&mut self) -> Vec<(u64, WholeDisk)> {
        let mut disks: Vec<_> = WholeDisk::all().into_iter().map(|disk| (disk.completed(), disk)).collect();
        disks.sort_by_key(|(completed, _)| std::cmp::Reverse(*completed));
        self.completed = disks.iter().map(|(completed, disk)| (disk.numbers(), *completed)).collect();
        disks
    }

    /// No monitor can be opened for this one.
    pub fn refuse(&mut self, disk: Numbers) {
        self.refused.insert(disk);
    }

    /// Those that have worked since the last look and are not watched; none while others are being opened.
    pub fn at_work(&mut self, is_watched: impl Fn(Numbers) -> bool) -> Vec<WholeDisk> {
        if self.completed.is_empty() || self.opening.is_some() {
            return Vec::new();
        }
        let mut found = WholeDisk::all();
        // Numbers of a disk that is gone are given to others.
        let there: BTreeSet<_> = found.iter().map(WholeDisk::numbers).collect();
        self.refused.retain(|numbers| there.contains(numbers));
        self.completed.retain(|numbers, _| there.contains(numbers));
        found.retain(|disk| {
            let (numbers, completed) = (disk.numbers(), disk.completed());
            let before = self.completed.insert(numbers, completed).unwrap_or(0);
            if completed < before {
                self.refused.remove(&numbers);
            }
            completed > before && !is_watched(numbers) && !self.refused.contains(&numbers)
        });
        found
    }

    /// Begins to open monitors for these, and closes others before, which takes as long. Where no thread can be made, nothing happens.
    pub fn open(&mut self, disks: Vec<WholeDisk>, closing: Vec<Box<dyn Monitor>>, how: impl Fn() -> How) {
        let disks: Vec<_> = disks.into_iter().map(|disk| (disk, how())).collect();
        let (tell, told) = channel();
        let work = move || {
            drop(closing);
            // Nobody wants the others any more once nobody listens.
            disks.into_iter().all(|(disk, how)| {
                let opened = how.open(&disk);
                tell.send((disk, opened)).is_ok()
            });
        };
        self.opening = thread::Builder::new().name("disks".into()).spawn(work).is_ok().then_some(told);
    }

    /// The next one that was opened, or not.
    pub fn opened(&mut self) -> Option<Found> {
        match self.opening.as_ref()?.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.opening = None;
                None
            }
        }
    }
}

/// How the processes' requests are told from others: by their control group, if they are in one, or by counting their bytes.
pub struct How {
    pub group: Option<u64>,
    pub counter: Counter,
}

impl How {
    /// Opens the best monitor that does it.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(self, disk: &WholeDisk) -> Result<Opened, MonitorError> {
        let why = match self.group.map(|group| monitor::of_group(disk, group)) {
            Some(Ok(monitor)) => return Ok((monitor, None)),
            Some(Err(error)) => error.to_string(),
            None => "their requests are known by their control group only".into(),
        };
        Ok((monitor::of_counted(disk, self.counter)?, Some(why)))
    }
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::device::Device;
    use crate::monitor::{Moved, bpf::tests::Loop};

    #[test]
    fn root_what_comes_to_work_is_watched() {
        let Some(disk) = Loop::new() else { return };
        let numbers = Device::open(&disk.0).unwrap().whole().numbers();
        let mut disks = Disks::default();
        assert!(disks.at_work(|_| false).is_empty(), "disks were named");
        disks.all();
        let work = || {
            drop(
                std::process::Command::new("dd")
                    .arg("of=/dev/null")
                    .arg("iflag=direct")
                    .arg(format!("if={}", disk.0.display()))
                    .output(),
            )
        };
        let has_worked = |disks: &mut Disks, watched| {
            disks.at_work(|numbers| numbers == watched).into_iter().find(|disk| disk.numbers() == numbers)
        };
        work();
        assert!(has_worked(&mut disks, numbers).is_none(), "watched already");
        work();
        let found = has_worked(&mut disks, (0, 0)).unwrap();
        disks.open(vec![found], Vec::new(), || How { group: None, counter: Box::new(|| Some(Moved::default())) });
        work();
        assert!(has_worked(&mut disks, (0, 0)).is_none(), "others are being opened");
        let began = Instant::now();
        let (_, opened) = loop {
            match disks.opened() {
                Some((disk, opened)) if disk.numbers() == numbers => break (disk, opened),
                _ => assert!(began.elapsed() < Duration::from_secs(30)),
            }
        };
        let (monitor, why) = opened.unwrap();
        assert!(monitor.is_coarse() && why.is_some());
        while disks.opening.is_some() {
            assert!(disks.opened().is_none());
        }
        disks.refuse(numbers);
        work();
        assert!(has_worked(&mut disks, (0, 0)).is_none());
    }
}
