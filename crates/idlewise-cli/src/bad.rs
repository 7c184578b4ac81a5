//! Unreadable blocks, with what is needed to find them, and what to do about them.

use idlewise::report::printable::one_line;
use idlewise_linux::content;
use idlewise_linux::device::Member;
use idlewise_linux::scrub::{BadBlocks, ContentSoFar};
use serde::Serialize;

use crate::repair::MAX_BLOCKS;

/// A run of unreadable blocks, as in `--json`.
#[derive(Serialize)]
pub struct Bad {
    /// In logical blocks of the device.
    #[serde(flatten)]
    pub run: BadBlocks,
    /// First byte on the device.
    offset_bytes: u64,
    length_bytes: u64,
    /// Size of a logical block.
    block_bytes: u32,
    /// First logical block on the whole disk: that of the partition's beginning added.
    disk_lba: u64,
    /// It is a place of the members of an array.
    #[serde(skip)]
    of_members: bool,
    /// Files that lie there, or a word such as `metadata`; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Vec<String>>,
}

impl Bad {
    /// Of a device that begins at byte `start` of its disk, or of the members of an array; `so_far` says what lies where. Numbers from a file
    /// may be anything.
    pub fn list(
        errors: &[BadBlocks],
        block_bytes: u32,
        (start, of_members): (u64, bool),
        so_far: Option<&ContentSoFar>,
    ) -> Vec<Self> {
        let owned = so_far.map(|so_far| &so_far.owned[..]).unwrap_or_default();
        let holds = |run: &BadBlocks| {
            let found = owned.iter().find(|owned| (owned.lba, owned.blocks) == (run.lba, run.blocks))?;
            Some(found.names.clone())
        };
        let block = u64::from(block_bytes.max(1));
        let all = errors.iter().map(|run| Self {
            offset_bytes: run.lba.saturating_mul(block),
            length_bytes: run.blocks.saturating_mul(block),
            block_bytes,
            disk_lba: (start / block).saturating_add(run.lba),
            of_members,
            holds: holds(run),
            run: run.clone(),
        });
        all.collect()
    }

    /// How many blocks that is; of stretches in which they were not told one by one, at most.
    pub fn count(all: &[Self]) -> String {
        let count = all.iter().fold(0, |sum: u64, bad| sum.saturating_add(bad.run.blocks));
        let scattered = all.iter().any(|bad| bad.run.kind == BadBlocks::SCATTERED);
        if scattered { format!("at most {count}") } else { count.to_string() }
    }

    /// For people.
    pub fn line(&self) -> String {
        let BadBlocks { lba, blocks, kind } = &self.run;
        let last = |first: u64| first.saturating_add(blocks.saturating_sub(1));
        let range = |first: u64| if *blocks == 1 { first.to_string() } else { format!("{first} to {}", last(first)) };
        let plural = if *blocks == 1 { "" } else { "s" };
        let size = format!("{blocks} of {} bytes", self.block_bytes);
        let what = match &**kind {
            BadBlocks::DOUBTFUL => "unreadable on a disk of this name, maybe another one; not read again yet".into(),
            BadBlocks::RECOVERED => "unreadable at first, readable later".into(),
            BadBlocks::SCATTERED => "with too many unreadable blocks to tell them one by one".into(),
            content::CHECKSUM => "wrong: the data differ from their checksum".into(),
            content::TREE_BLOCK => "wrong: not the record of the file system that belongs there".into(),
            content::DIFFERS => "wrong: the members of the array differ".into(),
            kind => format!("unreadable ({})", one_line(kind)),
        };
        let holds = match self.holds.as_deref() {
            None => String::new(),
            Some([]) => "; nothing uses it now".into(),
            Some(all) if self.of_members && all.len() <= 4 => format!("; in {}", one_line(&all.join(", "))),
            Some([one]) => format!("; in {}", one_line(one)),
            Some([one, rest @ ..]) => format!("; in {} and {} more", one_line(one), rest.len()),
        };
        let place = if self.of_members {
            format!("byte {} of the data on each member", self.offset_bytes)
        } else {
            format!("byte {} of the device, LBA {} of the whole disk", self.offset_bytes, range(self.disk_lba))
        };
        format!("{what}: block{plural} {} ({size}), {place}{holds}", range(*lba))
    }
}

