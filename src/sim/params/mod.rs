//! Everything a slider may change between two substeps, with its meaning, unit, default and range.
//!
//! One table serves [`Params`] itself, the scene file's `parameters`, the command line's `--set`, the panels and saved
//! files: a new parameter is a new row.

mod choices;
mod info;

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::linear::PreconditionerKind;

pub use choices::{Bubbles, Model, SolverKind, WallCells};
pub use info::{Group, Level, ParamError, ParamInfo, ParamKind, ParamValue};

/// Models whose air has mass.
const GAS: &[Model] = &[Model::TwoPhase, Model::AffineBubbles];
/// Models whose air has none: where it has mass it is in every gap, or has to flow there.
const WEIGHTLESS: &[Model] = &[Model::FreeSurface, Model::Constraint, Model::AffineTiles];
/// Models with tiles.
const TILED: &[Model] = &[Model::AffineBubbles, Model::AffineTiles];
/// Every model.
const ALL: &[Model] = &Model::ALL;

macro_rules! table {
    ($($group:ident { $(
        $field:ident: $kind:ident($($range:tt)*), $unit:literal, $default:expr, $live:ident, $level:ident,
        $models:expr $(, if $condition:path)?; $title:literal, $summary:literal;
    )* })*) => {
        /// The parameters of a simulation. Grid size and domain are the scene's: changing those rebuilds.
        ///
        /// ```
        /// use glug::sim::{Model, Params, set_param};
        ///
        /// let mut params = Params { model: Model::Constraint, ..Params::default() };
        /// set_param(&mut params, "gravity", "1.6").expect("within the range of its row in the table");
        /// assert_eq!(params.gravity, 1.6);
        /// let error = set_param(&mut params, "gravty", "1.6").expect_err("no such parameter");
        /// assert!(error.to_string().contains("gravity"), "{error}");
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        pub struct Params {
            $($(
                #[doc = $summary]
                pub $field: table!(@type $kind $($range)*),
            )*)*
        }

        /// All parameters, in the order the panel shows them.
        pub fn params_table() -> &'static [ParamInfo] {
            static TABLE: &[ParamInfo] = &[$($(ParamInfo {
                name: stringify!($field),
                title: $title,
                unit: $unit,
                summary: $summary,
                kind: table!(@kind $kind $($range)*),
                live: table!(@live $live),
                group: Group::$group,
                level: Level::$level,
                models: $models,
                condition: table!(@condition $($condition)?),
                get: |params| table!(@get $kind params.$field),
                set: |params, value| table!(@set $kind($($range)*) params.$field, value),
            }),*),*];
            TABLE
        }

        impl Default for Params {
            fn default() -> Self {
                Params { $($($field: $default),*),* }
            }
        }
    };
    (@type number $($range:tt)*) => { f64 };
    (@type whole $($range:tt)*) => { u32 };
    (@type switch) => { bool };
    (@type choice $type:ident) => { $type };
    (@type tile_width $($names:tt)*) => { u32 };
    (@type layers $($names:tt)*) => { u32 };
    (@kind number $min:literal, $max:literal) => { ParamKind::Number { min: $min, max: $max } };
    (@kind whole $min:literal, $max:literal) => { ParamKind::Whole { min: $min, max: $max } };
    (@kind switch) => { ParamKind::Switch };
    (@kind choice $type:ident) => { ParamKind::Choice($type::NAMES) };
    (@kind tile_width $($names:literal),*) => { ParamKind::Choice(&[$($names),*]) };
    (@kind layers $($names:literal),*) => { ParamKind::Choice(&[$($names),*]) };
    (@live live) => { true };
    (@live restarts) => { false };
    (@condition) => { |_| true };
    (@condition $condition:path) => { $condition };
    (@get number $place:expr) => { ParamValue::Number($place) };
    (@get whole $place:expr) => { ParamValue::Number($place as f64) };
    (@get switch $place:expr) => { ParamValue::Switch($place) };
    (@get choice $place:expr) => { ParamValue::Choice($place.name()) };
    (@get tile_width $place:expr) => { ParamValue::Choice(tile_width_name($place)) };
    (@get layers $place:expr) => { ParamValue::Choice(layers_name($place)) };
    (@set number($($range:tt)*) $place:expr, $value:expr) => {
        if let ParamValue::Number(number) = $value { $place = *number }
    };
    (@set whole($($range:tt)*) $place:expr, $value:expr) => {
        if let ParamValue::Number(number) = $value { $place = *number as u32 }
    };
    (@set switch() $place:expr, $value:expr) => {
        if let ParamValue::Switch(on) = $value { $place = *on }
    };
    (@set choice($type:ident) $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value && let Some(found) = $type::from_name(name) { $place = found }
    };
    (@set tile_width($($range:tt)*) $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value { $place = name.parse().unwrap_or(0) }
    };
    (@set layers($($range:tt)*) $place:expr, $value:expr) => {
        if let ParamValue::Choice(name) = $value { $place = name.parse().unwrap_or(0) }
    };
}

