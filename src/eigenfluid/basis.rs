//! The modes of a box of fluid, and what advection does to their amplitudes.
//!
//! A mode is a product of sines and cosines, divergence-free and tangential at every wall by its form:
//!
//! ```text
//! φ_d(x) = N e_d sin(k_d x_d) Π_{j≠d} cos(k_j x_j),   k_j = π n_j / L_j,   e · k = 0,   |e| = 1,   ∫ φ·φ' = δ
//! ```
//!
//! For a vector of wave numbers there are `D − 1` such directions `e`, less where a wave number is zero: one in two
//! dimensions, where `φ` is the curl of `ψ = (N/|k|) sin(k_1 x_1) sin(k_2 x_2)`. All modes of one `|k|²` are
//! eigenfunctions of the Laplacian with that eigenvalue, and together a steady flow.
//!
//! With `u = Σ r φ`, Euler's equation in the space of the modes is `dr/dt = ∫ ∇φ : u uᵀ`. Products of two velocities have
//! up to twice the wave numbers; on midpoints that are more than one and a half times as many as the highest wave number,
//! what aliases stays out of the modes, and the quadrature is exact. So the result is that of the tensor of all triple
//! products, without the tensor. It conserves energy, and what else the tensor conserves.

use std::f64::consts::PI;

use macro_rules_attribute::apply;

use super::transform::{Line, Wave, Workspace, analyse, synthesise};
use crate::math::{Real, Vector, simd};

/// The modes of a box `[0, L]`, up to a highest wave number along each axis.
///
/// Amplitudes are lists of [`Basis::len`] numbers in an order of their own; some belong to no mode and stay zero.
#[derive(Clone, Debug)]
pub struct Basis<const D: usize> {
    size: [Real; D],
    highest: [usize; D],
    lines: [Line; D],
    /// `π n / L` at the place of every coefficient along an axis.
    waves: [Vec<Real>; D],
    /// Per coefficient.
    eigenvalues: Vec<Real>,
    /// `N e` by direction and component, for every coefficient.
    directions: Vec<[Vec<Real>; D]>,
    /// What a product of velocities does to an amplitude, by direction and product, for every coefficient.
    fluxes: Vec<Vec<Vec<Real>>>,
    /// The vorticity of an amplitude by direction and pair of axes, for every coefficient.
    curls: Vec<Vec<Vec<Real>>>,
    modes: usize,
}

/// A product of two components of the velocity, as far as it matters: the trace of `u uᵀ` is a pressure.
#[derive(Clone, Copy)]
enum Product {
    /// `u_i² − u_l²` with the last component `l`.
    Normal(usize),
    /// `u_i u_j`.
    Shear(usize, usize),
}

fn products<const D: usize>() -> impl Iterator<Item = Product> {
    let normal = (0..D - 1).map(Product::Normal);
    normal.chain(planes::<D>().map(|(i, j)| Product::Shear(i, j)))
}

/// Pairs of different axes.
fn planes<const D: usize>() -> impl Iterator<Item = (usize, usize)> {
    (0..D).flat_map(|i| (i + 1..D).map(move |j| (i, j)))
}

/// Memory for [`Basis::advect`] and [`Basis::sample_velocity`].
#[derive(Clone, Debug, Default)]
pub struct BasisScratch<const D: usize> {
    coefficients: Vec<Real>,
    velocity: Vec<Vec<Real>>,
    force: Vec<Vec<Real>>,
    product: Vec<Real>,
    workspace: Workspace,
}

/// Sines and cosines of all waves at a place.
#[derive(Clone, Debug)]
pub struct WavesAt<const D: usize> {
    pub(super) sine: [Vec<Real>; D],
    pub(super) cosine: [Vec<Real>; D],
}

impl<const D: usize> Default for WavesAt<D> {
    fn default() -> Self {
        WavesAt { sine: [const { Vec::new() }; D], cosine: [const { Vec::new() }; D] }
    }
}

/// Sample points that a product of two velocities needs along an axis: more than 3/2 of the highest wave number.
fn points_for(highest: usize) -> usize {
    3 * highest / 2 + 1
}

