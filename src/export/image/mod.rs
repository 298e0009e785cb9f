//! Pictures of a frame, drawn by the processor: a tank in perspective in 3D, a cut through the liquid in 2D.
//!
//! Meant for a quick look, a report or a title page; no window and no graphics card are needed.

mod flat;
mod light;
mod raster;
mod stage;
mod tank;
mod vector;

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use crate::geometry::SurfaceMesh;
use crate::grid::{Blocks, Field};
use crate::math::Real;
use crate::sim::Setup;

/// Pixels across a picture of a tank.
const WIDTH: usize = 1280;
/// Pixels down a picture of a tank.
const HEIGHT: usize = 720;

/// A picture: 8-bit sRGB, rows from the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// Red, green and blue, pixel after pixel.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Writes it as PNG, quickly.
    pub fn write_png(&self, out: &mut impl Write) -> io::Result<()> {
        // A third larger than the default, and fifteen times as fast.
        self.write_compressed(out, png::Compression::Fast)
    }

    /// Writes it as PNG, as small as can be.
    pub fn write_small_png(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_compressed(out, png::Compression::High)
    }

    fn write_compressed(&self, out: &mut impl Write, compression: png::Compression) -> io::Result<()> {
        let mut encoder = png::Encoder::new(out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(compression);
        encoder.write_header()?.write_image_data(&self.rgb)?;
        Ok(())
    }
}

/// What there is to see.
pub struct View<'a, const D: usize> {
    /// Domain and solids.
    pub setup: &'a Setup<D>,
    /// Active blocks.
    pub blocks: &'a Blocks<D>,
    /// Signed distance to the liquid's surface at cell centres.
    pub surface: &'a Field<f32>,
    /// The liquid's surface.
    pub mesh: &'a SurfaceMesh<D>,
    /// Positions, in cells, and velocities of the particles; only flat pictures look at them.
    pub particles: [&'a [[f32; D]]; 2],
    /// Simulated seconds: where moving solids are.
    pub time: Real,
}

/// Draws a frame; nothing once the stop flag is up. Solids with "glass" in their name are seen through in 3D.
pub fn draw<const D: usize>(view: &View<'_, D>, stop: &AtomicBool) -> Option<Picture> {
    if D == 2 { flat::draw(view, stop) } else { tank::draw(view, stop) }
}
