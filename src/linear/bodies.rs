//! Bodies of many cells that move as a whole: their faces (`J`) and their response (`K`), as a solve is given them.

use crate::grid::masks::{self, Bits};
use crate::grid::{Field, SIDE, block_cells};
use crate::math::{Side, unflatten};

/// One number per axis and affine basis function (1, x, y, z): the forces on a body, or its velocity field. In 2D the last
/// axis and the last function are unused.
pub type Moments = [[f64; 4]; 3];

/// Faces between a body and cells of one block, across one axis and all on the same side of their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPatch {
    /// The block.
    pub slot: u32,
    /// The cells beside the body.
    pub cells: Bits,
    /// Twice the offset from the body's origin, in cells, of the face that the block's first cell has on that side.
    pub twice: [i16; 3],
    /// The side of the cells that the body lies on.
    pub side: Side,
}

impl BodyPatch {
    /// 1 if the body lies on the cells' high side, and pressure pushes it there; else −1.
    pub fn sign(&self) -> f64 {
        self.side.sign()
    }

    /// The offset of the first cell's face from the body's origin, in cells.
    pub fn corner(&self) -> [f64; 3] {
        self.twice.map(|twice| 0.5 * f64::from(twice))
    }
}

/// A body's velocity per unit of force: the inverse of its mass matrix on the affine fields without divergence
/// (CBAR eq. 15 to 18). `G` holds, for each axis, the products of (1, x, y, z) summed over the body's faces across that
/// axis; `K = G⁻¹ − G⁻¹t (tᵀG⁻¹t)⁻¹ tᵀG⁻¹` with the trace `t` is then the response that never changes the volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    gram: [[[f64; 4]; 4]; 3],
    /// `G⁻¹t / √(tᵀG⁻¹t)`.
    trace: Moments,
}

impl Response {
    /// From `G`, times the body's density. None if the body is so thin that some field costs no energy.
    pub fn new<const D: usize>(gram: &[[[f64; 4]; 4]; 3], density: f64) -> Option<Response> {
        let mut response = Response { gram: [[[0.0; 4]; 4]; 3], trace: [[0.0; 4]; 3] };
        for axis in 0..D {
            response.gram[axis] = invert::<D>(&gram[axis], density)?;
        }
        let mut square = 0.0;
        for axis in 0..D {
            for k in 0..=D {
                response.trace[axis][k] = response.gram[axis][k][axis + 1];
            }
            square += response.trace[axis][axis + 1];
        }
        let scale = 1.0 / square.sqrt();
        response.trace.iter_mut().flatten().for_each(|value| *value *= scale);
        (square > 0.0).then_some(response)
    }

    /// The response of a body `density` times as dense.
    pub fn with_density(&self, density: f64) -> Response {
        let mut response = *self;
        response.gram.iter_mut().flatten().flatten().for_each(|value| *value /= density);
        response.trace.iter_mut().flatten().for_each(|value| *value /= density.sqrt());
        response
    }

    /// The velocity field that forces cause.
    #[inline]
    pub fn apply<const D: usize>(&self, forces: &Moments) -> Moments {
        let mut field = [[0.0; 4]; 3];
        let mut along = 0.0;
        for axis in 0..D {
            for k in 0..=D {
                along += self.trace[axis][k] * forces[axis][k];
                for l in 0..=D {
                    field[axis][k] += self.gram[axis][k][l] * forces[axis][l];
                }
            }
        }
        for axis in 0..D {
            for k in 0..=D {
                field[axis][k] -= along * self.trace[axis][k];
            }
        }
        field
    }

    /// Bounds the body's term by a diagonal: `JᵀKJ ≤ λ · (faces of each cell)` with `λ` the largest eigenvalue of `K` times
    /// the products of (1, x, y, z) summed over the faces at its surface. Found by iteration, then rounded up.
    pub fn bound<const D: usize>(&self, surface: &[[[f64; 4]; 4]; 3]) -> f64 {
        const ITERATIONS: usize = 12;
        const MARGIN: f64 = 1.1;
        let mut field: Moments = std::array::from_fn(|axis| {
            std::array::from_fn(|k| if axis < D && k <= D { 1.0 + 0.3 * (axis + 2 * k) as f64 } else { 0.0 })
        });
        let mut largest = 0.0;
        for _ in 0..ITERATIONS {
            let mut forces = [[0.0; 4]; 3];
            for axis in 0..D {
                for k in 0..=D {
                    forces[axis][k] = (0..=D).map(|l| surface[axis][k][l] * field[axis][l]).sum();
                }
            }
            let next = self.apply::<D>(&forces);
            // Rayleigh quotient in the norm of the surface: forces·K forces over field·forces.
            let dot = |a: &Moments, b: &Moments| {
                a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum::<f64>()
            };
            largest = dot(&next, &forces) / dot(&field, &forces).max(1e-300);
            let size = dot(&next, &next).sqrt().max(1e-300);
            field = next.map(|row| row.map(|value| value / size));
        }
        MARGIN * largest
    }
}

