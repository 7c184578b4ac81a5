//! Messages of the daemon: who is told what, and that no message is lost.

mod common;

use std::fs;
use std::time::Duration;

use common::bench::{Bench, MIB};
use common::service::Daemon;
use common::{idlewise, run, stderr};

/// Looks after this disk alone, and has a shell do something with each message.
fn looks_after(disk: &str, shell: &str) -> String {
    format!(
        "[[disk]]\nmatch = \"{disk}\"\n[[disk]]\nmatch = \"*\"\nignore = true\n[notify]\ncommand = [\"/bin/sh\", \"-c\", \"{shell}\"]\n"
    )
}

#[test]
fn who_cannot_be_told_is_said_before_anything_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let [config, url] = ["idlewise.toml", "url"].map(|name| folder.path().join(name));
    let text = format!("[notify]\ncommand = [\"/bin/nothing\"]\nwebhook = {{ url_file = \"{}\" }}\n", url.display());
    fs::write(&config, text).unwrap();
    let output = run(&["check-config", "--config", config.to_str().unwrap()]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/bin/nothing is not there") && said.contains("url: No such file"), "{said}");
}

#[test]
fn a_message_that_cannot_be_sent_is_said_and_one_that_can_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let notify = |config: &str, more: &[&str]| {
        fs::write(at("idlewise.toml"), config).unwrap();
        run(&[&["notify", "--config", &at("idlewise.toml"), "--spool", &at("outbox")], more].concat())
    };
    let output = notify("", &["--test"]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("[notify] mail"), "{}", stderr(&output));
    // Where nobody is to be told any more, nothing waits that would be tried again at once.
    fs::create_dir(at("outbox")).unwrap();
    fs::write(folder.path().join("outbox/1.json"), "{").unwrap();
    assert_eq!(notify("", &[]).status.code(), Some(1));
    let aside = ["outbox/1.json", "outbox/failed/1.json"].map(|name| folder.path().join(name).exists());
    assert_eq!(aside, [false, true]);
    fs::remove_dir_all(at("outbox")).unwrap();
    let output = notify("[notify]\nmail = [\"-oQ/tmp\"]\n", &["--test"]);
    assert!(stderr(&output).contains("is no address"), "{}", stderr(&output));
    let output = notify("[notify]\ncommand = [\"/bin/false\"]\n", &["--test"]);
    assert!(
        output.status.code() == Some(1) && stderr(&output).contains("/bin/false: exit status: 1"),
        "{}",
        stderr(&output)
    );
    let takes = format!("[notify]\ncommand = [\"/bin/sh\", \"-c\", \"cat > {}; env >> {}\"]\n", at("text"), at("text"));
    let output = notify(&takes, &["--test"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(at("text")).unwrap();
    assert!(text.contains("Nothing is wrong") && text.contains("IDLEWISE_FAILTYPE=Test"), "{text}");
    assert_eq!(notify(&takes, &[]).status.code(), Some(2), "nothing waits");
    // What is no message is thrown away, and those behind it are sent.
    fs::create_dir_all(at("outbox")).unwrap();
    fs::write(folder.path().join("outbox/1.json"), "{").unwrap();
    let message = r#"{"version":1,"unix_s":1.0,"kind":"Behind","device":"/dev/sda","identity":"a","subject":"late","text":"It is late.","before":2,"first_unix_s":0.5}"#;
    fs::write(folder.path().join("outbox/2.json"), message).unwrap();
    let output = notify(&takes, &[]);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("1.json"), "{}", stderr(&output));
    let text = fs::read_to_string(at("text")).unwrap();
    assert!(text.contains("It is late.") && text.contains("IDLEWISE_PREVCNT=2"), "{text}");
    assert_eq!(fs::read_dir(folder.path().join("outbox")).unwrap().count(), 0);
}

