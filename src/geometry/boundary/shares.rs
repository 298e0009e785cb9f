//! What bodies close of faces.

use std::ops::Range;

use crate::geometry::fraction::{corner_mean, positive_segment, positive_square, snap};
use crate::grid::SIDE;
use crate::math::{Real, Vector, power, unflatten};

use super::BodyShare;
use super::sample::{NODES, STRIDE, all_nodes, corner_of, each_node, positive_share};

/// What a body, or all other solids together, do to the corners and faces of a block.
pub(super) struct FaceNodes {
    /// The body: its place among the solids. [`OTHERS`] for all that are none.
    solid: u32,
    /// Distances at the corners, in cells.
    node: Vec<f32>,
    /// Per axis, by the lowest corner of a face: what they close of it, alone.
    closed: Vec<Vec<f32>>,
}

/// Sides and solids that are no bodies.
pub(super) const OTHERS: u32 = u32::MAX;

impl FaceNodes {
    /// From the distances at the corners.
    pub fn plain<const D: usize>(node: Vec<f32>) -> Self {
        let share = |base, axis| snap(positive_share::<D>(&node, base, axis));
        let closed = closed_shares::<D>(&all_nodes(), share);
        FaceNodes { solid: OTHERS, node, closed }
    }

    /// From the distances at the corners and, for faces that may be cut, at any point given by a corner and an arm from there in
    /// cells. Those faces are halved along each of their axes: between corners alone a ball is a polyhedron, and with a
    /// radius of six cells it would be released with an acceleration that is off by 2.2 percent instead of 1.5.
    /// It closes nothing beyond the corners `within`.
    pub fn new<const D: usize>(
        solid: u32,
        node: Vec<f32>,
        within: &[Range<usize>; D],
        midway: impl Fn(usize, Vector<D>) -> f32,
    ) -> Self {
        let share = |base, axis| snap(halved_share::<D>(&node, base, axis, |arm| midway(base, arm)));
        let closed = closed_shares::<D>(within, share);
        FaceNodes { solid, node, closed }
    }
}

/// One minus the share of every face of a block, per axis, by the lowest corner of the face, which is one of those `within`.
fn closed_shares<const D: usize>(
    within: &[Range<usize>; D],
    share: impl Fn(usize, usize) -> f32,
) -> Vec<Vec<f32>> {
    let of_axis = |axis: usize| {
        let mut closed = vec![0.0; power(NODES, D)];
        each_node(within, |base| {
            let has_corners = (0..D).filter(|&k| k != axis).all(|k| base / STRIDE[k] % NODES + 1 < NODES);
            if has_corners {
                closed[base] = 1.0 - share(base, axis);
            }
        });
        closed
    };
    (0..D).map(of_axis).collect()
}

/// Share of a face where a distance is positive, from the corners of the face or, where it may be cut, of its halves or quarters.
fn halved_share<const D: usize>(
    node: &[f32],
    base: usize,
    axis: usize,
    midway: impl Fn(Vector<D>) -> f32,
) -> f32 {
    // No point of a face is farther from its nearest corner.
    const REACH: f32 = 0.75;
    let others = [(axis + 1) % D, (axis + 2) % D];
    let corners = power(2, D - 1);
    let corner = |c: usize| {
        node[base + (0..D - 1).filter(|i| c >> i & 1 == 1).map(|i| STRIDE[others[i]]).sum::<usize>()]
    };
    let (least, most) = (0..corners)
        .map(corner)
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), d| (least.min(d), most.max(d)));
    if least > REACH {
        return 1.0;
    } else if most < -REACH {
        return 0.0;
    }
    // At multiples of half a face.
    let at = |s: usize, t: usize| match (s % 2, t % 2) {
        (0, 0) => corner(s / 2 + t),
        _ => {
            let mut arm = Vector::zeros();
            arm[others[0]] = 0.5 * s as Real;
            if D == 3 {
                arm[others[1]] = 0.5 * t as Real;
            }
            midway(arm)
        }
    };
    if D == 2 {
        let middle = at(1, 0);
        return 0.5 * (positive_segment(at(0, 0), middle) + positive_segment(middle, at(2, 0)));
    }
    let sample: [[f32; 3]; 3] = std::array::from_fn(|s| std::array::from_fn(|t| at(s, t)));
    let quarter = |s: usize, t: usize| {
        positive_square([sample[s][t], sample[s + 1][t], sample[s + 1][t + 1], sample[s][t + 1]])
    };
    0.25 * (quarter(0, 0) + quarter(1, 0) + quarter(0, 1) + quarter(1, 1))
}