/// The inverse of a symmetric positive matrix of `D + 1` rows times `density`, by Cholesky factors.
fn invert<const D: usize>(matrix: &[[f64; 4]; 4], density: f64) -> Option<[[f64; 4]; 4]> {
    let n = D + 1;
    let mut factor = [[0.0; 4]; 4];
    for row in 0..n {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|k| factor[row][k] * factor[column][k]).sum();
            let rest = matrix[row][column] - dot;
            if row == column {
                if rest <= 1e-9 * matrix[row][row] {
                    return None;
                }
                factor[row][row] = rest.sqrt();
            } else {
                factor[row][column] = rest / factor[column][column];
            }
        }
    }
    let mut inverse = [[0.0; 4]; 4];
    for column in 0..n {
        let mut solution = [0.0; 4];
        for row in 0..n {
            let dot: f64 = (0..row).map(|k| factor[row][k] * solution[k]).sum();
            solution[row] = ((row == column) as usize as f64 - dot) / factor[row][row];
        }
        for row in (0..n).rev() {
            let dot: f64 = (row + 1..n).map(|k| factor[k][row] * solution[k]).sum();
            solution[row] = (solution[row] - dot) / factor[row][row];
        }
        for row in 0..n {
            inverse[row][column] = solution[row] / density;
        }
    }
    Some(inverse)
}

/// One body.
#[derive(Clone, Debug)]
pub struct Body {
    /// Where its patches across each axis start in [`Bodies::patches`], and where the last ones end.
    pub patches: [u32; 4],
    /// Of the box around it, the longest edge, in cells.
    pub width: u32,
    /// How it answers forces.
    pub response: Response,
    /// At least the largest eigenvalue of `Σ c cᵀ K` over its faces: [`Response::bound`].
    pub bound: f64,
}

impl Body {
    /// Its patches across an axis, of those of all bodies.
    pub fn across<'a>(&self, axis: usize, patches: &'a [BodyPatch]) -> &'a [BodyPatch] {
        &patches[self.patches[axis] as usize..self.patches[axis + 1] as usize]
    }
}

/// All bodies of a system.
#[derive(Clone, Copy)]
pub struct Bodies<'a> {
    /// The bodies.
    pub list: &'a [Body],
    /// Their faces.
    pub patches: &'a [BodyPatch],
    /// A whole link of the network around them, if that is of one material.
    pub whole: f32,
    /// Per slot: the unknowns of blocks in which all links are whole and nothing else holds a cell, where they are known.
    pub known: &'a Field<Option<Bits>>,
    /// Per slot: the cells inside bodies, if these are of the same fluid as all cells outside.
    pub inside: Option<&'a Field<Bits>>,
}

/// One face of a body, for references: an entry of `J`.
pub(super) struct Face {
    /// The cell beside it, `slot · 8^D + local`.
    pub cell: u32,
    pub axis: usize,
    /// Force per unit of the cell's pressure, across the axis: for (1, x, y, z).
    pub force: [f64; 4],
}

impl Bodies<'_> {
    /// The faces of a body, one by one.
    pub(super) fn faces<const D: usize>(&self, body: &Body) -> impl Iterator<Item = Face> {
        (0..D).flat_map(move |axis| {
            body.across(axis, self.patches).iter().flat_map(move |patch| {
                masks::each(&patch.cells).map(move |local| {
                    let (at, sign, corner) = (unflatten::<D>(local, SIDE), patch.sign(), patch.corner());
                    let mut force = [sign, 0.0, 0.0, 0.0];
                    (0..D).for_each(|k| force[k + 1] = sign * (corner[k] + at[k] as f64));
                    Face { cell: patch.slot * block_cells(D) as u32 + local as u32, axis, force }
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    /// The response is the inverse on fields without divergence: `K G v = v` for those, and what `K` gives has none.
    fn responds_without_divergence<const D: usize>() {
        let mut gram = [[[0.0; 4]; 4]; 3];
        for axis in 0..D {
            for point in 0..12u64 {
                let row: [f64; 4] = std::array::from_fn(|k| match k {
                    0 => 1.0,
                    _ => f64::from(hash_unit(point * 31 + k as u64 + 7 * axis as u64)) - 0.5,
                });
                for k in 0..=D {
                    for l in 0..=D {
                        gram[axis][k][l] += row[k] * row[l];
                    }
                }
            }
        }
        let response = Response::new::<D>(&gram, 2.0).expect("random points span everything");
        let mut field = [[0.0; 4]; 3];
        for axis in 0..D {
            for k in 0..=D {
                field[axis][k] = f64::from(hash_unit((axis * 4 + k) as u64 + 99));
            }
        }
        let trace: f64 = (0..D - 1).map(|axis| field[axis][axis + 1]).sum();
        field[D - 1][D] = -trace;
        let mut forces = [[0.0; 4]; 3];
        for axis in 0..D {
            for k in 0..=D {
                forces[axis][k] = 2.0 * (0..=D).map(|l| gram[axis][k][l] * field[axis][l]).sum::<f64>();
            }
        }
        let found = response.apply::<D>(&forces);
        for axis in 0..D {
            for k in 0..=D {
                assert!((found[axis][k] - field[axis][k]).abs() < 1e-12, "{D}D {axis} {k}");
            }
        }
        let answer =
            response.apply::<D>(&gram[0].map(|row| row[0]).map(|x| [x; 4])[..3].try_into().expect("three"));
        let divergence: f64 = (0..D).map(|axis| answer[axis][axis + 1]).sum();
        assert!(divergence.abs() < 1e-12, "{D}D: {divergence}");
    }

    #[test]
    fn responds_without_divergence_2d() {
        responds_without_divergence::<2>();
    }

    #[test]
    fn responds_without_divergence_3d() {
        responds_without_divergence::<3>();
    }
}
