//! What a scrub must not get wrong: its own writes, dead stretches, other disks of the same name, full file systems, devices that
//! change. On real block devices.

mod common;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::bench::{Bench, Loop, MIB, Mounted, PACE, Running, bad_block, system};
use common::{ends_within, idlewise, stderr, stdout};
use idlewise_linux::device::Device;
use idlewise_linux::monitor::{self, Choice};
use rustix::process::Signal;
use serde_json::Value;

/// The state folder lies on the disk that is scrubbed: its checkpoints are no foreground, and the disk stays idle.
#[test]
fn root_checkpoints_on_the_scrubbed_disk_are_no_foreground() {
    let folder = tempfile::tempdir().unwrap();
    // The one is slow enough to be there still when the file system writes what a save has left behind, 35 s later.
    for (monitor, rate, most) in [("bpf", "1500kB/s", 0), ("diskstats", "1GB/s", 20)] {
        let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
        // Nothing is put off until it is mounted.
        let now = "lazy_itable_init=0,lazy_journal_init=0";
        system("mkfs.ext4", &["-q", "-F", "-E", now, disk.path()]);
        let mount = folder.path().join("mount");
        let _mounted = Mounted::new(&[disk.path()], &mount);
        system("sync", &["-f", mount.to_str().unwrap()]);
        std::thread::sleep(Duration::from_secs(1));
        let state = mount.join("state");
        let began = Instant::now();
        // Longer than the time between two checkpoints of a disk of its own.
        let pace = ["--request-size", "1MiB", "--idle-wait", "6s", "--monitor", monitor, "--max-rate", rate, "--json"];
        let scrub = ["scrub", disk.path(), "--state-dir", state.to_str().unwrap()];
        let output = ends_within(Duration::from_secs(90), &mut idlewise(&[&scrub[..], &pace].concat()));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["verified_bytes"], 64 * MIB);
        assert!(stderr(&output).contains("on this very disk: saved once a minute"), "{}", stderr(&output));
        // What it writes later, who counts by the kernel's counters alone takes for foreground.
        let foreground = result["measured"]["foreground_requests"].as_u64().unwrap();
        assert!(foreground <= most, "{monitor}: {foreground} in {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(75), "{monitor}: {:?}", began.elapsed());
    }
}

