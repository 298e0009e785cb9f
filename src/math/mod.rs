//! Numbers, vectors, axes, and the sizes that follow from the dimension `D` (2 or 3).

mod affine;
mod dimensions;
mod groups;
mod hash;
mod sets;
mod simd;

pub use affine::AffineMotion;
pub(crate) use dimensions::compiled_here;
pub use groups::{group_starts, sort_by_group};
pub use hash::{hash_unit, mix};
pub use sets::Sets;
pub(crate) use simd::simd;

/// Double precision: what geometry, residuals and statistics are computed in.
pub type Real = f64;

/// A point or direction in metres.
pub type Vector<const D: usize> = nalgebra::SVector<Real, D>;

/// The low or the high end of something along an axis.
///
/// ```
/// use glug::math::Side;
///
/// assert_eq!(Side::BOTH.map(Side::index), [0, 1]);
/// assert_eq!(Side::Low.sign(), -1.0);
/// assert_eq!(Side::Low.opposite(), Side::High);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Towards negative coordinates.
    Low,
    /// Towards positive coordinates.
    High,
}

impl Side {
    /// Both sides, low first.
    pub const BOTH: [Side; 2] = [Side::Low, Side::High];

    /// Sign of the outward normal: −1 on the low side, +1 on the high side.
    #[inline]
    pub const fn sign(self) -> Real {
        match self {
            Side::Low => -1.0,
            Side::High => 1.0,
        }
    }

    /// Place among both: 0 on the low side, 1 on the high side.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The side at an even or odd place of a list that alternates low and high.
    #[inline(always)]
    pub const fn at(index: usize) -> Side {
        if index.is_multiple_of(2) { Side::Low } else { Side::High }
    }

    /// The other side.
    #[inline(always)]
    pub const fn opposite(self) -> Side {
        match self {
            Side::Low => Side::High,
            Side::High => Side::Low,
        }
    }
}

/// `base` to the power of the dimension: corners of a cell (2^D), cells of a neighbourhood (3^D), …
#[inline]
pub const fn power(base: usize, dimension: usize) -> usize {
    let (mut result, mut i) = (1, 0);
    while i < dimension {
        result *= base;
        i += 1;
    }
    result
}

/// Turns a flat index, x fastest, into coordinates of a box with `side` entries along every axis.
#[inline]
pub fn unflatten<const D: usize>(mut flat: usize, side: usize) -> [usize; D] {
    std::array::from_fn(|_| {
        let coordinate = flat % side;
        flat /= side;
        coordinate
    })
}

/// The inverse of [`unflatten`].
#[inline]
pub fn flatten<const D: usize>(coordinates: [usize; D], side: usize) -> usize {
    coordinates.iter().rev().fold(0, |flat, &coordinate| flat * side + coordinate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_indices_round_trip() {
        for flat in 0..512 {
            assert_eq!(flatten(unflatten::<3>(flat, 8), 8), flat);
        }
        assert_eq!(unflatten::<2>(8 * 3 + 5, 8), [5, 3], "x is the fastest index");
        assert_eq!((power(2, 3), power(3, 2), power(8, 0)), (8, 9, 1));
    }
}
