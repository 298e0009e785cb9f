//! Everything a slider may change between two substeps, with its meaning, unit, default and range.
//!
//! One table, [`params_table`], serves the scene file's `parameters`, the command line's `--set` and the panels.

use serde::{Deserialize, Serialize};

/// How air is treated by the pressure solve (CBAR §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Model {
    /// All air is a free surface at zero pressure: bubbles collapse.
    #[default]
    #[serde(rename = "free-surface")]
    FreeSurface,
    /// Every closed region of air keeps its volume through one shared pressure: bubbles glug, rise, push and hold.
    #[serde(rename = "constraint")]
    Constraint,
    /// Air is a second fluid with a density: the reference, and the only one for heavy air.
    #[serde(rename = "two-phase")]
    TwoPhase,
    /// Air is a second fluid with a density, and the inside of a bubble moves as one affine field without divergence, or
    /// in tiles of that kind (CBAR §5).
    #[serde(rename = "affine-bubbles")]
    AffineBubbles,
    /// The deep liquid moves in tiles, each one an affine field without divergence (CBAR §6); `bubbles` says how air is
    /// treated.
    #[serde(rename = "affine-tiles")]
    AffineTiles,
}

impl Model {
    /// Every model, in the order they are offered.
    pub const ALL: [Model; 5] =
        [Model::FreeSurface, Model::Constraint, Model::TwoPhase, Model::AffineBubbles, Model::AffineTiles];

    /// The name on the command line and in scene files.
    pub const fn name(self) -> &'static str {
        match self {
            Model::FreeSurface => "free-surface",
            Model::Constraint => "constraint",
            Model::TwoPhase => "two-phase",
            Model::AffineBubbles => "affine-bubbles",
            Model::AffineTiles => "affine-tiles",
        }
    }

    /// Whether air is a fluid with a density.
    pub const fn has_gas(self) -> bool {
        matches!(self, Model::TwoPhase | Model::AffineBubbles)
    }

    /// The model of that name.
    pub fn from_name(name: &str) -> Option<Model> {
        Model::ALL.into_iter().find(|model| model.name() == name)
    }
}

/// What happens to the air when the model is about something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bubbles {
    /// All air is a free surface.
    FreeSurface,
    /// Closed air keeps its volume.
    #[default]
    Constraint,
}

impl Bubbles {
    /// Both.
    pub const ALL: [Bubbles; 2] = [Bubbles::FreeSurface, Bubbles::Constraint];

    /// The name on the command line and in scene files.
    pub const fn name(self) -> &'static str {
        match self {
            Bubbles::FreeSurface => Model::FreeSurface.name(),
            Bubbles::Constraint => Model::Constraint.name(),
        }
    }
}

/// What speeds up the conjugate gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preconditioner {
    /// The multigrid V-cycle: what everyone should use.
    #[default]
    #[serde(rename = "multigrid")]
    Multigrid,
    /// The matrix's diagonal: a reference.
    #[serde(rename = "jacobi")]
    Jacobi,
    /// Incomplete Cholesky without fill: a reference.
    #[serde(rename = "incomplete-cholesky")]
    IncompleteCholesky,
    /// CBAR's Algorithm 1, sweeps around bubbles framing a V-cycle of the liquid: a reference.
    #[serde(rename = "algorithm-1")]
    BubblePalindrome,
    /// Minimal residuals of CBAR's indefinite form, eq. 22: a reference.
    #[serde(rename = "minres")]
    MinimalResiduals,
}

impl Preconditioner {
    /// Every preconditioner, the one to use first.
    pub const ALL: [Preconditioner; 5] = [
        Preconditioner::Multigrid,
        Preconditioner::Jacobi,
        Preconditioner::IncompleteCholesky,
        Preconditioner::BubblePalindrome,
        Preconditioner::MinimalResiduals,
    ];