/// The state folder lies on a disk that another process scrubs, as all do that the daemon starts: to that one the saves are foreground, so they
/// come once a minute.
#[test]
fn root_checkpoints_on_a_disk_that_others_scrub_are_few() {
    let folder = tempfile::tempdir().unwrap();
    let disks = ["one", "two"].map(|name| Loop::of_size(&folder.path().join(name), 64 * MIB, &[]));
    let [Some(holds), Some(other)] = disks else { return };
    system("mkfs.ext4", &["-q", "-F", holds.path()]);
    let mount = folder.path().join("mount");
    let _mounted = Mounted::new(&[holds.path()], &mount);
    let scrub = |disk: &str, states: &Path| {
        let more = ["--state-dir", states.to_str().unwrap(), "--max-rate", "2MB/s", "--quiet"];
        Running::new(idlewise(&[&["scrub", disk][..], &PACE, &more].concat()))
    };
    let elsewhere = folder.path().join("elsewhere");
    let first = scrub(holds.path(), &elsewhere);
    let saved = |states: &Path| {
        let file = fs::read_dir(states).ok()?.map(|entry| entry.unwrap().path());
        let file = { file }.find(|path| path.extension().is_some_and(|end| end == "json"))?;
        file.metadata().ok()?.modified().ok()
    };
    let until_saved = |states: &Path| {
        let began = Instant::now();
        while saved(states).is_none() {
            assert!(began.elapsed() < Duration::from_secs(30), "nothing is saved");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until_saved(&elsewhere);
    let second = scrub(other.path(), &mount);
    until_saved(&mount);
    let times = |states: &Path| {
        let mut times = Vec::from_iter(saved(states));
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(13) {
            times.extend(saved(states));
            times.dedup();
            std::thread::sleep(Duration::from_millis(50));
        }
        times.len()
    };
    let few = times(&mount);
    assert!(few <= 2, "{few} saves in 13 s");
    // Without the other one they come every few seconds.
    first.kill();
    second.kill();
    let third = scrub(other.path(), &mount);
    let many = times(&mount);
    assert!(many > 2, "{many} saves in 13 s");
    third.kill();
}

/// Runs that are shorter than the narrowing of a dead stretch get past it, and in the end know all of it.
#[test]
fn root_short_runs_get_past_a_dead_stretch() {
    let (first, blocks) = (8_192, 1_024);
    let Some(bench) = Bench::new(256 * MIB, std::slice::from_ref(&(first..first + blocks)), true) else { return };
    let pace = ["--request-size", "4MiB", "--idle-wait", "1ms"];
    let mut verified = Vec::new();
    let (mut known, mut runs) = (0, 0);
    while known < blocks {
        let scrub = bench.start(&pace);
        std::thread::sleep(Duration::from_millis(1_200));
        scrub.signal(Signal::INT);
        let result: Value = serde_json::from_slice(&scrub.end().stdout).unwrap();
        verified.push(result["verified_bytes"].as_u64().unwrap());
        let found = result["errors"].as_array().unwrap().iter().map(|run| run["blocks"].as_u64().unwrap()).sum();
        assert!(found >= known && result["state"] != "failed", "{result}");
        (known, runs) = (found, runs + 1);
        assert!(runs < 60, "{known} of {blocks}, verified {verified:?}");
        if result["state"] == "complete" {
            break;
        }
    }
    assert!(verified.is_sorted(), "{verified:?}");
    // What lies behind is read before all of the dead stretch is.
    let behind = verified.iter().position(|&bytes| bytes > 128 * MIB).unwrap();
    assert!(behind < runs, "{verified:?}");
    let (code, result) = bench.scrub(&pace);
    assert!(code == 3 || code == 0, "{result}");
    let errors = if code == 3 { &result["errors"] } else { &Value::Null };
    assert_eq!(errors, &serde_json::json!([bad_block(first, blocks)]));
    assert_eq!(result["verified_bytes"], 256 * MIB);
}

/// Programs of the monitor that this process has attached.
fn attached() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    links.filter(|link| link.to_str() == Some("anon_inode:bpf_link")).count()
}

/// A read that comes when the first program is attached, and is over before the last one is, leaves nothing outstanding behind,
/// though the disk is silent from then on.
#[test]
fn root_100_monitors_attached_under_load_see_the_disk_idle() {
    let Some(bench) = Bench::new(64 * MIB, &[], false) else { return };
    let device = Device::open(bench.disk.path()).unwrap();
    let stuck = (0..100).filter(|turn| {
        let mut monitor = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut block = vec![0; 4096];
                for next in 0.. {
                    let last = attached() > 0;
                    let file = File::open(bench.disk.path()).unwrap();
                    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
                    file.read_exact_at(&mut block, ((turn * 997 + next) * 7_919 % 16_000) * 4096).unwrap();
                    if last {
                        break;
                    }
                }
            });
            let monitor = monitor::open(&device, Choice::Bpf).unwrap().monitor;
            reader.join().unwrap();
            monitor
        });
        // Well before anything is healed.
        std::thread::sleep(Duration::from_millis(50));
        monitor.poll(Duration::ZERO, &mut Vec::new()).unwrap();
        monitor.outstanding() > 0
    });
    assert_eq!(stuck.count(), 0, "of 100");
}

/// A new disk behind a name or a file that another one had is scrubbed from its beginning, and that is said; so is going on.
#[test]
fn root_another_disk_of_the_same_name_is_not_taken_for_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let (image, state) = (folder.path().join("a.img"), folder.path().join("state"));
    let state = state.to_str().unwrap();
    let pace = ["--request-size", "64KiB", "--idle-wait", "2ms", "--json"];
    let interrupted = |disk: &Loop| {
        let scrub = Running::new(idlewise(&[&["scrub", disk.path(), "--state-dir", state][..], &pace].concat()));
        std::thread::sleep(Duration::from_millis(3_000));
        scrub.signal(Signal::INT);
        let output = scrub.end();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        (result["resumed_at_bytes"].as_u64().unwrap(), result["verified_bytes"].as_u64().unwrap(), stderr(&output))
    };
    let size = 32 << 30;
    let Some(disk) = Loop::of_size(&image, size, &[]) else { return };
    let (_, first, said) = interrupted(&disk);
    assert!(first > 0 && first < size && said.is_empty(), "{first} {said}");
    let (resumed, _, said) = interrupted(&disk);
    assert!(resumed == first && said.contains("goes on at"), "{resumed} after {first}: {said}");
    assert!(said.contains("a.img"), "{said}");
    drop(disk);
    fs::remove_file(&image).unwrap();
    let disk = Loop::of_size(&image, size, &[]).unwrap();
    let (resumed, _, said) = interrupted(&disk);
    assert_eq!(resumed, 0);
    assert!(said.contains("begins a new pass: another disk was called so then"), "{said}");
}

