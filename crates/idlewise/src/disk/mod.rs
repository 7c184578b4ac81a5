//! Service-time models of disks: how long a request of a given size takes.

mod cache;
mod flash;
mod interference;
mod mechanical;
mod model;
#[cfg(feature = "files")]
mod presets;

pub use cache::{Cache, Cached};
pub use flash::{Flash, FlashGeometry};
pub use interference::{Interference, Timing};
pub use mechanical::{Geometry, Mechanical};
pub use model::{Access, DiskModel, LARGEST_REQUEST, ModelError, Point, SMALLEST_REQUEST};
#[cfg(feature = "files")]
pub use presets::{PRESETS, Preset};
