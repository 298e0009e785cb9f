//! What the samples and faces of a block weigh.

use crate::grid::{SIDE, block_cells, halo_cells};
use crate::math::unflatten;

use super::near_index;
use super::surroundings::{MOST_NEAR, NEAR, Surroundings};

/// The least mass of a face that any stress acts on: along the surface there are faces without liquid, and two of them on one
/// sample would be free to move against each other.
const LEAST_MASS: f32 = 1e-4;
/// A wall is no nearer to a face than this, in cells.
const LEAST_THETA: f32 = 0.05;
/// A slippery wall acts on what moves across it if it lies along the face, up to some degrees.
const ACROSS: f32 = 0.9;

/// The coefficients of a block.
#[derive(Clone, Copy)]
pub(super) struct Coefficients<'a> {
    /// Of samples, see [`add_stress`](super::kernel::add_stress).
    pub weights: &'a [f32],
    /// Of the block's faces, axis after axis.
    pub mass: &'a [f32],
    /// One over the diagonal; zero on faces that are no unknowns.
    pub inverse: &'a [f32],
}

/// The same, to be found.
pub(super) struct CoefficientsMut<'a> {
    pub weights: &'a mut [f32],
    pub mass: &'a mut [f32],
    pub inverse: &'a mut [f32],
}

impl CoefficientsMut<'_> {
    /// Those of a block in the midst of the liquid.
    pub fn fill_inside<const D: usize>(&mut self, alpha: f32) {
        let cells = halo_cells(NEAR, D);
        for a in 0..D {
            for b in 0..D {
                let weight = if a == b { 2.0 * alpha } else { alpha.sqrt() };
                self.weights[(a * D + b) * cells..][..cells].fill(weight);
            }
        }
        self.mass.fill(1.0);
        self.inverse.fill(1.0 / (1.0 + (2 * D + 2) as f32 * alpha));
    }

    /// Those of any other block. `slips` says whether a low face of a cell that lies in a wall lies in a slippery one, `is_stored`
    /// whether the level has that cell.
    pub fn fill<const D: usize>(
        &mut self,
        around: &Surroundings<D>,
        alpha: f32,
        slips: impl Fn([i32; D], usize) -> bool,
        is_stored: impl Fn([i32; D]) -> bool,
    ) {
        let cells = halo_cells(NEAR, D);
        let distance: [[f32; MOST_NEAR]; D] = std::array::from_fn(|axis| around.face_distances(axis));
        self.weights.fill(0.0);
        for at in 0..cells {
            let cell = unflatten::<D>(at, NEAR.side).map(|c| c as i32 - 1);
            if cell.iter().all(|&c| c < SIDE as i32) {
                let share = around.box_share(at, 0);
                for a in (0..D).filter(|_| share > 0.0) {
                    let high = at + NEAR.stride(a);
                    let ends = [distance[a][at], distance[a][high]];
                    let mut is_lost = ends.iter().all(|&end| end <= 0.0);
                    if let Some(end) = crossing(ends) {
                        let (mut face, mut deeper) = (cell, cell);
                        face[a] += end as i32;
                        deeper[a] += 3 * end as i32 - 1;
                        // Outside, another wall may be nearer.
                        let inside = around.face_distance(deeper, a) - ends[end];
                        let slope = (ends[1] - ends[0]).abs().max(inside.abs());
                        is_lost |= slope < ACROSS && slips(face, a);
                    }
                    if !is_lost {
                        self.weights[(a * D + a) * cells + at] = 2.0 * alpha * share / theta(ends);
                    }
                }
            }
            if cell.iter().all(|&c| c >= 0) {
                for a in 0..D {
                    for b in a + 1..D {
                        self.fill_edge(around, &distance, (at, cell), [a, b], alpha, &slips);
                    }
                }
            }
        }
        self.fill_faces(around, &distance, is_stored);
    }

    /// The shear sample at the low edge of a cell across two axes.
    fn fill_edge<const D: usize>(
        &mut self,
        around: &Surroundings<D>,
        distance: &[[f32; MOST_NEAR]; D],
        (at, cell): (usize, [i32; D]),
        axes: [usize; 2],
        alpha: f32,
        slips: impl Fn([i32; D], usize) -> bool,
    ) {
        let cells = halo_cells(NEAR, D);
        let share = around.box_share(at, (1 << axes[0]) | (1 << axes[1]));
        if share == 0.0 {
            return;
        }
        let mut thetas = [1.0; 2];
        for (k, theta_k) in thetas.iter_mut().enumerate() {
            // Component `a` differs along `b`.
            let [a, b] = [axes[k], axes[1 - k]];
            let ends = [distance[a][at - NEAR.stride(b)], distance[a][at]];
            if let Some(end) = crossing(ends) {
                let mut face = cell;
                face[b] -= 1 - end as i32;
                if slips(face, a) {
                    return;
                }
            }
            *theta_k = theta(ends);
        }
        let strength = (alpha * share * thetas[0].min(thetas[1])).sqrt();
        for k in 0..2 {
            self.weights[(axes[k] * D + axes[1 - k]) * cells + at] = strength / thetas[k];
        }
    }

    /// Masses and diagonals of the block's faces.
    fn fill_faces<const D: usize>(
        &mut self,
        around: &Surroundings<D>,
        distance: &[[f32; MOST_NEAR]; D],
        is_stored: impl Fn([i32; D]) -> bool,
    ) {
        let cells = halo_cells(NEAR, D);
        for a in 0..D {
            for local in 0..block_cells(D) {
                let at = near_index::<D>(local);
                let weight = |b: usize, at: usize| self.weights[(a * D + b) * cells + at];
                let mut stiffness = weight(a, at) + weight(a, at - NEAR.stride(a));
                for b in (0..D).filter(|&b| b != a) {
                    let [low, high] = [at, at + NEAR.stride(b)].map(|at| weight(b, at));
                    stiffness += low * low + high * high;
                }
                let is_unknown = distance[a][at] > 0.0
                    && stiffness > 0.0
                    && is_stored(unflatten(local, SIDE).map(|c| c as i32));
                let place = a * block_cells(D) + local;
                self.mass[place] =
                    if is_unknown { around.box_share(at, 1 << a).max(LEAST_MASS) } else { 0.0 };
                self.inverse[place] = if is_unknown { 1.0 / (self.mass[place] + stiffness) } else { 0.0 };
            }
        }
    }
}

/// Which of two ends lies in a wall, if one does.
#[inline]
fn crossing(ends: [f32; 2]) -> Option<usize> {
    match ends.map(|end| end <= 0.0) {
        [true, false] => Some(0),
        [false, true] => Some(1),
        _ => None,
    }
}

/// Share of the way between two faces that is outside of walls, from their distances to these.
#[inline]
pub(super) fn theta([low, high]: [f32; 2]) -> f32 {
    if (low <= 0.0) == (high <= 0.0) {
        return 1.0;
    }
    (low.max(high) / (low - high).abs()).clamp(LEAST_THETA, 1.0)
}
