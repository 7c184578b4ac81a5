//! The table of a fleet: what the command does beside the Python package, whose tests run the rest.

mod common;

use std::fs;

use common::{idlewise, run, stderr, stdout};

const GOAL: [&str; 4] = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms"];

#[test]
fn a_package_that_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let arguments = [&["fleet", "x.csv", "--out", out.to_str().unwrap()][..], &GOAL].concat();
    let with = |python: &str| {
        let output = idlewise(&arguments).env("IDLEWISE_PYTHON", python).env_remove("PYTHONPATH").output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let (code, said) = with("/nothing/python3");
    assert!(code == Some(1) && said.contains("/nothing/python3") && said.contains("Python"), "{said}");
    // As Python says it where the package is not installed.
    let python = folder.path().join("python");
    fs::write(&python, "#!/bin/sh\necho 'python: No module named idlewise' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, said) = with(python.to_str().unwrap());
    assert!(code == Some(1) && said.contains("pip install idlewise") && said.lines().count() == 1, "{said}");
    // And where it tells what is wrong.
    fs::write(&python, "#!/bin/sh\necho '{\"error\": \"no file fits\"}'\nexit 1\n").unwrap();
    let (code, said) = with(python.to_str().unwrap());
    assert_eq!((code, &*said), (Some(1), "idlewise: no file fits\n"));
}

/// Whoever may write to the folder that it is called in has nothing run by it.
#[test]
fn a_package_in_the_present_folder_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let planted = folder.path().join("idlewise/fleet");
    fs::create_dir_all(&planted).unwrap();
    for file in ["__init__.py", "fleet/__init__.py", "fleet/__main__.py"] {
        fs::write(folder.path().join("idlewise").join(file), "open('ran', 'w')\n").unwrap();
    }
    fs::write(folder.path().join("json.py"), "open('ran', 'w')\n").unwrap();
    let arguments = [&["fleet", "x.csv", "--out", "out"][..], &GOAL].concat();
    let output = idlewise(&arguments)
        .current_dir(folder.path())
        .env_remove("IDLEWISE_PYTHON")
        .env_remove("PYTHONPATH")
        .output()
        .unwrap();
    assert!(!output.status.success() && !folder.path().join("ran").exists(), "{}", stderr(&output));
}

#[test]
fn plans_are_sections_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("fleet.json");
    fs::write(
        &table,
        r#"{"rows":[{"volume":"a[1]_0","full_pass_s":864000.0,"throughput_bytes_per_s":2e6},{"volume":"a*_0","full_pass_s":60.0},{"volume":"a??_0","full_pass_s":60.0},{"volume":"a\u202e_0","full_pass_s":60.0},{"volume":"a\n[[disk]]","error":"no idle\ntime"},{"volume":"ab","full_pass_s":1e308},{"volume":"b_0","full_pass_s":60.0}],"errors":{}}"#,
    )
    .unwrap();
    let text_of_table = fs::read(&table).unwrap();
    let plans = |more: &[&str]| run(&[&["fleet", "plans", folder.path().to_str().unwrap()][..], &GOAL, more].concat());
    let output = plans(&["--host", "a", "--path", "/dev/disk/by-id/virtio-{volume}"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    // Twice what a pass takes; and what stands in a name begins no section, or matches other disks.
    assert!(
        text.contains("match = \"/dev/disk/by-id/virtio-a[1]_0\"") && text.contains("verify_every = \"20d\""),
        "{text}"
    );
    let sections = text.lines().filter(|line| line.starts_with("[[disk]]")).count();
    assert!(
        sections == 1
            && text.matches("could match other disks").count() == 3
            && text.contains("no plan: no idle")
            && text.contains("more than 100 years"),
        "{text}"
    );
    let config = folder.path().join("idlewise.toml");
    fs::write(&config, &text).unwrap();
    assert!(!stderr(&run(&["check-config", "--config", config.to_str().unwrap()])).contains("line "));
    // In a folder nobody has named the file: it may be whatever its owner has put there.
    fs::remove_file(&table).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &table, 0o600.into()).unwrap();
    let pipe = plans(&["--path", "{volume}"]);
    assert!(stderr(&pipe).contains("is missing, empty or behind another user's link"), "{}", stderr(&pipe));
    fs::remove_file(&table).unwrap();
    fs::File::create(&table).unwrap().set_len(1 << 42).unwrap();
    let endless = plans(&["--path", "{volume}"]);
    assert!(stderr(&endless).contains("an eighth of the memory that is free"), "{}", stderr(&endless));
    fs::write(&table, &text_of_table).unwrap();
    let refused = plans(&["--path", "/dev/sda"]);
    assert!(refused.status.code() == Some(64) && stderr(&refused).contains("{volume}"), "{}", stderr(&refused));
    let none = plans(&["--host", "c", "--path", "{volume}"]);
    assert!(none.status.code() == Some(1) && stderr(&none).contains("no volume begins with 'c'"), "{}", stderr(&none));
}
