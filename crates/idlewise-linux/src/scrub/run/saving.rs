//! How far a pass is, and keeping that.

use idlewise::Bytes;
use idlewise::order::Place;

use super::Run;
use crate::monitor::now;
use crate::scrub::{Doing, Learnt, Left, Progress, State};

/// How far a pass is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settled {
    pub place: Place,
    pub left: Left,
}

impl Settled {
    pub fn verified(&self) -> u64 {
        self.place.visited.saturating_sub(self.left.bytes())
    }
}

impl Run<'_, '_> {
    /// Saves the checkpoint. One that cannot be saved is told and tried again: a full disk elsewhere ends no scrub of days.
    pub(super) fn save(&mut self, state: State, doing: Doing) {
        // No place is saved before all that was read up to there is judged.
        self.finish_judging();
        // In the end: it may take long, and whoever is asked cannot judge meanwhile.
        if state != State::Running {
            self.name_what_is_bad();
        }
        let progress = self.progress(doing);
        let (certain, bad) = (self.certain().clone(), self.narrowing.certain());
        if let Some(account) = &progress.account {
            let comparing = self.lane.watched.driver.clock().learnt();
            self.checkpoint.keep_learnt(Learnt { comparing, delays: account.reserve.delays() });
        }
        if let Some(content) = &progress.content {
            self.checkpoint.keep_content(content);
        }
        let saved = self.checkpoint.save(&certain.place, &certain.left, &bad, state, &progress);
        self.saved = now();
        self.unsaved = saved.err().map(|error| error.to_string());
        if self.unsaved.is_none() {
            self.kept = certain;
        }
    }

    pub(super) fn progress(&self, doing: Doing) -> Progress {
        Progress {
            doing,
            verified: Bytes(self.settled.verified()),
            verified_now: self.verified_now(),
            size: self.lane.device.size,
            elapsed: now().since(self.began),
            bad_blocks: self.narrowing.bad_blocks(),
            retries: self.retries,
            measured: *self.lane.watched.driver.measured(),
            plan: self.pacing.parameters().or(self.lane.watched.driver.last_used()),
            cut_to: self.pacing.cut_to(),
            account: self.lane.watched.driver.account(),
            compared: self.lane.watched.driver.clock().compared(),
            paused: self.spent.paused(now()),
            content: self.lane.judging.as_ref().map(|judging| judging.so_far().clone()),
            unsaved: self.unsaved.clone(),
            failure: self.failure.clone(),
        }
    }

    /// Tells whoever watches, and every now and then the checkpoint, if there is anything new: to save is to write to a disk.
    pub(super) fn tell(&mut self, doing: Doing) {
        self.spent.turn_to(&doing, now());
        let progress = self.progress(doing.clone());
        (self.watch)(&progress);
        if self.left.is_none() && now().since(self.saved) >= self.checkpoint.pause() && *self.certain() != self.kept {
            // Nothing is kept as read that was read from elsewhere.
            self.left = self.has_left();
            if self.left.is_none() {
                self.save(State::Running, doing);
            }
        }
    }
}
