//! Particles in structure-of-arrays form.

use crate::archive::{ArchiveError, Reader, Writer};

/// The liquid's particles, sorted by block and cell after each [`super::Sorter::sort`].
///
/// A particle that leaves the simulation is marked by a NaN position and vanishes in the next sort.
#[derive(Clone, Debug)]
pub struct Particles<const D: usize> {
    /// Positions, in cells from the domain's low corner.
    pub position: Vec<[f32; D]>,
    /// Velocities, m/s.
    pub velocity: Vec<[f32; D]>,
    /// Rows of the affine matrix of APIC: `affine[i][a][k]` is the change of velocity component `a` across one
    /// cell along `k`, m/s. Kept in 16 bits ([`pack`]): it only shapes the velocity inside a cell, where eight
    /// bits of mantissa are far below the interpolation error, and it is the largest part of a particle.
    pub affine: [Vec<[u16; D]>; D],
}

impl<const D: usize> Default for Particles<D> {
    fn default() -> Self {
        Particles { position: Vec::new(), velocity: Vec::new(), affine: std::array::from_fn(|_| Vec::new()) }
    }
}

impl<const D: usize> Particles<D> {
    /// How many, the dead ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.position.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// Makes room for `more` particles without wasting memory on what will never come.
    pub fn reserve(&mut self, more: usize) {
        // A little slack, so that a tap does not reallocate at every step.
        fn reserve<T>(values: &mut Vec<T>, more: usize) {
            let wanted = values.len() + more;
            if wanted > values.capacity() {
                values.reserve_exact(more + wanted / 64);
            }
        }
        reserve(&mut self.position, more);
        reserve(&mut self.velocity, more);
        self.affine.iter_mut().for_each(|row| reserve(row, more));
    }

    /// Adds a particle without rotation or shear.
    pub fn push(&mut self, position: [f32; D], velocity: [f32; D]) {
        self.reserve(1);
        self.position.push(position);
        self.velocity.push(velocity);
        self.affine.iter_mut().for_each(|row| row.push([0; D]));
    }

    /// Adds `count` particles, all zero.
    pub(super) fn extend(&mut self, count: usize) {
        self.reserve(count);
        let len = self.len() + count;
        self.position.resize(len, [0.0; D]);
        self.velocity.resize(len, [0.0; D]);
        self.affine.iter_mut().for_each(|row| row.resize(len, [0; D]));
    }

    /// Marks a particle as gone.
    pub fn kill(position: &mut [f32; D]) {
        position[0] = f32::NAN;
    }

    /// Whether a particle is still there.
    #[inline]
    pub fn is_alive(position: &[f32; D]) -> bool {
        !position[0].is_nan()
    }

    /// Writes all particles, the dead ones included.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.array("particles.position", &self.position)?;
        out.array("particles.velocity", &self.velocity)?;
        let mut rows = self.affine.iter().enumerate();
        rows.try_for_each(|(axis, row)| out.array(&format!("particles.affine.{axis}"), row))
    }

    /// Reads particles.
    pub fn load(from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        // They are counted in 32 bits everywhere.
        let mut particles =
            Particles { position: from.array("particles.position", u32::MAX as usize)?, ..Self::default() };
        let count = particles.len();
        particles.velocity = from.array_of("particles.velocity", count)?;
        for (axis, row) in particles.affine.iter_mut().enumerate() {
            *row = from.array_of(&format!("particles.affine.{axis}"), count)?;
        }
        Ok(particles)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.position.capacity() + self.velocity.capacity()) * size_of::<[f32; D]>()
            + self.affine.iter().map(|row| row.capacity() * size_of::<[u16; D]>()).sum::<usize>()
    }
}

/// The upper half of a single-precision number, rounded to nearest.
#[inline(always)]
pub fn pack(value: f32) -> u16 {
    ((value.to_bits() + 0x7fff + ((value.to_bits() >> 16) & 1)) >> 16) as u16
}

/// The inverse of [`pack`].
#[inline(always)]
pub fn unpack(half: u16) -> f32 {
    f32::from_bits((half as u32) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_loses_less_than_half_a_percent() {
        for k in 0..10_000u64 {
            let value = (crate::math::hash_unit(k) - 0.5) * 10f32.powi((k % 30) as i32 - 15);
            assert!((unpack(pack(value)) - value).abs() <= value.abs() / 256.0, "{value}");
        }
        assert_eq!(unpack(pack(0.0)), 0.0);
    }
}