/// A block near bodies. Each solid closes what it would close alone: with the smallest of all distances instead, a gap
/// without a corner of a cell in it would be shut.
pub(super) struct NodesWithBodies {
    /// Sides and all solids that are no bodies, by the smallest of their distances.
    pub others: FaceNodes,
    pub bodies: Vec<FaceNodes>,
}

impl NodesWithBodies {
    /// The smallest distance of all.
    pub fn nearest(&self, node: &mut [f32]) {
        for body in &self.bodies {
            node.iter_mut().zip(&body.node).for_each(|(least, &own)| *least = least.min(own));
        }
    }

    /// The open share of a face.
    pub fn open_share<const D: usize>(&self, base: usize, axis: usize) -> f32 {
        let bodies = self.bodies.iter().map(|body| body.closed[axis][base]);
        snap((1.0 - self.others.closed[axis][base] - bodies.sum::<f32>()).max(0.0))
    }

    /// Whether a cell has no open face.
    fn is_closed<const D: usize>(&self, base: usize) -> bool {
        (0..D).all(|axis| {
            self.open_share::<D>(base, axis) == 0.0 && self.open_share::<D>(base + STRIDE[axis], axis) == 0.0
        })
    }

    /// The solid nearest to a cell's centre: a place among the bodies, or none.
    fn owner<const D: usize>(&self, base: usize) -> Option<usize> {
        let centre = |node: &[f32]| corner_mean::<D>(base, |k| STRIDE[k], |at| node[at]);
        let others = (centre(&self.others.node), None);
        let bodies = self.bodies.iter().enumerate().map(|(k, body)| (centre(&body.node), Some(k)));
        bodies.fold(others, |best, next| if next.0 < best.0 { next } else { best }).1
    }

    /// Lists what bodies close of the block's faces. A closed face of a cell without any open one belongs to the solid that
    /// this cell is part of: what flows through the surface of such cells then sums to zero for every motion.
    pub fn find_shares<const D: usize>(&self, slot: usize, found: &mut Vec<BodyShare>) {
        for axis in 0..D {
            for local in 0..power(SIDE, D) {
                let base = corner_of::<D>(unflatten(local, SIDE).map(|c| c as i32));
                let alone = |body: &FaceNodes| f64::from(body.closed[axis][base]);
                let bodies: f64 = self.bodies.iter().map(alone).sum();
                if bodies <= 0.0 {
                    continue;
                }
                let open = self.open_share::<D>(base, axis);
                let mut add = |body: usize, share: f64| {
                    let solid = self.bodies[body].solid;
                    found.push(BodyShare {
                        slot: slot as u32,
                        axis: axis as u8,
                        local: local as u16,
                        solid,
                        share,
                    });
                };
                if open == 0.0 {
                    let sides = [base - STRIDE[axis], base].map(|cell| (self.is_closed::<D>(cell), cell));
                    if let Some((_, cell)) = sides.into_iter().find(|(closed, _)| *closed) {
                        if let Some(body) = self.owner::<D>(cell) {
                            add(body, 1.0);
                        }
                        continue;
                    }
                }
                let sum = bodies + f64::from(self.others.closed[axis][base]);
                for (k, body) in self.bodies.iter().enumerate() {
                    let share = (1.0 - f64::from(open)) * alone(body) / sum;
                    if share > 0.0 {
                        add(k, share);
                    }
                }
            }
        }
    }
}