/// Whose bad blocks they are.
pub struct Of<'a> {
    /// The path of the device.
    pub device: &'a str,
    /// Of which array it is a member.
    pub member: Option<&'a Member>,
    /// The members of an array were read.
    pub by_members: bool,
    /// Whose data lie there, as far as that was asked.
    pub owners: &'a [String],
}

/// What to do about bad blocks: steps with semicolons between.
pub fn next_step(of: &Of, bad: &[Bad]) -> String {
    let blocks = bad.iter().fold(0, |sum: u64, bad| sum.saturating_add(bad.run.blocks));
    // Others may have chosen the names: what is told is copied to a shell.
    let device = &content::shell_word(of.device);
    let all = if blocks > MAX_BLOCKS { format!(" --max-blocks {blocks}") } else { String::new() };
    if of.by_members {
        return format!(
            "next: `idlewise repair {device} --md` shows how many of them the other members can put right, and with \
             `--allow-writes{all}` it does; compare the rest with a backup; \
             `smartctl -x` of each member shows what the disk itself knows"
        );
    }
    if !bad.is_empty() && bad.iter().all(|bad| bad.run.is_wrong()) {
        return format!(
            "next: `idlewise repair {device} --btrfs --allow-writes{all}` lets btrfs rewrite what it has a good copy of; \
             restore the other files from a backup; \
             `smartctl -x {device}` shows what the disk itself knows: replace one that tells wrong data for right"
        );
    }
    match of.member {
        Some(Member::Md(array)) => {
            format!("next: `idlewise repair {device} --md --allow-writes{all}` lets {array} rewrite them")
        }
        Some(Member::Zfs(pool)) => {
            let pool = content::shell_word(pool);
            format!("next: `zpool scrub {pool}` finds what lies there and repairs it, where the pool has it twice")
        }
        None => format!(
            "next: {}; `smartctl -x {device}` shows what the disk itself knows: replace one that loses more blocks",
            to_restore(of, &format!("`idlewise repair {device} --btrfs --allow-writes{all}`"), bad).join("; ")
        ),
    }
}

