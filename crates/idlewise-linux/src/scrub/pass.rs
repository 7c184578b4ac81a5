//! What a checkpoint holds (docs/formats.md), in its present layout and the one before.

use idlewise::Bytes;
use idlewise::order::{Name, Order, Place, Surface};
use serde::{Deserialize, Serialize};

use super::{BadBlocks, Progress};

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
    /// How it was called when it was last scrubbed.
    #[serde(default)]
    pub device: String,
    /// Its size.
    pub device_bytes: u64,
    /// Its logical block.
    pub block_bytes: u32,
    /// The order of the pass.
    pub order: Order,
    /// Where the order stands: everything that it handed out before is settled.
    pub place: Place,
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
}

/// The run that saved a checkpoint, as far as it had got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSoFar {
    /// What it did, and why it waited: the name of a [`Doing`](super::Doing).
    pub doing: String,
    /// Its duration.
    pub elapsed_s: f64,
    /// Bytes that it verified.
    pub verified_bytes: u64,
    /// Requests that it repeated.
    pub retries: u64,
    /// Foreground requests that it saw.
    pub foreground_requests: u64,
    /// Their mean slowdown.
    pub mean_slowdown_s: f64,
    /// Their longest slowdown.
    pub max_slowdown_s: f64,
    /// Request size in use.
    pub request_size_bytes: u64,
    /// Idle wait in use.
    pub idle_wait_s: f64,
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
            device: String::new(),
            device_bytes,
            block_bytes,
            order: Order { name: old.order, ..Order::SEQUENTIAL },
            place: Place::after(old.position_bytes),
            state,
            errors,
            errors_before: Vec::new(),
            started_unix_s,
            saved_unix_s: old.saved_unix_s,
            completed_unix_s: old.completed_unix_s,
            run: None,
        }
    }
}

impl Pass {
    /// Version of the layout.
    pub(super) const VERSION: u32 = 2;

    /// Unreadable blocks found in this pass, and before it where it has not been yet.
    pub fn known_errors(&self) -> Vec<BadBlocks> {
        let mut known: Vec<BadBlocks> = self.errors.clone();
        for before in &self.errors_before {
            let found = |lba: u64| self.errors.iter().any(|run| (run.lba..run.lba + run.blocks).contains(&lba));
            for lba in (before.lba..before.lba.saturating_add(before.blocks)).filter(|&lba| !found(lba)) {
                match known.last_mut() {
                    Some(last) if last.lba + last.blocks == lba && last.kind == before.kind => last.blocks += 1,
                    _ => known.push(BadBlocks { lba, blocks: 1, kind: before.kind.clone() }),
                }
            }
        }
        known.sort_by_key(|run| run.lba);
        known
    }

    /// Whether every byte was visited.
    pub fn over(&self) -> bool {
        self.state == State::Complete
    }

    /// Reads the text of a checkpoint of either version.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let pass: Self = match value["version"].as_u64() {
            Some(1) => serde_json::from_value::<Pass1>(value).map(Self::from),
            Some(2) => serde_json::from_value(value),
            Some(other) => return Err(format!("version {other}, newer than {}", Self::VERSION)),
            None => return Err("without a version".into()),
        }
        .map_err(|error| error.to_string())?;
        let surface = Surface { size: Bytes(pass.device_bytes), block: pass.block_bytes };
        pass.order.make(surface, &pass.place).map_err(|problem| format!("its place: {problem}"))?;
        Ok(pass)
    }
}

impl From<&Progress> for RunSoFar {
    fn from(progress: &Progress) -> Self {
        let measured = &progress.measured;
        let (size, wait) = progress.plan.unwrap_or_default();
        Self {
            doing: progress.doing.name().into(),
            elapsed_s: progress.elapsed.as_secs_f64(),
            verified_bytes: progress.verified_now.0,
            retries: progress.retries,
            foreground_requests: measured.foreground_requests,
            mean_slowdown_s: measured.mean_slowdown().as_secs_f64(),
            max_slowdown_s: measured.max_slowdown.as_secs_f64(),
            request_size_bytes: size.0,
            idle_wait_s: wait.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALID: &str = r#"{"version":2,"identity":"wwn-1","device":"/dev/sda","device_bytes":1048576,"block_bytes":512,
        "order":{"name":"staggered","regions":7,"visit_bytes":"64KiB"},
        "place":{"visited_bytes":65536,"course_bytes":65536,"ahead":[3],"detour":[[460800,491520]],"again":[[450560,460800]]},
        "state":"running","errors":[{"lba":900,"blocks":2,"kind":"medium"}],
        "started_unix_s":1,"saved_unix_s":2,"completed_unix_s":null,"run":null}"#;

    #[test]
    fn the_present_version_is_read_and_newer_ones_are_not() {
        let pass = Pass::parse(VALID.as_bytes()).unwrap();
        assert_eq!((pass.place.visited, pass.order.regions), (65_536, Some(7)));
        let error = Pass::parse(VALID.replace("\"version\":2", "\"version\":3").as_bytes()).unwrap_err();
        assert!(error.contains("version 3, newer than 2"), "{error}");
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
            let numbers = ["1048576", "512", "7", "65536", "3", "460800", "491520", "900"];
            let _ = Pass::parse(VALID.replace(numbers[which], &number.to_string()).as_bytes());
        }
    }
}
