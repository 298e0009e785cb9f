//! Sine and cosine transforms as products of small dense matrices, each of half size.
//!
//! A coefficient belongs to a wave number `k` along every axis, a sample to one of `M` midpoints `(i + ½) L / M`. Mirrored
//! about the middle of the box, waves of even `k` and those of odd `k` are symmetric or antisymmetric; so one product with
//! half of the points and half of the waves gives each, and their sum and difference are the two halves of the result.
//!
//! Both kinds of data are kept in an order that leaves nothing to be sorted: along every axis first even wave numbers,
//! then odd ones; first the points of the low half from the wall inwards, then those of the high half likewise.

use macro_rules_attribute::apply;

use crate::math::{Real, simd};

/// Columns of a tile of a product: a vector of doubles on processors that have the widest ones.
const COLUMNS: usize = 8;

/// Rows of a tile of a product.
const ROWS: usize = 4;

/// What a wave is along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wave {
    /// `sin(k π x / L)`.
    Sine,
    /// `cos(k π x / L)`.
    Cosine,
}

/// Waves and sample points of one axis.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Even wave numbers, as many as odd ones; some at the end are padding.
    pub half_waves: usize,
    /// Points in half of the box.
    pub half_points: usize,
    sine: Tables,
    cosine: Tables,
}

/// Values of waves at the points of the low half.
#[derive(Clone, Debug)]
struct Tables {
    /// Waves of a point after each other.
    by_point: Vec<Real>,
    /// Points of a wave after each other.
    by_wave: Vec<Real>,
}

impl Line {
    /// Waves 0 to `highest`, at no fewer than `points` points; both are rounded up so that products need no remainders.
    pub fn new(highest: usize, points: usize, last: bool) -> Self {
        let step = if last { COLUMNS } else { ROWS };
        let half_waves = (highest + 1).div_ceil(2).next_multiple_of(step);
        let half_points = points.div_ceil(2).next_multiple_of(step);
        let angle = std::f64::consts::PI / (4 * half_points) as Real;
        // All angles are multiples of `angle`; whole turns are taken off before there is anything to round.
        let turn = 8 * half_points;
        let tables = |wave: fn(Real) -> Real| {
            let mut tables = Tables {
                by_point: vec![0.0; 2 * half_waves * half_points],
                by_wave: vec![0.0; 2 * half_waves * half_points],
            };
            for k in 0..=highest {
                let place = place(k, half_waves);
                for point in 0..half_points {
                    let value = wave((k * (2 * point + 1) % turn) as Real * angle);
                    tables.by_point[point * 2 * half_waves + place] = value;
                    tables.by_wave[place * half_points + point] = value;
                }
            }
            tables
        };
        Line { half_waves, half_points, sine: tables(Real::sin), cosine: tables(Real::cos) }
    }

    /// Coefficients along this axis, with padding.
    pub fn waves(&self) -> usize {
        2 * self.half_waves
    }

    /// Sample points along this axis.
    pub fn points(&self) -> usize {
        2 * self.half_points
    }

    /// The place of a wave number among the coefficients.
    pub fn place(&self, k: usize) -> usize {
        place(k, self.half_waves)
    }

    /// The wave number at a place among the coefficients; may be padding.
    pub fn wave_at(&self, place: usize) -> usize {
        2 * (place % self.half_waves) + place / self.half_waves
    }

    /// The point, counted from the low wall, at a place among the samples.
    pub fn point_at(&self, place: usize) -> usize {
        if place < self.half_points { place } else { 3 * self.half_points - 1 - place }
    }

    /// The place among the samples of a point counted from the low wall.
    pub fn place_of(&self, point: usize) -> usize {
        if point < self.half_points { point } else { 3 * self.half_points - 1 - point }
    }

    fn tables(&self, wave: Wave) -> &Tables {
        match wave {
            Wave::Sine => &self.sine,
            Wave::Cosine => &self.cosine,
        }
    }
}

fn place(k: usize, half_waves: usize) -> usize {
    k / 2 + k % 2 * half_waves
}

/// Memory for intermediate results.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    buffers: [Vec<Real>; 2],
}

/// Samples of a field from its coefficients.
pub(super) fn synthesise<const D: usize>(
    lines: &[Line; D],
    waves: [Wave; D],
    coefficients: &[Real],
    samples: &mut [Real],
    workspace: &mut Workspace,
) {
    let [mut source, mut target] = std::mem::take(&mut workspace.buffers);
    for axis in 0..D {
        let line = &lines[axis];
        let tables = line.tables(waves[axis]);
        let (half_waves, half_points) = (line.half_waves, line.half_points);
        let outer: usize = lines[..axis].iter().map(Line::points).product();
        let inner: usize = lines[axis + 1..].iter().map(Line::waves).product();
        let (small, large) = (line.waves() * inner, line.points() * inner);
        let from: &[Real] = if axis == 0 { coefficients } else { &source };
        let to: &mut [Real] = if axis == D - 1 {
            &mut *samples
        } else {
            target.resize(outer * large, 0.0);
            &mut target
        };
        let mirror = match waves[axis] {
            Wave::Sine => -1.0,
            Wave::Cosine => 1.0,
        };
        let (depth, result) = (half_waves, Place { row: inner, odd: half_points * inner });
        if axis == D - 1 {
            let left = Operand { values: from, row: small, odd: half_waves, even: 0 };
            let right =
                Operand { values: &tables.by_wave, row: half_points, odd: half_waves * half_points, even: 0 };
            let result = Place { row: large, odd: half_points };
            multiply(left, right, [outer, depth, half_points], Some(mirror), to, result);
        } else {
            let left = Operand { values: &tables.by_point, row: 2 * half_waves, odd: half_waves, even: 0 };
            for (from, to) in from.chunks_exact(small).zip(to.chunks_exact_mut(large)) {
                let right = Operand { values: from, row: inner, odd: half_waves * inner, even: 0 };
                multiply(left, right, [half_points, depth, inner], Some(mirror), to, result);
            }
        }
        std::mem::swap(&mut source, &mut target);
    }
    workspace.buffers = [source, target];
}

