//! Modes of a box: what they are, what advection does to them, and what it leaves alone.

use std::f64::consts::PI;
use std::sync::Arc;
use std::time::Instant;

use glug::eigenfluid::{Basis, BasisScratch, Fluid, FluidParams, Integrator, Space, WavesAt};
use glug::math::{Vector, hash_unit};

pub fn random<const D: usize>(basis: &Basis<D>, seed: u64) -> Vec<f64> {
    let value = |index| if basis.is_mode(index) { hash_unit(seed + index as u64) as f64 - 0.5 } else { 0.0 };
    (0..basis.len()).map(value).collect()
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit<const D: usize>(basis: &Basis<D>, index: usize) -> Vec<f64> {
    let mut amplitudes = vec![0.0; basis.len()];
    amplitudes[index] = 1.0;
    amplitudes
}

fn advected<const D: usize>(basis: &Basis<D>, amplitudes: &[f64]) -> Vec<f64> {
    let mut rates = vec![0.0; basis.len()];
    basis.advect(amplitudes, &mut rates, &mut BasisScratch::default());
    rates
}

pub fn still<const D: usize>(size: [f64; D], highest: usize, params: FluidParams) -> Fluid<D> {
    Fluid::new(Space::whole(Arc::new(Basis::new(size, [highest; D]))), params)
}

fn modes_are_orthonormal_and_stay_inside<const D: usize>(size: [f64; D], highest: usize) {
    let basis = Basis::new(size, [highest; D]);
    let modes: Vec<usize> = (0..basis.len()).filter(|&index| basis.is_mode(index)).collect();
    assert_eq!(modes.len(), basis.modes());
    let cell = size.iter().product::<f64>() / basis.samples().iter().product::<usize>() as f64;
    let samples: Vec<Vec<f64>> = modes
        .iter()
        .map(|&index| {
            let mut scratch = BasisScratch::default();
            basis.sample_velocity(&unit(&basis, index), &mut scratch);
            (0..D).flat_map(|d| scratch.velocity(d).to_vec()).collect()
        })
        .collect();
    for (i, one) in samples.iter().enumerate() {
        for (j, other) in samples.iter().enumerate().take(i + 1) {
            let (product, expected) = (cell * dot(one, other), if i == j { 1.0 } else { 0.0 });
            let numbers = (basis.numbers(modes[i]), basis.numbers(modes[j]));
            assert!((product - expected).abs() < 1e-12, "{D}D: {numbers:?}: {product}");
        }
    }
    // At walls and at samples, by the other way of evaluation.
    let (amplitudes, mut waves, mut scratch) =
        (random(&basis, 3), WavesAt::default(), BasisScratch::default());
    basis.sample_velocity(&amplitudes, &mut scratch);
    for index in (0..scratch.velocity(0).len()).step_by(7) {
        let mut x = basis.sample_place(index);
        basis.waves_at(x, &mut waves);
        let velocity = basis.velocity_at(&amplitudes, &waves);
        for d in 0..D {
            assert!((velocity[d] - scratch.velocity(d)[index]).abs() < 1e-11, "{D}D: {velocity} at {x}");
        }
        let axis = index % D;
        x[axis] = if index % 2 == 0 { 0.0 } else { size[axis] };
        basis.waves_at(x, &mut waves);
        let through = basis.velocity_at(&amplitudes, &waves)[axis];
        assert_eq!(through, 0.0, "{D}D: flow through the wall at {x}");
    }
}

#[test]
fn modes_are_orthonormal_and_stay_inside_2d() {
    modes_are_orthonormal_and_stay_inside([1.0, 1.0], 9);
    modes_are_orthonormal_and_stay_inside([2.0, 0.7], 8);
}

#[test]
fn modes_are_orthonormal_and_stay_inside_3d() {
    modes_are_orthonormal_and_stay_inside([1.0, 0.6, 1.7], 4);
}

/// The triple products of all modes by their closed form, applied to amplitudes: what the paper does.
struct Tensor {
    entries: Vec<(usize, usize, usize, f64)>,
}

impl Tensor {
    fn new(basis: &Basis<2>) -> Self {
        let [lx, ly] = basis.size();
        let modes: Vec<usize> = (0..basis.len()).filter(|&index| basis.is_mode(index)).collect();
        // ∫ sin(p) cos-like products: (L/4) (δ_{p,|q−r|} − δ_{p,q+r}) for ∫ cos(p x) sin(q x) sin(r x).
        let integral = |length: f64, p: usize, q: usize, r: usize| {
            let delta = |equal: bool| if equal { 1.0 } else { 0.0 };
            0.25 * length * (delta(p == q.abs_diff(r)) - delta(p == q + r))
        };
        let norm = |index: usize| 2.0 / (basis.eigenvalue(index) * lx * ly).sqrt();
        let mut entries = Vec::new();
        for &i in &modes {
            let [i1, i2] = basis.numbers(i);
            for &k in &modes {
                let [k1, k2] = basis.numbers(k);
                // Only these can be: sums and differences along each axis.
                let reach = |i: usize, k: usize| [i.abs_diff(k), i + k];
                for j1 in reach(i1, k1) {
                    for j2 in reach(i2, k2) {
                        let Some(j) = basis.index([j1, j2], 0) else { continue };
                        let first = i2 as f64 * PI / ly
                            * (k1 as f64 * PI / lx)
                            * integral(lx, k1, i1, j1)
                            * integral(ly, i2, k2, j2);
                        let second = i1 as f64 * PI / lx
                            * (k2 as f64 * PI / ly)
                            * integral(lx, i1, k1, j1)
                            * integral(ly, k2, i2, j2);
                        let value = norm(i) * norm(j) * norm(k) * (first - second);
                        if value != 0.0 {
                            entries.push((i, j, k, value * basis.eigenvalue(j)));
                        }
                    }
                }
            }
        }
        Tensor { entries }
    }

    fn apply(&self, amplitudes: &[f64]) -> Vec<f64> {
        let mut rates = vec![0.0; amplitudes.len()];
        for &(i, j, k, value) in &self.entries {
            rates[k] += value * amplitudes[i] * amplitudes[j];
        }
        rates
    }
}

#[test]
fn products_on_samples_equal_the_tensor() {
    for (highest, size) in [(4, [1.0, 1.0]), (7, [1.0, 2.0]), (12, [1.3, 0.8]), (20, [1.0, 1.0])] {
        let basis = Basis::new(size, [highest; 2]);
        let amplitudes = random(&basis, highest as u64);
        let (rates, expected) = (advected(&basis, &amplitudes), Tensor::new(&basis).apply(&amplitudes));
        let difference: Vec<f64> = rates.iter().zip(&expected).map(|(a, b)| a - b).collect();
        let error = (dot(&difference, &difference) / dot(&expected, &expected)).sqrt();
        assert!(error < 1e-13, "{highest} waves: off by {error:.1e}");
    }
}

fn advection_keeps_energy<const D: usize>(size: [f64; D], highest: usize) {
    let basis = Basis::new(size, [highest; D]);
    let amplitudes = random(&basis, 1);
    let rates = advected(&basis, &amplitudes);
    let share = dot(&amplitudes, &rates) / (dot(&amplitudes, &amplitudes) * dot(&rates, &rates)).sqrt();
    assert!(share.abs() < 1e-13, "{D}D: energy changes by {share:.1e}");
    if D == 2 {
        // Enstrophy too, in any set of eigenmodes: here in the smallest third.
        let kept = basis.smallest(basis.modes() / 3);
        let masked: Vec<f64> = amplitudes.iter().zip(&kept).map(|(a, kept)| a * kept).collect();
        let rates: Vec<f64> = advected(&basis, &masked).iter().zip(&kept).map(|(a, kept)| a * kept).collect();
        let weighted: Vec<f64> =
            masked.iter().enumerate().map(|(index, a)| a * basis.eigenvalue(index)).collect();
        for (name, weight) in [("energy", &masked), ("enstrophy", &weighted)] {
            let share = dot(weight, &rates) / (dot(weight, weight) * dot(&rates, &rates)).sqrt();
            assert!(share.abs() < 1e-13, "{name} of some modes changes by {share:.1e}");
        }
    }
}

#[test]
fn advection_keeps_energy_and_enstrophy_2d() {
    advection_keeps_energy([1.0, 1.4], 21);
}

#[test]
fn advection_keeps_energy_3d() {
    advection_keeps_energy([1.0, 1.4, 0.9], 9);
}

#[test]
fn modes_of_one_eigenvalue_are_a_steady_flow() {
    let basis = Basis::new([1.0, 1.0], [8, 8]);
    let mut amplitudes = vec![0.0; basis.len()];
    for (numbers, amplitude) in [([1, 7], 0.4), ([7, 1], -1.1), ([5, 5], 0.7)] {
        amplitudes[basis.index(numbers, 0).expect("a mode")] = amplitude;
    }
    let fastest = advected(&basis, &amplitudes).iter().fold(0.0, |most: f64, rate| most.max(rate.abs()));
    // Each term is some 25 times as large.
    assert!(fastest < 1e-13, "changes by {fastest:.1e} a second");
}

/// Amplitudes of a flow with a speed of about 1 m/s.
fn stir<const D: usize>(fluid: &mut Fluid<D>) {
    let amplitudes = random(fluid.space.basis(), 17);
    let norm = (fluid.space.basis().size().iter().product::<f64>() / dot(&amplitudes, &amplitudes)).sqrt();
    fluid.change(|own| own.iter_mut().zip(&amplitudes).for_each(|(own, a)| *own = norm * a));
}

fn energy_is_kept<const D: usize>(highest: usize, steps: usize) {
    let mut fluid = still([1.0; D], highest, FluidParams::default());
    stir(&mut fluid);
    let (start, mut worst) = (fluid.energy(), 0.0f64);
    let mut done = 0;
    while done < steps {
        done += fluid.advance(0.01);
        worst = worst.max((fluid.energy() / start - 1.0).abs());
    }
    assert!(worst < 1e-12, "{D}D: {worst:.1e} of the energy in {done} steps");
}

#[test]
fn energy_is_kept_over_ten_thousand_steps_2d() {
    energy_is_kept::<2>(15, 10_000);
}

#[test]
fn energy_is_kept_over_a_thousand_steps_3d() {
    energy_is_kept::<3>(7, 1_000);
}

#[test]
fn steps_are_of_fourth_order() {
    let run = |pieces: usize| {
        let mut fluid = still([1.0, 1.0], 8, FluidParams { cfl: 1.0, ..Default::default() });
        stir(&mut fluid);
        for _ in 0..pieces {
            assert_eq!(fluid.advance(0.2 / pieces as f64), 1, "one step each");
        }
        fluid.amplitudes().to_vec()
    };
    let exact = run(640);
    let error = |pieces: usize| {
        let difference: Vec<f64> = run(pieces).iter().zip(&exact).map(|(a, b)| a - b).collect();
        dot(&difference, &difference).sqrt()
    };
    let ratio = error(40) / error(80);
    assert!((12.0..20.0).contains(&ratio), "half the step makes the error {ratio:.1} times smaller");
}

/// A flow that is turned by its own vorticity is advected, as pressure takes out the rest.
fn vorticity_turns_as_advection_does<const D: usize>() {
    let basis = Basis::<D>::new(std::array::from_fn(|axis| [1.0, 1.3, 0.9][axis]), [7; D]);
    let (amplitudes, other) = (random(&basis, 6), random(&basis, 1234));
    let (mut rates, mut scratch) = (vec![0.0; basis.len()], BasisScratch::default());
    basis.turn(&amplitudes, &amplitudes, &mut rates, &mut scratch);
    let expected = advected(&basis, &amplitudes);
    let difference: Vec<f64> = rates.iter().zip(&expected).map(|(a, b)| a - b).collect();
    let error = (dot(&difference, &difference) / dot(&expected, &expected)).sqrt();
    assert!(error < 1e-13, "{D}D: off by {error:.1e}");
    basis.turn(&amplitudes, &other, &mut rates, &mut scratch);
    let share = dot(&other, &rates) / (dot(&other, &other) * dot(&rates, &rates)).sqrt();
    assert!(share.abs() < 1e-13, "{D}D: energy changes by {share:.1e}");
}

#[test]
fn vorticity_turns_as_advection_does_2d() {
    vorticity_turns_as_advection_does::<2>();
}

#[test]
fn vorticity_turns_as_advection_does_3d() {
    vorticity_turns_as_advection_does::<3>();
}

/// The paper's step, to compare: energy stays, enstrophy does not, and half the step halves the error.
#[test]
fn the_exponential_is_of_first_order_and_keeps_energy_alone() {
    let run = |integrator: Integrator, pieces: usize| {
        let mut fluid = still([1.0, 1.0], 8, FluidParams { cfl: 1.0, integrator, ..Default::default() });
        stir(&mut fluid);
        let before = (fluid.energy(), fluid.enstrophy());
        for _ in 0..pieces {
            fluid.advance(0.2 / pieces as f64);
        }
        let after = (fluid.energy() / before.0, fluid.enstrophy() / before.1);
        (fluid.amplitudes().to_vec(), after)
    };
    let (exact, _) = run(Integrator::RelaxedRungeKutta, 320);
    let error = |pieces: usize| {
        let (amplitudes, after) = run(Integrator::Exponential, pieces);
        let difference: Vec<f64> = amplitudes.iter().zip(&exact).map(|(a, b)| a - b).collect();
        (dot(&difference, &difference).sqrt(), after)
    };
    let (coarse, (energy, enstrophy)) = error(40);
    let ratio = coarse / error(80).0;
    assert!((1.6..2.4).contains(&ratio), "half the step makes the error {ratio:.2} times smaller");
    assert!((energy - 1.0).abs() < 1e-6, "energy times {energy}");
    assert!((enstrophy - 1.0).abs() > 1e-3, "enstrophy times {enstrophy}");
}

fn single_modes_decay_as_viscosity_says<const D: usize>() {
    let params = FluidParams { viscosity: 0.01, cfl: 1.0, ..Default::default() };
    let size = std::array::from_fn(|axis| [1.0, 1.3, 0.9][axis]);
    for seed in 0..5 {
        let mut fluid = still::<D>(size, 6, params);
        let basis = fluid.space.basis();
        let index = (seed * 11..basis.len()).find(|&index| basis.is_mode(index)).expect("a mode");
        let eigenvalue = basis.eigenvalue(index);
        fluid.change(|amplitudes| amplitudes[index] = 0.7);
        for step in 1..=50 {
            let dt = 0.02;
            fluid.advance(dt);
            let expected = 0.7 * (-0.01 * eigenvalue * dt * step as f64).exp();
            let error = (fluid.amplitudes()[index] / expected - 1.0).abs();
            assert!(error < 1e-10, "{D}D: after {step} steps off by {error:.1e}");
        }
    }
}

#[test]
fn single_modes_decay_as_viscosity_says_2d() {
    single_modes_decay_as_viscosity_says::<2>();
}

#[test]
fn single_modes_decay_as_viscosity_says_3d() {
    single_modes_decay_as_viscosity_says::<3>();
}

/// Away from walls, the flow of a push is the divergence-free part of a Gaussian: its share in a mode is an integral.
fn pushes_are_gaussians<const D: usize>() {
    let (width, impulse) = (0.06, Vector::<D>::from_fn(|d, _| [0.3, -0.8, 0.5][d]));
    let at = Vector::<D>::from_fn(|d, _| [0.45, 0.52, 0.56][d]);
    let mut fluid = still([1.0; D], 5, FluidParams::default());
    fluid.push(at, impulse, width);
    let basis = fluid.space.basis();
    let cells = 32usize;
    let spacing = 1.0 / cells as f64;
    let points: Vec<Vector<D>> = (0..cells.pow(D as u32))
        .map(|index| {
            Vector::from_fn(|d, _| ((index / cells.pow(d as u32)) % cells) as f64 * spacing + 0.5 * spacing)
        })
        .filter(|x| (x - at).norm() < 6.0 * width)
        .collect();
    let norm = (2.0 * PI * width * width).powf(-0.5 * D as f64) * spacing.powi(D as i32);
    for index in (0..basis.len()).filter(|&index| basis.is_mode(index)).step_by(37) {
        let (mode, mut waves) = (unit(basis, index), WavesAt::default());
        let share = |x: &Vector<D>, waves: &mut WavesAt<D>| {
            basis.waves_at(*x, waves);
            let gaussian = norm * (-(x - at).norm_squared() / (2.0 * width * width)).exp();
            gaussian * basis.velocity_at(&mode, waves).dot(&impulse)
        };
        let expected: f64 = points.iter().map(|x| share(x, &mut waves)).sum();
        let found = fluid.amplitudes()[index];
        assert!((found - expected).abs() < 1e-6, "{D}D: {:?}: {found} or {expected}", basis.numbers(index));
    }
}

#[test]
fn pushes_are_gaussians_2d() {
    pushes_are_gaussians::<2>();
}

#[test]
fn pushes_are_gaussians_3d() {
    pushes_are_gaussians::<3>();
}

/// A field is its share in the modes and a gradient; the gradient is left out.
fn fields_are_projected<const D: usize>() {
    let basis = Basis::<D>::new(std::array::from_fn(|axis| [1.0, 1.4, 0.8][axis]), [5; D]);
    let amplitudes = random(&basis, 9);
    let found = basis.project(|x| {
        let mut waves = WavesAt::default();
        basis.waves_at(x, &mut waves);
        let wave = |axis: usize| 2.0 * PI / basis.size()[axis];
        let gradient = Vector::from_fn(|d, _| {
            let others = (0..D).filter(|&axis| axis != d).map(|axis| (wave(axis) * x[axis]).cos());
            wave(d) * (wave(d) * x[d]).sin() * others.product::<f64>()
        });
        basis.velocity_at(&amplitudes, &waves) + gradient
    });
    for (found, expected) in found.iter().zip(&amplitudes) {
        assert!((found - expected).abs() < 1e-12, "{D}D: {found} in place of {expected}");
    }
}

#[test]
fn fields_are_projected_2d() {
    fields_are_projected::<2>();
}

#[test]
fn fields_are_projected_3d() {
    fields_are_projected::<3>();
}

#[test]
fn bands_hold_all_energy_and_can_be_muted() {
    let mut fluid = still([1.0, 2.0], 12, FluidParams::default());
    stir(&mut fluid);
    let bands = fluid.spectrum(10);
    let sum: f64 = bands.iter().map(|band| band.energy).sum();
    assert!((sum / fluid.energy() - 1.0).abs() < 1e-12);
    assert_eq!(bands.iter().map(|band| band.modes).sum::<usize>(), 144);
    fluid.scale_band(&bands[4].waves, 0.0);
    let left = fluid.energy() + bands[4].energy;
    assert!((left / sum - 1.0).abs() < 1e-12, "only the band is gone");
    fluid.push(Vector::from([f64::NAN, 0.5]), Vector::from([1.0, 0.0]), 0.1);
    assert!(fluid.energy().is_finite(), "what is not a number pushes nothing");
}

/// Prints how long tendencies take; by hand.
#[test]
#[ignore = "measures"]
fn tendencies_by_number_of_modes() {
    for highest in [8, 10, 20, 31, 63, 127, 255] {
        let basis = Basis::new([1.0, 1.0], [highest; 2]);
        let (amplitudes, mut rates) = (random(&basis, 1), vec![0.0; basis.len()]);
        let mut scratch = BasisScratch::default();
        let mut times: Vec<f64> = (0..(2000 / highest).max(5))
            .map(|_| {
                let start = Instant::now();
                basis.advect(&amplitudes, &mut rates, &mut scratch);
                start.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{:6} modes: {:.4} ms", basis.modes(), 1e3 * times[times.len() / 2]);
    }
    let (modes, mut tensor_time) = (400, f64::MAX);
    let tensor: Vec<f32> = (0..modes * modes * modes).map(|i| (i % 7) as f32).collect();
    let r: Vec<f32> = (0..modes).map(|i| (i % 5) as f32).collect();
    for _ in 0..5 {
        let start = Instant::now();
        let mut rates = vec![0.0f32; modes];
        for (rate, matrix) in rates.iter_mut().zip(tensor.chunks_exact(modes * modes)) {
            for (&a, row) in r.iter().zip(matrix.chunks_exact(modes)) {
                let mut sums = [0.0f32; 16];
                for (row, r) in row.chunks_exact(16).zip(r.chunks_exact(16)) {
                    (0..16).for_each(|lane| sums[lane] += row[lane] * r[lane]);
                }
                *rate += a * sums.iter().sum::<f32>();
            }
        }
        assert!(std::hint::black_box(rates)[0].is_finite());
        tensor_time = tensor_time.min(start.elapsed().as_secs_f64());
    }
    println!("   400 modes by a dense tensor in f32: {:.2} ms", 1e3 * tensor_time);
    for highest in [15, 24, 31] {
        let basis = Basis::new([1.0; 3], [highest; 3]);
        let (amplitudes, mut rates) = (random(&basis, 1), vec![0.0; basis.len()]);
        let mut scratch = BasisScratch::default();
        basis.advect(&amplitudes, &mut rates, &mut scratch);
        let start = Instant::now();
        (0..5).for_each(|_| basis.advect(&amplitudes, &mut rates, &mut scratch));
        println!("{:6} modes in 3D: {:.3} ms", basis.modes(), 200.0 * start.elapsed().as_secs_f64());
    }
}
