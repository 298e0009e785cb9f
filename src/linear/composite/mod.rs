//! Composite multigrid: systems in which *bodies* of many cells move as a whole (CBAR §5 and §6).
//!
//! `A = L + Σ_b J_bᵀ K_b J_b`: the network `L` of a [`super::System`] between the cells outside of bodies, and for each
//! body the response `K_b` of its few degrees of freedom to the pressures around it. `J_b` gathers pressures on the faces
//! of a body into forces, `J_bᵀ` scatters its velocity back to the cells beside it; the product is never formed. Cells
//! inside bodies are no unknowns, until on coarse levels they take the bodies' place.
//!
//! ```text
//! level 0 .. lagged − 1     compact network + Jᵀ K J, evaluated once per V-cycle leg   (cells much smaller than bodies)
//! level .. first_filled − 1 compact network + Jᵀ K J, evaluated before every sweep
//! level first_filled ..     network of all liquid cells, those inside bodies included   (cells half as wide as bodies)
//! coarsest                  dense Cholesky, or more sweeps
//! ```
//!
//! Why levels down to the coarsest, and not those of `linear::hierarchy` from `first_filled` on? Where bodies are filled, both
//! have the same cells and grounds, 98 of 100 links to rounding and the rest within an eighth (compared in
//! `tests/behaviour/tiles/filled.rs`), so that handing over there is possible. But bodies of another fluid than the cells
//! around them, systems of two materials, and bodies between parts of the network that nothing else connects are never filled:
//! their term is carried to the coarsest level, which `network` and `dense` are needed for in any case.
//!
//! * `space`: the vectors of conjugate gradients and the product `A p`; `space::fields`: fields of a system in and out.
//! * `cycle`: the levels and the V-cycle over them, down to the level that `dense` solves exactly.
//! * `network`: one level: storage, `network::sweeps` the red–black Gauss–Seidel smoother and Jacobi,
//!   `network::transfers` restriction and prolongation.
//! * `finest`, `aggregate`, `coarsen`: the network of a system, which nodes become one on the next level, and the Galerkin
//!   sums of links between these. `fill`: the level from which on cells inside bodies are nodes like others.
//! * `surfaces`, `weights`: `J`, `K` and `Jᵀ` on a level. `shared`: rows of the shared nodes (bubbles).
//! * `pattern`, `row_layout`, `rows`, `neighbours`, `list_kernels`: how a block of 8^D cells stores its nodes. Between tiles
//!   there are sheets of cells, so most blocks keep few of their cells, and most are alike: equal blocks share a pattern
//!   (`interner`). Blocks in rows are smoothed by SIMD kernels, the rest node by node from index lists.
//! * `visit`: blocks in parallel, with arrays cut between them. `components`: parts of the network without ground.

mod aggregate;
mod coarsen;
mod components;
mod cycle;
mod dense;
mod fill;
mod finest;
mod interner;
mod list_kernels;
mod neighbours;
mod network;
mod pattern;
mod row_layout;
mod rows;
mod shared;
mod space;
mod surfaces;
mod visit;
mod weights;

pub(super) use space::Composite;
