//! Builds the bodies' surfaces, level by level.

use rayon::prelude::*;

use crate::grid::masks;
use crate::math::{group_starts, sort_by_group, unflatten};

use super::super::super::bodies::{Bodies, Body};
use super::super::interner::{Interner, KeyIndex, NEW, rebuild};
use super::super::network::Network;
use super::super::pattern::{Pattern, colour_of};
use super::super::weights::{PatchWeights, Weights};
use super::{Patch, Run, Surfaces};

/// Weights that a thread builds at a time.
const SHAPES: usize = 32;

/// The weights below a coarse patch: part of the block, and index.
pub(super) type ShapeParts = Vec<(u8, u32)>;

/// Patches of a coarse block, and the keys of their weights.
#[derive(Default)]
struct CoarsePatches {
    patches: Vec<Patch>,
    shapes: Vec<ShapeParts>,
}

impl Surfaces {
    /// The bodies' faces on the finest level, whose blocks are those of `block_of`.
    pub fn read<const D: usize>(&mut self, bodies: &Bodies<'_>, block_of: &[u32], net: &Network<D>) {
        let width_of = |body: &Body| body.width.max(1).next_power_of_two();
        self.bodies.clear();
        self.bodies.extend(bodies.list.iter().map(|body| (width_of(body), 1.0)));
        let mut interner = Interner::from(0);
        let mut list = Vec::with_capacity(bodies.patches.len());
        for (index, body) in bodies.list.iter().enumerate() {
            for axis in 0..D {
                for patch in body.across(axis, bodies.patches) {
                    let block = block_of[patch.slot as usize];
                    if block == 0 {
                        continue;
                    }
                    let shape = interner.intern((net.blocks[block as usize].pattern, patch.cells));
                    list.push(Patch::new::<D>(patch, block, shape, index, axis));
                }
            }
        }
        let keys = interner.match_previous(&mut self.beside, &mut self.previous, |&(pattern, cells)| {
            Some((net.previous[pattern as usize], cells)).filter(|before| before.0 != NEW)
        });
        rebuild(
            &mut self.shapes,
            &self.previous,
            SHAPES,
            || (),
            |(), place| {
                let (pattern, cells) = &keys[place];
                shape_of::<D>(&net.patterns[*pattern as usize], cells)
            },
        );
        self.sort(list, net.blocks.len() - 1, bodies.list.len());
    }

    /// The surfaces of the next coarser level, from those of `finer` and the blocks of both; `h` is the width of the finer cells.
    ///
    /// The force on a body is an integral of pressure over its surface, which functions that are constant in coarse cells
    /// reproduce: it keeps its strength. For cells as large as the body its motion is, like other links, an energy
    /// of gradients, which such functions overestimate by two from one level to the next.
    pub fn coarsen<const D: usize>(&mut self, finer: &Surfaces, coarse: &Network<D>, h: f32) {
        self.bodies.clear();
        self.bodies.extend(finer.bodies.iter().map(|&(width, strength)| {
            let is_inside = 2.0 * h >= width as f32;
            (width, if is_inside { 0.5 * strength } else { strength })
        }));
        let covers: Vec<CoarsePatches> = (1..coarse.blocks.len() - 1)
            .into_par_iter()
            .with_min_len(4)
            .map(|cover| finer.cover::<D>(cover as u32, &coarse.children[cover], h))
            .collect();
        // Patterns of many blocks may make the same shapes in each of them.
        let mut uses = vec![0; coarse.patterns.len()];
        coarse.blocks.iter().for_each(|block| uses[block.pattern as usize] += 1);
        let mut interner = Interner::from(0);
        let (mut list, mut numbers) = (Vec::new(), Vec::new());
        for (cover, CoarsePatches { patches, shapes }) in covers.into_iter().enumerate() {
            let pattern = coarse.blocks[cover + 1].pattern;
            numbers.clear();
            let is_alone = uses[pattern as usize] == 1 && coarse.previous[pattern as usize] == NEW;
            numbers.extend(shapes.into_iter().map(|made| {
                if is_alone {
                    interner.intern_unique((pattern, made))
                } else {
                    interner.intern((pattern, made))
                }
            }));
            list.extend(
                patches.into_iter().map(|patch| Patch { shape: numbers[patch.shape as usize], ..patch }),
            );
        }
        let keys = interner.match_previous(&mut self.coarse, &mut self.previous, |(pattern, made)| {
            let before = |&(octant, shape): &(u8, u32)| (octant, finer.previous[shape as usize]);
            let before =
                (coarse.previous[*pattern as usize], made.iter().map(before).collect::<ShapeParts>());
            (before.0 != NEW && before.1.iter().all(|part| part.1 != NEW)).then_some(before)
        });
        rebuild(
            &mut self.shapes,
            &self.previous,
            SHAPES,
            || (vec![[0.0f32; 4]; 2 * coarse.room + 1], Vec::new()),
            |(sums, touched), place| {
                let (pattern, parts) = &keys[place];
                let pattern = &coarse.patterns[*pattern as usize];
                let [reds, blacks] = [pattern.count(0) as u16, pattern.count(1) as u16];
                for &(octant, shape) in parts {
                    let (shape, shift) = (&finer.shapes[shape as usize], corner_of::<D>(octant as usize, h));
                    for colour in 0..2 {
                        let parents = pattern.parents.of(octant as usize, colour);
                        for (node, weights) in shape.each(colour) {
                            let parent = parents.get(node);
                            let sum = &mut sums[parent as usize];
                            if sum[0] == 0.0 {
                                touched.push(parent);
                            }
                            sum[0] += weights[0];
                            (0..3).for_each(|k| sum[k + 1] += weights[k + 1] + shift[k] * weights[0]);
                        }
                    }
                }
                touched.sort_unstable();
                let mut nodes: [Vec<(u16, Weights)>; 2] = Default::default();
                for parent in touched.drain(..) {
                    let sum = std::mem::take(&mut sums[parent as usize]);
                    // Others have no parent.
                    if parent < reds {
                        nodes[0].push((parent, sum));
                    } else if parent < reds + blacks {
                        nodes[1].push((parent - reds, sum));
                    }
                }
                PatchWeights::new(&nodes)
            },
        );
        self.sort(list, coarse.blocks.len() - 1, self.bodies.len());
    }

