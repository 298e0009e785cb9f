//! The bodies' surfaces: which nodes of a network lie beside which body.
//!
//! Faces of one body, across one axis and towards one side, beside the nodes of one block make a patch. What a patch needs
//! of its nodes, their number of faces and the first moments of these, depends on how they lie in the block: patches of
//! blocks with the same pattern share it.

use std::collections::HashMap;

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{Scatter, block_cells, masks};
use crate::math::unflatten;

use super::body::{Bodies, Body, BodyFace, Moments};
use super::net::Net;
use super::pattern::colour_of;
use super::visit::{Nodes, visit};

/// The nodes of a patch, by colour, with the number of their faces and twice the first moments of their cells' centres
/// from the block's corner.
#[derive(Clone, Debug, Default)]
struct Shape {
    nodes: [Vec<u16>; 2],
    /// All first weights, then all second ones, and so on.
    weights: [Vec<f32>; 2],
}

impl Shape {
    fn new(nodes: &[Vec<(u16, [f32; 4])>; 2]) -> Shape {
        Shape {
            nodes: [0, 1].map(|colour: usize| nodes[colour].iter().map(|(node, _)| *node).collect()),
            weights: [0, 1].map(|colour: usize| {
                (0..4).flat_map(|k| nodes[colour].iter().map(move |(_, weights)| weights[k])).collect()
            }),
        }
    }

    /// Nodes of a colour, with their weights.
    fn each(&self, colour: usize) -> impl Iterator<Item = (usize, [f32; 4])> + '_ {
        let (nodes, weights) = (&self.nodes[colour], &self.weights[colour]);
        let of = move |index: usize| std::array::from_fn(|k| weights[k * nodes.len() + index]);
        nodes.iter().enumerate().map(move |(index, &node)| (node as usize, of(index)))
    }
}

/// Faces of one body beside the nodes of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Patch {
    shape: u32,
    body: u32,
    axis: u8,
    /// 1 where the body lies on the high side of the nodes, and −1 on the low side.
    sign: i8,
    /// Twice the way from the body's origin to the block's corner, and from centres of cells to their faces.
    offset: [f32; 3],
}

/// Velocities of bodies, per axis: coefficients of (1, x, y, z).
pub(super) type Velocities = Vec<[f64; 4]>;

/// All patches of a level.
#[derive(Clone, Debug, Default)]
pub(super) struct Surfaces {
    shapes: Vec<Shape>,
    /// By block, and there by shape.
    patches: Vec<Patch>,
    start: Vec<u32>,
    /// By body: where its patches start in `order`, which has their places.
    body_start: Vec<u32>,
    order: Vec<u32>,
    /// Per patch: sums of values and of their first moments.
    sums: Vec<[f64; 4]>,
    velocities: Velocities,
}

/// A patch before its shape is known.
#[derive(Clone, Copy)]
struct Found {
    block: u32,
    patch: Patch,
    cells: masks::Bits,
}

/// How far a sweep may move a node that has a diagonal entry, and bodies whose term is at most `bound` there. With bodies
/// taken as they are, a sweep and its mirror image converge together if `D + 2S − B` is positive, with `D` the diagonal,
/// `S` what is added to it, and `B` the bodies' term.
fn share_of(diagonal: f32, bound: f32) -> f32 {
    const MARGIN: f32 = 1.05;
    let shift = (0.5 * (MARGIN * bound - diagonal)).max(0.0);
    if shift > 0.0 { diagonal / (diagonal + shift) } else { 1.0 }
}

/// Groups the faces of a body across an axis. They come block by block.
fn group<const D: usize>(
    faces: &[BodyFace],
    block_of: &[u32],
    body: usize,
    axis: usize,
    found: &mut Vec<Found>,
) {
    let (cells, first) = (block_cells(D), found.len());
    let mut last = [usize::MAX; 2];
    for face in faces {
        let (slot, local) = (face.cell as usize / cells, face.cell as usize % cells);
        let (block, sign) = (block_of[slot], if face.ahead { 1 } else { -1 });
        let known = last[face.ahead as usize];
        let at = if known != usize::MAX && found[known].block == block {
            known
        } else {
            let same = |found: &Found| found.block == block && found.patch.sign == sign;
            match found[first..].iter().rposition(same) {
                Some(at) => first + at,
                None => {
                    let corner = unflatten::<D>(local, 8);
                    let offset = std::array::from_fn(|k| match corner.get(k) {
                        Some(&c) => f32::from(face.twice[k]) - (2 * c + 1) as f32,
                        None => 0.0,
                    });
                    let patch = Patch { shape: 0, body: body as u32, axis: axis as u8, sign, offset };
                    found.push(Found { block, patch, cells: masks::NONE });
                    found.len() - 1
                }
            }
        };
        last[face.ahead as usize] = at;
        found[at].cells[local / 64] |= 1 << (local % 64);
    }
}

