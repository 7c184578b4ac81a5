//! What becomes of a stretch that could not be verified, and whether the medium or the device is to blame.

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::{Run, Settled};
use crate::device::verify::Fault;
use crate::monitor::now;
use crate::scrub::ScrubError;

/// After as many failures in a row, or as long without a success, places that should be readable are tried: is it the
/// medium, or is the device gone?
const SUSPICIOUS: (u64, Nanos) = (256, Nanos::from_secs(60));
/// Places that are tried: a disk with one dead head of two still answers at one of them, all but surely.
const PLACES: u64 = 16;

/// A row of failures without a success.
pub(super) struct Failing {
    count: u64,
    tried: Nanos,
    settled: Settled,
}

impl Run<'_, '_> {
    /// Takes in how a stretch went.
    pub(super) fn settle(&mut self, extent: Extent, result: Result<(), Fault>) -> Result<Option<String>, ScrubError> {
        if let Some(look) = &mut self.second_look
            && !matches!(result, Err(Fault::Device(_)))
        {
            look.looked(result.is_ok());
            if result.is_ok() {
                (self.last_good, self.failing) = (Some(extent), None);
                self.narrowing.recovered(extent);
                let judged = self.lane.judging.as_ref().and_then(|judging| judging.units(extent));
                judged.into_iter().for_each(|units| self.narrowing.judge_at_last(units));
            } else {
                // Whether the device is gone is asked when all are looked at.
                self.count_failure();
            }
            return Ok(None);
        }
        let (kind, at) = match result {
            Ok(()) => {
                (self.last_good, self.failing) = (Some(extent), None);
                self.narrowing.verified();
                return Ok(None);
            }
            Err(Fault::Device(failure)) => return Ok(Some(failure)),
            Err(Fault::Refused(_)) if self.narrowing.refused(extent) => return Ok(None),
            Err(Fault::Refused(failure)) => return Ok(Some(failure)),
            Err(Fault::Passing { kind }) => (kind, None),
            Err(Fault::Unreadable { kind, at }) => (kind, at),
        };
        let passing = matches!(result, Err(Fault::Passing { .. }));
        self.count_failure();
        if let Some(pause) = Some(extent).filter(|_| passing).and_then(|extent| self.narrowing.again(extent)) {
            self.retries += 1;
            self.not_before = Nanos(now().0 + pause.0);
            return Ok(None);
        }
        // What does not pass after all may be the medium, or the device.
        if self.device_is_gone(passing && self.narrowing.settled())? {
            return Ok(Some(format!("nothing on it can be read any more ({kind})")));
        }
        if let Some(offset) = self.narrowing.failed(extent, kind, at) {
            self.order.unreadable(offset);
        }
        Ok(None)
    }

    /// Counts a failure, and remembers how things stood before the first of its row.
    fn count_failure(&mut self) {
        if self.failing.is_none() {
            // What comes of what was read before is part of that.
            self.finish_judging();
        }
        let settled = &self.settled;
        let failing = self.failing.get_or_insert_with(|| Failing { count: 0, tried: now(), settled: settled.clone() });
        failing.count += 1;
    }

    /// At the end of a run: whether the failures that no success followed are the medium's. If not they are forgotten.
    pub(super) fn device_is_gone_at_last(&mut self) -> Result<bool, ScrubError> {
        let gone = self.device_is_gone(true)?;
        self.failing = None;
        self.narrowing.believe();
        Ok(gone)
    }

    /// Forgets what failed without a success after it: the next run begins there again.
    pub(super) fn forget_failures(&mut self) {
        if let Some(Failing { settled, .. }) = self.failing.take() {
            self.narrowing.forget(&settled.left);
            self.settled = settled;
        }
    }

    /// Puts a stretch off at which a request hung: the next run comes to it when all else is done.
    pub(super) fn put_off(&mut self, hung: Extent) {
        if self.failing.is_none() {
            self.settled.place = self.order.place();
        }
        self.forget_failures();
        self.narrowing.hung(hung);
        self.settled.left = self.narrowing.left();
    }

    /// How things stood before failures of which it is not known yet whose they are; as they stand where there are none.
    pub(super) fn certain(&self) -> &Settled {
        self.failing.as_ref().map_or(&self.settled, |failing| &failing.settled)
    }

    /// After many failures in a row, or when `suspected`, tries places that should be readable. If none is, what failed in that
    /// row is forgotten: the medium is not to blame, and the next run begins there again.
    fn device_is_gone(&mut self, suspected: bool) -> Result<bool, ScrubError> {
        let Some(failing) = &mut self.failing else { return Ok(false) };
        let (many, long) = SUSPICIOUS;
        if !suspected && !failing.count.is_multiple_of(many) && now().since(failing.tried) < long {
            return Ok(false);
        }
        failing.tried = now();
        let block = u64::from(self.lane.device.block);
        let blocks = self.lane.device.size.0 / block;
        let good = self.last_good.map_or(0, |extent| extent.offset.0 / block);
        // In between, at no regular distance of anything: heads and stripes take turns.
        let spread = (0..PLACES).map(|place| (2 * place + 1) * blocks / (2 * PLACES) + place * place);
        for place in [good, blocks - 1].into_iter().chain(spread).map(|place| place.min(blocks - 1)) {
            let extent = Extent { offset: Bytes(place * block), length: Bytes(block) };
            if self.lane.verify(extent, &mut |_, _| Ok(()))?.0.is_ok() {
                // What failed until now is the medium's.
                if let Some(failing) = &mut self.failing {
                    failing.settled = self.settled.clone();
                }
                self.narrowing.believe();
                return Ok(false);
            }
        }
        self.forget_failures();
        Ok(true)
    }
}
