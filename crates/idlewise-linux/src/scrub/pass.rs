//! What a checkpoint holds (docs/formats.md), in its present layout and those before.

use idlewise::Bytes;
use idlewise::order::{Extent, Name, Order, Place, Surface};
use serde::{Deserialize, Serialize};

use super::bad_runs::{self, BadRuns};
use super::process::Process;
use super::{BadBlocks, ContentSoFar, Learnt, RunSoFar};
use crate::device::{Marks, Member};

/// How a pass stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A scrub is at it, or was killed.
    Running,
    /// Every byte was visited.
    Complete,
    /// Stopped on request.
    Interrupted,
    /// The device failed.
    Failed,
}

/// What the file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    pub(super) version: u32,
    /// Which disk or partition it is of.
    pub identity: String,
    /// What tells it from another of this identity; version 2 had none.
    #[serde(default)]
    pub marks: Option<Marks>,
    /// How it was called when it was last scrubbed.
    #[serde(default)]
    pub device: String,
    /// What can repair it, when it was last scrubbed; version 3 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_of: Option<Member>,
    /// Its size.
    pub device_bytes: u64,
    /// Its logical block.
    pub block_bytes: u32,
    /// The order of the pass.
    pub order: Order,
    /// Where the order stands: everything that it handed out before is settled, but for what is `left`.
    pub place: Place,
    /// What the order has handed out and is not settled yet.
    #[serde(default, skip_serializing_if = "Left::is_empty")]
    pub left: Left,
    /// How the pass stands.
    pub state: State,
    /// Unreadable blocks found in it.
    pub errors: Vec<BadBlocks>,
    /// Unreadable blocks of the last complete pass, until this one is complete as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors_before: Vec<BadBlocks>,
    /// When the pass began, in seconds since 1970.
    pub started_unix_s: u64,
    /// When this was saved.
    pub saved_unix_s: u64,
    /// When the last complete pass ended.
    pub completed_unix_s: Option<u64>,
    /// Of the run that saved it.
    #[serde(default)]
    pub run: Option<RunSoFar>,
    /// What is known of what a run costs; version 5 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt: Option<Learnt>,
    /// What the owners of the data said; version 6 did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentSoFar>,
    /// How much of the last whole pass could not be compared, and why, until this one is over; version 7 did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared_before: Option<(u64, String)>,
    /// Who saved it.
    #[serde(default)]
    pub process: Option<Process>,
}

/// Stretches that an order has handed out and that are not settled yet, as first byte and end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// Parts of an unreadable stretch that is being narrowed down, the next one first.
    pub narrowing: Vec<(u64, u64)>,
    /// What was skipped as so much before it was unreadable: looked at when the order is through.
    pub skipped: Vec<(u64, u64)>,
}

impl Left {
    /// Whether everything is settled.
    pub fn is_empty(&self) -> bool {
        self.narrowing.is_empty() && self.skipped.is_empty()
    }

    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.narrowing.iter().chain(&self.skipped).fold(0, |sum, (begin, end)| (end - begin).saturating_add(sum))
    }

    /// Whether it can be of a device.
    fn check(&self, size: u64, block: u64) -> Result<(), String> {
        let fits = |&(begin, end): &(u64, u64)| begin < end && end <= size && begin.is_multiple_of(block);
        // They may overlap: an order visits some places once more.
        let all = self.narrowing.iter().chain(&self.skipped).all(fits);
        if all { Ok(()) } else { Err("a stretch left that is not on the device".into()) }
    }
}

/// A stretch as it is written.
pub fn written(extent: &Extent) -> (u64, u64) {
    (extent.offset.0, extent.end().0)
}

/// Layout of version 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass1 {
    #[serde(rename = "version")]
    _version: u32,
    identity: String,
    device_bytes: u64,
    block_bytes: u32,
    order: Name,
    position_bytes: u64,
    state: State,
    errors: Vec<BadBlocks>,
    started_unix_s: u64,
    saved_unix_s: u64,
    completed_unix_s: Option<u64>,
}

