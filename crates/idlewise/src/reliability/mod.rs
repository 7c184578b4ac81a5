//! What scrubbing buys: how long until data is lost, how long errors stay unseen, and what a trace's idle times allow of it.

mod activities;
mod array;
mod array_played;
mod drives;
mod errors;
mod gains;
mod latent;
pub mod monte_carlo;

pub use activities::{Activities, Activity, Passes, Policies, Study, Updates};
pub use array::{Array, Layout, LayoutError, Losses};
pub use array_played::{PlayedArray, play};
pub use drives::{Drives, Rebuild, YEAR};
pub use errors::{Errors, dirty_share, with_dirty_parity};
pub use gains::{Gains, Protection};
pub use latent::{Bursts, mlet, mlet_simulated};
