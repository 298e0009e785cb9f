//! Bodies of any weights and responses, as low-rank terms of a system.

use glug::linear::{
    Couplings, Outcome, PreconditionerKind, SolveInfo, Solver, SolverParams, Unknown, assemble,
    assemble_with_bodies,
};
use glug::math::{hash_unit, mix};
use nalgebra::{DMatrix, DVector};

use super::domain::{Domain, Matter};
use super::exact::{check_preconditioner, random_domain};

/// A body as a test knows it: its response and its columns.
struct Columns {
    response: DMatrix<f64>,
    unknowns: Vec<Unknown>,
    forces: Vec<f64>,
}

impl Columns {
    fn push_to(&self, couplings: &mut Couplings) {
        couplings.push(&self.response, &self.unknowns, &self.forces);
    }

    /// `J`, dense, for the rows of a matrix.
    fn dense(&self, cells: &[u32], size: usize) -> DMatrix<f64> {
        let degrees = self.response.nrows();
        let mut j = DMatrix::zeros(degrees, size);
        for (column, unknown) in self.unknowns.iter().enumerate() {
            let row = match *unknown {
                Unknown::Cell(cell) => cells.iter().position(|&c| c == cell),
                Unknown::Shared(node) => Some(cells.len() + node as usize),
            };
            for k in 0..degrees {
                if let Some(row) = row {
                    j[(k, row)] += self.forces[column * degrees + k];
                }
            }
        }
        j
    }
}

/// Bodies with random columns, also of shared nodes and of cells that are no unknowns, and with responses of all ranks up to 12.
fn random_bodies<const D: usize>(domain: &Domain<D>, seed: u64, count: usize) -> Vec<Columns> {
    let unknowns = domain.unknowns();
    let unit = |key: u64| f64::from(hash_unit(mix(seed.wrapping_mul(977) ^ key))) - 0.5;
    (0..count as u64)
        .map(|body| {
            let degrees = [3, 6, 12, 1][body as usize % 4];
            let rank = 1 + mix(seed + body) as usize % degrees;
            let mut response = DMatrix::zeros(degrees, degrees);
            for k in 0..rank as u64 {
                let motion = DVector::from_fn(degrees, |i, _| unit(1000 * body + 50 * k + i as u64));
                response += &motion * motion.transpose() * 10f64.powf(4.0 * unit(body + 77 * k));
            }
            let mut columns: Vec<Unknown> = (0..20u64)
                .map(|i| {
                    Unknown::Cell(unknowns[mix(seed ^ (body * 64 + i)) as usize % unknowns.len()].0 as u32)
                })
                .collect();
            columns.push(columns[3]);
            if !domain.shared.is_empty() {
                columns.push(Unknown::Shared((mix(body + seed) % domain.shared.len() as u64) as u32));
            }
            let forces = (0..columns.len() * degrees).map(|i| unit(5000 + 300 * body + i as u64)).collect();
            Columns { response, unknowns: columns, forces }
        })
        .collect()
}

fn couple<const D: usize>(domain: &mut Domain<D>, bodies: &[Columns]) {
    let mut couplings = Couplings::default();
    bodies.iter().for_each(|body| body.push_to(&mut couplings));
    domain.couplings = Some(couplings);
}

/// `L + Σ Jᵀ K J`, and the cell of each row.
fn dense<const D: usize>(domain: &Domain<D>, bodies: &[Columns]) -> (DMatrix<f64>, Vec<u32>) {
    let network = assemble(&domain.system());
    let size = network.matrix.rows();
    let mut matrix = DMatrix::zeros(size, size);
    for (&value, (i, j)) in &network.matrix {
        matrix[(i, j)] = value;
    }
    for body in bodies {
        let j = body.dense(&network.cells, size);
        matrix += j.transpose() * &body.response * j;
    }
    (matrix, network.cells)
}

/// The values of all unknowns.
fn vector<const D: usize>(cells: &[u32], field: &[f64], shared: &[f64]) -> DVector<f64> {
    let values = cells.iter().map(|&c| field[c as usize]).chain(shared.iter().copied());
    DVector::from_iterator(cells.len() + shared.len(), values)
}

fn solution_agrees_with_dense_algebra<const D: usize>(seed: u64, kind: PreconditionerKind) {
    let side = if D == 2 { 19 } else { 9 };
    let mut domain = random_domain::<D>(seed, side, 0.7, (mix(seed) % 4) as usize);
    let bodies = random_bodies(&domain, seed, 1 + seed as usize % 5);
    couple(&mut domain, &bodies);
    check_solution(&mut domain, &bodies, seed, kind);
}

