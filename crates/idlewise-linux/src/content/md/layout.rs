//! How the data of an array lie on its members (the kernel's drivers/md, `__raid10_find_phys` and `raid5_compute_sector`). Places are
//! counted from where the data of a member begin.

/// Levels with redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Each member holds all.
    Mirror,
    /// One member of each stripe is the sum of the others: RAID 4 and 5.
    Parity,
    /// Two members of each stripe tell of the others: RAID 6.
    TwoParities,
    /// Each chunk is on some of the members.
    Copies,
}

impl Level {
    /// By its name in sysfs.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "raid1" => Self::Mirror,
            "raid4" | "raid5" => Self::Parity,
            "raid6" => Self::TwoParities,
            "raid10" => Self::Copies,
            _ => return None,
        })
    }
}

/// How the data lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub level: Level,
    pub disks: u64,
    /// Bytes that lie in one piece on a member; of a mirror, all.
    pub chunk: u64,
    /// Of RAID 6: where the parities are.
    rotation: u64,
    /// Of RAID 10: copies beside each other and copies further on, how far that is, and whether they lie in the next row.
    near: u64,
    pub far: u64,
    stride: u64,
    in_next_row: bool,
    /// How many chunks the array has: places on its members that are left over hold nothing (`raid10_size`).
    pub chunks: u64,
}

/// A place on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub member: u64,
    pub at: u64,
}

impl Layout {
    /// Of nothing.
    pub const NONE: Self = Self {
        level: Level::Mirror,
        disks: 0,
        chunk: 0,
        rotation: 0,
        near: 1,
        far: 1,
        stride: 0,
        in_next_row: false,
        chunks: 0,
    };

    /// By the numbers that the kernel tells; `size` is what is used of a member.
    ///
    /// # Errors
    /// Why it is not known here, or cannot be.
    pub fn new(level: Level, number: u64, disks: usize, chunk: u64, size: u64) -> Result<Self, String> {
        const MOST: usize = 64;
        let whole = Self { level, disks: disks as u64, chunk, ..Self::NONE };
        if !(2..=MOST).contains(&disks) {
            return Err(format!("{disks} members cannot be compared"));
        }
        let unknown = || Err(format!("its layout {number:#x} is not known here"));
        if level != Level::Mirror && (chunk < 4096 || !chunk.is_power_of_two()) {
            return Err(format!("chunks of {chunk} bytes are not possible"));
        }
        match level {
            Level::Mirror | Level::Parity => Ok(whole),
            // Left and right, asymmetric and symmetric; both parities first or last.
            // And those of device-mapper, which SNIA's DDF has as well.
            Level::TwoParities if (number <= 5 || (8..=10).contains(&number)) && disks >= 4 => {
                Ok(Self { rotation: number, ..whole })
            }
            Level::Copies => {
                let (near, far, in_next_row) = (number & 0xff, number >> 8 & 0xff, number >> 16 & 1 == 1);
                let odd = in_next_row && !whole.disks.is_multiple_of(near.max(1));
                if odd || number >> 17 != 0 || near == 0 || far == 0 || near * far > whole.disks {
                    return unknown();
                }
                let stride = if in_next_row { chunk } else { size / chunk / far * chunk };
                let chunks = size / chunk / far * whole.disks / near;
                Ok(Self { near, far, in_next_row, stride, chunks, ..whole })
            }
            Level::TwoParities => unknown(),
        }
    }

    /// How much of a member is to be visited, so that all of it is read: with each place the copies are that lie further on.
    pub fn surface(&self, size: u64) -> u64 {
        if self.sections() > 1 { self.stride } else { size }
    }

    /// How many places on each member are read together.
    pub fn sections(&self) -> u64 {
        if self.in_next_row { 1 } else { self.far }
    }

    /// How far apart they are.
    pub fn section(&self) -> u64 {
        self.stride
    }