impl From<Pass1> for Pass {
    fn from(old: Pass1) -> Self {
        let Pass1 { identity, device_bytes, block_bytes, state, errors, started_unix_s, .. } = old;
        Self {
            version: Self::VERSION,
            identity,
            marks: None,
            device: String::new(),
            member_of: None,
            device_bytes,
            block_bytes,
            order: Order { name: old.order, ..Order::SEQUENTIAL },
            place: Place::after(old.position_bytes),
            left: Left::default(),
            state,
            errors,
            errors_before: Vec::new(),
            started_unix_s,
            saved_unix_s: old.saved_unix_s,
            completed_unix_s: old.completed_unix_s,
            run: None,
            learnt: None,
            content: None,
            not_compared_before: None,
            process: None,
        }
    }
}

impl Pass {
    /// Version of the layout.
    pub(super) const VERSION: u32 = 10;

    /// Bytes of the device that are settled.
    pub fn verified(&self) -> Bytes {
        Bytes(self.place.visited.saturating_sub(self.left.bytes()))
    }

    /// Which share of each of so many equal parts of the device is settled in this pass, from its first byte to its last.
    pub fn shares(&self, parts: u64) -> Vec<f64> {
        /// With more regions each part has some of many, and about the same share as all.
        const MOST_REGIONS: u64 = 1 << 20;
        let all = self.verified().0 as f64 / self.device_bytes.max(1) as f64;
        let surface = Surface { size: Bytes(self.device_bytes), block: self.block_bytes };
        let order = self.order.make(surface, &self.place).ok();
        let order = order.filter(|_| self.order.regions.unwrap_or(0) <= MOST_REGIONS && !self.over());
        let Some(order) = order else { return vec![all; parts as usize] };
        let edge = |part: u64| (u128::from(self.device_bytes) * u128::from(part) / u128::from(parts.max(1))) as u64;
        let share = |part: u64| {
            let (begin, end) = (edge(part), edge(part + 1));
            let left = self.left.narrowing.iter().chain(&self.left.skipped);
            let left: u64 = left.map(|&(from, to)| end.min(to).saturating_sub(begin.max(from))).sum();
            let behind = order.behind(Extent { offset: Bytes(begin), length: Bytes(end - begin) }).0;
            behind.saturating_sub(left) as f64 / (end - begin).max(1) as f64
        };
        (0..parts).map(share).collect()
    }

    /// Unreadable blocks found in this pass, and before it where it has not been yet.
    pub fn known_errors(&self) -> Vec<BadBlocks> {
        Self::first_of(&self.errors, &self.errors_before)
    }

    /// The same to be kept for another pass: what was wrong before and is unreadable now was not compared.
    pub(super) fn errors_to_keep(&self) -> Vec<BadBlocks> {
        let (wrong, others): (Vec<_>, Vec<_>) = self.errors_before.iter().cloned().partition(BadBlocks::is_wrong);
        Self::first_of(&Self::first_of(&wrong, &self.errors), &others)
    }

    /// How much of the last whole pass was not compared as who could tell was silent, if any, and why.
    pub fn not_compared(&self) -> Option<(Bytes, &str)> {
        let own = self.content.as_ref().filter(|_| self.over()).and_then(ContentSoFar::silent);
        own.or_else(|| self.not_compared_before.as_ref().map(|(bytes, why)| (Bytes(*bytes), why.as_str())))
    }

    /// Whether all of an array has been compared by its members since this pass over it as one disk was saved.
    pub fn is_compared_by(&self, members: &Self) -> bool {
        members.completed_unix_s >= Some(self.saved_unix_s)
    }

    /// Runs in order, and of others what lies beside them.
    fn first_of(first: &[BadBlocks], others: &[BadBlocks]) -> Vec<BadBlocks> {
        let mut known = first.to_vec();
        for before in others {
            let mut begin = before.lba;
            let end = before.lba.saturating_add(before.blocks);
            let mut keep = |begin: u64, end: u64| {
                if begin < end {
                    known.push(BadBlocks { lba: begin, blocks: end - begin, kind: before.kind.clone() });
                }
            };
            let from = first.partition_point(|run| run.end() <= begin);
            for found in first[from..].iter().take_while(|found| found.lba < end) {
                keep(begin, found.lba.min(end));
                begin = begin.max(found.end());
            }
            keep(begin, end);
        }
        known.sort_by_key(|run| run.lba);
        if known.len() > bad_runs::MOST { BadRuns::of(&known).list() } else { known }
    }

