//! A monitor of users, with the times in which an owner's scrub is at work: its own requests are not told from theirs, only when it was let go
//! and when it was quiet again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use idlewise::Nanos;

use crate::monitor::{Event, EventKind, EventOp, Monitor, MonitorError, Origin, Own};

/// What is to be told of the scrub.
#[derive(Clone, Default)]
pub struct Marks(Arc<Mutex<Vec<Event>>>);

impl Marks {
    /// It begins or ends to be at work.
    pub fn add(&self, at: Nanos, kind: EventKind) {
        let event = Event::without_place(kind, at, at, EventOp::Read, Origin::Own);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// The monitor.
pub struct Marked {
    pub users: Box<dyn Monitor>,
    pub marks: Marks,
}

impl Monitor for Marked {
    fn name(&self) -> &'static str {
        self.users.name()
    }

    fn is_coarse(&self) -> bool {
        self.users.is_coarse()
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        let from = events.len();
        self.users.poll(wait, events)?;
        events.append(&mut self.marks.0.lock().unwrap_or_else(PoisonError::into_inner));
        events[from..].sort_by_key(|event| event.at);
        Ok(())
    }

    fn outstanding(&mut self) -> u64 {
        self.users.outstanding()
    }

    fn own(&mut self, _own: Own) {}

    fn tell_each(&mut self, each: bool) {
        self.users.tell_each(each);
    }

    fn lost(&self) -> u64 {
        self.users.lost()
    }
}
