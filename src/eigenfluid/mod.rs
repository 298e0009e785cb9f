//! A box full of fluid in modes: the core of a solver beside the one on the grid.
//!
//! The velocity is a sum of modes, each divergence-free and tangential at the walls of the box, and the state is the list
//! of their amplitudes (`EMRFS`; de Witt, Lessig, Fiume 2012). Unlike the paper, nothing here needs a grid or tables of
//! triple products: in a box all of it has a closed form.
//!
//! * [`Basis`]: the modes of a box in two or three dimensions, and what advection does to their amplitudes.
//! * [`Space`]: the modes that a fluid may use: the smoothest of a basis, and flows made of a [`Stroke`] or recorded.
//! * [`Fluid`]: amplitudes that go forward in time, are pushed, and have a spectrum.
//!
//! Densities appear nowhere: energies and impulses are per density of the fluid. The box is `[0, L]` along every axis.

mod basis;
mod bodies;
mod contacts;
mod elimination;
mod fluid;
mod outline;
mod panels;
mod space;
mod stream;
mod transform;

pub use basis::{Basis, BasisScratch, WavesAt};
pub use bodies::{Body, Coupling, Lead, Motions, Tank, TankParams, TankStep};
pub use fluid::{Band, Fluid, FluidParams};
pub use outline::{Form, FormError, Outline};
pub use panels::Panel;
pub use space::{DrawnMode, Space, Stroke, StrokeError};
