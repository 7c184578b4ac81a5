//! Names of volumes as a text can hold them.

use std::collections::{HashMap, HashSet};

use crate::trace::Volumes;
use crate::trace::volumes::LONGEST_NAME;

/// What a name that is too long is cut to, so that a number fits behind it.
const CUT: usize = LONGEST_NAME - 16;

/// The names of volumes as they are written: spelt so that they can be read again, and different where the volumes are.
#[derive(Default)]
pub struct WrittenNames {
    /// Of each volume so far.
    names: Vec<String>,
    taken: HashSet<String>,
    /// The last number put behind a name that was taken.
    numbers: HashMap<String, u32>,
}

impl WrittenNames {
    /// Spells the volumes that are new, and gives their names.
    pub fn add(&mut self, volumes: &Volumes, spell: impl Fn(&str) -> String) -> &[String] {
        let known = self.names.len();
        for volume in volumes.iter().skip(known) {
            let mut name = spell(volume);
            if name.len() > LONGEST_NAME || self.taken.contains(&name) {
                let cut = (0..=volume.len().min(CUT)).rev().find(|&at| volume.is_char_boundary(at)).unwrap_or(0);
                name = self.numbered(&volume[..cut], &spell);
            }
            self.taken.insert(name.clone());
            self.names.push(name);
        }
        &self.names[known..]
    }

    fn numbered(&mut self, volume: &str, spell: impl Fn(&str) -> String) -> String {
        let number = self.numbers.entry(spell(volume)).or_insert(1);
        loop {
            *number += 1;
            let name = spell(&format!("{volume}-{number}"));
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }

    /// The name of a volume.
    pub fn of(&self, volume: u16) -> &str {
        &self.names[usize::from(volume)]
    }
}
