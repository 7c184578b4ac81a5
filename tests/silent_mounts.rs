//! File systems of another user that never answer, where a command reads or writes: nobody waits for them. `N` is that user.

mod common;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use common::bench::{Loop, MIB, Mounted, system};
use common::{ends_within, idlewise, run, stderr};
use idlewise::trace::is_mount_of_another;
use idlewise_linux::Destination;

const N: u32 = 65_534;

/// A FUSE of N's that answers nothing.
struct Silent<'a> {
    // It is given up before it is unmounted.
    _fuse: File,
    _mounted: Mounted<'a>,
}

impl<'a> Silent<'a> {
    /// `options` may let root go into it.
    fn at(folder: &'a Path, options: &str) -> Option<Self> {
        Self::of_kind("40000", folder, options)
    }

    /// Its root is of this kind, in octal digits of a mode.
    fn of_kind(kind: &str, folder: &'a Path, options: &str) -> Option<Self> {
        let fuse = File::options().read(true).write(true).open("/dev/fuse");
        let Some(fuse) = fuse.ok().filter(|_| rustix::process::geteuid().is_root()) else {
            eprintln!("SKIPPED: it needs root and FUSE");
            return None;
        };
        rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::empty()).unwrap();
        let options = format!("fd={},rootmode={kind},user_id={N},group_id={N}{options}", fuse.as_raw_fd());
        let mounted = Mounted::new(&["-i", "-t", "fuse", "-o", &options, "none"], folder);
        // By no command kept open.
        rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::CLOEXEC).unwrap();
        Some(Self { _fuse: fuse, _mounted: mounted })
    }
}

fn link_of_n(leads: &str, link: &str) {
    std::os::unix::fs::symlink(leads, link).unwrap();
    std::os::unix::fs::lchown(link, Some(N), Some(N)).unwrap();
}

