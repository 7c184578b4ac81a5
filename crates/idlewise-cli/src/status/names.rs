//! Which device is meant by a name, and how one is called: what the kernel calls `/dev/sda` may be another disk the next time.

use std::collections::HashMap;
use std::path::Path;

use idlewise_linux::device::Device;

/// Whether a name means the device of this identity that was scrubbed under a path. A path that leads to a device means that one; what
/// begins like an identity is none, whatever lies in the folder in which it is said.
pub fn is_meant(name: &str, path: &str, identity: &str) -> bool {
    match identity_of(name) {
        Some(now) => now == Device::itself(identity),
        None => [path, identity].contains(&name),
    }
}

/// The identity of the device that a name leads to, if it leads to one.
pub fn identity_of(name: &str) -> Option<String> {
    let is_path = ["/", "./", "../"].iter().any(|begin| name.starts_with(begin));
    // What the kernel calls it.
    let place = if is_path { Path::new(name).into() } else { Path::new("/dev").join(name) };
    Some(place).filter(|_| is_path || !name.contains('/')).and_then(|place| Device::identity_at(&place))
}

/// What each is called: the path under which it was scrubbed, unless another was as well or it leads to another now.
pub fn shown(all: &[(&str, &str)]) -> Vec<String> {
    let mut paths = HashMap::<&str, usize>::new();
    all.iter().for_each(|(path, _)| *paths.entry(path).or_default() += 1);
    let name = |&(path, identity): &(&str, &str)| {
        let shared = paths[path] > 1;
        let others = || Device::identity_at(Path::new(path)).is_some_and(|now| now != Device::itself(identity));
        if path.is_empty() || shared || others() { identity.into() } else { path.into() }
    };
    all.iter().map(name).collect()
}
