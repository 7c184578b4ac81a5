//! What the service shows, and how it is reached.

mod charts;
pub mod http;
pub mod listen;
pub mod metrics;
pub mod page;

pub use http::{Request, Response};
pub use listen::From;