/// Solves for a random right-hand side, and compares with an eigenvalue decomposition of the dense matrix. Null vectors are those
/// of the dense matrix: what the solver makes of the right-hand side must be orthogonal to them, and must not lack anything else.
fn check_solution<const D: usize>(
    domain: &mut Domain<D>,
    bodies: &[Columns],
    seed: u64,
    preconditioner: PreconditionerKind,
) -> SolveInfo {
    let (matrix, cells) = dense(domain, bodies);
    let assembled = assemble_with_bodies(&domain.system(), None);
    let largest = matrix.amax();
    for (&value, (i, j)) in &assembled.matrix {
        assert!((value - matrix[(i, j)]).abs() <= 1e-12 * largest, "{D}D seed {seed}: the exported matrix");
    }
    let eigen = matrix.clone().symmetric_eigen();
    let least = eigen.eigenvalues.min();
    assert!(least > -1e-10 * largest, "{D}D seed {seed}: positive semi-definite, {least:.1e}");
    let is_null = |k: usize| eigen.eigenvalues[k] < 1e-9;

    domain.random_rhs(seed);
    let asked = vector::<D>(&cells, domain.rhs.as_slice(), &domain.shared_rhs);
    let params =
        SolverParams { tolerance: 1e-10, max_iterations: 1000, preconditioner, ..Default::default() };
    let info = domain.solve(&mut Solver::new(), &params);
    assert!(info.converged, "{D}D seed {seed} {preconditioner:?}: {info:?}");
    let given = vector::<D>(&cells, domain.rhs.as_slice(), &domain.shared_rhs);
    let found = vector::<D>(&cells, domain.x.as_slice(), &domain.shared_x);
    let residual = (&given - &matrix * &found).norm() / given.norm();
    assert!(residual < 1e-9, "{D}D seed {seed}: residual {residual:.1e} of the dense matrix");

    let mut changed = &asked - &given;
    let mut expected = DVector::zeros(cells.len() + domain.shared.len());
    for k in 0..expected.len() {
        let mode = eigen.eigenvectors.column(k);
        if is_null(k) {
            assert!(mode.dot(&given).abs() < 1e-9 * given.norm(), "{D}D seed {seed}: compatible");
        } else {
            expected += mode * (mode.dot(&given) / eigen.eigenvalues[k]);
        }
    }
    // What was taken from the right-hand side lies on components; where nothing is null, nothing was taken.
    let nulls = (0..expected.len()).filter(|&k| is_null(k)).count();
    let unlinked = (0..domain.shared.len()).filter(|&n| domain.shared.links(n).next().is_none()).count();
    if nulls == unlinked {
        (0..domain.shared.len())
            .for_each(|n| changed[cells.len() + n] *= f64::from(domain.shared.links(n).next().is_some()));
        assert!(changed.norm() < 1e-12 * asked.norm(), "{D}D seed {seed}: the right-hand side is kept");
    }
    let mut error = &found - &expected;
    for k in (0..error.len()).filter(|&k| is_null(k)) {
        let mode = eigen.eigenvectors.column(k);
        error -= mode * mode.dot(&error);
    }
    let error = error.norm() / expected.norm();
    assert!(error < 1e-6, "{D}D seed {seed} {preconditioner:?}: error {error:.1e}");
    info
}

#[test]
fn solutions_agree_with_dense_algebra_2d() {
    for seed in 0..30 {
        solution_agrees_with_dense_algebra::<2>(seed, PreconditionerKind::Multigrid);
    }
    for seed in 30..34 {
        solution_agrees_with_dense_algebra::<2>(seed, PreconditionerKind::Jacobi);
        solution_agrees_with_dense_algebra::<2>(seed, PreconditionerKind::MinimalResiduals);
    }
}

#[test]
fn solutions_agree_with_dense_algebra_3d() {
    for seed in 0..12 {
        solution_agrees_with_dense_algebra::<3>(seed, PreconditionerKind::Multigrid);
    }
}

fn preconditioner_is_symmetric_and_positive<const D: usize>(seed: u64) {
    let side = if D == 2 { 45 } else { 20 };
    let mut domain = random_domain::<D>(seed, side, 0.3, (seed % 5) as usize);
    let bodies = random_bodies(&domain, seed, 1 + seed as usize % 7);
    couple(&mut domain, &bodies);
    check_preconditioner(domain, seed, 1 + seed as usize % 3, PreconditionerKind::Multigrid);
}

