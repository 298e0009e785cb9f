//! The rows of one block's cells in the matrix and in the right-hand side.

use macro_rules_attribute::apply;

use crate::geometry::Nearness;
use crate::grid::{Blocks, Face, Field, SIDE, across, block_cells, halo_cells, load_halo, masks};
use crate::linear::SharedLink;
use crate::math::{Real, Side, power, simd, unflatten};

use super::Problem;
use super::phases::{CellKind, HALO, MOST, Masses, has_surface, place_of_row};
use super::walls::SweptFlow;

/// What one chunk of blocks contributes to the bubbles' rows.
#[derive(Clone, Debug, Default)]
pub(super) struct BubbleRows {
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
    pub bubbles: &'r mut BubbleRows,
    /// Cells that may be unknowns: not those inside tiles. Others need no more than what their neighbours read.
    pub wanted: masks::Bits,
    /// Whether to find out if all links are whole.
    pub asks_for_whole: bool,
    /// Whether any component is asked for an outflow.
    pub corrects: bool,
}

impl<const D: usize> Rows<'_, '_, D> {
    /// All about a cell.
    fn of(&self, local: usize) -> ([f32; D], [f32; 2], f64) {
        let links = std::array::from_fn(|axis| self.link[axis][local]);
        (links, [self.ground[local], self.area[local]], self.rhs[local])
    }
}

/// A block with surfaces or walls, in it or next to it. Returns whether there is nothing but liquid and walls that stand still,
/// and all faces between cells of liquid are open as a whole, if asked for it.
pub(super) fn assemble_block<const D: usize>(
    problem: &Problem<'_, D>,
    velocity: &[Field<f32>; D],
    kinds: &[CellKind; MOST],
    slot: usize,
    rows: &mut Rows<'_, '_, D>,
) -> bool {
    const OPEN: &[f32] = &[1.0; SIDE * SIDE * SIDE];
    let (blocks, boundary) = (problem.blocks, problem.boundary);
    let has_surface = has_surface::<D>(kinds);
    let (mut distance, mut component) = ([0f32; MOST], [0u32; MOST]);
    let mut has_bubbles = false;
    if has_surface {
        load_halo(blocks, problem.surface, slot, HALO, &mut distance);
        if !problem.roles.all_free() {
            load_halo(blocks, problem.roles.component, slot, HALO, &mut component);
            let mut cells = kinds[..halo_cells(HALO, D)].iter().zip(&component);
            has_bubbles = cells.any(|(kind, &component)| {
                *kind == CellKind::Air && problem.roles.node_of(component).is_some()
            });
        }
    }
    let near = Neighbourhood {
        kinds,
        faces: std::array::from_fn(|axis| Faces::of(blocks, &velocity[axis], slot, axis)),
        open: std::array::from_fn(|axis| match boundary.nearness(slot) {
            Nearness::Clear => Faces { here: OPEN, beyond: OPEN },
            _ => Faces::of(blocks, &boundary.open[axis], slot, axis),
        }),
        distance,
        component,
        masses: Masses::new(&problem.roles),
        impulse: problem.impulse,
        has_surface,
        has_bubbles,
        has_gas: problem.roles.has_gas(),
        is_moving: boundary.nearness(slot) == Nearness::Moving,
    };
    let plain = assemble_plain(&near, rows);
    for (row, plain) in plain.into_iter().enumerate().take(block_cells(D) / SIDE) {
        let (at, wanted) = (place_of_row::<D>(row), masks::row(&rows.wanted, row));
        for x in masks::each_in(u64::from(wanted & !plain)).filter(|x| kinds[at + x].is_own()) {
            near.assemble_cell(problem, slot, at + x, row * SIDE + x, rows);
        }
        if cfg!(debug_assertions) {
            for x in masks::each_in(u64::from(plain)) {
                let (local, found) = (row * SIDE + x, rows.of(row * SIDE + x));
                near.assemble_cell(problem, slot, at + x, local, rows);
                assert_eq!(
                    found,
                    rows.of(local),
                    "eight cells together and one by one, slot {slot} cell {local}"
                );
            }
        }
    }
    add_wanted_outflow(problem, slot, |row| row_from(kinds, place_of_row::<D>(row)), rows);
    rows.asks_for_whole && !near.has_surface && !near.is_moving && is_whole(&near, &rows.wanted)
}

/// Values on the faces across an axis: of a block, and of the next one along it.
#[derive(Clone, Copy)]
pub(super) struct Faces<'a> {
    here: &'a [f32],
    beyond: &'a [f32],
}

