//! A box full of fluid in modes: the core of a solver beside the one on the grid.
//!
//! The velocity is a sum of modes, each divergence-free and tangential at the walls of the box, and the state is the list
//! of their amplitudes (`EMRFS`; de Witt, Lessig, Fiume 2012). Unlike the paper, nothing here needs a grid or tables of
//! triple products: in a box all of it has a closed form.
//!
//! * [`Basis`]: the modes of a box in two or three dimensions, and what advection does to their amplitudes.
//! * [`Space`]: the modes that a fluid may use: the smoothest of a basis, and flows made of a [`Stroke`] or recorded.
//! * [`Fluid`]: amplitudes that go forward in time, are pushed, and have a spectrum.
//! * [`Tank`]: a fluid in two dimensions with bodies in it: a [`Body`] is an [`Outline`] of [`Panel`]s, pushed by the fluid
//!   and pushing back, held off walls and other bodies by contacts.
//! * [`Flow`]: the velocity of all of them on a grid of cells, by which [`Ink`] and [`Tracers`] are carried.
//!
//! ```
//! use std::sync::Arc;
//!
//! use glug::eigenfluid::{Basis, Body, Fluid, FluidParams, Form, Outline, Space, Tank, TankParams};
//! use glug::math::Vector;
//!
//! let space = Space::whole(Arc::new(Basis::new([1.0, 1.0], [15, 15])));
//! let fluid = Fluid::new(space, FluidParams { viscosity: 1e-4, ..Default::default() });
//! let mut tank = Tank::new(fluid, TankParams::default());
//! let outline = Outline::new(&Form::Disc { radius: 0.1 }, 32).unwrap();
//! tank.bodies.push(Body::new(Arc::new(outline), 500.0, Vector::from([0.5, 0.5])));
//! tank.step(0.01);
//! assert!(tank.bodies[0].velocity[1] > 0.0, "lighter than the fluid, it rises");
//! ```
//!
//! But for bodies, densities appear nowhere: energies and impulses are per density of the fluid. The box is `[0, L]` along
//! every axis.

mod basis;
mod bodies;
mod contacts;
mod elimination;
mod flow;
mod fluid;
mod outline;
mod panels;
mod save;
mod space;
mod stream;
mod transform;

pub use basis::{Basis, BasisScratch, WavesAt};
pub use bodies::{Body, Coupling, Lead, Motions, Tank, TankParams, TankStep};
pub use flow::{Flow, Ink, Tracers};
pub use fluid::{Band, Fluid, FluidParams, Integrator};
pub use outline::{Form, FormError, Outline};
pub use panels::Panel;
pub use space::{DrawnMode, Space, Stroke, StrokeError};
