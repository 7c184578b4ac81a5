//! A process that makes many system calls for this one, one at a time.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::raw::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libc::c_ulong;
use rustix::io::read;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::{Filled, last_error, leave, read_into, wait_for_answer};

/// A call that takes longer is left behind: that is more than a disk at work makes anybody wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that one call takes and gives at most.
const ROOM: usize = 128 << 10;

/// Makes calls in a process of its own, which begins with the first one. Where one has hung, no other is made until it has returned.
#[derive(Clone, Debug)]
pub struct Calls(Arc<Mutex<State>>);

#[derive(Debug)]
enum State {
    None,
    Ready(Helper),
    /// It was left behind; true once it has ended.
    Hangs(Arc<AtomicBool>),
}

/// What one call is about, as both processes see it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Order {
    /// The request of an ioctl; of a read, zero.
    request: u64,
    offset: u64,
    length: u64,
}

/// The argument of an ioctl.
pub struct Argument<'a> {
    /// Its first words.
    pub words: &'a [u64],
    /// How many there are with those that the kernel fills in.
    pub room: usize,
    /// The word that is to point to another one, and that one.
    pub pointer: Option<(usize, usize)>,
}

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State::None)))
    }
}

impl Calls {
    /// An ioctl; `read` is given all words as they are after it.
    ///
    /// # Safety
    /// The kernel reads and writes nothing for this request but the words, and what one of them is made to point to.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::TimedOut`] if it does not answer, or an earlier call still has not.
    pub unsafe fn ioctl<R>(
        &self,
        file: &File,
        request: c_ulong,
        argument: Argument,
        read: impl FnOnce(&[u64]) -> R,
    ) -> io::Result<R> {
        let Argument { words, room, pointer } = argument;
        let order = Order { request, offset: 0, length: (room * size_of::<u64>()) as u64 };
        let write = |memory: &mut Filled| {
            memory.words(words.len()).copy_from_slice(words);
            if let Some((at, to)) = pointer {
                let all = memory.words(at.max(to) + 1);
                all[at] = all[to..].as_ptr().addr() as u64;
            }
        };
        self.call(file, order, write, |memory| read(memory.words(room)))
    }

    /// Bytes of a file.
    ///
    /// # Errors
    /// As of [`Self::ioctl`], and if the file ends before.
    pub fn read_exact_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let order = Order { request: 0, offset, length: bytes.len() as u64 };
        self.call(file, order, |_| (), |memory| bytes.copy_from_slice(&memory.bytes()[..bytes.len()]))
    }

    fn call<R>(
        &self,
        file: &File,
        order: Order,
        write: impl FnOnce(&mut Filled),
        read: impl FnOnce(&mut Filled) -> R,
    ) -> io::Result<R> {
        if order.length > ROOM as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = match &*state {
            State::None => true,
            State::Ready(_) => false,
            State::Hangs(ended) => ended.load(Ordering::Acquire),
        };
        if is_over {
            *state = State::Ready(Helper::new()?);
        }
        let State::Ready(helper) = &mut *state else { return Err(io::ErrorKind::TimedOut.into()) };
        write(&mut helper.memory);
        match helper.answer(file.as_fd(), order) {
            Ok(0) => Ok(read(&mut helper.memory)),
            Ok(error) => Err(io::Error::from_raw_os_error(error)),
            Err(error) => {
                // It hangs, or was killed.
                if let State::Ready(helper) = std::mem::replace(&mut *state, State::None) {
                    *state = State::Hangs(helper.left());
                }
                Err(error)
            }
        }
    }
}

/// The process, and the memory that both see.
#[derive(Debug)]
struct Helper {
    socket: Option<OwnedFd>,
    child: Option<Pid>,
    memory: Filled,
}

impl Helper {
    fn new() -> io::Result<Self> {
        let memory = Filled::new(ROOM)?;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let told = theirs.as_raw_fd();
        // SAFETY: what the new process does until it ends allocates nothing, takes no lock and returns nowhere.
        let child = unsafe { libc::fork() };
        if child == 0 {
            serve(told, memory.memory);
        }
        let made = if child > 0 { Pid::from_raw(child) } else { None };
        Ok(Self { socket: Some(ours), child: Some(made.ok_or_else(io::Error::last_os_error)?), memory })
    }

