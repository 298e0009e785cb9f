//! The space that a fluid moves in: eigenmodes, and modes that were drawn.
//!
//! A drawn field is kept by its coefficients among all modes of the basis, which hold it as a divergence-free flow along
//! the walls. The space is the span of the eigenmodes that are kept, `E`, and of the drawn fields. Since eigenmodes are
//! orthonormal, taking a field's share in `E` away is to leave out its coefficients there; what remains of all fields is
//! made orthonormal by the eigenvectors of their Gram matrix, which gives `R`, and turned within itself so that
//! `Rᵀ Λ R` is diagonal: viscosity then damps each column by an exponential of its own.
//!
//! Amplitudes are those of the basis throughout, so nothing has to be converted when modes come and go.

use std::sync::Arc;

use nalgebra::{DMatrix, SymmetricEigen};

use super::basis::{Basis, BasisScratch, WavesAt, add_scaled, dot, set_product};
use crate::math::{Real, Vector};

/// Of a drawn field's norm, what must lie outside of the space for it to count as something new.
const NEW_SHARE: Real = 1e-6;

/// A line drawn into the fluid, along which it is pushed.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke<const D: usize> {
    /// Its points in metres, in order; a loop ends where it began.
    pub points: Vec<Vector<D>>,
    /// Radius of the Gaussian that is pushed, m.
    pub radius: Real,
}

/// Why a stroke is no mode.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StrokeError {
    /// A point or the radius is not a number.
    #[error("a point of the stroke or its radius is not a finite number")]
    NonFinite,
    /// The radius is zero or less.
    #[error("the radius of a stroke must be above 0, found {0}")]
    Radius(Real),
    /// All points coincide, or the basis is too coarse for what was drawn.
    #[error("the stroke moves nothing that the modes could show")]
    Nothing,
}

/// A field that was drawn or recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnMode {
    /// Coefficients among the modes of the basis, of norm 1.
    pub field: Vec<Real>,
    /// The highest speed in it at the basis' sample points, m/s.
    pub peak: Real,
}

/// What was drawn, made orthonormal.
#[derive(Clone, Debug)]
struct Column {
    values: Vec<Real>,
    /// `Rᵀ Λ R`.
    eigenvalue: Real,
}

/// Eigenmodes and drawn modes.
#[derive(Clone, Debug)]
pub struct Space<const D: usize> {
    basis: Arc<Basis<D>>,
    /// 1 for eigenmodes that belong to the space, 0 for others.
    kept: Vec<Real>,
    /// Whether all eigenmodes of the basis belong to it.
    whole: bool,
    drawn: Vec<DrawnMode>,
    columns: Vec<Column>,
}

impl<const D: usize> Space<D> {
    /// All eigenmodes of a basis.
    pub fn whole(basis: Arc<Basis<D>>) -> Self {
        let modes = basis.modes();
        Space::smallest(basis, modes)
    }

    /// The `count` eigenmodes with the smallest eigenvalues. The rest of the basis is there to hold drawn modes.
    pub fn smallest(basis: Arc<Basis<D>>, count: usize) -> Self {
        let (kept, whole) = (basis.smallest(count), count >= basis.modes());
        Space { basis, kept, whole, drawn: Vec::new(), columns: Vec::new() }
    }

    /// The modes that there are.
    pub fn basis(&self) -> &Basis<D> {
        &self.basis
    }

    /// The drawn modes, in the order in which they came.
    pub fn drawn(&self) -> &[DrawnMode] {
        &self.drawn
    }

    /// Dimensions of the space: eigenmodes kept, and what drawn modes add to them.
    pub fn dimensions(&self) -> [usize; 2] {
        let kept = self.kept.iter().filter(|&&kept| kept > 0.0).count();
        [kept, self.columns.len()]
    }

    /// Makes a divergence-free flow along the walls of a stroke.
    pub fn field_of(&self, stroke: &Stroke<D>) -> Result<DrawnMode, StrokeError> {
        let finite = |x: &Vector<D>| x.iter().all(|x| x.is_finite());
        if !stroke.points.iter().all(finite) || !stroke.radius.is_finite() {
            return Err(StrokeError::NonFinite);
        }
        if stroke.radius <= 0.0 {
            return Err(StrokeError::Radius(stroke.radius));
        }
        let (basis, mut waves) = (&*self.basis, WavesAt::default());
        let mut field = vec![0.0; basis.len()];
        for ends in stroke.points.windows(2) {
            let along = ends[1] - ends[0];
            // Points closer than the Gaussian's radius add up to an even line; one that leaves the box goes on as its
            // mirror image would, but a line of ten thousand points is enough for any.
            let pieces = (2.0 * along.norm() / stroke.radius).ceil().clamp(1.0, 1e4);
            for piece in 0..pieces as usize {
                let x = ends[0] + along * ((piece as Real + 0.5) / pieces);
                basis.waves_at(x, &mut waves);
                basis.add_impulse(&mut field, &mut waves, along / pieces, stroke.radius);
            }
        }
        self.mode_of(field)
    }