/// Behind links of N's, and where N has mounted it in a folder that was named.
#[test]
fn root_what_n_has_mounted_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(file("traces")).unwrap();
    fs::create_dir(file("results")).unwrap();
    let lines: Vec<_> = (0..40)
        .map(|at| format!("{},hm,0,Read,{},4096,100\n", 128_166_372_000_000_000_u64 + at * 9_999_999, at << 12))
        .collect();
    for name in ["traces/good.csv", "s.csv"] {
        fs::write(file(name), lines.concat()).unwrap();
    }
    let planned = run(&["sample", &file("s.csv"), "-o", &file("s.toml"), "--interval", "1s"]);
    assert!(planned.status.success(), "{}", stderr(&planned));
    let plan = fs::read_to_string(file("s.toml")).unwrap();
    let plan = plan.lines().map(|line| {
        if line.starts_with("trace = ") {
            format!("trace = \"{}\"\n", file("traces/evil.csv"))
        } else {
            format!("{line}\n")
        }
    });
    fs::write(file("plan.toml"), plan.collect::<String>()).unwrap();
    let (silent, mine, own) =
        (folder.path().join("silent"), folder.path().join("traces/m"), folder.path().join("traces/o"));
    // A checkpoint in whose place one is mounted.
    fs::create_dir_all(file("states/disk.json")).unwrap();
    let state = folder.path().join("states/disk.json");
    let Some(_silent) = Silent::at(&silent, ",allow_other") else { return };
    let _mine = Silent::at(&mine, ",allow_other").unwrap();
    let _state = Silent::at(&state, ",allow_other").unwrap();
    // One into which root may not go.
    let _own = Silent::at(&own, "").unwrap();
    let disk = Loop::of_size(&folder.path().join("disk"), MIB, &[]).unwrap();
    // A disk by a link of N's, which leads to it no more.
    let (link, scrubbed) = (file("link"), file("scrubbed"));
    link_of_n(disk.path(), &link);
    let output = run(&["scrub", &link, "--state-dir", &scrubbed, "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    fs::remove_file(&link).unwrap();
    link_of_n(&file("silent/x"), &link);
    fs::write(file("named.toml"), format!("[[disk]]\nmatch = \"{}\"\n", file("silent/x"))).unwrap();
    for link in ["traces/evil.csv", "traces/out.csv", "results/v.hm_0.csv", "results/p.hm_0.toml"] {
        link_of_n(&file("silent/x"), &file(link));
    }
    let (traces, good, new) = (file("traces"), file("traces/good.csv"), file("new.csv"));
    let (out, plan) = (file("traces/out.csv"), file("plan.toml"));
    let traces_m = file("traces/m");
    let (by_volume, plans) = (file("results/v.csv"), file("results/p.toml"));
    let tune = ["tune", &good, "--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--by-volume", "--out", &plans];
    let commands: [(&[&str], &str); 16] = [
        (&["trace", "info", &traces], ""),
        (&["trace", "convert", &traces, "--out", &new], ""),
        (&["idle", &traces, "--report", &file("o.html")], ""),
        (&["trace", "convert", &traces, "--out", &good], "would be replaced"),
        (&["trace", "convert", &good, "--out", &out], "is a link of another user"),
        (&["trace", "convert", &good, "--out", &file("traces/m/x.csv")], "another user has mounted it"),
        (&["trace", "convert", &good, "--by-volume", "--out", &by_volume], "is a link of another user"),
        (&tune, "is a link of another user"),
        (&["replay", &plan, disk.path()], "behind another user's link"),
        (&["status", "--state-dir", &traces_m], "another user has mounted it"),
        (&["status", "--state-dir", &file("states")], "something is mounted there"),
        (&["scrub", disk.path(), "--state-dir", &traces_m], "another user has mounted it"),
        (&["status", "--state-dir", &scrubbed], ""),
        (&["status", "--state-dir", &scrubbed, disk.path()], ""),
        (&["run", "--device", &traces_m, "--", "true"], "another user has mounted it"),
        (&["check-config", "--config", &file("named.toml")], "a [[disk]] names it, and it is not there"),
    ];
    for (command, wrong) in commands {
        let output = ends_within(Duration::from_secs(20), &mut idlewise(command));
        let said = stderr(&output);
        assert!(said.contains(wrong) && output.status.success() == wrong.is_empty(), "{command:?}: {said}");
    }
}

/// Mounted when it was opened, and taken away before it is looked for in the kernel's list.
#[test]
fn root_what_is_mounted_no_more_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("m");
    let Some(silent) = Silent::at(&at, ",allow_other") else { return };
    let (above, thing) = (File::open(folder.path()).unwrap(), path_only(&at));
    assert!(is_mount_of_another(&thing, &above).unwrap());
    system("umount", &["-l", at.to_str().unwrap()]);
    assert!(is_mount_of_another(&thing, &above).unwrap());
    assert!(!is_mount_of_another(&path_only(Path::new("/proc")), &above).unwrap());
    // There is nothing left to unmount.
    std::mem::forget(silent);
}

/// Mounted after it was looked at: over what is to be replaced, and over a folder above it.
#[test]
fn root_what_was_looked_at_is_asked_and_not_what_is_mounted_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let (above, file) = (folder.path().join("p"), folder.path().join("p/x/out"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "old").unwrap();
    let place = Destination::find(&file).unwrap();
    let numbers = |path: &Path| path.metadata().map(|seen| (seen.dev(), seen.ino())).unwrap();
    let (top, other) = (numbers(folder.path()), numbers(Path::new("/proc")));
    assert!(place.is_within(top).unwrap() && !place.is_within(other).unwrap());
    let opened = File::open(&file).unwrap();
    let Some(_over_it) = Silent::of_kind("100000", &file, ",allow_other") else { return };
    let _above = Silent::at(&above, ",allow_other").unwrap();
    // On a thread of its own, as it might never end.
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let seen = place.metadata().unwrap().unwrap();
        answers.send(((seen.dev(), seen.ino()), place.is_within(other).unwrap_err().to_string())).unwrap();
    });
    let (seen, why) = answer.recv_timeout(Duration::from_secs(20)).expect("it waits for what is mounted");
    let opened = opened.metadata().unwrap();
    assert_eq!(seen, (opened.dev(), opened.ino()));
    assert!(why.contains("another user has mounted"), "{why}");
}

fn path_only(path: &Path) -> File {
    File::options().read(true).custom_flags(rustix::fs::OFlags::PATH.bits() as i32).open(path).unwrap()
}
