//! Results for people: text tables, SVG charts, and one self-contained HTML page.

mod chart;
mod distribution;
mod fleet;
mod heat;
mod idleness;
mod legend;
mod number;
mod page;
pub mod printable;
mod text;

pub use chart::{Chart, Scale};
pub use distribution::{Curve, cdf_chart};
pub use fleet::{FleetVolume, fleet_page, reasons, slowest};
pub use heat::{HeatMap, Shape};
pub use idleness::idle_page;
pub use number::{number, percent};
pub use page::{Cell, Listing, Page, Section, made_by};
pub use text::Table;
