//! Disk models, of which some are strange.

use idlewise::disk::{Access, DiskModel, Interference, Point};
use idlewise::{Bytes, Nanos, Rate};

use crate::load::{size, time};
use crate::{Result, Unstructured};

/// Weeks of idle time hold no more requests than can be simulated one by one.
const FASTEST: Nanos = Nanos::from_millis(1);

/// A disk model as a file may hold it: the usual one, or any that is taken.
pub fn model(from: &mut Unstructured) -> Result<DiskModel> {
    let usual = DiskModel::ultrastar_15k450();
    if from.ratio(3u8, 4u8)? {
        return Ok(usual);
    }
    let (mut verify, mut last) = (Vec::new(), Point::new(Bytes(0), Nanos(0)));
    for _ in 0..from.int_in_range(2..=4u8)? {
        last = Point::new(Bytes(last.size.0 + size(from)?.0), Nanos(last.time.0.max(FASTEST.0) + time(from)?.0));
        last.interference = Interference::new(f64::from(from.int_in_range(0..=4u8)?) / 4.0);
        verify.push(last);
    }
    let access = Some(Access { position: time(from)?, rate: Rate(size(from)?.0) });
    let model = DiskModel { verify, read: access, write: access, ..usual };
    Ok(DiskModel::from_toml(&model.to_toml()).expect("grows"))
}
