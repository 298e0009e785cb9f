//! Systems in which *bodies* of many cells move as a whole (CBAR §5 and §6).
//!
//! `A = L + Σ_b J_bᵀ K_b J_b`: the network `L` of a [`super::System`] between the cells outside of bodies, and for each
//! body the response `K_b` of its few degrees of freedom to the pressures around it. Cells inside bodies are no unknowns.
//!
//! * `net`, `pattern`, `visit`, `ties`: a network stored without gaps. Between tiles there are sheets of cells: blocks of
//!   their own shape, most of them alike. `frame`, `rows`, `sight`: blocks are kept in rows that lie as their nodes do, and
//!   swept as they are without bodies. `gather`: those that rows do not suit, node by node.
//! * `finest`, `join`, `coarser`: networks of the levels; `surfaces`, `shape`: where bodies touch them, and how they ask the nodes there.
//! * `fill`: the level from which on the cells inside bodies are nodes like others.
//! * `cycle`: the preconditioner, down to a level that `last` solves exactly.
//! * `space`: the vectors of a solve; `space::fields`: between these and the fields of a system.

mod coarser;
mod components;
mod cycle;
mod fill;
mod finest;
mod frame;
mod gather;
mod join;
mod last;
mod net;
mod pattern;
mod rows;
mod shape;
mod sight;
mod space;
mod stock;
mod surfaces;
mod ties;
mod visit;

pub(super) use space::Composite;
