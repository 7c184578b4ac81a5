//! Arrays that lie on the same disks: md lets only one of them be checked or rebuilt at a time, and has the other wait.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::knobs::read;

/// What md is doing with another array on a disk of this one, as `md1 (recover)`; nothing where it is at rest with all of them.
pub fn at_work(own: &str) -> Option<String> {
    at_work_in(Path::new("/sys/block"), Path::new("/sys/class/block"), own)
}

fn at_work_in(blocks: &Path, class: &Path, own: &str) -> Option<String> {
    let disks = disks_of(&blocks.join(own).join("md"), class);
    let names = fs::read_dir(blocks).ok()?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name != own).find_map(|name| {
        let folder = blocks.join(&name).join("md");
        let action = read(&folder, "sync_action").ok().filter(|action| action != "idle" && action != "frozen")?;
        (!disks.is_disjoint(&disks_of(&folder, class))).then(|| format!("{name} ({action})"))
    })
}

/// The whole disks below the members of an array, as folders in /sys.
fn disks_of(folder: &Path, class: &Path) -> BTreeSet<PathBuf> {
    members(folder).filter_map(|member| disk_of(&class.join(member))).collect()
}

/// The members of an array, as the kernel names them.
pub fn members(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("dev-")?.to_string()))
}

/// A partition's folder lies in its disk's.
fn disk_of(device: &Path) -> Option<PathBuf> {
    let folder = device.canonicalize().ok()?;
    if folder.join("partition").exists() { folder.parent().map(Path::to_path_buf) } else { Some(folder) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_array_on_the_same_disk_is_seen_at_work() {
        let folder = tempfile::tempdir().unwrap();
        let [blocks, class] = ["block", "class"].map(|name| folder.path().join(name));
        let make = |path: &Path| fs::create_dir_all(path).unwrap();
        make(&class);
        for disk in ["sda", "sdb"] {
            for part in ["1", "2"] {
                let place = blocks.join(disk).join(format!("{disk}{part}"));
                make(&place);
                fs::write(place.join("partition"), part).unwrap();
                symlink(&place, class.join(format!("{disk}{part}"))).unwrap();
            }
        }
        let array = |name: &str, members: &[&str], action: &str| {
            let md = blocks.join(name).join("md");
            members.iter().for_each(|member| make(&md.join(format!("dev-{member}"))));
            fs::write(md.join("sync_action"), action).unwrap();
        };
        array("md0", &["sda1"], "check\n");
        array("md1", &["sda2", "sdb1"], "idle\n");
        array("md2", &["sdb2"], "recover\n");
        let seen = |own: &str| at_work_in(&blocks, &class, own);
        assert_eq!(seen("md0"), None);
        assert!(["md0 (check)", "md2 (recover)"].contains(&&*seen("md1").unwrap()));
        assert_eq!(seen("md2"), None);
        array("md1", &[], "resync\n");
        assert_eq!(seen("md0").as_deref(), Some("md1 (resync)"));
    }
}