/// A way that is dead: it holds up no message that can be sent by another, and has nobody told twice.
#[test]
fn a_dead_way_holds_up_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let config = format!(
        "[notify]\ncommand = [\"/bin/sh\", \"-c\", \"cat >> {}\"]\nwebhook = {{ url_file = \"{}\" }}\n",
        at("told"),
        at("url")
    );
    fs::write(at("idlewise.toml"), config).unwrap();
    fs::create_dir(at("outbox")).unwrap();
    let post = |number: u32| {
        let message = format!(
            r#"{{"version":1,"unix_s":1.0,"kind":"Behind","device":"a","identity":"a","subject":"late","text":"late {number}\n","before":0,"first_unix_s":0.5}}"#
        );
        fs::write(at(&format!("outbox/{number}.json")), message).unwrap();
    };
    (1..=2).for_each(post);
    let told = || fs::read_to_string(at("told")).unwrap_or_default();
    let arguments = ["notify", "--config", &at("idlewise.toml"), "--spool", &at("outbox")];
    for (first, number) in [(true, 3), (false, 4)] {
        let mut child = idlewise(&arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
        if !first {
            std::thread::sleep(Duration::from_secs(2));
        }
        // It comes while the others wait for their next try, in 20 s.
        post(number);
        let began = std::time::Instant::now();
        while !told().contains(&format!("late {number}")) {
            assert!(began.elapsed() < Duration::from_secs(15), "{}", told());
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(500));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut lines: Vec<_> = told().lines().map(String::from).collect();
    lines.sort();
    assert_eq!(lines, ["late 1", "late 2", "late 3", "late 4"], "each once, by the way that works");
    assert_eq!(fs::read_dir(at("outbox")).unwrap().count(), 4, "they wait for the other way");
}

/// What another user has put into a folder of messages, or led elsewhere, is neither sent nor removed.
#[test]
fn root_messages_of_other_users_are_left_alone() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: it needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("idlewise.toml"), "[notify]\ncommand = [\"/bin/true\"]\n").unwrap();
    [at("precious"), at("theirs"), at("own")].iter().for_each(|path| fs::create_dir(path).unwrap());
    (0..25).for_each(|number| fs::write(at("precious").join(format!("{number}.json")), "{}").unwrap());
    std::os::unix::fs::symlink(at("precious"), at("theirs/failed")).unwrap();
    std::os::unix::fs::symlink(at("precious"), at("own/failed")).unwrap();
    for path in [at("theirs"), at("own/failed")] {
        std::os::unix::fs::lchown(path, Some(65_534), Some(65_534)).unwrap();
    }
    for spool in ["theirs", "own"] {
        let arguments = ["notify", "--config", at("idlewise.toml").to_str().unwrap(), "--spool"].map(String::from);
        let output = idlewise(&arguments.each_ref().map(|one| &**one)).arg(at(spool)).output().unwrap();
        assert!(output.status.code() == Some(1) && stderr(&output).contains("user"), "{spool}: {}", stderr(&output));
    }
    assert_eq!(fs::read_dir(at("precious")).unwrap().count(), 25);
}

/// A folder that is full for a moment costs nobody a message.
#[test]
fn root_what_could_not_be_told_is_told_later() {
    let Some(bad) = Bench::new(16 * MIB, std::slice::from_ref(&(5000..5002)), true) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [config, states, told] = ["idlewise.toml", "states", "told"].map(|name| folder.path().join(name));
    let scrub = ["scrub", bad.path(), "--quiet", "--request-size", "1MiB", "--idle-wait", "1ms", "--state-dir"];
    assert_eq!(run(&[&scrub[..], &[states.to_str().unwrap()]].concat()).status.code(), Some(3));
    fs::write(&config, looks_after(bad.path(), &format!("cat > {}", told.display()))).unwrap();
    // As good as no room: no folder can be made there.
    fs::write(states.join("outbox"), "").unwrap();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("said"));
    daemon.until("said", |said| said.contains("nobody can be told"));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(daemon.said().matches("nobody can be told").count(), 1, "{}", daemon.said());
    fs::remove_file(states.join("outbox")).unwrap();
    daemon.until("told", |_| fs::read_to_string(&told).is_ok_and(|text| text.contains("cannot be read")));
    daemon.end();
}

/// A scrub that fails before it begins, though a whole pass lies behind it: that is told once, and it does not go on for being tried again.
#[test]
fn root_a_scrub_that_fails_at_its_start_goes_on_once_it_does() {
    let Some(disk) = Bench::new(16 * MIB, &[], true) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [config, states, told] = ["idlewise.toml", "states", "told"].map(|name| folder.path().join(name));
    let scrub = ["scrub", disk.path(), "--quiet", "--request-size", "1MiB", "--idle-wait", "1ms", "--state-dir"];
    assert_eq!(run(&[&scrub[..], &[states.to_str().unwrap()]].concat()).status.code(), Some(0));
    fs::write(&config, looks_after(disk.path(), &format!("cat >> {}", told.display()))).unwrap();
    // No scrub begins while somebody else is at its checkpoint.
    let is_checkpoint = |name: &str| name.ends_with(".json");
    let names = fs::read_dir(&states).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let lock = names.filter(|name| is_checkpoint(name)).map(|name| name.replace(".json", ".lock")).next().unwrap();
    let hold = idlewise_linux::scrub::StateFolder::choose(Some(states.clone())).hold(&lock).unwrap().unwrap();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("said"));
    let socket = states.with_extension("sock");
    let start = || assert!(run(&["start", disk.path(), "--socket", socket.to_str().unwrap()]).status.success());
    daemon.until("found", |said| said.contains("verified; the next pass"));
    for times in 1..=3 {
        start();
        daemon.until("failed", |said| said.matches("its scrub failed").count() == times);
    }
    let text = || fs::read_to_string(&told).unwrap_or_default();
    daemon.until("told", |_| text().contains("its scrub fails"));
    assert!(!text().contains("goes on"), "{}", text());
    drop(hold);
    start();
    daemon.until("told", |_| text().contains("its scrub goes on"));
    let told = |what: &str| text().matches(&format!("{}: {what}.", disk.path())).count();
    assert_eq!((text().matches(": its scrub fails").count() > 0, told("its scrub goes on")), (true, 1), "{}", text());
    daemon.end();
}