/// Sums of samples times waves: the transpose of [`synthesise`]. The samples are overwritten.
pub(super) fn analyse<const D: usize>(
    lines: &[Line; D],
    waves: [Wave; D],
    samples: &mut [Real],
    coefficients: &mut [Real],
    workspace: &mut Workspace,
) {
    let [mut source, mut target] = std::mem::take(&mut workspace.buffers);
    for axis in (0..D).rev() {
        let line = &lines[axis];
        let tables = line.tables(waves[axis]);
        let (half_waves, half_points) = (line.half_waves, line.half_points);
        let outer: usize = lines[..axis].iter().map(Line::points).product();
        let inner: usize = lines[axis + 1..].iter().map(Line::waves).product();
        let (small, large) = (line.waves() * inner, line.points() * inner);
        let from: &mut [Real] = if axis == D - 1 { &mut *samples } else { &mut source };
        fold(&mut from[..outer * large], half_points * inner);
        let from: &[Real] = from;
        let to: &mut [Real] = if axis == 0 {
            &mut *coefficients
        } else {
            target.resize(outer * small, 0.0);
            &mut target
        };
        // Even waves meet the sum of both halves if they are cosines, their difference if they are sines.
        let (even, odd) = match waves[axis] {
            Wave::Cosine => (0, half_points * inner),
            Wave::Sine => (half_points * inner, 0),
        };
        let (depth, result) = (half_points, Place { row: inner, odd: half_waves * inner });
        if axis == D - 1 {
            let left = Operand { values: from, row: large, even, odd };
            let right = Operand { values: &tables.by_point, row: small, even: 0, odd: half_waves };
            let result = Place { row: small, odd: half_waves };
            multiply(left, right, [outer, depth, half_waves], None, to, result);
        } else {
            let odd_waves = half_waves * half_points;
            let left = Operand { values: &tables.by_wave, row: half_points, even: 0, odd: odd_waves };
            for (from, to) in from.chunks_exact(large).zip(to.chunks_exact_mut(small)) {
                let right = Operand { values: from, row: inner, even, odd };
                multiply(left, right, [half_waves, depth, inner], None, to, result);
            }
        }
        std::mem::swap(&mut source, &mut target);
    }
    workspace.buffers = [source, target];
}

/// Puts the sum of both halves of every line into the low half, the difference into the high half.
#[apply(simd)]
fn fold(samples: &mut [Real], half: usize) {
    for line in samples.chunks_exact_mut(2 * half) {
        let (low, high) = line.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            (*low, *high) = (*low + *high, *low - *high);
        }
    }
}

/// Two matrices in one list: one for even waves and one for odd ones.
#[derive(Clone, Copy)]
struct Operand<'a> {
    values: &'a [Real],
    /// From one row to the next.
    row: usize,
    /// Where the matrix of even waves starts.
    even: usize,
    /// Where the matrix of odd waves starts.
    odd: usize,
}

/// Where the results of a product go.
#[derive(Clone, Copy)]
struct Place {
    /// From one row to the next.
    row: usize,
    /// From the first result, or the sum, to the second, or the difference.
    odd: usize,
}

/// The products `left · right` of even and of odd waves, each `[rows, depth, columns]`; with `mirror`, their sum and
/// `mirror` times their difference in place of them. Rows are a multiple of [`ROWS`], columns of [`COLUMNS`].
#[apply(simd)]
fn multiply(
    left: Operand<'_>,
    right: Operand<'_>,
    extent: [usize; 3],
    mirror: Option<Real>,
    to: &mut [Real],
    place: Place,
) {
    let [rows, depth, columns] = extent;
    assert!(rows.is_multiple_of(ROWS) && columns.is_multiple_of(COLUMNS), "{rows} rows, {columns} columns");
    for row in (0..rows).step_by(ROWS) {
        let row_of = |start: usize, r: usize| &left.values[start + (row + r) * left.row..][..depth];
        let evens: [&[Real]; ROWS] = std::array::from_fn(|r| row_of(left.even, r));
        let odds: [&[Real]; ROWS] = std::array::from_fn(|r| row_of(left.odd, r));
        for column in (0..columns).step_by(COLUMNS) {
            let (mut even, mut odd) = ([[0.0; COLUMNS]; ROWS], [[0.0; COLUMNS]; ROWS]);
            for k in 0..depth {
                let vector = |start: usize| -> &[Real; COLUMNS] {
                    right.values[start + k * right.row + column..][..COLUMNS].try_into().expect("its length")
                };
                let (even_vector, odd_vector) = (vector(right.even), vector(right.odd));
                for r in 0..ROWS {
                    let (even_factor, odd_factor) = (evens[r][k], odds[r][k]);
                    for c in 0..COLUMNS {
                        even[r][c] += even_factor * even_vector[c];
                        odd[r][c] += odd_factor * odd_vector[c];
                    }
                }
            }
            for r in 0..ROWS {
                let start = (row + r) * place.row + column;
                if let Some(mirror) = mirror {
                    for c in 0..COLUMNS {
                        (even[r][c], odd[r][c]) = (even[r][c] + odd[r][c], mirror * (even[r][c] - odd[r][c]));
                    }
                }
                to[start..][..COLUMNS].copy_from_slice(&even[r]);
                to[start + place.odd..][..COLUMNS].copy_from_slice(&odd[r]);
            }
        }
    }
}