/// A full file system of checkpoints ends no scrub; its end that cannot be saved is an error.
#[test]
fn root_no_space_for_a_checkpoint_ends_no_scrub() {
    // Far more than it gets through, and what it gets through at leisure.
    let Some(bench) = Bench::new(4096 * MIB, &[], true) else { return };
    let Some(small) = Bench::new(128 * MIB, &[], true) else { return };
    let state = bench.folder.path().join("small");
    let _mounted = Mounted::new(&["-t", "tmpfs", "-o", "size=64k,mode=755", "none"], &state);
    let scrub = |bench: &Bench, rest: &[&str]| {
        let scrub = ["scrub", bench.path(), "--state-dir", state.to_str().unwrap(), "--json", "--quiet"];
        Running::new(idlewise(&[&scrub[..], rest].concat()))
    };
    let running = scrub(&bench, &["--request-size", "1MiB", "--idle-wait", "1ms"]);
    std::thread::sleep(Duration::from_millis(3_000));
    let full = state.join("full");
    let _ = fs::write(&full, vec![1; 64 << 10]);
    // Two checkpoints cannot be saved, the one after them can.
    std::thread::sleep(Duration::from_secs(11));
    let checkpoint = || {
        let mut files = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
        serde_json::from_slice::<Value>(&fs::read(file).unwrap()).unwrap()
    };
    let before = checkpoint()["place"]["visited_bytes"].as_u64().unwrap();
    fs::remove_file(&full).unwrap();
    std::thread::sleep(Duration::from_secs(6));
    running.signal(Signal::INT);
    let output = running.end();
    let said = stderr(&output);
    assert!(said.contains("cannot be saved, going on and trying again"), "{said}");
    assert!(said.contains("No space left on device") && said.contains("is saved again"), "{said}");
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(checkpoint()["place"]["visited_bytes"].as_u64().unwrap() > before);
    // Full from the beginning.
    fs::write(&full, vec![1; 60 << 10]).unwrap();
    let mut rest = File::options().append(true).open(&full).unwrap();
    while rest.write_all(&[1]).is_ok() {}
    drop(rest);
    let running = scrub(&small, &["--request-size", "64KiB", "--idle-wait", "1ms"]);
    // It begins later on a busy machine, and takes longer than this.
    std::thread::sleep(Duration::from_millis(1_500));
    fs::remove_file(&full).unwrap();
    let output = running.end();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot be saved, going on and trying again"), "{}", stderr(&output));
    // Full to the end.
    let running = scrub(&small, &["--request-size", "64KiB", "--idle-wait", "1ms"]);
    std::thread::sleep(Duration::from_millis(3_000));
    let _ = fs::write(&full, vec![1; 64 << 10]);
    let output = running.end();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("the end of the scrub could not be saved"), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("its result is printed all the same");
    assert_eq!(result["verified_bytes"], 128 * MIB);
}

/// A disk most of which is readable is not gone, whichever places of it are dead.
#[test]
fn root_a_disk_with_dead_places_is_not_gone() {
    let bad = [0..300, 65_536..65_537, 131_071..131_072];
    let Some(bench) = Bench::new(64 * MIB, &bad, false) else { return };
    let (code, result) = bench.scrub(&PACE);
    assert_eq!(code, 3, "{result}");
    let found: Vec<_> = result["errors"].as_array().unwrap().iter().map(|run| run["blocks"].clone()).collect();
    assert_eq!(found, [300, 1, 1]);
    assert_eq!(result["verified_bytes"], 64 * MIB);
}

#[test]
fn root_a_size_that_is_no_multiple_of_the_block_is_rounded_down() {
    let folder = tempfile::tempdir().unwrap();
    let odd = 10 * MIB + 1_536;
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), odd, &["--sector-size", "4096"]) else { return };
    let state = folder.path().to_str().unwrap();
    let result = common::json(&[&["scrub", disk.path(), "--state-dir", state, "--json"], &PACE[..]].concat());
    assert_eq!((&result["state"], &result["verified_bytes"]), (&"complete".into(), &(10 * MIB).into()));
}

