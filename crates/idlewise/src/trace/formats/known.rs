//! The volumes that fields of a line name, found by the text of these fields alone: most lines are of a volume that was seen before.

/// Volumes are looked for in so many places, so that nobody can have them all lie in one row.
const PLACES: usize = 8;
const SMALLEST: usize = 64;
/// There are never more places: a volume may be spelt in as many ways as there are rows.
const MOST: usize = 1 << 14;
/// Longer texts are not kept.
const LONGEST: usize = 16;

/// The numbers of volumes by a text that names them.
#[derive(Default)]
pub struct Known {
    /// As many as a power of two, at most a quarter of them in use, or half of the most.
    places: Vec<Place>,
    used: usize,
}

#[derive(Clone, Copy, Default)]
struct Place {
    key: u128,
    /// Of the text; none where the place is free.
    length: u8,
    volume: u16,
}

impl Known {
    /// The volume that this text was learned to name.
    #[inline(always)]
    pub fn get(&self, text: &[u8]) -> Option<u16> {
        let key = key(text)?;
        let found = self.row(key).find(|place| place.key == key && usize::from(place.length) == text.len())?;
        Some(found.volume)
    }

    /// Learns that a text names this volume, if there is a place for it.
    pub fn learn(&mut self, text: &[u8], volume: u16) {
        let Some(key) = key(text) else { return };
        if self.places.len() == MOST && 2 * self.used >= MOST {
            return;
        }
        if 4 * self.used >= self.places.len() && self.places.len() < MOST {
            let places = vec![Place::default(); (2 * self.places.len()).max(SMALLEST)];
            let before = std::mem::replace(&mut self.places, places);
            self.used = 0;
            before.into_iter().filter(|place| place.length > 0).for_each(|place| self.put(place));
        }
        self.put(Place { key, length: text.len() as u8, volume });
    }

    fn put(&mut self, place: Place) {
        let (first, last) = (self.first(place.key), self.places.len() - 1);
        let free = (first..first + PLACES).map(|at| at & last).find(|&at| self.places[at].length == 0);
        if let Some(free) = free {
            self.places[free] = place;
            self.used += 1;
        }
    }

    /// The places in which a key may be.
    #[inline(always)]
    fn row(&self, key: u128) -> impl Iterator<Item = &Place> {
        let (first, last) = (self.first(key), self.places.len().wrapping_sub(1));
        let count = if self.places.is_empty() { 0 } else { PLACES };
        (first..first + count).map(move |at| &self.places[at & last]).take_while(|place| place.length > 0)
    }

    /// Where to look first: both halves of a product, each of which depends on all of the key.
    #[inline(always)]
    fn first(&self, key: u128) -> usize {
        let [low, high] = [key as u64 ^ 0x9e37_79b9_7f4a_7c15, (key >> 64) as u64 ^ 0xd1b5_4a32_d192_ed03];
        let product = u128::from(low) * u128::from(high);
        (product ^ product >> 64) as usize & self.places.len().wrapping_sub(1)
    }
}

/// The text as a number that no other text of its length has.
#[inline(always)]
fn key(text: &[u8]) -> Option<u128> {
    let wide = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
    if let Some((first, last)) = text.first_chunk::<8>().zip(text.last_chunk::<8>()) {
        return (text.len() <= LONGEST).then(|| wide(u64::from_le_bytes(*first), u64::from_le_bytes(*last)));
    }
    if let Some((first, last)) = text.first_chunk::<4>().zip(text.last_chunk::<4>()) {
        return Some(wide(u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()));
    }
    let (first, last) = (*text.first()?, *text.last()?);
    Some(wide(u64::from_le_bytes([first, text[text.len() / 2], last, 0, 0, 0, 0, 0]), 0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_found_is_what_was_learned(texts in prop::collection::vec("[ab0]{0,18}", 0..400)) {
            let (mut known, mut naive) = (Known::default(), HashMap::new());
            for (text, volume) in texts.iter().zip(0..) {
                match known.get(text.as_bytes()) {
                    Some(found) => prop_assert_eq!(Some(&found), naive.get(text)),
                    None => {
                        known.learn(text.as_bytes(), volume);
                        naive.insert(text.clone(), volume);
                    }
                }
            }
        }
    }

    #[test]
    fn most_are_kept() {
        let mut known = Known::default();
        let text = |number: u16| format!("volume{number}");
        (0..4_000).for_each(|number| known.learn(text(number).as_bytes(), number));
        let kept = (0..4_000).filter(|&number| known.get(text(number).as_bytes()) == Some(number)).count();
        assert!(kept > 3_960, "{kept}");
        assert_eq!((known.get(b""), known.get(b"volume10000"), known.get(&[b'v'; 17])), (None, None, None));
        // However many there are, they take no more memory.
        (4_000..60_000).for_each(|number| known.learn(text(number).as_bytes(), number));
        assert!(known.places.len() == MOST && known.used <= MOST / 2, "{}", known.used);
        assert_eq!((known.get(b"volume0"), known.get(b"volume59999")), (Some(0), None));
    }
}
