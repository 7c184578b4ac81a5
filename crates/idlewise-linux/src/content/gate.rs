//! When an owner may read what it has to look up: trees and tables that are not in memory.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Whoever looks things up passes before each piece. While it is closed nobody does: the disk is the foreground's.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Opens or closes it. It is open at first.
    pub fn set(&self, open: bool) {
        let (closed, changed) = &*self.0;
        *closed.lock().unwrap_or_else(PoisonError::into_inner) = !open;
        changed.notify_all();
    }

    /// Waits until it is open.
    pub fn pass(&self) {
        let (closed, changed) = &*self.0;
        let mut closed = closed.lock().unwrap_or_else(PoisonError::into_inner);
        while *closed {
            closed = changed.wait(closed).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
