//! Bridges: cells of the weaker of two materials through which the stronger one hangs together.
//!
//! Where the surface touches the centre of a cell, its links to the stronger material are as strong as those in there
//! (`linear::material`). A cell with two such links, a film or a drop, is a *bridge*: to the stronger material it is a link like others. On
//! coarse levels it is part of an aggregate of its own material, which the links of many others bind: each of its links is
//! weakened in series with that, and the stronger material falls apart there. Corrections then overshoot, by another factor on every
//! level. Around bodies nothing makes up for that, since sweeps there are damped.
//!
//! As part of the stronger material a bridge fares no better: links inside a material are halved from level to level, as if paths
//! through it got longer, and those through a narrow place do not. So bridges become shared nodes, which aggregates leave alone:
//! the same equations in other places.
//!
//! ```text
//!     gas  ═══ water ═══  gas            gas  ═══ node ═══  gas      ═  strong links
//!                │                                 │                 │  weak ones
//!     water ── water ── water            water ── water ── water
//! ```

use rayon::prelude::*;

use crate::grid::{Blocks, Field, across, block_cells, for_each_block, masks};
use crate::math::Side;

use super::bodies::Bodies;
use super::coupling::Unknown;
use super::system::{SharedNodes, System};

/// A bridge has two links to the stronger material that are stronger by this than a whole link of its own.
const STRONG: f32 = 4.0;
/// The most bridges: as nodes of all levels they reach the coarsest one, which is solved exactly. The strongest matter most.
const MOST: usize = 128;

/// A system in which bridges are shared nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Bridges<const D: usize> {
    /// The cells, `slot · 8^D + local`, in the order of their nodes.
    cells: Vec<u32>,
    link: Vec<Field<f32>>,
    shared: SharedNodes,
}

/// A cell that may be a bridge, and its second strongest link to the stronger material.
type Candidate = (u32, f32);

/// A link of a cell: the cell at the other end, the place where the link is stored, and its axis.
struct CellLink {
    other: u32,
    stored: usize,
    axis: usize,
    value: f32,
}

/// The links of a cell.
fn links_of<const D: usize>(system: &System<'_, D>, cell: u32) -> impl Iterator<Item = CellLink> {
    let cells = block_cells(D);
    let (slot, local) = (cell as usize / cells, cell as usize % cells);
    let link = system.link;
    let blocks = system.blocks;
    (0..2 * D).map(move |side| {
        let (axis, side) = (side / 2, Side::at(side));
        let (there, is_beyond) = across(local, axis, side);
        let beyond = if is_beyond { blocks.beside(slot, axis, side) as usize } else { slot };
        let other = beyond * cells + there;
        // A link is stored with the cell on its high side.
        let stored = if side == Side::Low { cell as usize } else { other };
        CellLink { other: other as u32, stored, axis, value: link[axis][stored] }
    })
}

/// Whether a block and those beside it hold cells of both materials.
fn is_mixed<const D: usize>(blocks: &Blocks<D>, second: &Field<bool>, slot: usize) -> bool {
    let first = second.block(slot)[0];
    let is_like_it = |slot: usize| second.block(slot).iter().fold(true, |all, &own| all & (own == first));
    let mut beside = (0..2 * D).map(|side| blocks.beside(slot, side / 2, Side::at(side)) as usize);
    !(is_like_it(slot) && beside.all(is_like_it))
}

