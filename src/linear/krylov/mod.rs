//! Preconditioned conjugate gradients, apart from what is solved.
//!
//! In goes a symmetric positive (semi-)definite `A` with a right-hand side `b` and a preconditioner `M ≈ A⁻¹`, out come
//! `x` with `A x = b` as exactly as the [`StoppingRule`] asks, and a [`CgInfo`].
//!
//! * [`KrylovSpace`]: the vectors of a solve and the products that the loop takes of them. Solvers that fuse several
//!   passes over memory into one implement it themselves, as those of `linear` do for the pressure.
//! * `cg`: the loop: stopping rule, restart from the true residual, fallback to Jacobi.
//! * [`Operator`], [`Preconditioner`], [`conjugate_gradients`]: the same loop for anything that can multiply a vector:
//!   unknowns on faces, coupled components, coefficients of either sign.

mod cg;
mod space;
mod vectors;

pub(super) use cg::{ConjugateGradients, FALLBACK_SHARE};
pub use space::ResidualNorm;
pub(super) use space::{KrylovSpace, Precondition};
pub use vectors::{Jacobi, Operator, Preconditioner, conjugate_gradients};

use super::params::Outcome;

/// When conjugate gradients stop: as soon as `‖b − A x‖₂ ≤ tolerance · ‖b‖₂` or no entry of `b − A x` exceeds `floor`;
/// without success after `max_iterations`, or when the residual no longer falls. What counts is the true residual,
/// computed afresh from `x`, and not the one that the iterations carry along.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoppingRule {
    /// Residual norm that is small enough, relative to the right-hand side. Default 1e-5.
    pub tolerance: f64,
    /// Largest residual entry that is small enough, whatever the norm. Default 0.
    pub floor: f64,
    /// Iterations after which to give up; Jacobi, taking over from another preconditioner, is given ten times as many.
    /// Default 300.
    pub max_iterations: usize,
    /// Iterations without a new smallest residual after which it counts as stalled. Default 1000.
    pub patience: usize,
    /// Whether a stall is answered by a restart from the true residual, as long as each restart halves it. Default no.
    pub restarts: bool,
    /// Whether Jacobi takes over when the preconditioner fails, and after how many iterations at the latest. Default
    /// never.
    pub fallback_after: Option<usize>,
}

impl Default for StoppingRule {
    fn default() -> Self {
        StoppingRule {
            tolerance: 1e-5,
            floor: 0.0,
            max_iterations: 300,
            patience: PATIENCE_JACOBI,
            restarts: false,
            fallback_after: None,
        }
    }
}

/// [`StoppingRule::patience`] for preconditioners under which the residual rises and falls on its way.
pub(super) const PATIENCE_JACOBI: usize = 1000;

/// What conjugate gradients did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgInfo {
    /// Iterations made.
    pub iterations: usize,
    /// `‖b − A x‖ / ‖b‖`, computed afresh from the final `x`; 0 when `b` is zero.
    pub relative_residual: f64,
    /// Whether that meets the tolerance or the floor.
    pub converged: bool,
    /// Why the solve ended.
    pub outcome: Outcome,
    /// Whether the preconditioner failed and Jacobi took over.
    pub fallback: bool,
}

impl Default for CgInfo {
    fn default() -> Self {
        CgInfo {
            iterations: 0,
            relative_residual: 0.0,
            converged: true,
            outcome: Outcome::AlreadySolved,
            fallback: false,
        }
    }
}
