//! ZFS's own scrub of a pool, paused and resumed by its tool (zpool-scrub(8)). To pause takes it one to three seconds, as that waits for a
//! transaction group to be written; so it is for idle times of minutes, and for those who accept that somebody waits for so long. ZFS
//! itself keeps how far it is, and repairs what it finds wrong.
//!
//! The tool is called on a thread of its own: it may wait for long, and the disks are looked at meanwhile.

mod status;
mod users;
mod worker;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idlewise::Bytes;
use serde::{Deserialize, Serialize};

use super::{Place, Scrubber, Standing, refused};
use crate::device::{Device, WholeDisk, zpool};
use crate::ledger::{Ledger, Undo};
use crate::monitor::{self, Monitor};
use status::{Scan, Status};
use users::Users;
use worker::{Order, Worker};

/// A pool that is written to hard may take so long to pause.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pool whose scrub is let go: it is paused if this process is killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetGo {
    pool: String,
}

impl Undo for LetGo {
    const END: &'static str = "zpool";

    fn undo(&self) -> bool {
        if !zpool::is_imported(&self.pool) {
            return true;
        }
        match Status::of(&self.pool) {
            Ok(status) if status.scan == Scan::Running => pause(&self.pool).is_ok(),
            other => other.is_ok(),
        }
    }
}

/// Has the scrub of a pool pause.
fn pause(pool: &str) -> io::Result<()> {
    zpool::ask(&["scrub", "-p", "--", pool], PATIENCE).map(drop)
}

/// A scrub.
struct Gate {
    device: Device,
    pool: String,
    worker: Worker,
    /// For those who use the pool: it is at work.
    works: Arc<AtomicBool>,
    open: bool,
    /// What was counted in this pass before, and what ZFS had counted when this began.
    before: u64,
    began_with: u64,
    ledger: Option<Ledger<LetGo>>,
}

/// The pool on a device, and its number.
pub fn name(device: &Device) -> io::Result<String> {
    pool(device).map(|(name, guid)| format!("{name} {guid}"))
}

fn pool(device: &Device) -> io::Result<(String, u64)> {
    let mut pools = device.pools().iter().map(|(_, pool)| (pool.name.clone(), pool.guid));
    match (pools.next(), pools.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(refused("members of several pools of ZFS are on it; name a partition")),
        _ => Err(refused("no pool of ZFS is on it; name a disk or a partition that is a member of one")),
    }
}

/// Of the pool on a device.
pub fn gate(device: &Device, place: Place) -> io::Result<Box<dyn Scrubber>> {
    let (pool, guid) = pool(device)?;
    if !zpool::is_imported(&pool) {
        return Err(refused(format!("its pool {pool} is not imported: zpool import {pool}")));
    }
    let asked = zpool::ask(&["get", "-H", "-p", "-o", "value", "guid", &pool], PATIENCE)?;
    if asked.trim() != guid.to_string() {
        return Err(refused(format!("the pool {pool} that is imported is another one")));
    }
    let status = Status::of(&pool)?;
    let why = match (&*status.state, status.scan) {
        _ if status.resilvers => Some("ZFS copies data to a disk of its pool".to_string()),
        (_, Scan::Running) => Some("a scrub of ZFS's own is running on it, begun by somebody else".into()),
        ("ONLINE", _) => None,
        (state, _) => Some(format!("its pool {pool} is {state}: `zpool status {pool}` says why")),
    };
    if let Some(why) = why {
        return Err(refused(why));
    }
    // One that was paused, by whomever, is the one that goes on.
    let is_begun = status.scan == Scan::Paused;
    let again = Device::open(&device.path).map_err(io::Error::other)?;
    Ok(Box::new(Gate {
        device: again,
        before: if is_begun { place.wrong } else { 0 },
        began_with: status.wrong,
        worker: Worker::start(&pool, status)?,
        pool,
        works: Arc::default(),
        open: false,
        ledger: None,
    }))
}

impl Scrubber for Gate {
    fn others(&self) -> io::Result<Vec<Device>> {
        let disks = self.worker.seen()?.status.disks;
        // A pool of files, or a member that is missing, has no device.
        Ok(disks.iter().filter_map(|path| Device::open(Path::new(path)).ok()).collect())
    }

    fn users(&self) -> io::Result<Vec<(WholeDisk, Box<dyn Monitor>)>> {
        let mut users: Vec<(WholeDisk, Box<dyn Monitor>)> =
            vec![(self.device.whole(), Box::new(Users::of(&self.pool, self.works.clone())?))];
        let mut known = Vec::new();
        for member in self.others()? {
            if member.start == Bytes(0) || known.contains(&member.disk_numbers()) || !member.whole().has_requests() {
                continue;
            }
            known.push(member.disk_numbers());
            let within = member.start.0..member.start.0 + member.size.0;
            users.push((member.whole(), monitor::of_users_beside(&member.whole(), within).map_err(io::Error::other)?));
        }
        Ok(users)
    }

    fn open(&mut self) -> io::Result<()> {
        if self.ledger.is_none() {
            let ledger = self.ledger.insert(Ledger::begin()?);
            ledger.add(LetGo { pool: self.pool.clone() })?;
        }
        self.open = true;
        self.works.store(true, Ordering::Relaxed);
        self.worker.order(Order::Go)
    }

    fn close(&mut self) -> io::Result<()> {
        self.open = false;
        self.worker.order(Order::Pause)
    }

    fn look(&mut self) -> io::Result<Standing> {
        let seen = self.worker.seen()?;
        let counted = self.before.saturating_add(seen.status.wrong.saturating_sub(self.began_with));
        // Somebody may have cleared the counters, and what was counted a short time ago is not counted again.
        let is_over = seen.is_answered && seen.is_over;
        let wrong = if is_over { counted.max(seen.status.lost) } else { counted };
        let is_quiet = seen.is_answered && seen.status.scan != Scan::Running && (!self.open || seen.is_over);
        if is_quiet {
            self.works.store(false, Ordering::Relaxed);
        }
        let (done, all) = (Bytes(seen.status.issued), Bytes(seen.status.all));
        Ok(Standing { place: done, done, all, wrong, wrong_in_place: wrong, is_quiet, is_over, ..Standing::default() })
    }

    fn stop(&mut self) -> io::Result<()> {
        let Some(mut ledger) = self.ledger.take() else { return Ok(()) };
        if self.worker.rests(PATIENCE) {
            return ledger.take_back();
        }
        Err(refused(format!("ZFS does not pause the scrub of {0}: zpool scrub -p {0}", self.pool)))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Whoever comes next tries again.
        let _ = self.stop();
    }
}
