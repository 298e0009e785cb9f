//! What conjugate gradients ask of a system.

use crate::grid::Field;

use super::closed::Remove;
use super::kernels::Size;
use super::params::PreconditionerKind;
use super::system::System;

/// The vectors of a solve and what is done with them. `x` is the answer so far, `r = b − A x` what it leaves, `p` the
/// direction in which to go; `z` comes from the preconditioner. All but `p` and `z` are kept in f64.
pub(super) trait Space<const D: usize> {
    /// Takes `r` from a right-hand side, and measures it. Shared nodes without links get 0.
    fn load_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) -> Size;

    /// Takes `r` from that right-hand side again, whatever became of it since.
    fn reload_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) {
        self.load_r(system, rhs, shared);
    }

    /// Makes `r` the right-hand side; shared nodes without links keep what they have.
    fn store_r(&mut self, system: &System<'_, D>, rhs: &mut Field<f64>, shared: &mut [f64]);

    /// Measures `r`.
    fn measure_r(&mut self) -> Size;

    /// Takes `x`, where there are unknowns.
    fn load_x(&mut self, system: &System<'_, D>, x: &Field<f64>, shared: &[f64]);

    /// Sets `x` to zero.
    fn clear_x(&mut self);

    /// Puts `x` back; zero where there are no unknowns.
    fn store_x(&mut self, system: &System<'_, D>, x: &mut Field<f64>, shared: &mut [f64]);

    /// Hands `r` to the preconditioner, scaled and rounded.
    fn round_residual(&mut self, scale: f64);

    /// `r −= A x`, for an `r` that holds the right-hand side; measures it, and hands it to the preconditioner.
    fn subtract_product(&mut self, scale: f64) -> Size;

    /// `z` from the last `r` handed over; returns their product.
    fn precondition(&mut self, kind: PreconditionerKind, sweeps: usize) -> f64;

    /// `p = z + β p`; `β = 0` forgets `p`, whatever it holds.
    fn redirect(&mut self, beta: f64);

    /// `p·A p`.
    fn energy(&mut self) -> f64;

    /// `x += α p` and `r −= α A p`, for the `p` of the last [`Self::energy`]; otherwise as [`Self::subtract_product`].
    fn step(&mut self, alpha: f64, scale: f64) -> Size;

    /// `x += p`, leaving `r` behind.
    fn take_direction(&mut self);

    /// Makes sums of `r`, or means of `x`, vanish over the components without ground.
    fn remove(&mut self, what: Remove, system: &System<'_, D>, components: usize);
}
