//! Sampling the walls on one block.

use std::ops::Range;

use crate::geometry::fraction::{corner_mean, positive_segment, positive_square, snap};
use crate::geometry::{PosedSolid, Solid};
use crate::grid::{Blocks, SIDE};
use crate::math::{Real, Vector, power, unflatten};

use super::shares::{CUTS, FaceNodes, NodesWithBodies, OTHERS};
use super::voxels::{Voxels, each_solid_near};
use super::{BodyShare, FAR, Nearness, WallBits, Walls};

/// Centre of a block, metres, and the distance from it within which solids matter to the block.
pub(super) fn reach<const D: usize>(blocks: &Blocks<D>, coords: [i32; D]) -> (Vector<D>, Real, Real) {
    let dx = blocks.grid().dx;
    let half = 0.5 * SIDE as Real;
    let first = blocks.grid().first_cell(coords);
    let centre = Vector::from_fn(|axis, _| (first[axis] as Real + half) * dx);
    let radius = half * (D as Real).sqrt() * dx;
    (centre, radius, radius + FAR as Real * dx)
}

/// How a block lies with respect to the solids, and whether one that moves by a script is near.
pub(super) fn nearness<const D: usize>(
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    slot: usize,
    time: Real,
) -> (Nearness, bool) {
    let (centre, _, reach) = reach(blocks, blocks.coords(slot));
    let mut near = if walls.side_distance(&centre) <= reach { Nearness::Static } else { Nearness::Clear };
    let mut is_swept = false;
    for solid in &walls.solids {
        let is_known = near == Nearness::Moving && (is_swept || solid.body.is_some());
        if !is_known && solid.may_reach(&centre, reach) && solid.distance(&centre, time) <= reach {
            is_swept |= solid.is_moving() && solid.body.is_none();
            near = if near == Nearness::Moving || solid.is_moving() {
                Nearness::Moving
            } else {
                Nearness::Static
            };
        }
    }
    (near, is_swept)
}

/// Whether a block lies so far inside the walls that no liquid cell ever looks at its corners or faces.
pub fn block_is_solid<const D: usize>(
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    coords: [i32; D],
    time: Real,
) -> bool {
    let (centre, radius, _) = reach(blocks, coords);
    let deep = radius + blocks.grid().dx;
    let is_deep =
        |solid: &Solid<D>| solid.may_reach(&centre, -deep) && solid.distance(&centre, time) <= -deep;
    walls.side_distance(&centre) <= -deep || walls.solids.iter().any(is_deep)
}

