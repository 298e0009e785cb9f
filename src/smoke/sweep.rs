//! Air, and what it carries, through the faces across one axis.
//!
//! Axes come one after the other, and each sweep moves air as well: it may be too much in a cell for the time between two
//! sweeps, but what it carries is always a mean of what was there (the "density splitting" of Easter 1993). The value that
//! passes a face is that of its upwind cell at the middle of what leaves it,
//!
//! ```text
//!   v = c ± (1 − ν) s / 2,
//! ```
//!
//! with `ν` the share of the cell's air that leaves and `s` the central slope, limited to twice the steps to either
//! neighbour (van Leer 1977, scheme III). With `ν ≤ 1` new values are means of old ones: writing `v − c` as a share `θ ≤ 1 − ν`
//! of the step to the neighbour on the far side, what stays is `1 − ν − νθ > 0` of the cell's own. Conservation holds
//! because both cells of a face see the same flux, computed from the same numbers.

use macro_rules_attribute::apply;

use crate::grid::{Blocks, Field, SIDE, for_each_block};
use crate::math::{Side, power, simd};

use super::Smoke;

/// Cells beside a block that its fluxes depend on.
const MARGIN: usize = 2;
/// Cells along a line, margins included.
const CELLS: usize = SIDE + 2 * MARGIN;
/// Faces along a line: from the low face of the cell before the block to the high one of the cell behind it.
const FACES: usize = SIDE + 3;
/// The share of a cell's air that leaves it at once at most: whatever is faster is held back.
const MOST_LEAVES: f32 = 0.95;

/// Eight lines of cells side by side.
type Lines<const LENGTH: usize> = [[f32; SIDE]; LENGTH];

/// Carries everything through the faces across an axis, with one of so many `parts` of the flux.
pub(super) fn carry<const D: usize>(
    smoke: &mut Smoke<D>,
    blocks: &Blocks<D>,
    flux: &Field<f32>,
    next: &mut [Field<f32>; 3],
    axis: usize,
    parts: u64,
) {
    match axis {
        0 => carry_along::<D, 0>(smoke, blocks, flux, next, parts),
        1 => carry_along::<D, 1>(smoke, blocks, flux, next, parts),
        _ => carry_along::<D, 2>(smoke, blocks, flux, next, parts),
    }
}

fn carry_along<const D: usize, const AXIS: usize>(
    smoke: &mut Smoke<D>,
    blocks: &Blocks<D>,
    flux: &Field<f32>,
    next: &mut [Field<f32>; 3],
    parts: u64,
) {
    let share = 1.0 / parts as f32;
    let Smoke { air, density, heat, .. } = smoke;
    next.iter_mut().for_each(|next| next.resize(blocks.slot_count()));
    let old = [&*air, &*density, &*heat];
    for_each_block(blocks.slots(), next.each_mut().map(Field::parts), |slot, next| {
        let [low, high] = Side::BOTH.map(|side| blocks.beside(slot, AXIS, side) as usize);
        let slots = [low, slot, high];
        let [next_air, next_density, next_heat] = next;
        // Where nothing is carried only air moves.
        let is_clear =
            |field: &Field<f32>| slots.iter().all(|&slot| field.block(slot).iter().all(|&v| v == 0.0));
        let clear = [is_clear(old[1]), is_clear(old[2])];
        for line in 0..power(SIDE, D - 2) {
            let mut passes = load::<AXIS, FACES>(slots.map(|slot| flux.block(slot)), line, MARGIN - 1);
            passes.as_flattened_mut().iter_mut().for_each(|passes| *passes *= share);
            let air = load::<AXIS, CELLS>(slots.map(|slot| old[0].block(slot)), line, MARGIN);
            let streams = Streams::find(&air, &passes);
            store::<AXIS>(&streams.air, line, next_air);
            let carried = [(old[1], &mut *next_density, clear[0]), (old[2], &mut *next_heat, clear[1])];
            for (field, next, is_clear) in carried {
                if !is_clear {
                    let values = load::<AXIS, CELLS>(slots.map(|slot| field.block(slot)), line, MARGIN);
                    store::<AXIS>(&streams.carry(&values, &passes), line, next);
                }
            }
        }
        if clear[0] {
            next_density.fill(0.0);
        }
        if clear[1] {
            next_heat.fill(0.0);
        }
    });
    for (field, next) in [air, density, heat].into_iter().zip(next) {
        std::mem::swap(field, next);
    }
}

/// Distances in a block between cells along the axis, between lines side by side, and between groups of those.
const fn strides<const AXIS: usize>() -> [usize; 3] {
    match AXIS {
        0 => [1, SIDE, SIDE * SIDE],
        1 => [SIDE, 1, SIDE * SIDE],
        _ => [SIDE * SIDE, 1, SIDE],
    }
}