    /// The name on the command line, in scene files and in the statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Preconditioner::Multigrid => "multigrid",
            Preconditioner::Jacobi => "jacobi",
            Preconditioner::IncompleteCholesky => "incomplete-cholesky",
            Preconditioner::BubblePalindrome => "algorithm-1",
            Preconditioner::MinimalResiduals => "minres",
        }
    }

    /// The name of the method in the statistics: a solve that fell back to the diagonal says so.
    pub const fn method(self, fallback: bool) -> &'static str {
        if fallback { "multigrid+jacobi" } else { self.name() }
    }
}

/// The parameters of a simulation. Grid size and domain are the scene's: changing those rebuilds.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// How air is treated.
    pub model: Model,
    /// Downward acceleration, m/s².
    pub gravity: f64,
    /// Density of the liquid, kg/m³.
    pub density: f64,
    /// Density of what fills the bubbles, kg/m³: matters to the models that give air a mass.
    pub air_density: f64,
    /// Share of FLIP in the transfer back to particles; the rest is APIC.
    pub flip: f64,
    /// Cells the fastest liquid may cross in one substep.
    pub cfl: f64,
    /// Fewest substeps a frame is cut into.
    pub min_substeps: u32,
    /// Particles along each axis of a newly filled cell.
    pub seeds_per_axis: u32,
    /// Random displacement of new particles, as a share of their spacing.
    pub jitter: f64,
    /// Keep the particle count of interior cells bounded.
    pub reseed: bool,
    /// Share of a lost volume that is given back per second, 1/s.
    pub volume_correction: f64,
    /// Share of a bubble's deviation from its rest volume that is corrected per second, 1/s.
    pub bubble_correction: f64,
    /// Relative residual at which the pressure solve stops.
    pub tolerance: f64,
    /// Divergence times dt per cell below which the solve stops whatever the relative residual.
    pub tolerance_floor: f64,
    /// Iterations after which the solve gives up.
    pub max_iterations: u32,
    /// Preconditioner of the pressure solve.
    pub preconditioner: Preconditioner,
    /// Smoothing sweeps on the way down and on the way up of the V-cycle.
    pub sweeps: u32,
    /// Start the solve from the last pressure.
    pub warm_start: bool,
    /// How air is treated in the model with tiles.
    pub bubbles: Bubbles,
    /// Width of tiles next to the bands, as a power of two in cells; 0 if the liquid is not divided.
    pub tile_size: u32,
    /// Width of tiles far away from the bands, as a power of two in cells.
    pub tile_size_deep: u32,
    /// Layers of ordinary cells below every surface.
    pub surface_band: u32,
    /// Layers of ordinary cells along every wall.
    pub wall_band: u32,
    /// Layers of ordinary cells inside every bubble's surface.
    pub bubble_band: u32,
    /// Width of the tiles inside bubbles, as a power of two in cells; 0 if a bubble is not divided.
    pub bubble_tile_size: u32,
    /// In the model with affine bubbles: the deep liquid moves in tiles as well.
    pub affine_liquid: bool,
    /// Liquid deep inside the tiles has no particles.
    pub reduced_advection: bool,
}

/// A parameter's value, whatever its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number.
    Number(f64),
    /// A switch.
    Switch(bool),
    /// One of a fixed set of names.
    Choice(&'static str),
}

impl std::fmt::Display for ParamValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamValue::Number(number) => write!(f, "{number}"),
            ParamValue::Switch(on) => write!(f, "{on}"),
            ParamValue::Choice(name) => write!(f, "{name}"),
        }
    }
}

/// What values a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number between two bounds, inclusive.
    Number {
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// A whole number between two bounds, inclusive.
    Whole {
        /// Smallest allowed.
        min: u32,
        /// Largest allowed.
        max: u32,
    },
    /// `true` or `false`.
    Switch,
    /// One of these names.
    Choice(&'static [&'static str]),
}

impl std::fmt::Display for ParamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamKind::Number { min, max } => write!(f, "a number from {min} to {max}"),
            ParamKind::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            ParamKind::Switch => write!(f, "true or false"),
            ParamKind::Choice(names) => write!(f, "one of {}", names.join(", ")),
        }
    }
}

