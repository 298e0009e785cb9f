//! From pressures to velocities.

use macro_rules_attribute::apply;

use crate::geometry::Nearness;
use crate::grid::{FaceMask, Field, SIDE, for_each_block, halo_cells, load_halo, mask_parts, masks};
use crate::math::{Side, simd};
use crate::tiles::Tiling;

use super::phases::{BlockContent, CellKind, HALO, MOST, Masses, classify_block, has_surface, place_of_row};
use super::rows::{row_at, row_below};
use super::{Problem, Projection};

/// Adds gravity and subtracts the pressure gradient on every open face that touches an unknown, and marks those faces
/// in `valid`. Other faces keep their values, unmarked. Those of blocks inside `tiles` are left to these.
pub(super) fn update_velocity<const D: usize>(
    problem: &Problem<'_, D>,
    from: &Projection<D>,
    q: &Field<f64>,
    tiles: Option<&Tiling<D>>,
    velocity: &mut [Field<f32>; D],
    valid: &mut [FaceMask; D],
) {
    let blocks = problem.blocks;
    let faces = velocity.each_mut().map(Field::parts);
    for_each_block(blocks.slots(), (faces, mask_parts(valid)), |slot, (faces, mut valid)| {
        let is_clear = problem.boundary.nearness(slot) == Nearness::Clear;
        if is_clear && tiles.is_some_and(|tiles| *tiles.inside(slot) == masks::all(D)) {
            // Around a tile there is a layer of the same fluid.
            return valid.iter_mut().for_each(|bits| bits.fill(0xff));
        }
        valid.iter_mut().for_each(|bits| bits.fill(0));
        // A face belongs to the block on its high side: an unknown on its low side is one block further down.
        let touches = from.live_flag[slot]
            || (0..D).any(|axis| from.live_flag[blocks.beside(slot, axis, Side::Low) as usize]);
        if !touches {
            return;
        }
        match classify_block(problem, &from.filled, &from.label, &from.gas, slot) {
            BlockContent::Uniform(kind) => {
                valid.iter_mut().for_each(|bits| bits.fill(0xff));
                update_interior(problem, q, kind, slot, faces);
            }
            // No more room is cleared than a block has cells.
            BlockContent::Mixed(kinds) if D == 2 => {
                update_block::<D, { halo_cells(HALO, 2) }>(problem, from, q, &kinds, slot, faces, valid);
            }
            BlockContent::Mixed(kinds) => {
                update_block::<D, MOST>(problem, from, q, &kinds, slot, faces, valid);
            }
        }
    });
}

/// The mass of a face with an open share: exactly what the link in the matrix stands for, as heavy columns of gas would not
/// stay at rest otherwise.
fn mass_of(has_gas: bool, share: f32, mass: f32) -> f64 {
    if has_gas { f64::from(share) / f64::from(share / mass) } else { f64::from(mass) }
}

/// Blocks with surfaces or walls.
fn update_block<const D: usize, const CELLS: usize>(
    problem: &Problem<'_, D>,
    from: &Projection<D>,
    pressure: &Field<f64>,
    kinds: &[CellKind; MOST],
    slot: usize,
    faces: [&mut [f32]; D],
    valid: [&mut [u8]; D],
) {
    let (blocks, roles, masses) = (problem.blocks, &problem.roles, Masses::new(&problem.roles));
    let has_surface = has_surface::<D>(kinds);
    let mut distance = [0f32; CELLS];
    if has_surface {
        load_halo(blocks, problem.surface, slot, HALO, &mut distance);
    }
    let mut q = [0f64; CELLS];
    load_halo(blocks, pressure, slot, HALO, &mut q);
    let mut component = [0u32; CELLS];
    if has_surface && !roles.all_free() {
        load_halo(blocks, roles.component, slot, HALO, &mut component);
        // Air cells next to liquid hold no pressure of their own, but their bubble's.
        for ((q, kind), &component) in q.iter_mut().zip(kinds).zip(&component) {
            if *kind == CellKind::Air {
                *q = roles.node_of(component).map_or(0.0, |node| from.shared_q[node]);
            }
        }
    }
    for (axis, (faces, valid)) in faces.into_iter().zip(valid).enumerate() {
        let (impulse, stride) = (problem.impulse[axis], HALO.stride(axis));
        let open = problem.boundary.open[axis].block(slot);
        let rows = faces.as_chunks_mut::<SIDE>().0.iter_mut().zip(valid);
        for (row, ((faces, valid), open)) in rows.zip(open.as_chunks::<SIDE>().0).enumerate() {
            let at = place_of_row::<D>(row);
            let low = at - stride;
            let (here, below) = (&kinds[at..at + SIDE], &kinds[low..low + SIDE]);
            let (high, low_q) = (&q[at..at + SIDE], &q[low..low + SIDE]);
            // Between two cells of liquid a face weighs 1.
            let mut inside = 0u8;
            for x in 0..SIDE {
                let is_inside = here[x] == CellKind::Liquid && below[x] == CellKind::Liquid && open[x] > 0.0;
                let value = (f64::from(faces[x]) + impulse - (high[x] - low_q[x])) as f32;
                faces[x] = if is_inside { value } else { faces[x] };
                inside |= u8::from(is_inside) << x;
            }
            *valid = inside;
            for x in masks::each_in(u64::from(!inside)).filter(|&x| open[x] > 0.0) {
                let sides = [low + x, at + x].map(|at| (kinds[at], distance[at]));
                let Some(mass) = masses.between(sides[0], sides[1]) else { continue };
                let push = (high[x] - low_q[x]) / mass_of(roles.has_gas(), open[x], mass);
                faces[x] = (f64::from(faces[x]) + impulse - push) as f32;
                *valid |= 1 << x;
            }
        }
    }
}

/// The common case: one phase all around and no wall.
fn update_interior<const D: usize>(
    problem: &Problem<'_, D>,
    pressure: &Field<f64>,
    kind: CellKind,
    slot: usize,
    faces: [&mut [f32]; D],
) {
    let lightness = 1.0 / mass_of(problem.roles.has_gas(), 1.0, Masses::new(&problem.roles).within(kind));
    for (axis, faces) in faces.into_iter().enumerate() {
        let below = problem.blocks.beside(slot, axis, Side::Low) as usize;
        let q = [pressure.block(below), pressure.block(slot)];
        subtract_gradient(faces, q, axis, problem.impulse[axis], lightness);
    }
}

/// Adds an impulse to the faces of a block across an axis, and subtracts the pressure gradient; `q` are the pressures of the
/// block before it and its own.
#[apply(simd)]
fn subtract_gradient(faces: &mut [f32], q: [&[f64]; 2], axis: usize, impulse: f64, lightness: f64) {
    let [beyond, here] = q;
    for (row, faces) in faces.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
        let (high, low) = (row_at(here, row), row_below(here, beyond, axis, row));
        for x in 0..SIDE {
            faces[x] = (f64::from(faces[x]) + impulse - (high[x] - low[x]) * lightness) as f32;
        }
    }
}
