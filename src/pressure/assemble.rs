//! Matrix and right-hand side.

use crate::geometry::{Boundary, Label, Nearness, Walls};
use crate::grid::{
    Blocks, Field, Halo, SIDE, block_cells, for_each_block_collecting, halo_cells, load_halo, masks,
};
use crate::linear::SharedLink;
use crate::math::{Real, Side, power, unflatten};
use crate::regions::Tiling;

use super::Projection;
use super::phases::{Masses, Midst, Part, has_surface, midst};
use super::walls::{face_velocity, leads_into_far_air};

/// What a projection is about.
pub struct Problem<'a, const D: usize> {
    /// Where.
    pub blocks: &'a Blocks<D>,
    /// Open shares and wall distances.
    pub boundary: &'a Boundary<D>,
    /// The solids themselves, for their velocities.
    pub walls: &'a Walls<D>,
    /// The liquid's signed distance at cell centres, metres.
    pub surface: &'a Field<f32>,
    /// Velocity that gravity adds in this step, m/s. Added here in double precision, so that a liquid at rest stays
    /// at rest to the solver's tolerance and not only to that of the stored velocities.
    pub impulse: [Real; D],
    /// What each connected region of air or liquid is to the projection.
    pub roles: Roles<'a>,
    /// Simulated seconds.
    pub time: Real,
}

/// What the projection wants to know of the connected regions.
#[derive(Clone, Copy)]
pub struct Roles<'a> {
    /// The region of every cell that is not solid.
    pub region: &'a Field<u32>,
    /// Per region: the unknown that all cells of an air region share (CBAR eq. 9), [`OWN`] or [`FREE`].
    pub node: &'a [u32],
    /// Density of air over that of the liquid, where air has cells of its own; zero where all air is weightless.
    pub air_mass: Real,
    /// Per region, net outflow asked for, m/s: by an air region as a whole (in each cell if those are its own), by a
    /// liquid in each of its cells that lies at least one cell below the surface. These are volume corrections.
    pub outflow: &'a [Real],
    /// Per shared unknown: how many cells it stands for.
    pub weight: &'a [Real],
    /// Per shared unknown: a first guess of its scaled pressure.
    pub guess: &'a [Real],
}

/// The node of air that is a free surface at zero pressure.
pub const FREE: u32 = u32::MAX;
/// The node of air that has mass, and a pressure in every cell.
pub const OWN: u32 = u32::MAX - 1;

impl Roles<'_> {
    /// The unknown that an air cell's region shares, if it shares one.
    #[inline(always)]
    pub(super) fn node_of(&self, region: u32) -> Option<usize> {
        let node = self.node.get(region as usize).copied().unwrap_or(FREE);
        (node < OWN).then_some(node as usize)
    }

    /// Whether the cells of an air region have their own unknowns.
    #[inline(always)]
    pub(super) fn is_own(&self, region: u32) -> bool {
        self.node.get(region as usize) == Some(&OWN)
    }

    /// Whether any air has mass.
    #[inline(always)]
    pub fn has_gas(&self) -> bool {
        self.air_mass > 0.0
    }

    /// Whether no air shares an unknown.
    pub(super) fn all_free(&self) -> bool {
        self.weight.is_empty()
    }
}

/// What one chunk of blocks contributes to the bubbles' rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Shore {
    links: Vec<SharedLink>,
    /// Per bubble: flow into it, m/s times whole faces.
    inflow: Vec<Real>,
}

pub(super) const HALO: Halo = Halo::new(1);
pub(super) const MOST: usize = halo_cells(HALO, 3);

/// Velocity of the walls at a face's centre.
pub(super) fn wall_velocity<const D: usize>(
    problem: &Problem<'_, D>,
    slot: usize,
    cell: [usize; D],
    axis: usize,
) -> Real {
    if problem.boundary.nearness(slot) != Nearness::Moving {
        return 0.0;
    }
    face_velocity(problem.blocks, problem.walls, slot, cell, axis, problem.time)
}

/// Fills links, grounds and right-hand side of every block that holds an unknown. Inside `tiles` nothing is solved for:
/// no links lead there.
pub(super) fn assemble<const D: usize>(
    problem: &Problem<'_, D>,
    velocity: &[Field<f32>; D],
    tiles: Option<&Tiling<D>>,
    to: &mut Projection<D>,
) {
    let slots = problem.blocks.slot_count();
    to.link.iter_mut().for_each(|link| link.resize(slots));
    to.ground.resize(slots);
    to.ground_area.resize(slots);
    to.rhs.resize(slots);
    let nodes = problem.roles.weight.len();
    for shore in to.shores.iter_mut() {
        shore.links.clear();
        shore.inflow.clear();
        shore.inflow.resize(nodes, 0.0);
    }
    let (label, gas, filled) = (&to.label, &to.gas, &to.filled);
    let parts =
        (to.link.each_mut().map(Field::parts), to.ground.parts(), to.ground_area.parts(), to.rhs.parts());
    // Blocks without unknowns are cleared: neighbours read their links.
    let live = &to.live_flag;
    let corrects = problem.roles.outflow.iter().any(|&outflow| outflow != 0.0);
    let slots = problem.blocks.slots();
    for_each_block_collecting(slots, parts, &mut to.shores, |slot, (mut link, ground, area, rhs), shore| {
        ground.fill(0.0);
        area.fill(0.0);
        if nodes > 0 && problem.boundary.nearness(slot) == Nearness::Moving {
            sweep_air(problem, label, slot, shore);
        }
        if !live[slot] || tiles.is_some_and(|tiles| *tiles.inside(slot) == masks::all(D)) {
            link.iter_mut().for_each(|link| link.fill(0.0));
            rhs.fill(0.0);
            return;
        }
        let rows = &mut Rows { link: &mut link, ground, area, rhs, shore, corrects };
        match midst(problem, filled, label, gas, slot) {
            Midst::One(part) => assemble_interior(problem, velocity, part, slot, rows),
            Midst::Mixed(parts) => assemble_block(problem, velocity, &parts, slot, rows),
        }
        if let Some(tiles) = tiles {
            leave_out(tiles, problem.blocks, slot, &mut link, rhs);
        }
    });
    let is_outside = |slot: usize| tiles.is_none_or(|tiles| *tiles.inside(slot) != masks::all(D));
    to.outside.refill(problem.blocks.slots(), |slot| live[slot] && is_outside(slot));
    gather_bubbles(problem, to);
}