/// A row of the parameter table.
pub struct ParamInfo {
    /// The name used everywhere: panel, scene file, `--set`.
    pub name: &'static str,
    /// SI unit, empty for plain numbers.
    pub unit: &'static str,
    /// What it does, in plain words.
    pub summary: &'static str,
    /// What is allowed.
    pub kind: ParamKind,
    /// Takes effect on the next substep; otherwise only when the scene restarts.
    pub live: bool,
    /// Reads it.
    pub get: fn(&Params) -> ParamValue,
    set: fn(&mut Params, &ParamValue),
}

/// Why a parameter could not be set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// No such name.
    #[error("unknown parameter `{name}`; parameters are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value of the wrong kind or out of range.
    #[error("parameter `{name}` is {found}, but must be {allowed}")]
    Invalid {
        /// Which parameter.
        name: &'static str,
        /// What was given.
        found: String,
        /// What would be right.
        allowed: ParamKind,
    },
}

macro_rules! table {
    ($($field:ident: $kind:ident($($range:tt)*), $unit:literal, $live:literal, $default:expr, $summary:literal;)*) => {
        /// All parameters, in the order the panel shows them.
        pub fn params_table() -> &'static [ParamInfo] {
            static TABLE: &[ParamInfo] = &[$(ParamInfo {
                name: stringify!($field),
                unit: $unit,
                summary: $summary,
                kind: table!(@kind $kind $($range)*),
                live: $live,
                get: |params| table!(@get $kind params.$field),
                set: |params, value| table!(@set $kind params.$field, value),
            }),*];
            TABLE
        }

        impl Default for Params {
            fn default() -> Self {
                Params { model: Model::default(), $($field: $default),* }
            }
        }
    };
    (@kind number $min:literal, $max:literal) => { ParamKind::Number { min: $min, max: $max } };
    (@kind whole $min:literal, $max:literal) => { ParamKind::Whole { min: $min, max: $max } };
    (@kind switch) => { ParamKind::Switch };
    (@kind preconditioner) => { ParamKind::Choice(&["multigrid", "jacobi", "incomplete-cholesky", "algorithm-1", "minres"]) };
    (@kind bubbles) => { ParamKind::Choice(&["free-surface", "constraint"]) };
    (@kind tile_size) => { ParamKind::Choice(&["8", "16", "32", "64"]) };
    (@kind divided) => { ParamKind::Choice(&["whole", "8", "16", "32", "64"]) };
    (@get bubbles $place:expr) => { ParamValue::Choice($place.name()) };
    (@get tile_size $place:expr) => { ParamValue::Choice(tile_size_name($place)) };
    (@get divided $place:expr) => { ParamValue::Choice(tile_size_name($place)) };
    (@set bubbles $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value
            && let Some(found) = Bubbles::ALL.into_iter().find(|b| b.name() == *name)
        {
            $place = found;
        }
    };
    (@set tile_size $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value
            && let Ok(size) = name.parse()
        {
            $place = size;
        }
    };
    (@set divided $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value {
            $place = name.parse().unwrap_or(0);
        }
    };
    (@get number $place:expr) => { ParamValue::Number($place) };
    (@get whole $place:expr) => { ParamValue::Number($place as f64) };
    (@get switch $place:expr) => { ParamValue::Switch($place) };
    (@get preconditioner $place:expr) => { ParamValue::Choice($place.name()) };
    (@set number $place:expr, $value:expr) => { if let ParamValue::Number(number) = $value { $place = *number } };
    (@set whole $place:expr, $value:expr) => { if let ParamValue::Number(number) = $value { $place = *number as u32 } };
    (@set switch $place:expr, $value:expr) => { if let ParamValue::Switch(on) = $value { $place = *on } };
    (@set preconditioner $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value
            && let Some(found) = Preconditioner::ALL.into_iter().find(|p| p.name() == *name)
        {
            $place = found;
        }
    };
}