/// A device that vanishes has no unreadable blocks for that, whether it was at its end, or the run was stopped meanwhile.
#[test]
fn root_a_device_that_vanishes_has_no_unreadable_blocks() {
    const SIZE: u64 = 8 * MIB;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let Some(disk) = Loop::of_size(&path, SIZE, &["--sector-size", "4096", "--direct-io=on"]) else { return };
    let file = File::options().write(true).open(&path).unwrap();
    let name = Path::new(disk.path()).file_name().unwrap();
    let stat = Path::new("/sys/block").join(name).join("stat");
    let read = || -> u64 {
        let stat = fs::read_to_string(&stat).unwrap();
        stat.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap() * 512
    };
    let state = folder.path().join("state");
    let pace = ["--request-size", "64KiB", "--idle-wait", "0s", "--max-rate", "4MB/s", "--json", "--quiet"];
    let scrub = ["scrub", disk.path(), "--state-dir", state.to_str().unwrap()];
    // All but the last requests; in the middle, and stopped some failures later, or back some failures later.
    for (share, stops, back) in
        [(SIZE - 128 * 1024, false, false), (SIZE / 2, true, false), (SIZE / 2, false, false), (SIZE / 2, false, true)]
    {
        let _ = fs::remove_dir_all(&state);
        let before = read();
        let mut running = Running::new(idlewise(&[&scrub[..], &pace].concat()));
        while read() - before < share && !running.is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        file.set_len(0).unwrap();
        if stops {
            std::thread::sleep(Duration::from_millis(150));
            running.signal(Signal::TERM);
        }
        if back {
            std::thread::sleep(Duration::from_millis(100));
            file.set_len(SIZE).unwrap();
        }
        let output = running.end();
        file.set_len(SIZE).unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        // What could not be read for a moment is not said to be unreadable.
        let errors = result["errors"].as_array().unwrap();
        let invented = errors.iter().filter(|run| !back || run["kind"] != "recovered").count();
        assert_eq!(invented, 0, "{share} {stops} {back}: {result}");
        assert_eq!(output.status.code() == Some(3), !errors.is_empty(), "{result}");
        let again = common::json(&[&scrub[..], &PACE, &["--json"]].concat());
        assert_eq!(again["verified_bytes"], SIZE, "{again}");
        assert_eq!((&again["state"], &again["errors"]), (&"complete".into(), &serde_json::json!([])), "{again}");
    }
}

/// What has been added to a device during its pass is not called verified; the next run reads it.
#[test]
fn root_a_device_that_grows_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    let Some(disk) = Loop::of_size(&file, 64 * MIB, &["--direct-io=on"]) else { return };
    let arguments = ["scrub", disk.path(), "--state-dir", folder.path().to_str().unwrap(), "--json", "--quiet"];
    let slow = ["--request-size", "64KiB", "--idle-wait", "3s"];
    let running = Running::new(idlewise(&[&arguments[..], &slow].concat()));
    std::thread::sleep(Duration::from_millis(1_000));
    File::options().write(true).open(&file).unwrap().set_len(80 * MIB).unwrap();
    system("losetup", &["-c", disk.path()]);
    let output = running.end();
    assert_eq!(output.status.code(), Some(4), "{}", stdout(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["failure"].as_str().unwrap().contains("grew from 64.0 MiB to 80.0 MiB"), "{result}");
    let result = common::json(&[&arguments[..], &PACE].concat());
    assert_eq!((&result["resumed_at_bytes"], &result["verified_bytes"]), (&(64 * MIB).into(), &(80 * MIB).into()));
}

/// The device that was opened is the one that is written to, whatever its path leads to later.
#[test]
fn root_a_path_that_leads_elsewhere_later_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let Some(first) = Loop::of_size(&path("first.img"), 16 * MIB, &[]) else { return };
    let second = Loop::of_size(&path("second.img"), 16 * MIB, &[]).unwrap();
    for disk in [&first, &second] {
        let ones = vec![1; MIB as usize];
        File::options().write(true).open(disk.path()).unwrap().write_all_at(&ones, 0).unwrap();
    }
    std::os::unix::fs::symlink(first.path(), path("target")).unwrap();
    system("mkfifo", &[path("trace").to_str().unwrap()]);
    let arguments = [path("trace").display().to_string(), path("target").display().to_string()];
    let mut replay = idlewise(&["replay", &arguments[0], &arguments[1], "--allow-writes"]).spawn().unwrap();
    // It reads the trace now, which takes as long as we like.
    let mut trace = File::options().write(true).open(path("trace")).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    std::os::unix::fs::symlink(second.path(), path("other")).unwrap();
    fs::rename(path("other"), path("target")).unwrap();
    let lines = "128166372003061629,hm,0,Write,0,65536,100\n128166372003071629,hm,0,Write,65536,65536,100\n";
    std::io::Write::write_all(&mut trace, lines.as_bytes()).unwrap();
    drop(trace);
    assert!(replay.wait().unwrap().success());
    let begin = |disk: &Loop| {
        let mut file = File::open(disk.path()).unwrap();
        let mut begin = vec![9; 4096];
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_exact(&mut begin).unwrap();
        begin
    };
    assert_eq!((begin(&first)[0], begin(&second)[0]), (0, 1));
}

