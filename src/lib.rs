//! Glug simulates liquids with bubbles on a staggered grid, in two and three dimensions from one source.
//!
//! A room (module) uses the rooms listed above it, never those below: `math`, `grid`, `linear`, `geometry`,
//! `liquid`, `bubbles`, `regions`, `pressure`, `sim`, `scene`, `snapshot`, `runner`, `export`, `viewer`, `cli`.
//!
//! Paper keys used in comments:
//! * `CBAR`: Goldade, Aanjaneya, Batty 2020, *Constraint Bubbles and Affine Regions*.
//! * `CB17`: Goldade, Batty 2017, *Constraint Bubbles*.
//! * `FVF`: Batty, Bertails, Bridson 2007, *A Fast Variational Framework for Accurate Solid-Fluid Coupling*.
//! * `FSCG`: Bridson, *Fluid Simulation for Computer Graphics*.
//! * `ZB05`: Zhu, Bridson 2005, *Animating Sand as a Fluid*.

pub mod bubbles;
pub mod cli;
pub mod export;
pub mod geometry;
pub mod grid;
pub mod linear;
pub mod liquid;
pub mod math;
pub mod pressure;
pub mod regions;
pub mod runner;
pub mod scene;
pub mod sim;
pub mod snapshot;
#[cfg(feature = "viewer")]
pub mod viewer;
