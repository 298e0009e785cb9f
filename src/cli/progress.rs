//! The progress bar.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sim::FrameReport;

/// A bar on standard error, when that is a terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    last: Instant,
}

impl Progress {
    /// A bar over `frames` frames; hidden when `quiet`.
    pub fn new(title: &str, frames: usize, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(frames as u64), target);
        let template = "{prefix} {bar:24} frame {pos}/{len}{msg}  ETA {eta}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
        bar.set_prefix(title.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Progress { bar, last: Instant::now() }
    }

    /// Begins behind frames that were done before.
    pub fn skip(&self, frames: usize) {
        self.bar.set_position(frames as u64);
        self.bar.reset_eta();
    }

    /// A frame is done.
    pub fn frame(&mut self, report: &FrameReport) {
        let seconds = self.last.elapsed().as_secs_f64().max(1e-9);
        self.last = Instant::now();
        let iterations: usize = report.solve.iter().map(|solve| solve.iterations).sum();
        // Particles moved per second: every substep moves all of them.
        let rate = (report.particles * report.substeps) as f64 / seconds;
        self.bar.set_message(format!(
            "  t {:.2} s  {} substeps  {} iterations  {:.1} M particles/s",
            report.time,
            report.substeps,
            iterations,
            rate / 1e6
        ));
        self.bar.inc(1);
    }

    /// A frame is done, of which there is nothing to tell.
    pub fn tick(&self) {
        self.bar.inc(1);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
