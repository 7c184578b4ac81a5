//! A bar with the time left, on a terminal, for what takes over a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::screen;

/// Shares are counted in thousandths.
const WHOLE: u64 = 1000;
/// How often it is drawn, at most.
const HZ: u8 = 20;

/// A bar that appears when its work has taken a second.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

impl Progress {
    /// A bar named after its work.
    pub fn new(work: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(WHOLE), ProgressDrawTarget::hidden());
        let style =
            ProgressStyle::with_template("{msg} [{bar:40}] {percent}% left {eta}").expect("the template is valid");
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(work);
        Self { bar, began: Instant::now() }
    }

    /// Shows the share done, 0 to 1; it never goes back.
    pub fn share(&self, done: f64) {
        if screen::is_behind() {
            return;
        }
        if self.bar.is_hidden() && self.began.elapsed() > Duration::from_secs(1) {
            self.bar.set_draw_target(screen::target(HZ));
        }
        self.bar.set_position(self.bar.position().max((done * WHOLE as f64) as u64));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
