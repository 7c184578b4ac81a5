//! The FUSE file system with its one file, and the thread that is the disk.

use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyWrite, Request, WriteFlags,
};
use idlewise::disk::Mechanical;
use idlewise::{Bytes, Nanos};

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

impl Server {
    /// Serves `medium`; `mechanics` give the time that each request takes, none at all without them.
    pub fn new(medium: Medium, size: u64, mechanics: Option<Mechanical>) -> Self {
        let (queue, jobs) = mpsc::channel();
        // It ends with the queue, when the file system is unmounted.
        thread::spawn(move || serve(&jobs, &medium, mechanics));
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

/// The disk: first come, first served, each request done when the mechanics say.
fn serve(jobs: &mpsc::Receiver<Job>, medium: &Medium, mut mechanics: Option<Mechanical>) {
    let Medium { data, bad, recovery, hang, read } = medium;
    let mut never_answered = Vec::new();
    let _ = rustix::thread::set_current_timer_slack(Some(1.try_into().expect("one is not zero")));
    let power_on = Instant::now();
    while let Ok(job) = jobs.recv() {
        let size = match &job.work {
            Work::Read { size, .. } => u64::from(*size),
            Work::Write { data, .. } => data.len() as u64,
        };
        if let Some(mechanics) = &mut mechanics {
            let arrived = Nanos(job.arrived.saturating_duration_since(power_on).as_nanos() as u64);
            let done = mechanics.serve(arrived, Bytes(job.offset), Bytes(size));
            sleep_until(power_on + Duration::from_nanos(done.0));
        }
        match job.work {
            Work::Read { reply, .. } if hang.is_some_and(|byte| (job.offset..job.offset + size).contains(&byte)) => {
                never_answered.push(reply);
            }
            Work::Read { reply, .. } => {
                let unreadable = bad.iter().any(|range| range.start < job.offset + size && job.offset < range.end);
                if unreadable {
                    thread::sleep(Duration::from(*recovery));
                }
                let mut buffer = vec![0; size as usize];
                match data.read_exact_at(&mut buffer, job.offset) {
                    Ok(()) if !unreadable => {
                        read.lock().expect("nobody panics with it").push(job.offset..job.offset + size);
                        reply.data(&buffer);
                    }
                    _ => reply.error(Errno::EIO),
                }
            }
            Work::Write { data: bytes, reply } => match data.write_all_at(&bytes, job.offset) {
                Ok(()) => reply.written(size as u32),
                Err(_) => reply.error(Errno::EIO),
            },
        }
    }
}

fn sleep_until(time: Instant) {
    let left = time.saturating_duration_since(Instant::now());
    thread::sleep(left.saturating_sub(AWAKE));
    while Instant::now() < time {
        std::hint::spin_loop();
    }
}
