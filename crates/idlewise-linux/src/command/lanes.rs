//! The disks that are watched: those that were named, or those at work.

use std::time::Duration;

use idlewise::Nanos;
use idlewise::tune::Goal;

use super::disks::{Disks, How, Opened};
use super::held::Held;
use super::lane::Lane;
use super::paced::{RunError, Settings};
use crate::device::WholeDisk;
use crate::monitor::{Monitor, Own, now};

/// Time between two looks for disks that have come to be used.
const LOOK_FOR_DISKS: Nanos = Nanos::from_secs(1);
/// Disks that are watched from the beginning, at most: those with the most requests so far. Others are when one is seen to work.
const AT_FIRST: usize = 8;
/// Disks that are watched, at most: each costs every request of the machine some nanoseconds.
const MOST: usize = 64;

/// A lane for each disk that is watched.
pub struct Lanes {
    pub all: Vec<Lane>,
    /// Those that are not watched.
    disks: Disks,
    looked: Nanos,
    settings: Settings,
    /// Why the coarser monitor is used.
    pub coarse: Option<String>,
    /// What is to be said.
    pub warnings: Vec<String>,
    is_crowd_said: bool,
}

impl Lanes {
    /// Those that were named, or those with the most requests so far.
    ///
    /// # Errors
    /// If one that was named cannot be watched.
    pub fn new(held: &Held, mut settings: Settings) -> Result<Self, RunError> {
        let named = settings.disks.take();
        let mut lanes = Self {
            all: Vec::new(),
            disks: Disks::default(),
            looked: now(),
            settings,
            coarse: None,
            warnings: Vec::new(),
            is_crowd_said: false,
        };
        match named {
            Some(disks) => disks.into_iter().try_for_each(|disk| lanes.watch(disk, held, true))?,
            None => {
                let most = lanes.disks.all().into_iter().take(AT_FIRST).filter(|(completed, _)| *completed > 0);
                for (_, disk) in most {
                    let numbers = disk.numbers();
                    if lanes.watch(disk, held, false).is_err() {
                        lanes.disks.refuse(numbers);
                    }
                }
            }
        }
        Ok(lanes)
    }

    /// Takes in what each monitor saw, of which the first waits for so long; whether nobody has. Disks that are gone are watched no more.
    ///
    /// # Errors
    /// If a monitor fails whose disk is there, or nothing can be tuned.
    pub fn poll(&mut self, mut wait: Duration, ran: Nanos) -> Result<Duration, RunError> {
        let mut vanished = Vec::new();
        for (place, lane) in self.all.iter_mut().enumerate() {
            match lane.poll(std::mem::take(&mut wait), ran) {
                Err(error) if WholeDisk::with_numbers(lane.disk.numbers()).is_ok() => return Err(error.into()),
                Err(_) => vanished.push(place),
                Ok(()) => lane.tune()?,
            }
        }
        for place in vanished.into_iter().rev() {
            let name = self.all.remove(place).disk.name();
            self.warnings.push(format!("{name} is gone, and is not watched any more"));
        }
        Ok(wait)
    }

    /// Whether to look again for disks that have come to work.
    pub fn is_due(&mut self) -> bool {
        let due = now().since(self.looked) >= LOOK_FOR_DISKS;
        self.looked = if due { now() } else { self.looked };
        due
    }

    /// Begins to watch disks that have come to work since the last look.
    pub fn look_for_disks(&mut self, held: &Held) {
        let watched: Vec<_> = self.all.iter().map(|lane| lane.disk.numbers()).collect();
        let mut found = self.disks.at_work(|numbers| watched.contains(&numbers));
        if found.is_empty() {
            return;
        }
        let closing = self.make_room(&mut found);
        self.disks.open(found, closing, || how(held));
    }

    /// Takes disks out of the watch that the processes were not seen to use, where there are too many; and others out of those found, where
    /// that leaves no room for them.
    fn make_room(&mut self, found: &mut Vec<WholeDisk>) -> Vec<Box<dyn Monitor>> {
        let mut closing = Vec::new();
        while self.all.len() + found.len() > MOST {
            if !std::mem::replace(&mut self.is_crowd_said, true) {
                self.warnings.push(format!(
                    "more than {MOST} disks are at work, and those that it was not seen to use are watched in turn: name its own by --device"
                ));
            }
            match self.all.iter().position(|lane| !lane.was_used()) {
                Some(place) => closing.push(self.all.remove(place).watched.monitor),
                None => found.truncate(MOST.saturating_sub(self.all.len())),
            }
        }
        closing
    }

    /// Watches what was opened beside the pacing.
    pub fn take_opened(&mut self, held: &Held) {
        while let Some((disk, opened)) = self.disks.opened() {
            // What happened until now is nobody's.
            let ready = opened.and_then(|(mut monitor, coarse)| {
                monitor.poll(Duration::ZERO, &mut Vec::new())?;
                Ok((monitor, coarse))
            });
            match ready {
                Ok(opened) => self.add(disk, opened, held, false),
                Err(_) => self.disks.refuse(disk.numbers()),
            }
        }
    }

    fn watch(&mut self, disk: WholeDisk, held: &Held, named: bool) -> Result<(), RunError> {
        let opened = how(held).open(&disk)?;
        self.add(disk, opened, held, named);
        Ok(())
    }

    fn add(&mut self, disk: WholeDisk, (mut monitor, coarse): Opened, held: &Held, named: bool) {
        if let Some(why) = coarse {
            self.coarse.get_or_insert(why);
        }
        if !held.is_held() {
            monitor.own(Own::Processes);
        }
        let default = disk.kind().goal();
        let goal = Goal::new(
            self.settings.mean_slowdown.unwrap_or(default.mean_slowdown),
            self.settings.max_slowdown.unwrap_or(default.max_slowdown),
        );
        self.all.push(Lane::new(disk, monitor, goal, self.settings.idle_wait, named));
    }
}

/// How a monitor tells requests of the processes from others.
fn how(held: &Held) -> How {
    How { group: held.group().and_then(|group| group.number().ok()), counter: held.counter() }
}
