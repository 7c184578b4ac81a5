//! The FUSE file system with its one file, and the thread that is the disk.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyWrite, Request, WriteFlags,
};
use idlewise::Nanos;

use crate::timing::{Asked, Emulated};

/// Name of the file.
pub const FILE: &str = "disk";
const FILE_INODE: INodeNo = INodeNo(2);
const TTL: Duration = Duration::from_secs(3600);
/// The scheduler wakes a sleeper late by up to about this; the rest is waited for awake.
const AWAKE: Duration = Duration::from_micros(70);

/// A disk as a file system.
pub struct Server {
    size: u64,
    queue: mpsc::Sender<Job>,
}

/// What a disk holds, and where it cannot be read.
pub struct Medium {
    /// The data.
    pub data: File,
    /// Bytes whose reads fail.
    pub bad: Vec<Range<u64>>,
    /// How long they take to fail.
    pub recovery: Nanos,
    /// A byte whose reads are never answered.
    pub hang: Option<u64>,
    /// Size of a sector of the medium, if one that is written as a whole can be read again, and none of which a part is bad takes less.
    pub sector: Option<u64>,
    /// Told of every stretch that was read.
    pub read: Arc<Mutex<Vec<Range<u64>>>>,
}

/// A request in the disk's queue.
struct Job {
    arrived: Instant,
    offset: u64,
    work: Work,
}

enum Work {
    Read { size: u32, reply: ReplyData },
    Write { data: Vec<u8>, reply: ReplyWrite },
}

impl Job {
    fn size(&self) -> u64 {
        match &self.work {
            Work::Read { size, .. } => (*size).into(),
            Work::Write { data, .. } => data.len() as u64,
        }
    }
}

impl Server {
    /// Serves `medium`; `disk` says when each request is done, at once without it.
    pub fn new(medium: Medium, size: u64, disk: Option<Box<dyn Emulated>>) -> Self {
        let (queue, jobs) = mpsc::channel();
        // It ends with the queue, when the file system is unmounted.
        thread::spawn(move || serve(&jobs, medium, disk));
        Self { size, queue }
    }

    fn enqueue(&self, offset: u64, work: Work) {
        // The disk's thread lives as long as the queue.
        let _ = self.queue.send(Job { arrived: Instant::now(), offset, work });
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let file = inode == FILE_INODE;
        FileAttr {
            ino: inode,
            size: if file { self.size } else { 0 },
            blocks: self.size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if file { FileType::RegularFile } else { FileType::Directory },
            perm: if file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Requests must reach the disk when they are made, not when the one before them is done.
        let refused = |_| std::io::Error::other("the kernel's FUSE has no asynchronous direct I/O");
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(refused)?;
        let _ = config.set_max_background(256);
        let _ = config.set_congestion_threshold(256);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE {
            reply.entry(&TTL, &self.attributes(FILE_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(inode));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.enqueue(offset, Work::Read { size, reply });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.enqueue(offset, Work::Write { data: data.to_vec(), reply });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}

/// The disk: each request is done when its times say.
fn serve(jobs: &mpsc::Receiver<Job>, mut medium: Medium, disk: Option<Box<dyn Emulated>>) {
    let _ = rustix::thread::set_current_timer_slack(Some(1.try_into().expect("one is not zero")));
    let mut never_answered = Vec::new();
    let Some(mut disk) = disk else {
        while let Ok(job) = jobs.recv() {
            answer(job, &mut medium, &mut never_answered);
        }
        return;
    };
    let (mut waiting, mut arrivals, power_on) = (HashMap::new(), 0, Instant::now());
    loop {
        let due = disk.next().map(|done| power_on + Duration::from_nanos(done.0));
        let job = match due {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => jobs.recv_timeout(due.saturating_duration_since(Instant::now()).saturating_sub(AWAKE)),
        };
        match (job, due) {
            (Ok(job), _) => {
                let arrived = Nanos(job.arrived.saturating_duration_since(power_on).as_nanos() as u64);
                let (size, writes) = (job.size(), matches!(job.work, Work::Write { .. }));
                disk.arrive(Asked { id: arrivals, arrived, offset: job.offset, size, writes });
                waiting.insert(arrivals, job);
                arrivals += 1;
            }
            (Err(RecvTimeoutError::Timeout), Some(due)) => {
                while Instant::now() < due {
                    std::hint::spin_loop();
                }
                if let Some(job) = disk.finish().and_then(|id| waiting.remove(&id)) {
                    answer(job, &mut medium, &mut never_answered);
                }
            }
            (Err(_), _) => return,
        }
    }
}

fn answer(job: Job, medium: &mut Medium, never_answered: &mut Vec<ReplyData>) {
    let Medium { data, bad, recovery, hang, sector, read } = medium;
    let (size, offset) = (job.size(), job.offset);
    match job.work {
        Work::Read { reply, .. } if hang.is_some_and(|byte| (offset..offset + size).contains(&byte)) => {
            never_answered.push(reply);
        }
        Work::Read { reply, .. } => {
            let unreadable = meets(bad, &(offset..offset + size));
            if unreadable {
                thread::sleep(Duration::from(*recovery));
            }
            let mut buffer = vec![0; size as usize];
            match data.read_exact_at(&mut buffer, offset) {
                Ok(()) if !unreadable => {
                    read.lock().expect("nobody panics with it").push(offset..offset + size);
                    reply.data(&buffer);
                }
                _ => reply.error(Errno::EIO),
            }
        }
        Work::Write { data: bytes, reply } => {
            // A part of a sector is put into what can be read of it.
            let is_taken = sector.is_none_or(|sector| {
                let parts = [offset..offset.next_multiple_of(sector), (offset + size) / sector * sector..offset + size];
                let is_part = |part: &Range<u64>| part.start < part.end;
                let around = parts.iter().filter(|part| is_part(part)).map(|part| part.start / sector * sector);
                around.map(|begin| begin..begin + sector).all(|whole| !meets(bad, &whole))
            });
            match data.write_all_at(&bytes, offset) {
                Ok(()) if is_taken => {
                    if sector.is_some() {
                        let written = offset..offset + size;
                        *bad = bad.iter().flat_map(|range| without(range, &written)).collect();
                    }
                    reply.written(size as u32);
                }
                _ => reply.error(Errno::EIO),
            }
        }
    }
}

fn meets(bad: &[Range<u64>], stretch: &Range<u64>) -> bool {
    bad.iter().any(|range| range.start < stretch.end && stretch.start < range.end)
}

/// What is left of a range beside a stretch.
fn without(range: &Range<u64>, stretch: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let sides = [range.start..range.end.min(stretch.start), range.start.max(stretch.end)..range.end];
    sides.into_iter().filter(|side| side.start < side.end)
}
