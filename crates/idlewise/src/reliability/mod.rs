//! What scrubbing buys: how long until data is lost, how long errors stay unseen.

mod errors;
mod latent;
pub mod monte_carlo;

pub use errors::{Errors, dirty_share, with_dirty_parity};
pub use latent::{Bursts, mlet, mlet_simulated};