impl Surfaces {
    /// The bodies' faces on the finest level, whose blocks are those of `block_of`.
    pub fn read<const D: usize>(&mut self, bodies: &Bodies<'_>, block_of: &[u32], net: &Net<D>) {
        let of_body = |(index, body): (usize, &Body)| {
            let mut found = Vec::new();
            for axis in 0..D {
                let faces = &bodies.faces[body.faces[axis] as usize..body.faces[axis + 1] as usize];
                group::<D>(faces, block_of, index, axis, &mut found);
            }
            found
        };
        let found: Vec<Vec<Found>> = bodies.list.par_iter().enumerate().map(of_body).collect();
        let mut known: HashMap<(u32, masks::Bits), u32> = HashMap::new();
        self.shapes.clear();
        let mut list = Vec::with_capacity(found.iter().map(Vec::len).sum());
        for found in found.iter().flatten().filter(|found| found.block != 0) {
            let pattern = net.blocks[found.block as usize].pattern;
            let next = self.shapes.len() as u32;
            let shape = *known.entry((pattern, found.cells)).or_insert_with(|| {
                self.shapes.push(shape_of(net, found));
                next
            });
            list.push((found.block, Patch { shape, ..found.patch }));
        }
        self.sort(list, net.blocks.len() - 1, bodies.list.len());
    }

    /// Those of the next coarser level, from those of `finer` and the blocks of both; `h` is the width of the finer cells.
    pub fn join<const D: usize>(&mut self, finer: &Surfaces, coarse: &Net<D>, bodies: usize, h: f32) {
        type Made = (u32, Vec<(u8, u32)>);
        let mut known: HashMap<Made, u32> = HashMap::new();
        let mut wanted: Vec<Made> = Vec::new();
        let (mut list, mut parts) = (Vec::new(), Vec::new());
        for cover in 1..coarse.blocks.len() - 1 {
            parts.clear();
            for (octant, &block) in coarse.children[cover].iter().enumerate().filter(|(_, b)| **b != 0) {
                parts.extend(finer.of_block(block as usize).iter().map(|patch| (octant as u8, patch)));
            }
            parts.sort_by_key(|(octant, patch)| (patch.body, patch.axis, patch.sign, *octant, patch.shape));
            let is_same = |a: &Patch, b: &Patch| (a.body, a.axis, a.sign) == (b.body, b.axis, b.sign);
            for same in parts.chunk_by(|a, b| is_same(a.1, b.1)) {
                let made: Made = (
                    coarse.blocks[cover].pattern,
                    same.iter().map(|(octant, patch)| (*octant, patch.shape)).collect(),
                );
                let next = wanted.len() as u32;
                let shape = match known.get(&made) {
                    Some(&shape) => shape,
                    None => {
                        wanted.push(made.clone());
                        known.insert(made, next);
                        next
                    }
                };
                let (octant, patch) = same[0];
                let shift = corner_of::<D>(octant as usize, h);
                let offset = std::array::from_fn(|k| patch.offset[k] - shift[k]);
                list.push((cover as u32, Patch { shape, offset, ..*patch }));
            }
        }
        self.shapes.clear();
        self.shapes.par_extend(wanted.par_iter().with_min_len(8).map(|(pattern, parts)| {
            let pattern = &coarse.patterns[*pattern as usize];
            let counts = [pattern.count(0), pattern.count(1)];
            // The last one is for nodes without a parent.
            let mut sums = vec![[0.0f32; 4]; counts[0] + counts[1] + 1];
            for &(octant, shape) in parts {
                let (shape, shift) = (&finer.shapes[shape as usize], corner_of::<D>(octant as usize, h));
                for colour in 0..2 {
                    for (node, weights) in shape.each(colour) {
                        let parent = pattern.parents[octant as usize][colour][node];
                        let sum = &mut sums[parent as usize];
                        sum[0] += weights[0];
                        (0..3).for_each(|k| sum[k + 1] += weights[k + 1] + shift[k] * weights[0]);
                    }
                }
            }
            let mut nodes: [Vec<(u16, [f32; 4])>; 2] = Default::default();
            for colour in 0..2 {
                let own =
                    if colour == 0 { &sums[..counts[0]] } else { &sums[counts[0]..counts[0] + counts[1]] };
                for (index, sum) in own.iter().enumerate().filter(|(_, sum)| sum[0] != 0.0) {
                    nodes[colour].push((index as u16, *sum));
                }
            }
            Shape::new(&nodes)
        }));
        self.sort(list, coarse.blocks.len() - 1, bodies);
    }

