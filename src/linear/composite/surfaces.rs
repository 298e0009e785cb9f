//! Products with the bodies on coarse levels.
//!
//! Cells are named by where `b` and the vectors of a solve keep them (both colours of a block together), explicit nodes
//! come after the last block.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{Scatter, block_cells};

use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::body::{Body, Moments};
use super::by_place::{ByPlace, line_up};
use super::rows::RowSurfaces;

/// What bodies add to a level.
pub(super) trait Term<const D: usize> {
    /// Marks the blocks whose right-hand side bodies change, and damps the sweeps of nodes that bodies hold more strongly
    /// than the network does: see [`share_of`].
    fn prepare(&self, bodies: &[Body], level: &mut Level<D>);

    /// Remembers the right-hand side as it is without bodies.
    fn take_base(&mut self, level: &Level<D>);

    /// Takes the bodies as the level's `x` would have them move: `b − JᵀKJ x` becomes the right-hand side.
    fn freeze(&mut self, bodies: &[Body], level: &mut Level<D>);

    /// Puts back what [`Self::take_base`] saw.
    fn restore(&self, level: &mut Level<D>);
}

/// How far a sweep may move a node that has a diagonal entry, and bodies whose term is at most `bound` there. With bodies
/// taken as they are, a sweep and its mirror image converge together if `D + 2S − B` is positive, with `D` the diagonal,
/// `S` what is added to it, and `B` the bodies' term.
pub(super) fn share_of(diagonal: f32, bound: f32) -> f32 {
    const MARGIN: f32 = 1.05;
    let shift = (0.5 * (MARGIN * bound - diagonal)).max(0.0);
    if shift > 0.0 { diagonal / (diagonal + shift) } else { 1.0 }
}

/// Sets `out` to how `forces` make the bodies move, halved: surfaces count everything twice.
pub(super) fn respond<const D: usize>(
    bodies: &[Body],
    out: &mut Velocities<f32>,
    forces: impl Fn(usize) -> Moments + Sync + Send,
) {
    out.resize(3 * bodies.len(), [0.0; 4]);
    out.par_chunks_mut(3).enumerate().for_each(|(body, out)| {
        let field = bodies[body].response.apply::<D>(&forces(body));
        out.iter_mut().zip(field).for_each(|(out, field)| *out = field.map(|v| 0.5 * v as f32));
    });
}

/// Several faces of one body, beside one node.
#[derive(Clone, Copy, Debug, Default)]
struct Patch {
    node: u32,
    /// How many.
    faces: f32,
    /// Twice their signed number, and twice their first moments.
    twice: [f32; 4],
}

/// A patch as its node sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Contact {
    twice: [f32; 4],
    /// Whose velocity counts there: three times the body, and the axis.
    field: u32,
}

/// The bodies' surfaces on one level: by body, to sum up the forces on each, and by node, to hand out their velocities.
#[derive(Clone, Debug, Default)]
pub(super) struct Surfaces {
    patches: Vec<Patch>,
    /// Per body: where its patches across each axis start, and where the last ones end.
    start: Vec<[u32; 4]>,
    /// The same by the nodes they are beside.
    nodes: ByPlace<Contact>,
    /// Right-hand side of those nodes without the bodies.
    base: Vec<f32>,
    /// Per such node: the sum of `λ_b` over the faces of bodies it stands for.
    bound: Vec<f32>,
    /// Nodes of the level that are cells, whether unknowns or not.
    cells: usize,
    velocities: Velocities<f32>,
}

/// Velocities of bodies, per axis: `(1, x, y, z)` coefficients.
pub(super) type Velocities<T> = Vec<[T; 4]>;

/// Nodes that a thread takes at a time.
const GRAIN: usize = 2048;

/// Where vectors keep a node.
pub(super) fn place_of<const D: usize>(node: Node, cells: usize) -> usize {
    match node.place() {
        Place::Cell { .. } => super::super::explicit::paired_index::<D>(node),
        Place::Explicit(index) => cells + index,
    }
}

/// The inverse of [`place_of`].
pub(super) fn node_at<const D: usize>(place: usize, cells: usize) -> Node {
    if place >= cells {
        return Node::explicit(place - cells);
    }
    let (block, colour, rest) = taken_apart::<D>(place);
    Node((colour << 30 | (block * block_cells(D) / 2 + rest)) as u32)
}

/// Block, colour, and place among the cells of that colour.
#[inline(always)]
fn taken_apart<const D: usize>(place: usize) -> (usize, usize, usize) {
    let half = const { block_cells(D) / 2 };
    (place / (2 * half), place / half % 2, place % half)
}

