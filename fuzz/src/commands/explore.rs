//! `explore`: the plane of idle waits and busy periods, and what is chosen.

use idlewise::idle::Keep;
use idlewise::policy::restrained::Amount;
use idlewise::tune::{PairPoint, Question};

use super::work::kind;
use crate::load::{file, share, size};
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

/// Hundreds of pairs look at each interval.
const MOST_REQUESTS: usize = 12;

pub fn run(mut from: Unstructured) -> Result<()> {
    let (model, kind, size) = (model(&mut from)?, kind(&mut from)?, size(&mut from)?);
    let (relative_delay, with_plane) = (share(&mut from)? * 4.0, from.ratio(1u8, 8u8)?);
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let keep = Keep { responses: false, writes: kind.writes(None) };
    let Some(disks) = read.idleness(&model, keep) else { return Ok(()) };
    let service = kind.mean_service().unwrap_or_else(|| model.verify_time(size));
    let question = Question {
        disks: &disks,
        work: &|| kind.work(&model),
        amount: disks.first().map_or(Amount::Infinite, |disk| kind.amount(disk, &model, size)),
        service,
        size,
        relative_delay,
    };
    if with_plane {
        let plane = question.plane(&|_| ());
        assert_eq!(plane.points.len(), plane.idle_waits_s.len() * plane.busy_periods_s.len());
        assert!(plane.idle_waits_s.is_sorted());
        plane.points.iter().for_each(check);
    }
    question.practices().iter().for_each(check);
    if let Some(chosen) = question.chosen() {
        check(&chosen);
        check(&question.point(chosen.pair()));
    }
    for penalty in question.penalties() {
        assert!((0.0..=1.0).contains(&penalty.utilised) && penalty.idle_wait_s >= 0.0, "{penalty:?}");
    }
    Ok(())
}

fn check(point: &PairPoint) {
    assert!(point.relative_delay >= 0.0 && (0.0..=1.0).contains(&point.probability), "{point:?}");
}