    /// No bodies beside any of the blocks.
    pub fn clear(&mut self, blocks: usize) {
        self.forget();
        self.shapes.clear();
        self.previous.clear();
        self.bodies.clear();
        self.sort(Vec::new(), blocks, 0);
    }

    /// The patches of a coarse block, from those of this level's blocks below it, whose cells are `h` wide.
    fn cover<const D: usize>(&self, cover: u32, children: &[u32; 8], h: f32) -> CoarsePatches {
        let mut parts = Vec::new();
        for (octant, &block) in children.iter().enumerate().filter(|(_, block)| **block != 0) {
            parts.extend(self.of_block(block as usize).iter().map(|patch| (octant as u8, patch)));
        }
        let side_of = |patch: &Patch| (patch.body, patch.axis, patch.sign);
        parts.sort_by_key(|(octant, patch)| (side_of(patch), *octant, patch.shape));
        let mut known: KeyIndex<ShapeParts> = KeyIndex::default();
        let mut covered = CoarsePatches::default();
        for same in parts.chunk_by(|a, b| side_of(a.1) == side_of(b.1)) {
            let made: ShapeParts = same.iter().map(|(octant, patch)| (*octant, patch.shape)).collect();
            let next = covered.shapes.len() as u32;
            let shape = *known.entry(made).or_insert_with_key(|made| {
                covered.shapes.push(made.clone());
                next
            });
            let (octant, patch) = same[0];
            let shift = corner_of::<D>(octant as usize, h);
            let offset = std::array::from_fn(|k| patch.offset[k] - shift[k]);
            covered.patches.push(Patch { block: cover, shape, offset, ..*patch });
        }
        covered.patches.sort_by_key(|patch| patch.shape);
        covered
    }

    /// Takes patches.
    fn sort(&mut self, mut list: Vec<Patch>, blocks: usize, bodies: usize) {
        list.sort_by_key(|patch| (patch.block, patch.shape));
        self.runs.clear();
        let mut end = 0;
        for same in list.chunk_by_mut(|a, b| (a.block, a.shape) == (b.block, b.shape)) {
            same.iter_mut().for_each(|patch| patch.run = self.runs.len() as u32);
            end += same.len() as u32;
            self.runs.push(Run { block: same[0].block, shape: same[0].shape, end });
        }
        group_starts(&mut self.start, blocks, list.iter().map(|patch| patch.block));
        group_starts(&mut self.run_start, blocks, self.runs.iter().map(|run| run.block));
        self.order.clear();
        self.order.resize(list.len(), 0);
        let (order, patches) = (&mut self.order, list.iter().zip(0..));
        let body = |(patch, _): &(&Patch, u32)| patch.body;
        sort_by_group(&mut self.body_start, bodies, patches, body, |at, (_, index)| order[at] = index);
        self.patches = list;
        self.sums.resize(self.runs.len(), [0.0; 4]);
        self.scatter.resize(self.runs.len(), [0.0; 4]);
    }
}

/// Twice the way from the corner of a coarse block to that of one of its parts, whose cells are `h` wide.
fn corner_of<const D: usize>(octant: usize, h: f32) -> [f32; 3] {
    std::array::from_fn(|axis| if axis < D { 16.0 * h * (octant >> axis & 1) as f32 } else { 0.0 })
}

fn shape_of<const D: usize>(pattern: &Pattern, cells: &masks::Bits) -> PatchWeights {
    if let Some(rows) = &pattern.rows {
        return PatchWeights::in_rows::<D>(rows, cells);
    }
    let mut nodes: [Vec<(u16, Weights)>; 2] = Default::default();
    for cell in masks::each(cells) {
        // Cells that are no unknowns have no pressure.
        if let Some(node) = pattern.find(cell, 0) {
            let at = unflatten::<D>(cell, 8);
            let weights = std::array::from_fn(|k| match k {
                0 => 1.0,
                k => at.get(k - 1).map_or(0.0, |&c| (2 * c + 1) as f32),
            });
            nodes[colour_of::<D>(cell)].push((node as u16, weights));
        }
    }
    PatchWeights::new(&nodes)
}
