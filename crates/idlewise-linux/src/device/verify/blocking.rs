//! Commands that block until they are done, on a thread of their own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use idlewise::order::Extent;

use super::{Fault, Verifier};

/// A verifier whose command blocks.
struct Blocking {
    name: &'static str,
    stretches: Sender<Extent>,
    results: Receiver<Result<(), Fault>>,
}

/// A verifier that runs `command` for each stretch.
///
/// # Errors
/// A fault if no thread can be made.
pub fn blocking(
    name: &'static str,
    mut command: impl FnMut(Extent) -> Result<(), Fault> + Send + 'static,
) -> Result<Box<dyn Verifier>, Fault> {
    let (stretches, todo) = channel();
    let (done, results) = channel();
    // It ends with the verifier; in the middle of a command that hangs, with the process.
    let run = move || {
        while let Ok(extent) = todo.recv() {
            if done.send(command(extent)).is_err() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| Fault::Device(format!("a thread for its commands: {error}")))?;
    Ok(Box::new(Blocking { name, stretches, results }))
}

impl Verifier for Blocking {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&mut self, extent: Extent) -> Result<(), Fault> {
        self.stretches.send(extent).map_err(|_| ended())
    }

    fn wait(&mut self, timeout: Duration) -> Option<Result<(), Fault>> {
        match self.results.recv_timeout(timeout) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(ended())),
        }
    }
}

fn ended() -> Fault {
    Fault::Device("the verifier's thread has ended".into())
}
