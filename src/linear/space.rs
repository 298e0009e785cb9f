//! Between the fields of a pressure system and the vectors of its solve.

use crate::grid::Field;

use super::closed::Remove;
use super::krylov::{KrylovSpace, ResidualNorm};
use super::system::System;

/// A solve's vectors that can be read from and written to the fields of a [`System`]. All but `p` and `z` are kept in f64.
pub(super) trait PressureSpace<const D: usize>: KrylovSpace {
    /// Takes `r` from a right-hand side, and measures it. Shared nodes without links get 0.
    fn load_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) -> ResidualNorm;

    /// Takes `r` from that right-hand side again, whatever became of it since.
    fn reload_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) {
        self.load_r(system, rhs, shared);
    }

    /// Makes `r` the right-hand side; shared nodes without links keep what they have.
    fn store_r(&mut self, system: &System<'_, D>, rhs: &mut Field<f64>, shared: &mut [f64]);

    /// Measures `r`.
    fn measure_r(&mut self) -> ResidualNorm;

    /// Takes `x`, where there are unknowns.
    fn load_x(&mut self, system: &System<'_, D>, x: &Field<f64>, shared: &[f64]);

    /// Puts `x` back; zero where there are no unknowns.
    fn store_x(&mut self, system: &System<'_, D>, x: &mut Field<f64>, shared: &mut [f64]);

    /// `x += p`, leaving `r` behind.
    fn add_direction(&mut self);

    /// Makes sums of `r`, or means of `x`, vanish over the components without ground.
    fn remove(&mut self, what: Remove, system: &System<'_, D>, components: usize);
}
