//! Products with the bodies.
//!
//! Cells are named by where `b` and the vectors of a solve keep them (both colours of a block together), explicit nodes
//! come after the last block.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{Scatter, block_cells};

use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::body::{Bodies, Body, BodyFace};

/// Part of a body's surface that belongs to one node.
pub(super) trait Patch: Copy + Send + Sync {
    /// The node.
    fn node(&self) -> usize;
    /// Twice its signed faces, and twice their first moments.
    fn twice(&self) -> [f32; 4];
}

/// One face: a patch of the finest level.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Face {
    node: u32,
    twice: [i8; 4],
}

impl Face {
    fn new(node: u32, face: &BodyFace) -> Self {
        let [x, y, z] = face.twice;
        let sign = if face.ahead { 1 } else { -1 };
        Face { node, twice: [2 * sign, sign * x, sign * y, sign * z] }
    }
}

impl Patch for Face {
    #[inline(always)]
    fn node(&self) -> usize {
        self.node as usize
    }

    #[inline(always)]
    fn twice(&self) -> [f32; 4] {
        self.twice.map(f32::from)
    }
}

/// Several faces of one coarse node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faces {
    node: u32,
    twice: [f32; 4],
}

impl Patch for Faces {
    #[inline(always)]
    fn node(&self) -> usize {
        self.node as usize
    }

    #[inline(always)]
    fn twice(&self) -> [f32; 4] {
        self.twice
    }
}

/// A patch as its node sees it.
#[derive(Clone, Copy, Debug)]
struct Contact {
    twice: [f32; 4],
    /// Whose velocity counts there: three times the body, and the axis.
    field: u32,
}

/// The bodies' surfaces on one level: by body, to sum up the forces on each, and by node, to hand out their velocities.
#[derive(Clone, Debug)]
pub(in super::super) struct Surfaces<P> {
    patches: Vec<P>,
    /// Per body: where its patches across each axis start, and where the last ones end.
    start: Vec<[u32; 4]>,
    /// The nodes beside bodies, in ascending order, and where their contacts start.
    nodes: Vec<u32>,
    contact_start: Vec<u32>,
    contacts: Vec<Contact>,
    /// Right-hand side of those nodes without the bodies.
    base: Vec<f32>,
    /// Per such node: the sum of `λ_b` over the faces of bodies it stands for.
    bound: Vec<f32>,
    /// Nodes of the level that are cells, whether unknowns or not.
    cells: usize,
    /// Working memory: where a node's next contact goes.
    place: Vec<u32>,
    velocities: Velocities<f32>,
}

/// Velocities of bodies, per axis: `(1, x, y, z)` coefficients.
pub(in super::super) type Velocities<T> = Vec<[T; 4]>;

/// Nodes that a thread takes at a time.
const GRAIN: usize = 2048;

impl<P> Default for Surfaces<P> {
    fn default() -> Self {
        Surfaces {
            patches: Vec::new(),
            start: Vec::new(),
            nodes: Vec::new(),
            contact_start: Vec::new(),
            contacts: Vec::new(),
            base: Vec::new(),
            bound: Vec::new(),
            cells: 0,
            place: Vec::new(),
            velocities: Vec::new(),
        }
    }
}

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

impl Surfaces<Face> {
    /// The bodies' faces on the finest level, whose blocks are those of `block_of`.
    pub fn read<const D: usize>(&mut self, bodies: &Bodies<'_>, block_of: &[u32], level: &Level<D>) {
        let cells = block_cells(D);
        let to_face = |face: &BodyFace| {
            let (slot, local) = (face.cell as usize / cells, face.cell as usize % cells);
            let node = Node::cell::<D>(block_of[slot] as usize, local);
            Face::new(place_of::<D>(node, 0) as u32, face)
        };
        bodies.faces.par_iter().with_min_len(4 * GRAIN).map(to_face).collect_into_vec(&mut self.patches);
        self.start.clear();
        self.start.extend(bodies.list.iter().map(|body| body.faces));
        self.sort_by_node::<D>(level);
        let Surfaces { bound, contact_start, contacts, .. } = self;
        bound.clear();
        bound.extend(contact_start.windows(2).map(|ends| {
            let contacts = &contacts[ends[0] as usize..ends[1] as usize];
            contacts.iter().map(|c| bodies.list[c.field as usize / 3].bound as f32).sum::<f32>()
        }));
    }

