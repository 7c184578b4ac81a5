//! What runs in the background, and how it is held back.

use std::borrow::Cow;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use idlewise::Nanos;
use rustix::process::{Pid, Signal, kill_process_group};

/// What `idlewise run` is to keep.
pub const GOAL: Nanos = Nanos::from_millis(1);
/// The maximum slowdown of hard disks, unless it is said.
const USUAL_MAX: Nanos = Nanos::from_millis(50);

/// A command that reads a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Packs a tree.
    Tar,
    /// Copies a tree onto the same disk.
    Rsync,
    /// Reads random places of a large file, past the page cache.
    Fio,
}

/// How it is held back.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// Not at all.
    Free,
    /// By the idle I/O class.
    IdleClass,
    /// By the lowest weight that the I/O scheduler knows for a control group.
    LowestWeight,
    /// By a limit of its rate, in bytes a second.
    Limit(u64),
    /// By `idlewise run` with a mean slowdown.
    Idlewise(Nanos),
}

impl Work {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tar, Self::Rsync, Self::Fio];

    /// Its name, which is that of the program.
    pub fn label(self) -> &'static str {
        match self {
            Self::Tar => "tar",
            Self::Rsync => "rsync",
            Self::Fio => "fio",
        }
    }

    /// A script that does it again and again in this folder, from the disk each time.
    fn script(self, folder: &Path) -> String {
        let folder = folder.display();
        let cold = "echo 1 > /proc/sys/vm/drop_caches";
        match self {
            // To /dev/null itself tar reads nothing.
            Self::Tar => format!("while :; do {cold}; tar cf - -C {folder} tree | cat > /dev/null; done"),
            Self::Rsync => format!(
                "while :; do {cold}; rsync -a --whole-file {folder}/tree/ {folder}/copy; rm -rf {folder}/copy; done"
            ),
            Self::Fio => format!(
                "exec fio --name=random --filename={folder}/large --rw=randread --bs=64k --direct=1 --time_based --runtime=1d --output=/dev/null"
            ),
        }
    }
}

impl Pace {
    /// Its name in the table.
    pub fn label(&self) -> Cow<'static, str> {
        match self {
            Self::Free => "as it is".into(),
            Self::IdleClass => "ionice -c 3".into(),
            Self::LowestWeight => "lowest weight".into(),
            Self::Limit(_) => "limit of the rate".into(),
            Self::Idlewise(goal) => format!("idlewise run, goal {goal}").into(),
        }
    }

    /// Whether others offer it.
    pub fn is_a_peers(&self) -> bool {
        matches!(self, Self::IdleClass | Self::LowestWeight)
    }

    /// The mean slowdown that is to be kept.
    pub fn goal(&self) -> Nanos {
        if let Self::Idlewise(goal) = self { *goal } else { GOAL }
    }
}

/// A command at work, until it is dropped.
pub struct Background {
    child: Child,
    group: Option<PathBuf>,
}

impl Background {
    /// Starts it; `idlewise` is the command, `disk` the disk's numbers.
    pub fn start(work: Work, pace: &Pace, folder: &Path, idlewise: &Path, disk: &str) -> anyhow::Result<Self> {
        let script = work.script(folder);
        let shell = ["sh", "-c", &script];
        let mut words: Vec<&str> = Vec::new();
        let (goal, most) = (pace.goal().to_string(), Nanos(pace.goal().0 * 10).max(USUAL_MAX).to_string());
        let program = idlewise.to_str().context("the path of idlewise is text")?;
        match pace {
            Pace::IdleClass => words.extend(["ionice", "-c", "3"]),
            Pace::Idlewise(_) => {
                let folder = folder.to_str().context("the folder's path is text")?;
                words.extend([program, "run", "--quiet", "--mean-slowdown", &goal, "--max-slowdown", &most]);
                words.extend(["--device", folder, "--"]);
            }
            _ => {}
        }
        words.extend(shell);
        let group = match pace {
            Pace::LowestWeight => Some(limited("weight", None, disk)?),
            Pace::Limit(rate) => Some(limited("limit", Some(*rate), disk)?),
            _ => None,
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        if let Some(group) = &group {
            let entry = fs::File::options().write(true).open(group.join("cgroup.procs"))?;
            // SAFETY: between the fork and the program nothing is done but this system call on a descriptor that is open.
            unsafe { command.pre_exec(move || rustix::io::write(&entry, b"0").map(drop).map_err(Into::into)) };
        }
        let child = command.spawn().with_context(|| words[0].to_string())?;
        Ok(Self { child, group })
    }

    /// Fails if it has ended by itself.
    pub fn goes_on(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "the command in the background ended: {ended:?}");
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // What is held is let go first, or it would not hear of its end.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::TERM);
        let began = std::time::Instant::now();
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
        if let Some(group) = &self.group {
            for _ in 0..100 {
                if fs::remove_dir(group).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

/// Whether groups can be limited, in version 1 or 2 of control groups.
pub fn can_limit() -> bool {
    v1().is_some() || v2().is_some()
}

/// Whether the kernel charges what it writes later to the group that it is for, where groups are made as `idlewise run` makes them.
pub fn says_for_whom() -> bool {
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    ["io", "memory"].iter().all(|wanted| controllers.split_whitespace().any(|name| name == *wanted))
}

fn v1() -> Option<PathBuf> {
    Some(PathBuf::from("/sys/fs/cgroup/blkio")).filter(|folder| folder.join("cgroup.procs").exists())
}

fn v2() -> Option<PathBuf> {
    let root = PathBuf::from("/sys/fs/cgroup");
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    controllers.split_whitespace().any(|name| name == "io").then_some(root)
}

/// A group with the lowest weight, or with a limit.
fn limited(name: &str, limit: Option<u64>, disk: &str) -> anyhow::Result<PathBuf> {
    let (root, old) = match (v1(), v2()) {
        (Some(root), _) => (root, true),
        (None, Some(root)) => (root, false),
        (None, None) => anyhow::bail!("there are no control groups for I/O"),
    };
    let group = root.join(format!("idlewise-lab-{name}-{}", std::process::id()));
    if !old {
        let _ = fs::write(root.join("cgroup.subtree_control"), "+io");
    }
    fs::create_dir_all(&group)?;
    match (limit, old) {
        (Some(rate), true) => {
            for what in ["read", "write"] {
                fs::write(group.join(format!("blkio.throttle.{what}_bps_device")), format!("{disk} {rate}"))?;
            }
        }
        (Some(rate), false) => fs::write(group.join("io.max"), format!("{disk} rbps={rate} wbps={rate}"))?,
        (None, true) => fs::write(group.join("blkio.bfq.weight"), "1")?,
        (None, false) => {
            fs::write(group.join("io.bfq.weight"), "1").or_else(|_| fs::write(group.join("io.weight"), "1"))?
        }
    }
    Ok(group)
}
