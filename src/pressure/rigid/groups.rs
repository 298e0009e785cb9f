//! Bodies that rows tie together, and what those make of their response.

use nalgebra::{DMatrix, DVector};

use super::{Group, Hold, Member};

/// Sorts bodies into groups that no row ties to each other, in the order of their first bodies.
pub(super) fn group_bodies<'a>(bodies: &[Member], holds: &'a [Hold]) -> Vec<Group<'a>> {
    let place = |solid: usize| bodies.iter().position(|body| body.solid == solid);
    let mut group_of: Vec<usize> = (0..bodies.len()).collect();
    let places =
        |hold: &Hold| -> Vec<usize> { hold.parts.iter().filter_map(|&(solid, _)| place(solid)).collect() };
    for hold in holds {
        let touched = places(hold);
        let Some(least) = touched.iter().map(|&body| group_of[body]).min() else { continue };
        let joined: Vec<usize> = touched.iter().map(|&body| group_of[body]).collect();
        group_of.iter_mut().filter(|group| joined.contains(group)).for_each(|group| *group = least);
    }
    let mut groups: Vec<Group<'a>> = (0..bodies.len()).map(|_| Group::default()).collect();
    for (body, &group) in group_of.iter().enumerate() {
        groups[group].bodies.push(body);
    }
    for hold in holds {
        if let Some(&body) = places(hold).first() {
            groups[group_of[body]].rows.push(hold);
        }
    }
    groups.retain(|group| !group.bodies.is_empty());
    groups
}

/// The rows that tie a group, and what they make of its response.
pub(super) struct Tied {
    /// `N`.
    pub rows: DMatrix<f64>,
    pub targets: DVector<f64>,
    /// `M⁻¹ Nᵀ`.
    pub answers: DMatrix<f64>,
    /// `(N M⁻¹ Nᵀ)⁺`.
    pub inverse: DMatrix<f64>,
    /// `M⁻¹`, of all its bodies.
    pub response: DMatrix<f64>,
    size: usize,
}

/// Combinations of rows that weigh less than this share of the heaviest are repetitions of others: normals of one contact seen from
/// both of its bodies differ by hundredths of a degree, and to obey both would throw the bodies sideways.
const LEAST_ROW: f64 = 1e-4;

impl Tied {
    pub fn new(group: &Group<'_>, bodies: &[Member], size: usize) -> Self {
        let all = group.bodies.len() * size;
        let mut response = DMatrix::zeros(all, all);
        for (place, &body) in group.bodies.iter().enumerate() {
            response.view_mut((place * size, place * size), (size, size)).copy_from(&bodies[body].response);
        }
        let mut rows = DMatrix::zeros(group.rows.len(), all);
        for (row, hold) in group.rows.iter().enumerate() {
            for (solid, part) in &hold.parts {
                let place = group.bodies.iter().position(|&body| bodies[body].solid == *solid);
                let Some(place) = place else { continue };
                (0..size).for_each(|k| rows[(row, place * size + k)] += part[k]);
            }
        }
        let targets = DVector::from_iterator(group.rows.len(), group.rows.iter().map(|hold| hold.target));
        let answers = &response * rows.transpose();
        let inverse = pseudo_inverse(&(&rows * &answers));
        Tied { rows, targets, answers, inverse, response, size }
    }

    /// `K`.
    pub fn response(&self) -> DMatrix<f64> {
        let taken = &self.answers * &self.inverse * self.answers.transpose();
        let held = &self.response - taken;
        (&held + held.transpose()) * 0.5
    }

    pub fn gather(
        &self,
        group: &Group<'_>,
        bodies: &[Member],
        of: &dyn Fn(&Member) -> DVector<f64>,
    ) -> DVector<f64> {
        let mut all = DVector::zeros(group.bodies.len() * self.size);
        for (place, &body) in group.bodies.iter().enumerate() {
            all.rows_mut(place * self.size, self.size).copy_from(&of(&bodies[body]));
        }
        all
    }
}

/// Of a symmetric positive semi-definite matrix.
fn pseudo_inverse(matrix: &DMatrix<f64>) -> DMatrix<f64> {
    let size = matrix.nrows();
    if size == 0 {
        // A body that nothing touches has no rows.
        return DMatrix::zeros(0, 0);
    }
    let scale: Vec<f64> =
        (0..size).map(|k| if matrix[(k, k)] > 0.0 { 1.0 / matrix[(k, k)].sqrt() } else { 0.0 }).collect();
    let scaled =
        DMatrix::from_fn(size, size, |i, j| 0.5 * (matrix[(i, j)] + matrix[(j, i)]) * scale[i] * scale[j]);
    let eigen = scaled.symmetric_eigen();
    let largest = eigen.eigenvalues.iter().copied().fold(0.0, f64::max);
    let mut inverse = DMatrix::zeros(size, size);
    for (k, &value) in eigen.eigenvalues.iter().enumerate().filter(|(_, value)| **value > LEAST_ROW * largest)
    {
        let vector = DVector::from_fn(size, |i, _| eigen.eigenvectors[(i, k)] * scale[i]);
        inverse += &vector * vector.transpose() / value;
    }
    inverse
}
