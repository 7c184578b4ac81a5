//! When disks are verified: windows of the week, what a disk's hours have given, when a pass will end, and when it has to.
//!
//! ```text
//! Week, what each hour has given ─┬─► forecast ─► Forecast ─┬─► Deadline::begins   when the next pass begins
//! Windows, when work is allowed ──┘                         └─► Deadline::standing  in time, behind, overdue; what to spend
//! ```
//!
//! Nothing here reads a clock: a moment is told as seconds since 1970 and as the minute of the week that clocks on the wall show then.
//! So whole months can be played.

mod deadline;
mod forecast;
mod week;
mod windows;

pub use deadline::{Deadline, Standing};
pub use forecast::{Forecast, forecast};
pub use week::{Hour, Week};
pub use windows::{Windows, WindowsError};

/// Minutes in a week, which begins on Monday at 00:00.
pub const WEEK: u32 = 7 * 24 * 60;
