//! Tiles of liquid that move as a whole.

mod dense;
mod filled;
mod heavy;
mod interior;
mod kept;
mod physics;
mod reduced;
mod waves;