/// What is told of a device is of the one that was opened, though its path leads to another every other moment.
#[test]
fn root_a_device_is_one_device_whatever_its_path_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let sizes = [16 * MIB, 24 * MIB];
    let Some(first) = Loop::of_size(&path("16.img"), sizes[0], &[]) else { return };
    let second = Loop::of_size(&path("24.img"), sizes[1], &[]).unwrap();
    let stop = AtomicBool::new(false);
    std::os::unix::fs::symlink(first.path(), path("disk")).unwrap();
    let mut seen = [0, 0];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for disk in [&second, &first].into_iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                std::os::unix::fs::symlink(disk.path(), path("next")).unwrap();
                fs::rename(path("next"), path("disk")).unwrap();
            }
        });
        for _ in 0..2_000 {
            let device = Device::open(&path("disk")).unwrap();
            let end = device.file.try_clone().unwrap().seek(SeekFrom::End(0)).unwrap();
            let number = sizes.iter().position(|&size| size == device.size.0).unwrap();
            let file = format!("{}.img", device.size.0 / MIB);
            seen[number] += 1;
            if end != device.size.0 || !device.identity.ends_with(&file) {
                stop.store(true, Ordering::Relaxed);
                panic!("{end} bytes are read of {} with {}", device.identity, device.size);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

/// A replay sets no more memory aside than a request of a disk takes.
#[test]
fn root_a_request_of_gigabytes_is_not_played() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 8 << 30, &[]) else { return };
    let trace = folder.path().join("trace.csv");
    fs::write(&trace, "1,hm,0,Read,0,512,100\n100000,hm,0,Read,65536,4294966784,100\n").unwrap();
    let output = common::run(&["replay", trace.to_str().unwrap(), disk.path()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("at most 64 MiB are played at once"), "{}", stderr(&output));
}

/// The kernel lets a disk be written below a loop device, and so below a file system that is mounted from it.
#[test]
fn root_nothing_is_written_below_a_loop_device() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("disk"), vec![0xa5; 8 * MIB as usize]);
    fs::write(&file, &data).unwrap();
    let Some(low) = Loop::new(&file, &[]) else { return };
    let high = Loop::new(Path::new(low.path()), &[]).unwrap();
    let trace = folder.path().join("trace.csv");
    fs::write(&trace, "1,hm,0,Write,0,4096,100\n100000,hm,0,Write,65536,4096,100\n").unwrap();
    let replay = || common::run(&["replay", trace.to_str().unwrap(), low.path(), "--allow-writes"]);
    let output = replay();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("writes are refused"), "{}", stderr(&output));
    assert!(fs::read(&file).unwrap() == data);
    drop(high);
    // One whose path leads nowhere any more, as of another mount name space.
    let hidden = folder.path().join("hidden");
    let number = fs::metadata(low.path()).unwrap().rdev();
    let [major, minor] = [rustix::fs::major(number), rustix::fs::minor(number)].map(|number| number.to_string());
    assert!(Command::new("mknod").arg(&hidden).args(["b", &major, &minor]).status().unwrap().success());
    let high = Loop::new(&hidden, &[]).unwrap();
    fs::remove_file(&hidden).unwrap();
    let output = replay();
    assert!(stderr(&output).contains("writes are refused"), "{}", stderr(&output));
    assert!(fs::read(&file).unwrap() == data);
    drop(high);
    // The kernel detaches it once nobody looks at it any more, which losetup itself may do for another test.
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let output = replay();
        if output.status.success() {
            break;
        }
        assert!(Instant::now() < until, "{}", stderr(&output));
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(low);
    assert!(fs::read(&file).unwrap() != data);
}

/// While a trace is read, a signal ends the replay at once. SIGINT may be ignored where the tests run in the background.
#[test]
fn root_a_replay_that_reads_its_trace_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), MIB, &[]) else { return };
    let trace = folder.path().join("trace");
    system("mkfifo", &[trace.to_str().unwrap()]);
    for opened in [false, true] {
        let mut replay = Running::new(idlewise(&["replay", trace.to_str().unwrap(), disk.path()]));
        let writer = opened.then(|| File::options().write(true).open(&trace).unwrap());
        std::thread::sleep(Duration::from_millis(500));
        replay.signal(Signal::TERM);
        let until = Instant::now() + Duration::from_secs(10);
        while !replay.is_over() {
            assert!(Instant::now() < until, "it still reads");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(writer);
    }
}
