//! btrfs's own scrub of one device, a chunk at a time: it takes no smaller piece, and one that is cancelled begins anew. So a chunk is
//! cancelled only in its first half, by the time that others took; else the foreground waits for its end.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Instant;

use idlewise::{Bytes, Nanos};

use super::{Place, Scrubber, Standing, refused};
use crate::apart::Calls;
use crate::content::btrfs::OwnDevice;
use crate::content::btrfs::orders::{Counted, cancel_scrub, commit, scrub_chunk, scrub_progress};
use crate::content::{Gate, Part};
use crate::device::{Device, WholeDisk};
use crate::monitor::{self, Monitor};

/// A chunk that was cancelled so often is let end: else a busy file system would never be scrubbed.
const MOST_CANCELS: u32 = 8;

/// Why it does not begin, or ends.
const FOREIGN: &str = "a scrub of btrfs's own is running on it, begun by somebody else";

/// What a call brings: what came of it, what it has counted, and how long it took.
type Done = (io::Result<()>, Counted, Nanos);

/// A scrub.
struct Chunks {
    device: Device,
    own: OwnDevice,
    /// What of the device its chunks take, in order, as it was asked for last; those that begin before this place are done.
    stretches: Vec<Range<u64>>,
    done: u64,
    call: Option<Receiver<Done>>,
    began: Option<Instant>,
    cancelled: bool,
    cancels: u32,
    open: bool,
    wrong: u64,
    /// Bytes of data and of tree blocks that btrfs passed over; and those of the next chunk, if it seems to have passed over that.
    skipped: u64,
    suspected: Option<(Range<u64>, u64)>,
    /// Bytes of the device that were gone through, and the time that took.
    through: (u64, Nanos),
}

/// Its unique name, and the number of the device in it.
pub fn name(device: &Device) -> io::Result<String> {
    Ok(own(device)?.name())
}

fn own(device: &Device) -> io::Result<OwnDevice> {
    let parts = device.parts().into_iter().filter(|(range, _)| *range == (0..device.size.0));
    let mut found = None;
    for (range, name) in parts {
        let number = device.numbers();
        let (disk, gate, calls) = (device.file.try_clone()?, Gate::default(), Calls::default());
        let part = Part { disk, range, name, number, gate, silent: Arc::default(), calls };
        found = found.or(OwnDevice::of(&part).map_err(refused)?);
    }
    found.ok_or_else(|| refused("no btrfs is on it; name a device or a partition of a btrfs that is mounted"))
}

/// Of the file system on a device.
pub fn chunks(device: &Device, place: Place) -> io::Result<Box<dyn Scrubber>> {
    let mut own = own(device)?;
    let again = Device::open(&device.path).map_err(io::Error::other)?;
    let stretches = stretches(&mut own)?;
    let (file, _) = own.mounted()?;
    for other in 1..=own.max_device(&file)? {
        if scrub_progress(&file, other)?.is_some() {
            return Err(refused(FOREIGN));
        }
    }
    let begins_anew = stretches.last().is_none_or(|last| last.start < place.done);
    let (done, wrong, skipped) = if begins_anew { (0, 0, 0) } else { (place.done, place.wrong, place.skipped) };
    Ok(Box::new(Chunks {
        device: again,
        own,
        stretches,
        done,
        call: None,
        began: None,
        cancelled: false,
        cancels: 0,
        open: false,
        wrong,
        skipped,
        suspected: None,
        through: (0, Nanos::ZERO),
    }))
}

/// What its chunks take of the device now.
fn stretches(own: &mut OwnDevice) -> io::Result<Vec<Range<u64>>> {
    match own.stretches()? {
        (stretches, false) => Ok(stretches),
        // The kernel's scrub rewrites parity that is wrong even when it is told only to read, and counts none of it.
        _ => Err(refused(
            "it has chunks with parity (RAID 5 or 6): btrfs rewrites what is wrong there, and does not count it",
        )),
    }
}

impl Chunks {
    /// The chunk that is next.
    fn next(&self) -> Option<&Range<u64>> {
        self.stretches.get(self.stretches.partition_point(|stretch| stretch.start < self.done))
    }

    fn start(&mut self) -> io::Result<()> {
        // Chunks come and go.
        self.stretches = stretches(&mut self.own)?;
        let Some(stretch) = self.next().cloned() else { return Ok(()) };
        let (file, device) = self.own.mounted()?;
        let (begin, (tell, told)) = (stretch.start, channel());
        let is_again = self.suspected.is_some();
        let call = move || {
            // It goes by what was committed. Where that fails, the scrub says why.
            if is_again {
                let _ = commit(&file);
            }
            let began = Instant::now();
            let (done, counted) = scrub_chunk(&file, device, begin, true);
            let _ = tell.send((done, counted, Nanos(began.elapsed().as_nanos() as u64)));
        };
        std::thread::Builder::new().name("btrfs-scrub".into()).spawn(call)?;
        (self.call, self.began, self.cancelled) = (Some(told), Some(Instant::now()), false);
        Ok(())
    }