// Name: kind(range), unit, default, live or restarts, level, models that look at it and when; title, summary.
table! {
    Physics {
        model: choice(Model), "", Model::FreeSurface, live, Picture, ALL;
            "Model", "How air is treated.";
        gravity: number(0.0, 100.0), "m/s²", 9.81, live, Basic, ALL;
            "Gravity", "Downward pull. 9.81 on Earth, 0 in orbit.";
        density: number(1.0, 20000.0), "kg/m³", 1000.0, live, Basic, ALL;
            "Density", "Mass of a cubic metre of the liquid; scales pressures and energies.";
        air_density: number(0.01, 20000.0), "kg/m³", 1.0, live, Basic, GAS;
            "Air density", "Mass of a cubic metre of air, or of whatever fills the bubbles; the models two-phase and affine-bubbles feel it. Denser than the liquid, bubbles sink.";
        viscosity: number(0.0, 10000.0), "Pa·s", 0.0, live, Basic, ALL;
            "Viscosity", "How thick the liquid is: 0.001 is water, 0.1 oil, 1 glycerine, 10 honey. It sticks to walls, but to slippery ones. 0 leaves viscosity out.";
    }
    Motion {
        walls: choice(WallCells), "", WallCells::Cut, restarts, Advanced, ALL;
            "Walls", "What solids are on the grid: cut cells follow their surface, voxels are stairs of whole cells, the way of old.";
        walls_let_go: switch(), "", false, live, Basic, WEIGHTLESS;
            "Walls let go", "Liquid may leave walls that it would otherwise stick to by suction. Where air keeps its volume, air has to get in.";
        suction: number(0.0, 1000000.0), "Pa", 0.0, live, Advanced, WEIGHTLESS, if Params::lets_go;
            "Suction", "Walls let go: how far pressure at a wall may fall below that of the air before liquid leaves it.";
        flip: number(0.0, 1.0), "", 0.97, live, Basic, ALL;
            "FLIP", "1 keeps every ripple (FLIP), 0 smooths them out (APIC).";
        cfl: number(0.25, 3.75), "cells", 3.75, live, Basic, ALL;
            "CFL", "How far the fastest liquid may travel per substep. Smaller is slower and more accurate.";
        min_substeps: whole(1, 100), "", 1, live, Basic, ALL;
            "Min substeps", "Fewest substeps per frame.";
    }
    Particles {
        seeds_per_axis: whole(2, 3), "", 2, restarts, Basic, ALL;
            "Seeds per axis", "Particles along each axis of a cell filled with liquid.";
        jitter: number(0.0, 1.0), "", 0.5, restarts, Advanced, ALL;
            "Jitter", "Randomness of the particles' first places, as a share of their spacing.";
        reseed: switch(), "", true, live, Basic, ALL;
            "Reseed", "Add particles to starved cells and remove them from crowded ones.";
        narrow_band: layers("full", "6", "8", "10", "12", "16", "24", "32"), "cells", 6, live, Basic, ALL;
            "Narrow band", "Cells of particles below every surface; deeper liquid is carried by the grid alone, faster and with less memory. full: particles everywhere.";
    }
    Smoke {
        smoke_weight: number(0.0, 100.0), "", 1.0, live, Basic, GAS;
            "Smoke weight", "How much smoke pulls the air down: 1 is its mass, against that of the air; 0 lets it float.";
        heat_lift: number(0.0, 1.0), "1/K", 0.0034, live, Basic, GAS;
            "Heat lift", "The share of its weight that air loses per kelvin; 0.0034 for air in a room.";
        cooling: number(0.0, 100.0), "1/s", 0.0, live, Basic, GAS;
            "Cooling", "How fast hot air takes on the temperature of its surroundings; 0 keeps all heat.";
        smoke_fading: number(0.0, 100.0), "1/s", 0.0, live, Basic, GAS;
            "Smoke fading", "How fast smoke vanishes; 0 keeps all of it.";
    }
    Volume {
        volume_correction: number(0.0, 120.0), "1/s", 40.0, live, Basic, ALL;
            "Volume correction", "How fast liquid that shrank or swelled is brought back to its volume, beside solids that move no faster than 4; 0 lets it drift.";
        bubble_correction: number(0.0, 120.0), "1/s", 60.0, live, Advanced, ALL;
            "Bubble correction", "How fast a bubble that drifted is brought back to its volume; 0 lets it drift.";
    }
    Pressure {
        tolerance: number(1e-14, 0.1), "", 1e-5, live, Advanced, ALL;
            "Tolerance", "Relative residual at which the pressure solve stops.";
        tolerance_floor: number(0.0, 0.001), "", 1e-9, live, Advanced, ALL;
            "Tolerance floor", "Compression per substep too small to care about: the solve stops there.";
        max_iterations: whole(1, 100000), "", 400, live, Advanced, ALL;
            "Max iterations", "Iterations after which the pressure solve gives up.";
        preconditioner: choice(PreconditionerKind), "", PreconditionerKind::Multigrid, live, Advanced, ALL;
            "Preconditioner", "How the pressure solve is sped up; multigrid unless you are comparing.";
        sweeps: whole(1, 8), "", 2, live, Advanced, ALL;
            "Sweeps", "Smoothing sweeps down and up each multigrid level.";
        warm_start: switch(), "", true, live, Advanced, ALL;
            "Warm start", "Start the pressure solve from the last pressure.";
    }
    Tiles {
        bubbles: choice(Bubbles), "", Bubbles::Constraint, live, Basic, &[Model::AffineTiles];
            "Bubbles", "Model affine-tiles: whether closed air keeps its volume or is a free surface.";
        tile_size: tile_width("whole", "8", "16", "32", "64"), "cells", 16, live, Basic, TILED, if Params::tiles_liquid;
            "Tile size", "Tiles in the liquid: width of the tiles that move as one, the layer of ordinary cells between them included; or whole, without any between them.";
        tile_size_deep: tile_width("8", "16", "32", "64"), "cells", 16, live, Basic, TILED, if Params::cuts_liquid;
            "Tile size deep", "Tiles in the liquid: width of tiles far from the surface; larger than the tile size makes them grow with depth.";
        surface_band: whole(1, 64), "cells", 9, live, Basic, TILED, if Params::tiles_liquid;
            "Surface band", "Tiles in the liquid: layers of ordinary cells below every surface. Too few (3) leave marks on the waves.";
        wall_band: whole(1, 64), "cells", 2, live, Basic, TILED;
            "Wall band", "Tiles: layers of ordinary cells along every wall.";
        bubble_band: whole(1, 64), "cells", 3, live, Basic, &[Model::AffineBubbles];
            "Bubble band", "Model affine-bubbles: layers of ordinary cells inside every bubble's surface.";
        bubble_tile_size: tile_width("whole", "8", "16", "32", "64"), "cells", 0, live, Basic, &[Model::AffineBubbles];
            "Bubble tile size", "Model affine-bubbles: whether the inside of a bubble moves as a whole, or in tiles of this width.";
        affine_liquid: switch(), "", false, live, Basic, &[Model::AffineBubbles];
            "Affine liquid", "Model affine-bubbles: let the deep liquid move in tiles as well.";
        reduced_advection: switch(), "", false, live, Basic, TILED, if Params::tiles_liquid;
            "Reduced advection", "Tiles in the liquid: no particles deep inside, where the grid carries the velocity by itself. Faster, and nearly the same.";
    }
}

