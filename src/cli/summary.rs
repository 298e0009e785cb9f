//! The closing table of a run.

use std::time::Instant;

use super::table::{Table, grouped};
use crate::sim::FrameReport;

/// What the closing table tells, gathered frame by frame.
#[derive(Debug)]
pub struct Summary {
    started: Instant,
    frames: usize,
    substeps: usize,
    solves: usize,
    iterations: usize,
    most_iterations: usize,
    first_volume: Option<f64>,
    first_smoke: Option<f64>,
    last: FrameReport,
    /// The first few different warnings, with their frames.
    warnings: Vec<(usize, String)>,
    warned: usize,
}

impl Summary {
    /// Starts the clock.
    pub fn start() -> Self {
        Summary {
            started: Instant::now(),
            frames: 0,
            substeps: 0,
            solves: 0,
            iterations: 0,
            most_iterations: 0,
            first_volume: None,
            first_smoke: None,
            last: FrameReport::default(),
            warnings: Vec::new(),
            warned: 0,
        }
    }

    /// Takes in a frame.
    pub fn add(&mut self, report: &FrameReport) {
        self.frames += 1;
        self.substeps += report.substeps;
        for solve in &report.solve {
            self.solves += 1;
            self.iterations += solve.iterations;
            self.most_iterations = self.most_iterations.max(solve.iterations);
        }
        self.first_volume.get_or_insert(report.liquid.volume);
        if let Some(smoke) = &report.smoke {
            self.first_smoke.get_or_insert(smoke.mass);
        }
        self.warned += usize::from(!report.warnings.is_empty());
        for warning in &report.warnings {
            if self.warnings.len() < 3 && self.warnings.iter().all(|(_, known)| known != warning) {
                self.warnings.push((report.frame, warning.clone()));
            }
        }
        self.last = report.clone();
    }

    /// Frames taken in.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The table.
    pub fn table(&self, threads: usize, files: Option<String>) -> Table {
        let wall = self.started.elapsed().as_secs_f64();
        let per = |total: f64, count: usize| if count == 0 { 0.0 } else { total / count as f64 };
        let unknowns = &self.last.unknowns;
        let first = self.first_volume.unwrap_or(0.0);
        let drift = if first > 0.0 { 100.0 * (self.last.liquid.volume / first - 1.0) } else { 0.0 };
        let size: Vec<_> = self.last.cells_xyz.iter().map(usize::to_string).collect();
        let mut table = Table::default();
        table
            .row(["model".to_owned(), self.last.model.to_owned()])
            .row(["cells".to_owned(), size.join(" × ")])
            .row(["frames".to_owned(), self.frames.to_string()])
            .row(["simulated".to_owned(), format!("{:.3} s", self.last.time)])
            .row(["wall time".to_owned(), format!("{wall:.2} s on {threads} threads")])
            .row(["per substep".to_owned(), {
                let millis = per(wall * 1e3, self.substeps);
                format!("{millis:.1} ms, {} substeps", self.substeps)
            }])
            .row(["particles".to_owned(), grouped(self.last.particles)])
            .row(["unknowns".to_owned(), grouped(unknowns.pressure + unknowns.bubble + unknowns.body)])
            .row(["iterations".to_owned(), {
                let mean = per(self.iterations as f64, self.solves);
                format!("{mean:.1} per solve, {} at most", self.most_iterations)
            }])
            .row(["volume drift".to_owned(), format!("{drift:+.3} % since frame 1")]);
        if let Some((first, last)) = self.first_smoke.zip(self.last.smoke.as_ref()) {
            let drift = if first > 0.0 { 100.0 * (last.mass / first - 1.0) } else { 0.0 };
            table.row(["smoke".to_owned(), format!("{:.4} kg, {drift:+.5} % since frame 1", last.mass)]);
        }
        if let Some(files) = files {
            table.row(["files".to_owned(), files]);
        }
        if self.warned > 0 {
            table.row(["warnings".to_owned(), format!("in {} frames", self.warned)]);
            for (frame, warning) in &self.warnings {
                table.row([String::new(), format!("frame {frame}: {warning}")]);
            }
        }
        table
    }
}
