//! An array of device-mapper (the kernel's Documentation/admin-guide/device-mapper/dm-raid.rst): those of LVM are such, whose members are
//! its rimage volumes.

use super::layout::Level;
use crate::device::mapper;

const SECTOR: u64 = 512;
/// Levels by their names, and the numbers that md has for their layouts (drivers/md/dm-raid.c). Of a parity it is the same wherever it is.
const LEVELS: [(&str, Level, u64); 16] = [
    ("raid1", Level::Mirror, 0),
    ("raid4", Level::Parity, 0),
    ("raid5", Level::Parity, 0),
    ("raid5_la", Level::Parity, 0),
    ("raid5_ra", Level::Parity, 0),
    ("raid5_ls", Level::Parity, 0),
    ("raid5_rs", Level::Parity, 0),
    ("raid5_0", Level::Parity, 0),
    ("raid5_n", Level::Parity, 0),
    ("raid6", Level::TwoParities, 8),
    ("raid6_zr", Level::TwoParities, 8),
    ("raid6_nr", Level::TwoParities, 9),
    ("raid6_nc", Level::TwoParities, 10),
    ("raid6_n_6", Level::TwoParities, 5),
    ("raid10", Level::Copies, 0x102),
    ("raid10_near", Level::Copies, 0x102),
];

/// An array, by the numbers of its device.
#[derive(Debug)]
pub struct Mapped((u32, u32));

/// What it is made of.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub level: Level,
    /// md's number for its layout.
    pub layout: u64,
    /// Bytes.
    pub chunk: u64,
    /// How much of each member is used, in bytes.
    pub size: u64,
    /// Major and minor numbers of the members that hold data, in order.
    pub members: Vec<(u32, u32)>,
}

impl Mapped {
    /// The array that a device-mapper device is, if device-mapper tells and it is one.
    pub fn of(device: (u32, u32)) -> Option<Self> {
        let targets = mapper::table(device).ok()?;
        matches!(&targets[..], [only] if only.kind == "raid" && !only.words.starts_with("raid0"))
            .then_some(Self(device))
    }

    /// What it is made of now.
    ///
    /// # Errors
    /// Why that is not known, or cannot be compared.
    pub fn table(&self) -> Result<Table, String> {
        let [target] = &mapper::table(self.0).map_err(|error| error.to_string())?[..] else {
            return Err("it is not one array any more".into());
        };
        parse(&target.words, target.sectors.1)
    }

    /// Nothing is missing, or being made the same.
    pub fn is_usual(&self) -> Result<(), String> {
        let [target] = &mapper::status(self.0).map_err(|error| error.to_string())?[..] else {
            return Err("it is not one array any more".into());
        };
        stands(&target.words)
    }
}

/// By how it stands.
fn stands(words: &str) -> Result<(), String> {
    let words: Vec<_> = words.split_ascii_whitespace().collect();
    let [_, _, members, share, rest @ ..] = &words[..] else {
        return Err(format!("how it stands is not understood: {}", words.join(" ")));
    };
    let in_sync = share.split_once('/').is_some_and(|(done, all)| done == all);
    if members.contains('D') {
        return Err("it lacks members, so that there is nothing to compare".into());
    }
    let action = rest.first().copied().unwrap_or("idle");
    if ["resync", "recover", "reshape", "repair"].contains(&action) || !in_sync || members.contains('a') {
        return Err(format!("its members have not been made the same yet ({action}, {share})"));
    }
    Ok(())
}