impl<const D: usize> Basis<D> {
    /// All modes of a box of `size` metres up to the wave numbers `highest`, at least 1 each.
    pub fn new(size: [Real; D], highest: [usize; D]) -> Self {
        let lines = std::array::from_fn(|axis| {
            Line::new(highest[axis].max(1), points_for(highest[axis].max(1)), axis == D - 1)
        });
        Basis::on(size, highest.map(|n| n.max(1)), lines)
    }

    fn on(size: [Real; D], highest: [usize; D], lines: [Line; D]) -> Self {
        assert!(size.iter().all(|&length| length > 0.0 && length.is_finite()), "a box has a size: {size:?}");
        let count: usize = lines.iter().map(Line::waves).product();
        let points: usize = lines.iter().map(Line::points).product();
        let volume: Real = size.iter().product();
        let waves = std::array::from_fn(|axis| {
            let line = &lines[axis];
            (0..line.waves()).map(|place| line.wave_at(place) as Real * PI / size[axis]).collect()
        });
        let mut basis = Basis {
            size,
            highest,
            lines,
            waves,
            eigenvalues: vec![0.0; count],
            directions: vec![std::array::from_fn(|_| vec![0.0; count]); D - 1],
            fluxes: vec![vec![vec![0.0; count]; products::<D>().count()]; D - 1],
            curls: vec![vec![vec![0.0; count]; planes::<D>().count()]; D - 1],
            modes: 0,
        };
        for at in 0..count {
            let numbers = basis.numbers_of(at);
            if (0..D).any(|axis| numbers[axis] > highest[axis]) {
                continue;
            }
            let wave: [Real; D] = std::array::from_fn(|axis| numbers[axis] as Real * PI / size[axis]);
            basis.eigenvalues[at] = wave.iter().map(|k| k * k).sum();
            let nonzero = numbers.iter().filter(|&&n| n > 0).count();
            let norm = ((1u32 << nonzero) as Real / volume).sqrt();
            let cell = volume / points as Real;
            for (which, e) in polarisations(wave).into_iter().enumerate() {
                let Some(e) = e else { continue };
                basis.modes += 1;
                for d in 0..D {
                    basis.directions[which][d][at] = norm * e[d];
                }
                for (curl, (i, j)) in basis.curls[which].iter_mut().zip(planes::<D>()) {
                    curl[at] = norm * (e[i] * wave[j] - e[j] * wave[i]);
                }
                for (flux, product) in basis.fluxes[which].iter_mut().zip(products::<D>()) {
                    flux[at] = norm
                        * cell
                        * match product {
                            Product::Normal(i) => e[i] * wave[i],
                            Product::Shear(i, j) => -(e[i] * wave[j] + e[j] * wave[i]),
                        };
                }
            }
        }
        basis
    }

    /// Extent of the box in metres.
    pub fn size(&self) -> [Real; D] {
        self.size
    }

    /// The highest wave number along each axis.
    pub fn highest(&self) -> [usize; D] {
        self.highest
    }

    /// Numbers in a list of amplitudes.
    pub fn len(&self) -> usize {
        (D - 1) * self.eigenvalues.len()
    }

    /// Whether there is no mode at all; there always is one.
    pub fn is_empty(&self) -> bool {
        self.modes == 0
    }

    /// How many modes there are.
    pub fn modes(&self) -> usize {
        self.modes
    }

    /// Wave numbers of an amplitude.
    pub fn numbers(&self, index: usize) -> [usize; D] {
        self.numbers_of(index % self.eigenvalues.len())
    }

    fn numbers_of(&self, mut at: usize) -> [usize; D] {
        let mut numbers = [0; D];
        for axis in (0..D).rev() {
            let line = &self.lines[axis];
            numbers[axis] = line.wave_at(at % line.waves());
            at /= line.waves();
        }
        numbers
    }

    /// Where the amplitude of a mode is: its wave numbers, and which of the directions that they have. `None` if there is
    /// no such mode.
    pub fn index(&self, numbers: [usize; D], direction: usize) -> Option<usize> {
        if direction >= D - 1 || (0..D).any(|axis| numbers[axis] > self.highest[axis]) {
            return None;
        }
        let at =
            (0..D).fold(0, |at, axis| at * self.lines[axis].waves() + self.lines[axis].place(numbers[axis]));
        let index = direction * self.eigenvalues.len() + at;
        self.is_mode(index).then_some(index)
    }

