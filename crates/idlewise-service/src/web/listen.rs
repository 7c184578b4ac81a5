//! Sockets that the service listens on: one of its own for control, and those that systemd hands over (sd_listen_fds(3)).

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use idlewise_linux::files::{Folder, Spot};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, getsockname, socket_with};
use rustix::process::umask;

use super::http::{Ender, Request, Response, Stream, linger};

/// So many are answered at once. Whoever else comes takes the place of whom has been there for the longest, still asking or being
/// given an answer, and is told to come later where all are being answered.
const MOST: usize = 64;
/// A request has to be there within this.
const PATIENCE: Duration = Duration::from_secs(5);
/// The name of the socket that takes orders, in its unit.
const CONTROL: &str = "control";
/// The first descriptor that systemd hands over.
const FIRST: RawFd = 3;

/// From where a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A socket that only those can reach who may use the file.
    Control,
    /// The network.
    Network,
}

/// Answers requests.
pub type Answer = Arc<dyn Fn(&Request, From) -> Response + Send + Sync>;

/// Listens on what systemd hands over, and on a socket at `path` if none of these is for control.
///
/// # Errors
/// If that cannot be made, or no thread.
pub fn listen(path: &Path, answer: &Answer) -> anyhow::Result<()> {
    let mut is_controlled = false;
    for (name, socket) in inherited() {
        // What is said to be for control takes orders, and nothing else: a proxy may stand before any other.
        let from = if name == CONTROL { From::Control } else { From::Network };
        is_controlled |= from == From::Control;
        match getsockname(&socket).map(|address| address.address_family()) {
            Ok(AddressFamily::UNIX) => {
                let listener = UnixListener::from(socket);
                serve(move || listener.accept().map(|(stream, _)| stream), from, answer)?;
            }
            Ok(AddressFamily::INET | AddressFamily::INET6) if from == From::Network => {
                let listener = TcpListener::from(socket);
                serve(move || listener.accept().map(|(stream, _)| stream), from, answer)?;
            }
            _ => anyhow::bail!("the socket '{name}' that was handed over is none for that: orders come by a file"),
        }
    }
    if !is_controlled {
        let listener = bind(path).with_context(|| format!("{}: no socket for control", path.display()))?;
        serve(move || listener.accept().map(|(stream, _)| stream), From::Control, answer)?;
    }
    Ok(())
}

/// What was handed over, each once, with its name.
fn inherited() -> Vec<(String, OwnedFd)> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).min(64);
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(String::from).chain(std::iter::repeat(String::new()));
    let sockets = names.zip(FIRST..).take(count as usize);
    sockets
        .filter(|(_, fd)| {
            // SAFETY: it only looks at the descriptor, whatever that is; scrubs that are started must not inherit it.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) == 0 }
        })
        // SAFETY: systemd has handed over these descriptors to this process, and nobody else takes them.
        .map(|(name, fd)| (name, unsafe { OwnedFd::from_raw_fd(fd) }))
        .collect()
}

/// Reaches whoever listens on a socket. One that has no room for another connection is not waited for longer than so.
///
/// # Errors
/// What the system says; that it would block where there is no room.
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let until = Instant::now() + patience;
    let address = SocketAddrUnix::new(path)?;
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match net::connect(&socket, &address) {
            Err(Errno::AGAIN) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
            connected => {
                connected?;
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
        }
    }
}

/// A socket that only this user can reach, in place of one that nobody listens on any more.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        Folder::own(folder)?;
    }
    // Of the folder that was looked at: by now its path may lead elsewhere.
    let spot = Spot::find(path)?;
    let path = &Path::new("/proc/self/fd").join(spot.folder.as_fd().as_raw_fd().to_string()).join(&spot.name);
    let is_taken = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
    if connect(path, Duration::ZERO).map_or_else(is_taken, |_| true) {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon listens on it"));
    }
    match fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there, and no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // By the mask, and not afterwards: by then the path may lead elsewhere. No other thread makes files yet.
    let before = umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}

