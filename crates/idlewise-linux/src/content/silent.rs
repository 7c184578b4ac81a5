//! An owner that is known and cannot be asked: all that is read of it counts as not compared.

use idlewise::order::Extent;

use super::{Content, Judged, Unasked};

/// Why it cannot be asked.
pub struct Silent(pub String);

impl Content for Silent {
    fn judge(&mut self, extent: Extent, _read: &[&[u8]]) -> Result<Judged, Unasked> {
        Ok(Judged { unasked: Some((extent.length.0, self.0.clone().into())), ..Judged::default() })
    }

    fn unit(&self) -> u64 {
        1
    }

    fn owners(&mut self, _extent: Extent) -> Result<Vec<String>, Unasked> {
        Ok(Vec::new())
    }
}