    /// `K J x` for a vector of the solve; returns `x·JᵀKJ x`.
    pub fn respond_exactly<const D: usize, X: Copy + Into<f64> + Sync>(
        &self,
        bodies: &[Body],
        x: &[X],
        out: &mut Velocities<f64>,
    ) -> f64 {
        out.resize(3 * bodies.len(), [0.0; 4]);
        let energies: Vec<f64> = out
            .par_chunks_mut(3)
            .enumerate()
            .map(|(body, out)| {
                let forces = self.forces::<D, f64>(body, |node| x[node].into());
                let field = bodies[body].response.apply::<D>(&forces);
                out.copy_from_slice(&field);
                forces.iter().flatten().zip(field.iter().flatten()).map(|(a, b)| a * b).sum()
            })
            .collect();
        energies.iter().sum()
    }

    /// `r −= α Jᵀ v`.
    pub fn subtract_exactly(&self, alpha: f64, velocities: &Velocities<f64>, r: &mut [f64]) {
        let r = Scatter::new(r);
        self.each_node(|index| {
            let sum = hand_out_exactly(&self.contacts[self.contacts_of(index)], velocities);
            // SAFETY: every node is visited once.
            unsafe { *r.at(self.nodes[index] as usize) -= alpha * sum };
        });
    }
}

impl Surfaces<Faces> {
    /// Sums the surfaces of a finer level over the children of each coarse node.
    pub fn join<const D: usize, P: Patch>(
        &mut self,
        fine: &Surfaces<P>,
        fine_level: &Level<D>,
        level: &Level<D>,
    ) {
        let cells = level.topology.len() * block_cells(D);
        let parent = |place: usize| -> Option<u32> {
            let parent = super::bridge::parent_of(fine_level, node_at::<D>(place, fine.cells));
            (parent != Node::NONE).then(|| place_of::<D>(parent, cells) as u32)
        };
        // Parents of the nodes beside bodies; looked up by place.
        let mut parents =
            vec![u32::MAX; fine_level.topology.len() * block_cells(D) + fine_level.explicit.count];
        for &node in &fine.nodes {
            parents[node as usize] = parent(node as usize).unwrap_or(u32::MAX);
        }
        let join = |place: &mut Vec<u32>, start: &[u32; 4]| {
            let mut all: Vec<Faces> = Vec::new();
            let mut ends = [0; 4];
            for axis in 0..D {
                let from = all.len();
                for patch in &fine.patches[start[axis] as usize..start[axis + 1] as usize] {
                    let (node, twice) = (parents[patch.node()], patch.twice());
                    if node == u32::MAX {
                        continue;
                    }
                    // Where a node's faces are, if these are not its first.
                    let at = place[node as usize] as usize;
                    match all.get_mut(at).filter(|faces| faces.node == node && at >= from) {
                        Some(faces) => {
                            faces.twice.iter_mut().zip(twice).for_each(|(sum, twice)| *sum += twice);
                        }
                        None => {
                            place[node as usize] = all.len() as u32;
                            all.push(Faces { node, twice });
                        }
                    }
                }
                ends[axis + 1] = all.len() as u32;
            }
            (all, ends)
        };
        let joined: Vec<(Vec<Faces>, [u32; 4])> = fine
            .start
            .par_iter()
            .with_min_len(fine.start.len().div_ceil(16).max(1))
            .map_init(|| vec![0; cells + level.explicit.count], join)
            .collect();
        self.patches.clear();
        self.start.clear();
        for (patches, ends) in joined {
            let base = self.patches.len() as u32;
            self.start.push(ends.map(|end| base + end));
            self.patches.extend(patches);
        }
        self.sort_by_node::<D>(level);
        self.bound.clear();
        self.bound.resize(self.nodes.len(), 0.0);
        for (&node, &bound) in fine.nodes.iter().zip(&fine.bound) {
            if let Ok(at) = self.nodes.binary_search(&parents[node as usize]) {
                self.bound[at] += bound;
            }
        }
    }
}