/// By what it was made with; so many sectors are told to its users.
fn parse(words: &str, sectors: u64) -> Result<Table, String> {
    let unknown = || format!("its table is not understood: {words}");
    let all: Vec<_> = words.split_ascii_whitespace().collect();
    let number = |at: usize| all.get(at).and_then(|word| word.parse::<u64>().ok());
    let name = all.first().copied().unwrap_or_default();
    let (_, level, mut layout) =
        *LEVELS.iter().find(|known| known.0 == name).ok_or_else(|| format!("its layout {name} is not known here"))?;
    let count = number(1).and_then(|count| usize::try_from(count).ok()).filter(|count| *count < all.len());
    let count = count.ok_or_else(unknown)?;
    let options = all.get(3..2 + count).unwrap_or_default();
    let value = |of: &str| options.iter().position(|word| *word == of).and_then(|at| options.get(at + 1));
    if options.contains(&"nosync") {
        return Err("its members were never made the same (nosync)".into());
    }
    let lags = ["journal_dev", "max_write_behind", "delta_disks"].into_iter().find(|word| options.contains(word));
    if let Some(word) = lags {
        return Err(format!("its members may lag behind each other, or move ({word})"));
    }
    if value("data_offset").is_some_and(|offset| *offset != "0") {
        return Err("its data are being moved (data_offset)".into());
    }
    let disks = number(2 + count).ok_or_else(unknown)?;
    let copies = value("raid10_copies").map_or(Some(2), |copies| copies.parse().ok()).ok_or_else(unknown)?;
    if level == Level::Copies {
        if value("raid10_format").is_some_and(|format| *format != "near") {
            return Err("of its layout only 'near' is known here".into());
        }
        layout = 0x100 | copies;
    }
    let data = match level {
        Level::Mirror => 1,
        Level::Parity => disks.saturating_sub(1),
        Level::TwoParities => disks.saturating_sub(2),
        Level::Copies => disks,
    };
    let size = match level {
        Level::Copies => sectors.checked_mul(copies).and_then(|sectors| sectors.checked_div(data)),
        _ => sectors.checked_div(data),
    };
    let pairs = all.get(3 + count..).unwrap_or_default();
    let place = |word: &&str| {
        let (major, minor) = word.split_once(':').ok_or("it lacks members, so that there is nothing to compare")?;
        Ok((major.parse().map_err(|_| unknown())?, minor.parse().map_err(|_| unknown())?))
    };
    let members: Vec<_> = pairs.iter().skip(1).step_by(2).map(place).collect::<Result<_, String>>()?;
    if members.len() as u64 != disks {
        return Err(unknown());
    }
    let bytes = |sectors: Option<u64>| sectors.and_then(|sectors| sectors.checked_mul(SECTOR)).ok_or_else(unknown);
    Ok(Table { level, layout, chunk: bytes(number(2))?, size: bytes(size)?, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_the_kernel_documents_them() {
        let of = |words: &str| parse(words, 12_288);
        let mirror = of("raid1 3 0 region_size 1024 2 253:0 253:1 253:2 253:3").unwrap();
        let expected = Table {
            level: Level::Mirror,
            layout: 0,
            chunk: 0,
            size: 12_288 * SECTOR,
            members: vec![(253, 1), (253, 3)],
        };
        assert_eq!(mirror, expected);
        let five = of("raid5_ls 3 128 region_size 1024 4 - 8:17 - 8:33 - 8:49 - 8:65").unwrap();
        assert_eq!((five.level, five.chunk, five.size), (Level::Parity, 65_536, 12_288 / 3 * SECTOR));
        let six = of("raid6_zr 1 128 5 - 7:0 - 7:1 - 7:2 - 7:3 - 7:4").unwrap();
        assert_eq!((six.layout, six.size, six.members.len()), (8, 12_288 / 3 * SECTOR, 5));
        let ten = of("raid10 5 128 raid10_copies 2 raid10_format near 3 - 7:0 - 7:1 - 7:2").unwrap();
        assert_eq!((ten.layout, ten.size), (0x102, 12_288 / 3 * 2 * SECTOR));
        for (words, why) in [
            ("raid1 2 0 nosync 2 - 7:0 - 7:1", "nosync"),
            ("raid1 1 0 2 - 7:0 - -", "lacks members"),
            ("raid10 5 128 raid10_copies 2 raid10_format far 3 - 7:0 - 7:1 - 7:2", "near"),
            ("raid6_ls_6 1 128 5 - 7:0 - 7:1 - 7:2 - 7:3 - 7:4", "not known"),
            ("raid1 1 0 3 - 7:0 - 7:1", "not understood"),
            ("raid1 99999 0 3 - 7:0 - 7:1", "not understood"),
            ("", "not known"),
        ] {
            assert!(of(words).unwrap_err().contains(why), "{words}: {:?}", of(words));
        }
    }

    #[test]
    fn an_array_that_is_not_whole_is_not_compared() {
        assert_eq!(stands("raid1 2 AA 24576/24576 idle 0 0 -"), Ok(()));
        assert_eq!(stands("raid1 2 AA 24576/24576 check 8 0 -"), Ok(()));
        for (words, why) in [
            ("raid1 2 AD 24576/24576 idle 0 0 -", "lacks"),
            ("raid1 2 Aa 1024/24576 recover 0 0 -", "recover"),
            ("raid1 2 AA 1024/24576 idle 0 0 -", "1024/24576"),
            ("raid1 2", "not understood"),
        ] {
            assert!(stands(words).unwrap_err().contains(why), "{words}");
        }
    }
}
