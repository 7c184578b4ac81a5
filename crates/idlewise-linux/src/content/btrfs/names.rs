//! The files that an address of a btrfs belongs to.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::PoisonError;

use super::ioctl::{Key, files_at, path_in_tree, search};
use super::mounted::Mounted;
use super::superblock::word;

const ROOT_TREE: u64 = 1;
/// The tree of the topmost subvolume.
const TOP: u64 = 5;
const ROOT_BACKREF: u8 = 144;
/// Subvolumes lie within each other no deeper than paths are long.
const DEEPEST: usize = 64;

/// The files in which a byte lies: where they are mounted, or else their paths within the file system; their numbers where they have no path.
pub fn of(mounted: &Mounted, logical: u64) -> io::Result<Vec<String>> {
    let named =
        |(tree, number): (u64, u64)| path_in_tree(mounted, tree, number).ok().map(|path| from_top(mounted, tree, path));
    let name = |place: (u64, u64)| match named(place) {
        Some(path) => shown(mounted, Path::new(OsStr::from_bytes(&path))),
        None => format!("file {} of subvolume {}", place.1, place.0),
    };
    let files = files_at(mounted, logical, false)?;
    if !files.is_empty() {
        return Ok(files.into_iter().map(name).collect());
    }
    // An extent is kept as a whole as long as a file has a part of it.
    let part = |place| format!("a part of an extent of {} that no file reads", name(place));
    Ok(files_at(mounted, logical, true)?.into_iter().map(part).collect())
}

/// A path from the top of the file system on, as people find it.
fn shown(mounted: &Mounted, path: &Path) -> String {
    let seen = mounted.mount.lock().unwrap_or_else(PoisonError::into_inner).seen(path);
    seen.map_or_else(|| format!("{} of the btrfs, not mounted", path.display()), |seen| seen.display().to_string())
}

/// A path within a subvolume, with that of the subvolume before it.
fn from_top(mounted: &Mounted, tree: u64, path: Vec<u8>) -> Vec<u8> {
    let mut path = trimmed(path);
    let mut tree = tree;
    for _ in 0..DEEPEST {
        let Some((parent, folder, name)) = parent(mounted, tree).ok().flatten().filter(|_| tree != TOP) else { break };
        let folder = path_in_tree(mounted, parent, folder).map(trimmed).unwrap_or_default();
        path = [&folder[..], &name, &path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b'/');
        tree = parent;
    }
    [b"/", &path[..]].concat()
}

/// The kernel ends the path of a folder with a slash.
fn trimmed(mut path: Vec<u8>) -> Vec<u8> {
    while path.last() == Some(&b'/') {
        path.pop();
    }
    path
}

/// The subvolume in which another one lies, the folder, and its name there.
fn parent(mounted: &Mounted, tree: u64) -> io::Result<Option<(u64, u64, Vec<u8>)>> {
    const HEADER: usize = 18;
    let key = |offset| Key { object: tree, kind: ROOT_BACKREF, offset };
    let mut found = None;
    search(mounted, ROOT_TREE, (key(0), key(u64::MAX)), u8::MAX, |key, item| {
        if key.kind == ROOT_BACKREF && key.object == tree {
            let length = item.get(16..HEADER).map_or(0, |bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
            let name = item.get(HEADER..HEADER + length).unwrap_or_default();
            found = Some((key.offset, word(item, 0), name.to_vec()));
        }
    })?;
    Ok(found)
}