/// The cells between strong links, the strongest first.
fn find_candidates<const D: usize>(system: &System<'_, D>, bodies: &Bodies<'_>) -> Vec<Candidate> {
    let Some(materials) = system.materials else { return Vec::new() };
    let [first, second] = materials.whole;
    let (is_weak_second, weak) = (second < first, first.min(second));
    let cells = block_cells(D);
    let candidate = |cell: u32| {
        let own = materials.second[cell as usize];
        if own != is_weak_second || system.ground[cell as usize] > 0.0 {
            return None;
        }
        let [mut strongest, mut next] = [0.0f32; 2];
        for CellLink { other, value, .. } in links_of(system, cell) {
            if materials.second[other as usize] != own {
                next = next.max(value.min(strongest));
                strongest = strongest.max(value);
            }
        }
        (next > STRONG * weak).then_some((cell, next))
    };
    let slots = system.live.as_slice().par_iter().map(|&slot| slot as usize);
    let mixed = slots.filter(|&slot| is_mixed(system.blocks, materials.second, slot));
    let mut found: Vec<Candidate> = mixed
        .flat_map_iter(|slot| (slot * cells..(slot + 1) * cells).filter_map(|cell| candidate(cell as u32)))
        .collect();
    // Shared nodes know of no bodies.
    found.sort_unstable_by_key(|found| found.0);
    let mut beside: Vec<u32> = Vec::new();
    for patch in bodies.patches {
        let start = patch.slot * cells as u32;
        let [from, end] = [start, start + cells as u32].map(|at| found.partition_point(|found| found.0 < at));
        let near = found[from..end].iter().map(|found| found.0);
        beside.extend(near.filter(|cell| masks::has(&patch.cells, (cell - start) as usize)));
    }
    found.retain(|found| !beside.contains(&found.0));
    let is_pushed = |cell: u32| system.couplings.is_some_and(|all| all.touch(Unknown::Cell(cell)));
    found.retain(|found| !is_pushed(found.0));
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found
}

impl<const D: usize> Bridges<D> {
    /// Finds the bridges of a system with bodies; returns whether there are any.
    pub fn find(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>) -> bool {
        self.cells.clear();
        self.shared.clear();
        let Some(materials) = system.materials.filter(|_| system.shared.is_empty()) else { return false };
        for (cell, _) in find_candidates(system, bodies) {
            // No two shared nodes are linked. Blocks of which bodies know the unknowns stay as they are.
            let is_free = |CellLink { other, value, .. }: CellLink| {
                let is_known = bodies.known[other as usize / block_cells(D)].is_some();
                value == 0.0 || !is_known && !self.cells.contains(&other)
            };
            if self.cells.len() < MOST && links_of(system, cell).all(is_free) {
                self.cells.push(cell);
            }
        }
        if self.cells.is_empty() {
            return false;
        }
        self.link.resize_with(D, || Field::new(block_cells(D), 0.0));
        for (own, link) in self.link.iter_mut().zip(system.link) {
            own.resize(system.blocks.slot_count());
            for_each_block(system.blocks.slots(), own.parts(), |slot, own| {
                own.copy_from_slice(link.block(slot))
            });
        }
        for &cell in &self.cells {
            self.shared.push_node(1.0);
            for CellLink { other, stored, axis, value } in
                links_of(system, cell).filter(|link| link.value > 0.0)
            {
                let material = materials.second[other as usize];
                self.shared.push_link(other as usize, value, materials.whole[usize::from(material)]);
                self.link[axis][stored] = 0.0;
            }
        }
        true
    }

    /// The same system with bridges as shared nodes.
    pub fn system<'a>(&'a self, system: &System<'a, D>) -> System<'a, D> {
        let link = self.link.as_slice().try_into().expect("one field per axis");
        System { link, shared: &self.shared, ..*system }
    }

    /// Takes the bridges' right-hand sides out of the cells, and first guesses with them.
    pub fn take(&self, rhs: &mut Field<f64>, x: &Field<f64>) -> [Vec<f64>; 2] {
        let cells = || self.cells.iter().map(|&cell| cell as usize);
        [cells().map(|cell| std::mem::take(&mut rhs[cell])).collect(), cells().map(|cell| x[cell]).collect()]
    }

    /// Puts right-hand sides back, and answers with them.
    pub fn put_back(&self, [own_rhs, own_x]: [Vec<f64>; 2], rhs: &mut Field<f64>, x: &mut Field<f64>) {
        for ((&cell, own_rhs), own_x) in self.cells.iter().zip(own_rhs).zip(own_x) {
            (rhs[cell as usize], x[cell as usize]) = (own_rhs, own_x);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.link.iter().map(Field::bytes).sum()
    }
}