    /// Whether an amplitude belongs to a mode.
    pub fn is_mode(&self, index: usize) -> bool {
        let (which, at) = (index / self.eigenvalues.len(), index % self.eigenvalues.len());
        self.directions[which].iter().any(|component| component[at] != 0.0)
    }

    /// The eigenvalue of −Δ that an amplitude's mode has, 1/m².
    pub fn eigenvalue(&self, index: usize) -> Real {
        self.eigenvalues[index % self.eigenvalues.len()]
    }

    /// Eigenvalues of −Δ by coefficient, the same for all directions; 0 for what is no mode.
    pub(super) fn eigenvalues(&self) -> &[Real] {
        &self.eigenvalues
    }

    /// Amplitudes of the `count` modes with the smallest eigenvalues are 1, all others 0. Of equal ones those with a
    /// smaller first wave number come first.
    pub fn smallest(&self, count: usize) -> Vec<Real> {
        let mut order: Vec<usize> = (0..self.len()).filter(|&index| self.is_mode(index)).collect();
        // Equal sums of squares differ by rounding.
        let key = |index: usize| (self.eigenvalue(index) * (1.0 + 1e-12)) as f32;
        order.sort_by(|&a, &b| {
            let wave = key(a).total_cmp(&key(b));
            wave.then_with(|| self.numbers(a).cmp(&self.numbers(b))).then(a.cmp(&b))
        });
        let mut mask = vec![0.0; self.len()];
        order.iter().take(count).for_each(|&index| mask[index] = 1.0);
        mask
    }

    /// Sines and cosines of all waves at `x`.
    pub fn waves_at(&self, x: Vector<D>, waves: &mut WavesAt<D>) {
        for axis in 0..D {
            let line = &self.lines[axis];
            // From the wall that is nearer, where sines then are exactly zero.
            let far = x[axis] > 0.5 * self.size[axis];
            let distance = if far { self.size[axis] - x[axis] } else { x[axis] };
            let theta = PI * distance / self.size[axis];
            let (sine, cosine) = (&mut waves.sine[axis], &mut waves.cosine[axis]);
            sine.resize(line.waves(), 0.0);
            cosine.resize(line.waves(), 0.0);
            let (first_sine, first_cosine) = theta.sin_cos();
            let (mut now, mut before) = ((0.0, 1.0), (-first_sine, first_cosine));
            for k in 0..=self.highest[axis] {
                let place = line.place(k);
                (sine[place], cosine[place]) = match far {
                    true if k % 2 == 0 => (-now.0, now.1),
                    true => (now.0, -now.1),
                    false => now,
                };
                // Chebyshev's recurrence.
                let next = (2.0 * first_cosine * now.0 - before.0, 2.0 * first_cosine * now.1 - before.1);
                (before, now) = (now, next);
            }
        }
    }

    /// The velocity at the place that `waves` were made for, m/s.
    pub fn velocity_at(&self, amplitudes: &[Real], waves: &WavesAt<D>) -> Vector<D> {
        let mut velocity = Vector::zeros();
        self.visit(waves, |at, values| {
            for d in 0..D {
                for (which, amplitudes) in self.by_direction(amplitudes).enumerate() {
                    velocity[d] += self.directions[which][d][at] * amplitudes[at] * values[d];
                }
            }
        });
        velocity
    }

    /// Adds to amplitudes a force or an impulse at the place that `waves` were made for, spread by a Gaussian of radius
    /// `width` metres: `∫ φ · F δ`, after the heat equation with reflecting walls has smoothed it. An impulse is per
    /// density of the fluid, in m^D · m/s.
    pub fn add_impulse(
        &self,
        amplitudes: &mut [Real],
        waves: &mut WavesAt<D>,
        impulse: Vector<D>,
        width: Real,
    ) {
        for axis in 0..D {
            for (place, &wave) in self.waves[axis].iter().enumerate() {
                let smooth = (-0.5 * (wave * width).powi(2)).exp();
                waves.sine[axis][place] *= smooth;
                waves.cosine[axis][place] *= smooth;
            }
        }
        let count = self.eigenvalues.len();
        self.visit(waves, |at, values| {
            for which in 0..D - 1 {
                for d in 0..D {
                    amplitudes[which * count + at] += self.directions[which][d][at] * impulse[d] * values[d];
                }
            }
        });
    }

