//! What a solve is asked for and what it reports.

use super::krylov::CgInfo;

/// How the residual is turned into a search direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreconditionerKind {
    /// One V-cycle over aggregates: the fast one.
    #[default]
    Multigrid,
    /// Division by the diagonal: a reference.
    Jacobi,
    /// Incomplete Cholesky factors without fill, rows in natural order, one thread: a reference.
    IncompleteCholesky,
    /// The paper's way with bubbles: sweeps around the shared nodes before and after a V-cycle of the cells alone
    /// (CBAR, Algorithm 1). The V-cycle is this crate's own, so this is at least as good as the paper's: a reference.
    BubblePalindrome,
    /// No conjugate gradients, but minimal residuals of the form in which the velocities of bodies are unknowns too
    /// (CBAR eq. 22), with a diagonal beside the bodies' masses: a reference.
    MinimalResiduals,
}

/// Settings of a solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverParams {
    /// Stop when the residual's norm is at most this times that of the compatible right-hand side. Default 1e-5.
    pub tolerance: f64,
    /// Also stop when no residual entry is larger than this. Default 0.
    pub floor: f64,
    /// Iterations after which to give up (ten times as many after a fallback). Default 300.
    pub max_iterations: usize,
    /// Default multigrid.
    pub preconditioner: PreconditionerKind,
    /// Smoothing sweeps before and after each coarse correction, at least 1. Default 2.
    pub sweeps: usize,
    /// Whether `x` holds a guess to start from. Default true.
    pub warm_start: bool,
}

impl Default for SolverParams {
    fn default() -> Self {
        SolverParams {
            tolerance: 1e-5,
            floor: 0.0,
            max_iterations: 300,
            preconditioner: PreconditionerKind::Multigrid,
            sweeps: 2,
            warm_start: true,
        }
    }
}

/// Why a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tolerance or the floor was reached.
    Converged,
    /// The start was good enough (or there was nothing to solve).
    AlreadySolved,
    /// The iteration limit came first.
    IterationLimit,
    /// The residual stopped falling.
    Stalled,
    /// A number in the system, or computed from it, was not finite. `x` is then zero.
    NonFinite,
    /// The caller asked to stop.
    Stopped,
}

/// What a solve did.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveInfo {
    /// Iterations made.
    pub iterations: usize,
    /// `‖b − A x‖ / ‖b‖`, computed afresh from the final `x`; 0 when `b` is zero.
    pub relative_residual: f64,
    /// Whether that meets the tolerance or the floor.
    pub converged: bool,
    /// Why the solve ended.
    pub outcome: Outcome,
    /// Whether multigrid failed (a number was not finite, the residual stopped falling, too many iterations) and the
    /// diagonal took over.
    pub fallback: bool,
    /// Wall time for reading the system and building the preconditioner.
    pub seconds_setup: f64,
    /// Wall time for the iterations.
    pub seconds_solve: f64,
    /// Unknowns (level 0) and nodes of each coarser level; entries past `level_count` are 0.
    pub levels: [usize; 24],
    /// How many entries of `levels` are in use.
    pub level_count: usize,
    /// Connected components without any ground: there `x` is known up to a constant, and gets mean zero.
    pub closed_components: usize,
}

impl Default for SolveInfo {
    fn default() -> Self {
        SolveInfo {
            iterations: 0,
            relative_residual: 0.0,
            converged: true,
            outcome: Outcome::AlreadySolved,
            fallback: false,
            seconds_setup: 0.0,
            seconds_solve: 0.0,
            levels: [0; 24],
            level_count: 0,
            closed_components: 0,
        }
    }
}

impl SolveInfo {
    /// Takes over what conjugate gradients report.
    pub(super) fn set_iterations(&mut self, info: CgInfo) {
        let CgInfo { iterations, relative_residual, converged, outcome, fallback } = info;
        (self.iterations, self.relative_residual) = (iterations, relative_residual);
        (self.converged, self.outcome, self.fallback) = (converged, outcome, fallback);
    }

    /// The account of this solve and of an earlier one of nearly the same system together.
    pub fn after(self, earlier: &SolveInfo) -> Self {
        SolveInfo {
            iterations: earlier.iterations + self.iterations,
            fallback: earlier.fallback || self.fallback,
            seconds_setup: earlier.seconds_setup + self.seconds_setup,
            seconds_solve: earlier.seconds_solve + self.seconds_solve,
            ..self
        }
    }

    /// Nodes per level, finest first.
    pub fn nodes_per_level(&self) -> &[usize] {
        &self.levels[..self.level_count]
    }
}
