//! The indefinite form of a system with bodies, as a reference: pressures and the bodies' velocities side by side
//! (CBAR eq. 22), by minimal residuals (Paige and Saunders 1975).
//!
//! ```text
//! | L   Jᵀ | | p |   | b |
//! | J  −M  | | v | = | 0 |
//! ```
//!
//! The preconditioner is the diagonal of `L` beside `M`. Velocities are kept as affine fields, and what acts on them as
//! forces, so that `M⁻¹` is the bodies' [`Response`](super::super::Response); a force that only a change of volume would feel
//! drops out there. `M` times `M⁻¹f` is `f` but for such a force, so that `M` itself is never needed.

use super::super::bodies::{Bodies, Face, Moments};
use super::super::params::SolverParams;
use super::assemble::Assembled;

/// What [`minimal_residuals`] found.
pub(in super::super) struct Found {
    /// A value for each row of the matrix.
    pub x: Vec<f64>,
    pub iterations: usize,
}

/// Iterations between looks at the residual that counts, which costs a product.
const LOOK: usize = 8;

/// Rows and bodies.
#[derive(Clone)]
struct Pair {
    rows: Vec<f64>,
    bodies: Vec<Moments>,
}

impl Pair {
    fn zero(rows: usize, bodies: usize) -> Self {
        Pair { rows: vec![0.0; rows], bodies: vec![[[0.0; 4]; 3]; bodies] }
    }

    fn values(&self) -> impl Iterator<Item = &f64> {
        self.rows.iter().chain(self.bodies.as_flattened().as_flattened())
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        self.rows.iter_mut().chain(self.bodies.as_flattened_mut().as_flattened_mut())
    }

    fn dot(&self, other: &Pair) -> f64 {
        self.values().zip(other.values()).map(|(a, b)| a * b).sum()
    }

    fn scale(&mut self, factor: f64) {
        self.values_mut().for_each(|value| *value *= factor);
    }

    fn add(&mut self, factor: f64, other: &Pair) {
        self.values_mut().zip(other.values()).for_each(|(value, other)| *value += factor * other);
    }
}

/// The network and its bodies.
struct Saddle<'a, const D: usize> {
    network: &'a Assembled,
    bodies: Option<&'a Bodies<'a>>,
    diagonal: Vec<f64>,
    /// Of each body: its faces, and the rows beside them.
    faces: Vec<Vec<(usize, Face)>>,
}

impl<const D: usize> Saddle<'_, D> {
    /// Calls `each(body, face's row, axis, its weights for (1, x, y, z))`.
    fn each_face(&self, mut each: impl FnMut(usize, usize, usize, [f64; 4])) {
        for (body, faces) in self.faces.iter().enumerate() {
            faces.iter().for_each(|(row, face)| each(body, *row, face.axis, face.force));
        }
    }

    /// `J p`.
    fn forces(&self, p: &[f64], out: &mut [Moments]) {
        out.fill([[0.0; 4]; 3]);
        self.each_face(|body, row, axis, weights| {
            out[body][axis].iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * p[row]);
        });
    }

    /// Adds `Jᵀ v`.
    fn push(&self, v: &[Moments], out: &mut [f64]) {
        self.each_face(|body, row, axis, weights| {
            out[row] += v[body][axis].iter().zip(weights).map(|(v, weight)| v * weight).sum::<f64>();
        });
    }

    fn respond(&self, forces: &[Moments], out: &mut [Moments]) {
        let Some(bodies) = self.bodies else { return };
        for ((out, forces), body) in out.iter_mut().zip(forces).zip(bodies.list) {
            *out = body.response.apply::<D>(forces);
        }
    }

    fn network(&self, p: &[f64], out: &mut [f64]) {
        for (out, row) in out.iter_mut().zip(self.network.matrix.outer_iterator()) {
            *out = row.iter().map(|(column, value)| value * p[column]).sum();
        }
    }

    /// The whole matrix times `z`, whose velocities are those that `forces` cause.
    fn product(&self, z: &Pair, forces: &[Moments], out: &mut Pair) {
        self.network(&z.rows, &mut out.rows);
        self.push(&z.bodies, &mut out.rows);
        self.forces(&z.rows, &mut out.bodies);
        let body = out.bodies.as_flattened_mut().as_flattened_mut();
        body.iter_mut().zip(forces.as_flattened().as_flattened()).for_each(|(out, force)| *out -= force);
        // Nothing would keep a force that no velocity feels from growing.
        for forces in &mut out.bodies {
            let mean = (0..D).map(|axis| forces[axis][axis + 1]).sum::<f64>() / D as f64;
            (0..D).for_each(|axis| forces[axis][axis + 1] -= mean);
        }
    }

    fn precondition(&self, r: &Pair, out: &mut Pair) {
        for ((out, r), &diagonal) in out.rows.iter_mut().zip(&r.rows).zip(&self.diagonal) {
            *out = if diagonal > 0.0 { r / diagonal } else { 0.0 };
        }
        self.respond(&r.bodies, &mut out.bodies);
    }

    /// What is left of `b` in the eliminated form, relative to it.
    fn residual(&self, b: &[f64], p: &[f64]) -> f64 {
        let mut product = vec![0.0; p.len()];
        let count = self.bodies.map_or(0, |bodies| bodies.list.len());
        let (mut forces, mut fields) = (vec![[[0.0; 4]; 3]; count], vec![[[0.0; 4]; 3]; count]);
        self.network(p, &mut product);
        self.forces(p, &mut forces);
        self.respond(&forces, &mut fields);
        self.push(&fields, &mut product);
        let size = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        size(&mut b.iter().zip(&product).map(|(b, product)| b - product)) / size(&mut b.iter().copied())
    }
}

