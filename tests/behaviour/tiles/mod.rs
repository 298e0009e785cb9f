//! Tiles of liquid that move as a whole.

mod coupled;
mod dense;
mod edges;
mod filled;
mod heavy;
mod interior;
mod kept;
mod physics;
mod reduced;
mod swept;
mod waves;
