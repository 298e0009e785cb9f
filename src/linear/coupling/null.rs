//! Constants that are free in spite of bodies.
//!
//! A component `c` of the network without ground has the null vector `1_c`. A body that floats in it leaves it one, since
//! `W 1_c = 0`: what it pushes away on one side it makes room for on the other. One that closes it off does not; and where one body
//! closes off two components, they are free together. In general the null space is that of the matrix with the columns `W 1_c`.

use nalgebra::DMatrix;

/// Columns that cancel to less than this share of their sizes are zero.
const CANCELLED: f64 = 1e-7;
/// Eigenvalues of the columns' products, scaled to a diagonal of ones, below which a combination of them is zero.
const LEAST_EIGENVALUE: f64 = 1e-9;

/// `W Z`, where the columns of `Z` mark the nodes of components.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Indicators {
    /// The components that are not free by themselves.
    pub held: Vec<usize>,
    /// Their columns.
    pub columns: DMatrix<f64>,
}

impl Indicators {
    /// Takes the entries of `W` as `each(row, component, weight)`; components count from 0.
    pub fn new(rows: usize, components: usize, each: impl FnOnce(&mut dyn FnMut(usize, usize, f64))) -> Self {
        let mut sums = DMatrix::<f64>::zeros(rows, components);
        let mut sizes = vec![0.0; components];
        each(&mut |row, component, weight| {
            sums[(row, component)] += weight;
            sizes[component] += weight.abs();
        });
        let is_held = |&component: &usize| sums.column(component).norm() > CANCELLED * sizes[component];
        let held: Vec<usize> = (0..components).filter(is_held).collect();
        Indicators { columns: sums.select_columns(&held), held }
    }

    /// For columns `c`, scaled by `scale`, the eigenvectors of `cᵀ M c` with eigenvalues above zero, divided by their root, and
    /// those with eigenvalue zero, as columns of two matrices.
    pub fn split(product: &DMatrix<f64>, scale: &[f64]) -> [DMatrix<f64>; 2] {
        let size = product.nrows();
        if size == 0 {
            return [DMatrix::zeros(0, 0), DMatrix::zeros(0, 0)];
        }
        let scaled = DMatrix::from_fn(size, size, |i, j| {
            0.5 * (product[(i, j)] + product[(j, i)]) * scale[i] * scale[j]
        });
        let eigen = scaled.symmetric_eigen();
        let largest = eigen.eigenvalues.iter().copied().fold(0.0, f64::max);
        let is_zero = |k: usize| eigen.eigenvalues[k] <= LEAST_EIGENVALUE * largest;
        let vectors = |wanted: bool| {
            let list: Vec<usize> = (0..size).filter(|&k| is_zero(k) == wanted).collect();
            let root = |k: usize| if wanted { 1.0 } else { eigen.eigenvalues[k].sqrt() };
            DMatrix::from_fn(size, list.len(), |i, j| eigen.eigenvectors[(i, list[j])] / root(list[j]))
        };
        [vectors(false), vectors(true)]
    }
}

/// From the sums of a vector over components (counted from 0), and their weights, to the constants that are to be subtracted
/// from their nodes so that nothing is left along null vectors.
pub(in super::super) fn free_means(indicators: &Indicators, sums: &mut [f64], weights: &[f64]) {
    let held = &indicators.held;
    let mut of_held: Vec<f64> = held.iter().map(|&component| sums[component]).collect();
    for (sum, &weight) in sums.iter_mut().zip(weights) {
        *sum = if weight > 0.0 { *sum / weight } else { 0.0 };
    }
    if held.is_empty() {
        return;
    }
    // With vectors of unit length in the norm of the weights, a column is divided by the root of its weight.
    let scale: Vec<f64> = held.iter().map(|&component| 1.0 / weights[component].max(1e-300).sqrt()).collect();
    of_held.iter_mut().zip(&scale).for_each(|(sum, scale)| *sum *= scale);
    let product = indicators.columns.transpose() * &indicators.columns;
    let [_, free] = Indicators::split(&product, &scale);
    for (k, &component) in held.iter().enumerate() {
        let along = |column: usize| (0..held.len()).map(|l| free[(l, column)] * of_held[l]).sum::<f64>();
        sums[component] =
            scale[k] * (0..free.ncols()).map(|column| free[(k, column)] * along(column)).sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floating_body_frees_a_component_and_a_plug_frees_two_together() {
        // Component 0: a body floats in it. Components 1 and 2: a plug between them. Component 3: closed off by a lid.
        let entries = [(0, 0, 2.0), (0, 0, -2.0), (1, 1, 3.0), (1, 2, -3.0), (2, 3, 1.0)];
        let indicators = Indicators::new(3, 4, |each| entries.iter().for_each(|&(r, c, w)| each(r, c, w)));
        assert_eq!(indicators.held, [1, 2, 3]);
        let mut sums = [4.0, 6.0, 3.0, 5.0];
        free_means(&indicators, &mut sums, &[2.0, 1.0, 2.0, 7.0]);
        for (found, expected) in sums.iter().zip([2.0, 3.0, 3.0, 0.0]) {
            assert!((found - expected).abs() < 1e-12, "{sums:?}");
        }
    }
}
