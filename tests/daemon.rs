//! The daemon: disks are verified in time, whatever happens to it.

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use common::bench::{Bench, Emulated, MIB};
use common::held::signal;
use common::service::{Daemon, asked};
use common::{run, stderr, stdout};
use idlewise_linux::device::Device;
use rustix::process::Signal;
use serde_json::Value;

/// What the scrub of a disk was told on its command line.
fn told(path: &str) -> String {
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|one| fs::read(one.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&format!(" scrub {path} "))).collect()
}

#[test]
fn root_each_disk_is_verified_once_and_killing_it_loses_nothing() {
    let options = |bad: &[std::ops::Range<u64>]| Bench::new(64 * MIB, bad, true);
    let Some((good, bad)) = options(&[]).zip(options(std::slice::from_ref(&(5000..5002)))) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (config, states) = (folder.path().join("idlewise.toml"), folder.path().join("states"));
    let text = format!(
        "[defaults]\nverify_every = \"1d\"\n[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"{}\"\nmean_slowdown = \"2ms\"\n\
         [[disk]]\nmatch = \"*\"\nignore = true\n",
        good.path(),
        bad.path()
    );
    fs::write(&config, &text).unwrap();
    let output = run(&["check-config", "--config", config.to_str().unwrap(), "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let of = |path: &str| all.as_array().unwrap().iter().find(|disk| disk["device"] == path).unwrap();
    assert_eq!(
        (&of(bad.path())["mean_slowdown_s"], &of(good.path())["mean_slowdown_s"]),
        (&0.002.into(), &0.001.into())
    );
    let others = all.as_array().unwrap().iter().filter(|disk| disk["ignored"] == true).count();
    assert_eq!(others + 2, all.as_array().unwrap().len(), "{all}");

    let status = || -> Vec<Value> {
        let output = run(&["status", "--json", "--state-dir", states.to_str().unwrap()]);
        serde_json::from_slice::<Value>(&output.stdout).ok().and_then(|all| all.as_array().cloned()).unwrap_or_default()
    };
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("first"));
    daemon.until("begun", |_| status().iter().filter(|disk| disk["state"] == "running").count() == 2);
    // Paused, a scrub ends where it is, and goes on there.
    let socket = states.with_extension("sock");
    let order = |arguments: &[&str]| run(&[arguments, &["--socket", socket.to_str().unwrap()]].concat());
    let state = |path: &str| -> Value {
        let all: Value = serde_json::from_str(&asked(&socket, "GET /v1/status").1).unwrap();
        all["disks"].as_array().unwrap().iter().find(|disk| disk["device"] == path).unwrap().clone()
    };
    let output = order(&["pause", good.path(), "--for", "1h", "--why", "a <test>"]);
    let (paused, why) = (stdout(&output).contains("is paused until"), stdout(&output).contains(": a <test>"));
    assert!(output.status.success() && paused && why, "{}{}", stdout(&output), stderr(&output));
    daemon.until("paused", |_| state(good.path())["state"] == "paused");
    assert_eq!(
        (&state(good.path())["paused"]["why"], &state(bad.path())["state"]),
        (&"a <test>".into(), &"running".into())
    );
    let output = order(&["start", good.path()]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("resume it first"), "{}", stderr(&output));
    let output = order(&["pause", "/dev/nothing"]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("no disk here"), "{}", stderr(&output));
    let output = order(&["resume", good.path()]);
    assert!(output.status.success(), "{}", stderr(&output));
    daemon.until("resumed", |_| state(good.path())["state"] == "running");
    // A file that cannot be used changes nothing.
    fs::write(&config, "[defaults]\nverify_evry = \"1d\"\n").unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.until("refused", |said| said.contains("unknown field `verify_evry`") && said.contains("going on as before"));
    fs::write(&config, &text).unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.until("read again", |said| said.contains("the configuration was read again"));
    // A stricter goal holds at once, also for the scrub that runs; another order only for the next pass, as this one has begun.
    let stricter = text.replace("[defaults]\n", "[defaults]\nmax_slowdown = \"20ms\"\norder = \"sequential\"\n");
    fs::write(&config, &stricter).unwrap();
    let of = |path: &str, name: &str| state(path)[name].as_f64().unwrap();
    assert_eq!(of(good.path(), "goal_max_slowdown_s"), 0.05);
    signal(&daemon.child, Signal::HUP);
    daemon.until("stricter", |_| {
        let (disk, told) = (state(good.path()), told(good.path()));
        disk["state"] == "running" && disk["goal_max_slowdown_s"] == 0.02 && told.contains("--max-slowdown 20000000ns")
    });
    assert!(told(good.path()).contains("--order staggered --"), "{}", told(good.path()));
    // So does what may be spent where a disk is behind, and that it may not be spent any more.
    let spends = stricter.replace("[defaults]\n", "[defaults]\nwhen_behind = \"spend\"\nspend_up_to = \"2ms\"\n");
    for (config_now, is_told) in [(&spends, true), (&stricter, false)] {
        fs::write(&config, config_now).unwrap();
        signal(&daemon.child, Signal::HUP);
        daemon.until("spent", |_| {
            let told = told(good.path());
            told.contains("--max-slowdown 20000000ns") && told.contains("--mean-slowdown") == is_told
        });
    }
    fs::write(&config, &text).unwrap();
    // Another one keeps away from what this one remembers.
    let other = ["daemon", "--state-dir", states.to_str().unwrap(), "--socket", "/proc/nothing"];
    let output = run(&[&other[..], &["--config", config.to_str().unwrap()]].concat());
    assert!(output.status.code() == Some(1) && stderr(&output).contains("holds schedule.lock"), "{}", stderr(&output));
    // Killed, it takes its scrubs with it, and the next one goes on.
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let began = Instant::now();
    while status().iter().any(|disk| disk["state"] == "running") {
        assert!(began.elapsed() < Duration::from_secs(30), "a scrub goes on without the daemon: {:?}", status());
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("second"));
    daemon.until("complete", |_| {
        let all = status();
        all.len() == 2 && all.iter().all(|disk| disk["state"] == "complete")
    });
    let found: Vec<_> = status().iter().flat_map(|disk| disk["errors"].as_array().unwrap().clone()).collect();
    assert_eq!((found.len(), &found[0]["lba"], &found[0]["blocks"]), (1, &5000.into(), &2.into()));
    // To look after a disk reads nothing from it: that would be foreground to its scrub.
    for disk in status() {
        assert!(disk["run"]["account"]["requests"].as_u64() < Some(20), "{disk}");
    }
    daemon.until("told", |said| {
        let told = format!("{}: 2 blocks cannot be read, or are wrong", bad.path());
        said.contains(&told) && said.matches("verified; the next pass begins in ").count() == 2
    });
    // What it shows: metrics, and a page that runs nothing of others.
    daemon.until("seen by the daemon as well", |_| state(bad.path())["state"] == "complete");
    let (head, metrics) = asked(&socket, "GET /metrics");
    assert!(head.contains("200 OK") && head.contains("text/plain; version=0.0.4"), "{head}");
    let name = bad.path().trim_start_matches("/dev/");
    let has = |line: &str| metrics.lines().any(|found| found == line);
    assert!(has(&format!("idlewise_unreadable_blocks{{device=\"{name}\",kind=\"io\"}} 2")), "{metrics}");
    assert!(has(&format!("idlewise_disk_state{{device=\"{name}\",state=\"complete\"}} 1")), "{metrics}");
    let of = |path: &str| state(path)["identity"].as_str().unwrap().to_string();
    let (head, page) = asked(&socket, &format!("GET /disks/{name}"));
    assert!(head.contains("default-src 'none'") && page.contains(&of(bad.path())) && page.contains("5000"), "{page}");
    let all = asked(&socket, "GET /").1;
    assert!([good.path(), bad.path()].iter().all(|path| all.contains(&format!(">{}</a>", &path[5..]))), "{all}");
    assert!(asked(&socket, "GET /disks/none").0.contains("404"));
    assert!(asked(&socket, "DELETE /").0.contains("405"));
    let output = order(&["acknowledge", bad.path()]);
    assert!(output.status.success(), "{}", stderr(&output));
    daemon.until("acknowledged", |_| state(bad.path())["acknowledged_blocks"] == 2);
    let history = |path: &str| -> Value {
        let output = run(&["history", &of(path), "--json", "--state-dir", states.to_str().unwrap()]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    };
    let (first, second) = (history(good.path()), history(bad.path()));
    assert_eq!((first.as_array().unwrap().len(), &first[0]["bad_blocks"]), (1, &0.into()), "{first}");
    assert_eq!((second.as_array().unwrap().len(), &second[0]["bad_blocks"]), (1, &2.into()), "{second}");
    let (code, said) = daemon.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(order(&["pause"]).status.code() == Some(1), "nobody listens any more");

    // Nothing is due for most of a day.
    let started = || status().iter().map(|disk| disk["started_unix_s"].clone()).collect::<Vec<_>>();
    let before = started();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("third"));
    daemon.until("resting", |said| said.matches("verified; the next pass begins in ").count() == 2);
    // Those that were paused alone go on with all.
    assert!(order(&["pause", good.path(), "--why", "a <test>"]).status.success());
    let output = order(&["resume"]);
    assert_eq!(
        stdout(&output),
        "all disks go on; pauses of single disks that ended as well: 1\n",
        "{}",
        stderr(&output)
    );
    // Whoever is not named any more is not missing, and what is known of it stays.
    let section = |path: &Path| format!("[[disk]]\nmatch = \"{}\"\nignore = true\n", path.display());
    let others: String = Device::all().iter().map(|path| section(path)).collect();
    let without = format!("[defaults]\nverify_every = \"1d\"\n[[disk]]\nmatch = \"{}\"\n{others}", good.path());
    fs::write(&config, &without).unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.until("unnamed", |said| said.contains(&format!("{}: is not named by the config", bad.path())));
    assert!(!asked(&socket, "GET /v1/status").1.contains(bad.path()));
    // Without a disk to look after, that is said.
    fs::write(&config, "[[disk]]\nmatch = \"*\"\nignore = true\n").unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.until("idle", |said| said.contains("no disk is looked after") && said.contains("is ignored"));
    let (code, said) = daemon.end();
    assert_eq!((code, started()), (Some(0), before), "{said}");
    let kept: Value = serde_json::from_slice(&fs::read(states.join("schedule.state")).unwrap()).unwrap();
    let devices: Vec<_> = kept["disks"].as_object().unwrap().values().map(|disk| disk["device"].as_str()).collect();
    assert!(
        devices.len() == 2 && !devices.contains(&Some(bad.path())) && !said.contains("not there any more"),
        "{kept}"
    );
}

#[test]
fn a_configuration_that_is_wrong_is_said_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("idlewise.toml");
    fs::write(&config, "[defaults]\nmean_slowdown = \"1 day late\"\n").unwrap();
    for command in ["check-config", "daemon"] {
        let output =
            run(&[command, "--config", config.to_str().unwrap(), "--state-dir", folder.path().to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""), "{said}");
        assert!(said.contains("line 2") && said.contains("500us, 1ms"), "{said}");
    }
}

