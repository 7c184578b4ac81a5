//! From the first byte to the last (DSN 2012, section II).

use super::{Extent, Order, Place, ScanOrder, Surface, common};
use crate::Bytes;

/// The sequential order.
#[derive(Clone, Debug)]
pub struct Sequential {
    position: u64,
    end: u64,
}

impl Sequential {
    /// Goes from `position` to the end of a device of `size` bytes.
    pub fn new(size: Bytes, position: Bytes) -> Self {
        Self { position: position.0.min(size.0), end: size.0 }
    }

    pub(super) fn make(_: &Order, device: Surface, place: &Place) -> Result<Box<dyn ScanOrder>, String> {
        if *place != Place::after(place.course) {
            return Err("the place is of another order".into());
        }
        Ok(Box::new(Self::new(device.size, Bytes(place.course))))
    }
}

impl ScanOrder for Sequential {
    fn next(&mut self, size: Bytes) -> Option<Extent> {
        let length = size.0.min(self.end - self.position);
        let extent = Extent { offset: Bytes(self.position), length: Bytes(length) };
        self.position += length;
        (length > 0).then_some(extent)
    }

    fn place(&self) -> Place {
        Place::after(self.position)
    }

    fn behind(&self, stretch: Extent) -> Bytes {
        Bytes(common((stretch.offset.0, stretch.end().0), (0, self.position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_every_byte_once_and_resumes_anywhere() {
        let mut seen = 0;
        let mut order = Sequential::new(Bytes(1_000), Bytes(0));
        while let Some(extent) = order.next(Bytes(300)) {
            assert_eq!(extent.offset.0, seen);
            seen = extent.end().0;
            let around = Extent { offset: Bytes(seen - 100), length: Bytes(300) };
            assert_eq!(order.behind(around), Bytes(100));
            order = Sequential::new(Bytes(1_000), Bytes(order.place().course));
        }
        assert_eq!(seen, 1_000);
        assert!(Sequential::new(Bytes(1_000), Bytes(5_000)).next(Bytes(1)).is_none());
    }
}
