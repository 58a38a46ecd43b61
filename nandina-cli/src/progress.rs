//! A progress bar for anything over a second. It goes to standard error, and only to a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows nothing in its first second.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    pub fn new(operations: u64) -> Self {
        Self::with(operations, "{wide_bar} {human_pos} of {human_len} operations, {eta} left")
    }

    /// Makes a progress bar for reading a file.
    pub fn of_bytes(bytes: u64) -> Self {
        Self::with(bytes, "{wide_bar} {bytes} of {total_bytes} read, {eta} left")
    }

    /// Makes a progress bar for requests of a trace.
    pub fn of_requests(requests: u64) -> Self {
        Self::with(requests, "{wide_bar} {human_pos} of {human_len} requests, {eta} left")
    }

    fn with(length: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, started: Instant::now() }
    }

    pub fn advance(&self, steps: u64) {
        if self.bar.is_hidden() && self.started.elapsed() > Duration::from_secs(1) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(steps);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