/// A mistyped name would leave every disk with the defaults.
#[test]
fn a_configuration_that_is_named_and_missing_is_an_error() {
    for command in ["check-config", "daemon", "notify"] {
        let output = run(&[command, "--config", "/nothing/idlewise.toml"]);
        let said = stderr(&output);
        assert!(output.status.code() == Some(1) && said.contains("/nothing/idlewise.toml: No such file"), "{said}");
    }
}

#[test]
fn root_of_two_disks_that_cannot_be_told_apart_one_is_refused_aloud() {
    let Some(bench) = Bench::new(16 * MIB, &[], true) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    File::create(&file).unwrap().set_len(8 * MIB).unwrap();
    let twins: Vec<_> = (0..2).filter_map(|_| common::bench::Loop::new(&file, &[])).collect();
    let link = folder.path().join("by-id");
    std::os::unix::fs::symlink(bench.path(), &link).unwrap();
    let config = folder.path().join("idlewise.toml");
    let text = format!(
        "[[disk]]\nmatch = \"{}\"\nmean_slowdown = \"3ms\"\n[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"{}\"\n\
         [[disk]]\nmatch = \"*\"\nignore = true\n",
        link.display(),
        twins[0].path(),
        twins[1].path()
    );
    fs::write(&config, text).unwrap();
    let output = run(&["check-config", "--config", config.to_str().unwrap(), "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |path: &str| all.as_array().unwrap().iter().filter(|disk| disk["device"] == path).collect::<Vec<_>>();
    assert_eq!(twins.iter().map(|twin| of(twin.path()).len()).sum::<usize>(), 1, "{all}");
    // The file itself is as it should.
    assert!(output.status.success() && stderr(&output).contains("cannot be told from"), "{}", stderr(&output));
    // A link means what it leads to, and that is there once.
    assert_eq!((of(bench.path()).len(), &of(bench.path())[0]["mean_slowdown_s"]), (1, &0.003.into()), "{all}");
    assert!(of(link.to_str().unwrap()).is_empty(), "{all}");
    let mut daemon = Daemon::start(&config, &folder.path().join("states"), &folder.path().join("said"));
    daemon.until("refused", |said| said.contains("cannot be told from"));
    // A file that is no socket is not taken for one.
    let precious = folder.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    let arguments = ["daemon", "--socket", precious.to_str().unwrap(), "--state-dir", folder.path().to_str().unwrap()];
    let output = run(&arguments);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("no socket"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
}

/// A disk that answers no read of its first label holds up no order, and no end.
#[test]
fn root_a_disk_that_hangs_makes_nobody_deaf() {
    let Some(disk) = Emulated::new(&["--size", "64MiB", "--instant", "--hang", "40"]) else { return };
    let device = disk.path();
    let folder = tempfile::tempdir().unwrap();
    let (config, states) = (folder.path().join("idlewise.toml"), folder.path().join("states"));
    fs::write(&config, format!("[[disk]]\nmatch = \"{device}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n")).unwrap();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("said"));
    daemon.until("silent", |said| said.contains(&format!("{device}: has not answered")));
    let socket = states.with_extension("sock");
    let seen =
        || serde_json::from_str::<Value>(&asked(&socket, "GET /v1/status").1).unwrap()["unix_s"].as_f64().unwrap();
    let before = seen();
    let all: Value = serde_json::from_str(&asked(&socket, "GET /v1/status").1).unwrap();
    assert!(all["disks"][0]["due_unix_s"].as_f64() > Some(before), "{all}");
    // Longer than a label is waited for.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        for order in ["pause", "resume"] {
            let asked = Instant::now();
            let output = run(&[order, device, "--socket", socket.to_str().unwrap()]);
            assert!(output.status.success() && asked.elapsed() < Duration::from_secs(10), "{}", stderr(&output));
        }
    }
    assert!(seen() > before + 5.0, "it looks at its disks no more");
    signal(&daemon.child, Signal::TERM);
    let began = Instant::now();
    while daemon.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(80), "it does not end: {}", daemon.said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// To look for labels on a disk that another idlewise scrubs would be foreground to it, every few seconds.
#[test]
fn root_nothing_is_read_from_a_disk_that_another_scrubs() {
    let Some(bench) = Bench::new(64 * MIB, &[], true) else { return };
    let Some(volume) = common::bench::Loop::new(Path::new(bench.path()), &["--direct-io=on"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("idlewise.toml");
    let text = format!("[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n", volume.path());
    fs::write(&config, text).unwrap();
    let scrub = bench.start_and_watch(&["--observe", "60s"]);
    let mut daemon = Daemon::start(&config, &folder.path().join("states"), &folder.path().join("said"));
    daemon.until("waiting", |said| said.contains("waits for another idlewise"));
    let path = format!("/proc/{}/io", daemon.child.id());
    let read = || {
        let told = fs::read_to_string(&path).unwrap();
        told.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse::<u64>().ok()).unwrap()
    };
    let before = read();
    // Ten looks.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(read() - before, 0, "{}", daemon.said());
    drop(scrub);
}

/// A disk that was put in the place of another one: what was meant for that is not done to it.
#[test]
fn root_a_name_that_two_disks_had_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = folder.path().join(name);
        File::create(&path).unwrap().set_len(16 * MIB).unwrap();
        path
    };
    let Some(disk) = common::bench::Loop::new(&file("old"), &[]) else { return };
    let (config, states) = (folder.path().join("idlewise.toml"), folder.path().join("states"));
    let place = disk.path().to_string();
    fs::write(&config, format!("[[disk]]\nmatch = \"{place}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n")).unwrap();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("said"));
    let socket = states.with_extension("sock");
    let identity = || {
        let all: Value = serde_json::from_str(&asked(&socket, "GET /v1/status").1).unwrap();
        all["disks"][0]["identity"].as_str().map(String::from)
    };
    daemon.until("found", |_| socket.exists() && identity().is_some());
    let old = identity().unwrap();
    // Its scrub holds it until it is paused.
    let order = |arguments: &[&str]| run(&[arguments, &["--socket", socket.to_str().unwrap()]].concat());
    assert!(order(&["pause"]).status.success());
    let losetup = |arguments: &[&str]| std::process::Command::new("losetup").args(arguments).status().unwrap();
    let backing = Path::new("/sys/block").join(&place[5..]).join("loop/backing_file");
    let mut is_taken = false;
    daemon.until("detached", |_| {
        // Once it is free another test may have the number.
        let now = fs::read_to_string(&backing).unwrap_or_default();
        if now.trim_end().ends_with("/old") {
            losetup(&["-d", &place]);
        }
        is_taken = !now.is_empty() && !now.starts_with(folder.path().to_str().unwrap());
        is_taken || losetup(&[&place, file("new").to_str().unwrap()]).success()
    });
    if is_taken {
        eprintln!("SKIPPED: somebody else has {place} by now");
        return;
    }
    daemon.until("replaced", |_| identity().is_some_and(|now| now != old));
    let output = order(&["acknowledge", &place]);
    let said = stderr(&output);
    assert!(output.status.code() == Some(1) && said.contains("two disks") && said.contains(&old), "{said}");
    let output = order(&["acknowledge", &old]);
    assert!(output.status.success() && stdout(&output).contains("is forgotten"), "{}", stderr(&output));
    let output = order(&["acknowledge", &place]);
    assert!(output.status.success() && stdout(&output).contains("0 bad blocks"), "{}", stderr(&output));
}

