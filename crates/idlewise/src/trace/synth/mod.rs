//! Traces made up: the foreground loads of the papers, stand-ins for traces that nobody can download, and fleets of any size.

mod fleet;
mod load;
mod published;
mod shaped;

pub use fleet::{Batches, Fleet};
pub use load::{Load, LoadKind};
pub use published::{PUBLISHED, Published};
pub use shaped::{Files, IdleKind, Shape, SynthError};

use rand_pcg::Pcg64;

/// The generator of all synthetic traces: named, so that a seed gives the same trace everywhere.
fn generator(seed: u64) -> Pcg64 {
    rand::SeedableRng::seed_from_u64(seed)
}
