//! What loop devices lie on, as they say themselves: from here, the path of a backing file may lead elsewhere, or nowhere.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::makedev;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::sysfs::numbers;

const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// `struct loop_info64` (linux/loop.h): numbers of the file's file system, of the file, and of the device that the file is, then more.
type LoopInfo = [u64; 29];
/// One that hangs holds up whoever opens it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Of the device with this folder in sysfs, the number of the device that it lies on, or of the file system of its file; nothing of what is
/// no loop device in use.
///
/// # Errors
/// If it is one and cannot be asked, or does not answer.
pub fn lies_on(folder: &Path) -> io::Result<Option<u64>> {
    if !folder.join("loop").try_exists()? {
        return Ok(None);
    }
    let (major, minor) = numbers(folder).ok_or(Errno::NODEV)?;
    let path = Path::new("/dev").join(folder.file_name().unwrap_or_default());
    let path = CString::new(path.into_os_string().into_vec()).map_err(|_| Errno::NODEV)?;
    match in_a_process(PATIENCE, || ask(&path, makedev(major, minor)))? {
        Ok([file_system, _, 0, ..]) => Ok(Some(file_system)),
        Ok([_, _, device, ..]) => Ok(Some(device)),
        // It was let go of meanwhile.
        Err(libc::ENXIO) => Ok(None),
        Err(error) => Err(io::Error::from_raw_os_error(error)),
    }
}

/// What the loop device at this path, with this number, says of itself; or which error. By system calls alone.
fn ask(path: &CStr, number: u64) -> Result<LoopInfo, i32> {
    let last = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: the path ends with a zero.
    let file =
        unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(last());
    }
    // SAFETY: a structure of plain numbers, for which all zeros are a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure is there until the call returns.
    if unsafe { libc::fstat(file, &raw mut stat) } != 0 {
        return Err(last());
    }
    if stat.st_mode & libc::S_IFMT != libc::S_IFBLK || stat.st_rdev != number {
        return Err(libc::ENODEV);
    }
    let mut info: LoopInfo = [0; 29];
    // SAFETY: this command writes one such structure, of 232 bytes, and any bits are numbers.
    match unsafe { libc::ioctl(file, LOOP_GET_STATUS64, &raw mut info) } {
        0 => Ok(info),
        _ => Err(last()),
    }
}

/// Does something in a process of its own, which is left behind if it takes longer than `patience`: a thread that hangs in the kernel would
/// keep this process from ever ending. Nothing but system calls may be done there.
fn in_a_process(patience: Duration, work: impl Fn() -> Result<LoopInfo, i32>) -> io::Result<Result<LoopInfo, i32>> {
    const WORDS: usize = 30;
    let (mut answer, writer) = io::pipe()?;
    let told = std::os::fd::AsRawFd::as_raw_fd(&writer);
    // SAFETY: what the new process does until it ends allocates nothing, takes no lock and returns nowhere.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // It must not hold what this process has open, such as locks.
        // SAFETY: plain system calls with numbers.
        unsafe {
            libc::dup2(told, 1);
            libc::syscall(libc::SYS_close_range, 2u32, u32::MAX, 0u32);
        }
        let mut words = [0u64; WORDS];
        match work() {
            Ok(info) => words[1..].copy_from_slice(&info),
            Err(error) => words[0] = error as u64,
        }
        // SAFETY: the words are there until the call returns; a pipe takes so few at once.
        unsafe {
            libc::write(1, words.as_ptr().cast(), size_of_val(&words));
            libc::_exit(0)
        }
    }
    let child = Pid::from_raw(child).filter(|_| child > 0).ok_or_else(io::Error::last_os_error)?;
    drop(writer);
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
    if poll(&mut [PollFd::new(&answer, PollFlags::IN)], Some(&timeout))? == 0 {
        // It ends when the device answers, if ever.
        let _ = kill_process(child, Signal::KILL);
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut bytes = [0; WORDS * 8];
    let read = answer.read_exact(&mut bytes);
    let _ = waitpid(Some(child), WaitOptions::empty());
    read?;
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| bytes[at * 8 + index]));
    Ok(match word(0) {
        0 => Ok(std::array::from_fn(|at| word(at + 1))),
        error => Err(error as i32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_answers_or_is_left_behind() {
        let patience = Duration::from_secs(20);
        assert_eq!(in_a_process(patience, || Ok([7; 29])).unwrap(), Ok([7; 29]));
        assert_eq!(in_a_process(patience, || Err(libc::ENXIO)).unwrap(), Err(libc::ENXIO));
        let began = std::time::Instant::now();
        let hangs = || {
            // SAFETY: a plain system call.
            unsafe { libc::pause() };
            Err(0)
        };
        let left = in_a_process(Duration::from_millis(50), hangs).unwrap_err();
        assert!(left.kind() == io::ErrorKind::TimedOut && began.elapsed() < patience, "{left}");
    }
}