/// A disk that was put in the place of a verified one while the machine runs is verified at once, though that one was not due for days.
#[test]
fn root_what_was_put_in_the_place_of_a_verified_disk_is_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    let make = || File::create(&file).unwrap().set_len(64 * MIB).unwrap();
    make();
    let Some(disk) = common::bench::Loop::new(&file, &[]) else { return };
    let (config, states) = (folder.path().join("idlewise.toml"), folder.path().join("states"));
    let place = disk.path().to_string();
    fs::write(&config, format!("[[disk]]\nmatch = \"{place}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n")).unwrap();
    let scrub = ["scrub", &place, "--quiet", "--state-dir", states.to_str().unwrap()];
    assert!(run(&[&scrub[..], &common::bench::PACE].concat()).status.success());
    let socket = states.with_extension("sock");
    let disk_now = || -> Value {
        let all: Value = serde_json::from_str(&asked(&socket, "GET /v1/status").1).unwrap_or_default();
        all["disks"][0].clone()
    };
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("first"));
    daemon.until("complete", |_| socket.exists() && disk_now()["state"] == "complete");
    daemon.end();
    fs::remove_file(&socket).unwrap();
    // Its hours are known, as after weeks.
    let record = states.join("schedule.state");
    let mut kept: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    for known in kept["disks"].as_object_mut().unwrap().values_mut() {
        assert!(!known["passes"].as_array().unwrap().is_empty(), "{known}");
        known["week"] = vec![serde_json::json!({"weight": 3.0, "rate": 1e8, "squares": 0.0}); 168].into();
    }
    fs::write(&record, kept.to_string()).unwrap();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("second"));
    daemon.until("complete", |_| socket.exists() && disk_now()["state"] == "complete");
    let losetup =
        |arguments: &[&str]| std::process::Command::new("losetup").args(arguments).status().unwrap().success();
    assert!(losetup(&["-d", &place]));
    fs::rename(&file, folder.path().join("was")).unwrap();
    make();
    if !losetup(&[&place, file.to_str().unwrap()]) {
        eprintln!("SKIPPED: somebody else has {place} by now");
        return;
    }
    daemon.until("another", |said| said.contains("is another disk than the one that was called so"));
    daemon.until("begun", |_| disk_now()["state"] == "running");
}

