//! What each cell is to the projection, and how heavy the faces between them are.
//!
//! This is all that the models differ in. Liquid cells have a pressure each. Air is a free surface, or shares one
//! pressure per bubble, or (two-phase flow) has a pressure in every cell and a density, `ρ_air`; a face then weighs
//! what lies on the way between the two centres, `ρ_f = θ ρ + (1 − θ) ρ_air` (CBAR §3, ghost fluid). Weightless air is
//! the limit of that: `θ ρ`, with `θ` bounded below, as nothing else keeps the matrix from blowing up.

use crate::geometry::{Label, Nearness};
use crate::grid::{Blocks, Field, Halo, Parts, SIDE, for_each_block, halo_cells, load_halo};
use crate::math::unflatten;

use super::{Problem, Projection, Roles};

/// A block with one cell around it: what its rows and faces depend on.
pub(super) const HALO: Halo = Halo::new(1);
pub(super) const MOST: usize = halo_cells(HALO, 3);

/// Where a row of a block begins in its [`HALO`].
#[inline(always)]
pub(super) fn place_of_row<const D: usize>(row: usize) -> usize {
    HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32))
}

/// What a cell is to the projection. Numbered like labels, so that turning many of those into kinds is a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CellKind {
    /// Air whose pressure is its bubble's, or zero.
    Air = Label::Air as u8,
    /// Liquid, with a pressure of its own.
    Liquid = Label::Liquid as u8,
    /// Nothing flows here.
    Wall = Label::Solid as u8,
    /// Air with mass, and with a pressure of its own.
    Gas,
}

impl CellKind {
    /// Whether the cell is an unknown.
    #[inline(always)]
    pub fn is_own(self) -> bool {
        matches!(self, CellKind::Liquid | CellKind::Gas)
    }
}

/// Blocks filled with one fluid whose cells have a pressure each: by slot, with [`EMPTY`] for all others.
#[derive(Clone, Debug)]
pub(super) struct Filled(Field<u8>);

const EMPTY: u8 = u8::MAX;

impl Default for Filled {
    fn default() -> Self {
        Filled(Field::new(1, EMPTY))
    }
}

impl Filled {
    /// Looks at the labels, and at the cells of `gas` with mass.
    pub fn find<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        label: &Field<Label>,
        gas: Option<&Field<bool>>,
    ) {
        self.0.resize(blocks.slot_count());
        for_each_block(blocks.slots(), self.0.parts(), |slot, filled| {
            let is_liquid = all(label.block(slot), |label| label == Label::Liquid);
            let is_gas = gas.is_some_and(|gas| all(gas.block(slot), |gas| gas));
            filled[0] = match (is_liquid, is_gas) {
                (true, _) => CellKind::Liquid as u8,
                (_, true) => CellKind::Gas as u8,
                _ => EMPTY,
            };
        });
    }

    /// Whether a block is filled with one fluid.
    pub fn has(&self, slot: usize) -> bool {
        self.0.block(slot)[0] != EMPTY
    }

    /// The fluid around a block and in it, if it is all one and no wall is near.
    #[inline]
    fn around<const D: usize>(&self, problem: &Problem<'_, D>, slot: usize) -> Option<CellKind> {
        let this = self.0.block(slot)[0];
        let is_this = |&other: &u32| self.0.block(other as usize)[0] == this;
        let is_clear = problem.boundary.nearness(slot) == Nearness::Clear;
        (this != EMPTY && is_clear && problem.blocks.around(slot).iter().all(is_this))
            .then_some(if this == CellKind::Gas as u8 { CellKind::Gas } else { CellKind::Liquid })
    }
}

/// Says what the cells of a block and those around it are.
#[inline]
pub(super) fn classify_cells<const D: usize>(
    problem: &Problem<'_, D>,
    label: &Field<Label>,
    gas: &Field<bool>,
    slot: usize,
) -> [CellKind; MOST] {
    let cells = const { halo_cells(HALO, D) };
    let mut labels = [Label::Solid; MOST];
    load_halo(problem.blocks, label, slot, HALO, &mut labels);
    let mut kinds = [CellKind::Wall; MOST];
    for (kind, label) in kinds[..cells].iter_mut().zip(&labels) {
        *kind = match label {
            Label::Air => CellKind::Air,
            Label::Liquid => CellKind::Liquid,
            Label::Solid => CellKind::Wall,
        };
    }
    if problem.roles.has_gas() {
        let mut own = [false; MOST];
        load_halo(problem.blocks, gas, slot, HALO, &mut own);
        kinds[..cells]
            .iter_mut()
            .zip(own)
            .filter(|(_, own)| *own)
            .for_each(|(kind, _)| *kind = CellKind::Gas);
    }
    kinds
}

/// Whether there is anything but liquid and walls among the cells of a block and those around it.
#[inline]
pub(super) fn has_surface<const D: usize>(kinds: &[CellKind; MOST]) -> bool {
    let cells = kinds[..halo_cells(HALO, D)].iter();
    cells.fold(false, |any, kind| any | matches!(kind, CellKind::Air | CellKind::Gas))
}