    /// The amplitudes closest to a field of velocities, such as a moment of another simulation: by its values at the sample
    /// points, exact for what the modes can hold.
    pub fn project(&self, field: impl Fn(Vector<D>) -> Vector<D>) -> Vec<Real> {
        let points: usize = self.samples().iter().product();
        let (mut samples, mut workspace) = (vec![vec![0.0; points]; D], Workspace::default());
        let cell = self.size.iter().product::<Real>() / points as Real;
        for point in 0..points {
            let value = field(self.sample_place(point));
            samples.iter_mut().enumerate().for_each(|(d, samples)| samples[point] = cell * value[d]);
        }
        let mut amplitudes = vec![0.0; self.len()];
        let mut coefficients = vec![0.0; self.eigenvalues.len()];
        for (d, samples) in samples.iter_mut().enumerate() {
            let waves = std::array::from_fn(|axis| if axis == d { Wave::Sine } else { Wave::Cosine });
            analyse(&self.lines, waves, samples, &mut coefficients, &mut workspace);
            for (which, amplitudes) in amplitudes.chunks_exact_mut(coefficients.len()).enumerate() {
                add_product(amplitudes, &self.directions[which][d], &coefficients);
            }
        }
        amplitudes
    }

    /// Calls `each` with every coefficient and the waves of the components there.
    fn visit(&self, waves: &WavesAt<D>, mut each: impl FnMut(usize, [Real; D])) {
        let last = self.lines[D - 1].waves();
        for row in 0..self.eigenvalues.len() / last {
            let (mut prefix, mut rest) = ([1.0; D], row);
            for axis in (0..D - 1).rev() {
                let place = rest % self.lines[axis].waves();
                rest /= self.lines[axis].waves();
                for d in 0..D {
                    prefix[d] *= if d == axis { waves.sine[axis][place] } else { waves.cosine[axis][place] };
                }
            }
            for place in 0..last {
                let (sine, cosine) = (waves.sine[D - 1][place], waves.cosine[D - 1][place]);
                let values = std::array::from_fn(|d| prefix[d] * if d == D - 1 { sine } else { cosine });
                each(row * last + place, values);
            }
        }
    }

