//! Affine velocity fields.

/// The motion of a body as one affine field: `u(x) = v + C x`, with `x` counted from the body's origin.
///
/// In 2D the third axis and the change along it are zero. Whether the field is free of divergence is up to whoever makes
/// it; those of tiles are (CBAR §5).
///
/// ```
/// use glug::math::AffineMotion;
///
/// // A rotation about the origin in 2D, on top of 3 m/s along x.
/// let motion = AffineMotion::from([[3.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0; 4]]);
/// assert_eq!((motion.velocity(0), motion.slope(0, 1)), (3.0, -1.0));
/// assert_eq!(motion.scaled(2.0).slope(1, 0), 2.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AffineMotion {
    /// Per axis: the velocity at the origin, and its change along x, y and z.
    rows: [[f64; 4]; 3],
}

impl From<[[f64; 4]; 3]> for AffineMotion {
    fn from(rows: [[f64; 4]; 3]) -> Self {
        AffineMotion { rows }
    }
}

impl AffineMotion {
    /// Per axis: the velocity at the origin, and its change along x, y and z.
    #[inline(always)]
    pub fn rows(&self) -> &[[f64; 4]; 3] {
        &self.rows
    }

    /// The velocity along an axis: at the origin, and its change along x, y and z.
    #[inline(always)]
    pub fn row(&self, axis: usize) -> &[f64; 4] {
        &self.rows[axis]
    }

    /// The velocity along an axis at the origin.
    #[inline(always)]
    pub fn velocity(&self, axis: usize) -> f64 {
        self.rows[axis][0]
    }

    /// The change of the velocity along an axis, along the axis `k`.
    #[inline(always)]
    pub fn slope(&self, axis: usize, k: usize) -> f64 {
        self.rows[axis][k + 1]
    }

    /// The field `factor` times as fast.
    pub fn scaled(&self, factor: f64) -> Self {
        AffineMotion { rows: self.rows.map(|row| row.map(|value| value * factor)) }
    }

    /// Adds a change of velocity, and an impulse that is the same everywhere.
    pub fn accelerate<const D: usize>(&mut self, change: &AffineMotion, impulse: &[f64; D]) {
        for axis in 0..D {
            (0..=D).for_each(|k| self.rows[axis][k] += change.rows[axis][k]);
            self.rows[axis][0] += impulse[axis];
        }
    }

    /// The field after `share` of the change since `before` once more.
    pub fn extrapolated(mut self, before: &AffineMotion, share: f64) -> Self {
        let numbers = self.rows.iter_mut().flatten().zip(before.rows.iter().flatten());
        numbers.for_each(|(own, before)| *own += share * (*own - before));
        self
    }
}