/// Samples one block: corner distances, open shares from the distances at the corners of each face, and which of the
/// closed faces lie along a wall. If there are bodies, what they close is added to `found`.
#[allow(clippy::too_many_arguments, reason = "a block's part of every field")]
pub(super) fn sample_block<const D: usize>(
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    slot: usize,
    time: Real,
    corner: &mut [f32],
    open: &mut [&mut [f32]; D],
    along: &mut [&mut [u8]; D],
    found: Option<&mut Vec<BodyShare>>,
) -> WallBits {
    // Solids whose poses are worked out together, without asking for memory.
    const GROUP: usize = 8;
    let dx = blocks.grid().dx;
    let first = blocks.first_cell(slot);
    let (centre, _, reach) = reach(blocks, blocks.coords(slot));
    let mut node = [0f32; MOST_NODES];
    let node = &mut node[..power(NODES, D)];
    let place = |index: usize| {
        Vector::<D>::from_fn(|axis, _| {
            (first[axis] + unflatten::<D>(index, NODES)[axis] as i32 - 1) as Real * dx
        })
    };
    for (index, value) in node.iter_mut().enumerate() {
        *value = ((walls.side_distance(&place(index)) / dx) as f32).clamp(-FAR, FAR);
    }
    if walls.voxels {
        each_solid_near(walls, &centre, reach, time, |_, posed| {
            for (index, value) in node.iter_mut().enumerate() {
                *value = value.min(((posed.distance(&place(index)) / dx) as f32).max(-FAR));
            }
        });
        let half = Vector::repeat(0.5 * dx);
        let voxels = Voxels::new(walls, &centre, reach, time, |index| place(index) + half);
        found.into_iter().for_each(|found| voxels.find_shares::<D>(slot, found));
        let share = |base, axis| voxels.open_share(base, axis);
        return derive_block::<D>(node, share, |base, axis| share(base, axis) == 0.0, corner, open, along);
    }
    let mut bodies: Vec<FaceNodes<D>> = Vec::new();
    let mut around: Vec<Near<'_, D>> = Vec::new();
    // Whether a solid that moves by a script is near.
    let mut is_swept = false;
    for (group, solids) in walls.solids.chunks(GROUP).enumerate() {
        // Solids out of reach of the block's centre cannot be within FAR of any of its corners.
        let near: [_; GROUP] = std::array::from_fn(|i| {
            let solid = solids.get(i).filter(|solid| solid.may_reach(&centre, reach))?;
            Some(solid.at(time)).filter(|solid| solid.distance(&centre) <= reach)
        });
        let body = |i: usize| solids.get(i).and_then(|solid| solid.body.as_deref());
        for (i, posed) in near.iter().enumerate() {
            let Some(posed) = posed else { continue };
            let Some(body) = body(i) else {
                is_swept |= solids[i].is_moving();
                continue;
            };
            let padding = body.padding(dx);
            let distance = |x: &Vector<D>| (((posed.distance(x) - padding) / dx) as f32).clamp(-FAR, FAR);
            let middle = body.position() / dx - Vector::from_fn(|k, _| Real::from(first[k] - 1));
            let reach = (body.radius + padding) / dx;
            around.push(Near { posed: *posed, padding, middle, reach });
            // The corners of all faces that it may cut.
            let within = nodes_within(&middle, reach + Real::from(CUTS) + 1.0);
            if within.iter().any(Range::is_empty) {
                continue;
            }
            let solid = (group * GROUP + i) as u32;
            let midway = |base: usize, arm| distance(&(place(base) + arm * dx));
            bodies.push(FaceNodes::new(solid, within, |index| distance(&place(index)), midway));
        }
        if near.iter().enumerate().all(|(i, solid)| solid.is_none() || body(i).is_some()) {
            continue;
        }
        for (index, value) in node.iter_mut().enumerate() {
            let x = place(index);
            for (_, solid) in near.iter().enumerate().filter(|&(i, _)| body(i).is_none()) {
                if let Some(solid) = solid {
                    *value = value.min(((solid.distance(&x) / dx) as f32).max(-FAR));
                }
            }
        }
    }
    if let Some(found) = found.filter(|_| is_swept || !around.is_empty()) {
        let others = if is_swept {
            // As exact as bodies: one too heavy to be moved is a solid with a script.
            let distance = |x: &Vector<D>| ((walls.scripted_distance(x, time) / dx) as f32).clamp(-FAR, FAR);
            let midway = |base: usize, arm| distance(&(place(base) + arm * dx));
            FaceNodes::new(OTHERS, all_nodes(), |index| node[index], midway)
        } else {
            FaceNodes::plain(node)
        };
        for body in &bodies {
            body.each_distance(|index, distance| node[index] = node[index].min(distance));
        }
        // Further away only where nothing else is nearer.
        for Near { posed, padding, middle, reach } in &around {
            each_node(&nodes_within(middle, reach + Real::from(FAR)), |index| {
                let corner = Vector::<D>::from_fn(|k, _| (index / STRIDE[k] % NODES) as Real);
                if (corner - middle).norm() - reach < Real::from(node[index]) {
                    let distance = (posed.distance(&place(index)) - padding) / dx;
                    node[index] = node[index].min((distance as f32).max(-FAR));
                }
            });
        }
        let sampled = NodesWithBodies::new(others, bodies);
        sampled.find_shares(slot, found);
        return derive_block::<D>(
            node,
            |base, axis| sampled.open_share(base, axis),
            |base, axis| lies_along::<D>(node, base, axis),
            corner,
            open,
            along,
        );
    }
    derive_block::<D>(
        node,
        |base, axis| snap(positive_share::<D>(node, base, axis)),
        |base, axis| lies_along::<D>(node, base, axis),
        corner,
        open,
        along,
    )
}

/// A body near a block.
struct Near<'a, const D: usize> {
    posed: PosedSolid<'a, D>,
    /// Metres.
    padding: Real,
    /// Its centre of mass, in cells from the block's first corner.
    middle: Vector<D>,
    /// How far from there nothing of it is any more, in cells.
    reach: Real,
}

/// The corners of a block that are no further from a point along any axis, all in cells from the first corner.
fn nodes_within<const D: usize>(middle: &Vector<D>, reach: Real) -> [Range<usize>; D] {
    std::array::from_fn(|k| {
        let at = |x: Real| x.clamp(0.0, NODES as Real) as usize;
        at((middle[k] - reach).ceil())..at((middle[k] + reach).floor() + 1.0)
    })
}

/// Corners of a block along each axis: its own, those on its high sides, and one more layer below for the normals.
pub(super) const NODES: usize = SIDE + 2;
const MOST_NODES: usize = NODES * NODES * NODES;