/// What a level of surfaces can be joined from.
pub(super) trait Joined<const D: usize>: Sync {
    /// Calls `each(node, number, twice number and moments)` for the faces of a body across an axis.
    fn each_patch(&self, body: usize, axis: usize, each: impl FnMut(usize, f32, [f32; 4]));
    /// How many bodies.
    fn bodies(&self) -> usize;
}

impl<const D: usize> Joined<D> for RowSurfaces {
    fn each_patch(&self, body: usize, axis: usize, mut each: impl FnMut(usize, f32, [f32; 4])) {
        self.each_face::<D>(&self.start[body], axis, |node, [x, y, z], sign| {
            each(node, 1.0, [2.0, x, y, z].map(|value| sign * value));
        });
    }
    fn bodies(&self) -> usize {
        self.start.len()
    }
}

impl<const D: usize> Joined<D> for Surfaces {
    fn each_patch(&self, body: usize, axis: usize, mut each: impl FnMut(usize, f32, [f32; 4])) {
        let start = &self.start[body];
        for patch in &self.patches[start[axis] as usize..start[axis + 1] as usize] {
            each(patch.node as usize, patch.faces, patch.twice);
        }
    }
    fn bodies(&self) -> usize {
        self.start.len()
    }
}

impl Surfaces {
    /// Sums the surfaces of a finer level over the children of each coarse node.
    pub fn join<const D: usize>(
        &mut self,
        fine: &impl Joined<D>,
        fine_level: &Level<D>,
        level: &Level<D>,
        bodies: &[Body],
    ) {
        let cells = level.topology.len() * block_cells(D);
        let fine_cells = fine_level.topology.len() * block_cells(D);
        let parent = |place: usize| -> Option<u32> {
            let parent = super::bridge::parent_of(fine_level, node_at::<D>(place, fine_cells));
            (parent != Node::NONE).then(|| place_of::<D>(parent, cells) as u32)
        };
        let join = |place: &mut Vec<u32>, body: usize| {
            let mut all: Vec<Patch> = Vec::new();
            let mut ends = [0; 4];
            for axis in 0..D {
                let from = all.len();
                fine.each_patch(body, axis, |node, faces, twice| {
                    let Some(node) = parent(node) else { return };
                    // Where a node's faces are, if these are not its first.
                    let at = place[node as usize] as usize;
                    match all.get_mut(at).filter(|patch| patch.node == node && at >= from) {
                        Some(patch) => {
                            patch.faces += faces;
                            patch.twice.iter_mut().zip(twice).for_each(|(sum, twice)| *sum += twice);
                        }
                        None => {
                            place[node as usize] = all.len() as u32;
                            all.push(Patch { node, faces, twice });
                        }
                    }
                });
                ends[axis + 1] = all.len() as u32;
            }
            (all, ends)
        };
        let count = fine.bodies();
        let joined: Vec<(Vec<Patch>, [u32; 4])> = (0..count)
            .into_par_iter()
            // Each part needs room for all nodes: a few parts are enough.
            .with_min_len(count.div_ceil(4).max(1))
            .map_init(|| vec![0; cells + level.explicit.count], join)
            .collect();
        line_up(joined, &mut self.patches, &mut self.start);
        self.sort_by_node::<D>(level, bodies);
    }

    /// Once the patches are there: sorts them by the nodes they belong to.
    fn sort_by_node<const D: usize>(&mut self, level: &Level<D>, bodies: &[Body]) {
        self.cells = level.topology.len() * block_cells(D);
        let Surfaces { patches, start, nodes, bound, .. } = self;
        let contacts = start.iter().enumerate().flat_map(|(body, start)| {
            let patches = &*patches;
            (0..D).flat_map(move |axis| {
                let contact =
                    move |patch: &Patch| Contact { twice: patch.twice, field: (3 * body + axis) as u32 };
                let range = start[axis] as usize..start[axis + 1] as usize;
                patches[range].iter().map(move |patch| (patch.node, contact(patch)))
            })
        });
        let len = self.cells + level.explicit.count;
        nodes.sort(len, contacts);
        let mut bounds = vec![0.0; len];
        for (body, start) in start.iter().enumerate() {
            for patch in &patches[start[0] as usize..start[D] as usize] {
                bounds[patch.node as usize] += patch.faces * bodies[body].bound as f32;
            }
        }
        bound.clear();
        bound.extend(nodes.places.iter().map(|&node| bounds[node as usize]));
        self.base.resize(nodes.places.len(), 0.0);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.patches.capacity() * size_of::<Patch>()
            + self.nodes.bytes()
            + self.start.capacity() * 16
            + (self.base.capacity() + self.bound.capacity()) * 4
    }
}

