//! Wall time by stage.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Serialize, Serializer};

/// A part of a substep, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Moving particles and air; sources and drains.
    Advect,
    /// Particles by cell, and the blocks they need.
    Sort,
    /// Solids on the grid.
    Boundary,
    /// Velocities from particles to faces.
    Transfer,
    /// The liquid's signed distance.
    Surface,
    /// What each cell is made of.
    Label,
    /// Connected components of air and liquid.
    Fill,
    /// Bubbles known again, and their volumes.
    Track,
    /// Which cells have a pressure, and which move as a whole.
    Tiles,
    /// Viscosity, if there is any.
    Viscosity,
    /// The linear system of the pressure.
    Assemble,
    /// Its solution.
    Solve,
    /// The new velocity, and its continuation around the liquid.
    Extrapolate,
    /// Velocities from faces back to particles.
    Return,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 14] = [
        Stage::Advect,
        Stage::Sort,
        Stage::Boundary,
        Stage::Transfer,
        Stage::Surface,
        Stage::Label,
        Stage::Fill,
        Stage::Track,
        Stage::Tiles,
        Stage::Viscosity,
        Stage::Assemble,
        Stage::Solve,
        Stage::Extrapolate,
        Stage::Return,
    ];

    /// The name in the statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Advect => "advect",
            Stage::Sort => "sort",
            Stage::Boundary => "boundary",
            Stage::Transfer => "transfer",
            Stage::Surface => "surface",
            Stage::Label => "label",
            Stage::Fill => "fill",
            Stage::Track => "track",
            Stage::Tiles => "tiles",
            Stage::Viscosity => "viscosity",
            Stage::Assemble => "assemble",
            Stage::Solve => "solve",
            Stage::Extrapolate => "extrapolate",
            Stage::Return => "return",
        }
    }

    /// Whether its work grows with the particles; that of the others grows with the liquid cells.
    pub const fn grows_with_particles(self) -> bool {
        matches!(self, Stage::Advect | Stage::Sort | Stage::Transfer | Stage::Surface | Stage::Return)
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Seconds spent in each stage, added up over substeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTimes([f64; Stage::ALL.len()]);

impl StageTimes {
    /// Adds to a stage.
    pub fn add(&mut self, stage: Stage, seconds: f64) {
        self.0[stage as usize] += seconds;
    }

    /// Seconds spent in a stage.
    pub fn of(&self, stage: Stage) -> f64 {
        self.0[stage as usize]
    }

    /// Every stage with its seconds, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Stage, f64)> + '_ {
        Stage::ALL.into_iter().map(|stage| (stage, self.of(stage)))
    }
}

/// Wall time of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameTimes {
    /// From its start to its end, statistics included.
    pub total: f64,
    /// By stage.
    pub stages: StageTimes,
}

impl FrameTimes {
    /// Adds another frame's.
    pub fn add(&mut self, other: &FrameTimes) {
        self.total += other.total;
        other.stages.iter().for_each(|(stage, seconds)| self.stages.add(stage, seconds));
    }
}

impl Serialize for FrameTimes {
    /// A map of `total` and every stage, even of those that took no time, by name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stages = self.stages.iter().map(|(stage, seconds)| (stage.name(), seconds));
        let by_name: BTreeMap<_, _> = stages.chain([("total", self.total)]).collect();
        serializer.collect_map(by_name)
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
    pub fn lap(&mut self, stage: Stage) {
        let now = Instant::now();
        self.times.add(stage, (now - self.last).as_secs_f64());
        self.last = now;
    }

    /// Ends a lap whose parts were timed elsewhere.
    pub fn laps<const N: usize>(&mut self, parts: [(Stage, f64); N]) {
        parts.into_iter().for_each(|(stage, seconds)| self.times.add(stage, seconds));
        self.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_a_place_and_a_name_of_its_own() {
        for (place, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place, "{stage}");
            assert!(Stage::ALL[..place].iter().all(|other| other.name() != stage.name()), "{stage}");
        }
    }

    #[test]
    fn statistics_list_every_stage_and_the_total() {
        let mut times = FrameTimes { total: 3.0, ..FrameTimes::default() };
        times.stages.add(Stage::Solve, 1.0);
        times.stages.add(Stage::Solve, 0.5);
        let json = serde_json::to_value(times).expect("plain numbers");
        assert_eq!(json["solve"], 1.5);
        assert_eq!(json["total"], 3.0);
        assert_eq!(json.as_object().map(|map| map.len()), Some(Stage::ALL.len() + 1));
    }
}
