//! Keeping the liquid's volume: particles clump, and the surface around them slowly sinks. What is missing is given
//! back as a slight expansion of the liquid well below the surface.

use crate::math::Real;

/// The volume the liquid should have, and what is being done about it. Volumes are in cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VolumeTarget {
    /// What there should be: what there was at the start, plus what came, minus what left.
    pub cells: Real,
    /// Net outflow asked of every cell well below the surface, m/s.
    pub expansion: Real,
}

/// Largest share by which a cell may expand or shrink in one substep.
const MOST_PER_STEP: Real = 0.01;

impl VolumeTarget {
    /// Adds what sources emitted.
    pub fn add(&mut self, cells: Real) {
        self.cells += cells;
    }

    /// Takes away what left: as large a share of the volume as of the particles.
    pub fn remove_share(&mut self, gone: usize, of: usize) {
        self.cells *= 1.0 - gone as Real / of.max(1) as Real;
    }

    /// Decides the expansion that makes up for a difference at `rate` per second.
    pub fn correct(&mut self, [all, deep]: [Real; 2], rate: Real, dx: Real, dt: Real) {
        let wanted = rate * (self.cells - all) / deep.max(1.0);
        // Spray has no inside: leave it alone.
        let enough = deep >= 0.05 * all;
        self.expansion =
            if enough { wanted.clamp(-MOST_PER_STEP / dt, MOST_PER_STEP / dt) * dx } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_volume_comes_back_at_the_given_rate() {
        let (dx, dt, rate) = (0.1, 0.01, 2.0);
        let mut target = VolumeTarget { cells: 1000.0, expansion: 0.0 };
        let mut volume = 990.0;
        for _ in 0..100 {
            target.correct([volume, 800.0], rate, dx, dt);
            volume += 800.0 * target.expansion / dx * dt;
        }
        let left = (1000.0 - volume) / 10.0;
        assert!((left - (-2.0f64).exp()).abs() < 0.01, "after one second {left} of the difference is left");
    }
}