    fn by_direction<'a>(&self, amplitudes: &'a [Real]) -> impl Iterator<Item = &'a [Real]> {
        amplitudes.chunks_exact(self.eigenvalues.len())
    }

    /// Multiplies every amplitude by `exp(−λ s)`: the heat equation for `s = ν t` m².
    pub fn diffuse(&self, amplitudes: &mut [Real], s: Real) {
        let factors: [Vec<Real>; D] =
            self.waves.each_ref().map(|waves| waves.iter().map(|k| (-s * k * k).exp()).collect());
        let last = self.lines[D - 1].waves();
        let rows = self.eigenvalues.len() / last;
        for (number, row) in amplitudes.chunks_exact_mut(last).enumerate() {
            let (mut prefix, mut rest) = (1.0, number % rows);
            for axis in (0..D - 1).rev() {
                prefix *= factors[axis][rest % self.lines[axis].waves()];
                rest /= self.lines[axis].waves();
            }
            row.iter_mut().zip(&factors[D - 1]).for_each(|(amplitude, factor)| *amplitude *= prefix * factor);
        }
    }

    /// Sample points along each axis.
    pub fn samples(&self) -> [usize; D] {
        self.lines.each_ref().map(Line::points)
    }

    /// The place of a sample by its index among those of [`BasisScratch::velocity`].
    pub fn sample_place(&self, mut index: usize) -> Vector<D> {
        let mut place = Vector::zeros();
        for axis in (0..D).rev() {
            let line = &self.lines[axis];
            let point = line.point_at(index % line.points());
            place[axis] = (point as Real + 0.5) * self.size[axis] / line.points() as Real;
            index /= line.points();
        }
        place
    }

    /// The velocity at all sample points.
    pub fn sample_velocity(&self, amplitudes: &[Real], scratch: &mut BasisScratch<D>) {
        self.sample_on(&self.lines, amplitudes, scratch);
    }

    /// The velocity at the points of lines with the same waves.
    pub(super) fn sample_on(&self, lines: &[Line; D], amplitudes: &[Real], scratch: &mut BasisScratch<D>) {
        let points: usize = lines.iter().map(Line::points).product();
        scratch.velocity.resize(D, Vec::new());
        scratch.coefficients.resize(self.eigenvalues.len(), 0.0);
        for d in 0..D {
            let coefficients = &mut scratch.coefficients;
            for (which, amplitudes) in self.by_direction(amplitudes).enumerate() {
                let direction = &self.directions[which][d];
                match which {
                    0 => set_product(coefficients, direction, amplitudes),
                    _ => add_product(coefficients, direction, amplitudes),
                }
            }
            scratch.velocity[d].resize(points, 0.0);
            let waves = std::array::from_fn(|axis| if axis == d { Wave::Sine } else { Wave::Cosine });
            synthesise(lines, waves, coefficients, &mut scratch.velocity[d], &mut scratch.workspace);
        }
    }

    /// What advection does to amplitudes, per second. Leaves the velocity at the sample points in `scratch`.
    pub fn advect(&self, amplitudes: &[Real], rates: &mut [Real], scratch: &mut BasisScratch<D>) {
        self.sample_velocity(amplitudes, scratch);
        let BasisScratch { coefficients, velocity, product, workspace, .. } = scratch;
        product.resize(velocity[0].len(), 0.0);
        for (number, kind) in products::<D>().enumerate() {
            match kind {
                Product::Normal(i) => subtract_squares(product, &velocity[i], &velocity[D - 1]),
                Product::Shear(i, j) => set_product(product, &velocity[i], &velocity[j]),
            }
            let waves = std::array::from_fn(|axis| match kind {
                Product::Shear(i, j) if axis == i || axis == j => Wave::Sine,
                _ => Wave::Cosine,
            });
            analyse(&self.lines, waves, product, coefficients, workspace);
            for (which, rates) in rates.chunks_exact_mut(self.eigenvalues.len()).enumerate() {
                let flux = &self.fluxes[which][number];
                match number {
                    0 => set_product(rates, flux, coefficients),
                    _ => add_product(rates, flux, coefficients),
                }
            }
        }
    }
}

impl<const D: usize> Basis<D> {
    /// What the vorticity `ω` of amplitudes that stand still does to others, per second: `∫ φ · (u × ω)`. It turns them and
    /// keeps their energy.
    pub fn turn(
        &self,
        still: &[Real],
        amplitudes: &[Real],
        rates: &mut [Real],
        scratch: &mut BasisScratch<D>,
    ) {
        self.sample_velocity(amplitudes, scratch);
        let BasisScratch { coefficients, velocity, force, product, workspace } = scratch;
        let points = velocity[0].len();
        product.resize(points, 0.0);
        force.resize(D, Vec::new());
        for force in force.iter_mut() {
            force.clear();
            force.resize(points, 0.0);
        }
        for (plane, (i, j)) in planes::<D>().enumerate() {
            coefficients.fill(0.0);
            for (which, still) in self.by_direction(still).enumerate() {
                add_product(coefficients, &self.curls[which][plane], still);
            }
            let waves =
                std::array::from_fn(|axis| if axis == i || axis == j { Wave::Sine } else { Wave::Cosine });
            synthesise(&self.lines, waves, coefficients, product, workspace);
            add_product(&mut force[i], product, &velocity[j]);
            product.iter_mut().for_each(|value| *value = -*value);
            add_product(&mut force[j], product, &velocity[i]);
        }
        let cell = self.size.iter().product::<Real>() / points as Real;
        rates.fill(0.0);
        for (d, force) in force.iter_mut().enumerate() {
            force.iter_mut().for_each(|value| *value *= cell);
            let waves = std::array::from_fn(|axis| if axis == d { Wave::Sine } else { Wave::Cosine });
            analyse(&self.lines, waves, force, coefficients, workspace);
            for (which, rates) in rates.chunks_exact_mut(coefficients.len()).enumerate() {
                add_product(rates, &self.directions[which][d], coefficients);
            }
        }
    }
}

