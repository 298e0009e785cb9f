//! Matrix and right-hand side.

use macro_rules_attribute::apply;

use crate::geometry::{Label, Nearness};
use crate::grid::{Blocks, Face, Field, SIDE, for_each_block_collecting, load_halo, masks};
use crate::math::{Side, simd, unflatten};
use crate::tiles::{TileFaces, Tiling};

use super::phases::{BlockContent, CellKind, HALO, MOST, classify_block};
use super::rows::{BubbleRows, Faces, Rows, assemble_block, assemble_interior, link_within};
use super::walls::{SweptFlow, leads_into_far_air};
use super::{OWN, Problem, Projection};

/// Cached coefficients of a block: uniform but for cut faces, or individual. A uniform block mostly stays as it is from
/// step to step, and need not be written again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BlockCoefficients<const D: usize> {
    /// Every link and ground has its own value.
    Individual,
    /// All links are alike but those that are cut, by axis, and there are no grounds.
    Uniform { link: f32, cut: [masks::Bits; D] },
}

impl<const D: usize> BlockCoefficients<D> {
    /// Neither links nor grounds, and a right-hand side of zero.
    const NOTHING: BlockCoefficients<D> = BlockCoefficients::Uniform { link: 0.0, cut: [masks::NONE; D] };

    /// Whether links and grounds have these values.
    fn holds(&self, links: &[&mut [f32]; D], ground: &[f32], area: &[f32]) -> bool {
        let BlockCoefficients::Uniform { link, cut } = self else { return true };
        let wanted = |axis: usize, cell: usize| if masks::has(&cut[axis], cell) { 0.0 } else { *link };
        let is_held =
            |axis: usize| links[axis].iter().enumerate().all(|(cell, &own)| own == wanted(axis, cell));
        (0..D).all(is_held) && ground.iter().chain(area).all(|&sum| sum == 0.0)
    }
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
    to.coefficients.resize(slots);
    to.known.resize(slots);
    let nodes = problem.roles.weight.len();
    for bubbles in to.bubble_rows.iter_mut() {
        bubbles.links.clear();
        bubbles.inflow.clear();
        bubbles.inflow.resize(nodes, 0.0);
    }
    let (label, gas, filled) = (&to.label, &to.gas, &to.filled);
    let sums = (to.ground.parts(), to.ground_area.parts(), to.rhs.parts());
    let parts = (to.link.each_mut().map(Field::parts), sums, to.coefficients.parts(), to.known.parts());
    let live = &to.live_flag;
    let corrects = problem.roles.outflow.iter().any(|&outflow| outflow != 0.0);
    let (slots, asks_for_whole) = (problem.blocks.slots(), tiles.is_some());
    let chunks = &mut to.bubble_rows;
    for_each_block_collecting(slots, parts, chunks, |slot, (mut link, sums, cached, known), bubbles| {
        known[0] = None;
        let (ground, area, rhs) = sums;
        if nodes > 0 && problem.boundary.nearness(slot) == Nearness::Moving {
            add_swept_flux(problem, label, slot, bubbles);
        }
        let mut keep = |wanted: BlockCoefficients<D>, link: &mut [&mut [f32]; D]| {
            let before = std::mem::replace(&mut cached[0], wanted);
            if before != wanted || wanted == BlockCoefficients::Individual {
                ground.fill(0.0);
                area.fill(0.0);
                if let BlockCoefficients::Uniform { link: value, cut } = &wanted {
                    fill_links(link, *value, cut);
                }
            }
            debug_assert!(wanted.holds(link, ground, area), "kept links and grounds, slot {slot}");
            before != wanted
        };
        if !live[slot] || tiles.is_some_and(|tiles| *tiles.inside(slot) == masks::all(D)) {
            // Neighbours read the links.
            if keep(BlockCoefficients::NOTHING, &mut link) {
                rhs.fill(0.0);
            }
            return;
        }
        let wanted = tiles.map_or(masks::all(D), |tiles| masks::without(&masks::all(D), tiles.inside(slot)));
        let cut = tiles.map_or([masks::NONE; D], |tiles| cut_by(tiles, problem.blocks, slot));
        let content = classify_block(problem, filled, label, gas, slot);
        let coefficients = match &content {
            BlockContent::Uniform(kind) => {
                BlockCoefficients::Uniform { link: link_within(problem, *kind), cut }
            }
            BlockContent::Mixed(_) => BlockCoefficients::Individual,
        };
        keep(coefficients, &mut link);
        let rows =
            &mut Rows { link: &mut link, ground, area, rhs, bubbles, wanted, asks_for_whole, corrects };
        match content {
            BlockContent::Uniform(kind) => {
                let tiles = tiles.filter(|_| kind == CellKind::Liquid);
                known[0] = tiles.map(|tiles| tiles.left_in(problem.blocks, slot, |_| masks::all(D)));
                assemble_interior(problem, velocity, kind, slot, rows);
            }
            BlockContent::Mixed(kinds) => {
                if assemble_block(problem, velocity, &kinds, slot, rows) {
                    let fluid = |slot: usize| masks::bits_of(label.block(slot), |own| own == Label::Liquid);
                    known[0] = tiles.map(|tiles| tiles.left_in(problem.blocks, slot, fluid));
                }
                link.iter_mut().zip(&cut).for_each(|(link, cut)| clear_cells(cut, link));
            }
        }
        if let Some(tiles) = tiles {
            clear_cells(tiles.inside(slot), rhs);
            tiles.each_tile_face(slot, |tile| {
                let faces = Faces::of(problem.blocks, &velocity[tile.axis], slot, tile.axis);
                replace_by_flow_of_tile(&tile, &faces, rhs);
            });
        }
    });
    let is_outside = |slot: usize| tiles.is_none_or(|tiles| *tiles.inside(slot) != masks::all(D));
    to.outside.refill(problem.blocks.slots(), |slot| live[slot] && is_outside(slot));
    gather_bubbles(problem, to);
}