impl<'a> Faces<'a> {
    pub fn of<const D: usize>(blocks: &Blocks<D>, field: &'a Field<f32>, slot: usize, axis: usize) -> Self {
        let above = blocks.beside(slot, axis, Side::High) as usize;
        Faces { here: field.block(slot), beyond: field.block(above) }
    }

    /// Values on the low sides of a row of cells, and on the high sides.
    #[inline(always)]
    pub fn around_row(&self, axis: usize, row: usize) -> [[f32; SIDE]; 2] {
        [row_at(self.here, row), row_above(self.here, self.beyond, axis, row)]
    }

    /// Values on both sides of a cell.
    #[inline(always)]
    fn around_cell(&self, axis: usize, local: usize) -> [f32; 2] {
        let (high, is_beyond) = across(local, axis, Side::High);
        [self.here[local], if is_beyond { self.beyond[high] } else { self.here[high] }]
    }
}

/// A block with a surface or a wall, and what is around it.
struct Neighbourhood<'a, const D: usize> {
    kinds: &'a [CellKind; MOST],
    faces: [Faces<'a>; D],
    open: [Faces<'a>; D],
    distance: [f32; MOST],
    component: [u32; MOST],
    masses: Masses,
    impulse: [Real; D],
    has_surface: bool,
    /// Whether any air here shares an unknown.
    has_bubbles: bool,
    has_gas: bool,
    is_moving: bool,
}

/// Rows of the cells that are [plain](Neighbourhood::plain_in), eight cells at a time; those of all others become zero. Returns
/// which cells are plain.
#[apply(simd)]
fn assemble_plain<const D: usize>(
    near: &Neighbourhood<'_, D>,
    rows: &mut Rows<'_, '_, D>,
) -> [u8; SIDE * SIDE] {
    let mut plain = [[0f32; SIDE]; SIDE * SIDE];
    let mut done = [0; SIDE * SIDE];
    for (row, (plain, done)) in plain.iter_mut().zip(&mut done).enumerate().take(block_cells(D) / SIDE) {
        if masks::row(&rows.wanted, row) == 0 {
            continue;
        }
        let marks = near.plain_in(place_of_row::<D>(row));
        *plain = marks.map(f32::from);
        *done = masks::row_of(&marks);
    }
    rows.rhs.fill(0.0);
    near.assemble_across::<0>(&plain, rows);
    near.assemble_across::<1>(&plain, rows);
    if D == 3 {
        near.assemble_across::<2>(&plain, rows);
    }
    for (rhs, plain) in rows.rhs.as_chunks_mut::<SIDE>().0.iter_mut().zip(&plain) {
        for x in 0..SIDE {
            rhs[x] *= f64::from(plain[x]);
        }
    }
    if near.has_surface {
        for sums in [&mut *rows.ground, &mut *rows.area] {
            for (sums, plain) in sums.as_chunks_mut::<SIDE>().0.iter_mut().zip(&plain) {
                for x in 0..SIDE {
                    sums[x] *= plain[x];
                }
            }
        }
    }
    done
}

/// Whether all faces between wanted cells and others are open as a whole, where both are liquid.
#[apply(simd)]
fn is_whole<const D: usize>(near: &Neighbourhood<'_, D>, wanted: &masks::Bits) -> bool {
    let mut closed = [0f32; SIDE];
    for row in (0..block_cells(D) / SIDE).filter(|&row| masks::row(wanted, row) != 0) {
        let at = place_of_row::<D>(row);
        let here = near.marks(at, CellKind::Liquid);
        for axis in 0..D {
            let (open, stride) = (near.open[axis].around_row(axis, row), HALO.stride(axis));
            let [below, above] = [at - stride, at + stride].map(|at| near.marks(at, CellKind::Liquid));
            for x in 0..SIDE {
                closed[x] += here[x] * (below[x] * (1.0 - open[0][x]) + above[x] * (1.0 - open[1][x]));
            }
        }
    }
    closed == [0.0; SIDE]
}

impl<const D: usize> Neighbourhood<'_, D> {
    /// Marks the cells of a row that are liquid beside liquid, free air and walls that stand still.
    #[inline(always)]
    fn plain_in(&self, at: usize) -> [u8; SIDE] {
        let mut plain = row_from(self.kinds, at)
            .map(|kind| u8::from(kind == CellKind::Liquid) & u8::from(!self.is_moving));
        if self.has_bubbles || self.has_gas {
            for other in (0..D).flat_map(|axis| [at - HALO.stride(axis), at + HALO.stride(axis)]) {
                let kinds = row_from(self.kinds, other);
                for x in 0..SIDE {
                    let shares = self.has_bubbles && kinds[x] == CellKind::Air;
                    plain[x] &= u8::from(kinds[x] != CellKind::Gas && !shares);
                }
            }
        }
        plain
    }

    /// What the faces across an axis are to plain cells; for others it is without meaning.
    // Marks are factors here, and nothing branches: compilers then work on eight cells at once.
    #[inline(always)]
    fn assemble_across<const AXIS: usize>(
        &self,
        plain: &[[f32; SIDE]; SIDE * SIDE],
        rows: &mut Rows<'_, '_, D>,
    ) {
        let (impulse, stride) = (self.impulse[AXIS], HALO.stride(AXIS));
        let (links, rhs) = (rows.link[AXIS].as_chunks_mut().0, rows.rhs.as_chunks_mut::<SIDE>().0);
        let (grounds, areas) = (rows.ground.as_chunks_mut().0, rows.area.as_chunks_mut().0);
        for (row, plain) in plain.iter().enumerate().take(block_cells(D) / SIDE) {
            if masks::row(&rows.wanted, row) == 0 {
                links[row] = [0.0; SIDE];
                continue;
            }
            let at = place_of_row::<D>(row);
            let faces = self.faces[AXIS].around_row(AXIS, row);
            let open = self.open[AXIS].around_row(AXIS, row);
            let (below, mut link, mut inflow) =
                (self.marks(at - stride, CellKind::Liquid), [0.0; SIDE], rhs[row]);
            for x in 0..SIDE {
                link[x] = plain[x] * below[x] * open[0][x];
            }
            links[row] = link;
            for (side, sign) in [(0, 1.0), (1, -1.0)] {
                for x in 0..SIDE {
                    inflow[x] += sign * (f64::from(open[side][x]) * (f64::from(faces[side][x]) + impulse));
                }
            }
            rhs[row] = inflow;
            if self.has_surface {
                let (mut ground, mut area): ([f32; SIDE], [f32; SIDE]) = (grounds[row], areas[row]);
                let here = row_from(&self.distance, at);
                for (side, other) in [at - stride, at + stride].into_iter().enumerate() {
                    let (air, beyond) = (self.marks(other, CellKind::Air), row_from(&self.distance, other));
                    for x in 0..SIDE {
                        let share = air[x] * open[side][x];
                        ground[x] += share / self.masses.surface(here[x], beyond[x]);
                        area[x] += share;
                    }
                }
                (grounds[row], areas[row]) = (ground, area);
            }
        }
    }

    /// One for cells of a row that are such a kind, zero for others.
    #[inline(always)]
    fn marks(&self, at: usize, wanted: CellKind) -> [f32; SIDE] {
        row_from(self.kinds, at).map(|kind| f32::from(u8::from(kind == wanted)))
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
        let Neighbourhood { kinds, distance, component, masses, .. } = self;
        let cell = unflatten::<D>(local, SIDE);
        let mass_to =
            |other: usize| masses.between((kinds[at], distance[at]), (kinds[other], distance[other]));
        let (mut outflow, mut ground, mut area) = (0f64, 0f32, 0f32);
        let mut swept = SweptFlow::default();
        for axis in 0..D {
            let stride = HALO.stride(axis);
            let open = self.open[axis].around_cell(axis, local);
            let faces = self.faces[axis].around_cell(axis, local);
            if kinds[at - stride].is_own()
                && let Some(mass) = mass_to(at - stride)
            {
                rows.link[axis][local] = open[0] / mass;
            }
            for (side, neighbour) in [(Side::Low, at - stride), (Side::High, at + stride)] {
                let (share, face) = (open[side.index()], faces[side.index()]);
                let mut flux = 0.0;
                if share > 0.0 {
                    flux += share as f64 * (face as f64 + self.impulse[axis]);
                    if kinds[neighbour] == CellKind::Air
                        && let Some(mass) = mass_to(neighbour)
                    {
                        let link = share / mass;
                        match problem.roles.node_of(component[neighbour]).filter(|_| self.has_bubbles) {
                            Some(node) => {
                                let cell = (slot * block_cells(D) + local) as u32;
                                let node = node as u32;
                                rows.bubbles.links.push(SharedLink { node, cell, link, area: share });
                                rows.bubbles.inflow[node as usize] += side.sign() * flux;
                            }
                            None => {
                                ground += link;
                                // Half a cell of gas is as much shorter as gas is lighter.
                                area += share / masses.within(kinds[at]);
                            }
                        }
                    }
                }
                let mut flow = 0.0;
                if share < 1.0 {
                    flow = problem.scripted_flow(slot, Face::of(cell, axis, side), share.into());
                    flux += flow;
                }
                swept.add(side, share.into(), flow);
                outflow += side.sign() * flux;
            }
        }
        rows.ground[local] = ground;
        rows.area[local] = area;
        rows.rhs[local] = -(outflow - swept.excess());
    }
}