    /// Whether every byte was visited.
    pub fn over(&self) -> bool {
        self.state == State::Complete
    }

    /// Reads the text of a checkpoint of any version.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            version: Option<u64>,
        }
        let Version { version } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let pass: Self = match version {
            Some(1) => serde_json::from_slice::<Pass1>(text).map(Self::from),
            Some(2..=10) => serde_json::from_slice(text).map(|pass: Self| Self { version: Self::VERSION, ..pass }),
            Some(other) => return Err(format!("version {other}, newer than {}", Self::VERSION)),
            None => return Err("without a version".into()),
        }
        .map_err(|error| error.to_string())?;
        if !pass.block_bytes.is_power_of_two() || pass.block_bytes < 512 {
            return Err(format!("blocks of {} bytes: no disk has those", pass.block_bytes));
        }
        let surface = Surface { size: Bytes(pass.device_bytes), block: pass.block_bytes };
        pass.order.make(surface, &pass.place).map_err(|problem| format!("its place: {problem}"))?;
        pass.left.check(pass.device_bytes, u64::from(pass.block_bytes))?;
        for errors in [&pass.errors, &pass.errors_before] {
            check_errors(errors, pass.device_bytes / u64::from(pass.block_bytes))?;
        }
        Ok(pass)
    }
}