impl<P: Patch> Surfaces<P> {
    /// Once the patches are there: sorts them by the nodes they belong to.
    fn sort_by_node<const D: usize>(&mut self, level: &Level<D>) {
        self.cells = level.topology.len() * block_cells(D);
        let Surfaces { patches, start, contacts, nodes, contact_start, place, .. } = self;
        place.clear();
        place.resize(self.cells + level.explicit.count, 0);
        for patch in &*patches {
            place[patch.node()] += 1;
        }
        nodes.clear();
        contact_start.clear();
        let mut next = 0;
        for (node, count) in place.iter_mut().enumerate().filter(|(_, count)| **count != 0) {
            nodes.push(node as u32);
            contact_start.push(next);
            next += std::mem::replace(count, next);
        }
        contact_start.push(next);
        contacts.clear();
        contacts.reserve(patches.len());
        let spare = contacts.spare_capacity_mut();
        for (body, start) in start.iter().enumerate() {
            for axis in 0..D {
                for patch in &patches[start[axis] as usize..start[axis + 1] as usize] {
                    let place = &mut place[patch.node()];
                    let field = (3 * body + axis) as u32;
                    spare[*place as usize].write(Contact { twice: patch.twice(), field });
                    *place += 1;
                }
            }
        }
        // SAFETY: the patches of all bodies are all patches, and each was written to a place of its own.
        unsafe { contacts.set_len(patches.len()) };
        self.base.resize(nodes.len(), 0.0);
    }

    fn contacts_of(&self, node: usize) -> std::ops::Range<usize> {
        self.contact_start[node] as usize..self.contact_start[node + 1] as usize
    }

    /// Calls `work` with every node beside a body, on several threads.
    fn each_node(&self, work: impl Fn(usize) + Sync + Send) {
        let count = self.nodes.len();
        if count > 2 * GRAIN {
            (0..count).into_par_iter().with_min_len(GRAIN).for_each(work);
        } else {
            (0..count).for_each(work);
        }
    }

    /// `J x` of one body.
    fn forces<const D: usize, A: Sums>(&self, body: usize, x: impl Fn(usize) -> A) -> [[f64; 4]; 3] {
        let start = self.start[body].map(|at| at as usize);
        let mut forces = [[0.0; 4]; 3];
        for axis in 0..D {
            forces[axis] = sum_up::<P, A, _>(&self.patches[start[axis]..start[axis + 1]], &x);
        }
        forces
    }

    /// Marks the blocks whose right-hand side bodies change, and damps the sweeps of nodes that bodies hold more strongly
    /// than the network does: with bodies taken as they are, a sweep and its mirror image converge together if
    /// `D + 2S − B` is positive, with `D` the diagonal, `S` what is added to it, and `B` the bodies' term.
    pub fn prepare<const D: usize>(&self, level: &mut Level<D>) {
        const MARGIN: f32 = 1.05;
        level.touched.clear();
        level.touched.resize(level.topology.len(), false);
        let share = |diagonal: f32, bound: f32| {
            let shift = (0.5 * (MARGIN * bound - diagonal)).max(0.0);
            if shift > 0.0 { diagonal / (diagonal + shift) } else { 1.0 }
        };
        for (&node, &bound) in self.nodes.iter().zip(&self.bound) {
            let node = node as usize;
            if node >= self.cells {
                let index = node - self.cells;
                let share = share(level.explicit.diagonal[index] as f32, bound);
                level.explicit.damp(index, share);
                continue;
            }
            let (block, colour, place) = taken_apart::<D>(node);
            level.touched[block] = true;
            let share = share(level.stencil.diagonal_at::<D>(block, colour, place), bound);
            if share < 1.0 {
                level.stencil.damp::<D>(block, colour, place, share);
            }
        }
    }

    /// Remembers the right-hand side as it is without bodies.
    pub fn take_base<const D: usize>(&mut self, level: &Level<D>) {
        let (b, explicit, cells) = (level.b.as_flattened(), &level.explicit.b, self.cells);
        self.base.par_iter_mut().zip(&self.nodes).with_min_len(GRAIN).for_each(|(base, &node)| {
            let node = node as usize;
            *base = if node < cells { b[node] } else { explicit[node - cells] };
        });
    }

