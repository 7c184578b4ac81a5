//! The two parities of RAID 6 (H. Peter Anvin, "The mathematics of RAID-6"): the sum of the data, and the sum in which each is multiplied
//! by a power of two in the field of 256 elements.

use std::sync::LazyLock;

/// The field's polynomial, x^8 + x^4 + x^3 + x^2 + 1.
const POLYNOMIAL: u16 = 0x11d;

/// Logarithms to the base of two, and powers of two.
struct Tables {
    log: [u8; 256],
    power: [u8; 255],
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables { log: [0; 256], power: [0; 255] };
    let mut value: u16 = 1;
    for exponent in 0..255 {
        (tables.power[exponent], tables.log[value as usize]) = (value as u8, exponent as u8);
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
    }
    tables
});

/// Who is wrong in a stripe of RAID 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The first parity.
    P,
    /// The second parity.
    Q,
    /// This one of the data.
    Data(usize),
    /// More than one.
    Several,
}

/// Adds bytes to a sum.
pub fn add(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}

/// Eight bytes twice, each in the field.
fn twice(word: u64) -> u64 {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const REST: u64 = 0x1d1d_1d1d_1d1d_1d1d;
    let carry = word & HIGH;
    // Of each byte whose highest bit was set, all bits.
    let mask = (carry << 1).wrapping_sub(carry >> 7);
    (word << 1) & !0x0101_0101_0101_0101 ^ mask & REST
}

/// Both parities of some data, added to what they are said to be: zeros where all fits.
pub fn syndromes(data: &[&[u8]], p: &[u8], q: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut sum, mut weighed) = (p.to_vec(), vec![0; q.len()]);
    // From the last one on, so that each is multiplied as often as there are data before it.
    for bytes in data.iter().rev() {
        add(&mut sum, bytes);
        for (word, bytes) in weighed.chunks_mut(8).zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..word.len()].copy_from_slice(word);
            let doubled = twice(u64::from_ne_bytes(eight)).to_ne_bytes();
            word.iter_mut().zip(doubled).zip(bytes).for_each(|((word, doubled), byte)| *word = doubled ^ byte);
        }
    }
    add(&mut weighed, q);
    (sum, weighed)
}

/// Who is wrong by these sums; `None` where nobody is.
pub fn wrong(sum: &[u8], weighed: &[u8], data: usize) -> Option<Wrong> {
    let tables = &*TABLES;
    let of = |(&sum, &weighed): (&u8, &u8)| match (sum, weighed) {
        (0, 0) => None,
        (_, 0) => Some(Wrong::P),
        (0, _) => Some(Wrong::Q),
        (sum, weighed) => {
            let (by, of) = (tables.log[weighed as usize], tables.log[sum as usize]);
            let which = (usize::from(by) + 255 - usize::from(of)) % 255;
            Some(if which < data { Wrong::Data(which) } else { Wrong::Several })
        }
    };
    let mut all = sum.iter().zip(weighed).filter_map(of);
    let first = all.next()?;
    Some(if all.all(|other| other == first) { first } else { Wrong::Several })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A product in the field, bit by bit.
    fn product(mut a: u8, mut b: u8) -> u8 {
        let mut sum = 0;
        while b != 0 {
            if b & 1 != 0 {
                sum ^= a;
            }
            let carry = a & 0x80 != 0;
            a <<= 1;
            if carry {
                a ^= POLYNOMIAL as u8;
            }
            b >>= 1;
        }
        sum
    }

    proptest! {
        /// The parities by their definition fit; whatever one member has wrong is told from what the others might.
        #[test]
        fn whoever_is_wrong_is_known(
            data in prop::collection::vec(prop::collection::vec(any::<u8>(), 27), 2..20), at in 0usize..27, by in 1u8.., which in any::<prop::sample::Index>(),
        ) {
            let p: Vec<u8> = (0..27).map(|byte| data.iter().fold(0, |sum, one| sum ^ one[byte])).collect();
            let q: Vec<u8> = (0..27).map(|byte| {
                data.iter().rev().fold(0, |sum, one| product(sum, 2) ^ one[byte])
            }).collect();
            let who = |data: &[Vec<u8>], p: &[u8], q: &[u8]| {
                let all: Vec<&[u8]> = data.iter().map(|one| &one[..]).collect();
                let (sum, weighed) = syndromes(&all, p, q);
                wrong(&sum, &weighed, data.len())
            };
            prop_assert_eq!(who(&data, &p, &q), None);
            let mut changed = (data.clone(), p.clone(), q.clone());
            let which = which.index(data.len());
            changed.0[which][at] ^= by;
            prop_assert_eq!(who(&changed.0, &p, &q), Some(Wrong::Data(which)));
            changed.1[at] ^= by;
            changed.2[at] ^= by;
            prop_assert_eq!([who(&data, &changed.1, &q), who(&data, &p, &changed.2)], [Some(Wrong::P), Some(Wrong::Q)]);
        }
    }
}