    /// Takes patches with their blocks.
    fn sort(&mut self, mut list: Vec<(u32, Patch)>, blocks: usize, bodies: usize) {
        list.sort_by_key(|(block, patch)| (*block, patch.shape));
        self.start.clear();
        self.start.resize(blocks + 1, 0);
        self.body_start.clear();
        self.body_start.resize(bodies + 1, 0);
        for (block, patch) in &list {
            self.start[*block as usize + 1] += 1;
            self.body_start[patch.body as usize + 1] += 1;
        }
        for start in [&mut self.start, &mut self.body_start] {
            for at in 1..start.len() {
                start[at] += start[at - 1];
            }
        }
        let mut next = self.body_start.clone();
        self.order.clear();
        self.order.resize(list.len(), 0);
        for (index, (_, patch)) in list.iter().enumerate() {
            let next = &mut next[patch.body as usize];
            self.order[*next as usize] = index as u32;
            *next += 1;
        }
        self.patches.clear();
        self.patches.extend(list.into_iter().map(|(_, patch)| patch));
        self.sums.resize(self.patches.len(), [0.0; 4]);
    }

    fn of_block(&self, block: usize) -> &[Patch] {
        &self.patches[self.start[block] as usize..self.start[block + 1] as usize]
    }

    /// Marks the blocks beside bodies, and damps the sweeps of nodes that bodies hold more strongly than the network does:
    /// see [`share_of`].
    pub fn prepare<const D: usize>(&self, bodies: &[Body], net: &mut Net<D>) {
        for (block, touched) in net.touched.iter_mut().enumerate() {
            *touched = !self.of_block(block).is_empty();
        }
        for colour in 0..2 {
            let mut inverse = std::mem::take(&mut net.inverse[colour]);
            visit(&net.blocks, Nodes(&mut inverse, colour), &Vec::new, &|bounds, block, inverse| {
                let patches = self.of_block(block);
                if patches.is_empty() {
                    return;
                }
                bounds.clear();
                bounds.resize(inverse.0.len(), 0.0f32);
                for patch in patches {
                    let (shape, each) =
                        (&self.shapes[patch.shape as usize], bodies[patch.body as usize].bound as f32);
                    for (node, weights) in shape.each(colour) {
                        bounds[node] += each * weights[0];
                    }
                }
                for (inverse, &bound) in inverse.0.iter_mut().zip(bounds.iter()) {
                    // Before this it is one over the diagonal.
                    if bound > 0.0 && *inverse > 0.0 {
                        *inverse *= share_of(1.0 / *inverse, bound);
                    }
                }
            });
            net.inverse[colour] = inverse;
        }
    }

