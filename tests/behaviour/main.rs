//! Behaviour tests, one module per room.

mod geometry;
mod scene;
