//! What a checkpoint is of, and what a pass before says of it.

use std::path::Path;

use idlewise::Bytes;
use idlewise::order::{Name, Order, Place};

use super::checkpoint::unix_now;
use super::{BadBlocks, CheckpointError, ContentSoFar, Left, Pass, State};
use crate::device::{Device, Marks, Member, Named};

/// What a checkpoint is of.
#[derive(Clone)]
pub struct Subject<'a> {
    pub identity: &'a str,
    pub device: &'a str,
    pub marks: &'a Marks,
    /// Whether another disk may be called so as well.
    pub named: Named,
    pub member_of: Option<Member>,
    pub size: u64,
    pub block: u32,
    pub order: Order,
}

impl<'a> Subject<'a> {
    pub fn of(device: &'a Device, order: Order) -> Self {
        Self { member_of: device.member(), ..Self::unread(device, order) }
    }

    /// The same without what can repair it, which is read from the device.
    pub fn unread(device: &'a Device, order: Order) -> Self {
        Self {
            identity: &device.identity,
            device: device.path.to_str().unwrap_or(&device.identity),
            marks: &device.marks,
            named: device.named,
            member_of: None,
            size: device.size.0,
            block: device.block,
            order,
        }
    }

    /// Why a pass is of another disk, if it is or may be.
    pub fn is_other(&self, pass: &Pass) -> Option<String> {
        // Of what may be changed without a word, what was found is told until it is known better.
        let named = if self.named == Named::Never { Named::ByChoice } else { self.named };
        match &pass.marks {
            Some(before) => self.marks.other_than(before, named),
            None => matches!(self.named, Named::ForNow | Named::Never)
                .then(|| "it does not say which disk of this name it is of".into()),
        }
    }

    /// Whether a pass of another disk, as it seems, may be of this one all the same: nothing tells disks of this name from each other.
    pub fn may_be(&self, pass: &Pass) -> bool {
        let same = pass.marks.as_ref().is_none_or(|before| self.marks.other_than(before, Named::Alone).is_none());
        self.named != Named::Alone && same
    }

    /// What is known of a device that is smaller now, or has other blocks: the unreadable bytes that it still has.
    pub fn fitting(&self, pass: Pass) -> Pass {
        let (was, is) = (u64::from(pass.block_bytes), u64::from(self.block.max(1)));
        let fit = |run: BadBlocks| {
            let (begin, end) =
                (run.lba.saturating_mul(was), run.lba.saturating_add(run.blocks).saturating_mul(was).min(self.size));
            let lba = begin / is;
            (begin < end).then(|| BadBlocks { lba, blocks: end.div_ceil(is) - lba, ..run })
        };
        // Of larger blocks one may be of several runs: it is the first one's.
        let mut behind = 0;
        let apart = |run: BadBlocks| {
            let (lba, end) = (run.lba.max(behind), run.end());
            behind = behind.max(end);
            (lba < end).then(|| BadBlocks { lba, blocks: end - lba, ..run })
        };
        let errors_before = pass.errors_to_keep().into_iter().filter_map(fit).filter_map(apart).collect();
        let completed_unix_s = self.completed(&pass);
        Pass { errors: Vec::new(), errors_before, completed_unix_s, ..pass }
    }

    /// When a pass read all that the device has: what has been added since then was never read.
    fn completed(&self, pass: &Pass) -> Option<u64> {
        pass.completed_unix_s.filter(|_| self.size <= pass.device_bytes)
    }

    /// A device that has grown is the same; of one that has shrunk, places are gone.
    pub fn check_size(&self, pass: &Pass, path: &Path) -> Result<(), CheckpointError> {
        if pass.device_bytes <= self.size && pass.block_bytes == self.block {
            return Ok(());
        }
        let blocks = |bytes: u32| format!("blocks of {bytes} bytes");
        let (was, is) = match pass.block_bytes == self.block {
            true => (Bytes(pass.device_bytes).to_string(), Bytes(self.size).to_string()),
            false => (blocks(pass.block_bytes), blocks(self.block)),
        };
        Err(CheckpointError::Changed { path: path.display().to_string(), was, is })
    }

    /// Why an unfinished pass of this device has to begin anew.
    pub fn has_to_begin_anew(&self, pass: &Pass) -> Option<String> {
        if let (Named::Never, Some(before)) = (self.named, &pass.marks) {
            return self.marks.other_than(before, self.named);
        }
        if pass.marks.as_ref().is_some_and(|before| self.marks.has_other_members_than(before)) {
            return Some("a member of the array is another disk than when it began".into());
        }
        if pass.marks.as_ref().is_some_and(|before| self.marks.lies_elsewhere_than(before)) {
            return Some("it lies elsewhere than when it began".into());
        }
        // What is new lies behind, where only the sequential order is not disturbed by it.
        let disturbed = pass.order == self.order && self.order.name != Name::SEQUENTIAL;
        (disturbed && pass.device_bytes < self.size).then(|| {
            let (was, is) = (Bytes(pass.device_bytes), Bytes(self.size));
            format!("the device grew from {was} to {is} since, and only a pass in sequential order can go on behind its old end")
        })
    }

    /// An unfinished pass, to go on with.
    pub fn resumed(&self, pass: Pass, path: &Path) -> Result<Pass, CheckpointError> {
        self.check_size(&pass, path)?;
        let path = || path.display().to_string();
        if pass.order != self.order {
            return Err(CheckpointError::Order { path: path(), was: pass.order.to_string() });
        }
        Ok(Pass {
            device: self.device.into(),
            marks: Some(self.marks.clone()),
            member_of: self.member_of.clone(),
            device_bytes: self.size,
            completed_unix_s: self.completed(&pass),
            ..pass
        })
    }

    pub fn new_pass(&self, before: Option<&Pass>) -> Pass {
        Pass {
            version: Pass::VERSION,
            identity: self.identity.into(),
            marks: Some(self.marks.clone()),
            device: self.device.into(),
            member_of: self.member_of.clone(),
            device_bytes: self.size,
            block_bytes: self.block,
            order: self.order,
            place: Place::default(),
            left: Left::default(),
            state: State::Running,
            errors: Vec::new(),
            errors_before: before.map_or_else(Vec::new, Pass::errors_to_keep),
            started_unix_s: unix_now(),
            saved_unix_s: unix_now(),
            completed_unix_s: before.and_then(|pass| pass.completed_unix_s),
            run: None,
            learnt: before.and_then(|pass| pass.learnt.clone()),
            content: before.and_then(|pass| pass.content.as_ref()?.for_the_next()),
            not_compared_before: before.and_then(Pass::not_compared).map(|(bytes, why)| (bytes.0, why.into())),
            process: None,
        }
    }
}

/// What is known of a disk that may be another one: its unreadable blocks, which are not forgotten until their places are read again, and what
/// was wrong, until that is compared again.
pub fn doubtful(before: Pass) -> Pass {
    let mut errors_before = before.errors_to_keep();
    errors_before.retain(|run| run.kind != BadBlocks::RECOVERED);
    errors_before.iter_mut().filter(|run| !run.is_wrong()).for_each(|run| run.kind = BadBlocks::DOUBTFUL.into());
    let not_compared_before = before.not_compared().map(|(bytes, why)| (bytes.0, why.into()));
    let content = before.content.as_ref().and_then(ContentSoFar::for_the_next);
    let nothing = Pass { errors: Vec::new(), completed_unix_s: None, learnt: None, content, ..before };
    Pass { errors_before, not_compared_before, ..nothing }
}