/// What a block and the cells around it are: one fluid alone, with no wall near, or each cell something of its own.
// On the stack of the work on one block, where the kinds are anyway.
#[allow(clippy::large_enum_variant)]
pub(super) enum BlockContent {
    Uniform(CellKind),
    Mixed([CellKind; MOST]),
}

/// Whether a block and the cells around it are one fluid alone. Blocks whose neighbours are filled with the same fluid
/// are known without looking at cells.
#[inline]
pub(super) fn classify_block<const D: usize>(
    problem: &Problem<'_, D>,
    filled: &Filled,
    label: &Field<Label>,
    gas: &Field<bool>,
    slot: usize,
) -> BlockContent {
    if let Some(kind) = filled.around(problem, slot) {
        return BlockContent::Uniform(kind);
    }
    let kinds = classify_cells(problem, label, gas, slot);
    let is_one = || kinds[..halo_cells(HALO, D)].iter().all(|&kind| kind == kinds[0]);
    match problem.boundary.nearness(slot) == Nearness::Clear && kinds[0].is_own() && is_one() {
        true => BlockContent::Uniform(kinds[0]),
        false => BlockContent::Mixed(kinds),
    }
}

/// How heavy faces are, over one in the liquid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masses {
    air: f32,
    /// Least share of the liquid in a face.
    least: f32,
}

impl Masses {
    /// As the components' roles want them.
    pub fn new(roles: &Roles<'_>) -> Self {
        const LEAST: f32 = 0.01;
        Masses { air: roles.air_mass as f32, least: if roles.has_gas() { 0.0 } else { LEAST } }
    }

    /// The mass of a whole face between two cells, given with their signed distances; none where no pressure acts.
    #[inline(always)]
    pub fn between(&self, a: (CellKind, f32), b: (CellKind, f32)) -> Option<f32> {
        use CellKind::{Air, Liquid, Wall};
        match (a.0, b.0) {
            (Liquid, Liquid) => Some(1.0),
            (Wall, _) | (_, Wall) | (Air, Air) => None,
            (Liquid, _) => Some(self.surface(a.1, b.1)),
            (_, Liquid) => Some(self.surface(b.1, a.1)),
            _ => Some(self.air),
        }
    }

    /// The mass of a face that the surface cuts, from the signed distances of its liquid and its air cell.
    #[inline(always)]
    pub fn surface(&self, liquid: f32, air: f32) -> f32 {
        let theta = self.theta(liquid, air);
        theta + (1.0 - theta) * self.air
    }

    /// Liquid share of the way from a liquid cell to an air cell, from their signed distances.
    #[inline(always)]
    fn theta(&self, liquid: f32, air: f32) -> f32 {
        let (liquid, air) = (liquid.min(0.0), air.max(0.0));
        // Two distances of zero make no number, and `max` then takes the other. Not `clamp`: that may panic, and rows
        // of cells are to be worked on together.
        (liquid / (liquid - air)).max(self.least).min(1.0)
    }

    /// Mass of a whole face in the midst of one phase.
    pub fn within(&self, kind: CellKind) -> f32 {
        if kind == CellKind::Gas { self.air } else { 1.0 }
    }

    /// Liquid share of a surface face's mass.
    #[inline(always)]
    fn liquid_share(&self, a: (CellKind, f32), b: (CellKind, f32)) -> f32 {
        let theta = if a.0 == CellKind::Liquid { self.theta(a.1, b.1) } else { self.theta(b.1, a.1) };
        // Where the surface touches a cell's centre, weightless air leaves nothing to divide by.
        let mass = theta + (1.0 - theta) * self.air;
        if mass > 0.0 { theta / mass } else { 1.0 }
    }
}

/// Finds the blocks with unknowns, and the air cells with a pressure of their own, once cells are labelled. Air beyond
/// an open side of the domain has none: outside, pressure is zero.
pub fn find_unknowns<const D: usize>(blocks: &Blocks<D>, roles: &Roles<'_>, projection: &mut Projection<D>) {
    projection.live_flag.clear();
    projection.live_flag.resize(blocks.slot_count(), false);
    projection.live.as_slice().iter().for_each(|&slot| projection.live_flag[slot as usize] = true);
    projection.mixed = roles.has_gas();
    if !projection.mixed {
        return;
    }
    let Projection { label, gas, live, live_flag, .. } = projection;
    gas.resize(blocks.slot_count());
    let grid = blocks.grid();
    for_each_block(blocks.slots(), gas.parts(), |slot, gas| {
        let (first, label, component) =
            (blocks.first_cell(slot), label.block(slot), roles.component.block(slot));
        if all(component, |other| other == component[0]) {
            // As in most blocks.
            let is_own = roles.is_own(component[0]);
            gas.iter_mut().zip(label).for_each(|(gas, label)| *gas = is_own & (*label == Label::Air));
        } else {
            let cells = label.iter().zip(component);
            let is_gas =
                |(label, component): (&Label, &u32)| *label == Label::Air && roles.is_own(*component);
            gas.iter_mut().zip(cells).for_each(|(gas, cell)| *gas = is_gas(cell));
        }
        if !grid.contains(first.map(|c| c + SIDE as i32 - 1)) {
            for (local, gas) in gas.iter_mut().enumerate() {
                let at = unflatten::<D>(local, SIDE);
                *gas &= grid.contains(std::array::from_fn(|k| first[k] + at[k] as i32));
            }
        }
    });
    let flags = Parts::new(live_flag, 1);
    for_each_block(blocks.slots(), flags, |slot, live| live[0] |= has_any(gas.block(slot)));
    live.refill(blocks.slots(), |slot| live_flag[slot]);
}

