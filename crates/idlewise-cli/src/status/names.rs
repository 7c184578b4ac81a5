//! Which device is meant by a name, and how one is called: what the kernel calls `/dev/sda` may be another disk the next time.

use std::collections::HashMap;
use std::path::Path;

use idlewise::report::printable::one_line;
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

/// A name as it is shown in a table and before a line: what is longer than any path of use is cut.
pub fn short(name: &str) -> String {
    const LONGEST: usize = 255;
    let name = one_line(name);
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.into_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_takes_the_room_of_one() {
        assert_eq!(short("/dev/sda"), "/dev/sda");
        // Each letter is told by eight.
        for name in ["x".repeat(300), "\u{202e}".repeat(200_000)] {
            assert_eq!(short(&name).chars().count(), 258, "{}", short(&name));
        }
    }
}