/// A tile width as the panel shows it; 0 is for what is not divided.
const fn tile_width_name(cells: u32) -> &'static str {
    match cells {
        0 => "whole",
        1..=8 => "8",
        9..=16 => "16",
        17..=32 => "32",
        _ => "64",
    }
}

/// A number of layers as the panel shows it; 0 is for all there are.
const fn layers_name(cells: u32) -> &'static str {
    match cells {
        0 => "full",
        1..=6 => "6",
        7..=8 => "8",
        9..=10 => "10",
        11..=12 => "12",
        13..=16 => "16",
        17..=24 => "24",
        _ => "32",
    }
}

impl Params {
    /// How far viscosity spreads motion in `dt` seconds on cells of width `dx`: `μ dt / (ρ dx²)`.
    pub fn viscous_spread(&self, dx: f64, dt: f64) -> f64 {
        self.viscosity * dt / (self.density * dx * dx)
    }

    /// Whether the deep liquid moves in tiles.
    pub fn tiles_liquid(&self) -> bool {
        match self.model {
            Model::AffineTiles => true,
            Model::AffineBubbles => self.affine_liquid,
            Model::FreeSurface | Model::Constraint | Model::TwoPhase => false,
        }
    }

    /// Whether the deep liquid moves in more than one tile.
    fn cuts_liquid(&self) -> bool {
        self.tiles_liquid() && self.tile_size > 0
    }

