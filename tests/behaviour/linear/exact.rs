//! Small random networks against dense algebra.

use glug::linear::{Outcome, PreconditionerKind, Solver, SolverParams, assemble};
use glug::math::{hash_unit, mix};
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

use super::domain::{Domain, Matter};

/// A box with holes, random links, some grounds, some shared nodes.
pub fn random_domain<const D: usize>(seed: u64, side: usize, ground_share: f32, shared: usize) -> Domain<D> {
    let unit = |a: usize, cell: [i32; D]| {
        let key = cell.iter().fold(a as u64, |k, &c| k * 131 + (c + 5) as u64);
        hash_unit(mix(seed).wrapping_add(key))
    };
    let holes = 0.35 * hash_unit(seed);
    let whole = if seed.is_multiple_of(3) { 1.0 } else { 0.5 };
    let mut domain = Domain::build(
        [side; D],
        |cell| {
            if unit(0, cell) < holes {
                if unit(1, cell) < ground_share { Matter::Ground } else { Matter::Closed }
            } else {
                Matter::Full
            }
        },
        |axis, face| {
            let u = unit(2 + axis, face);
            if u < whole {
                1.0
            } else if u > 0.9 {
                0.0
            } else {
                u
            }
        },
        |from, to| (0.01 + unit(7, from) * unit(8, to)).min(1.0),
    );
    let unknowns = domain.unknowns();
    for node in 0..shared {
        let links: Vec<_> = (0..12)
            .map(|i| {
                let pick = mix(seed ^ (node * 100 + i) as u64);
                let cell = unknowns[pick as usize % unknowns.len()].0;
                let link = 0.05 + 20.0 * hash_unit(pick).powi(4);
                (cell, link, link.min(1.0))
            })
            .collect();
        domain.add_shared(3.0 + node as f64, &links);
    }
    domain.finish();
    domain
}

fn vector<const D: usize>(domain: &Domain<D>, cells: &[u32], field: &[f64], shared: &[f64]) -> DVector<f64> {
    assert_eq!(shared.len(), domain.shared.len());
    DVector::from_iterator(
        cells.len() + shared.len(),
        cells.iter().map(|&c| field[c as usize]).chain(shared.iter().copied()),
    )
}

fn dense<const D: usize>(domain: &Domain<D>) -> (DMatrix<f64>, Vec<u32>) {
    let assembled = assemble(&domain.system());
    let n = assembled.matrix.rows();
    let mut matrix = DMatrix::zeros(n, n);
    for (&value, (i, j)) in &assembled.matrix {
        matrix[(i, j)] = value;
    }
    (matrix, assembled.cells)
}

fn solution_agrees_with_a_dense_solve<const D: usize>(seed: u64, kind: PreconditionerKind) {
    let side = if D == 2 { 19 } else { 9 };
    let shared = (mix(seed) % 4) as usize;
    check_solution(random_domain::<D>(seed, side, 0.7, shared), seed, kind);
}

/// The solution of a random right-hand side against that of dense algebra.
pub fn check_solution<const D: usize>(mut domain: Domain<D>, seed: u64, kind: PreconditionerKind) {
    let (matrix, cells) = dense(&domain);
    assert_eq!(matrix, matrix.transpose(), "{D}D seed {seed}: symmetric to the last bit");
    domain.random_rhs(seed + 1);
    let params = SolverParams {
        tolerance: 1e-12,
        preconditioner: kind,
        warm_start: false,
        max_iterations: 3000,
        ..Default::default()
    };
    let info = domain.solve(&mut Solver::new(), &params);
    assert!(info.converged, "{D}D seed {seed}: {info:?}");
    // The right-hand side is now compatible with every component.
    let b = vector(&domain, &cells, domain.rhs.as_slice(), &domain.shared_rhs);
    let x = vector(&domain, &cells, domain.x.as_slice(), &domain.shared_x);
    let residual = (&b - &matrix * &x).norm() / b.norm();
    assert!(residual < 2e-12, "{D}D seed {seed}: residual {residual:.1e}");
    assert!(
        (residual - info.relative_residual).abs() < 1e-12,
        "{D}D seed {seed}: reported the true residual"
    );
    let eigen = matrix.clone().symmetric_eigen();
    let scale = eigen.eigenvalues.max();
    assert!(eigen.eigenvalues.min() > -1e-12 * scale, "{D}D seed {seed}: positive semi-definite");
    let nullity = eigen.eigenvalues.iter().filter(|&&v| v < 1e-11 * scale).count();
    assert_eq!(nullity, info.closed_components, "{D}D seed {seed}: one null vector per closed component");
    let inverse = eigen.eigenvalues.map(|v| if v < 1e-11 * scale { 0.0 } else { 1.0 / v });
    let best = &eigen.eigenvectors * DMatrix::from_diagonal(&inverse) * (eigen.eigenvectors.transpose() * &b);
    if domain.shared.is_empty() || nullity == 0 {
        let error = (&x - &best).norm() / best.norm();
        assert!(error < 1e-9, "{D}D seed {seed}: error {error:.1e}");
    }
}