    /// Takes the bodies as the level's `x` would have them move: `b − JᵀKJ x` becomes the right-hand side.
    pub fn freeze<const D: usize>(&mut self, bodies: &[Body], level: &mut Level<D>) {
        let mut velocities = std::mem::take(&mut self.velocities);
        velocities.resize(3 * bodies.len(), [0.0; 4]);
        let x = [&level.x[0], &level.x[1]].map(|x| x.as_flattened());
        let (cells, extras, half) = (self.cells, &level.explicit.x, const { block_cells(D) / 2 });
        let value = |node: usize| -> f32 {
            if node >= cells {
                return extras[node - cells];
            }
            let (block, colour, place) = taken_apart::<D>(node);
            x[colour][block * half + place]
        };
        velocities.par_chunks_mut(3).enumerate().for_each(|(body, out)| {
            let forces = self.forces::<D, f32>(body, value);
            let field = bodies[body].response.apply::<D>(&forces);
            // Patches count everything twice.
            out.iter_mut().zip(field).for_each(|(out, field)| *out = field.map(|v| 0.5 * v as f32));
        });
        // What shared nodes add to the same cells is added anew by the sweeps.
        level.explicit.restore_base(&mut level.b);
        let (b, explicit) = (Scatter::new(level.b.as_flattened_mut()), Scatter::new(&mut level.explicit.b));
        self.each_node(|index| {
            let value = self.base[index] - hand_out(&self.contacts[self.contacts_of(index)], &velocities);
            let node = self.nodes[index] as usize;
            // SAFETY: every node is visited once.
            unsafe { if node < cells { b.put(node, value) } else { explicit.put(node - cells, value) } }
        });
        level.explicit.take_base(&level.b);
        self.velocities = velocities;
    }

    /// Puts back what [`Self::take_base`] saw.
    pub fn restore<const D: usize>(&self, level: &mut Level<D>) {
        level.explicit.restore_base(&mut level.b);
        let (b, explicit, cells) = (level.b.as_flattened_mut(), &mut level.explicit.b, self.cells);
        for (&node, &base) in self.nodes.iter().zip(&self.base) {
            let node = node as usize;
            if node < cells { b[node] = base } else { explicit[node - cells] = base }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.patches.capacity() * size_of::<P>()
            + self.contacts.capacity() * size_of::<Contact>()
            + self.start.capacity() * 16
            + (self.nodes.capacity() + self.contact_start.capacity() + self.place.capacity()) * 4
            + (self.base.capacity() + self.bound.capacity()) * 4
    }
}

/// `J x` of one body across one axis, with sums in the precision of `A`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn sum_up<P: Patch, A: Sums, X: Fn(usize) -> A>(patches: &[P], x: &X) -> [f64; 4] {
    // Four sums side by side, so that additions need not wait for each other.
    let mut sums = [[A::default(); 4]; 4];
    let (fours, rest) = patches.as_chunks::<4>();
    let add = |sums: &mut [A; 4], patch: &P| {
        let (value, twice) = (x(patch.node()), patch.twice());
        (0..4).for_each(|k| sums[k] += value * A::from(twice[k]));
    };
    for four in fours {
        sums.iter_mut().zip(four).for_each(|(sums, patch)| add(sums, patch));
    }
    sums.iter_mut().zip(rest).for_each(|(sums, patch)| add(sums, patch));
    std::array::from_fn(|k| {
        let [a, b, c, d] = sums.map(|sum| -> f64 { sum[k].into() });
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

/// The same in double precision.
#[inline(always)]
fn hand_out_exactly(contacts: &[Contact], velocities: &[[f64; 4]]) -> f64 {
    let mut sum = 0.0;
    for contact in contacts {
        let (twice, field) = (contact.twice.map(f64::from), &velocities[contact.field as usize]);
        sum += (twice[0] * field[0] + twice[1] * field[1]) + (twice[2] * field[2] + twice[3] * field[3]);
    }
    // Contacts count everything twice.
    0.5 * sum
}

/// A number to sum up in.
pub(super) trait Sums:
    Copy + Default + From<f32> + Into<f64> + std::ops::AddAssign + std::ops::Mul<Output = Self>
{
}

impl<T> Sums for T where
    T: Copy + Default + From<f32> + Into<f64> + std::ops::AddAssign + std::ops::Mul<Output = T>
{
}
