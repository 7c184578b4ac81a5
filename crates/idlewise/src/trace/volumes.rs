//! The names of volumes, each with a number that it keeps.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes of a name; a longer one is none.
pub const LONGEST_NAME: usize = 255;

/// Whether a volume's name fits a pattern, in which `*` stands for anything and `?` for one character.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where the last star was, and how much of the name it stands for.
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[of] => (at, of) = (at + 1, of + 1),
            _ => match &mut star {
                Some((begin, end)) => {
                    *end += 1;
                    (at, of) = (*begin + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&left| left == '*')
}

/// Names in the order in which people count: `v_9` before `v_10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (x, y) = (digits(left), digits(right));
        let order = if x > 0 && y > 0 {
            let number = |text: &'_ str| text.trim_start_matches('0').len();
            let ((m, behind_m), (n, behind_n)) = (left.split_at(x), right.split_at(y));
            (left, right) = (behind_m, behind_n);
            let significant = (m.trim_start_matches('0'), n.trim_start_matches('0'));
            number(m).cmp(&number(n)).then_with(|| significant.0.cmp(significant.1))
        } else {
            let (mut c, mut d) = (left.chars(), right.chars());
            let order = match (c.next(), d.next()) {
                // Names that differ only in zeros still differ.
                (None, None) => return a.cmp(b),
                (one, other) => one.cmp(&other),
            };
            (left, right) = (c.as_str(), d.as_str());
            order
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The names of volumes in the order of their numbers. Copies share them: a trace may have 65,536, and each batch of its requests
/// refers to them.
#[derive(Default)]
pub struct Volumes {
    names: Arc<Vec<Arc<str>>>,
    /// Where each name is, as far as that was asked for: copies leave it behind.
    index: HashMap<Arc<str>, u16>,
}

impl Volumes {
    /// The number of this name, new or known; `None` beyond 65,536 names and 255 bytes.
    #[inline]
    pub fn id(&mut self, name: &str) -> Option<u16> {
        if self.index.len() < self.names.len() {
            let begin = self.index.len();
            self.index.extend((begin..self.names.len()).map(|at| (self.names[at].clone(), at as u16)));
        }
        if let Some(&known) = self.index.get(name) {
            return Some(known);
        }
        let new = u16::try_from(self.names.len()).ok().filter(|_| name.len() <= LONGEST_NAME)?;
        let name: Arc<str> = name.into();
        Arc::make_mut(&mut self.names).push(name.clone());
        self.index.insert(name, new);
        Some(new)
    }

    /// Takes in the names of `other`. Their numbers here, or none if those are as they were; `None` beyond 65,536 names.
    pub fn take_in(&mut self, other: &Self) -> Option<Vec<u16>> {
        // As a rule one of the two is a copy of the other, which went on.
        let same =
            Arc::ptr_eq(&self.names, &other.names) || self.iter().zip(other.iter()).all(|(own, other)| own == other);
        if !same {
            return other.iter().map(|name| self.id(name)).collect();
        }
        if other.len() > self.len() {
            self.names = other.names.clone();
        }
        Some(Vec::new())
    }

    /// The same with other names, which differ from each other as before; `None` beyond 255 bytes.
    pub fn renamed(&self, name: impl Fn(&str) -> String) -> Option<Self> {
        let names = self.names.iter().map(|volume| Arc::from(name(volume))).collect::<Vec<Arc<str>>>();
        let fit = names.iter().all(|name| name.len() <= LONGEST_NAME);
        fit.then(|| Self { names: Arc::new(names), index: HashMap::new() })
    }
}

impl Clone for Volumes {
    fn clone(&self) -> Self {
        Self { names: self.names.clone(), index: HashMap::new() }
    }
}

impl Deref for Volumes {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        &self.names
    }
}

impl std::fmt::Debug for Volumes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.names.fmt(f)
    }
}

impl<const N: usize> PartialEq<[&str; N]> for Volumes {
    fn eq(&self, names: &[&str; N]) -> bool {
        self.iter().map(|name| &**name).eq(names.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, name) in [("hm_0", "hm_0"), ("hm_*", "hm_12"), ("*_?", "usr_1"), ("*a*b*", "xxaybab"), ("*", "")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("hm_", "hm_0"), ("hm_?", "hm_12"), ("*a", "ab"), ("", "a"), ("?", "")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn names_are_sorted_as_people_count() {
        let mut names = ["v_10", "v_9", "w", "v_09", "v_", "v_9a", "v_100000000000000000000000", "", "v_2"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["", "v_", "v_2", "v_09", "v_9", "v_9a", "v_10", "v_100000000000000000000000", "w"]);
    }

    fn volumes(names: &[&str]) -> Volumes {
        let mut volumes = Volumes::default();
        names.iter().for_each(|name| assert!(volumes.id(name).is_some()));
        volumes
    }

    #[test]
    fn a_name_keeps_its_number_in_copies_and_where_they_meet_again() {
        let mut known = volumes(&["a", "b"]);
        let mut copy = known.clone();
        assert_eq!((copy.id("c"), copy.id("b")), (Some(2), Some(1)));
        assert_eq!(known, ["a", "b"]);
        assert_eq!((known.take_in(&copy), known.id("c")), (Some(Vec::new()), Some(2)));
        assert_eq!(known.take_in(&volumes(&["a"])), Some(Vec::new()));
        assert_eq!(known.take_in(&volumes(&["d", "c", "a"])), Some(vec![3, 2, 0]));
        assert_eq!(known, ["a", "b", "c", "d"]);
    }

    #[test]
    fn copies_share_their_names() {
        let known = volumes(&["a", "b"]);
        assert!(Arc::ptr_eq(&known.names, &known.clone().names));
    }

    #[test]
    fn names_are_short_and_numbers_are_of_16_bits() {
        let mut volumes = Volumes::default();
        assert_eq!(volumes.id(&"n".repeat(256)), None);
        assert_eq!(volumes.id(&"n".repeat(255)), Some(0));
        assert!((1..=u16::MAX).all(|number| volumes.id(&number.to_string()) == Some(number)));
        assert_eq!((volumes.id("one more"), volumes.id("7")), (None, Some(7)));
        assert!(volumes.renamed(|name| format!("f:{name}")).is_none());
        assert_eq!(volumes.renamed(|name| name.chars().take(9).collect()).unwrap().len(), 65_536);
    }
}
