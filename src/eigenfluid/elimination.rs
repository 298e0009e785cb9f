//! Dense linear systems with many right-hand sides, in memory that is used again.

use macro_rules_attribute::apply;

use crate::math::{Real, simd};

/// A square matrix with right-hand sides beside it, row after row.
#[derive(Clone, Debug, Default)]
pub(super) struct Elimination {
    size: usize,
    width: usize,
    values: Vec<Real>,
}

impl Elimination {
    /// Zeros for a system of `size` unknowns and as many right-hand sides as given.
    pub fn clear(&mut self, size: usize, sides: usize) {
        self.size = size;
        self.width = (size + sides).next_multiple_of(8);
        self.values.clear();
        self.values.resize(self.size * self.width, 0.0);
    }

    /// A row: the matrix' entries, then those of the right-hand sides or the solutions.
    pub fn row(&self, row: usize) -> &[Real] {
        &self.values[row * self.width..][..self.width]
    }

    /// A row to be changed.
    pub fn row_mut(&mut self, row: usize) -> &mut [Real] {
        &mut self.values[row * self.width..][..self.width]
    }

    /// The solution of one of the right-hand sides, unknown by unknown.
    pub fn solution(&self, side: usize) -> impl Iterator<Item = Real> {
        self.values.chunks_exact(self.width.max(1)).map(move |row| row[self.size + side])
    }

    /// Puts the solutions in the place of the right-hand sides; false if the matrix is singular.
    pub fn solve(&mut self) -> bool {
        eliminate(&mut self.values, self.size, self.width)
    }
}

/// Gauss' elimination with the largest entry of a column as its pivot.
#[apply(simd)]
fn eliminate(values: &mut [Real], size: usize, width: usize) -> bool {
    for column in 0..size {
        let entry = |row: usize| values[row * width + column].abs();
        let pivot =
            (column..size).fold(column, |best, row| if entry(row) > entry(best) { row } else { best });
        if entry(pivot) == 0.0 || !entry(pivot).is_finite() {
            return false;
        }
        if pivot != column {
            let (above, below) = values.split_at_mut(pivot * width);
            above[column * width..][..width].swap_with_slice(&mut below[..width]);
        }
        let (above, below) = values.split_at_mut((column + 1) * width);
        // From a whole vector on; what stands left of the pivot is not read again.
        let first = column - column % 8;
        let pivot_row = &above[column * width + first..];
        let inverse = 1.0 / pivot_row[column - first];
        for row in below.chunks_exact_mut(width) {
            let factor = row[column] * inverse;
            for (value, pivot) in row[first..].iter_mut().zip(pivot_row) {
                *value -= factor * pivot;
            }
        }
    }
    for row in (0..size).rev() {
        let (above, below) = values.split_at_mut((row + 1) * width);
        let (matrix, sides) = above[row * width..].split_at_mut(size);
        for (solved, factor) in below.chunks_exact(width).zip(&matrix[row + 1..]) {
            for (value, solved) in sides.iter_mut().zip(&solved[size..]) {
                *value -= factor * solved;
            }
        }
        sides.iter_mut().for_each(|value| *value /= matrix[row]);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    #[test]
    fn solutions_solve() {
        for (size, sides) in [(1, 1), (3, 2), (17, 5), (40, 9)] {
            let mut system = Elimination::default();
            let entry = |row: usize, column: usize| hash_unit((row * 100 + column) as u64) as Real - 0.5;
            system.clear(size, sides);
            for row in 0..size {
                for column in 0..size + sides {
                    system.row_mut(row)[column] = entry(row, column);
                }
            }
            assert!(system.solve());
            for side in 0..sides {
                let solution: Vec<Real> = system.solution(side).collect();
                for row in 0..size {
                    let product: Real = (0..size).map(|column| entry(row, column) * solution[column]).sum();
                    let error = (product - entry(row, size + side)).abs();
                    assert!(error < 1e-11, "{size} unknowns: off by {error:.1e}");
                }
            }
        }
        let mut system = Elimination::default();
        system.clear(2, 1);
        system.row_mut(0)[0] = 1.0;
        assert!(!system.solve(), "a singular matrix is told");
    }
}