    /// Whether liquid may leave walls.
    pub fn lets_go(&self) -> bool {
        self.walls_let_go && !self.model.has_gas()
    }

    /// Whether closed air keeps its volume.
    pub fn keeps_air(&self) -> bool {
        match self.model {
            Model::FreeSurface => false,
            Model::Constraint | Model::TwoPhase | Model::AffineBubbles => true,
            Model::AffineTiles => self.bubbles == Bubbles::Constraint,
        }
    }
}

/// The parameter of that name.
pub fn param(name: &str) -> Result<&'static ParamInfo, ParamError> {
    params_table().iter().find(|info| info.name == name).ok_or_else(|| ParamError::Unknown {
        name: name.to_owned(),
        known: params_table().iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })
}

/// Sets a parameter from text, as `--set name=value` does.
pub fn set_param(params: &mut Params, name: &str, text: &str) -> Result<(), ParamError> {
    let info = param(name)?;
    info.assign(params, &info.parse(text)?)
}

impl Serialize for Params {
    /// A map from names to values, both as `--set` reads them: text keeps all bits of a number in every format.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(params_table().iter().map(|info| (info.name, (info.get)(self).to_string())))
    }
}

impl<'de> Deserialize<'de> for Params {
    /// Values are checked as those of `--set` are. A parameter that is missing, because it came later, has its default;
    /// one that is not known, because it is gone, is passed over.
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        let given = BTreeMap::<String, String>::deserialize(deserializer)?;
        let mut params = Params::default();
        for info in params_table() {
            if let Some(text) = given.get(info.name) {
                let value = info.parse(text).map_err(De::Error::custom)?;
                info.assign(&mut params, &value).map_err(De::Error::custom)?;
            }
        }
        Ok(params)
    }
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

    /// Parameters that are all different from their defaults.
    fn unusual() -> Params {
        let mut params = Params::default();
        for info in params_table() {
            let default = info.default_value();
            let value = match info.kind {
                // No short decimal number, and no default.
                ParamKind::Number { min, max } => {
                    ParamValue::Number(min + (max - min) / std::f64::consts::PI)
                }
                ParamKind::Whole { min, max } => ParamValue::Number(
                    if default == ParamValue::Number(max.into()) { min } else { max }.into(),
                ),
                ParamKind::Switch => ParamValue::Switch(default != ParamValue::Switch(true)),
                ParamKind::Choice(names) => {
                    let other = names.iter().find(|name| default != ParamValue::Choice(name));
                    ParamValue::Choice(other.expect("more than one choice"))
                }
            };
            info.assign(&mut params, &value).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!((info.get)(&params), default, "{}", info.name);
        }
        params
    }

    #[test]
    fn saved_parameters_come_back_with_all_their_bits() {
        let text = serde_json::to_string(&unusual()).expect("parameters are plain");
        assert_eq!(serde_json::from_str::<Params>(&text).expect("they can be read"), unusual());
    }

    #[test]
    fn parameters_of_other_versions_are_read_as_far_as_they_are_known() {
        let read = |text: &str| serde_json::from_str::<Params>(text);
        assert_eq!(read("{}").expect("all defaults"), Params::default());
        let some = read(r#"{"flip": "0.5", "model": "two-phase", "long_gone": "7"}"#).expect("known ones");
        assert_eq!(some, Params { flip: 0.5, model: Model::TwoPhase, ..Params::default() });
        for bad in [r#"{"flip": "7"}"#, r#"{"flip": "NaN"}"#, r#"{"model": "steam"}"#, r#"{"sweeps": "2.5"}"#]
        {
            let message = read(bad).expect_err("not allowed").to_string();
            assert!(message.contains("must be"), "{message}");
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
        // Air with mass has a density and carries smoke, and gets into every gap by itself.
        assert_eq!([two_phase, bubbles, tiles].map(|count| count + 1 - free), [5, 9, 7]);
    }

    #[test]
    fn the_model_is_a_parameter_like_others() {
        let mut params = Params::default();
        for model in Model::ALL {
            set_param(&mut params, "model", model.name()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(params.model, model);
        }
        let message = set_param(&mut params, "model", "steam").expect_err("no such model").to_string();
        assert!(message.contains("affine-tiles"), "{message}");
    }

    #[test]
    fn parameters_of_a_group_stand_together() {
        let mut groups: Vec<Group> = params_table().iter().map(|info| info.group).collect();
        groups.dedup();
        for (k, group) in groups.iter().enumerate() {
            assert!(!groups[..k].contains(group), "{} twice", group.title());
        }
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
