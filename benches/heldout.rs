//! scratch
use idlewise::Nanos;
use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::{ReadOptions, open};
use idlewise::tune::{Goal, heldout};
use std::path::Path;
fn main() {
    let folder = std::env::var_os("IDLEWISE_TRACES").unwrap();
    let model = DiskModel::ultrastar_15k450();
    for name in [
        "blkreplay_linux-mysql.load.gz",
        "blkreplay_windows-mssql.load.gz",
        "hplajw.1week.srt",
        "blkreplay_windows-shared-server.load.gz",
        "msr/wdev_1.csv",
        "msr/wdev_3.csv",
        "msr/web_3.damaged.txt.xz",
        "cloudPhysicsIO.vscsi",
        "blktrace-hadoop/e9.cpu0-3.tar.xz",
        "nexus5/log131_music.txt.xz",
        "nexus5/log186_twitter.txt.xz",
        "nexus5/log156_download.txt.xz",
        "nexus5/log191_facebook.txt.xz",
        "nexus5/log152_YouTube.txt.xz",
    ] {
        let path = [Path::new(&folder).join(name)];
        let trace = open(&path, &ReadOptions { skip_bad: true, ..ReadOptions::default() }).unwrap();
        let disks = Idleness::of_trace(&trace, &model).unwrap();
        let (train, test): (Vec<_>, Vec<_>) = disks.iter().map(|d| d.split(0.5)).unzip();
        print!("{:<22}", &name[name.len().saturating_sub(22)..]);
        for us in [250u64, 1000, 4000] {
            let goal = Goal { mean_slowdown: Nanos(us * 1000), max_slowdown: Nanos::from_millis(50) };
            let t = std::time::Instant::now();
            let w = if std::env::var("W").is_ok() {
                heldout::held_out(&test, &model, &goal, &|g| heldout::waiting(&train, &model, g))
            } else {
                std::fs::read_to_string(format!("/tmp/w/{}-{us}", name.replace('/', "_"))).unwrap().parse().unwrap()
            };
            if std::env::var("W").is_ok() {
                std::fs::create_dir_all("/tmp/w").unwrap();
                std::fs::write(format!("/tmp/w/{}-{us}", name.replace('/', "_")), w.to_string()).unwrap();
            }
            let t1 = t.elapsed();
            let t = std::time::Instant::now();
            let s = heldout::held_out(&test, &model, &goal, &|g| heldout::shaped(&train, &model, g, false));
            let t2 = t.elapsed();
            let c = heldout::held_out(&test, &model, &goal, &|g| heldout::shaped(&train, &model, g, true));
            print!("  {:.2} {:.2}", s / w, c / w);
            let _ = (t1, t2);
        }
        println!();
    }
}
