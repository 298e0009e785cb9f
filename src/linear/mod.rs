//! Symmetric positive (semi-)definite systems on a block-sparse grid, solved by preconditioned conjugate gradients.
//!
//! The matrix is a network of links: `A = Σ g (e_a − e_b)(e_a − e_b)ᵀ + Σ d_i e_i e_iᵀ`, with a link `g` between
//! neighbouring cells, a link `c` between a cell and a shared node (a node that touches many cells), and a ground `d`
//! that ties a cell to zero. In goes a [`System`] with a right-hand side, out come `x` and a [`SolveInfo`].
//!
//! * [`Solver`]: solves a [`System`] matrix-free, with [`Bodies`] or without; holds all scratch memory.
//! * `krylov`: conjugate gradients in f64 with their [`StoppingRule`], for any [`Operator`] and [`Preconditioner`].
//! * `space`: between the fields of a system and the vectors of its solve: `uniform` where there are cells alone,
//!   `composite` where bodies of many cells move as a whole. `operator`, `blas`, `scalar`: products and vectors.
//! * The preconditioner of `uniform` is an f32 V-cycle (`hierarchy`, `cycle`) over aggregates of 2^D cells that never join
//!   cells without a link between them, nor (`material`) cells of different materials. `level`: one level and its smoother,
//!   red–black Gauss–Seidel; `transfer`: restriction and prolongation; `coarsen`, `split`: Galerkin sums of links over
//!   aggregates; `explicit`: shared nodes and nodes that share a cell; `coarsest`: exact elimination; `closed`: components
//!   without ground.
//! * `bridges`: cells between two materials that are shared nodes to the preconditioner, where there are bodies.
//! * `layout`, `stencil`, `kernels`: cells of a block sorted by colour, so that a red–black sweep is plain SIMD.
//! * `coupling`: [`Couplings`], bodies that push any unknowns with any weights, as low-rank terms in both spaces.
//! * `reference`: other preconditioners and explicit matrices, to compare with.
//!
//! All sums are taken per block and then in block order: results have the same bits for any number of threads.

mod blas;
mod bodies;
mod bridges;
mod closed;
mod coarsen;
mod coarsest;
mod composite;
mod coupling;
mod cycle;
mod explicit;
mod hierarchy;
mod kernels;
mod krylov;
mod layout;
mod level;
mod material;
mod operator;
mod parallel;
mod params;
mod reference;
mod scalar;
mod solver;
mod source;
mod space;
mod split;
mod stencil;
mod system;
mod topology;
mod transfer;
mod uniform;

pub use bodies::{Bodies, Body, BodyPatch, Moments, Response};
pub use coupling::{Couplings, TieRow, Unknown};
pub use krylov::{CgInfo, Jacobi, Operator, Preconditioner, ResidualNorm, StoppingRule, conjugate_gradients};
pub use params::{Outcome, PreconditionerKind, SolveInfo, SolverParams};
pub use reference::{Assembled, LevelNetwork, assemble, assemble_with_bodies};
pub use solver::Solver;
pub use system::{Materials, SharedLink, SharedNodes, System};
