//! The picture: what stands on the stage, from where it is seen, and how light behaves there.

mod camera;
mod look;
mod marks;
mod material;
mod pane;
mod tank;
mod textures;
mod tiles;

pub use camera::OrbitCamera;
#[cfg(test)]
pub(super) use marks::Marks;
pub use material::MaterialsPlugin;
pub use pane::{CUT_AXIS, DrawOptions, Pane, SceneAssets};