/// Faces of one block in halo order: kinds and distances on both sides.
struct Sides {
    kinds: [CellKind; MOST],
    distance: [f32; MOST],
}

impl Sides {
    fn load<const D: usize>(problem: &Problem<'_, D>, projection: &Projection<D>, slot: usize) -> Self {
        let mut distance = [0f32; MOST];
        load_halo(problem.blocks, problem.surface, slot, HALO, &mut distance);
        Sides { kinds: classify_cells(problem, &projection.label, &projection.gas, slot), distance }
    }

    #[inline(always)]
    fn of<const D: usize>(&self, local: usize, axis: usize) -> [(CellKind, f32); 2] {
        let at = HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
        [at - HALO.stride(axis), at].map(|at| (self.kinds[at], self.distance[at]))
    }
}

/// Gives faces that touch gas its velocity, and those between gas and liquid the mean of both by mass: the one that
/// keeps their momentum. Where `gas` is not a number it is not known, and the liquid's velocity stays. Comes after
/// [`find_unknowns`].
pub fn mix_velocities<const D: usize>(
    problem: &Problem<'_, D>,
    projection: &Projection<D>,
    gas: &[Field<f32>; D],
    velocity: &mut [Field<f32>; D],
) {
    let masses = Masses::new(&problem.roles);
    for_each_block(problem.blocks.slots(), velocity.each_mut().map(Field::parts), |slot, velocity| {
        if !near_gas(problem.blocks, &projection.gas, slot) {
            return;
        }
        let sides = Sides::load(problem, projection, slot);
        for (axis, (velocity, gas)) in velocity.into_iter().zip(gas).enumerate() {
            for (local, (face, &gas)) in velocity.iter_mut().zip(gas.block(slot)).enumerate() {
                let [low, high] = sides.of::<D>(local, axis);
                if gas.is_nan() || (low.0 != CellKind::Gas && high.0 != CellKind::Gas) {
                    continue;
                }
                *face = match low.0 == CellKind::Liquid || high.0 == CellKind::Liquid {
                    true => gas + masses.liquid_share(low, high) * (*face - gas),
                    false => gas,
                };
            }
        }
    });
}

/// Takes the velocities of the faces that touch gas, not a number elsewhere, and leaves in `valid` the faces that touch
/// liquid. The two move along the surface as they like: pressure couples what crosses it and nothing else.
pub fn separate_velocities<const D: usize>(
    problem: &Problem<'_, D>,
    projection: &Projection<D>,
    velocity: &[Field<f32>; D],
    valid: &mut [crate::grid::FaceMask; D],
    gas: &mut [Field<f32>; D],
) {
    let blockwise = (gas.each_mut().map(Field::parts), crate::grid::mask_parts(valid));
    for_each_block(problem.blocks.slots(), blockwise, |slot, (gas, valid)| {
        if !near_gas(problem.blocks, &projection.gas, slot) {
            gas.into_iter().for_each(|gas| gas.fill(f32::NAN));
            return;
        }
        let sides = Sides::load(problem, projection, slot);
        for (axis, (gas, valid)) in gas.into_iter().zip(valid).enumerate() {
            for (local, (gas, &face)) in gas.iter_mut().zip(velocity[axis].block(slot)).enumerate() {
                let [(low, _), (high, _)] = sides.of::<D>(local, axis);
                let (row, bit) = (local / SIDE, 1 << (local % SIDE));
                let known = valid[row] & bit != 0;
                *gas = if known && (low == CellKind::Gas || high == CellKind::Gas) { face } else { f32::NAN };
                if low != CellKind::Liquid && high != CellKind::Liquid {
                    valid[row] &= !bit;
                }
            }
        }
    });
}

/// Whether a face of the block may touch gas: the cells below its low faces are in the blocks there.
fn near_gas<const D: usize>(blocks: &Blocks<D>, gas: &Field<bool>, slot: usize) -> bool {
    let low = |axis| blocks.beside(slot, axis, crate::math::Side::Low) as usize;
    has_any(gas.block(slot)) || (0..D).any(|axis| has_any(gas.block(low(axis))))
}

/// Whether a test holds for all values of a block. Looks at all of them, many at a time.
#[inline]
fn all<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> bool {
    values.iter().fold(true, |all, &value| all & test(value))
}

/// Whether any cell of a block is marked.
fn has_any(marks: &[bool]) -> bool {
    !all(marks, |mark| !mark)
}
