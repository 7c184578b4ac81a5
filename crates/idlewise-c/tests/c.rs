//! The header and the library from C: the example is compiled with all warnings, linked and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use idlewise_c::{
    IdlewisePoint, idlewise_adaptive, idlewise_arrived, idlewise_ask, idlewise_completed, idlewise_free,
    idlewise_get_measured, idlewise_waiting,
};

/// Where cargo puts the libraries of this crate.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_path_buf()
}

#[test]
fn a_program_in_c_drives_a_loop() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("loop");
    let library = libraries().join("libidlewise_c.a");
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-pthread"];
    let mut compile = Command::new("cc");
    compile.args(flags).arg("-I").arg(root.join("include")).arg(root.join("examples/loop.c")).arg(&library);
    let output = compile.args(["-lm", "-ldl", "-lpthread", "-lutil", "-lrt", "-o"]).arg(&program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = said.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [requests, steps, collisions, mean_us] = numbers[..] else { panic!("{said}") };
    // A step at 3 ms and one at 8 ms of each gap, the second of which delays by 3 to 4 ms; the account allows 2 ms on average.
    assert_eq!(requests, 1_000);
    assert!(steps > 990 && collisions > 200 && (1_000..=2_000).contains(&mean_us), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused_and_null_is_no_driver() {
    let points = [IdlewisePoint { bytes: 65_536, ns: 1_000_000 }, IdlewisePoint { bytes: 1 << 20, ns: 5_000_000 }];
    // SAFETY: each call has the number of points that there are, and each driver is used by this thread and freed once.
    unsafe {
        let adaptive =
            |points: &[IdlewisePoint]| idlewise_adaptive(points.as_ptr(), points.len(), 1_000_000, 50_000_000, 0);
        assert!(adaptive(&points[..1]).is_null() && adaptive(&[points[1], points[0]]).is_null());
        assert!(idlewise_adaptive(std::ptr::null(), 2, 1, 1, 0).is_null());
        let driver = adaptive(&points);
        idlewise_arrived(driver, 10);
        assert_eq!(idlewise_ask(driver, 20).kind, 2);
        idlewise_completed(driver, 30, 10);
        assert_eq!(idlewise_ask(driver, 30).kind, 1);
        assert_eq!(idlewise_get_measured(driver).foreground_requests, 1);
        idlewise_free(driver);
        let nobody = std::ptr::null_mut();
        idlewise_arrived(nobody, 1);
        assert_eq!((idlewise_ask(nobody, 1).kind, idlewise_get_measured(nobody).steps), (2, 0));
        let driver = idlewise_waiting(0, 0, 0, 0);
        assert_eq!((idlewise_ask(driver, 5).kind, idlewise_ask(driver, 5).bytes), (0, 1));
        idlewise_free(driver);
    }
}