/// What somebody's scrub has passed over is not called verified.
#[test]
fn root_a_pass_that_left_out_what_is_free_is_told_from_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = common::bench::Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    common::bench::system("mkfs.ext4", &["-q", disk.path()]);
    let mount = folder.path().join("mounted");
    let _mounted = common::bench::Mounted::new(&[disk.path()], &mount);
    let (config, states) = (folder.path().join("idlewise.toml"), folder.path().join("states"));
    let place = disk.path();
    fs::write(&config, format!("[[disk]]\nmatch = \"{place}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n")).unwrap();
    let scrub = ["scrub", place, "--skip-free", "--quiet", "--state-dir", states.to_str().unwrap()];
    let scrubbed = run(&[&scrub[..], &common::bench::PACE].concat());
    assert!(scrubbed.status.success(), "{}", stderr(&scrubbed));
    let socket = states.with_extension("sock");
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("log"));
    let disk_now = || -> Value {
        let all: Value = serde_json::from_str(&asked(&socket, "GET /v1/status").1).unwrap_or_default();
        all["disks"][0].clone()
    };
    daemon.until("complete", |_| socket.exists() && disk_now()["state"] == "complete");
    let why = disk_now()["why"].to_string();
    assert!(why.contains("that nothing used were not read (--skip-free)"), "{why}");
}
