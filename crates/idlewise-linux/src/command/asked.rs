//! What held processes have asked their disks for, by what the kernel counts of each (proc_pid_io(5)).

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::family::Member;
use crate::monitor::{Counter, Moved};

/// So long an answer is waited for at once.
const PATIENCE: Duration = Duration::from_millis(10);
/// After so long it is not expected any more.
const EXPECTED: Duration = Duration::from_millis(200);

/// Asks on a thread of its own. The kernel tells nothing of a process that is being replaced by another program, and that may take for ever:
/// a file that it closes then may lie on a file system that somebody else serves.
pub fn patiently(mut ask: impl FnMut() -> Moved + Send + 'static) -> Counter {
    let (wanted, wants) = mpsc::channel::<()>();
    let (tells, told) = mpsc::channel();
    let answer = move || {
        while wants.recv().is_ok() {
            if tells.send(ask()).is_err() {
                break;
            }
        }
    };
    // It ends with the counter; in the middle of what is never told, with the process.
    let is_there = thread::Builder::new().name("counter".into()).spawn(answer).is_ok();
    let (mut last, mut asked) = (Moved::default(), None::<Instant>);
    Box::new(move || {
        loop {
            let before = asked.is_some();
            if !before && is_there && wanted.send(()).is_ok() {
                asked = Some(Instant::now());
            }
            match told.recv_timeout(if before { Duration::ZERO } else { PATIENCE }) {
                Ok(moved) => (last, asked) = (moved, None),
                Err(_) if asked.is_some_and(|since| since.elapsed() < EXPECTED) => return None,
                // Who does not tell may have written.
                Err(_) => last.written = last.written.saturating_add(1),
            }
            // An answer to what was asked before says nothing of what was done since.
            if !before || asked.is_some() {
                return Some(last);
            }
        }
    })
}

/// Bytes that processes have asked their disks for. What one did that is gone stays counted.
#[derive(Debug, Default)]
pub struct Asked {
    each: BTreeMap<u32, (Member, Moved)>,
    all: Moved,
}

impl Asked {
    /// So far, of those that are there now, parents first, and those that were.
    pub fn so_far(&mut self, members: Vec<Member>) -> Moved {
        self.take(members, |pid| fs::read_to_string(format!("/proc/{pid}/io")).ok().map(|told| moved(&told)))
    }

    /// With what is told of each by its number.
    fn take(&mut self, members: Vec<Member>, told: impl Fn(u32) -> Option<Moved>) -> Moved {
        let mut each = BTreeMap::new();
        // What one asked for that has ended is told until its parent has heard of that.
        let ended = self.each.values().map(|(member, _)| member).filter(|member| member.process.is_unheard());
        let ended: Vec<_> = ended.cloned().collect();
        // Children first: what one that ends meanwhile asked for is then in its parent's.
        for member in ended.into_iter().chain(members.into_iter().rev()) {
            let pid = member.process.pid;
            let before = self.each.get(&pid).filter(|(before, _)| before.process == member.process);
            // Another program may be taking its place: then it is only not told.
            let known =
                || before.filter(|_| member.process.is_here() || member.process.is_unheard()).map(|(_, moved)| *moved);
            if let Some(moved) = told(pid).or_else(known) {
                each.insert(pid, (member, moved));
            }
        }
        // The kernel adds what a child asked for to its parent's, when that one hears of its end.
        let mut passed_on = BTreeMap::<u32, Moved>::new();
        for (pid, (member, moved)) in &self.each {
            if each.get(pid).is_none_or(|(now, _)| now.process != member.process) {
                let to = passed_on.entry(member.parent).or_default();
                *to = to.and(*moved);
            }
        }
        for (pid, (member, moved)) in &each {
            let before = self.each.get(pid).filter(|(before, _)| before.process == member.process);
            let before = before.map_or(Moved::default(), |(_, moved)| *moved);
            let from_children = passed_on.get(pid).copied().unwrap_or_default();
            self.all = self.all.and(moved.since(before).since(from_children));
        }
        self.each = each;
        self.all
    }
}

