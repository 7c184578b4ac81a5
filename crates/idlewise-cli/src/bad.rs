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
    /// Files that lie there, or a word such as `metadata`; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Vec<String>>,
}

impl Bad {
    /// Of a device that begins at byte `start` of its disk; `so_far` says what lies where. Numbers from a file may be anything.
    pub fn list(errors: &[BadBlocks], block_bytes: u32, start: u64, so_far: Option<&ContentSoFar>) -> Vec<Self> {
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
            Some([]) => "; nothing lies there any more".into(),
            Some([one]) => format!("; in {}", one_line(one)),
            Some([one, rest @ ..]) => format!("; in {} and {} more", one_line(one), rest.len()),
        };
        format!(
            "{what}: block{plural} {} ({size}), byte {} of the device, LBA {} of the whole disk{holds}",
            range(*lba),
            self.offset_bytes,
            range(self.disk_lba)
        )
    }
}

/// What to do about the bad blocks of a device, or of an array of which all members were read: steps with semicolons between.
pub fn next_step(device: &str, member: Option<&Member>, by_members: bool, bad: &[Bad]) -> String {
    let blocks = bad.iter().fold(0, |sum: u64, bad| sum.saturating_add(bad.run.blocks));
    // Others may have chosen the names: what is told is copied to a shell.
    let device = &content::shell_word(device);
    let all = if blocks > MAX_BLOCKS { format!(" --max-blocks {blocks}") } else { String::new() };
    if by_members {
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
    match member {
        Some(Member::Md(array)) => {
            format!("next: `idlewise repair {device} --md --allow-writes{all}` lets {array} rewrite them")
        }
        Some(Member::Zfs(pool)) => {
            let pool = content::shell_word(pool);
            format!("next: `zpool scrub {pool}` finds what lies there and repairs it, where the pool has it twice")
        }
        None if !bad.is_empty() && bad.iter().all(|bad| bad.holds.as_ref().is_some_and(|holds| !holds.is_empty())) => {
            format!(
                "next: on btrfs, `idlewise repair {device} --btrfs --allow-writes{all}` lets it rewrite what it has another copy of; \
                 restore the other files from a copy, which rewrites the blocks, and scrub again; \
                 where it is metadata, check the file system while it is not mounted (fsck, xfs_repair, btrfs check); \
                 `smartctl -x {device}` shows what the disk itself knows: replace one that loses more blocks"
            )
        }
        None => format!(
            "next: find out which files hold them; \
             on ext4: `debugfs -R 'icheck N' PARTITION`, then ncheck, where N is the byte within the partition divided by the file \
             system's block size; \
             on XFS: the fsmap command of xfs_io; \
             on btrfs: `btrfs scrub start` repairs what it can; \
             then restore these files from a copy, which rewrites the blocks, and scrub again; \
             `smartctl -x {device}` shows what the disk itself knows: replace one that loses more blocks"
        ),
    }
}

#[cfg(test)]
mod tests {
    use idlewise_linux::scrub::Owned;

    use super::*;

    fn line(lba: u64, blocks: u64, block: u32, start: u64) -> String {
        Bad::list(&[BadBlocks { lba, blocks, kind: "medium".into() }], block, start, None)[0].line()
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

    #[test]
    fn the_next_step_is_that_of_the_array() {
        let md = next_step("/dev/sdb1", Some(&Member::Md("md0".into())), false, &[]);
        assert_eq!(md, "next: `idlewise repair /dev/sdb1 --md --allow-writes` lets md0 rewrite them");
        assert!(
            next_step("/dev/sdb1", Some(&Member::Zfs("tank".into())), false, &[])
                .starts_with("next: `zpool scrub tank`")
        );
        assert!(next_step("/dev/sdb1", None, false, &[]).contains("`smartctl -x /dev/sdb1`"));
    }

    #[test]
    fn files_that_are_told_need_not_be_found() {
        let bad = [100, 200].map(|lba| BadBlocks { lba, blocks: 1, kind: "medium".into() });
        let told = |lba, name: &str| Owned { lba, blocks: 1, names: vec![name.into()] };
        let next = |owned| {
            let so_far = ContentSoFar { owned, ..ContentSoFar::default() };
            next_step("/dev/sdb1", None, false, &Bad::list(&bad, 512, 0, Some(&so_far)))
        };
        assert!(next(vec![told(100, "/srv/a"), told(200, "metadata")]).contains("; restore the other files"));
        assert!(next(vec![told(100, "/srv/a")]).starts_with("next: find out which files hold them"));
    }

    /// It is copied to a shell, and others may have chosen the names.
    #[test]
    fn names_are_one_word_of_a_shell_in_what_is_next() {
        let pool = Member::Zfs("tank; reboot".into());
        assert!(next_step("/dev/sda", Some(&pool), false, &[]).starts_with("next: `zpool scrub 'tank; reboot'` finds"));
        assert!(
            next_step("/dev/x $(y)", None, true, &[]).starts_with("next: `idlewise repair '/dev/x $(y)' --md` shows")
        );
        assert!(next_step("/dev/sda", None, true, &[]).starts_with("next: `idlewise repair /dev/sda --md` shows"));
    }
}
