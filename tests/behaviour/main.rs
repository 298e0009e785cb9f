//! Behaviour tests, one module per room.

mod boundary;
mod bubbles;
mod checkpoint;
mod cli;
mod determinism;
mod eigenfluid;
mod every_scene;
mod export;
mod geometry;
mod linear;
mod liquid;
mod phases;
mod pressure;
mod random_scenes;
mod rooms;
mod runner;
mod scene;
mod sim;
mod smoke;
mod snapshot;
mod solids;
mod surface;
mod tank;
mod tiles;
