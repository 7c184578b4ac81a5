//! System calls that may hang, in a process of their own: a thread that hangs in the kernel would keep this process from ever ending.
//! A call that is rare has a process each (here); many calls share one ([`Calls`]).

mod calls;

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::raw::c_void;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

pub use calls::{Argument, Calls};

/// What takes longer is left behind.
const PATIENCE: Duration = Duration::from_secs(5);

/// Memory that a process apart fills.
#[derive(Debug)]
struct Filled {
    memory: *mut c_void,
    length: usize,
}

// SAFETY: a mapping is not of one thread.
unsafe impl Send for Filled {}

impl Filled {
    fn new(length: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place where nothing is yet.
        let memory = unsafe { mmap_anonymous(null_mut(), length, access, MapFlags::SHARED) }?;
        Ok(Self { memory, length })
    }

    /// The first words of it, which the other process must not use meanwhile.
    fn words(&mut self, count: usize) -> &mut [u64] {
        assert!(count * size_of::<u64>() <= self.length);
        // SAFETY: so many are mapped, a mapping begins at a page, and they are borrowed by whoever holds them alone.
        unsafe { std::slice::from_raw_parts_mut(self.memory.cast::<u64>(), count) }
    }

    /// All of it, in the same way.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are mapped until `self` is dropped, and borrowed by whoever holds them alone.
        unsafe { std::slice::from_raw_parts_mut(self.memory.cast::<u8>(), self.length) }
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `new`, and nothing borrows it. Another process has a mapping of its own.
        let _ = unsafe { munmap(self.memory, self.length) };
    }
}

/// Bytes of a file.
///
/// # Errors
/// What the system says; [`io::ErrorKind::TimedOut`] if it does not answer.
pub fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    // SAFETY: so many bytes are mapped, and no other process uses them meanwhile.
    filled(PATIENCE, length, Some(file), |memory| unsafe { read_into(0, memory, (offset, length)) })
}

/// Reads so many bytes of a file from a place on, or says the error.
///
/// # Safety
/// There is memory for them, which nobody else uses.
unsafe fn read_into(file: i32, memory: *mut c_void, (offset, length): (u64, usize)) -> Result<(), i32> {
    let mut read = 0;
    while read < length {
        // SAFETY: the caller vouches for so many bytes.
        let count = unsafe { libc::pread64(file, memory.add(read), length - read, (offset + read as u64) as i64) };
        match count {
            0 => return Err(libc::EIO),
            1.. => read += count as usize,
            _ => return Err(last_error()),
        }
    }
    Ok(())
}

/// The error of the last system call.
pub fn last_error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// What a path without links leads to, opened only to be looked at (`O_PATH`): what is asked on the way may hang. Before Linux 5.6 links are
/// followed.
///
/// # Errors
/// What the system says; [`io::ErrorKind::TimedOut`] if it does not answer.
pub fn reached(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    filled(PATIENCE, 1, Some(&File::from(theirs)), |_| {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // As in linux/openat2.h: flags, mode, and how names are resolved.
        let how = [flags as u64, 0, libc::RESOLVE_NO_SYMLINKS];
        // SAFETY: the text ends with a zero, and both live as long as this process; a plain system call.
        let mut found = unsafe {
            libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), how.as_ptr(), size_of_val(&how)) as i32
        };
        if found < 0 && last_error() == libc::ENOSYS {
            // SAFETY: as above.
            found = unsafe { libc::open(path.as_ptr(), flags) };
        }
        if found < 0 {
            return Err(last_error());
        }
        let mut nothing = 0u8;
        let mut part = libc::iovec { iov_base: (&raw mut nothing).cast(), iov_len: 1 };
        // Of words: the kernel wants it aligned as such.
        let mut control = [0u64; 4];
        // SAFETY: zeros are a message without anything.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: a computation with the size of a number.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<i32>() as u32) } as _;
        // SAFETY: the message has room for one header and one number, as computed above.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(found);
        }
        // SAFETY: all that the message points to lives until the call returns.
        if unsafe { libc::sendmsg(0, &message, 0) } < 0 { Err(last_error()) } else { Ok(()) }
    })?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&ours, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC)?;
    let sent = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sent) => sent.next(),
        _ => None,
    });
    sent.ok_or_else(|| io::Error::other("no descriptor came"))
}