impl<const D: usize> Term<D> for Surfaces {
    fn prepare(&self, _: &[Body], level: &mut Level<D>) {
        level.touched.clear();
        level.touched.resize(level.topology.len(), false);
        for (&node, &bound) in self.nodes.places.iter().zip(&self.bound) {
            let node = node as usize;
            if node >= self.cells {
                let index = node - self.cells;
                level.explicit.damp(index, share_of(level.explicit.diagonal[index] as f32, bound));
                continue;
            }
            let (block, colour, place) = taken_apart::<D>(node);
            level.touched[block] = true;
            let share = share_of(level.stencil.diagonal_at::<D>(block, colour, place), bound);
            if share < 1.0 {
                level.stencil.damp::<D>(block, colour, place, share);
            }
        }
    }

    fn take_base(&mut self, level: &Level<D>) {
        let (b, explicit, cells) = (level.b.as_flattened(), &level.explicit.b, self.cells);
        self.base.par_iter_mut().zip(&self.nodes.places).with_min_len(GRAIN).for_each(|(base, &node)| {
            let node = node as usize;
            *base = if node < cells { b[node] } else { explicit[node - cells] };
        });
    }

    fn freeze(&mut self, bodies: &[Body], level: &mut Level<D>) {
        let mut velocities = std::mem::take(&mut self.velocities);
        let x = [&level.x[0], &level.x[1]].map(|x| x.as_flattened());
        let (cells, extras, half) = (self.cells, &level.explicit.x, const { block_cells(D) / 2 });
        let value = |node: usize| -> f32 {
            if node >= cells {
                return extras[node - cells];
            }
            let (block, colour, place) = taken_apart::<D>(node);
            x[colour][block * half + place]
        };
        respond::<D>(bodies, &mut velocities, |body| {
            let start = self.start[body].map(|at| at as usize);
            let mut forces = [[0.0; 4]; 3];
            for axis in 0..D {
                forces[axis] = sum_up(&self.patches[start[axis]..start[axis + 1]], &value);
            }
            forces
        });
        // What shared nodes add to the same cells is added anew by the sweeps.
        level.explicit.restore_base(&mut level.b);
        let (b, explicit) = (Scatter::new(level.b.as_flattened_mut()), Scatter::new(&mut level.explicit.b));
        self.nodes.each(GRAIN, |index| {
            let value = self.base[index] - hand_out(self.nodes.of(index), &velocities);
            let node = self.nodes.places[index] as usize;
            // SAFETY: every node is visited once.
            unsafe { if node < cells { b.put(node, value) } else { explicit.put(node - cells, value) } }
        });
        level.explicit.take_base(&level.b);
        self.velocities = velocities;
    }

    fn restore(&self, level: &mut Level<D>) {
        level.explicit.restore_base(&mut level.b);
        let (b, explicit, cells) = (level.b.as_flattened_mut(), &mut level.explicit.b, self.cells);
        for (&node, &base) in self.nodes.places.iter().zip(&self.base) {
            let node = node as usize;
            if node < cells { b[node] = base } else { explicit[node - cells] = base }
        }
    }
}

/// `J x` of one body across one axis.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn sum_up<X: Fn(usize) -> f32>(patches: &[Patch], x: &X) -> [f64; 4] {
    // Four sums side by side, so that additions need not wait for each other.
    let mut sums = [[0.0f32; 4]; 4];
    let (fours, rest) = patches.as_chunks::<4>();
    let add = |sums: &mut [f32; 4], patch: &Patch| {
        let value = x(patch.node as usize);
        (0..4).for_each(|k| sums[k] += value * patch.twice[k]);
    };
    for four in fours {
        sums.iter_mut().zip(four).for_each(|(sums, patch)| add(sums, patch));
    }
    sums.iter_mut().zip(rest).for_each(|(sums, patch)| add(sums, patch));
    std::array::from_fn(|k| {
        let [a, b, c, d] = sums.map(|sum| f64::from(sum[k]));
        0.5 * ((a + b) + (c + d))
    })
}

/// `Jᵀ v` at one node.
#[inline(always)]
fn hand_out(contacts: &[Contact], velocities: &[[f32; 4]]) -> f32 {
    let mut sum = 0.0;
    for contact in contacts {
        let (twice, field) = (&contact.twice, &velocities[contact.field as usize]);
        sum += (twice[0] * field[0] + twice[1] * field[1]) + (twice[2] * field[2] + twice[3] * field[3]);
    }
    sum
}