#[test]
fn preconditioner_is_symmetric_and_positive_2d() {
    (0..20).for_each(preconditioner_is_symmetric_and_positive::<2>);
}

#[test]
fn preconditioner_is_symmetric_and_positive_3d() {
    (0..8).for_each(preconditioner_is_symmetric_and_positive::<3>);
}

/// A ball: centre and radius, in cells.
#[derive(Clone, Copy)]
pub struct Ball<const D: usize> {
    pub centre: [f64; D],
    pub radius: f64,
}

impl<const D: usize> Ball<D> {
    fn distance(&self, x: [f64; D]) -> f64 {
        (0..D).map(|k| (x[k] - self.centre[k]).powi(2)).sum::<f64>().sqrt() - self.radius
    }

    /// Share of a face that it closes.
    fn closed(&self, axis: usize, face: [i32; D]) -> f32 {
        let x = std::array::from_fn(|k| f64::from(face[k]) + if k == axis { 0.0 } else { 0.5 });
        let share = (0.5 - self.distance(x)).clamp(0.0, 1.0) as f32;
        if share > 0.98 { 1.0 } else { share }
    }

    /// Response of a rigid body, in units of the liquid's density and of cells.
    fn response(&self, density: f64) -> DMatrix<f64> {
        use std::f64::consts::PI;
        let volume = if D == 2 { PI * self.radius.powi(2) } else { 4.0 / 3.0 * PI * self.radius.powi(3) };
        let inertia = self.radius.powi(2) * if D == 2 { 0.5 } else { 0.4 };
        let spins = D * (D - 1) / 2;
        let mass = density * volume;
        let inverse = |k: usize| 1.0 / if k < D { mass } else { mass * inertia };
        DMatrix::from_diagonal(&DVector::from_fn(D + spins, |k, _| inverse(k)))
    }

    /// Velocity across an axis of the unit motions at the centre of a face.
    fn motion(&self, axis: usize, face: [i32; D]) -> Vec<f64> {
        let x = |k: usize| f64::from(face[k]) + if k == axis { 0.0 } else { 0.5 } - self.centre[k];
        let mut motion: Vec<f64> = (0..D).map(|k| f64::from(u8::from(k == axis))).collect();
        if D == 2 {
            motion.push(if axis == 0 { -x(1) } else { x(0) });
        } else {
            let r: [f64; 3] = std::array::from_fn(x);
            let mut e = [0.0; 3];
            e[axis] = 1.0;
            motion.extend((0..3).map(|k| r[(k + 1) % 3] * e[(k + 2) % 3] - r[(k + 2) % 3] * e[(k + 1) % 3]));
        }
        motion
    }
}

/// A tank with a free surface, a bubble as a shared node if `bubble`, and balls that float in it; they close the rest of the
/// faces that they touch.
pub fn tank_with_balls<const D: usize>(
    side: usize,
    bubble: Option<Ball<D>>,
    balls: &[Ball<D>],
    density: f64,
) -> Domain<D> {
    let n = side as i32;
    let closed = |axis: usize, face: [i32; D]| -> f32 {
        balls.iter().map(|ball| ball.closed(axis, face)).sum::<f32>()
    };
    let open = |axis: usize, face: [i32; D]| (1.0 - closed(axis, face)).max(0.0);
    let centre = |cell: [i32; D]| cell.map(|c| f64::from(c) + 0.5);
    let level = 0.8 * side as f64;
    let is_bubble = |cell: [i32; D]| bubble.is_some_and(|bubble| bubble.distance(centre(cell)) < 0.0);
    let matter = |cell: [i32; D]| match centre(cell) {
        x if balls.iter().any(|ball| ball.distance(x) < -1.0) => Matter::Closed,
        _ if is_bubble(cell) => Matter::Shared(0),
        x if x[1] > level + 2.0 * (0.3 * x[0]).sin() => Matter::Ground,
        _ => Matter::Full,
    };
    let inside = |axis: usize, face: [i32; D]| face[axis] > 0 && face[axis] < n;
    let theta = |cell: [i32; D], other: [i32; D]| match is_bubble(other) {
        true => 0.5,
        false => (0.05 + hash_unit(cell.iter().fold(3, |key, &c| 31 * key + c as u64))).min(1.0),
    };
    let mut domain = Domain::build(
        [side; D],
        matter,
        |axis, face| if inside(axis, face) { open(axis, face) } else { 0.0 },
        theta,
    );
    let mut couplings = Couplings::default();
    for ball in balls {
        let (mut unknowns, mut forces) = (Vec::new(), Vec::new());
        for cell in domain.cells() {
            let unknown = match matter(cell) {
                Matter::Full => Unknown::Cell(domain.index(cell) as u32),
                Matter::Shared(node) => Unknown::Shared(node as u32),
                _ => continue,
            };
            for axis in 0..D {
                for high in [0, 1] {
                    let mut face = cell;
                    face[axis] += high;
                    let share = ball.closed(axis, face);
                    if share > 0.0 && inside(axis, face) {
                        let share = share / closed(axis, face).max(1.0);
                        let sign = f64::from(2 * high - 1) * f64::from(share);
                        unknowns.push(unknown);
                        forces.extend(ball.motion(axis, face).iter().map(|value| sign * value));
                    }
                }
            }
        }
        couplings.push(&ball.response(density), &unknowns, &forces);
    }
    domain.couplings = Some(couplings);
    domain
}