/// All corners of a block, per axis.
pub(super) fn all_nodes<const D: usize>() -> [Range<usize>; D] {
    std::array::from_fn(|_| 0..NODES)
}

/// Calls `each` with the corners of a block within a box.
pub(super) fn each_node<const D: usize>(within: &[Range<usize>; D], mut each: impl FnMut(usize)) {
    let size: [usize; D] = std::array::from_fn(|k| within[k].len());
    for flat in 0..size.iter().product() {
        let mut rest = flat;
        let mut index = 0;
        for k in 0..D {
            index += (within[k].start + rest % size[k]) * STRIDE[k];
            rest /= size[k];
        }
        each(index);
    }
}

/// Steps between the corners of a block along each axis.
pub(super) const STRIDE: [usize; 3] = [1, NODES, NODES * NODES];

/// Share of the face across an axis, whose lowest corner is given, where a function of the corners is positive.
#[inline(always)]
pub(super) fn positive_share<const D: usize>(node: &[f32], base: usize, axis: usize) -> f32 {
    if D == 2 {
        return positive_segment(node[base], node[base + STRIDE[1 - axis]]);
    }
    let (s, t) = (STRIDE[(axis + 1) % D], STRIDE[(axis + 2) % D]);
    positive_square([node[base], node[base + s], node[base + s + t], node[base + t]])
}

/// What follows for the cells of a block from the distances at its corners, the open shares of faces, and which of the closed
/// ones lie along a wall.
fn derive_block<const D: usize>(
    node: &[f32],
    share_of: impl Fn(usize, usize) -> f32,
    lies_along: impl Fn(usize, usize) -> bool,
    corner: &mut [f32],
    open: &mut [&mut [f32]; D],
    along: &mut [&mut [u8]; D],
) -> WallBits {
    let stride: [usize; D] = std::array::from_fn(|axis| STRIDE[axis]);
    let mut bits = WallBits { passable: [[0; SIDE]; 3], ..WallBits::CLEAR };
    for (local, corner) in corner.iter_mut().enumerate() {
        let base = corner_of::<D>(unflatten(local, SIDE).map(|c| c as i32));
        *corner = node[base];
        let (mut closed, mut cut) = (true, false);
        let (word, bit) = (local / 64, local % 64);
        for axis in 0..D {
            open[axis][local] = share_of(base, axis);
            let high = share_of(base + stride[axis], axis);
            closed &= open[axis][local] == 0.0 && high == 0.0;
            cut |= open[axis][local] < 1.0 || high < 1.0;
            bits.passable[axis][word] |= ((open[axis][local] > 0.0) as u64) << bit;
            if local % SIDE == 0 {
                along[axis][local / SIDE] = 0;
            }
            let is_along = open[axis][local] == 0.0 && lies_along(base, axis);
            along[axis][local / SIDE] |= (is_along as u8) << (local % SIDE);
        }
        let centre = corner_mean::<D>(base, |k| stride[k], |at| node[at]);
        bits.closed[word] |= (closed as u64) << bit;
        bits.cut[word] |= (cut as u64) << bit;
        bits.close[word] |= ((centre < 0.5) as u64) << bit;
        bits.full[word] |= ((centre < 0.25) as u64) << bit;
    }
    bits
}

/// The lowest corner of a cell among the corners of a block; cells just below the block have one, too.
pub(super) fn corner_of<const D: usize>(cell: [i32; D]) -> usize {
    (0..D).map(|axis| (cell[axis] + 1) as usize * STRIDE[axis]).sum()
}

/// Whether the wall at a face has its normal along `axis`, up to a few degrees.
fn lies_along<const D: usize>(node: &[f32], base: usize, axis: usize) -> bool {
    let stride = STRIDE;
    const COSINE: f32 = 0.95;
    let mut gradient = [0f32; D];
    for c in (0..power(2, D)).filter(|c| c & (1 << axis) == 0) {
        let at = base + (0..D).filter(|k| c & (1 << k) != 0).map(|k| stride[k]).sum::<usize>();
        // Across the face: from the corner before to the corner behind. Along it: between its corners.
        gradient[axis] += 0.5 * (node[at + stride[axis]] - node[at - stride[axis]]);
        for k in (0..D).filter(|&k| k != axis) {
            // Half as many differences as corners.
            gradient[k] += if c & (1 << k) != 0 { 2.0 * node[at] } else { -2.0 * node[at] };
        }
    }
    let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
    norm > 0.0 && gradient[axis].abs() > COSINE * norm
}
