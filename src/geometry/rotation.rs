//! Rotations in two and three dimensions from one formula.

use nalgebra::SMatrix;

use crate::math::Real;

/// A `D × D` matrix.
pub type Matrix<const D: usize> = SMatrix<Real, D, D>;

/// The axis a 2D rotation turns about: out of the picture, so that positive angles are counter-clockwise.
pub const OUT_OF_PLANE: [Real; 3] = [0.0, 0.0, 1.0];

/// The matrix `W` with `W x = axis × x`, its upper left corner in 2D.
pub fn cross_matrix<const D: usize>(axis: [Real; 3]) -> Matrix<D> {
    let [x, y, z] = axis;
    let full = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]];
    Matrix::from_fn(|row, column| full[row][column])
}

/// Rotation by `angle` radians about an axis through the origin.
///
/// The axis need not be of unit length. In 2D it must be along z.
pub fn rotation<const D: usize>(axis: [Real; 3], angle: Real) -> Matrix<D> {
    let axis = unit_axis(axis);
    let (sin, cos) = angle.sin_cos();
    let cross = cross_matrix::<D>(axis);
    Matrix::from_fn(|row, column| {
        let same = if row == column { cos } else { 0.0 };
        same + (1.0 - cos) * axis[row] * axis[column] + sin * cross[(row, column)]
    })
}

/// The axis at unit length; a zero axis becomes z.
pub fn unit_axis(axis: [Real; 3]) -> [Real; 3] {
    let length = axis.iter().map(|a| a * a).sum::<Real>().sqrt();
    if length > 0.0 && length.is_finite() { axis.map(|a| a / length) } else { OUT_OF_PLANE }
}