/// Values along a group of lines, from so many cells before the block on.
#[inline(always)]
fn load<const AXIS: usize, const LENGTH: usize>(
    blocks: [&[f32]; 3],
    line: usize,
    before: usize,
) -> Lines<LENGTH> {
    let [along, beside, group] = strides::<AXIS>();
    std::array::from_fn(|place| {
        let at = SIDE + place - before;
        let (block, first) = (blocks[at / SIDE], at % SIDE * along + line * group);
        std::array::from_fn(|lane| block[first + lane * beside])
    })
}

/// Writes the values of the block's own cells along a group of lines.
#[inline(always)]
fn store<const AXIS: usize>(values: &Lines<SIDE>, line: usize, block: &mut [f32]) {
    let [along, beside, group] = strides::<AXIS>();
    for (place, values) in values.iter().enumerate() {
        for (lane, &value) in values.iter().enumerate() {
            block[place * along + line * group + lane * beside] = value;
        }
    }
}

/// What passes the faces along a group of lines.
struct Streams {
    /// Air through the low face of every cell of the block and of the one behind it.
    flux: Lines<{ SIDE + 1 }>,
    /// Half the share of air that stays, in the block's cells and one more at either end.
    stays: Lines<{ SIDE + 2 }>,
    /// Air in the block's cells afterwards.
    air: Lines<SIDE>,
}

impl Streams {
    #[inline(always)]
    fn find(air: &Lines<CELLS>, passes: &Lines<FACES>) -> Self {
        let zeros = [0f32; SIDE];
        let mut streams = Streams { flux: [zeros; SIDE + 1], stays: [zeros; SIDE + 2], air: [zeros; SIDE] };
        find_streams(air, passes, &mut streams);
        streams
    }

    /// New values of what is carried.
    #[inline(always)]
    fn carry(&self, values: &Lines<CELLS>, passes: &Lines<FACES>) -> Lines<SIDE> {
        let mut next = [[0f32; SIDE]; SIDE];
        carry_values(self, values, passes, &mut next);
        next
    }
}

#[apply(simd)]
fn find_streams(air: &Lines<CELLS>, passes: &Lines<FACES>, streams: &mut Streams) {
    let Streams { flux, stays, air: next } = streams;
    // The share of its flux that each cell lets go.
    let mut lets = [[0f32; SIDE]; SIDE + 2];
    for cell in 0..SIDE + 2 {
        for lane in 0..SIDE {
            let leaves = passes[cell + 1][lane].max(0.0) + (-passes[cell][lane]).max(0.0);
            let most = MOST_LEAVES * air[cell + 1][lane];
            let held = leaves > most;
            lets[cell][lane] = if held { most / leaves } else { 1.0 };
            let share = if held { MOST_LEAVES } else { leaves / air[cell + 1][lane].max(f32::MIN_POSITIVE) };
            stays[cell][lane] = 0.5 * (1.0 - share);
        }
    }
    for face in 0..SIDE + 1 {
        for lane in 0..SIDE {
            let passes = passes[face + 1][lane];
            flux[face][lane] = passes * if passes > 0.0 { lets[face][lane] } else { lets[face + 1][lane] };
        }
    }
    for cell in 0..SIDE {
        for lane in 0..SIDE {
            next[cell][lane] = air[cell + MARGIN][lane] + (flux[cell][lane] - flux[cell + 1][lane]);
        }
    }
}

#[apply(simd)]
fn carry_values(streams: &Streams, values: &Lines<CELLS>, passes: &Lines<FACES>, next: &mut Lines<SIDE>) {
    let Streams { flux, stays, air } = streams;
    // Half the limited slope of every cell, times the share that stays. What is behind a closed face does not count.
    let mut halves = [[0f32; SIDE]; SIDE + 2];
    for cell in 0..SIDE + 2 {
        for lane in 0..SIDE {
            let own = values[cell + 1][lane];
            let before = if passes[cell][lane] == 0.0 { 0.0 } else { own - values[cell][lane] };
            let behind = if passes[cell + 1][lane] == 0.0 { 0.0 } else { values[cell + 2][lane] - own };
            let middle = 0.5 * (before + behind);
            let least = (2.0 * before.abs()).min(2.0 * behind.abs()).min(middle.abs());
            let slope = if before * behind > 0.0 { least.copysign(middle) } else { 0.0 };
            halves[cell][lane] = slope * stays[cell][lane];
        }
    }
    for cell in 0..SIDE {
        for lane in 0..SIDE {
            let own = values[cell + MARGIN][lane];
            let [low, high] = [cell, cell + 1].map(|face| {
                let passes = flux[face][lane];
                let below = values[face + 1][lane] + halves[face][lane];
                let above = values[face + 2][lane] - halves[face + 1][lane];
                passes * (if passes > 0.0 { below } else { above } - own)
            });
            let change = (low - high) / air[cell][lane].max(f32::MIN_POSITIVE);
            next[cell][lane] = own + change;
        }
    }
}