table! {
    gravity: number(0.0, 100.0), "m/s²", true, 9.81, "Downward pull. 9.81 on Earth, 0 in orbit.";
    density: number(1.0, 20000.0), "kg/m³", true, 1000.0, "Mass of a cubic metre of the liquid; scales pressures and energies.";
    air_density: number(0.01, 20000.0), "kg/m³", true, 1.0, "Mass of a cubic metre of air, or of whatever fills the bubbles; the models two-phase and affine-bubbles feel it. Denser than the liquid, bubbles sink.";
    flip: number(0.0, 1.0), "", true, 0.97, "1 keeps every ripple (FLIP), 0 smooths them out (APIC).";
    cfl: number(0.25, 3.75), "cells", true, 3.75, "How far the fastest liquid may travel per substep. Smaller is slower and more accurate.";
    min_substeps: whole(1, 100), "", true, 1, "Fewest substeps per frame.";
    seeds_per_axis: whole(2, 3), "", false, 2, "Particles along each axis of a cell filled with liquid.";
    jitter: number(0.0, 1.0), "", false, 0.5, "Randomness of the particles' first places, as a share of their spacing.";
    reseed: switch(), "", true, true, "Add particles to starved cells and remove them from crowded ones.";
    volume_correction: number(0.0, 20.0), "1/s", true, 4.0, "How fast lost volume is given back; 0 lets it go.";
    bubble_correction: number(0.0, 120.0), "1/s", true, 60.0, "How fast a bubble that drifted is brought back to its volume; 0 lets it drift.";
    tolerance: number(1e-14, 0.1), "", true, 1e-5, "Relative residual at which the pressure solve stops.";
    tolerance_floor: number(0.0, 0.001), "", true, 1e-9, "Compression per substep too small to care about: the solve stops there.";
    max_iterations: whole(1, 100000), "", true, 400, "Iterations after which the pressure solve gives up.";
    preconditioner: preconditioner(), "", true, Preconditioner::Multigrid, "How the pressure solve is sped up; multigrid unless you are comparing.";
    sweeps: whole(1, 8), "", true, 2, "Smoothing sweeps down and up each multigrid level.";
    warm_start: switch(), "", true, true, "Start the pressure solve from the last pressure.";
    bubbles: bubbles(), "", true, Bubbles::Constraint, "Model affine-tiles: whether closed air keeps its volume or is a free surface.";
    tile_size: divided(), "cells", true, 16, "Tiles in the liquid: width of the tiles that move as one, the layer of ordinary cells between them included; or whole, without any between them.";
    tile_size_deep: tile_size(), "cells", true, 16, "Tiles in the liquid: width of tiles far from the surface; larger than the tile size makes them grow with depth.";
    surface_band: whole(1, 64), "cells", true, 9, "Tiles in the liquid: layers of ordinary cells below every surface. Too few (3) leave marks on the waves.";
    wall_band: whole(1, 64), "cells", true, 2, "Tiles: layers of ordinary cells along every wall.";
    bubble_band: whole(1, 64), "cells", true, 3, "Model affine-bubbles: layers of ordinary cells inside every bubble's surface.";
    bubble_tile_size: divided(), "cells", true, 0, "Model affine-bubbles: whether the inside of a bubble moves as a whole, or in tiles of this width.";
    affine_liquid: switch(), "", true, false, "Model affine-bubbles: let the deep liquid move in tiles as well.";
    reduced_advection: switch(), "", true, false, "Tiles in the liquid: no particles deep inside, where the grid carries the velocity by itself. Faster, and nearly the same.";
}

/// A tile size as the panel shows it.
const fn tile_size_name(size: u32) -> &'static str {
    match size {
        0 => "whole",
        1..=8 => "8",
        9..=16 => "16",
        17..=32 => "32",
        _ => "64",
    }
}

/// The parameter of that name.
pub fn param(name: &str) -> Result<&'static ParamInfo, ParamError> {
    params_table().iter().find(|info| info.name == name).ok_or_else(|| ParamError::Unknown {
        name: name.to_owned(),
        known: params_table().iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })
}

