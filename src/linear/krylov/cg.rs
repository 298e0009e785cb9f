//! The loop of conjugate gradients.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::params::Outcome;
use super::space::{KrylovSpace, Precondition, ResidualNorm};
use super::{CgInfo, PATIENCE_JACOBI, StoppingRule};

/// Factor of the iteration limit for Jacobi as the fallback: each iteration is cheap, but many are needed.
pub(in crate::linear) const FALLBACK_SHARE: usize = 10;

/// The true residual may miss the tolerance by this factor: rounding, not worth another iteration.
const SLACK: f64 = 1.01;

/// What ends a loop other than its limit: see [`StoppingRule`].
struct Stall {
    patience: usize,
    restarts: bool,
}

/// A solve under way.
pub(in crate::linear) struct ConjugateGradients<'a, S: ?Sized> {
    space: &'a mut S,
    /// Sets `r` to the right-hand side.
    set_rhs: &'a mut dyn FnMut(&mut S),
    /// The size of the right-hand side.
    b: ResidualNorm,
    rule: &'a StoppingRule,
    stop: Option<&'a AtomicBool>,
    info: CgInfo,
}

impl<'a, S: KrylovSpace + ?Sized> ConjugateGradients<'a, S> {
    /// For a right-hand side of size `b`, which `set_rhs` copies to `r`. `stop` ends the solve after the iteration at hand.
    pub fn new(
        space: &'a mut S,
        set_rhs: &'a mut dyn FnMut(&mut S),
        b: ResidualNorm,
        rule: &'a StoppingRule,
        stop: Option<&'a AtomicBool>,
    ) -> Self {
        ConjugateGradients { space, set_rhs, b, rule, stop, info: CgInfo::default() }
    }

    /// The whole solve, from an `r` that holds the right-hand side, and a guess in `x` if there is one.
    pub fn solve(mut self, has_guess: bool) -> CgInfo {
        if self.start(has_guess) {
            self.iterate_with_fallback();
        }
        self.info
    }

    /// Takes the guess if there is one and it is better than zero. Returns whether there is anything left to do.
    pub fn start(&mut self, has_guess: bool) -> bool {
        let norm = self.b.norm();
        if norm == 0.0 {
            self.space.clear_x();
            return false;
        }
        if !norm.is_finite() {
            self.space.clear_x();
            self.info.outcome = Outcome::NonFinite;
            self.info.converged = false;
            self.info.relative_residual = f64::NAN;
            return false;
        }
        self.space.set_scale((-norm.log2().round()).exp2());
        let guess = has_guess.then(|| self.space.subtract_product());
        // A guess worse than none, or not a number, is dropped.
        let guess = guess.filter(|left| left.sum_sq < self.b.sum_sq);
        if guess.is_none() {
            if has_guess {
                (self.set_rhs)(self.space);
            }
            self.space.clear_x();
            self.space.round_residual();
        }
        let left = guess.unwrap_or(self.b);
        if self.is_met(left, 1.0) {
            self.info.relative_residual = left.norm() / norm;
            return false;
        }
        self.info.converged = false;
        true
    }

    /// Whether a residual is small enough, or misses that by a factor of `slack` at most.
    fn is_met(&self, left: ResidualNorm, slack: f64) -> bool {
        left.norm() <= self.rule.tolerance * self.b.norm() * slack || left.max_abs <= self.rule.floor
    }

    /// Sets `r` to `b − A x`.
    fn true_residual(&mut self) -> ResidualNorm {
        (self.set_rhs)(self.space);
        self.space.subtract_product()
    }

    fn iterate_with_fallback(&mut self) {
        let max = self.rule.max_iterations;
        let limit = self.rule.fallback_after.map_or(max, |after| max.min(after));
        let stall = Stall { patience: self.rule.patience, restarts: self.rule.restarts };
        let may_do_better = self.iterate(Precondition::Primary, limit, stall)
            && (self.info.outcome != Outcome::IterationLimit || self.info.iterations < max);
        if may_do_better && self.rule.fallback_after.is_some() {
            self.fall_back();
        }
    }

