//! References: what the production solver is compared with, in tests and by `glug` commands that ask for it. One thread,
//! explicit matrices; none of it runs in a simulation unless it is named.
//!
//! * `assemble`: a system, with or without bodies, as an explicit sparse matrix.
//! * `incomplete_cholesky`: incomplete Cholesky factors without fill as the preconditioner.
//! * `level_network`: the network of a coarse level by position, to compare hierarchies.
//! * `palindrome`: the bubble preconditioner of CBAR, Algorithm 1.
//! * `saddle_point`: the indefinite system of pressures and body velocities (CBAR eq. 22), by minimal residuals.

mod assemble;
mod incomplete_cholesky;
mod level_network;
mod palindrome;
mod saddle_point;

pub use assemble::{Assembled, assemble, assemble_with_bodies};
pub(super) use incomplete_cholesky::IncompleteCholesky;
pub use level_network::LevelNetwork;
pub(super) use palindrome::Palindrome;
pub(super) use saddle_point::minimal_residuals;