impl Basis<2> {
    /// `N / |k|` by coefficient: what a mode's stream function is multiplied by.
    pub(super) fn stream_norms(&self) -> Vec<Real> {
        let [x, y] = &self.directions[0];
        let norm = |at: usize| x[at].hypot(y[at]) / self.eigenvalues[at].sqrt();
        (0..self.len()).map(|at| if self.is_mode(at) { norm(at) } else { 0.0 }).collect()
    }
}

impl<const D: usize> BasisScratch<D> {
    /// One component of the velocity at the sample points, m/s.
    pub fn velocity(&self, axis: usize) -> &[Real] {
        &self.velocity[axis]
    }

    /// The highest speed at the sample points, m/s.
    pub fn peak_speed(&self) -> Real {
        let points = self.velocity.first().map_or(0, Vec::len);
        let squared = |at: usize| self.velocity.iter().map(|component| component[at].powi(2)).sum::<Real>();
        (0..points).map(squared).fold(0.0, Real::max).sqrt()
    }
}

/// Directions of the modes with a vector of wave numbers: unit vectors across it, without components along axes on which
/// the wave is constant, since there the velocity's own wave is a sine.
fn polarisations<const D: usize>(wave: [Real; D]) -> Vec<Option<Vector<D>>> {
    let k = Vector::from(wave);
    let mut found: Vec<Option<Vector<D>>> = Vec::new();
    for i in 0..D {
        let mut e = Vector::zeros();
        for d in 0..D {
            e[d] = if d == i && k[i] != 0.0 { 1.0 } else { 0.0 };
        }
        // What is left of an axis across the wave and the directions found before; the second round takes out what the
        // first one left by rounding.
        for _ in 0..2 {
            e -= k * (k.dot(&e) / k.norm_squared().max(Real::MIN_POSITIVE));
            for other in found.iter().flatten() {
                e -= other * e.dot(other);
            }
            if found.len() == D - 1 || e.norm() < 1e-6 {
                e.fill(0.0);
                break;
            }
            e.normalize_mut();
        }
        if e.norm_squared() > 0.0 {
            found.push(Some(e));
        }
    }
    found.resize(D - 1, None);
    found
}

/// `Σ a b` in eight sums, so that vectors add what belongs to different ones.
#[apply(simd)]
pub(super) fn dot(a: &[Real], b: &[Real]) -> Real {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: Real = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
    ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)) + rest
}

/// `to += factor · a`.
#[apply(simd)]
pub(super) fn add_scaled(to: &mut [Real], factor: Real, a: &[Real]) {
    for (to, a) in to.iter_mut().zip(a) {
        *to += factor * a;
    }
}

#[apply(simd)]
pub(super) fn set_product(to: &mut [Real], a: &[Real], b: &[Real]) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = a * b;
    }
}

#[apply(simd)]
fn add_product(to: &mut [Real], a: &[Real], b: &[Real]) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to += a * b;
    }
}

