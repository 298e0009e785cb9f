//! Two materials whose links differ by orders of magnitude.

use glug::grid::{Field, block_cells};
use glug::linear::{PreconditionerKind, Solver, SolverParams};
use glug::math::{hash_unit, mix};

use super::domain::{Domain, Matter};
use super::exact;

/// Marks the cells that `second` names.
fn mark<const D: usize>(domain: &mut Domain<D>, ratio: f32, second: impl Fn([i32; D]) -> bool) {
    let mut material = Field::new(block_cells(D), false);
    material.resize(domain.blocks.slot_count());
    for cell in domain.cells().into_iter().filter(|&cell| second(cell)) {
        material[domain.index(cell)] = true;
    }
    domain.material = Some((material, [1.0, ratio]));
}

/// Random networks of both materials, down to single cells of one among the other.
fn patchwork<const D: usize>(seed: u64, ratio: f32) -> Domain<D> {
    let side = if D == 2 { 19 } else { 9 };
    let mut domain = exact::random_domain::<D>(seed, side, 0.7, (mix(seed) % 3) as usize);
    let coarse = seed.is_multiple_of(2);
    let second = |cell: [i32; D]| {
        let part = |c: i32| i64::from(if coarse { c / 4 } else { c }).cast_unsigned();
        let key = cell.iter().fold(77u64, |k, &c| k.wrapping_mul(131).wrapping_add(part(c)));
        hash_unit(mix(seed ^ key)) < 0.4
    };
    for cell in domain.cells() {
        for axis in 0..D {
            let (here, mut low) = (domain.index(cell), cell);
            low[axis] -= 1;
            domain.link[axis][here] *= match (second(cell), second(low)) {
                (true, true) => ratio,
                (false, false) => 1.0,
                _ => 1.0 / (0.3 + 0.7 / ratio),
            };
        }
    }
    mark(&mut domain, ratio, second);
    domain
}

fn two_materials_agree_with_dense_algebra<const D: usize>(seeds: u64) {
    for seed in 0..seeds {
        for ratio in [1000.0, 0.1, 1.0] {
            exact::check_solution(patchwork::<D>(seed, ratio), seed, PreconditionerKind::Multigrid);
            exact::check_preconditioner(
                patchwork::<D>(seed, ratio),
                seed,
                1 + seed as usize % 3,
                PreconditionerKind::Multigrid,
            );
        }
    }
}

#[test]
fn two_materials_agree_with_dense_algebra_2d() {
    two_materials_agree_with_dense_algebra::<2>(12);
}

#[test]
fn two_materials_agree_with_dense_algebra_3d() {
    two_materials_agree_with_dense_algebra::<3>(6);
}

/// A closed tank of the first material with balls of the second in it and a layer of it above; densities 1 and
/// `density`.
fn tank<const D: usize>(n: usize, balls: usize, density: f64, shift: i32) -> Domain<D> {
    let h = 1.0 / n as f64;
    let at = |cell: [i32; D]| -> [f64; D] { cell.map(|c| (f64::from(c - shift) + 0.5) * h) };
    // Negative in the first material.
    let surface = move |x: [f64; D]| {
        let mut level = x[1] - 0.75 - 0.04 * (9.0 * x[0]).sin();
        for k in 0..balls {
            let u = |i: usize| f64::from(hash_unit((k * 3 + i + 11) as u64));
            let centre = [0.1 + 0.8 * u(0), 0.1 + 0.5 * u(1), 0.1 + 0.8 * u(2)];
            let away = (0..D).map(|a| (x[a] - centre[a]).powi(2)).sum::<f64>().sqrt();
            level = level.max(0.03 + 0.08 * u(1) - away);
        }
        level
    };
    let inside = move |cell: [i32; D]| cell.iter().all(|&c| (shift..n as i32 + shift).contains(&c));
    let link = |axis: usize, face: [i32; D]| {
        let mut low = face;
        low[axis] -= 1;
        if !inside(low) || !inside(face) {
            return 0.0;
        }
        let (a, b) = (surface(at(low)), surface(at(face)));
        let theta = match (a < 0.0, b < 0.0) {
            (true, true) => 1.0,
            (false, false) => 0.0,
            _ => a.min(b) / (a.min(b) - a.max(b)),
        };
        (1.0 / (theta + (1.0 - theta) * density)) as f32
    };
    let matter = |cell| if inside(cell) { Matter::Full } else { Matter::Closed };
    let mut domain = Domain::build([n + shift as usize; D], matter, link, |_, _| 1.0);
    mark(&mut domain, 1.0 / density as f32, |cell| inside(cell) && surface(at(cell)) >= 0.0);
    // Falling matter, as dense or thin as it may be.
    for cell in domain.cells() {
        let here = domain.index(cell);
        for axis in (0..D).filter(|&axis| domain.link[axis][here] > 0.0) {
            let noise = 0.2 * (f64::from(hash_unit((here * 3 + axis) as u64)) - 0.5);
            let flux = if axis == 1 { noise - 1.0 } else { noise };
            let mut low = cell;
            low[axis] -= 1;
            let low = domain.index(low);
            domain.rhs[here] += flux;
            domain.rhs[low] -= flux;
        }
    }
    domain
}

fn jumps_of_density_take_few_iterations<const D: usize>(n: usize) {
    for density in [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0] {
        for (balls, shift) in [(1, 0), (8, 3), (60, 5)] {
            let mut domain = tank::<D>(n, balls, density, shift);
            let params = SolverParams { warm_start: false, ..Default::default() };
            let info = domain.solve(&mut Solver::new(), &params);
            println!("{D}D {n}, {density}:1, {balls} balls: {} iterations", info.iterations);
            // Many bubbles of a few cells each are hard to coarsen.
            let limit = if balls > 20 && D == 3 { 20 } else { 12 };
            assert!(
                info.converged && info.iterations <= limit && !info.fallback,
                "{D}D {density}:1, {balls} balls: {info:?}"
            );
        }
    }
}

#[test]
fn jumps_of_density_take_few_iterations_2d() {
    jumps_of_density_take_few_iterations::<2>(256);
}

#[test]
fn jumps_of_density_take_few_iterations_3d() {
    jumps_of_density_take_few_iterations::<3>(64);
}
