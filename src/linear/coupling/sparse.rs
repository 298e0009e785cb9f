//! Symmetric positive matrices of small blocks, most of them zero, and their Cholesky factors.
//!
//! Bodies are the parts of such a matrix. A heap of some hundred touches only its neighbours: dense factors cost the cube of all
//! their motions, these the cube of what a cut through the heap meets.

use std::collections::BTreeMap;

/// A symmetric matrix by blocks: parts of it are a few rows each.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct SparseBlocks {
    /// First row of each part, and the number of all rows.
    start: Vec<usize>,
    /// Where the block of each part with itself starts among the values.
    diagonal: Vec<usize>,
    /// The same of a row's part and an earlier column's part.
    place: BTreeMap<(u32, u32), usize>,
    /// Row by row in each block.
    values: Vec<f64>,
}

impl SparseBlocks {
    /// The unit matrix, of parts with so many rows each.
    pub fn identity(sizes: impl Iterator<Item = usize>) -> Self {
        let mut matrix = SparseBlocks { start: vec![0], ..SparseBlocks::default() };
        for (part, size) in sizes.enumerate() {
            let first = matrix.start[part];
            matrix.start.push(first + size);
            matrix.diagonal.push(matrix.values.len());
            matrix.values.extend((0..size * size).map(|at| if at % (size + 1) == 0 { 1.0 } else { 0.0 }));
        }
        matrix
    }

    fn size(&self, part: usize) -> usize {
        self.start[part + 1] - self.start[part]
    }

    /// Adds `factor · a bᵀ` to the block of two parts, and its mirror image to that of them in turn: once if they are the same.
    pub fn add(&mut self, (row, a): (usize, &[f64]), (column, b): (usize, &[f64]), factor: f64) {
        let ((row, a), (column, b)) =
            if row >= column { ((row, a), (column, b)) } else { ((column, b), (row, a)) };
        debug_assert_eq!((a.len(), b.len()), (self.size(row), self.size(column)));
        let first = self.block(row, column);
        for (line, a) in self.values[first..].chunks_exact_mut(b.len().max(1)).zip(a) {
            line.iter_mut().zip(b).for_each(|(value, b)| *value += factor * a * b);
        }
    }

    /// Where a block starts, which is there from now on.
    fn block(&mut self, row: usize, column: usize) -> usize {
        if row == column {
            return self.diagonal[row];
        }
        let end = self.values.len();
        let first = *self.place.entry((row as u32, column as u32)).or_insert(end);
        if first == end {
            self.values.resize(end + self.size(row) * self.size(column), 0.0);
        }
        first
    }