    /// What is judged as one begins at multiples of this.
    pub fn unit(&self) -> u64 {
        match self.level {
            // Copies of a chunk may lie in rows that follow each other.
            Level::Copies if self.in_next_row => self.chunk * self.far,
            // So many rows are the same again.
            Level::Copies if self.near > 1 => self.chunk * (self.near / common_divisor(self.near, self.disks)),
            _ => 512,
        }
    }

    /// RAID 10: the first chunk of which the first copy lies in this row of chunks or behind it.
    pub fn first_chunk(&self, row: u64) -> u64 {
        let stripe = if self.in_next_row { row.div_ceil(self.far) } else { row };
        (stripe * self.disks).div_ceil(self.near)
    }

    /// RAID 10: where the copies of a chunk are, the first one first.
    pub fn copies(&self, chunk: u64) -> Vec<Place> {
        let first = chunk * self.near;
        let (mut row, mut member) = (first / self.disks, first % self.disks);
        if self.in_next_row {
            row *= self.far;
        }
        let mut places = Vec::new();
        for _ in 0..self.near {
            for copy in 0..self.far {
                let member = (member + copy * self.near) % self.disks;
                places.push(Place { member, at: row * self.chunk + copy * self.stride });
            }
            member += 1;
            if member == self.disks {
                (member, row) = (0, row + 1);
            }
        }
        places
    }

    /// RAID 6: the members with the two parities of a row of chunks, and those with its data in the order in which the second parity weighs
    /// them; none where it takes zeros.
    pub fn parities(&self, row: u64) -> (u64, u64, Vec<Option<u64>>) {
        let disks = self.disks;
        let turn = row % disks;
        let (p, q) = match self.rotation {
            8 => (turn, (turn + 1) % disks),
            9 => (disks - 1 - (row + 1) % disks, (disks - (row + 1) % disks) % disks),
            10 => (disks - 1 - turn, (2 * disks - 2 - turn) % disks),
            0 | 2 => (disks - 1 - turn, (disks - turn) % disks),
            1 | 3 => (turn, (turn + 1) % disks),
            4 => (0, 1),
            _ => (disks - 2, disks - 1),
        };
        // Their order begins behind the second parity (`raid6_d0`).
        let all = |begin: u64| (begin..begin + disks).map(|at| at % disks);
        let data = |member: u64| Some(member).filter(|member| ![p, q].contains(member));
        // Those of DDF count each member by its number, the parities' too.
        let order = match self.rotation {
            8.. => all(0).map(data).collect(),
            _ => all(q + 1).map(data).filter(Option::is_some).collect(),
        };
        (p, q, order)
    }
}