#[test]
fn solution_agrees_with_a_dense_solve_2d() {
    for seed in 0..24 {
        solution_agrees_with_a_dense_solve::<2>(seed, PreconditionerKind::Multigrid);
    }
}

#[test]
fn solution_agrees_with_a_dense_solve_3d() {
    for seed in 0..12 {
        solution_agrees_with_a_dense_solve::<3>(seed, PreconditionerKind::Multigrid);
    }
}

#[test]
fn reference_preconditioners_agree_with_a_dense_solve() {
    for kind in [
        PreconditionerKind::Jacobi,
        PreconditionerKind::IncompleteCholesky,
        PreconditionerKind::BubblePalindrome,
    ] {
        for seed in 0..6 {
            solution_agrees_with_a_dense_solve::<2>(seed, kind);
        }
        solution_agrees_with_a_dense_solve::<3>(1, kind);
    }
}

fn preconditioner_is_symmetric_and_positive<const D: usize>(
    seed: u64,
    sweeps: usize,
    preconditioner: PreconditionerKind,
) {
    let side = if D == 2 { 45 } else { 20 };
    let domain = random_domain::<D>(seed, side, 0.3, (seed % 5) as usize);
    check_preconditioner(domain, seed, sweeps, preconditioner);
}

/// The preconditioner is symmetric and positive on random compatible right-hand sides.
pub fn check_preconditioner<const D: usize>(
    mut domain: Domain<D>,
    seed: u64,
    sweeps: usize,
    preconditioner: PreconditionerKind,
) {
    let params = SolverParams { sweeps, preconditioner, ..Default::default() };
    let mut solver = Solver::new();
    let mut apply = |domain: &Domain<D>| {
        let (mut z, mut shared) = (domain.x.clone(), domain.shared_x.clone());
        solver.precondition(
            &domain.system(),
            None,
            (&domain.rhs, &domain.shared_rhs),
            (&mut z, &mut shared),
            &params,
        );
        (z, shared)
    };
    // Compatible right-hand sides: differences over a link.
    let mut make = |seed| {
        domain.random_rhs(seed);
        domain.solve(&mut Solver::new(), &SolverParams { max_iterations: 0, ..Default::default() });
        (domain.rhs.clone(), domain.shared_rhs.clone(), apply(&domain))
    };
    let (a, shared_a, ma) = make(seed + 100);
    let (b, shared_b, mb) = make(seed + 200);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let product = |a: (&[f64], &[f64]), b: (&[f64], &[f64])| dot(a.0, b.0) + dot(a.1, b.1);
    let a_mb = product((a.as_slice(), &shared_a), (mb.0.as_slice(), &mb.1));
    let b_ma = product((b.as_slice(), &shared_b), (ma.0.as_slice(), &ma.1));
    let a_ma = product((a.as_slice(), &shared_a), (ma.0.as_slice(), &ma.1));
    let b_mb = product((b.as_slice(), &shared_b), (mb.0.as_slice(), &mb.1));
    assert!(a_ma > 0.0 && b_mb > 0.0, "{D}D seed {seed}: positive");
    let asymmetry = (a_mb - b_ma).abs() / (a_ma * b_mb).sqrt();
    assert!(asymmetry < 1e-6, "{D}D seed {seed}: asymmetry {asymmetry:.1e}");
}

