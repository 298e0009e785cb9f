//! Glug simulates liquids with bubbles on a staggered grid, in two and three dimensions from one source.
//!
//! A room (module) uses the rooms listed above it, never those below: `archive`, `math`, `grid`, `linear`, `geometry`,
//! `eigenfluid`, `liquid`, `gas`, `smoke`, `bubbles`, `tiles`, `viscosity`, `pressure`, `sim`, `scene`, `checkpoint`,
//! `snapshot`, `runner`, `export`, `realtime`, `viewer`, `cli`.
//!
//! Paper keys used in comments:
//! * `BB08`: Batty, Bridson 2008, *Accurate Viscous Free Surfaces for Buckling, Coiling, and Rotating Liquids*.
//! * `CBAR`: Goldade, Aanjaneya, Batty 2020, *Constraint Bubbles and Affine Regions*.
//! * `CB17`: Goldade, Batty 2017, *Constraint Bubbles*.
//! * `FVF`: Batty, Bertails, Bridson 2007, *A Fast Variational Framework for Accurate Solid-Fluid Coupling*.
//! * `EMRFS`: Gerszewski, Kavan, Sloan, Bargteil 2014, *Basis Enrichment and Solid-fluid Coupling for Model-reduced Fluid
//!   Simulation*.
//! * `FSCG`: Bridson, *Fluid Simulation for Computer Graphics*.
//! * `ZB05`: Zhu, Bridson 2005, *Animating Sand as a Fluid*.

pub mod archive;
pub mod bubbles;
pub mod checkpoint;
pub mod cli;
pub mod eigenfluid;
pub mod export;
pub mod gas;
pub mod geometry;
pub mod grid;
pub mod linear;
pub mod liquid;
pub mod math;
pub mod pressure;
pub mod realtime;
pub mod runner;
pub mod scene;
pub mod sim;
pub mod smoke;
pub mod snapshot;
pub mod tiles;
#[cfg(feature = "viewer")]
pub mod viewer;
pub mod viscosity;
