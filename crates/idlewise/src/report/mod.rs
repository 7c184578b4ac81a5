//! Results for people: text tables, SVG charts, and one self-contained HTML page.

mod chart;
mod page;
mod text;

pub use chart::{Curve, cdf_chart};
pub use page::{Page, Section};
pub use text::Table;
