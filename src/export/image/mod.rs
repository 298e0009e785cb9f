//! Pictures of a snapshot, drawn by the processor: a tank in perspective in 3D, a cut through the liquid in 2D.
//!
//! Meant for a quick look, a report or a title page; neither a window nor Vulkan is needed, and the solver can be any.

mod flat;
mod haze;
mod light;
mod raster;
mod stage;
mod tank;
mod vector;

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use crate::snapshot::Snapshot;

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
    /// Writes the picture as PNG, quickly.
    pub fn write_png(&self, out: &mut impl Write) -> io::Result<()> {
        // A third larger than the default, and fifteen times as fast.
        self.write_compressed(out, png::Compression::Fast)
    }

    /// Writes the picture as PNG, as small as can be.
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

/// Draws a moment; nothing once the stop flag is up.
pub fn draw(snapshot: &Snapshot, stop: &AtomicBool) -> Option<Picture> {
    if snapshot.scenery.dimension == 2 { flat::draw(snapshot, stop) } else { tank::draw(snapshot, stop) }
}