/// Whether a list of unreadable blocks can be of a device with so many: in order, and none twice.
fn check_errors(errors: &[BadBlocks], blocks: u64) -> Result<(), String> {
    if errors.len() > bad_runs::MOST {
        return Err(format!("{} runs of unreadable blocks: there are at most {}", errors.len(), bad_runs::MOST));
    }
    let mut end = 0;
    for run in errors {
        let begin = run.lba;
        end = begin.checked_add(run.blocks).filter(|&next| run.blocks > 0 && begin >= end && next <= blocks).ok_or(
            format!("{} unreadable blocks at {begin}, which is out of order or not on the device", run.blocks),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use idlewise::Nanos;
    use idlewise::policy::{Account, Terms};
    use proptest::prelude::*;

    use super::super::{Progress, faults};
    use super::*;

    const VALID: &str = r#"{"version":9,"identity":"wwn-1","device":"/dev/sda","member_of":{"md":"md0"},"device_bytes":1048576,"block_bytes":512,
        "marks":{"start_bytes":0,"partition_uuid":null,"boot_id":"b","diskseq":7},
        "left":{"narrowing":[[4096,8192]],"skipped":[[16384,20480]]},
        "order":{"name":"staggered","regions":7,"visit_bytes":"64KiB"},
        "place":{"visited_bytes":65536,"course_bytes":65536,"ahead":[3],"detour":[[460800,491520]],"again":[[450560,460800]]},
        "state":"running","errors":[{"lba":900,"blocks":2,"kind":"medium"}],
        "errors_before":[{"lba":890,"blocks":20,"kind":"io"},{"lba":2000,"blocks":1,"kind":"io"}],
        "started_unix_s":1,"saved_unix_s":2,"completed_unix_s":null,"run":null}"#;

    /// Of a disk that may be another one: what could not be read is doubtful, and what was wrong stays so until it is compared.
    #[test]
    fn what_was_wrong_is_wrong_until_it_is_compared() {
        let run = |lba, kind: &str| BadBlocks { lba, blocks: 2, kind: kind.into() };
        let errors = vec![run(8, "io"), run(16, BadBlocks::RECOVERED), run(24, "checksum"), run(32, "differs")];
        let before = Pass { errors, errors_before: Vec::new(), ..Pass::parse(VALID.as_bytes()).unwrap() };
        let known = super::super::subject::doubtful(before).errors_before;
        assert_eq!(known, [run(8, BadBlocks::DOUBTFUL), run(24, "checksum"), run(32, "differs")]);
    }

    #[test]
    fn the_present_version_is_read_and_newer_ones_are_not() {
        let pass = Pass::parse(VALID.as_bytes()).unwrap();
        assert_eq!((pass.place.visited, pass.order.regions), (65_536, Some(7)));
        assert_eq!(pass.verified(), Bytes(65_536 - 8_192));
        let left = Left { narrowing: vec![(4096, 20_480)], ..Left::default() };
        let line = Pass { order: Order::SEQUENTIAL, place: Place::after(655_360), left, ..pass.clone() };
        let shares = line.shares(16);
        assert_eq!((shares[0], &shares[1..10], &shares[10..]), (0.75, &[1.0; 9][..], &[0.0; 6][..]));
        assert_eq!(
            Pass { state: State::Complete, ..line.clone() }.shares(2),
            [line.verified().0 as f64 / 1_048_576.0; 2]
        );
        assert_eq!(pass.member_of, Some(Member::Md("md0".into())));
        let error = Pass::parse(VALID.replace("\"version\":9", "\"version\":11").as_bytes()).unwrap_err();
        assert!(error.contains("version 11, newer than 10"), "{error}");
    }

    /// A wrong block that could not be read in this pass, or only at its end, was not compared: the next pass knows of it, whatever that one finds.
    #[test]
    fn what_was_wrong_and_is_unreadable_is_wrong_in_the_next_pass() {
        let run = |lba, blocks, kind: &str| BadBlocks { lba, blocks, kind: kind.into() };
        for kind in ["io", BadBlocks::RECOVERED, BadBlocks::SCATTERED] {
            let pass = Pass {
                errors: vec![run(95, 8, kind)],
                errors_before: vec![run(90, 10, "checksum"), run(101, 4, "io")],
                ..Pass::parse(VALID.as_bytes()).unwrap()
            };
            assert_eq!(pass.known_errors(), [run(90, 5, "checksum"), run(95, 8, kind), run(103, 2, "io")]);
            assert_eq!(pass.errors_to_keep(), [run(90, 10, "checksum"), run(100, 3, kind), run(103, 2, "io")]);
        }
    }

    /// That part of a whole pass was not compared is known until another one is over, also if the disk may be another one.
    #[test]
    fn what_was_not_compared_is_known_until_it_is() {
        let (owners, unasked) = (vec!["btrfs".into()], Some("silent".into()));
        let content = ContentSoFar { owners, unasked_bytes: 5, unasked, ..ContentSoFar::default() };
        let over = Pass { state: State::Complete, content: Some(content), ..Pass::parse(VALID.as_bytes()).unwrap() };
        let doubtful = super::super::subject::doubtful(over.clone());
        for pass in [over, Pass { state: State::Running, ..doubtful.clone() }, doubtful] {
            assert_eq!(pass.not_compared(), Some((Bytes(5), "silent")));
        }
    }

    /// What version 3 wrote of a run, before there was an account in it.
    #[test]
    fn version_3_stays_readable() {
        let run = r#""run":{"doing":"idle-wait","elapsed_s":1.5,"verified_bytes":1,"retries":0,"foreground_requests":2,
            "mean_slowdown_s":0.1,"max_slowdown_s":0.2,"request_size_bytes":4096,"idle_wait_s":0.5}"#;
        let old = VALID.replace("\"version\":9", "\"version\":3").replace("\"run\":null", run);
        let pass = Pass::parse(old.as_bytes()).unwrap();
        assert_eq!(pass.run.as_ref().map(|run| (run.account, run.overdrawn_s)), Some((None, 0.0)));
        let mut progress = Progress { paused: Nanos::from_secs(3), ..Progress::default() };
        let mut account = Account::new(Nanos::from_millis(1), Terms { opening: 0, ..Terms::default() });
        account.served(1, Nanos(5_500_000));
        progress.account = Some(account);
        let written = Pass { run: Some(RunSoFar::from(&progress)), ..pass };
        let read = Pass::parse(&serde_json::to_vec(&written).unwrap()).unwrap();
        assert_eq!(read, written);
        let account = read.run.unwrap().account.unwrap();
        assert_eq!((account.balance_s, account.requests_to_go_on), (-0.0045, Some(5)));
    }

    #[test]
    fn what_was_bad_before_is_known_where_this_pass_has_not_been() {
        let pass = Pass::parse(VALID.as_bytes()).unwrap();
        let known: Vec<_> = pass.known_errors().iter().map(|run| (run.lba, run.blocks, run.kind.clone())).collect();
        let expected = [(890, 10, "io"), (900, 2, "medium"), (902, 8, "io"), (2000, 1, "io")];
        assert_eq!(known, expected.map(|(lba, blocks, kind)| (lba, blocks, kind.to_string())));
    }

    #[test]
    fn what_is_left_twice_is_no_circle() {
        let half = 1u64 << 63;
        let left = Left { narrowing: vec![(0, half); 2], skipped: vec![(0, half)] };
        assert_eq!(left.bytes(), u64::MAX);
        let pass = Pass { left, ..Pass::parse(VALID.as_bytes()).unwrap() };
        assert_eq!(pass.verified(), Bytes(0));
    }

    #[test]
    fn what_cannot_be_of_the_device_is_damage() {
        for (text, by) in [
            (r#""blocks":2,"#, r#""blocks":1099511627776,"#),
            (r#""blocks":2,"#, r#""blocks":18446744073709551615,"#),
            (r#""blocks":2,"#, r#""blocks":0,"#),
            (r#""lba":2000"#, r#""lba":2048"#),
            (r#""lba":2000"#, r#""lba":900"#),
            ("[4096,8192]", "[4096,4096]"),
            ("[4096,8192]", "[4000,8192]"),
            ("[16384,20480]", "[16384,1048577]"),
            (r#""block_bytes":512"#, r#""block_bytes":0"#),
            (r#""block_bytes":512"#, r#""block_bytes":768"#),
        ] {
            let changed = VALID.replacen(text, by, 1);
            assert!(changed != VALID && Pass::parse(changed.as_bytes()).is_err(), "{text} {by}");
        }
    }

    /// With as many unreadable runs and stretches left as there may be, it is still small enough to be read again.
    #[test]
    fn the_largest_checkpoint_can_be_read_again() {
        let far = 1u64 << 63;
        let runs = |count: usize| {
            let run = |at: u64| BadBlocks { lba: far / 512 - 3 * at - 3, blocks: 1, kind: "protection".into() };
            (0..count as u64).map(run).rev().collect::<Vec<_>>()
        };
        let skipped = (1..=faults::MOST_SKIPPED as u64).map(|at| (far - 4096 * at, far - 4096 * at + 512)).collect();
        let before = runs(3 * bad_runs::MOST);
        let list =
            Pass { errors: runs(7), errors_before: before, ..Pass::parse(VALID.as_bytes()).unwrap() }.known_errors();
        assert!(list.len() <= bad_runs::MOST && list.iter().any(|run| run.kind == BadBlocks::SCATTERED));
        let pass = Pass {
            device_bytes: far,
            left: Left { narrowing: vec![(0, 512); 10_000], skipped },
            errors: runs(bad_runs::MOST),
            errors_before: runs(bad_runs::MOST),
            order: Order::SEQUENTIAL,
            place: Place::after(far),
            ..Pass::parse(VALID.as_bytes()).unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass.json");
        crate::files::replace_file(&path, &serde_json::to_vec_pretty(&pass).unwrap()).unwrap();
        assert_eq!(Pass::parse(&crate::files::read_file(&path).unwrap()).unwrap(), pass);
    }

    proptest! {
        /// Whatever becomes of its bytes and numbers, a checkpoint is read or refused.
        #[test]
        fn no_damage_makes_it_stumble(
            at in 0..VALID.len(), byte in any::<u8>(), cut in 0..VALID.len(), number in any::<u64>(), which in 0usize..8,
        ) {
            let mut bytes = VALID.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = Pass::parse(&bytes);
            let _ = Pass::parse(&VALID.as_bytes()[..cut]);
            let numbers = ["1048576", "512", "7", "65536", "3", "460800", "16384", "900"];
            let _ = Pass::parse(VALID.replace(numbers[which], &number.to_string()).as_bytes());
        }
    }
}
