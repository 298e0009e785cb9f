//! Particles as PLY.

use std::io::{self, Write};

use crate::liquid::Particles;

use super::mesh::padded;

/// Writes particles as binary PLY: position in metres (`positions` are in cells of `dx` metres) and velocity, m/s. Particles about
/// to vanish are left out.
pub fn write_particles<const D: usize>(
    positions: &[[f32; D]],
    velocities: &[[f32; D]],
    dx: f64,
    out: &mut impl Write,
) -> io::Result<()> {
    assert_eq!(positions.len(), velocities.len(), "every particle has a position and a velocity");
    writeln!(out, "ply\nformat binary_little_endian 1.0\ncomment particles, metres and m/s, y up")?;
    let alive = || positions.iter().zip(velocities).filter(|(position, _)| Particles::is_alive(position));
    writeln!(out, "element vertex {}", alive().count())?;
    for name in ["x", "y", "z", "vx", "vy", "vz"] {
        writeln!(out, "property float {name}")?;
    }
    writeln!(out, "end_header")?;
    for (position, velocity) in alive() {
        let position = position.map(|c| (f64::from(c) * dx) as f32);
        for value in padded(&position).into_iter().chain(padded(velocity)) {
            out.write_all(&value.to_le_bytes())?;
        }
    }
    Ok(())
}