#[test]
fn preconditioner_is_symmetric_and_positive_2d() {
    for seed in 0..20 {
        let sweeps = 1 + seed as usize % 3;
        preconditioner_is_symmetric_and_positive::<2>(seed, sweeps, PreconditionerKind::Multigrid);
        preconditioner_is_symmetric_and_positive::<2>(seed, sweeps, PreconditionerKind::BubblePalindrome);
    }
}

#[test]
fn preconditioner_is_symmetric_and_positive_3d() {
    for seed in 0..10 {
        let sweeps = 1 + seed as usize % 3;
        preconditioner_is_symmetric_and_positive::<3>(seed, sweeps, PreconditionerKind::Multigrid);
        preconditioner_is_symmetric_and_positive::<3>(seed, sweeps, PreconditionerKind::BubblePalindrome);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_random_network_converges(seed in any::<u64>(), ground in 0.0f32..1.0, shared in 0usize..6) {
        let seed = seed >> 8;
        let mut domain = random_domain::<2>(seed, 37, ground, shared);
        domain.random_rhs(seed);
        let params = SolverParams { tolerance: 1e-9, warm_start: false, ..Default::default() };
        let info = domain.solve(&mut Solver::new(), &params);
        prop_assert!(info.converged && info.iterations <= 40, "{info:?}");
        let mut domain = random_domain::<3>(seed, 17, ground, shared);
        domain.random_rhs(seed);
        let info = domain.solve(&mut Solver::new(), &params);
        prop_assert!(info.converged && info.iterations <= 40, "{info:?}");
    }
}

fn threads_do_not_change_the_bits<const D: usize>() {
    let mut domain = super::domain::tank::<D>(if D == 2 { 150 } else { 40 }, 3, 0);
    domain.drop_rhs();
    let params = SolverParams { tolerance: 1e-8, ..Default::default() };
    // More threads than most machines have cores for, too.
    let results = [1, 2, 3, 5, 16].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        domain.x.as_mut_slice().fill(0.0);
        domain.shared_x.fill(0.0);
        let info = pool.install(|| domain.solve(&mut Solver::new(), &params));
        assert_eq!(info.outcome, Outcome::Converged);
        (info.iterations, domain.x.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>())
    });
    assert!(results.iter().all(|result| *result == results[0]), "{D}D: same bits");
}

#[test]
fn threads_do_not_change_the_bits_2d() {
    threads_do_not_change_the_bits::<2>();
}

#[test]
fn threads_do_not_change_the_bits_3d() {
    threads_do_not_change_the_bits::<3>();
}

fn node_without_links_changes_nothing<const D: usize>(kind: PreconditionerKind) {
    let params =
        SolverParams { tolerance: 1e-8, preconditioner: kind, max_iterations: 3000, ..Default::default() };
    // With and without ground, so that mean values are looked at too.
    for ground in [0.0, 0.6] {
        let mut plain = random_domain::<D>(4, 21, ground, 2);
        plain.random_rhs(9);
        let mut with = random_domain::<D>(4, 21, ground, 2);
        with.random_rhs(9);
        with.add_shared(7.0, &[]);
        with.shared_rhs[2] = 5.0;
        with.shared_x[2] = 1.0;
        let (a, b) = (plain.solve(&mut Solver::new(), &params), with.solve(&mut Solver::new(), &params));
        assert_eq!(
            (a.iterations, a.closed_components, a.levels),
            (b.iterations, b.closed_components, b.levels),
            "{D}D {kind:?}: same solve"
        );
        assert_eq!(plain.x.as_slice(), with.x.as_slice(), "{D}D {kind:?}: same cells");
        assert_eq!(plain.shared_x, with.shared_x[..2], "{D}D {kind:?}: same nodes");
        assert_eq!((with.shared_x[2], with.shared_rhs[2]), (0.0, 5.0), "{D}D {kind:?}: left alone");
    }
}

#[test]
fn node_without_links_changes_nothing_at_all() {
    for kind in
        [PreconditionerKind::Multigrid, PreconditionerKind::Jacobi, PreconditionerKind::IncompleteCholesky]
    {
        node_without_links_changes_nothing::<2>(kind);
        node_without_links_changes_nothing::<3>(kind);
    }
}
