//! Systems in which *bodies* of many cells move as a whole (CBAR §5 and §6).
//!
//! `A = L + Σ_b J_bᵀ K_b J_b`: the network `L` of a [`super::System`] between the cells outside of bodies, and for each
//! body the response `K_b` of its few degrees of freedom to the pressures around it. Cells inside bodies are no unknowns.
//!
//! * [`Body`], [`BodyFace`], [`Response`]: what a solve is told about bodies.
//! * `net`, `pattern`, `visit`, `gather`, `ties`: a network stored without gaps. Between tiles there are sheets of cells: blocks of
//!   their own shape, most of them alike. `rows`: blocks that are nearly full are swept as they are without bodies.
//! * `finest`, `join`, `coarser`: networks of the levels; `surfaces`: where bodies touch them.
//! * `filled`: the network as it would be without bodies; its coarse levels know what the deep interior is like.
//! * `bridge`: from the coarsest level that knows bodies to the levels of that network.
//! * `saddle`: the indefinite form, where the bodies' velocities are unknowns too: a reference.
//! * `cycle`: the preconditioner. Levels whose cells are smaller than half a body carry bodies; deeper ones do not.
//! * `space`: the vectors of a solve.

mod assemble;
mod body;
mod bridge;
mod coarser;
mod components;
mod cycle;
mod filled;
mod finest;
mod gather;
mod join;
mod net;
mod pattern;
mod rows;
mod saddle;
mod space;
mod surfaces;
mod ties;
mod visit;

pub use assemble::assemble_with_bodies;
pub use body::{Bodies, Body, BodyFace, Fluids, Moments, Response};
pub(super) use saddle::minimal_residuals;
pub(super) use space::Composite;
