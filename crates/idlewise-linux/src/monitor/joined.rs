//! Several disks watched as one, whose members are read together: it is busy while any of them is.

use std::time::Duration;

use super::{Event, Monitor, MonitorError, Own};

/// The monitors of the disks, each with what is read of it: how much further on than the place that is announced, for each read.
pub struct Joined {
    pub(super) disks: Vec<(Box<dyn Monitor>, Vec<u64>)>,
}

impl Joined {
    /// Of these disks.
    pub fn new(disks: Vec<(Box<dyn Monitor>, Vec<u64>)>) -> Self {
        Self { disks }
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Box<dyn Monitor>> {
        self.disks.iter_mut().map(|(monitor, _)| monitor)
    }
}

impl Monitor for Joined {
    fn name(&self) -> &'static str {
        self.disks.first().map_or("none", |(monitor, _)| monitor.name())
    }

    fn is_coarse(&self) -> bool {
        self.disks.iter().any(|(monitor, _)| monitor.is_coarse())
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        let from = events.len();
        let mut wait = wait;
        for monitor in self.each() {
            monitor.poll(std::mem::take(&mut wait), events)?;
        }
        events[from..].sort_by_key(|event| event.at);
        Ok(())
    }

    fn outstanding(&mut self) -> u64 {
        self.each().map(|monitor| monitor.outstanding()).sum()
    }

    fn own(&mut self, own: Own) {
        for (monitor, begins) in &mut self.disks {
            monitor.own(match &own {
                // By this path to the disk nothing is read.
                Own::Read(_) if begins.is_empty() => Own::Nothing,
                Own::Read(range) => {
                    // Of several places of one disk the others are known as reads of this process; counted are all.
                    let (first, count) = (range.start + begins.first().unwrap_or(&0), begins.len() as u64);
                    Own::Read(first..first + (range.end - range.start) * count)
                }
                other => other.clone(),
            });
        }
    }

    fn own_lookups(&mut self) {
        self.each().for_each(|monitor| monitor.own_lookups());
    }

    fn tell_each(&mut self, each: bool) {
        self.each().for_each(|monitor| monitor.tell_each(each));
    }

    fn lost(&self) -> u64 {
        self.disks.iter().map(|(monitor, _)| monitor.lost()).sum()
    }
}