/// Answers each connection on a thread of its own.
fn serve<S: Stream + Send + 'static>(
    accept: impl Fn() -> io::Result<S> + Send + 'static,
    from: From,
    answer: &Answer,
) -> io::Result<()> {
    // Of each socket by itself: who fills one locks nobody out of another.
    let (answer, open) = (answer.clone(), Arc::<Open>::default());
    let work = move || {
        loop {
            let Ok(mut stream) = accept() else {
                // Without descriptors nothing is accepted until others are closed.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let answer = answer.clone();
            let Some(place) = Place::take(&open, &stream) else {
                let busy = Response::error(503, format!("{MOST} requests are being answered: come again"));
                let _ = busy.send(&mut stream, false, Instant::now());
                continue;
            };
            let talk = move || {
                let _ = converse(&mut stream, from, &answer, &place);
                drop(place);
            };
            // Where no thread can be made, the connection is closed.
            let _ = thread::Builder::new().name("request".into()).spawn(talk);
        }
    };
    thread::Builder::new().name("listen".into()).spawn(work)?;
    Ok(())
}

fn converse(stream: &mut impl Stream, from: From, answer: &Answer, place: &Place) -> io::Result<()> {
    let read = Request::read(stream, Instant::now() + PATIENCE);
    place.has_asked();
    let (response, head_only) = match read {
        Ok(request) => (answer(&request, from), request.method == "HEAD"),
        Err(refused) => (refused, false),
    };
    // Whoever does not read it makes way, as who does not ask.
    place.may_be_ended(stream);
    response.send(stream, head_only, Instant::now() + PATIENCE)?;
    linger(stream);
    Ok(())
}

/// The connections of a socket.
#[derive(Default)]
struct Open {
    state: Mutex<Connections>,
    /// One has gone.
    left: Condvar,
}

#[derive(Default)]
struct Connections {
    count: usize,
    /// How many have come.
    number: u64,
    /// Those whose request is not all there, or that are given their answer, by the order in which they came, and what ends them.
    asking: BTreeMap<u64, Ender>,
}

impl Open {
    fn state(&self) -> MutexGuard<'_, Connections> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of those that are answered at once.
struct Place {
    open: Arc<Open>,
    number: u64,
}

impl Place {
    fn take(open: &Arc<Open>, stream: &impl Stream) -> Option<Self> {
        let mut state = open.state();
        if state.count >= MOST {
            let (_, end) = state.asking.pop_first()?;
            end();
            // Its thread ends soon; until then there are more, and on a busy machine whoever comes waits for one to go.
            let is_full = |state: &mut Connections| state.count >= 2 * MOST;
            state = open.left.wait_timeout_while(state, PATIENCE, is_full).unwrap_or_else(PoisonError::into_inner).0;
            if state.count >= 2 * MOST {
                return None;
            }
        }
        state.count += 1;
        state.number += 1;
        let place = Self { open: open.clone(), number: state.number };
        drop(state);
        place.may_be_ended(stream);
        Some(place)
    }

    /// It makes way for whoever else comes.
    fn may_be_ended(&self, stream: &impl Stream) {
        if let Some(end) = stream.ender() {
            self.open.state().asking.insert(self.number, end);
        }
    }

    /// Its request is there: it is answered whoever else comes.
    fn has_asked(&self) {
        self.open.state().asking.remove(&self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.open.state();
        state.asking.remove(&self.number);
        state.count -= 1;
        self.open.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Nobody is waited for who listens and takes no connection, nor is it taken for nobody.
    #[test]
    fn who_takes_no_connection_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/socket");
        let listener = bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _full: Vec<_> = (0..2).map_while(|_| connect(&path, Duration::ZERO).ok()).collect();
        let refused = |error: io::Result<UnixStream>| error.unwrap_err().kind();
        assert_eq!(refused(connect(&path, Duration::from_millis(50))), io::ErrorKind::WouldBlock);
        assert_eq!(bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert_eq!(refused(connect(&path, Duration::ZERO)), io::ErrorKind::ConnectionRefused);
        assert!(bind(&path).is_ok());
    }

    /// A connection that is not ended, and how what it was answered begins.
    fn answered_at(path: &Path) -> (UnixStream, [u8; 12]) {
        let mut asks = UnixStream::connect(path).unwrap();
        asks.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut begins = [0; 12];
        asks.read_exact(&mut begins).unwrap();
        (asks, begins)
    }

    /// Whoever keeps connections open without asking for anything locks nobody out.
    #[test]
    fn who_only_connects_makes_way_for_who_asks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        // More than a socket holds.
        let large = Response::ok("text/plain", vec![b'a'; 4 << 20]);
        let answer: Answer = Arc::new(move |request, _| match request.path[0].as_str() {
            "large" => large.clone(),
            _ => Response::error(404, "here"),
        });
        serve(move || listener.accept().map(|(stream, _)| stream), From::Network, &answer).unwrap();
        let silent: Vec<_> = (0..3 * MOST).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for _ in 0..5 {
            let mut asks = UnixStream::connect(&path).unwrap();
            asks.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut told = String::new();
            asks.read_to_string(&mut told).unwrap();
            assert!(told.starts_with("HTTP/1.1 404"), "{told}");
        }
        drop(silent);
        // Nor does who does not hang up.
        let answered: Vec<_> = (0..3 * MOST).map(|_| answered_at(&path)).collect();
        assert!(answered.iter().all(|(_, begins)| begins == b"HTTP/1.1 404"), "{answered:?}");
        // Nor who does not read what was asked for.
        let deaf = || {
            let mut asks = UnixStream::connect(&path).unwrap();
            asks.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            asks
        };
        let _deaf: Vec<_> = (0..3 * MOST).map(|_| deaf()).collect();
        assert_eq!(&answered_at(&path).1, b"HTTP/1.1 404");
    }
}
