//! Service-time models of disks: how long a request of a given size takes.

mod mechanical;
mod model;
mod presets;

pub use mechanical::{Geometry, Mechanical};
pub use model::{Access, DiskModel, LARGEST_REQUEST, ModelError, Point, SMALLEST_REQUEST};
pub use presets::{PRESETS, Preset};
