//! The pressure projection: the velocity closest to the given one, in kinetic energy, among those that are
//! incompressible and compatible with the solids (FVF §3; CBAR §3).
//!
//! In: face velocities, the liquid's signed distance, open fractions, gravity. Out: divergence-free velocities on
//! every face that touches liquid. The unknown per liquid cell is `q = p·dt / (ρ·dx)`, metres per second, so that
//!
//! ```text
//! Σ_f (w_f/m_f) (q − q_f) = −Σ_f s_f (w_f u_f + (1 − w_f) u_solid)
//! u_f ← u_f − (q_high − q_low) / m_f
//! ```
//!
//! with open share `w`, outward sign `s`, and `m = ρ_f/ρ` the mass of a face over that of one in the liquid: 1 between
//! liquid cells, and `θ`, the liquid share of the way, towards an air cell, where `q = 0`, or, for the cells of a bubble
//! that keeps its volume, where `q` is the one unknown that all of them share; its row is the sum of theirs (CBAR eq. 9).
//! In two-phase flow air cells are unknowns like liquid ones, and heavy (`phases`). The same `m` is used in matrix and
//! update; otherwise the divergence would not vanish. Bodies that move with the liquid ([`BodyProvider`]) add `Jᵀ K J` to the
//! matrix: tiles, and whatever else closes faces or shares of them.

mod assemble;
mod bodies;
mod let_go;
mod measure;
mod phases;
mod problem;
mod project;
mod rigid;
mod rows;
mod update;
mod walls;

pub use bodies::{BodyFace, BodyProvider, CoupledSystem, Solution};
pub use let_go::{LetGo, LooseCells};
pub use measure::divergence;
pub use phases::{find_unknowns, mix_velocities, separate_velocities};
pub use problem::{FREE, OWN, Problem, Roles};
pub use project::{Pressure, Projection, Solved, project};
pub use rigid::{Hold, RigidBodies, RigidMotion};
pub use walls::{face_velocity, leads_into_far_air, solid_flow, stop_at_walls};
