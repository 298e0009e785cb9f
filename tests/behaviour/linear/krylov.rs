//! Conjugate gradients on something that is no network of cells: velocities on faces that viscosity couples.

use std::sync::atomic::AtomicBool;

use glug::linear::{Jacobi, Operator, Outcome, Preconditioner, StoppingRule, conjugate_gradients};
use glug::math::hash_unit;
use nalgebra::{DMatrix, DVector};

/// Implicit viscosity of a full box: `u·A u = Σ m u² + 2 μ Σ |ε|²`, with the strain rates `ε` that velocities on faces
/// have in cells and at edges. Components are coupled, by coefficients of both signs.
struct Viscous {
    mass: Vec<f64>,
    /// Strain rates: a weight, and faces with their coefficients.
    strains: Vec<(f64, Vec<(usize, f64)>)>,
}

impl Viscous {
    /// A box of `side` cells along each axis, with walls that let liquid slip along them.
    fn new<const D: usize>(side: usize, viscosity: f64) -> Viscous {
        // Every component has a face at the low side of every cell; those at the walls do not move.
        let cells = side.pow(D as u32);
        let position =
            |cell: usize| -> [usize; D] { std::array::from_fn(|a| cell / side.pow(a as u32) % side) };
        let face = |at: [usize; D], axis: usize| {
            let inside = at.iter().all(|&c| c < side) && at[axis] > 0;
            let cell: usize = (0..D).map(|a| at[a] * side.pow(a as u32)).sum();
            inside.then_some(axis * cells + cell)
        };
        let mass = (0..D * cells).map(|index| 1.0 + f64::from(hash_unit(index as u64))).collect();
        let mut strains = Vec::new();
        for at in (0..cells).map(position) {
            let beside = |axis: usize, step: i32| {
                let mut other = at;
                other[axis] = other[axis].wrapping_add_signed(step as isize);
                other
            };
            for a in 0..D {
                let normal = [(face(at, a), -1.0), (face(beside(a, 1), a), 1.0)];
                strains.push((2.0 * viscosity, normal.to_vec()));
                for b in 0..a {
                    // The edge at the low end of both axes.
                    if at[a] == 0 || at[b] == 0 {
                        continue;
                    }
                    let shear = [
                        (face(at, a), 1.0),
                        (face(beside(b, -1), a), -1.0),
                        (face(at, b), 1.0),
                        (face(beside(a, -1), b), -1.0),
                    ];
                    strains.push((viscosity, shear.to_vec()));
                }
            }
        }
        let moving = |faces: Vec<(Option<usize>, f64)>| -> Vec<(usize, f64)> {
            faces.into_iter().filter_map(|(face, c)| face.map(|face| (face, c))).collect()
        };
        Viscous { mass, strains: strains.into_iter().map(|(w, faces)| (w, moving(faces))).collect() }
    }

    fn dense(&self) -> DMatrix<f64> {
        let size = self.size();
        let mut matrix = DMatrix::zeros(size, size);
        for column in 0..size {
            let (mut unit, mut product) = (vec![0.0; size], vec![0.0; size]);
            unit[column] = 1.0;
            self.apply(&unit, &mut product);
            matrix.set_column(column, &DVector::from_vec(product));
        }
        matrix
    }

    fn random(&self, salt: u64) -> Vec<f64> {
        (0..self.size()).map(|i| f64::from(hash_unit(salt + i as u64)) - 0.5).collect()
    }

    /// `‖b − A x‖ / ‖b‖`.
    fn relative_residual(&self, b: &[f64], x: &[f64]) -> f64 {
        let mut product = vec![0.0; self.size()];
        self.apply(x, &mut product);
        let left: f64 = b.iter().zip(&product).map(|(b, p)| (b - p).powi(2)).sum();
        (left / b.iter().map(|b| b * b).sum::<f64>()).sqrt()
    }
}

impl Operator for Viscous {
    fn size(&self) -> usize {
        self.mass.len()
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(x).zip(&self.mass).for_each(|((out, x), mass)| *out = mass * x);
        for (weight, faces) in &self.strains {
            let strain: f64 = faces.iter().map(|&(face, c)| c * x[face]).sum();
            faces.iter().for_each(|&(face, c)| out[face] += weight * c * strain);
        }
    }

    fn diagonal(&self, out: &mut [f64]) {
        out.copy_from_slice(&self.mass);
        for (weight, faces) in &self.strains {
            faces.iter().for_each(|&(face, c)| out[face] += weight * c * c);
        }
    }
}

fn solve(operator: &Viscous, b: &[f64], rule: &StoppingRule) -> (Vec<f64>, glug::linear::CgInfo) {
    let mut x = vec![0.0; operator.size()];
    let info = conjugate_gradients(operator, &mut Jacobi::new(operator), b, &mut x, rule, None);
    (x, info)
}

fn velocities_on_faces_agree_with_a_dense_solve<const D: usize>(side: usize) {
    let operator = Viscous::new::<D>(side, 3.0);
    let (matrix, b) = (operator.dense(), operator.random(11));
    assert!((&matrix - matrix.transpose()).amax() < 1e-14, "{D}D: symmetric");
    assert!(
        matrix.iter().any(|&entry| entry > 0.1) && matrix.iter().any(|&entry| entry < -0.1),
        "{D}D: signs"
    );
    let expected = matrix.cholesky().expect("positive definite").solve(&DVector::from_column_slice(&b));
    let rule = StoppingRule { tolerance: 1e-10, ..StoppingRule::default() };
    let (x, info) = solve(&operator, &b, &rule);
    let worst = x.iter().zip(expected.iter()).map(|(x, e)| (x - e).abs()).fold(0.0, f64::max);
    assert!(info.converged && !info.fallback && info.outcome == Outcome::Converged, "{D}D: {info:?}");
    assert!(worst < 1e-9 * expected.amax(), "{D}D: off by {worst:.1e}");
}

