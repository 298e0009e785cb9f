//! Wall time by stage.

use std::collections::BTreeMap;
use std::time::Instant;

/// Seconds spent in each stage, added up over substeps.
#[derive(Clone, Debug, Default)]
pub struct StageTimes(BTreeMap<&'static str, f64>);

impl StageTimes {
    /// All stages, so that every one is reported, even when it took no time.
    pub const STAGES: [&'static str; 13] = [
        "advect",
        "sort",
        "boundary",
        "transfer",
        "surface",
        "label",
        "fill",
        "track",
        "tiles",
        "assemble",
        "solve",
        "extrapolate",
        "return",
    ];

    /// Zero everywhere.
    pub fn new() -> Self {
        StageTimes(Self::STAGES.into_iter().map(|stage| (stage, 0.0)).collect())
    }

    /// Adds to a stage.
    pub fn add(&mut self, stage: &'static str, seconds: f64) {
        *self.0.entry(stage).or_default() += seconds;
    }

    /// Seconds by stage.
    pub fn into_inner(self) -> BTreeMap<&'static str, f64> {
        self.0
    }
}

/// Laps of a substep.
pub struct StageClock<'a> {
    times: &'a mut StageTimes,
    last: Instant,
}

impl<'a> StageClock<'a> {
    /// Starts the first lap.
    pub fn start(times: &'a mut StageTimes) -> Self {
        StageClock { times, last: Instant::now() }
    }

    /// Ends a lap and starts the next.
    pub fn lap(&mut self, stage: &'static str) {
        let now = Instant::now();
        self.times.add(stage, (now - self.last).as_secs_f64());
        self.last = now;
    }

    /// Ends a lap whose parts were timed elsewhere.
    pub fn laps<const N: usize>(&mut self, parts: [(&'static str, f64); N]) {
        parts.into_iter().for_each(|(stage, seconds)| self.times.add(stage, seconds));
        self.last = Instant::now();
    }
}
