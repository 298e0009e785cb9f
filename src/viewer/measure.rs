//! How long things take in the window: `glug view --measure S`.

use std::time::{Duration, Instant};

use bevy::app::AppExit;
use bevy::prelude::*;

use super::session::Session;

/// Frames that are not counted at the start of each part: pipelines are compiled there.
const WARM_UP: Duration = Duration::from_secs(3);

/// Times of the main thread.
#[derive(Resource, Default, Debug)]
pub struct FrameTimings {
    /// Milliseconds between frames.
    pub frames: Vec<f64>,
    /// Milliseconds to receive, diff and upload a snapshot.
    pub snapshots: Vec<f64>,
    open: Option<Duration>,
    on: bool,
}

impl FrameTimings {
    /// A snapshot arrived; that much was spent on receiving and diffing.
    pub fn begin_snapshot(&mut self, spent: Duration) {
        self.open = Some(spent);
    }

    /// The pictures are up to date; that much was spent on it.
    pub fn end_snapshot(&mut self, spent: Duration) {
        if let Some(before) = self.open.take()
            && self.on
        {
            self.snapshots.push(1000.0 * (before + spent).as_secs_f64());
        }
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.snapshots.clear();
    }

    fn report(&mut self, state: &str) -> String {
        let frames = spread(&mut self.frames);
        let snapshots = spread(&mut self.snapshots);
        let count = self.snapshots.len();
        format!(
            "{state:8} frame {frames}   receive, diff, upload {snapshots} ({count} snapshots, {} frames)",
            self.frames.len()
        )
    }
}

/// Median and 95th percentile in words.
fn spread(values: &mut [f64]) -> String {
    if values.is_empty() {
        return "none".into();
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    format!("median {:.2} ms, 95 % below {:.2} ms", at(0.5), at(0.95))
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Running,
    Paused,
}

/// Half the time running, half paused; then the figures, then the end.
#[derive(Resource)]
pub struct Measurement {
    seconds: f64,
    part: Part,
    began: Option<Instant>,
    last: Instant,
}

impl Measurement {
    /// For that many seconds.
    pub fn new(seconds: f64) -> Self {
        Measurement { seconds, part: Part::Running, began: None, last: Instant::now() }
    }
}

/// Counts a frame.
pub fn measure(
    mut measurement: ResMut<Measurement>,
    mut timings: ResMut<FrameTimings>,
    mut session: ResMut<Session>,
    mut exit: MessageWriter<AppExit>,
) {
    let now = Instant::now();
    let began = *measurement.began.get_or_insert(now);
    let last = std::mem::replace(&mut measurement.last, now);
    if now - began < WARM_UP {
        timings.on = true;
        timings.clear();
        return;
    }
    timings.frames.push(1000.0 * (now - last).as_secs_f64());
    if (now - began - WARM_UP).as_secs_f64() < measurement.seconds / 2.0 {
        return;
    }
    match measurement.part {
        Part::Running => {
            println!("{}", timings.report("running"));
            session.set_playing(false);
            measurement.part = Part::Paused;
            measurement.began = None;
        }
        Part::Paused => {
            println!("{}", timings.report("paused"));
            exit.write(AppExit::Success);
        }
    }
}