/// Solves the indefinite form for the right-hand side `b` of the network's rows, from zero, until what is left of the
/// eliminated form meets the tolerance. Slow: one thread, an assembled matrix.
pub(in super::super) fn minimal_residuals<const D: usize>(
    network: &Assembled,
    bodies: Option<&Bodies<'_>>,
    b: &[f64],
    params: &SolverParams,
    limit: usize,
) -> Found {
    let rows: std::collections::HashMap<u32, usize> =
        network.cells.iter().enumerate().map(|(row, &cell)| (cell, row)).collect();
    let faces_of = |bodies: &Bodies<'_>| {
        let with_row = |face: Face| (rows[&face.cell], face);
        bodies.list.iter().map(|body| bodies.faces::<D>(body).map(with_row).collect()).collect()
    };
    let saddle = Saddle::<D> {
        network,
        bodies,
        diagonal: (0..b.len()).map(|row| network.matrix.get(row, row).copied().unwrap_or(0.0)).collect(),
        faces: bodies.map_or(Vec::new(), faces_of),
    };
    let count = bodies.map_or(0, |bodies| bodies.list.len());
    let zero = Pair::zero(b.len(), count);
    // Names as in the literature: Lanczos vectors v, preconditioned ones z, directions w.
    let (mut x, mut v_old, mut v) = (zero.clone(), zero.clone(), zero.clone());
    v.rows.copy_from_slice(b);
    let (mut w_old, mut w, mut z, mut product) = (zero.clone(), zero.clone(), zero.clone(), zero);
    saddle.precondition(&v, &mut z);
    let mut gamma = z.dot(&v).max(0.0).sqrt();
    let (mut gamma_old, mut eta) = (1.0, gamma);
    let (mut s_old, mut s, mut c_old, mut c) = (0.0, 0.0, 1.0, 1.0);
    let mut iterations = 0;
    while iterations < limit && gamma > 0.0 && gamma.is_finite() {
        z.scale(1.0 / gamma);
        let mut forces = v.bodies.clone();
        forces.as_flattened_mut().as_flattened_mut().iter_mut().for_each(|force| *force /= gamma);
        saddle.product(&z, &forces, &mut product);
        let delta = product.dot(&z);
        product.add(-delta / gamma, &v);
        product.add(-gamma / gamma_old, &v_old);
        std::mem::swap(&mut v_old, &mut v);
        std::mem::swap(&mut v, &mut product);
        let z_now = z.clone();
        saddle.precondition(&v, &mut z);
        let gamma_new = z.dot(&v).max(0.0).sqrt();
        let a0 = c * delta - c_old * s * gamma;
        let a1 = a0.hypot(gamma_new);
        let (a2, a3) = (s * delta + c_old * c * gamma, s_old * gamma);
        (c_old, c) = (c, a0 / a1);
        (s_old, s) = (s, gamma_new / a1);
        let mut w_new = z_now;
        w_new.add(-a3, &w_old);
        w_new.add(-a2, &w);
        w_new.scale(1.0 / a1);
        x.add(c * eta, &w_new);
        eta *= -s;
        w_old = std::mem::replace(&mut w, w_new);
        (gamma_old, gamma) = (gamma, gamma_new);
        iterations += 1;
        if iterations % LOOK == 0 && saddle.residual(b, &x.rows) <= params.tolerance {
            break;
        }
    }
    Found { x: x.rows, iterations }
}
