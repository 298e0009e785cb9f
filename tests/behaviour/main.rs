//! Behaviour tests, one module per room.

mod cli;
mod export;
mod geometry;
mod linear;
mod scene;
mod surface;