/// So many bytes that `work` fills, where nothing but system calls may be done; `file` is its descriptor 0.
///
/// # Errors
/// What `work` says; [`io::ErrorKind::TimedOut`] if it takes longer than `patience`, or what keeps a process from being made.
pub fn filled(
    patience: Duration,
    length: usize,
    file: Option<&File>,
    work: impl Fn(*mut c_void) -> Result<(), i32>,
) -> io::Result<Vec<u8>> {
    let mut memory = Filled::new(length)?;
    let (mut answer, writer) = io::pipe()?;
    let (told, given) = (writer.as_raw_fd(), file.map(AsRawFd::as_raw_fd));
    // SAFETY: what the new process does until it ends allocates nothing, takes no lock and returns nowhere.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // It must not hold what this process has open, such as locks. Neither of the two is below 2.
        // SAFETY: plain system calls with numbers.
        unsafe {
            given.map(|given| libc::dup2(given, 0));
            libc::dup2(told, 1);
            libc::syscall(libc::SYS_close_range, 2u32, u32::MAX, 0u32);
        }
        let error = work(memory.memory).err().unwrap_or(0);
        // SAFETY: the number is there until the call returns; a pipe takes it at once.
        unsafe {
            libc::write(1, (&raw const error).cast(), size_of_val(&error));
            libc::_exit(0)
        }
    }
    // `from_raw` panics at a number below zero, which is that of a process that could not be made.
    let made = if child > 0 { Pid::from_raw(child) } else { None };
    let child = made.ok_or_else(io::Error::last_os_error)?;
    drop(writer);
    if let Err(error) = wait_for_answer(answer.as_fd(), patience) {
        leave(child, || ());
        return Err(error);
    }
    let mut error = [0; size_of::<i32>()];
    let told = answer.read_exact(&mut error);
    let _ = waitpid(Some(child), WaitOptions::empty());
    told?;
    match i32::from_ne_bytes(error) {
        0 => Ok(memory.bytes().to_vec()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Waits until a process apart has something to say.
fn wait_for_answer(from: BorrowedFd, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            other => return Ok(other.map(|_| ())?),
        }
    }
}

/// Ends a process that may hang, and says when it has ended: that is when the device answers, if ever.
fn leave(child: Pid, ended: impl FnOnce() + Send + 'static) {
    let _ = kill_process(child, Signal::KILL);
    let end = move || {
        let _ = waitpid(Some(child), WaitOptions::empty());
        ended();
    };
    let _ = thread::Builder::new().name("end".into()).spawn(end);
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_are_read_or_it_is_said_why_not() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        assert_eq!(read_at(&file, 3, 4).unwrap(), b"3456");
        assert_eq!(read_at(&file, 8, 4).unwrap_err().raw_os_error(), Some(libc::EIO));
    }

    #[test]
    fn a_folder_is_reached_from_apart() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let found = File::from(reached(folder.path()).unwrap());
        assert_eq!(found.metadata().unwrap().ino(), folder.path().metadata().unwrap().ino());
        assert_eq!(reached(&folder.path().join("x")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_hangs_is_left_behind() {
        let began = std::time::Instant::now();
        let hangs = |_: *mut c_void| {
            // SAFETY: a plain system call.
            unsafe { libc::pause() };
            Ok(())
        };
        let left = filled(Duration::from_millis(50), 1, None, hangs).unwrap_err();
        assert!(left.kind() == io::ErrorKind::TimedOut && began.elapsed() < PATIENCE, "{left}");
    }
}