/// A row of what a [`HALO`] holds, from a place on.
#[inline(always)]
fn row_from<T: Copy>(halo: &[T; MOST], at: usize) -> [T; SIDE] {
    *halo[at..].first_chunk().expect("rows end inside")
}

/// Adds the outflow that the volume correction asks for, if any; `kinds(row)` are those of a row's cells.
fn add_wanted_outflow<const D: usize>(
    problem: &Problem<'_, D>,
    slot: usize,
    kinds: impl Fn(usize) -> [CellKind; SIDE],
    rows: &mut Rows<'_, '_, D>,
) {
    if rows.corrects {
        let (surface, component) = (problem.surface.block(slot), problem.roles.component.block(slot));
        add_outflow(problem, (surface, component), &kinds, &rows.wanted, rows.rhs);
    }
}

/// Adds the outflow that the volume correction asks for to the wanted cells of a block, from their distances and
/// components.
#[apply(simd)]
fn add_outflow<const D: usize, P: Fn(usize) -> [CellKind; SIDE]>(
    problem: &Problem<'_, D>,
    (surface, component): (&[f32], &[u32]),
    kinds: &P,
    wanted: &masks::Bits,
    rhs: &mut [f64],
) {
    let all = rhs.as_chunks_mut::<SIDE>().0.iter_mut().enumerate();
    for (row, rhs) in all.filter(|(row, _)| masks::row(wanted, *row) != 0) {
        let (kinds, surface, component) = (kinds(row), row_at(surface, row), row_at(component, row));
        let mut corrected = [0; SIDE];
        for x in 0..SIDE {
            corrected[x] = u8::from(problem.is_corrected(kinds[x], surface[x]));
        }
        let bits = masks::row_of(&corrected);
        if bits == 0 {
            continue;
        }
        let first = component[bits.trailing_zeros() as usize];
        let (outflow, mut others) = (problem.outflow_of(first), 0);
        for x in 0..SIDE {
            others |= corrected[x] & u8::from(component[x] != first);
        }
        if others != 0 {
            masks::each_in(u64::from(bits)).for_each(|x| rhs[x] += problem.outflow_of(component[x]));
            continue;
        }
        for x in 0..SIDE {
            rhs[x] += if corrected[x] == 1 { outflow } else { 0.0 };
        }
    }
}