    /// Whether less than half of the chunk is likely to be done; at first nobody knows.
    fn is_early(&self) -> bool {
        let (Some(began), Some(stretch)) = (self.began, self.next()) else { return false };
        let (bytes, time) = self.through;
        let expected = (stretch.end - stretch.start) as f64 * time.0 as f64 / bytes as f64;
        bytes == 0 || (began.elapsed().as_nanos() as f64) < expected / 2.0
    }

    /// Ends the call, if no scrub of somebody else's would end with it.
    fn cancel(&mut self) -> io::Result<()> {
        let (file, device) = self.own.mounted()?;
        for other in (1..=self.own.max_device(&file)?).filter(|other| *other != device) {
            if scrub_progress(&file, other)?.is_some() {
                return Ok(());
            }
        }
        match cancel_scrub(&file) {
            // It has ended meanwhile, or has not begun yet.
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => return Ok(()),
            other => other?,
        }
        self.cancelled = true;
        Ok(())
    }

    /// btrfs passes over a chunk that it may not hold still, as one with a swap file in use, and says nothing of it but in the kernel's log. What
    /// has come into an empty chunk meanwhile, or since the last commit, was not passed over: so it is scrubbed once more, behind a commit.
    fn seems_skipped(&mut self, stretch: &Range<u64>, counted: &Counted) -> io::Result<bool> {
        let before = self.suspected.take().filter(|(suspected, _)| suspected == stretch);
        if counted.bytes > 0 || counted.wrong > 0 {
            return Ok(false);
        }
        let now = self.own.allocated_in(stretch)?;
        if before.is_none() && now > 0 {
            self.suspected = Some((stretch.clone(), now));
            return Ok(true);
        }
        self.skipped = self.skipped.saturating_add(before.map_or(0, |(_, before)| before).min(now));
        Ok(false)
    }

    fn ended(&mut self, (done, counted, took): Done) -> io::Result<()> {
        (self.call, self.began) = (None, None);
        let cancelled = std::mem::take(&mut self.cancelled);
        match done {
            Ok(()) => {
                let Some(stretch) = self.next().cloned() else { return Ok(()) };
                if self.seems_skipped(&stretch, &counted)? {
                    return Ok(());
                }
                self.through = (self.through.0 + stretch.end - stretch.start, self.through.1 + took);
                // Each call looks at all superblocks: they count once in a pass.
                let is_first = self.stretches.first() == Some(&stretch);
                let superblocks = if is_first { counted.superblocks } else { 0 };
                self.wrong = self.wrong.saturating_add(counted.wrong).saturating_add(superblocks);
                (self.done, self.cancels) = (stretch.end, 0);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ECANCELED) && cancelled => {
                self.cancels += 1;
                Ok(())
            }
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::EINPROGRESS) => refused(FOREIGN),
                Some(libc::ECANCELED) => refused("somebody else has cancelled the scrub"),
                Some(libc::EPERM) => refused("to scrub takes root, or CAP_SYS_ADMIN"),
                // The chunk was removed meanwhile, and its data are elsewhere.
                Some(libc::ENOENT) => {
                    self.done = self.next().map_or(self.done, |stretch| stretch.end);
                    return Ok(());
                }
                _ => error,
            }),
        }
    }
}

impl Scrubber for Chunks {
    fn users(&self) -> io::Result<Vec<(WholeDisk, Box<dyn Monitor>)>> {
        let disk = self.device.whole();
        let mut users = monitor::of_users(&disk).map_err(io::Error::other)?;
        // The scrub reads in this process.
        users.own_lookups();
        Ok(vec![(disk, users)])
    }

    fn open(&mut self) -> io::Result<()> {
        self.open = true;
        if self.call.is_some() { Ok(()) } else { self.start() }
    }

    fn close(&mut self) -> io::Result<()> {
        self.open = false;
        if self.call.is_some() && self.cancels < MOST_CANCELS && self.is_early() { self.cancel() } else { Ok(()) }
    }

    fn look(&mut self) -> io::Result<Standing> {
        match self.call.as_ref().map(Receiver::try_recv) {
            Some(Ok(done)) => {
                self.ended(done)?;
                if self.open {
                    self.start()?;
                }
            }
            Some(Err(TryRecvError::Disconnected)) => return Err(refused("the call of btrfs was lost")),
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        let length = |stretch: &Range<u64>| stretch.end - stretch.start;
        let of_those =
            |done: &dyn Fn(&&Range<u64>) -> bool| Bytes(self.stretches.iter().filter(done).map(length).sum());
        Ok(Standing {
            place: Bytes(self.done),
            done: of_those(&|stretch| stretch.start < self.done),
            all: of_those(&|_| true),
            wrong: self.wrong,
            wrong_in_place: self.wrong,
            skipped: Bytes(self.skipped),
            is_quiet: self.call.is_none(),
            is_over: self.call.is_none() && self.next().is_none(),
        })
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.call.is_none() {
            return Ok(());
        }
        self.cancel()?;
        // A chunk that could not be cancelled is waited for.
        if let Some(Ok(done)) = self.call.as_ref().map(Receiver::recv) {
            self.ended(done)?;
        }
        Ok(())
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