    /// Finds out how the bodies move under the pressures `x`: `K J x`.
    pub fn respond<const D: usize, T: Pressure>(
        &mut self,
        bodies: &[Body],
        net: &Net<D>,
        x: [&[T::Stored]; 2],
    ) {
        let mut sums = std::mem::take(&mut self.sums);
        let out = Scatter::new(&mut sums);
        visit(&net.blocks, (), &|| (), &|(), block, ()| {
            let (first, start) = (self.start[block] as usize, net.blocks[block].nodes);
            let (mut known, mut found) = (u32::MAX, [0.0; 4]);
            for (index, patch) in self.of_block(block).iter().enumerate() {
                if patch.shape != known {
                    let shape = &self.shapes[patch.shape as usize];
                    let mut sum = [0.0; 4];
                    for colour in 0..2 {
                        let x = &x[colour][start[colour] as usize..];
                        let found = T::add_up(&shape.nodes[colour], &shape.weights[colour], x);
                        (0..4).for_each(|k| sum[k] += found[k]);
                    }
                    (known, found) = (patch.shape, sum);
                }
                // SAFETY: a patch lies in one block, and every block is visited once.
                unsafe { out.put(first + index, found) };
            }
        });
        self.sums = sums;
        let mut velocities = std::mem::take(&mut self.velocities);
        velocities.resize(3 * bodies.len(), [0.0; 4]);
        velocities.par_chunks_mut(3).enumerate().with_min_len(8).for_each(|(body, out)| {
            out.copy_from_slice(&bodies[body].response.apply::<D>(&self.forces(body)));
        });
        self.velocities = velocities;
    }

    fn forces(&self, body: usize) -> Moments {
        let mut forces = [[0.0; 4]; 3];
        for &index in &self.order[self.body_start[body] as usize..self.body_start[body + 1] as usize] {
            let (patch, sums) = (&self.patches[index as usize], &self.sums[index as usize]);
            let (force, sign) = (&mut forces[patch.axis as usize], f64::from(patch.sign));
            force[0] += sign * sums[0];
            for k in 0..3 {
                force[k + 1] += 0.5 * sign * (sums[k + 1] + f64::from(patch.offset[k]) * sums[0]);
            }
        }
        forces
    }

