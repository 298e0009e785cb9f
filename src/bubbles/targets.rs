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
    /// Of voids: the inverse of the longest step. They close in that time, however short steps are; a longer step closes them at once.
    pub void: Real,
}

impl Rates {
    /// The share of what air lacks that a step makes up for.
    fn share_of_air(&self, is_void: bool, dt: Real) -> Real {
        match is_void {
            true => (self.void * dt).min(1.0),
            false => (self.air * dt).min(MOST_AT_ONCE),
        }
    }

    /// The share of what liquid lacks that a step makes up for.
    fn share_of_liquid(&self, dt: Real) -> Real {
        (self.liquid * dt).min(MOST_LIQUID_AT_ONCE)
    }

    /// How fast the walls of air may be pushed, cells per second. Those of voids move no faster in shorter steps: a drain below the
    /// surface opens one in every step, and would suck the harder the shorter the step.
    fn most_speed(&self, is_void: bool, dt: Real) -> Real {
        MOST_WALL_MOTION * if is_void { self.void.min(1.0 / dt) } else { 1.0 / dt }
    }
}

/// The outflow to ask of air with a number of `faces` whose volume is to grow by what is `wanted`, cells, after it was `asked` for
/// another one in the step before, and whose walls may be pushed by `most_speed`, cells per second.
fn outflow_for(wanted: Real, asked: Real, faces: Real, most_speed: Real, dx: Real, dt: Real) -> Real {
    let most = most_speed * faces * dx;
    // Advection looks half a step ahead: it will act on 3/2 of this outflow less 1/2 of the last one.
    ((wanted * dx / dt + LOOK_AHEAD * asked) / (1.0 + LOOK_AHEAD)).clamp(-most, most)
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

/// How far a bubble's wall may be pushed in one step, a void's in the longest one, in cells.
const MOST_WALL_MOTION: Real = 0.5;
/// Largest share by which a liquid cell may expand or shrink in one step.
const MOST_EXPANSION: Real = 0.01;
/// Largest share of air's deviation that one step may correct.
const MOST_AT_ONCE: Real = 0.8;
/// The same of liquid's: how much there is cannot be told as well, and what is asked of it moves all of it.
const MOST_LIQUID_AT_ONCE: Real = 0.3;
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
                    let missing = record.rest - record.volume;
                    let share = rates.share_of_air(record.void, dt);
                    let most_speed = rates.most_speed(record.void, dt);
                    outflow =
                        outflow_for(missing * share, record.asked, self.faces[component], most_speed, dx, dt);
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
                true => rates.share_of_liquid(dt) * missing / deep,
                // What the air takes, the liquid gives.
                false => -air * dt / dx / deep,
            };
            self.outflow[component] = per_cell.clamp(-MOST_EXPANSION, MOST_EXPANSION) * dx / dt;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Voids were closed at once, however short the step: each was asked for twice the outflow in steps half as long, and random scenes
    /// with small CFL numbers ended in infinite velocities.
    #[test]
    fn voids_close_no_faster_in_shorter_steps() {
        let (dx, missing, faces) = (0.01, -6.0, 12.0);
        let rates = Rates { air: 30.0, liquid: 10.0, void: 1e3 };
        for is_void in [false, true] {
            let asked = |dt: Real, before: Real| {
                let (share, most_speed) = (rates.share_of_air(is_void, dt), rates.most_speed(is_void, dt));
                outflow_for(missing * share, before, faces, most_speed, dx, dt)
            };
            let most = -1.001 * missing * dx * if is_void { rates.void } else { rates.air };
            for dt in [1e-1, 1e-2, 1e-3, 1e-6, 1e-12] {
                let mut outflow = 0.0;
                for _ in 0..20 {
                    outflow = asked(dt, outflow);
                    assert!((-most..0.0).contains(&outflow), "void {is_void}, {dt:.0e} s: {outflow:.1e} m/s");
                }
            }
        }
        // One step as long as the inverse of the rate does it.
        assert_eq!(rates.share_of_air(true, 1e-3), 1.0);
        // The walls of a large one move by half a cell in that time.
        for dt in [1e-1, 1e-3, 1e-6] {
            let outflow = outflow_for(-1e9, 0.0, faces, rates.most_speed(true, dt), dx, dt);
            assert_eq!(outflow / faces, -0.5 * dx / dt.max(1e-3), "{dt:.0e} s");
        }
    }
}