#[apply(simd)]
fn subtract_squares(to: &mut [Real], a: &[Real], b: &[Real]) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = a * a - b * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    fn random<const D: usize>(basis: &Basis<D>, seed: u64) -> Vec<Real> {
        let value =
            |index| if basis.is_mode(index) { hash_unit(seed + index as u64) as Real - 0.5 } else { 0.0 };
        (0..basis.len()).map(value).collect()
    }

    fn with_points<const D: usize>(highest: usize, points: usize) -> Basis<D> {
        let size = [1.0; D];
        Basis::on(size, [highest; D], std::array::from_fn(|axis| Line::new(highest, points, axis == D - 1)))
    }

    fn advected<const D: usize>(basis: &Basis<D>, amplitudes: &[Real]) -> Vec<Real> {
        let mut rates = vec![0.0; basis.len()];
        basis.advect(amplitudes, &mut rates, &mut BasisScratch::default());
        rates
    }

    fn directions_are_across_their_waves<const D: usize>() {
        let basis = Basis::<D>::new(std::array::from_fn(|axis| [1.0, 0.7, 1.9][axis]), [12; D]);
        for index in (0..basis.len()).filter(|&index| basis.is_mode(index)) {
            let count = basis.eigenvalues.len();
            let (which, at) = (index / count, index % count);
            let numbers = basis.numbers(index);
            let (mut divergence, mut norm) = (0.0, 0.0);
            for d in 0..D {
                let component = basis.directions[which][d][at];
                assert!(numbers[d] > 0 || component == 0.0, "{D}D: {numbers:?} flows along {d}");
                divergence += component * numbers[d] as Real * PI / basis.size[d];
                norm += component * component;
            }
            let divergence = divergence.abs() / (norm * basis.eigenvalue(index)).sqrt();
            assert!(divergence < 1e-15, "{D}D: mode {numbers:?} has a divergence of {divergence:.1e}");
        }
    }

    #[test]
    fn directions_are_across_their_waves_2d() {
        directions_are_across_their_waves::<2>();
    }

    #[test]
    fn directions_are_across_their_waves_3d() {
        directions_are_across_their_waves::<3>();
    }

    /// The number of points is the least that the products need, and it is needed.
    fn samples_suffice<const D: usize>(highest: usize) {
        let exact = with_points::<D>(highest, 4 * highest);
        let amplitudes = random(&exact, 5);
        let expected = advected(&exact, &amplitudes);
        let error = |basis: &Basis<D>| {
            let rates = advected(basis, &amplitudes);
            let difference: Vec<Real> = rates.iter().zip(&expected).map(|(a, b)| a - b).collect();
            (dot(&difference, &difference) / dot(&expected, &expected)).sqrt()
        };
        let enough = error(&with_points(highest, points_for(highest)));
        assert!(enough < 1e-13, "{D}D: highest wave {highest}: off by {enough:.1e}");
        // On as many points as there are in 3/2 of the waves, the highest products fall upon modes.
        let few = error(&with_points(highest, 3 * highest / 2));
        assert!(few > 1e-3, "{D}D: highest wave {highest}: too few points, but off by {few:.1e} only");
    }

    #[test]
    fn samples_suffice_2d() {
        // With these, no number of points is rounded up.
        samples_suffice::<2>(32);
    }

    #[test]
    fn samples_suffice_3d() {
        samples_suffice::<3>(32);
    }

    /// A flow that is the same along one axis of a box is the flow of a rectangle.
    #[test]
    fn boxes_hold_what_rectangles_hold() {
        let flat = Basis::<2>::new([1.0, 1.5], [6, 6]);
        let amplitudes = random(&flat, 11);
        let expected = advected(&flat, &amplitudes);
        for axis in 0..3 {
            let plane: [usize; 2] =
                std::array::from_fn(|i| (0..3).filter(|&a| a != axis).nth(i).expect("two"));
            let mut size = [0.8; 3];
            (size[plane[0]], size[plane[1]]) = (1.0, 1.5);
            let deep = Basis::<3>::new(size, [6; 3]);
            // The same flow, whose modes have their directions chosen anew.
            let lift = |flat_amplitudes: &[Real]| {
                let mut lifted = vec![0.0; deep.len()];
                for (index, &amplitude) in
                    flat_amplitudes.iter().enumerate().filter(|&(i, _)| flat.is_mode(i))
                {
                    let mut numbers = [0; 3];
                    let [n1, n2] = flat.numbers(index);
                    (numbers[plane[0]], numbers[plane[1]]) = (n1, n2);
                    let place = deep.index(numbers, 0).expect("a mode");
                    let sign = deep.directions[0][plane[0]][place] * flat.directions[0][0][index];
                    // Per depth, a mode of the box has that much less energy.
                    lifted[place] = amplitude * sign.signum() * size[axis].sqrt();
                }
                lifted
            };
            let (rates, expected) = (advected(&deep, &lift(&amplitudes)), lift(&expected));
            for (rate, expected) in rates.iter().zip(&expected) {
                assert!((rate - expected).abs() < 1e-12, "along {axis}: {rate} in place of {expected}");
            }
        }
    }
}
