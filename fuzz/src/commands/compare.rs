//! `compare`: shares are shares, whatever the policy.

use idlewise::Bytes;
use idlewise::idle::Keep;
use idlewise::tune::{best_within, compare};

use crate::load::{file, size};
use crate::models::model;
use crate::reading::Read;
use crate::{Result, Unstructured};

/// A few hundred policies look at each interval.
const MOST_REQUESTS: usize = 16;

pub fn run(mut from: Unstructured) -> Result<()> {
    let (model, size) = (model(&mut from)?, size(&mut from)?.max(Bytes(512)));
    let Some(read) = Read::short(&file(from)?).filter(|read| read.len() <= MOST_REQUESTS) else { return Ok(()) };
    let Some(disks) = read.idleness(&model, Keep::default()) else { return Ok(()) };
    let points = compare(&disks, &model, size, &|_| ());
    for point in &points {
        assert!((0.0..=1.0).contains(&point.utilised_idle) && (0.0..=1.0).contains(&point.collision_rate), "{point:?}");
    }
    for policy in ["oracle", "waiting"] {
        assert!(best_within(&points, policy, 0.1) <= best_within(&points, policy, 0.5));
    }
    serde_json::to_string(&points).expect("points are numbers and names");
    Ok(())
}
