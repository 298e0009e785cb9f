//! The rows of one block's cells in the matrix and in the right-hand side.

use crate::geometry::Nearness;
use crate::grid::{Field, SIDE, block_cells, load_halo, masks};
use crate::linear::SharedLink;
use crate::math::{Real, Side, power, unflatten};

use super::Problem;
use super::phases::{HALO, MOST, Masses, Part, has_surface};

/// What one chunk of blocks contributes to the bubbles' rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Shore {
    pub links: Vec<SharedLink>,
    /// Per bubble: flow into it, m/s times whole faces.
    pub inflow: Vec<Real>,
}

/// One block's share of the system.
pub(super) struct Rows<'r, 'f, const D: usize> {
    pub link: &'r mut [&'f mut [f32]; D],
    pub ground: &'r mut [f32],
    pub area: &'r mut [f32],
    pub rhs: &'r mut [f64],
    pub shore: &'r mut Shore,
    /// Whether any region is asked for an outflow.
    pub corrects: bool,
}

/// A block with surfaces or walls, in it or next to it.
pub(super) fn assemble_block<const D: usize>(
    problem: &Problem<'_, D>,
    velocity: &[Field<f32>; D],
    parts: &[Part; MOST],
    slot: usize,
    rows: &mut Rows<'_, '_, D>,
) {
    let (blocks, masses) = (problem.blocks, Masses::new(&problem.roles));
    let clear = problem.boundary.nearness(slot) == Nearness::Clear;
    let mut near = Near {
        parts,
        faces: [[0f32; MOST]; D],
        open: [[1f32; MOST]; D],
        distance: [0f32; MOST],
        region: [0u32; MOST],
        masses,
        has_bubbles: !problem.roles.all_free(),
    };
    for axis in 0..D {
        load_halo(blocks, &velocity[axis], slot, HALO, &mut near.faces[axis]);
        if !clear {
            load_halo(blocks, &problem.boundary.open[axis], slot, HALO, &mut near.open[axis]);
        }
    }
    if has_surface::<D>(parts) {
        load_halo(blocks, problem.surface, slot, HALO, &mut near.distance);
        if near.has_bubbles {
            load_halo(blocks, problem.roles.region, slot, HALO, &mut near.region);
        }
    }
    rows.link.iter_mut().for_each(|link| link.fill(0.0));
    rows.rhs.fill(0.0);
    let is_moving = problem.boundary.nearness(slot) == Nearness::Moving;
    for row in 0..block_cells(D) / SIDE {
        let at = HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32));
        let inside = if is_moving { 0 } else { near.assemble_inside(problem, at, row, rows) };
        for x in masks::each_in(u64::from(!inside)).filter(|x| parts[at + x].is_own()) {
            near.assemble_cell(problem, slot, at + x, row * SIDE + x, rows);
        }
    }
    let parts_of = |row: usize| &parts[HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32))..];
    expand(problem, slot, parts_of, rows);
}

/// A block with a surface or a wall, and what is around it.
struct Near<'a, const D: usize> {
    parts: &'a [Part; MOST],
    faces: [[f32; MOST]; D],
    open: [[f32; MOST]; D],
    distance: [f32; MOST],
    region: [u32; MOST],
    masses: Masses,
    has_bubbles: bool,
}

