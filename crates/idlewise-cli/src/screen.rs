//! What is shown while there is work to do, by a thread of its own: a terminal or a pipe that takes nothing more stops no work.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// So much may wait to be shown; more is left out.
const MOST: usize = 64;
/// How long the end waits for standard error to take what is left.
const PATIENCE: Duration = Duration::from_secs(5);

static SCREEN: Screen = Screen { state: Mutex::new(State::new()), changed: Condvar::new() };

struct Screen {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    shown: Shown,
    waiting: VecDeque<Piece>,
    /// Whether a piece is being written by the thread, and where to.
    busy: Option<Stream>,
    left_out: u64,
    /// What was in the way of standard output, the first time.
    failed: Option<io::Error>,
}

/// How what is said is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// By who says it, who waits until it is.
    Directly,
    /// By the thread.
    ByThread,
    /// Only results, directly: standard error takes nothing more.
    Results,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Error,
    Out,
}

type Piece = (Stream, String);

impl State {
    const fn new() -> Self {
        Self { shown: Shown::Directly, waiting: VecDeque::new(), busy: None, left_out: 0, failed: None }
    }

    fn write(&mut self, piece: &Piece) {
        self.failed = self.failed.take().or(write(piece).err());
    }
}

/// From now on nothing that is said waits until it is shown. Where no thread can be made, all stays as it was.
pub fn begin() {
    let mut state = lock();
    if state.shown == Shown::Directly && thread::Builder::new().name("screen".into()).spawn(show_for_ever).is_ok() {
        state.shown = Shown::ByThread;
    }
}

/// Whether something still waits to be shown: then a bar is not worth drawing.
pub fn is_behind() -> bool {
    let state = lock();
    state.busy.is_some() || !state.waiting.is_empty()
}

/// Whether a line would be left out.
pub fn is_full() -> bool {
    lock().waiting.len() >= MOST
}

/// Shows a line, with its end, on standard error; it is left out where too much waits already.
pub fn say(line: String) {
    let mut state = lock();
    match state.shown {
        Shown::Directly => state.write(&(Stream::Error, line)),
        Shown::ByThread if state.waiting.len() < MOST => push(state, (Stream::Error, line)),
        Shown::ByThread => state.left_out += 1,
        Shown::Results => {}
    }
}

/// Shows a result on standard output, in its turn; what is in the way of it is told by [`finish`].
pub fn print(text: String) {
    let mut state = lock();
    match state.shown {
        Shown::ByThread => push(state, (Stream::Out, text)),
        _ => state.write(&(Stream::Out, text)),
    }
}

/// Waits until all is shown; for what goes to standard error, only so long.
///
/// # Errors
/// The first thing that was in the way of a result.
pub fn finish() -> io::Result<()> {
    let mut state = lock();
    // It has been waited for before.
    let patience = if state.shown == Shown::Results { Duration::ZERO } else { PATIENCE };
    let until = Instant::now() + patience;
    while state.busy.is_some() || !state.waiting.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() && state.busy != Some(Stream::Out) {
            state.shown = Shown::Results;
            let results: Vec<_> = state.waiting.drain(..).filter(|(stream, _)| *stream == Stream::Out).collect();
            results.iter().for_each(|result| state.write(result));
            break;
        }
        let waited = SCREEN.changed.wait_timeout(state, left.max(Duration::from_millis(100)));
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    state.failed.take().map_or(Ok(()), Err)
}

/// Where a bar is drawn.
pub fn target(hz: u8) -> ProgressDrawTarget {
    let term = Term::stderr();
    match lock().shown == Shown::ByThread && term.is_term() {
        true => ProgressDrawTarget::term_like_with_hz(Box::new(Frames(term, Mutex::default())), hz),
        false => ProgressDrawTarget::stderr_with_hz(hz),
    }
}

fn lock() -> MutexGuard<'static, State> {
    SCREEN.state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push(mut state: MutexGuard<State>, piece: Piece) {
    state.waiting.push_back(piece);
    SCREEN.changed.notify_all();
}

fn show_for_ever() {
    let mut state = lock();
    loop {
        let Some(piece) = next(&mut state) else {
            SCREEN.changed.notify_all();
            state = SCREEN.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        state.busy = Some(piece.0);
        drop(state);
        let written = write(&piece);
        state = lock();
        state.failed = state.failed.take().or(written.err());
        state.busy = None;
    }
}

/// What is to be shown next; of what was left out, when there is room again.
fn next(state: &mut State) -> Option<Piece> {
    state.waiting.pop_front().or_else(|| {
        let count = std::mem::take(&mut state.left_out);
        let line = format!("idlewise: {count} lines were left out here, as nobody read them\n");
        (count > 0).then_some((Stream::Error, line))
    })
}

fn write((stream, text): &Piece) -> io::Result<()> {
    match stream {
        Stream::Error => {
            // Who closes it does not want to know.
            let _ = io::stderr().write_all(text.as_bytes());
            Ok(())
        }
        Stream::Out => match write_patiently(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        },
    }
}

/// Writes all to standard output, also where whoever gave it to us asked it not to make writers wait.
fn write_patiently(mut text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while !text.is_empty() {
        // Past the buffer of lines: what it has taken when the rest is refused would be written twice.
        match rustix::io::write(&out, text) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => text = &text[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&out, PollFlags::OUT)], None).map(drop).or_else(|error| match error {
                    Errno::INTR => Ok(()),
                    other => Err(other),
                })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    out.flush()
}

/// A terminal whose frames wait for their turn, each as a whole, by the sequences of ECMA-48.
#[derive(Debug)]
struct Frames(Term, Mutex<String>);

impl Frames {
    fn add(&self, text: &str) -> io::Result<()> {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) += text;
        Ok(())
    }

    /// A movement by nothing is none, though the sequence with 0 is one by 1.
    fn go(&self, count: usize, towards: char) -> io::Result<()> {
        if count > 0 { self.add(&format!("\x1b[{count}{towards}")) } else { Ok(()) }
    }
}

impl TermLike for Frames {
    fn width(&self) -> u16 {
        self.0.size().1
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.go(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.go(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.go(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.go(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(text)?;
        self.add("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let frame = std::mem::take(&mut *self.1.lock().unwrap_or_else(PoisonError::into_inner));
        if !frame.is_empty() {
            push(lock(), (Stream::Error, frame));
        }
        Ok(())
    }
}