/// The links of a block that lead into tiles or through them, by axis.
fn cut_by<const D: usize>(tiles: &Tiling<D>, blocks: &Blocks<D>, slot: usize) -> [masks::Bits; D] {
    let inside = tiles.inside(slot);
    std::array::from_fn(|axis| {
        let below = blocks.beside(slot, axis, Side::Low) as usize;
        masks::or(inside, &masks::beside::<D>(inside, axis, Side::Low, tiles.inside(below)))
    })
}

/// What flows through the surface of a tile is what its own field says, to the last bit: it takes the place of the
/// velocities there, which are on the given faces.
#[apply(simd)]
fn replace_by_flow_of_tile<const D: usize>(tile: &TileFaces<'_, D>, faces: &Faces<'_>, rhs: &mut [f64]) {
    let sign = tile.side.sign();
    for (row, rhs) in rhs.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
        let cells = masks::row(tile.cells, row);
        if cells == 0 {
            continue;
        }
        let exact = tile.velocity(row);
        let faces = faces.around_row(tile.axis, row)[tile.side.index()];
        for x in 0..SIDE {
            let is_beside = cells >> x & 1 == 1;
            rhs[x] += if is_beside { sign * (f64::from(faces[x]) - exact[x]) } else { 0.0 };
        }
    }
}

/// Makes all links of a block alike, but for those that are cut.
fn fill_links<const D: usize>(links: &mut [&mut [f32]; D], value: f32, cut: &[masks::Bits; D]) {
    for (links, cut) in links.iter_mut().zip(cut) {
        links.fill(value);
        clear_cells(cut, links);
    }
}

/// Sets some cells of a block to zero.
fn clear_cells<T: Copy + Default>(cells: &masks::Bits, values: &mut [T]) {
    if *cells == masks::NONE {
        return;
    }
    for (row, values) in values.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
        let bits = masks::row(cells, row);
        for x in 0..SIDE {
            values[x] = if bits >> x & 1 == 1 { T::default() } else { values[x] };
        }
    }
}

/// Brings the bubbles' rows together.
fn gather_bubbles<const D: usize>(problem: &Problem<'_, D>, to: &mut Projection<D>) {
    let roles = &problem.roles;
    to.shared_links.clear();
    to.bubble_rows.iter().for_each(|bubbles| to.shared_links.extend_from_slice(&bubbles.links));
    to.shared.rebuild(roles.weight, &to.shared_links);
    to.shared_rhs.clear();
    to.shared_rhs.resize(roles.weight.len(), 0.0);
    for bubbles in to.bubble_rows.iter() {
        to.shared_rhs.iter_mut().zip(&bubbles.inflow).for_each(|(rhs, inflow)| *rhs += inflow);
    }
    for (component, &node) in roles.node.iter().enumerate().filter(|(_, node)| **node < OWN) {
        to.shared_rhs[node as usize] += roles.outflow[component];
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
fn add_swept_flux<const D: usize>(
    problem: &Problem<'_, D>,
    label: &Field<Label>,
    slot: usize,
    bubbles: &mut BubbleRows,
) {
    let component = problem.roles.component.block(slot);
    let mut open = [[1f32; MOST]; D];
    for axis in 0..D {
        load_halo(problem.blocks, &problem.boundary.open[axis], slot, HALO, &mut open[axis]);
    }
    for (local, _) in label.block(slot).iter().enumerate().filter(|(_, label)| **label == Label::Air) {
        let Some(node) = problem.roles.node_of(component[local]) else { continue };
        let cell = unflatten::<D>(local, SIDE);
        let at = HALO.index(cell.map(|c| c as i32));
        let mut swept = SweptFlow::default();
        for axis in 0..D {
            for side in Side::BOTH {
                let (share, face) =
                    (open[axis][at + side.index() * HALO.stride(axis)], Face::of(cell, axis, side));
                if share < 1.0 && !leads_into_far_air(problem.blocks, slot, face) {
                    let flow = problem.scripted_flow(slot, face, share.into());
                    bubbles.inflow[node] -= side.sign() * flow;
                    swept.add(side, share.into(), flow);
                } else {
                    swept.add(side, 1.0, 0.0);
                }
            }
        }
        bubbles.inflow[node] += swept.excess();
    }
}
