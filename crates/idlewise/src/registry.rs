//! Tables of what there is, to which a program can add lines of its own.

use std::sync::RwLock;

/// What has a name by which people choose it.
pub trait Named {
    /// The name, such as `waiting`.
    fn name(&self) -> &'static str;
}

/// A table: the lines that a program added, in that order, then those that are built in. What comes first is tried first.
pub struct Registry<T: 'static> {
    built_in: &'static [T],
    added: RwLock<Vec<&'static T>>,
}

impl<T: Named> Registry<T> {
    /// A table of these lines.
    pub const fn new(built_in: &'static [T]) -> Self {
        Self { built_in, added: RwLock::new(Vec::new()) }
    }

    /// Adds a line, for as long as the program runs. Do so before anything is read from the table, at the beginning of `main`.
    ///
    /// # Panics
    /// If a line with its name is there.
    pub fn add(&self, line: T) {
        let name = line.name();
        assert!(self.get(name).is_none(), "'{name}' is in the table already");
        self.added.write().expect("nothing panics while it is locked").push(Box::leak(Box::new(line)));
    }

    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = &'static T> + use<T> {
        let added = self.added.read().expect("nothing panics while it is locked").clone();
        added.into_iter().chain(self.built_in)
    }

    /// The line with this name.
    pub fn get(&self, name: &str) -> Option<&'static T> {
        self.iter().find(|line| line.name() == name)
    }

    /// All names.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(Named::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Line(&'static str);

    impl Named for Line {
        fn name(&self) -> &'static str {
            self.0
        }
    }

    #[test]
    fn lines_are_added_before_those_that_are_built_in_and_only_once() {
        let table = Registry::new(const { &[Line("a"), Line("b")] });
        table.add(Line("c"));
        table.add(Line("d"));
        assert_eq!(table.names(), ["c", "d", "a", "b"]);
        assert!(table.get("b").is_some() && table.get("e").is_none());
        let twice = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.add(Line("b"))));
        assert!(twice.is_err() && table.names().len() == 4);
    }
}