/// The greatest one (Euclid).
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const CHUNK: u64 = 4096;

    fn raid10(number: u64, disks: usize, rows: u64) -> Layout {
        Layout::new(Level::Copies, number, disks, CHUNK, rows * CHUNK).unwrap()
    }

    /// By rows of members, as md(4) draws them.
    #[test]
    fn copies_lie_where_the_manual_draws_them() {
        let rows = |layout: Layout, count: u64| {
            let mut drawn = vec![vec![u64::MAX; layout.disks as usize]; count as usize];
            let surface = layout.surface(count * CHUNK);
            for chunk in (0..).take_while(|chunk| layout.copies(*chunk)[0].at < surface) {
                for place in layout.copies(chunk) {
                    if let Some(row) = drawn.get_mut((place.at / CHUNK) as usize) {
                        row[place.member as usize] = chunk;
                    }
                }
            }
            drawn
        };
        assert_eq!(rows(raid10(0x102, 3, 4), 4), [[0, 0, 1], [1, 2, 2], [3, 3, 4], [4, 5, 5]]);
        assert_eq!(rows(raid10(0x102, 4, 2), 2), [[0, 0, 1, 1], [2, 2, 3, 3]]);
        assert_eq!(rows(raid10(0x201, 3, 4), 4), [[0, 1, 2], [3, 4, 5], [2, 0, 1], [5, 3, 4]]);
        assert_eq!(rows(raid10(0x10201, 3, 4), 4), [[0, 1, 2], [2, 0, 1], [3, 4, 5], [5, 3, 4]]);
    }

    /// As `raid10_size` counts them: what is left over of the last row is no chunk.
    #[test]
    fn no_chunk_lies_behind_the_last() {
        let chunks = [(0x103, 5, 32), (0x102, 3, 33), (0x201, 3, 33), (0x10201, 3, 33), (0x202, 5, 31)];
        let chunks = chunks.map(|(number, disks, rows)| raid10(number, disks, rows).chunks);
        assert_eq!(chunks, [53, 49, 48, 48, 37]);
    }

    #[test]
    fn each_place_is_a_copy_of_one_chunk() {
        for (number, disks) in [(0x102, 5), (0x103, 4), (0x201, 4), (0x301, 5), (0x10201, 4), (0x10301, 7), (0x202, 6)]
        {
            let layout = raid10(number, disks, 24);
            let (mut seen, mut chunk) = (HashMap::new(), 0);
            let surface = layout.surface(24 * CHUNK);
            while layout.copies(chunk)[0].at < surface {
                for place in layout.copies(chunk) {
                    assert!(place.at < 24 * CHUNK || layout.unit() > 512, "{number:#x} {place:?}");
                    assert_eq!(seen.insert(place, chunk), None, "{number:#x} {place:?}");
                }
                chunk += 1;
            }
            let all = (0..surface / CHUNK).flat_map(|row| {
                (0..layout.sections()).flat_map(move |section| {
                    (0..layout.disks).map(move |member| Place { member, at: row * CHUNK + section * layout.section() })
                })
            });
            let missing: Vec<_> = all.filter(|place| !seen.contains_key(place)).collect();
            assert!(missing.is_empty(), "{number:#x} {missing:?}");
            for row in 0..12 {
                let first = layout.first_chunk(row);
                assert!(layout.copies(first)[0].at >= row * CHUNK, "{number:#x} {row}");
                assert!(first == 0 || layout.copies(first - 1)[0].at < row * CHUNK, "{number:#x} {row}");
            }
        }
    }

    /// As md(4) and SNIA's DDF draw the rotations: the first rows of four members.
    #[test]
    fn parities_rotate_as_the_kernel_has_them() {
        let ordered = |number: u64, row| Layout::new(Level::TwoParities, number, 4, CHUNK, 0).unwrap().parities(row);
        let of = |number: u64, row| {
            let (p, q, order) = ordered(number, row);
            (p, q, order.into_iter().flatten().collect::<Vec<_>>())
        };
        assert_eq!(
            [0, 1, 2, 3].map(|row| of(2, row)),
            [(3, 0, vec![1, 2]), (2, 3, vec![0, 1]), (1, 2, vec![3, 0]), (0, 1, vec![2, 3]),]
        );
        assert_eq!([0, 2].map(|row| of(0, row)), [(3, 0, vec![1, 2]), (1, 2, vec![3, 0])]);
        assert_eq!([0, 3].map(|row| of(1, row)), [(0, 1, vec![2, 3]), (3, 0, vec![1, 2])]);
        assert_eq!([of(4, 9), of(5, 9)], [(0, 1, vec![2, 3]), (2, 3, vec![0, 1])]);
        assert_eq!(ordered(8, 1), (1, 2, vec![Some(0), None, None, Some(3)]));
        assert_eq!([0, 3].map(|row| of(8, row)), [(0, 1, vec![2, 3]), (3, 0, vec![1, 2])]);
        assert_eq!([0, 2, 3].map(|row| of(9, row)), [(2, 3, vec![0, 1]), (0, 1, vec![2, 3]), (3, 0, vec![1, 2])]);
        assert_eq!([0, 3].map(|row| of(10, row)), [(3, 2, vec![0, 1]), (0, 3, vec![1, 2])]);
        assert!(Layout::new(Level::TwoParities, 16, 4, CHUNK, 0).is_err());
        assert!(Layout::new(Level::Copies, 0x105, 4, CHUNK, 0).is_err());
    }
}