/// The steps by which what lies in bad blocks is written anew.
fn to_restore(of: &Of, repair: &str, bad: &[Bad]) -> Vec<String> {
    const BTRFS: &str = "btrfs";
    let names = || bad.iter().flat_map(|bad| bad.holds.iter().flatten());
    let of_btrfs = of.owners.iter().any(|owner| owner == BTRFS);
    let all_asked = !bad.is_empty() && bad.iter().all(|bad| bad.holds.is_some());
    if all_asked && names().next().is_none() {
        return vec!["nothing has to be restored: what is written there next rewrites the blocks".into()];
    }
    let mut steps: Vec<String> = Vec::new();
    if of_btrfs {
        steps.push(format!("{repair} lets btrfs rewrite what it has another copy of"));
    }
    if !all_asked || names().any(|name| content::is_unknown(name)) {
        let those = if names().next().is_none() { "them" } else { "the blocks for which none is named" };
        steps.push(format!("find out which files hold {those}"));
        if !of_btrfs {
            steps.push(
                "on ext4: `debugfs -R 'icheck N' PARTITION`, then ncheck, where N is the byte within the partition divided by the \
                 file system's block size"
                    .into(),
            );
            steps.push(
                "on any file system: `tar -c --one-file-system MOUNT | cat > /dev/null` names the files that it cannot read".into(),
            );
        }
        if of.owners.is_empty() {
            steps.push("on btrfs: `btrfs scrub start` repairs what it can".into());
        }
    }
    let others = if of_btrfs { "the other files" } else { "the files" };
    steps.push(format!("restore {others} from a copy, which rewrites the blocks, and scrub again"));
    if names().any(|name| name.contains("metadata")) {
        let check = match (of_btrfs, of.owners.is_empty()) {
            (true, _) => "btrfs check",
            (false, true) => "fsck, xfs_repair, btrfs check",
            (false, false) => "fsck, xfs_repair",
        };
        steps.push(format!("where it is metadata, check the file system while it is not mounted ({check})"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use idlewise_linux::scrub::Owned;

    use super::*;

    fn line(lba: u64, blocks: u64, block: u32, start: u64) -> String {
        Bad::list(&[BadBlocks { lba, blocks, kind: "medium".into() }], block, (start, false), None)[0].line()
    }

    #[test]
    fn places_are_of_the_device_and_of_the_disk() {
        let expected = "unreadable (medium): blocks 100 to 102 (3 of 512 bytes), byte 51200 of the device, LBA 2148 to 2150 of \
                        the whole disk";
        assert_eq!(line(100, 3, 512, 1 << 20), expected);
        let expected =
            "unreadable (medium): block 7 (1 of 4096 bytes), byte 28672 of the device, LBA 263 of the whole disk";
        assert_eq!(line(7, 1, 4096, 1 << 20), expected);
        assert!(line(u64::MAX, u64::MAX, 0, u64::MAX).contains("blocks 18446744073709551615 to 18446744073709551615"));
    }

    fn next(device: &str, member: Option<&Member>, by_members: bool) -> String {
        next_step(&Of { device, member, by_members, owners: &[] }, &[])
    }

    #[test]
    fn the_next_step_is_that_of_the_array() {
        let md = next("/dev/sdb1", Some(&Member::Md("md0".into())), false);
        assert_eq!(md, "next: `idlewise repair /dev/sdb1 --md --allow-writes` lets md0 rewrite them");
        let zfs = next("/dev/sdb1", Some(&Member::Zfs("tank".into())), false);
        assert!(zfs.starts_with("next: `zpool scrub tank`"), "{zfs}");
        assert!(next("/dev/sdb1", None, false).contains("`smartctl -x /dev/sdb1`"));
    }

    #[test]
    fn what_is_next_goes_by_whose_the_blocks_are() {
        let bad = [100, 200].map(|lba| BadBlocks { lba, blocks: 1, kind: "medium".into() });
        let next = |owner: &str, names: [Option<&str>; 2]| {
            let told = |(lba, name): (u64, Option<&str>)| {
                let names = name.filter(|name| !name.is_empty()).map(String::from);
                name.is_some().then(|| Owned { lba, blocks: 1, names: names.into_iter().collect() })
            };
            let owned = [100, 200].into_iter().zip(names).filter_map(told).collect();
            let so_far = ContentSoFar { owners: vec![owner.into()], owned, ..ContentSoFar::default() };
            let bad = Bad::list(&bad, 512, (0, false), Some(&so_far));
            next_step(&Of { device: "/dev/sdb1", member: None, by_members: false, owners: &so_far.owners }, &bad)
        };
        let (find, repair) = ("find out which files", "idlewise repair /dev/sdb1 --btrfs");
        let of_btrfs = next("btrfs", [Some("/srv/a"), Some("metadata")]);
        assert!(of_btrfs.contains(repair) && of_btrfs.contains("restore the other files"), "{of_btrfs}");
        assert!(of_btrfs.contains("where it is metadata") && !of_btrfs.contains(find), "{of_btrfs}");
        let of_xfs = next("allocation", [Some("file 131 of xfs (find /a -xdev -inum 131)"), Some("")]);
        assert!(of_xfs.starts_with("next: restore the files from a copy") && !of_xfs.contains("btrfs"), "{of_xfs}");
        let unknown = next("allocation", [Some("data of ext4, or its metadata"), Some("")]);
        assert!(unknown.starts_with(&format!("next: {find}")) && unknown.contains("debugfs"), "{unknown}");
        assert!(!unknown.contains("btrfs"), "{unknown}");
        assert!(next("allocation", [Some(""), Some("")]).starts_with("next: nothing has to be restored"));
        assert!(next("allocation", [Some("/srv/a"), None]).starts_with(&format!("next: {find}")));
    }

    /// It is copied to a shell, and others may have chosen the names.
    #[test]
    fn names_are_one_word_of_a_shell_in_what_is_next() {
        let pool = Member::Zfs("tank; reboot".into());
        assert!(next("/dev/sda", Some(&pool), false).starts_with("next: `zpool scrub 'tank; reboot'` finds"));
        assert!(next("/dev/x $(y)", None, true).starts_with("next: `idlewise repair '/dev/x $(y)' --md` shows"));
        assert!(next("/dev/sda", None, true).starts_with("next: `idlewise repair /dev/sda --md` shows"));
    }
}