#[test]
fn velocities_on_faces_agree_with_a_dense_solve_2d() {
    velocities_on_faces_agree_with_a_dense_solve::<2>(14);
}

#[test]
fn velocities_on_faces_agree_with_a_dense_solve_3d() {
    velocities_on_faces_agree_with_a_dense_solve::<3>(6);
}

#[test]
fn the_stopping_rule_is_kept_by_the_true_residual() {
    let operator = Viscous::new::<2>(40, 5.0);
    let b = operator.random(3);
    let mut iterations = Vec::new();
    for tolerance in [1e-2, 1e-5, 1e-9] {
        let (x, info) = solve(&operator, &b, &StoppingRule { tolerance, ..StoppingRule::default() });
        let left = operator.relative_residual(&b, &x);
        assert!(info.converged && left <= 1.01 * tolerance, "{left:.1e} for {tolerance:.0e}");
        assert!((left - info.relative_residual).abs() < 1e-3 * tolerance, "{left:.3e} {info:?}");
        iterations.push(info.iterations);
    }
    assert!(iterations[0] < iterations[1] && iterations[1] < iterations[2], "{iterations:?}");
    // No entry above the floor will do as well.
    let (x, info) =
        solve(&operator, &b, &StoppingRule { tolerance: 0.0, floor: 0.01, ..StoppingRule::default() });
    let mut product = vec![0.0; operator.size()];
    operator.apply(&x, &mut product);
    let worst = b.iter().zip(&product).map(|(b, p)| (b - p).abs()).fold(0.0, f64::max);
    assert!(info.converged && worst <= 0.0101 && info.iterations > 0, "{worst} {info:?}");
    let few = StoppingRule { max_iterations: 3, ..StoppingRule::default() };
    let (_, info) = solve(&operator, &b, &few);
    assert_eq!((info.outcome, info.iterations, info.converged), (Outcome::IterationLimit, 3, false));
}

#[test]
fn a_good_guess_is_taken_and_a_bad_one_dropped() {
    let operator = Viscous::new::<2>(20, 2.0);
    let b = operator.random(5);
    let rule = StoppingRule { tolerance: 1e-8, ..StoppingRule::default() };
    let (solved, first) = solve(&operator, &b, &rule);
    let mut jacobi = Jacobi::new(&operator);
    let mut x = solved.clone();
    let again = conjugate_gradients(&operator, &mut jacobi, &b, &mut x, &rule, None);
    assert_eq!((again.outcome, again.iterations, &x), (Outcome::AlreadySolved, 0, &solved));
    let mut x = vec![1e6; b.len()];
    let bad = conjugate_gradients(&operator, &mut jacobi, &b, &mut x, &rule, None);
    assert_eq!((bad.iterations, x), (first.iterations, solved), "as from zero");
}

/// Turns some entries around: positive for no right-hand side of ours.
struct Wrong;

impl Preconditioner for Wrong {
    fn apply(&mut self, r: &[f64], z: &mut [f64]) {
        z.iter_mut().zip(r).for_each(|(z, r)| *z = -r);
    }
}

#[test]
fn jacobi_takes_over_from_a_preconditioner_that_fails() {
    let operator = Viscous::new::<3>(5, 2.0);
    let b = operator.random(8);
    let alone = StoppingRule { tolerance: 1e-8, ..StoppingRule::default() };
    let mut x = vec![0.0; b.len()];
    let info = conjugate_gradients(&operator, &mut Wrong, &b, &mut x, &alone, None);
    assert_eq!((info.outcome, info.converged, info.fallback), (Outcome::Stalled, false, false));
    let rule = StoppingRule { fallback_after: Some(20), ..alone };
    let info = conjugate_gradients(&operator, &mut Wrong, &b, &mut x, &rule, None);
    assert!(info.converged && info.fallback, "{info:?}");
    assert!(operator.relative_residual(&b, &x) < 1.01e-8);
}

#[test]
fn a_solve_ends_when_told_to_and_with_zero_if_nothing_is_finite() {
    let operator = Viscous::new::<2>(10, 2.0);
    let (mut b, mut x) = (operator.random(2), vec![0.0; operator.size()]);
    let mut jacobi = Jacobi::new(&operator);
    let stop = AtomicBool::new(true);
    let rule = StoppingRule::default();
    let info = conjugate_gradients(&operator, &mut jacobi, &b, &mut x, &rule, Some(&stop));
    assert_eq!((info.outcome, info.iterations), (Outcome::Stopped, 0));
    b[7] = f64::NAN;
    x.fill(3.0);
    let info = conjugate_gradients(&operator, &mut jacobi, &b, &mut x, &rule, None);
    assert_eq!((info.outcome, info.converged), (Outcome::NonFinite, false));
    assert!(x.iter().all(|&x| x == 0.0));
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let operator = Viscous::new::<2>(90, 4.0);
    let b = operator.random(1);
    let solve_on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| solve(&operator, &b, &StoppingRule::default()))
    };
    let (x, info) = solve_on(1);
    for threads in [2, 3] {
        assert!(solve_on(threads) == (x.clone(), info), "{threads} threads");
    }
}
