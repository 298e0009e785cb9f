//! Stream functions and vortices in two dimensions, at many points at once.

use macro_rules_attribute::apply;

use super::basis::{Basis, WavesAt, dot, set_product};
use crate::math::{Real, Vector, simd};

/// Sines of all waves at points, and memory to sum with them.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamPoints {
    sines: [Vec<Real>; 2],
    /// `N / |k|` by coefficient.
    norms: Vec<Real>,
    weighted: Vec<Real>,
    line: Vec<Real>,
    waves: WavesAt<2>,
}

impl StreamPoints {
    /// Looks at these points from here on.
    pub fn place(&mut self, basis: &Basis<2>, points: impl Iterator<Item = Vector<2>>) {
        if self.norms.len() != basis.len() {
            self.norms = basis.stream_norms();
        }
        self.sines.iter_mut().for_each(Vec::clear);
        for x in points {
            basis.waves_at(x, &mut self.waves);
            for (all, own) in self.sines.iter_mut().zip(&self.waves.sine) {
                all.extend_from_slice(own);
            }
        }
    }

    /// The stream function at the points.
    pub fn stream(&mut self, amplitudes: &[Real], values: &mut Vec<Real>) {
        let StreamPoints { sines, norms, weighted, line, waves } = self;
        weighted.resize(norms.len(), 0.0);
        set_product(weighted, norms, amplitudes);
        let (rows, columns) = (waves.sine[0].len(), waves.sine[1].len());
        line.resize(columns, 0.0);
        values.clear();
        for (first, second) in sines[0].chunks_exact(rows).zip(sines[1].chunks_exact(columns)) {
            sum_rows(weighted, first, line);
            values.push(dot(line, second));
        }
    }

    /// Adds the projection of point vortices at the points: `r += ∫ ψ ω`.
    pub fn add_vortices(&mut self, strengths: &[Real], amplitudes: &mut [Real]) {
        let StreamPoints { sines, norms, weighted, waves, .. } = self;
        let (rows, columns) = (waves.sine[0].len(), waves.sine[1].len());
        weighted.resize(norms.len(), 0.0);
        weighted.fill(0.0);
        let points = sines[0].chunks_exact(rows).zip(sines[1].chunks_exact(columns));
        for ((first, second), &strength) in points.zip(strengths) {
            add_rows(weighted, first, second, strength);
        }
        amplitudes.iter_mut().zip(weighted).zip(norms).for_each(|((to, sum), norm)| *to += *sum * *norm);
    }
}

/// `line = Σ factor · row`.
#[apply(simd)]
fn sum_rows(matrix: &[Real], factors: &[Real], line: &mut [Real]) {
    line.fill(0.0);
    for (row, factor) in matrix.chunks_exact(line.len()).zip(factors) {
        for (sum, value) in line.iter_mut().zip(row) {
            *sum += factor * value;
        }
    }
}

/// `row += strength · factor · line` for every row.
#[apply(simd)]
fn add_rows(matrix: &mut [Real], factors: &[Real], line: &[Real], strength: Real) {
    for (row, factor) in matrix.chunks_exact_mut(line.len()).zip(factors) {
        let factor = strength * factor;
        for (value, own) in row.iter_mut().zip(line) {
            *value += factor * own;
        }
    }
}
