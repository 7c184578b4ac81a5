//! The thread that calls the tool of ZFS, and what it has found.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::status::{Scan, Status};
use super::{PATIENCE, pause};
use crate::device::zpool;
use crate::scrubber::refused;

/// While the scrub is at work, it is asked so often how far it is.
const LOOKS: Duration = Duration::from_secs(2);

/// What it is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Let the scrub go on, or begin.
    Go,
    /// Have it pause.
    Pause,
}

/// What it has found.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub status: Status,
    /// The scrub has come to its end.
    pub is_over: bool,
    /// All orders were followed.
    pub is_answered: bool,
    /// It was let go here, and by nobody else since.
    is_ours: bool,
    /// So many orders were followed.
    answered: u64,
    /// Why it cannot go on.
    failure: Option<String>,
}

/// The thread.
pub struct Worker {
    seen: Arc<Mutex<Seen>>,
    orders: Sender<Order>,
    ordered: u64,
}

impl Worker {
    /// Of a pool that stands so.
    pub fn start(pool: &str, status: Status) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let seen = Arc::new(Mutex::new(Seen { status, ..Seen::default() }));
        let worker = Work { pool: pool.into(), seen: seen.clone(), begun: false, is_ours: false };
        std::thread::Builder::new().name("zpool".into()).spawn(move || worker.run(&ordered))?;
        Ok(Self { seen, orders, ordered: 0 })
    }

    /// Has it do something; does not wait.
    pub fn order(&mut self, order: Order) -> io::Result<()> {
        self.ordered += 1;
        self.orders.send(order).map_err(|_| refused("the thread that calls zpool is gone"))
    }

    /// What it has found.
    pub fn seen(&self) -> io::Result<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match seen.failure {
            Some(why) => Err(refused(why)),
            None => Ok(Seen { is_answered: seen.answered == self.ordered, ..seen }),
        }
    }

    /// Waits until all orders were followed, whatever failed; whether the scrub is not left at work then, but by somebody else.
    pub fn rests(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if seen.answered == self.ordered {
                return !seen.is_ours;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What runs on the thread.
struct Work {
    pool: String,
    seen: Arc<Mutex<Seen>>,
    /// It was let go once.
    begun: bool,
    /// It was let go, and by nobody else since.
    is_ours: bool,
}

impl Work {
    fn run(mut self, orders: &Receiver<Order>) {
        let mut runs = false;
        loop {
            let order = if runs { orders.recv_timeout(LOOKS) } else { orders.recv().map_err(Into::into) };
            let done = match order {
                Ok(Order::Go) => self.go(),
                Ok(Order::Pause) => self.pause(),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match done {
                Ok(status) => {
                    seen.is_over |= self.begun && status.scan == Scan::Finished;
                    runs = status.scan == Scan::Running;
                    // At its end ZFS says no more how much there was.
                    let (issued, all) = (seen.status.issued.max(status.issued), seen.status.all.max(status.all));
                    let issued = if seen.is_over { all } else { issued };
                    seen.status = Status { issued, all, ..status };
                }
                Err(error) => seen.failure = Some(error.to_string()),
            }
            seen.is_ours = self.is_ours;
            seen.answered += u64::from(order.is_ok());
        }
    }

    /// Lets it go on. What somebody else did to it meanwhile is left as it is.
    fn go(&mut self) -> io::Result<Status> {
        let status = Status::of(&self.pool)?;
        let is_as_left = if self.begun { status.scan == Scan::Paused } else { status.scan != Scan::Running };
        match status.scan {
            _ if status.resilvers => return Err(refused("ZFS copies data to a disk of the pool now")),
            Scan::Finished if self.begun => return Ok(status),
            Scan::Running => return Err(refused("somebody else lets the scrub of ZFS go on")),
            _ if !is_as_left => return Err(refused("somebody else has ended the scrub of ZFS")),
            _ => {}
        }
        let went = zpool::ask(&["scrub", "--", &self.pool], PATIENCE);
        let status = Status::of(&self.pool)?;
        // What is there counts, whatever the tool says.
        match (went, status.scan) {
            (_, Scan::Running) | (Ok(_), Scan::Finished) => {
                (self.begun, self.is_ours) = (true, status.scan == Scan::Running);
                Ok(status)
            }
            (Err(error), _) => Err(error),
            (Ok(_), _) => Err(refused("the scrub of ZFS does not begin")),
        }
    }

    /// Has it pause, but for one that somebody else has let go.
    fn pause(&mut self) -> io::Result<Status> {
        let paused = if self.is_ours { pause(&self.pool) } else { Ok(()) };
        let status = Status::of(&self.pool)?;
        if let (Err(error), Scan::Running) = (paused, status.scan) {
            return Err(error);
        }
        self.is_ours = false;
        Ok(status)
    }

    /// How far it is, while nobody has it pause.
    fn look(&mut self) -> io::Result<Status> {
        let status = Status::of(&self.pool)?;
        self.is_ours &= status.scan == Scan::Running;
        match status.scan {
            Scan::Running | Scan::Finished => Ok(status),
            Scan::Paused => Err(refused("somebody else has paused the scrub of ZFS")),
            Scan::Canceled | Scan::None => Err(refused("somebody else has ended the scrub of ZFS")),
            Scan::Resilver => Err(refused("ZFS copies data to a disk of the pool now")),
        }
    }
}