impl ParamInfo {
    /// Sets this parameter from a value, if it is allowed.
    pub fn assign(&self, params: &mut Params, value: &ParamValue) -> Result<(), ParamError> {
        let fits = match (self.kind, value) {
            (ParamKind::Number { min, max }, ParamValue::Number(n)) => {
                n.is_finite() && (min..=max).contains(n)
            }
            (ParamKind::Whole { min, max }, ParamValue::Number(n)) => {
                n.fract() == 0.0 && (min as f64..=max as f64).contains(n)
            }
            (ParamKind::Switch, ParamValue::Switch(_)) => true,
            (ParamKind::Choice(names), ParamValue::Choice(name)) => names.contains(name),
            _ => false,
        };
        if !fits {
            return Err(self.reject(value.to_string()));
        }
        (self.set)(params, value);
        Ok(())
    }

    /// Whether the model in use looks at it.
    pub fn acts_in(&self, params: &Params) -> bool {
        let tiled = params.model == Model::AffineTiles;
        let affine = params.model == Model::AffineBubbles;
        match self.name {
            "air_density" => params.model.has_gas(),
            "bubbles" => tiled,
            "tile_size" | "surface_band" | "reduced_advection" => tiled || affine && params.affine_liquid,
            "tile_size_deep" => (tiled || affine && params.affine_liquid) && params.tile_size > 0,
            "wall_band" => tiled || affine,
            "bubble_band" | "bubble_tile_size" | "affine_liquid" => affine,
            _ => true,
        }
    }

    /// The default value.
    pub fn default_value(&self) -> ParamValue {
        (self.get)(&Params::default())
    }

    /// Reads a value of this parameter's kind from text; ranges are left to [`Self::assign`].
    pub fn parse(&self, text: &str) -> Result<ParamValue, ParamError> {
        let text = text.trim();
        let parsed = match self.kind {
            ParamKind::Number { .. } | ParamKind::Whole { .. } => text.parse().ok().map(ParamValue::Number),
            ParamKind::Switch => text.parse().ok().map(ParamValue::Switch),
            ParamKind::Choice(names) => {
                names.iter().find(|name| **name == text).map(|name| ParamValue::Choice(name))
            }
        };
        parsed.ok_or_else(|| self.reject(format!("`{text}`")))
    }

    fn reject(&self, found: String) -> ParamError {
        ParamError::Invalid { name: self.name, found, allowed: self.kind }
    }
}

/// Sets a parameter from text, as `--set name=value` does.
pub fn set_param(params: &mut Params, name: &str, text: &str) -> Result<(), ParamError> {
    let info = param(name)?;
    info.assign(params, &info.parse(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_allowed_and_round_trips_through_text() {
        let defaults = Params::default();
        for info in params_table() {
            let mut params = defaults.clone();
            let value = (info.get)(&defaults);
            info.assign(&mut params, &value).unwrap_or_else(|error| panic!("{error}"));
            set_param(&mut params, info.name, &value.to_string()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(params, defaults, "{}", info.name);
        }
    }

    #[test]
    fn models_look_at_their_own_parameters() {
        let acting = |model: Model| {
            let params = Params { model, ..Params::default() };
            params_table().iter().filter(|info| info.acts_in(&params)).count()
        };
        let [free, constraint, two_phase, bubbles, tiles] = Model::ALL.map(acting);
        assert_eq!(free, constraint);
        assert_eq!([two_phase, bubbles, tiles].map(|count| count - free), [1, 5, 6]);
    }

    #[test]
    fn bad_values_are_refused_with_what_is_allowed() {
        let mut params = Params::default();
        for (name, text) in [("flip", "1.5"), ("flip", "NaN"), ("sweeps", "2.5"), ("reseed", "maybe")] {
            let message = set_param(&mut params, name, text).expect_err("must be refused").to_string();
            assert!(message.contains(name) && message.contains("must be"), "{message}");
        }
        assert!(set_param(&mut params, "grvity", "1").unwrap_err().to_string().contains("gravity"));
        assert_eq!(params, Params::default());
    }
}