/// The link between two cells in the midst of one phase.
pub(super) fn link_within<const D: usize>(problem: &Problem<'_, D>, kind: CellKind) -> f32 {
    1.0 / Masses::new(&problem.roles).within(kind)
}

/// The right-hand side in the common case: one phase all around, no wall, no surface. The uniform impulse cancels.
pub(super) fn assemble_interior<const D: usize>(
    problem: &Problem<'_, D>,
    velocity: &[Field<f32>; D],
    kind: CellKind,
    slot: usize,
    rows: &mut Rows<'_, '_, D>,
) {
    let faces = std::array::from_fn(|axis| Faces::of(problem.blocks, &velocity[axis], slot, axis));
    find_inflow::<D>(&faces, &rows.wanted, rows.rhs);
    add_wanted_outflow(problem, slot, |_| [kind; SIDE], rows);
}

/// What flows into the wanted cells of a block; 0 in rows without any.
#[apply(simd)]
fn find_inflow<const D: usize>(faces: &[Faces<'_>; D], wanted: &masks::Bits, inflow: &mut [f64]) {
    for (row, inflow) in inflow.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
        *inflow = [0.0; SIDE];
        if masks::row(wanted, row) == 0 {
            continue;
        }
        for (axis, faces) in faces.iter().enumerate() {
            let [low, high] = faces.around_row(axis, row);
            for x in 0..SIDE {
                inflow[x] += f64::from(low[x]) - f64::from(high[x]);
            }
        }
    }
}

/// A row of a block.
#[inline(always)]
pub(super) fn row_at<T: Copy>(block: &[T], row: usize) -> [T; SIDE] {
    block.as_chunks().0[row]
}

/// Row one cell above a row of a block along an axis: of the block itself, or the first one of the next block, `beyond`.
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

/// Row one cell below a row of a block along an axis: of the block itself, or the last one of the block before, `beyond`.
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