    /// All blocks: the parts of their rows and columns, and where they start.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let own = self.diagonal.iter().enumerate().map(|(part, &first)| (part, part, first));
        own.chain(self.place.iter().map(|(&(row, column), &first)| (row as usize, column as usize, first)))
    }

    /// Calls `each(row, column, value)` for all entries of blocks that are not zero.
    pub fn each_entry(&self, mut each: impl FnMut(usize, usize, f64)) {
        for (row, column, first) in self.blocks() {
            let width = self.size(column);
            for i in 0..self.size(row) {
                for j in 0..width {
                    let value = self.values[first + i * width + j];
                    each(self.start[row] + i, self.start[column] + j, value);
                    if row != column {
                        each(self.start[column] + j, self.start[row] + i, value);
                    }
                }
            }
        }
    }

    /// Parts in the order of their elimination, those with the fewest neighbours first, and the neighbours of each that come later.
    fn order(&self) -> (Vec<usize>, Vec<Vec<usize>>) {
        let parts = self.start.len() - 1;
        let mut beside: Vec<Vec<usize>> = vec![Vec::new(); parts];
        for &(row, column) in self.place.keys() {
            beside[row as usize].push(column as usize);
            beside[column as usize].push(row as usize);
        }
        beside.iter_mut().for_each(|list| list.sort_unstable());
        let mut rest: Vec<usize> = (0..parts).collect();
        let mut order = Vec::with_capacity(parts);
        while let Some(at) = (0..rest.len()).min_by_key(|&at| (beside[rest[at]].len(), rest[at])) {
            let part = rest.swap_remove(at);
            order.push(part);
            let own = std::mem::take(&mut beside[part]);
            for &other in &own {
                let mut joined = std::mem::take(&mut beside[other]);
                joined.extend_from_slice(&own);
                joined.sort_unstable();
                joined.dedup();
                joined.retain(|&end| end != other && end != part);
                beside[other] = joined;
            }
            beside[part] = own;
        }
        (order, beside)
    }

    /// `L` with `L Lᵀ` equal to the matrix, up to the order of parts; `None` if it is not positive.
    pub fn factor(&self) -> Option<SparseFactors> {
        let (order, mut later) = self.order();
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &part)| position[part] = at);
        let mut columns: Vec<Column> = Vec::with_capacity(order.len());
        for &part in &order {
            let size = self.size(part);
            let mut list = std::mem::take(&mut later[part]);
            list.sort_unstable_by_key(|&other| position[other]);
            let mut rows = size;
            let below: Vec<Below> = list
                .into_iter()
                .map(|other| {
                    let first = rows;
                    rows += self.size(other);
                    Below {
                        position: position[other],
                        first,
                        start: self.start[other],
                        size: self.size(other),
                    }
                })
                .collect();
            columns.push(Column { start: self.start[part], size, below, values: vec![0.0; rows * size] });
        }
        for (row, column, first) in self.blocks() {
            let width = self.size(column);
            let value = |i: usize, j: usize| self.values[first + i * width + j];
            let (from, to) = (position[column], position[row]);
            let (own, other, is_turned) = if from <= to { (from, to, false) } else { (to, from, true) };
            let target = &mut columns[own];
            let offset = target.offset_of(other, own);
            for i in 0..self.size(row) {
                for j in 0..width {
                    let (i_own, j_own) = if is_turned { (j, i) } else { (i, j) };
                    target.values[(offset + i_own) * target.size + j_own] = value(i, j);
                }
            }
        }
        for at in 0..columns.len() {
            let (before, after) = columns.split_at_mut(at + 1);
            let own = &mut before[at];
            own.factor()?;
            own.update(after, at + 1);
        }
        Some(SparseFactors { columns })
    }
}

/// A part that a column has a block for, below its diagonal one.
#[derive(Clone, Copy, Debug)]
struct Below {
    /// Among the columns.
    position: usize,
    /// First of its rows in the column.
    first: usize,
    /// First of its rows in the matrix.
    start: usize,
    size: usize,
}

/// A column of blocks: the diagonal one, and those below it.
#[derive(Clone, Debug)]
struct Column {
    /// First of its own rows in the matrix.
    start: usize,
    size: usize,
    below: Vec<Below>,
    /// Row by row, `size` numbers each.
    values: Vec<f64>,
}

impl Column {
    /// The first row of a part's block in this column, which is `own` itself among the columns.
    fn offset_of(&self, position: usize, own: usize) -> usize {
        if position == own {
            return 0;
        }
        let found = self.below.binary_search_by_key(&position, |below| below.position);
        self.below[found.expect("what is eliminated joins all that is beside it")].first
    }

    /// Makes it a column of the factor, once all earlier ones have been taken away from it.
    fn factor(&mut self) -> Option<()> {
        let size = self.size;
        for line in 0..self.values.len().checked_div(size).unwrap_or(0) {
            let (above, rest) = self.values.split_at_mut(line * size);
            let row = &mut rest[..size];
            for j in 0..size.min(line + 1) {
                let dot = |pivot: &[f64], row: &[f64]| (0..j).map(|k| pivot[k] * row[k]).sum::<f64>();
                if j == line {
                    let left = row[j] - dot(row, row);
                    if left <= 0.0 || !left.is_finite() {
                        return None;
                    }
                    row[j] = left.sqrt();
                } else {
                    let pivot = &above[j * size..(j + 1) * size];
                    row[j] = (row[j] - dot(pivot, row)) / pivot[j];
                }
            }
        }
        Some(())
    }

    /// Takes its products away from later columns, the first of which stands at `first`.
    fn update(&self, later: &mut [Column], first: usize) {
        let size = self.size;
        let lines =
            |below: &Below| self.values[below.first * size..].chunks_exact(size.max(1)).take(below.size);
        for (index, column) in self.below.iter().enumerate() {
            let target = &mut later[column.position - first];
            for row in &self.below[index..] {
                let offset = target.offset_of(row.position, column.position);
                let to = target.values[offset * target.size..].chunks_exact_mut(target.size.max(1));
                for (line, to) in lines(row).zip(to) {
                    for (other, value) in lines(column).zip(to) {
                        *value -= line.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
                    }
                }
            }
        }
    }
}