impl<const D: usize> Near<'_, D> {
    /// Rows of those cells of a row that are liquid and have liquid on all sides, with walls that do not move. Returns
    /// which these are.
    fn assemble_inside(
        &self,
        problem: &Problem<'_, D>,
        at: usize,
        row: usize,
        rows: &mut Rows<'_, '_, D>,
    ) -> u8 {
        let mut is_inside = [true; SIDE];
        let mut demand = |at: usize| {
            let parts = &self.parts[at..at + SIDE];
            for x in 0..SIDE {
                is_inside[x] &= parts[x] == Part::Liquid;
            }
        };
        demand(at);
        for axis in 0..D {
            let stride = HALO.stride(axis);
            demand(at - stride);
            demand(at + stride);
        }
        let inside = (0..SIDE).fold(0u8, |bits, x| bits | u8::from(is_inside[x]) << x);
        if inside == 0 {
            return 0;
        }
        let mut outflow = [0f64; SIDE];
        for axis in 0..D {
            let impulse = problem.impulse[axis];
            for (face, sign) in [(at, -1.0), (at + HALO.stride(axis), 1.0)] {
                let (faces, open) =
                    (&self.faces[axis][face..face + SIDE], &self.open[axis][face..face + SIDE]);
                for x in 0..SIDE {
                    outflow[x] += sign * (f64::from(open[x]) * (f64::from(faces[x]) + impulse));
                }
            }
            let (open, link) = (&self.open[axis][at..at + SIDE], &mut rows.link[axis][row * SIDE..][..SIDE]);
            for x in 0..SIDE {
                link[x] = if is_inside[x] { open[x] } else { link[x] };
            }
        }
        let rhs = &mut rows.rhs[row * SIDE..][..SIDE];
        for x in 0..SIDE {
            rhs[x] = if is_inside[x] { -outflow[x] } else { rhs[x] };
        }
        inside
    }

    /// The row of any cell with a pressure.
    fn assemble_cell(
        &self,
        problem: &Problem<'_, D>,
        slot: usize,
        at: usize,
        local: usize,
        rows: &mut Rows<'_, '_, D>,
    ) {
        let Near { parts, faces, open, distance, region, masses, has_bubbles } = self;
        let cell = unflatten::<D>(local, SIDE);
        let mass_to =
            |other: usize| masses.between((parts[at], distance[at]), (parts[other], distance[other]));
        let (mut outflow, mut ground, mut area) = (0f64, 0f32, 0f32);
        for axis in 0..D {
            let stride = HALO.stride(axis);
            if parts[at - stride].is_own()
                && let Some(mass) = mass_to(at - stride)
            {
                rows.link[axis][local] = open[axis][at] / mass;
            }
            for (high, face, neighbour) in [(false, at, at - stride), (true, at + stride, at + stride)] {
                let share = open[axis][face];
                let mut flux = 0.0;
                if share > 0.0 {
                    flux += share as f64 * (faces[axis][face] as f64 + problem.impulse[axis]);
                    if parts[neighbour] == Part::Air
                        && let Some(mass) = mass_to(neighbour)
                    {
                        let link = share / mass;
                        match problem.roles.node_of(region[neighbour]).filter(|_| *has_bubbles) {
                            Some(node) => {
                                let cell = (slot * block_cells(D) + local) as u32;
                                let node = node as u32;
                                rows.shore.links.push(SharedLink { node, cell, link, area: share });
                                rows.shore.inflow[node as usize] += if high { flux } else { -flux };
                            }
                            None => {
                                ground += link;
                                // Half a cell of gas is as much shorter as gas is lighter.
                                area += share / masses.within(parts[at]);
                            }
                        }
                    }
                }
                if share < 1.0 {
                    let mut place = cell;
                    place[axis] += high as usize;
                    flux += (1.0 - share as f64) * problem.wall_velocity(slot, place, axis);
                }
                outflow += if high { flux } else { -flux };
            }
        }
        rows.ground[local] = ground;
        rows.area[local] = area;
        rows.rhs[local] = -outflow;
    }
}

/// Adds the outflow that the volume correction asks for; `parts(row)` are those of a row's cells.
fn expand<'p, const D: usize>(
    problem: &Problem<'_, D>,
    slot: usize,
    parts: impl Fn(usize) -> &'p [Part],
    rows: &mut Rows<'_, '_, D>,
) {
    if !rows.corrects {
        return;
    }
    for (row, rhs) in rows.rhs.chunks_exact_mut(SIDE).enumerate() {
        for (x, (rhs, &part)) in rhs.iter_mut().zip(parts(row)).enumerate() {
            *rhs += problem.wanted_outflow(part, slot, row * SIDE + x);
        }
    }
}

/// The common case: one phase all around, no wall, no surface. The uniform impulse cancels.
pub(super) fn assemble_interior<const D: usize>(
    problem: &Problem<'_, D>,
    velocity: &[Field<f32>; D],
    part: Part,
    slot: usize,
    rows: &mut Rows<'_, '_, D>,
) {
    let whole = 1.0 / Masses::new(&problem.roles).within(part);
    rows.link.iter_mut().for_each(|link| link.fill(whole));
    rows.rhs.fill(0.0);
    for axis in 0..D {
        let above = problem.blocks.beside(slot, axis, Side::High) as usize;
        let (here, beyond) = (velocity[axis].block(slot), velocity[axis].block(above));
        for (row, rhs) in rows.rhs.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
            let (low, high) = (row_at(here, row), row_above(here, beyond, axis, row));
            for x in 0..SIDE {
                rhs[x] += f64::from(low[x]) - f64::from(high[x]);
            }
        }
    }
    let parts = [part; SIDE];
    expand(problem, slot, |_| &parts, rows);
}

/// A row of a block.
#[inline(always)]
pub(super) fn row_at<T: Copy>(block: &[T], row: usize) -> [T; SIDE] {
    block.as_chunks().0[row]
}

/// What lies one cell further along an axis than a row of a block: there, or in the next block.
#[inline(always)]
fn row_above<T: Copy>(here: &[T], beyond: &[T], axis: usize, row: usize) -> [T; SIDE] {
    if axis == 0 {
        let own = row_at(here, row);
        let last = row_at(beyond, row)[0];
        return [own[1], own[2], own[3], own[4], own[5], own[6], own[7], last];
    }
    let stride = power(SIDE, axis - 1);
    match row / stride % SIDE == SIDE - 1 {
        true => row_at(beyond, row - (SIDE - 1) * stride),
        false => row_at(here, row + stride),
    }
}

/// The same on the low side.
#[inline(always)]
pub(super) fn row_below<T: Copy>(here: &[T], beyond: &[T], axis: usize, row: usize) -> [T; SIDE] {
    if axis == 0 {
        let own = row_at(here, row);
        let first = row_at(beyond, row)[SIDE - 1];
        return [first, own[0], own[1], own[2], own[3], own[4], own[5], own[6]];
    }
    let stride = power(SIDE, axis - 1);
    match (row / stride).is_multiple_of(SIDE) {
        true => row_at(beyond, row + (SIDE - 1) * stride),
        false => row_at(here, row - stride),
    }
}