fn moved(told: &str) -> Moved {
    let field = |name: &str| {
        let value = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
    };
    let written = field("write_bytes").saturating_sub(field("cancelled_write_bytes"));
    Moved { read: field("read_bytes"), written }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrub::Process;

    #[test]
    fn what_a_process_asked_for_is_what_it_read_and_wrote_but_for_what_it_took_back() {
        let told = "rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";
        assert_eq!(moved(told), Moved { read: 4096, written: 4096 });
        assert_eq!(moved(""), Moved::default());
    }

    /// What a child did is counted once, whoever hears of its end; and who has its number later is somebody else.
    #[test]
    fn what_is_gone_stays_counted_once() {
        let member = |pid: u32, began: u64, parent| {
            let process = Process { pid, start_ticks: began, ..Process::default() };
            Member { process, parent }
        };
        let (shell, child) = (member(10, 1, 1), member(11, 2, 10));
        let told = |of: &'static [(u32, u64)]| {
            move |pid| of.iter().find(|(one, _)| *one == pid).map(|(_, read)| Moved { read: *read, written: 0 })
        };
        let mut asked = Asked::default();
        let both = || vec![shell.clone(), child.clone()];
        assert_eq!(asked.take(both(), told(&[(10, 100), (11, 40)])).read, 140);
        assert_eq!(asked.take(both(), told(&[(10, 100), (11, 70)])).read, 170);
        // It read 5 more before it ended, and the shell has heard of it.
        assert_eq!(asked.take(vec![shell.clone()], told(&[(10, 175)])).read, 175);
        let other = member(11, 9, 10);
        assert_eq!(asked.take(vec![shell.clone(), other], told(&[(10, 175), (11, 30)])).read, 205);
        // One whose parent hears of no child.
        assert_eq!(asked.take(vec![shell.clone()], told(&[(10, 175)])).read, 205);
        assert_eq!(asked.take(vec![shell], told(&[(10, 185)])).read, 215);
    }

    /// As the kernel counts: a shell and what it starts, one after the other.
    #[test]
    fn a_shell_that_starts_many_is_counted_as_their_sum() {
        use super::super::family::Family;
        let folder = tempfile::tempdir_in(".").unwrap();
        let file = folder.path().join("file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        fs::File::open(&file).unwrap().sync_all().unwrap();
        let read = format!("dd if={} of=/dev/null bs=64k iflag=direct 2>/dev/null || exit 9; ", file.display());
        let script = format!("sleep 0.2; {} sleep 0.3", read.repeat(5));
        let mut shell = std::process::Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let mut family = Family::of(Process::of(shell.id()).unwrap());
        let mut asked = Asked::default();
        let before = asked.so_far(family.members()).read;
        let mut last = before;
        while shell.try_wait().unwrap().is_none() {
            last = asked.so_far(family.members()).read;
        }
        if shell.wait().unwrap().code() == Some(9) {
            eprintln!("SKIPPED: this file system is not read past the cache");
            return;
        }
        // Counted twice it would be 10 MiB. Programs and their libraries may be read as well.
        let read = last - before;
        assert!((5 << 20..9 << 20).contains(&read), "{read}");
    }

    /// Whoever pays for the answer never waits for it for long, and takes no answer for one that writes.
    #[test]
    fn who_never_tells_is_not_waited_for() {
        let (go_on, goes_on) = mpsc::channel::<()>();
        let mut asked = 0;
        let mut counter = patiently(move || {
            asked += 1;
            if asked == 2 {
                let _ = goes_on.recv();
            }
            Moved { read: 4096 * asked, written: 1000 * asked }
        });
        // The first answer may be late on a busy machine.
        let began = Instant::now();
        while counter().is_none_or(|moved| moved.read != 4096) && began.elapsed().as_secs() < 20 {}
        // The second is expected for a moment, and nothing is said until then.
        let began = Instant::now();
        while counter().is_none() {}
        assert!((EXPECTED / 2..EXPECTED * 20).contains(&began.elapsed()), "{:?}", began.elapsed());
        let written = counter().unwrap().written;
        let began = Instant::now();
        for more in 1..1000 {
            assert_eq!(counter(), Some(Moved { read: 4096, written: written + more }));
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        go_on.send(()).unwrap();
        let began = Instant::now();
        while counter().is_none_or(|moved| moved.read < 8192) && began.elapsed().as_secs() < 20 {}
        assert!(counter().is_some_and(|moved| moved.read >= 8192));
    }
}
