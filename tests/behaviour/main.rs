//! Behaviour tests, one module per room.

mod cli;
mod export;
mod geometry;
mod scene;
mod surface;
mod linear;