    /// Has it make a call; the error of that, or zero.
    fn answer(&mut self, file: BorrowedFd, order: Order) -> io::Result<i32> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let words = [order.request, order.offset, order.length].map(u64::to_ne_bytes);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file];
        control.push(SendAncillaryMessage::ScmRights(&files));
        sendmsg(socket, &[IoSlice::new(words.as_flattened())], &mut control, SendFlags::NOSIGNAL)?;
        wait_for_answer(socket.as_fd(), PATIENCE)?;
        let mut error = [0; size_of::<i32>()];
        match read(socket, &mut error)? {
            4 => Ok(i32::from_ne_bytes(error)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Leaves it behind; what becomes true when it has ended.
    fn left(mut self) -> Arc<AtomicBool> {
        let ended = Arc::<AtomicBool>::default();
        let told = ended.clone();
        if let Some(child) = self.child.take() {
            leave(child, move || told.store(true, Ordering::Release));
        }
        ended
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It ends when nobody can give it orders any more; now it waits for one.
        self.socket = None;
        if let Some(child) = self.child {
            let _ = waitpid(Some(child), WaitOptions::empty());
        }
    }
}

/// What the process does: call after call, until nobody is there to ask for one.
fn serve(socket: i32, memory: *mut c_void) -> ! {
    // It must not hold what this process has open, such as locks, and it ends with it, not by the signals that are meant for it.
    // SAFETY: plain system calls, with numbers and a set that lives until they return.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, null_mut());
        libc::dup2(socket, 0);
        libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32);
        libc::chdir(c"/".as_ptr());
    }
    loop {
        let mut order = Order { request: 0, offset: 0, length: 0 };
        let mut part = libc::iovec { iov_base: (&raw mut order).cast(), iov_len: size_of::<Order>() };
        // Of words: the kernel wants it aligned as such.
        let mut control = [0u64; 4];
        // SAFETY: zeros are a message without anything.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        // SAFETY: all that the message points to lives until the call returns.
        let received = unsafe { libc::recvmsg(0, &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        // SAFETY: the message is one that the kernel has filled in.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        if received != size_of::<Order>() as isize || header.is_null() {
            // SAFETY: a plain system call.
            unsafe { libc::_exit(0) }
        }
        // SAFETY: the one thing that is sent along is one descriptor.
        let file = unsafe { libc::CMSG_DATA(header).cast::<i32>().read_unaligned() };
        let error = match order.request {
            // SAFETY: what is asked for fits into the memory, which the other side leaves alone until it is answered.
            0 => unsafe { read_into(file, memory, (order.offset, order.length as usize)) }.err().unwrap_or(0),
            // SAFETY: whoever asked for it vouches that the kernel uses nothing but this memory.
            request if unsafe { libc::ioctl(file, request as _, memory) } < 0 => last_error(),
            _ => 0,
        };
        // SAFETY: the descriptor is this process's own, and the number lives until the call returns.
        unsafe {
            libc::close(file);
            libc::write(0, (&raw const error).cast(), size_of_val(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    #[test]
    fn calls_are_made_and_their_errors_told() {
        let calls = Calls::default();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let mut bytes = [0; 4];
        calls.read_exact_at(&file, &mut bytes, 3).unwrap();
        assert_eq!(&bytes, b"3456");
        assert_eq!(calls.read_exact_at(&file, &mut bytes, 8).unwrap_err().raw_os_error(), Some(libc::EIO));
        let too_many = calls.read_exact_at(&file, &mut vec![0; ROOM + 1], 0).unwrap_err();
        assert_eq!(too_many.kind(), io::ErrorKind::InvalidInput);
        let (end, _other) = rustix::pipe::pipe().unwrap();
        let argument = |room| Argument { words: &[7], room, pointer: None };
        // SAFETY: the kernel writes a number of 32 bits.
        let waiting = unsafe { calls.ioctl(&File::from(end), libc::FIONREAD, argument(1), |words| words[0] as u32) };
        assert_eq!(waiting.unwrap(), 0);
        // SAFETY: there is room for what it writes for a terminal.
        let none = unsafe { calls.ioctl(&file, libc::TCGETS, argument(8), |_| ()) }.unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::ENOTTY));
    }

    /// One that was killed is followed by another.
    #[test]
    fn a_process_that_is_gone_is_followed_by_another() {
        let calls = Calls::default();
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"01").unwrap();
        let mut bytes = [0; 2];
        calls.read_exact_at(&file, &mut bytes, 0).unwrap();
        let child = match &*calls.0.lock().unwrap() {
            State::Ready(helper) => helper.child.unwrap(),
            other => panic!("{other:?}"),
        };
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        let began = Instant::now();
        while calls.read_exact_at(&file, &mut bytes, 0).is_err() {
            assert!(began.elapsed() < PATIENCE);
        }
        assert_eq!(&bytes, b"01");
    }
}