/// Cholesky factors of a [`SparseBlocks`].
#[derive(Clone, Debug, Default)]
pub(in super::super) struct SparseFactors {
    columns: Vec<Column>,
}

impl SparseFactors {
    /// `L⁻¹ f` in place.
    pub fn forward(&self, f: &mut [f64]) {
        for column in &self.columns {
            let size = column.size;
            for i in 0..size {
                let row = &column.values[i * size..];
                let known: f64 = (0..i).map(|k| row[k] * f[column.start + k]).sum();
                f[column.start + i] = (f[column.start + i] - known) / row[i];
            }
            for below in &column.below {
                for i in 0..below.size {
                    let row = &column.values[(below.first + i) * size..][..size];
                    f[below.start + i] -= (0..size).map(|k| row[k] * f[column.start + k]).sum::<f64>();
                }
            }
        }
    }

    /// `L⁻ᵀ f` in place.
    pub fn backward(&self, f: &mut [f64]) {
        for column in self.columns.iter().rev() {
            let size = column.size;
            for below in &column.below {
                for i in 0..below.size {
                    let row = &column.values[(below.first + i) * size..][..size];
                    let value = f[below.start + i];
                    (0..size).for_each(|k| f[column.start + k] -= row[k] * value);
                }
            }
            for i in (0..size).rev() {
                let known: f64 =
                    (i + 1..size).map(|k| column.values[k * size + i] * f[column.start + k]).sum();
                f[column.start + i] = (f[column.start + i] - known) / column.values[i * size + i];
            }
        }
    }

    /// The inverse of the matrix times `f`, in place.
    pub fn solve(&self, f: &mut [f64]) {
        self.forward(f);
        self.backward(f);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(|column| 8 * column.values.capacity() + 32 * column.below.capacity()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;
    use nalgebra::{DMatrix, DVector};

    /// A heap of parts, some without rows, that touch those beside them.
    fn heap(parts: usize) -> SparseBlocks {
        let unit = |seed: usize| f64::from(hash_unit(seed as u64)) - 0.5;
        let size = |part: usize| part * 5 % 7;
        let mut matrix = SparseBlocks::identity((0..parts).map(size));
        let row = |part: usize, seed: usize| -> Vec<f64> {
            (0..size(part)).map(|k| 30.0 * unit(seed * 31 + k)).collect()
        };
        for part in 0..parts {
            for (seed, other) in [part / 2, (part + 7) % parts, part].into_iter().enumerate() {
                let (a, b) = (row(part, part * 3 + seed), row(other, part * 3 + seed + 999));
                // As a contact does it: the square of a row of two parts.
                matrix.add((part, &a), (part, &a), 1.0);
                if part != other {
                    matrix.add((part, &a), (other, &b), 1.0);
                    matrix.add((other, &b), (other, &b), 1.0);
                }
            }
        }
        matrix
    }

    fn dense(matrix: &SparseBlocks) -> DMatrix<f64> {
        let rows = *matrix.start.last().expect("a start");
        let mut dense = DMatrix::zeros(rows, rows);
        matrix.each_entry(|row, column, value| dense[(row, column)] += value);
        dense
    }

    #[test]
    fn factors_solve_what_the_matrix_multiplies() {
        for parts in [1, 2, 9, 60] {
            let matrix = heap(parts);
            let dense = dense(&matrix);
            let factors = matrix.factor().expect("it is positive");
            let x = DVector::from_fn(dense.nrows(), |i, _| f64::from(hash_unit(i as u64)) - 0.3);
            let mut found = &dense * &x;
            factors.solve(found.as_mut_slice());
            let error = (&found - &x).amax();
            assert!(error < 1e-9, "{parts} parts: {error:.1e}");
            // Half of it keeps the square: xᵀ A⁻¹ x = |L⁻¹ x|².
            let mut half = x.clone();
            factors.forward(half.as_mut_slice());
            let mut whole = x.clone();
            factors.solve(whole.as_mut_slice());
            let square = whole.dot(&x);
            assert!((half.norm_squared() - square).abs() <= 1e-9 * square, "{parts} parts");
        }
    }

    #[test]
    fn what_is_not_positive_has_no_factors() {
        let mut matrix = heap(9);
        let row = vec![1e3; matrix.size(4)];
        matrix.add((4, &row), (4, &row), -1.0);
        assert!(matrix.factor().is_none());
    }
}