    /// Adds `scale Jᵀ v` to the nodes of a colour of a block, for the velocities that [`Self::respond`] found.
    pub fn hand_out<A: Lane>(&self, block: usize, colour: usize, out: &mut [A], scale: f64) {
        let patches = self.of_block(block);
        let mut index = 0;
        while index < patches.len() {
            // Patches with the same shape are handed out together.
            let shape = patches[index].shape;
            let mut sum = [0.0; 4];
            while let Some(patch) = patches.get(index).filter(|patch| patch.shape == shape) {
                let field = &self.velocities[3 * patch.body as usize + patch.axis as usize];
                let sign = scale * f64::from(patch.sign);
                sum[0] += sign * field[0];
                for k in 0..3 {
                    sum[0] += 0.5 * sign * f64::from(patch.offset[k]) * field[k + 1];
                    sum[k + 1] += 0.5 * sign * field[k + 1];
                }
                index += 1;
            }
            let (shape, sum) = (&self.shapes[shape as usize], sum.map(A::from_wide));
            A::hand_out(&shape.nodes[colour], &shape.weights[colour], sum, out);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let shapes = self.shapes.iter().flat_map(|shape| &shape.nodes).map(|nodes| nodes.capacity() * 18);
        shapes.sum::<usize>()
            + self.patches.capacity() * size_of::<Patch>()
            + (self.start.capacity() + self.body_start.capacity() + self.order.capacity()) * 4
            + (self.sums.capacity() + self.velocities.capacity()) * 32
    }
}

/// Twice the way from the corner of a coarse block to that of one of its parts, whose cells are `h` wide.
fn corner_of<const D: usize>(octant: usize, h: f32) -> [f32; 3] {
    std::array::from_fn(|axis| if axis < D { 16.0 * h * (octant >> axis & 1) as f32 } else { 0.0 })
}

fn shape_of<const D: usize>(net: &Net<D>, found: &Found) -> Shape {
    let pattern = net.pattern(found.block as usize);
    let mut nodes: [Vec<(u16, [f32; 4])>; 2] = Default::default();
    for cell in masks::each(&found.cells) {
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
    Shape::new(&nodes)
}

/// Lanes of a sum: always as many, whatever the instruction set.
const LANES: usize = 8;

/// Sums over the nodes of a colour of a patch, in numbers of kind `$number`.
macro_rules! add_up {
    ($name:ident, $value:ty, $number:ty) => {
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
        fn $name(nodes: &[u16], weights: &[f32], x: &[$value]) -> [f64; 4] {
            let weights: [&[f32]; 4] =
                std::array::from_fn(|k| &weights[k * nodes.len()..(k + 1) * nodes.len()]);
            let mut sums = [[0.0 as $number; LANES]; 4];
            let (rows, rest) = nodes.as_chunks::<LANES>();
            for (row, nodes) in rows.iter().enumerate() {
                let values: [$number; LANES] = nodes.map(|node| <$number>::from(x[node as usize]));
                for k in 0..4 {
                    let weights = &weights[k][row * LANES..(row + 1) * LANES];
                    for lane in 0..LANES {
                        sums[k][lane] += <$number>::from(weights[lane]) * values[lane];
                    }
                }
            }
            for (lane, &node) in rest.iter().enumerate() {
                let value = <$number>::from(x[node as usize]);
                for k in 0..4 {
                    sums[k][lane] += <$number>::from(weights[k][rows.len() * LANES + lane]) * value;
                }
            }
            sums.map(|sums| sums.into_iter().map(f64::from).sum())
        }
    };
}
add_up!(add_up_roughly, f32, f32);
add_up!(add_up_exactly, f64, f64);
add_up!(add_up_widened, f32, f64);

/// Gives the nodes of a colour of a patch their part.
macro_rules! hand_out {
    ($name:ident, $number:ty) => {
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
        fn $name(nodes: &[u16], weights: &[f32], sum: [$number; 4], out: &mut [$number]) {
            let weights: [&[f32]; 4] =
                std::array::from_fn(|k| &weights[k * nodes.len()..(k + 1) * nodes.len()]);
            let part = |index: usize| {
                let w: [$number; 4] = std::array::from_fn(|k| <$number>::from(weights[k][index]));
                (sum[0] * w[0] + sum[1] * w[1]) + (sum[2] * w[2] + sum[3] * w[3])
            };
            let (rows, rest) = nodes.as_chunks::<LANES>();
            for (row, nodes) in rows.iter().enumerate() {
                let parts: [$number; LANES] = std::array::from_fn(|lane| part(row * LANES + lane));
                for (&node, part) in nodes.iter().zip(parts) {
                    out[node as usize] += part;
                }
            }
            for (lane, &node) in rest.iter().enumerate() {
                out[node as usize] += part(rows.len() * LANES + lane);
            }
        }
    };
}
hand_out!(hand_out_roughly, f32);
hand_out!(hand_out_exactly, f64);

/// A vector that bodies answer to, and how exactly their answer is found.
pub(super) trait Pressure: Copy + Sync {
    /// Numbers as stored.
    type Stored: Copy + Sync;
    /// Sums over some nodes of a patch, with all weights.
    fn add_up(nodes: &[u16], weights: &[f32], x: &[Self::Stored]) -> [f64; 4];
}

/// Of a sweep: in single precision.
#[derive(Clone, Copy)]
pub(super) struct Rough;
/// Of a direction of conjugate gradients: stored in single precision, summed in double.
#[derive(Clone, Copy)]
pub(super) struct Widened;
/// Of a solution: in double precision.
#[derive(Clone, Copy)]
pub(super) struct Exact;

impl Pressure for Rough {
    type Stored = f32;
    fn add_up(nodes: &[u16], weights: &[f32], x: &[f32]) -> [f64; 4] {
        add_up_roughly(nodes, weights, x)
    }
}
impl Pressure for Widened {
    type Stored = f32;
    fn add_up(nodes: &[u16], weights: &[f32], x: &[f32]) -> [f64; 4] {
        add_up_widened(nodes, weights, x)
    }
}
impl Pressure for Exact {
    type Stored = f64;
    fn add_up(nodes: &[u16], weights: &[f32], x: &[f64]) -> [f64; 4] {
        add_up_exactly(nodes, weights, x)
    }
}

/// A number that a node's part is given in.
pub(super) trait Lane: Copy {
    fn from_wide(value: f64) -> Self;
    fn hand_out(nodes: &[u16], weights: &[f32], sum: [Self; 4], out: &mut [Self]);
}
impl Lane for f32 {
    fn from_wide(value: f64) -> f32 {
        value as f32
    }
    fn hand_out(nodes: &[u16], weights: &[f32], sum: [f32; 4], out: &mut [f32]) {
        hand_out_roughly(nodes, weights, sum, out);
    }
}
impl Lane for f64 {
    fn from_wide(value: f64) -> f64 {
        value
    }
    fn hand_out(nodes: &[u16], weights: &[f32], sum: [f64; 4], out: &mut [f64]) {
        hand_out_exactly(nodes, weights, sum, out);
    }
}