/// Cuts the links of a block that lead into tiles or through them, and clears the rows of cells inside.
fn leave_out<const D: usize>(
    tiles: &Tiling<D>,
    blocks: &Blocks<D>,
    slot: usize,
    link: &mut [&mut [f32]; D],
    rhs: &mut [f64],
) {
    let inside = tiles.inside(slot);
    for (axis, link) in link.iter_mut().enumerate() {
        let below = blocks.beside(slot, axis, Side::Low) as usize;
        let beside = masks::beside::<D>(inside, axis, false, tiles.inside(below));
        let cut = std::array::from_fn(|word| inside[word] | beside[word]);
        masks::each(&cut).for_each(|local| link[local] = 0.0);
    }
    masks::each(inside).for_each(|local| rhs[local] = 0.0);
}

/// Brings the bubbles' rows together.
fn gather_bubbles<const D: usize>(problem: &Problem<'_, D>, to: &mut Projection<D>) {
    let roles = &problem.roles;
    to.shared_links.clear();
    to.shores.iter().for_each(|shore| to.shared_links.extend_from_slice(&shore.links));
    to.shared.rebuild(roles.weight, &to.shared_links);
    to.shared_rhs.clear();
    to.shared_rhs.resize(roles.weight.len(), 0.0);
    for shore in to.shores.iter() {
        to.shared_rhs.iter_mut().zip(&shore.inflow).for_each(|(rhs, inflow)| *rhs += inflow);
    }
    for (region, &node) in roles.node.iter().enumerate().filter(|(_, node)| **node < OWN) {
        to.shared_rhs[node as usize] += roles.outflow[region];
    }
    // A bubble that touches no liquid has no row.
    for (node, rhs) in to.shared_rhs.iter_mut().enumerate() {
        if to.shared.links(node).next().is_none() {
            *rhs = 0.0;
        }
    }
    to.shared_q.clear();
    to.shared_q.extend_from_slice(roles.guess);
}

/// Adds the flow that moving walls push into the bubbles of one block (CBAR §4: the swept flux counts for air as it
/// does for liquid).
fn sweep_air<const D: usize>(problem: &Problem<'_, D>, label: &Field<Label>, slot: usize, shore: &mut Shore) {
    let region = problem.roles.region.block(slot);
    let mut open = [[1f32; MOST]; D];
    for axis in 0..D {
        load_halo(problem.blocks, &problem.boundary.open[axis], slot, HALO, &mut open[axis]);
    }
    for (local, _) in label.block(slot).iter().enumerate().filter(|(_, label)| **label == Label::Air) {
        let Some(node) = problem.roles.node_of(region[local]) else { continue };
        let cell = unflatten::<D>(local, SIDE);
        let at = HALO.index(cell.map(|c| c as i32));
        for axis in 0..D {
            for high in [false, true] {
                let share = open[axis][at + high as usize * HALO.stride(axis)];
                if share < 1.0 && !(high && leads_into_far_air(problem.blocks, slot, cell, axis)) {
                    let mut place = cell;
                    place[axis] += high as usize;
                    let flux = (1.0 - share as f64) * wall_velocity(problem, slot, place, axis);
                    shore.inflow[node] -= if high { flux } else { -flux };
                }
            }
        }
    }
}

/// One block's share of the system.
struct Rows<'r, 'f, const D: usize> {
    link: &'r mut [&'f mut [f32]; D],
    ground: &'r mut [f32],
    area: &'r mut [f32],
    rhs: &'r mut [f64],
    shore: &'r mut Shore,
    /// Whether any region is asked for an outflow.
    corrects: bool,
}

fn assemble_block<const D: usize>(
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
                    flux += (1.0 - share as f64) * wall_velocity(problem, slot, place, axis);
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
            *rhs += wanted_outflow(problem, part, slot, row * SIDE + x);
        }
    }
}

/// Net outflow that a cell should have, m/s.
#[inline]
pub(super) fn wanted_outflow<const D: usize>(
    problem: &Problem<'_, D>,
    part: Part,
    slot: usize,
    local: usize,
) -> Real {
    let deep = problem.surface.block(slot)[local] <= -problem.blocks.grid().dx as f32;
    if part != Part::Gas && !(deep && part == Part::Liquid) {
        return 0.0;
    }
    let region = problem.roles.region.block(slot)[local];
    problem.roles.outflow.get(region as usize).copied().unwrap_or(0.0)
}

/// The common case: one phase all around, no wall, no surface. The uniform impulse cancels.
fn assemble_interior<const D: usize>(
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