    /// Goes on with Jacobi, from where another preconditioner failed.
    fn fall_back(&mut self) {
        self.info.fallback = true;
        let at_hand = self.info.relative_residual;
        if !at_hand.is_finite() || at_hand >= 1.0 {
            // No better than nothing.
            self.space.clear_x();
            (self.set_rhs)(self.space);
            self.space.round_residual();
        }
        let limit = self.info.iterations + FALLBACK_SHARE * self.rule.max_iterations;
        self.iterate(Precondition::Jacobi, limit, Stall { patience: PATIENCE_JACOBI, restarts: false });
    }

    /// Iterates until `limit` iterations are counted, from `x` and its residual `r`; ends with the true residual in `r`.
    /// Returns whether another preconditioner may do better.
    fn iterate(&mut self, with: Precondition, limit: usize, stall: Stall) -> bool {
        let (mut previous, mut best, mut since_best) = (0.0, f64::INFINITY, 0);
        let mut true_before = f64::INFINITY;
        self.info.outcome = Outcome::IterationLimit;
        while self.info.iterations < limit {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                self.info.outcome = Outcome::Stopped;
                break;
            }
            let rho = self.space.precondition(with);
            let beta = if previous == 0.0 { 0.0 } else { rho / previous };
            previous = rho;
            self.space.update_direction(beta);
            let energy = self.space.energy();
            if !(rho.is_finite() && energy.is_finite()) {
                self.info.outcome = Outcome::NonFinite;
                break;
            }
            if rho <= 0.0 || energy <= 0.0 {
                self.info.outcome = Outcome::Stalled;
                break;
            }
            let left = self.space.step(rho / energy);
            self.info.iterations += 1;
            if !left.sum_sq.is_finite() {
                self.info.outcome = Outcome::NonFinite;
                break;
            }
            if self.is_met(left, 1.0) {
                let found = self.true_residual();
                self.info.relative_residual = found.norm() / self.b.norm();
                if self.is_met(found, SLACK) {
                    self.info.outcome = Outcome::Converged;
                    self.info.converged = true;
                    return false;
                }
                if found.norm() > 0.5 * true_before {
                    // The limit of f64, whatever the preconditioner.
                    self.info.outcome = Outcome::Stalled;
                    return false;
                }
                // Rounding made the running residual drift: go on from the true one.
                true_before = found.norm();
                (previous, best, since_best) = (0.0, f64::INFINITY, 0);
                continue;
            }
            if left.sum_sq < best {
                (best, since_best) = (left.sum_sq, 0);
                continue;
            }
            since_best += 1;
            if since_best > stall.patience {
                let found = if stall.restarts { self.true_residual().norm() } else { f64::INFINITY };
                if found < 0.5 * true_before {
                    true_before = found;
                    (previous, best, since_best) = (0.0, f64::INFINITY, 0);
                    continue;
                }
                self.info.outcome = Outcome::Stalled;
                break;
            }
        }
        let outcome = self.info.outcome;
        self.conclude(outcome);
        !self.info.converged && outcome != Outcome::Stopped
    }

    /// Ends with the true residual, and with zero if that is not finite; `outcome` says why nothing more is done.
    pub fn conclude(&mut self, outcome: Outcome) {
        let found = self.true_residual();
        self.info.outcome = outcome;
        self.info.relative_residual = found.norm() / self.b.norm();
        self.info.converged = self.is_met(found, SLACK);
        if !found.sum_sq.is_finite() {
            self.info.outcome = Outcome::NonFinite;
            self.space.clear_x();
        }
    }

    /// The vectors of the solve, for other methods than conjugate gradients to put their answer into.
    pub fn space(&mut self) -> &mut S {
        self.space
    }

    /// What was done so far.
    pub fn info_mut(&mut self) -> &mut CgInfo {
        &mut self.info
    }
}