    /// Makes a mode of the coefficients of a flow, such as a moment of a fluid.
    pub fn mode_of(&self, mut field: Vec<Real>) -> Result<DrawnMode, StrokeError> {
        let norm = dot(&field, &field).sqrt();
        if !norm.is_finite() {
            return Err(StrokeError::NonFinite);
        }
        if norm < Real::MIN_POSITIVE.sqrt() {
            return Err(StrokeError::Nothing);
        }
        field.iter_mut().for_each(|value| *value /= norm);
        let mut scratch = BasisScratch::default();
        self.basis.sample_velocity(&field, &mut scratch);
        Ok(DrawnMode { field, peak: scratch.peak_speed() })
    }

    /// Adds a mode to the space.
    pub fn add(&mut self, mode: DrawnMode) {
        assert_eq!(mode.field.len(), self.basis.len(), "a mode of this basis");
        self.drawn.push(mode);
        self.orthogonalise();
    }

    /// Adds fields that were drawn modes when they were saved.
    pub(super) fn restore(&mut self, fields: Vec<Vec<Real>>) {
        let mut scratch = BasisScratch::default();
        for field in fields {
            self.basis.sample_velocity(&field, &mut scratch);
            self.drawn.push(DrawnMode { field, peak: scratch.peak_speed() });
        }
        self.orthogonalise();
    }

    /// Takes a drawn mode out of the space again.
    pub fn remove(&mut self, number: usize) -> DrawnMode {
        let mode = self.drawn.remove(number);
        self.orthogonalise();
        mode
    }

    fn orthogonalise(&mut self) {
        self.columns.clear();
        if self.drawn.is_empty() {
            return;
        }
        let remainders: Vec<Vec<Real>> = self
            .drawn
            .iter()
            .map(|mode| mode.field.iter().zip(&self.kept).map(|(value, kept)| value * (1.0 - kept)).collect())
            .collect();
        let count = remainders.len();
        let gram = DMatrix::from_fn(count, count, |i, j| dot(&remainders[i], &remainders[j]));
        let combine = |columns: &[Vec<Real>], weights: &dyn Fn(usize) -> Real| {
            let mut sum = vec![0.0; self.basis.len()];
            columns.iter().enumerate().for_each(|(j, column)| add_scaled(&mut sum, weights(j), column));
            sum
        };
        let parts = SymmetricEigen::new(gram);
        let mut orthonormal: Vec<Vec<Real>> = Vec::new();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&i, &j| parts.eigenvalues[j].total_cmp(&parts.eigenvalues[i]).then(i.cmp(&j)));
        for part in order {
            let variance = parts.eigenvalues[part];
            if variance.is_nan() || variance < NEW_SHARE * NEW_SHARE {
                continue;
            }
            let mut column = combine(&remainders, &|j| parts.eigenvectors[(j, part)]);
            // The Gram matrix squares what rounding leaves; Gram and Schmidt take it out, twice.
            for _ in 0..2 {
                for other in &orthonormal {
                    let share = dot(other, &column);
                    add_scaled(&mut column, -share, other);
                }
                let norm = dot(&column, &column).sqrt();
                column.iter_mut().for_each(|value| *value /= norm);
            }
            orthonormal.push(column);
        }
        let count = orthonormal.len();
        if count == 0 {
            return;
        }
        let mut weighted = vec![0.0; self.basis.len()];
        let stiffness = DMatrix::from_fn(count, count, |i, j| {
            let eigenvalues = self.basis.eigenvalues();
            let directions = weighted.chunks_exact_mut(eigenvalues.len());
            for (weighted, column) in directions.zip(orthonormal[j].chunks_exact(eigenvalues.len())) {
                set_product(weighted, eigenvalues, column);
            }
            dot(&orthonormal[i], &weighted)
        });
        let parts = SymmetricEigen::new((&stiffness + stiffness.transpose()) * 0.5);
        self.columns = (0..count)
            .map(|part| Column {
                values: combine(&orthonormal, &|j| parts.eigenvectors[(j, part)]),
                eigenvalue: parts.eigenvalues[part],
            })
            .collect();
    }

    /// Takes everything out of amplitudes that lies outside of the space.
    pub fn project(&self, amplitudes: &mut [Real]) {
        if !self.whole {
            self.split(amplitudes, |_| (), |_| 1.0);
        }
    }

    /// Damps amplitudes by viscosity for `s = ν t` m².
    pub fn diffuse(&self, amplitudes: &mut [Real], s: Real) {
        let damp = |column: &Column| (-column.eigenvalue * s).exp();
        self.split(amplitudes, |amplitudes| self.basis.diffuse(amplitudes, s), damp);
    }

    /// Changes the share of the eigenmodes by `eigenmodes`, that of each column by a factor.
    fn split(
        &self,
        amplitudes: &mut [Real],
        eigenmodes: impl Fn(&mut [Real]),
        factor: impl Fn(&Column) -> Real,
    ) {
        // Columns are zero where eigenmodes are kept, so the shares tell nothing of those.
        let shares: Vec<Real> = self.columns.iter().map(|column| dot(&column.values, amplitudes)).collect();
        if !self.whole {
            amplitudes.iter_mut().zip(&self.kept).for_each(|(amplitude, kept)| *amplitude *= kept);
        }
        eigenmodes(amplitudes);
        for (column, share) in self.columns.iter().zip(shares) {
            add_scaled(amplitudes, factor(column) * share, &column.values);
        }
    }
}
