//! Conjugate gradients on plain vectors, for any operator that can multiply one.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use super::cg::ConjugateGradients;
use super::space::{KrylovSpace, Precondition, ResidualNorm};
use super::{CgInfo, StoppingRule};

/// A symmetric positive (semi-)definite matrix that need not be stored.
pub trait Operator {
    /// Number of unknowns.
    fn size(&self) -> usize;

    /// `out = A x`.
    fn apply(&self, x: &[f64], out: &mut [f64]);

    /// The diagonal of `A`. An entry of 0 is no unknown: its value stays 0 under [`Jacobi`].
    fn diagonal(&self, out: &mut [f64]);
}

/// A symmetric positive definite approximation of the inverse of an [`Operator`].
pub trait Preconditioner {
    /// `z = M r`.
    fn apply(&mut self, r: &[f64], z: &mut [f64]);
}

/// Division by the diagonal.
#[derive(Clone, Debug)]
pub struct Jacobi {
    inverse: Vec<f64>,
}

impl Jacobi {
    /// Takes the diagonal of an operator.
    pub fn new(operator: &impl Operator) -> Jacobi {
        let mut inverse = vec![0.0; operator.size()];
        operator.diagonal(&mut inverse);
        inverse.iter_mut().for_each(|d| *d = if *d > 0.0 { 1.0 / *d } else { 0.0 });
        Jacobi { inverse }
    }
}

impl Preconditioner for Jacobi {
    fn apply(&mut self, r: &[f64], z: &mut [f64]) {
        let parts = z.par_chunks_mut(PART).zip(r.par_chunks(PART)).zip(self.inverse.par_chunks(PART));
        parts.for_each(|((z, r), inverse)| {
            z.iter_mut().zip(r).zip(inverse).for_each(|((z, r), inverse)| *z = r * inverse);
        });
    }
}

/// Entries that a thread takes at a time. Sums are made part by part and then in order: the same bits for any number of
/// threads.
const PART: usize = 4096;

/// The vectors of a solve, in double precision throughout.
struct VectorSpace<'a, A, M> {
    operator: &'a A,
    preconditioner: &'a mut M,
    /// The fallback, once it was needed.
    jacobi: Option<Jacobi>,
    x: &'a mut [f64],
    r: Vec<f64>,
    z: Vec<f64>,
    p: Vec<f64>,
    /// `A p`.
    q: Vec<f64>,
    partial: Vec<f64>,
}

impl<A: Operator, M: Preconditioner> VectorSpace<'_, A, M> {
    /// `r −= α q`.
    fn update_residual(&mut self, alpha: f64) -> ResidualNorm {
        let parts = self.r.par_chunks_mut(PART).zip(self.q.par_chunks(PART));
        let parts: Vec<ResidualNorm> = parts
            .map(|(r, q)| {
                let mut norm = ResidualNorm::default();
                for (r, q) in r.iter_mut().zip(q) {
                    *r -= alpha * q;
                    norm.include(*r);
                }
                norm
            })
            .collect();
        let mut norm = ResidualNorm::default();
        parts.into_iter().for_each(|part| norm.include_all(part));
        norm
    }
}

fn dot(a: &[f64], b: &[f64], partial: &mut Vec<f64>) -> f64 {
    let parts = a.par_chunks(PART).zip(b.par_chunks(PART));
    parts.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect_into_vec(partial);
    partial.iter().sum()
}

impl<A: Operator, M: Preconditioner> KrylovSpace for VectorSpace<'_, A, M> {
    fn clear_x(&mut self) {
        self.x.fill(0.0);
    }

    fn subtract_product(&mut self) -> ResidualNorm {
        self.operator.apply(self.x, &mut self.q);
        self.update_residual(1.0)
    }

    fn precondition(&mut self, with: Precondition) -> f64 {
        match with {
            Precondition::Primary => self.preconditioner.apply(&self.r, &mut self.z),
            Precondition::Jacobi => {
                let jacobi = self.jacobi.get_or_insert_with(|| Jacobi::new(self.operator));
                jacobi.apply(&self.r, &mut self.z);
            }
        }
        dot(&self.z, &self.r, &mut self.partial)
    }

    fn update_direction(&mut self, beta: f64) {
        if beta == 0.0 {
            self.p.copy_from_slice(&self.z);
            return;
        }
        let parts = self.p.par_chunks_mut(PART).zip(self.z.par_chunks(PART));
        parts.for_each(|(p, z)| p.iter_mut().zip(z).for_each(|(p, z)| *p = z + beta * *p));
    }

    fn energy(&mut self) -> f64 {
        self.operator.apply(&self.p, &mut self.q);
        dot(&self.p, &self.q, &mut self.partial)
    }

    fn step(&mut self, alpha: f64) -> ResidualNorm {
        let parts = self.x.par_chunks_mut(PART).zip(self.p.par_chunks(PART));
        parts.for_each(|(x, p)| x.iter_mut().zip(p).for_each(|(x, p)| *x += alpha * p));
        self.update_residual(alpha)
    }
}

/// Solves `A x = b` by preconditioned conjugate gradients, from the guess in `x`; `stop` ends the solve after the
/// iteration at hand. Where `A` is singular, `b` must be orthogonal to its null space.
///
/// ```
/// use glug::linear::{Jacobi, Operator, StoppingRule, conjugate_gradients};
///
/// /// Second differences on a line with values of zero beyond both ends.
/// struct Line(usize);
///
/// impl Operator for Line {
///     fn size(&self) -> usize {
///         self.0
///     }
///     fn apply(&self, x: &[f64], out: &mut [f64]) {
///         for i in 0..self.0 {
///             let below = if i > 0 { x[i - 1] } else { 0.0 };
///             out[i] = 2.0 * x[i] - below - x.get(i + 1).unwrap_or(&0.0);
///         }
///     }
///     fn diagonal(&self, out: &mut [f64]) {
///         out.fill(2.0);
///     }
/// }
///
/// let (line, mut x) = (Line(3), [0.0; 3]);
/// let rule = StoppingRule { tolerance: 1e-12, ..StoppingRule::default() };
/// let info = conjugate_gradients(&line, &mut Jacobi::new(&line), &[1.0; 3], &mut x, &rule, None);
/// assert!(info.converged);
/// assert!(x.iter().zip([1.5, 2.0, 1.5]).all(|(x, exact)| (x - exact).abs() < 1e-10), "{x:?}");
/// ```
pub fn conjugate_gradients(
    operator: &impl Operator,
    preconditioner: &mut impl Preconditioner,
    rhs: &[f64],
    x: &mut [f64],
    rule: &StoppingRule,
    stop: Option<&AtomicBool>,
) -> CgInfo {
    let size = operator.size();
    assert_eq!(rhs.len(), size, "one right-hand side per unknown");
    assert_eq!(x.len(), size, "one value per unknown");
    let mut space = VectorSpace {
        operator,
        preconditioner,
        jacobi: None,
        x,
        r: rhs.to_vec(),
        z: vec![0.0; size],
        p: vec![0.0; size],
        q: vec![0.0; size],
        partial: Vec::new(),
    };
    let mut b = ResidualNorm::default();
    rhs.iter().for_each(|&value| b.include(value));
    let has_guess = space.x.iter().any(|&x| x != 0.0);
    let mut set_rhs = |space: &mut VectorSpace<'_, _, _>| space.r.copy_from_slice(rhs);
    ConjugateGradients::new(&mut space, &mut set_rhs, b, rule, stop).solve(has_guess)
}