fn iterations<const D: usize>(domain: &mut Domain<D>, tolerance: f64) -> usize {
    domain.random_rhs(3);
    for cell in domain.cells() {
        let (i, c) = (domain.index(cell), cell[1]);
        if domain.rhs[i] != 0.0 {
            domain.rhs[i] += (0.1 * f64::from(c)).cos();
        }
    }
    let params = SolverParams { tolerance, warm_start: false, ..Default::default() };
    let info = domain.solve(&mut Solver::new(), &params);
    assert!(info.converged && !info.fallback && info.outcome == Outcome::Converged, "{D}D: {info:?}");
    info.iterations
}

/// Iterations to 1e-5 and to 1e-8 are at most so many, for light bodies and heavy ones.
fn few_iterations<const D: usize>(side: usize, bubble: Option<Ball<D>>, balls: &[Ball<D>], most: [usize; 2]) {
    let mut plain = tank_with_balls(side, bubble, balls, 1.0);
    plain.couplings = None;
    let without = [1e-5, 1e-8].map(|tolerance| iterations(&mut plain, tolerance));
    for density in [0.001, 0.01, 0.1, 1.0, 10.0] {
        let mut domain = tank_with_balls(side, bubble, balls, density);
        let found = [1e-5, 1e-8].map(|tolerance| iterations(&mut domain, tolerance));
        println!("{D}D {side}, {} bodies of density {density}: {found:?}, walls {without:?}", balls.len());
        assert!(
            found[0] <= most[0] && found[1] <= most[1],
            "{D}D, {} bodies of density {density}: {found:?}, as walls {without:?}",
            balls.len()
        );
    }
}

/// Balls on a jittered lattice.
fn crowd<const D: usize>(side: usize, along: usize, radius: std::ops::Range<f64>) -> Vec<Ball<D>> {
    let (gap, mut balls) = (0.75 * side as f64 / along as f64, Vec::new());
    for index in 0..along.pow(D as u32) {
        let unit = |k: usize| f64::from(hash_unit(mix((7 * index + k) as u64)));
        let at = |k: usize| (index / along.pow(k as u32) % along) as f64 + 0.5;
        let radius = radius.start + (radius.end - radius.start) * unit(0);
        let jitter = (0.5 * gap - radius).max(0.0);
        let place = |k: usize| {
            2.0 + gap * at(k) + (unit(k + 1) - 0.5) * jitter + if k == 1 { 0.0 } else { 0.1 * side as f64 }
        };
        balls.push(Ball { centre: std::array::from_fn(place), radius });
    }
    balls
}

#[test]
fn one_body_of_any_density_takes_few_iterations_2d() {
    let ball = Ball { centre: [30.3, 25.6], radius: 8.0 };
    few_iterations(64, None, &[ball], [9, 13]);
    let bubble = Ball { centre: [38.7, 27.2], radius: 4.0 };
    few_iterations(64, Some(bubble), &[ball], [9, 13]);
}

#[test]
fn one_body_of_any_density_takes_few_iterations_3d() {
    let ball = Ball { centre: [15.3, 13.6, 16.2], radius: 6.0 };
    few_iterations(32, None, &[ball], [9, 13]);
    let bubble = Ball { centre: [21.9, 14.2, 16.8], radius: 3.0 };
    few_iterations(32, Some(bubble), &[ball], [9, 13]);
}

