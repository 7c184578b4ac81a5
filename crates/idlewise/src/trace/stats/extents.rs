//! Stretches of volumes that are touched as a whole, however often.

use std::ops::Range;

/// So many stretches wait at least before they are sorted in.
const WAITING: usize = 1 << 16;

/// Stretches of volumes, as they come: a volume, the first place, and the place behind the last.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    waiting: Vec<(u16, u64, u64)>,
    joined: Joined,
}

/// Stretches that do not touch each other, by volume and place.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined(Vec<(u16, u64, u64)>);

impl Extents {
    /// Adds a stretch, which is not empty.
    pub fn push(&mut self, volume: u16, places: Range<u64>) {
        self.waiting.push((volume, places.start, places.end));
        if self.waiting.len() >= WAITING.max(self.joined.0.len()) {
            self.joined.add(&mut self.waiting);
        }
    }

    /// Adds those of another.
    pub fn with(mut self, other: &Self) -> Self {
        self.waiting.extend(other.waiting.iter().chain(&other.joined.0));
        self
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.joined.0.len()
    }

    /// All of them.
    pub fn joined(mut self) -> Joined {
        self.joined.add(&mut self.waiting);
        self.joined
    }
}

impl Joined {
    fn add(&mut self, waiting: &mut Vec<(u16, u64, u64)>) {
        self.0.append(waiting);
        self.0.sort();
        self.0.dedup_by(|next, kept| {
            let touches = next.0 == kept.0 && next.1 <= kept.2;
            kept.2 = if touches { kept.2.max(next.2) } else { kept.2 };
            touches
        });
    }

    /// Whether one of them has this place.
    pub fn contain(&self, volume: u16, place: u64) -> bool {
        let behind = self.0.partition_point(|&(other, begin, _)| (other, begin) <= (volume, place));
        behind.checked_sub(1).map(|at| self.0[at]).is_some_and(|(other, _, end)| other == volume && place < end)
    }

    /// Volumes and places.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Range<u64>)> {
        self.0.iter().map(|&(volume, begin, end)| (volume, begin..end))
    }
}
