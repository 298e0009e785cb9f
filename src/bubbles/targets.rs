//! Bringing drifted volumes back: the net outflow asked of each component.
//!
//! Bubbles are asked as a whole, liquids in every cell well below their surface. Rates are per second, not per step, so
//! that the result does not depend on the step's length; no target moves a surface by more than part of a cell per
//! step.

use crate::geometry::Label;
use crate::math::Real;

use super::measure::Measure;
use super::track::Record;

/// How fast deviations are corrected, 1/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of air.
    pub air: Real,
    /// Of liquid.
    pub liquid: Real,
}

/// Net outflows asked for, as the projection wants them: m/s, that is volume rate over face area.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Per component: an air component's outflow as a whole, a liquid's per deep cell.
    pub outflow: Vec<Real>,
    faces: Vec<Real>,
    basins: Vec<Basin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Basin {
    open: bool,
    /// Outflow asked of its air.
    air: Real,
    /// Volume that its liquid lacks, cells.
    missing: Real,
    /// Liquid cells below the surface, and all liquid, cells.
    deep: Real,
    liquid: Real,
}

/// How far a bubble's wall may be pushed in one step, in cells.
const MOST_WALL_MOTION: Real = 0.5;
/// Largest share by which a liquid cell may expand or shrink in one step.
const MOST_EXPANSION: Real = 0.01;
/// Largest share of a deviation that one step may correct.
const MOST_AT_ONCE: Real = 0.8;
/// How far ahead of the projection advection looks, in steps.
const LOOK_AHEAD: Real = 0.5;

impl Targets {
    /// Decides what to ask for in a step of `dt` seconds on cells `dx` wide. `constrained` says which air components
    /// keep their volume.
    pub fn update<const D: usize>(
        &mut self,
        records: &[Record],
        measure: &Measure<D>,
        constrained: impl Fn(usize) -> bool,
        rates: Rates,
        dx: Real,
        dt: Real,
    ) {
        self.faces.clear();
        self.faces.resize(records.len(), 0.0);
        for (_, air, faces) in measure.touching() {
            self.faces[air as usize] += faces as Real;
        }
        self.basins.clear();
        self.basins.resize(records.len(), Basin::default());
        self.outflow.clear();
        for (component, record) in records.iter().enumerate() {
            let basin = &mut self.basins[measure.basin[component] as usize];
            let mut outflow = 0.0;
            match record.phase {
                Label::Air if constrained(component) => {
                    let most = MOST_WALL_MOTION * self.faces[component];
                    let missing = record.rest - record.volume;
                    let wanted =
                        if record.void { missing } else { missing * (rates.air * dt).min(MOST_AT_ONCE) };
                    // Advection looks half a step ahead: it will act on 3/2 of this outflow less 1/2 of the last one.
                    let asked = (wanted * dx / dt + LOOK_AHEAD * record.asked) / (1.0 + LOOK_AHEAD);
                    outflow = asked.clamp(-most * dx / dt, most * dx / dt);
                    basin.air += outflow;
                }
                Label::Air => basin.open = true,
                _ => {
                    basin.missing += record.rest - record.volume;
                    basin.deep += measure.extent[component].deep;
                    basin.liquid += record.volume;
                }
            }
            self.outflow.push(outflow);
        }
        for (component, _) in records.iter().enumerate().filter(|(_, record)| record.phase == Label::Liquid) {
            let Basin { open, air, missing, deep, liquid } = self.basins[measure.basin[component] as usize];
            // Spray and thin sheets have no inside to expand: what they lack is made up for by the others.
            let enough = deep >= 0.05 * liquid && deep > 0.0;
            let per_cell = match open {
                _ if !enough => 0.0,
                true => rates.liquid * dt * missing / deep,
                // What the air takes, the liquid gives.
                false => -air * dt / dx / deep,
            };
            self.outflow[component] = per_cell.clamp(-MOST_EXPANSION, MOST_EXPANSION) * dx / dt;
        }
    }
}