#[test]
fn many_bodies_take_few_iterations_2d() {
    few_iterations(64, None, &crowd::<2>(64, 3, 3.5..5.0), [11, 15]);
    few_iterations(64, None, &crowd::<2>(64, 10, 1.6..2.2), [18, 25]);
}

#[test]
fn many_bodies_take_few_iterations_3d() {
    few_iterations(32, None, &crowd::<3>(32, 2, 2.5..3.6), [11, 15]);
    few_iterations(32, None, &crowd::<3>(32, 4, 1.6..2.2), [18, 25]);
}

/// A tube along x, closed at both ends, with the parts of it that plugs leave: these reach from wall to wall and glide along it.
/// A part is open if its number is among `grounded`.
fn tube<const D: usize>(length: usize, plugs: &[i32], density: f64, grounded: &[usize]) -> Domain<D> {
    let width = if D == 2 { 6 } else { 4 };
    let mut cells = [width as usize; D];
    cells[0] = length;
    let part = |x: i32| plugs.iter().filter(|&&plug| plug < x).count();
    let matter = |cell: [i32; D]| match () {
        () if plugs.contains(&cell[0]) => Matter::Closed,
        () if grounded.contains(&part(cell[0])) && cell[1] == width - 1 => Matter::Ground,
        () => Matter::Full,
    };
    let is_inside = |axis: usize, face: [i32; D]| face[axis] > 0 && face[axis] < cells[axis] as i32;
    let mut domain =
        Domain::build(cells, matter, |axis, face| f32::from(u8::from(is_inside(axis, face))), |_, _| 0.5);
    let mut couplings = Couplings::default();
    for &plug in plugs {
        let beside = domain
            .cells()
            .into_iter()
            .filter(|&cell| (cell[0] - plug).abs() == 1 && matter(cell) == Matter::Full);
        let beside: Vec<[i32; D]> = beside.collect();
        let unknowns: Vec<Unknown> =
            beside.iter().map(|&cell| Unknown::Cell(domain.index(cell) as u32)).collect();
        let forces: Vec<f64> = beside.iter().map(|cell| f64::from(plug - cell[0])).collect();
        couplings.push(
            &DMatrix::from_element(1, 1, 1.0 / (density * f64::from(width).powi(D as i32 - 1))),
            &unknowns,
            &forces,
        );
    }
    domain.couplings = Some(couplings);
    domain
}

/// The bodies of a system as dense columns, with `K` folded into them.
fn bodies_of<const D: usize>(domain: &Domain<D>) -> Vec<Columns> {
    let couplings = domain.couplings.as_ref().expect("coupled");
    (0..couplings.len())
        .map(|body| {
            let rows = couplings.rows_of(body).len();
            let (unknowns, forces): (Vec<_>, Vec<_>) = couplings.columns(body).unzip();
            Columns { response: DMatrix::identity(rows, rows), unknowns, forces: forces.concat() }
        })
        .collect()
}

/// What plugs close off is not free: two parts with a plug between them are free together, and held if one of them is.
fn plugs_hold_what_they_close_off<const D: usize>() {
    for (plugs, grounded) in [
        (vec![], vec![]),
        (vec![13], vec![]),
        (vec![13], vec![0]),
        (vec![10, 11, 20], vec![]),
        (vec![10, 20], vec![2]),
        (vec![5, 7], vec![]),
        (vec![5, 7], vec![0]),
    ] {
        for density in [0.01, 1.0, 100.0] {
            let mut domain = tube::<D>(30, &plugs, density, &grounded);
            let bodies = bodies_of(&domain);
            let info = check_solution(&mut domain, &bodies, 5, PreconditionerKind::Multigrid);
            assert!(
                info.iterations <= 20 && !info.fallback,
                "{D}D, plugs at {plugs:?} of density {density}, open {grounded:?}: {} iterations",
                info.iterations
            );
            domain.random_rhs(9);
            check_preconditioner(domain, 3, 2, PreconditionerKind::Multigrid);
        }
    }
}

#[test]
fn plugs_hold_what_they_close_off_2d() {
    plugs_hold_what_they_close_off::<2>();
}

#[test]
fn plugs_hold_what_they_close_off_3d() {
    plugs_hold_what_they_close_off::<3>();
}
