//! Domains with a meaning: tanks, mazes, spray, closed containers, corner cases.

use glug::grid::Activation;
use glug::linear::{Outcome, PreconditionerKind, SolveInfo, Solver, SolverParams};
use glug::math::{flatten, hash_unit, power, unflatten};

use super::domain::{Domain, Matter, tank};

fn solve<const D: usize>(domain: &mut Domain<D>, tolerance: f64) -> SolveInfo {
    let params = SolverParams { tolerance, warm_start: false, ..Default::default() };
    let info = domain.solve(&mut Solver::new(), &params);
    assert!(info.converged, "{D}D: {info:?}");
    info
}

/// Iterations to 1e-5 and to 1e-8.
fn iterations<const D: usize>(domain: &mut Domain<D>) -> (usize, usize) {
    let coarse = solve(domain, 1e-5).iterations;
    (coarse, solve(domain, 1e-8).iterations)
}

fn tank_takes_few_iterations<const D: usize>(n: usize, bubbles: usize, shift: i32, limit: (usize, usize)) {
    let mut domain = tank::<D>(n, bubbles, shift);
    domain.drop_rhs();
    let found = iterations(&mut domain);
    assert!(
        found.0 <= limit.0 && found.1 <= limit.1,
        "{D}D tank of {n} with {bubbles} pockets, shifted by {shift}: {found:?} iterations"
    );
}

#[test]
fn tank_takes_few_iterations_2d() {
    tank_takes_few_iterations::<2>(256, 0, 0, (9, 13));
    tank_takes_few_iterations::<2>(250, 6, 3, (10, 14));
}

#[test]
fn tank_takes_few_iterations_3d() {
    tank_takes_few_iterations::<3>(64, 0, 0, (9, 13));
    tank_takes_few_iterations::<3>(64, 8, 0, (10, 14));
    tank_takes_few_iterations::<3>(61, 8, 3, (10, 14));
}

/// A tube of width `width` that winds through a square, with a ground at its far end.
fn serpentine(n: i32, width: i32) -> Domain<2> {
    let pitch = width + 2;
    let mut domain = Domain::build(
        [n as usize; 2],
        |[x, y]| {
            let (lane, inside) = (y / pitch, y % pitch < width);
            let turn = if lane % 2 == 0 { x >= n - width } else { x < width };
            let full = (lane + 1) * pitch <= n && (inside || (turn && (lane + 2) * pitch <= n));
            if full { Matter::Full } else { Matter::Closed }
        },
        |_, _| 1.0,
        |_, _| 1.0,
    );
    let lanes = n / pitch;
    let last = (lanes - 1) * pitch;
    let end = if lanes % 2 == 1 { n - 1 } else { 0 };
    for y in last..last + width {
        let cell = domain.index([end, y]);
        domain.ground[cell] = 2.0;
        domain.area[cell] = 1.0;
    }
    for y in 0..width {
        let cell = domain.index([0, y]);
        domain.rhs[cell] = 1.0;
    }
    domain.finish();
    domain
}

#[test]
fn maze_takes_few_iterations() {
    for width in [2, 5, 7] {
        let mut domain = serpentine(256, width);
        let found = iterations(&mut domain);
        assert!(found.0 <= 14 && found.1 <= 21, "width {width}: {found:?} iterations");
    }
}

/// A rod of so many cells across, with a ground at its far end.
fn rod<const D: usize>(length: usize, holds: impl Fn([i32; D]) -> bool) -> Domain<D> {
    let mut cells = [12; D];
    cells[0] = length;
    let mut domain = Domain::build(
        cells,
        |cell| if holds(cell) { Matter::Full } else { Matter::Closed },
        |_, _| 1.0,
        |_, _| 1.0,
    );
    for cell in domain.cells().into_iter().filter(|&cell| cell[0] as usize + 1 == length && holds(cell)) {
        let cell = domain.index(cell);
        (domain.ground[cell], domain.area[cell]) = (2.0, 1.0);
    }
    domain.random_rhs(3);
    domain.finish();
    domain
}

/// Elimination is for corridors; a jet of water has about as few links for its cells, but would take long.
#[test]
fn corridors_are_eliminated_and_jets_are_not() {
    let mut corridor = rod::<3>(100, |[_, y, z]| y < 3 && z < 3);
    let info = solve(&mut corridor, 1e-8);
    assert_eq!((info.level_count, info.levels[0]), (1, 900), "{info:?}");
    let mut jet = rod::<3>(60, |[_, y, z]| (2 * y - 11).pow(2) + (2 * z - 11).pow(2) < 45);
    let info = solve(&mut jet, 1e-8);
    assert!(info.levels[0] > 1500 && info.level_count > 2 && info.iterations <= 13, "{info:?}");
}

fn sums_vanish<const D: usize>(domain: &Domain<D>, in_component: impl Fn([i32; D]) -> bool) {
    let cells: Vec<_> = domain.cells().into_iter().filter(|&c| in_component(c)).collect();
    let sum = |values: &[f64]| cells.iter().map(|&c| values[domain.index(c)]).sum::<f64>();
    let size = |values: &[f64]| cells.iter().map(|&c| values[domain.index(c)].abs()).sum::<f64>();
    for (name, values) in [("right-hand side", domain.rhs.as_slice()), ("solution", domain.x.as_slice())] {
        assert!(sum(values).abs() <= 1e-11 * size(values), "{D}D: sum of the {name} {:.1e}", sum(values));
    }
}

/// A box full to the brim, walls all around, `walls` of it along x.
fn closed_tanks<const D: usize>(side: i32, walls: &[i32]) -> Domain<D> {
    Domain::build(
        [side as usize; D],
        |_| Matter::Full,
        |axis, face| if axis == 0 && walls.contains(&face[0]) { 0.0 } else { 1.0 },
        |_, _| 1.0,
    )
}

fn closed_tanks_converge_without_drift<const D: usize>() {
    let side = if D == 2 { 100 } else { 33 };
    for walls in [&[][..], &[13], &[8, 21]] {
        let mut domain = closed_tanks::<D>(side, walls);
        domain.random_rhs(5); // not compatible
        let info = solve(&mut domain, 1e-8);
        assert_eq!(info.closed_components, walls.len() + 1);
        assert!(info.iterations <= 13, "{D}D with {} walls: {info:?}", walls.len());
        let bounds: Vec<i32> =
            std::iter::once(0).chain(walls.iter().copied()).chain(std::iter::once(side)).collect();
        for pair in bounds.windows(2) {
            sums_vanish(&domain, |cell| (pair[0]..pair[1]).contains(&cell[0]));
        }
        // A guess with a large constant in it neither hurts nor stays.
        let expected = domain.x.clone();
        domain.change_guess(|x| x + 1e3);
        let params = SolverParams { tolerance: 1e-8, ..Default::default() };
        let info = domain.solve(&mut Solver::new(), &params);
        assert!(info.converged && info.iterations <= 2, "{D}D: {info:?}");
        let worst = expected.as_slice().iter().zip(domain.x.as_slice()).map(|(a, b)| (a - b).abs());
        assert!(worst.fold(0.0, f64::max) < 1e-6, "{D}D: the constant went away");
    }
}

#[test]
fn closed_tanks_converge_without_drift_2d() {
    closed_tanks_converge_without_drift::<2>();
}

#[test]
fn closed_tanks_converge_without_drift_3d() {
    closed_tanks_converge_without_drift::<3>();
}

fn tiny_closed_parts_are_found<const D: usize>() {
    // Pairs of cells, each its own component: they vanish on the way to the coarsest level.
    let mut domain = Domain::<D>::build(
        [24; D],
        |cell| {
            if cell[1..].iter().all(|c| c % 3 == 0) && cell[0] % 4 < 2 {
                Matter::Full
            } else {
                Matter::Closed
            }
        },
        |_, _| 1.0,
        |_, _| 1.0,
    );
    domain.random_rhs(1);
    let info = solve(&mut domain, 1e-10);
    assert_eq!(info.closed_components, info.levels[0] / 2, "{D}D: {info:?}");
    sums_vanish(&domain, |cell| cell[0] < 4 && cell[1..].iter().all(|&c| c == 0));
}

#[test]
fn tiny_closed_parts_are_found_2d() {
    tiny_closed_parts_are_found::<2>();
}

#[test]
fn tiny_closed_parts_are_found_3d() {
    tiny_closed_parts_are_found::<3>();
}

fn closed_air_over_spray_is_one_more_unknown<const D: usize>() {
    // Everything that is not fluid belongs to one shared node: singular, thousands of droplets hang on it.
    let side = if D == 2 { 96 } else { 32 };
    let mut domain = Domain::<D>::build(
        [side; D],
        |cell| {
            let key = cell.iter().fold(0u64, |k, &c| k * 1009 + c as u64);
            let full = cell[1] < side as i32 / 3 || hash_unit(key) < 0.08;
            if full { Matter::Full } else { Matter::Shared(0) }
        },
        |_, _| 1.0,
        |_, _| 0.3,
    );
    domain.random_rhs(3);
    let info = solve(&mut domain, 1e-8);
    assert_eq!(info.closed_components, 1, "{D}D");
    assert!(info.iterations <= 16, "{D}D: {info:?}");
}

#[test]
fn closed_air_over_spray_is_one_more_unknown_2d() {
    closed_air_over_spray_is_one_more_unknown::<2>();
}

#[test]
fn closed_air_over_spray_is_one_more_unknown_3d() {
    closed_air_over_spray_is_one_more_unknown::<3>();
}

fn spray_is_solved_at_once<const D: usize>() {
    let side = if D == 2 { 200 } else { 48 };
    let mut domain = Domain::<D>::build(
        [side; D],
        |cell| if cell.iter().all(|c| c % 2 == 1) { Matter::Full } else { Matter::Ground },
        |_, _| 1.0,
        |from, _| 0.1 + 0.9 * hash_unit(from[0] as u64),
    );
    domain.random_rhs(2);
    let info = solve(&mut domain, 1e-8);
    assert!(info.iterations <= 2, "{D}D: {info:?}");
}

#[test]
fn spray_is_solved_at_once_2d() {
    spray_is_solved_at_once::<2>();
}

#[test]
fn spray_is_solved_at_once_3d() {
    spray_is_solved_at_once::<3>();
}

fn corner_cases_are_answered<const D: usize>() {
    let params = SolverParams::default();
    let mut solver = Solver::new();

    let mut nothing = Domain::<D>::empty([16; D], |_| true);
    nothing.finish();
    let info = nothing.solve(&mut solver, &params);
    assert_eq!((info.outcome, info.iterations, info.levels[0]), (Outcome::AlreadySolved, 0, 0));

    let mut one = Domain::<D>::empty([16; D], |_| true);
    let cell = one.index([5; D]);
    one.ground[cell] = 4.0;
    one.area[cell] = 1.0;
    one.rhs[cell] = 2.0;
    one.finish();
    let info = one.solve(&mut solver, &params);
    assert!(info.converged, "{D}D: {info:?}");
    assert!((one.x[cell] - 0.5).abs() < 1e-6, "{D}D: one cell");

    let mut tank = tank::<D>(24, 1, 0);
    tank.change_guess(|_| 3.0);
    tank.shared_x.fill(3.0);
    let info = tank.solve(&mut solver, &params);
    assert_eq!(info.outcome, Outcome::AlreadySolved, "{D}D: nothing to do");
    assert!(
        tank.x.as_slice().iter().all(|&x| x == 0.0),
        "{D}D: a zero right-hand side gives zero, not the guess"
    );

    tank.drop_rhs();
    tank.change_guess(|_| 1e6);
    tank.shared_x.fill(f64::NAN);
    let info = tank.solve(&mut solver, &params);
    assert!(info.converged, "{D}D: a bad guess is dropped: {info:?}");
    let outside = tank.unknowns().iter().fold(tank.x.clone(), |mut x, &(cell, _)| {
        x[cell] = 0.0;
        x
    });
    assert!(outside.as_slice().iter().all(|&x| x == 0.0), "{D}D: only unknowns have values");
    let info = tank.solve(&mut solver, &params);
    assert_eq!((info.outcome, info.iterations), (Outcome::AlreadySolved, 0), "{D}D: a good guess is kept");

    let stop = std::sync::atomic::AtomicBool::new(true);
    tank.change_guess(|_| 0.0);
    let (mut rhs, mut x) = (tank.rhs.clone(), tank.x.clone());
    let (mut shared_rhs, mut shared_x) = (tank.shared_rhs.clone(), vec![0.0]);
    let system = tank.system();
    let info =
        solver.solve(&system, None, &mut rhs, &mut x, &mut shared_rhs, &mut shared_x, &params, Some(&stop));
    assert_eq!((info.outcome, info.iterations), (Outcome::Stopped, 0));

    let info = tank.solve(&mut solver, &SolverParams { floor: 1e9, ..params });
    assert_eq!((info.outcome, info.iterations, info.converged), (Outcome::AlreadySolved, 0, true));
    let info = tank.solve(&mut solver, &SolverParams { max_iterations: 2, tolerance: 1e-10, ..params });
    assert_eq!((info.outcome, info.iterations, info.converged), (Outcome::IterationLimit, 2, false));
    let cell = tank.unknowns()[7].0;
    tank.rhs[cell] = f64::INFINITY;
    let info = tank.solve(&mut solver, &params);
    assert_eq!((info.outcome, info.converged), (Outcome::NonFinite, false), "{D}D");
    assert!(tank.x.as_slice().iter().all(|&x| x == 0.0), "{D}D");
}

#[test]
fn corner_cases_are_answered_2d() {
    corner_cases_are_answered::<2>();
}

#[test]
fn corner_cases_are_answered_3d() {
    corner_cases_are_answered::<3>();
}

fn blocks_beyond_the_domain_are_like_any_other<const D: usize>() {
    // The same box of cells inside the domain, and partly in the cells stored around it.
    let solve_at = |offset: i32| {
        let mut domain = Domain::<D>::empty([16; D], |_| true);
        let mut marks = Activation::default();
        domain.blocks.begin(&mut marks);
        let blocks: Vec<[i32; D]> =
            (0..power(3, D)).map(|i| unflatten::<D>(i, 3).map(|c| c as i32)).collect();
        blocks.iter().for_each(|&coords| domain.blocks.mark(&mut marks, coords));
        domain.blocks.activate(&marks);
        domain.resize();
        let cells: Vec<[i32; D]> =
            (0..power(16, D)).map(|i| unflatten::<D>(i, 16).map(|c| c as i32)).collect();
        let place = |cell: [i32; D]| cell.map(|c| c + offset);
        for &cell in &cells {
            let here = domain.index(place(cell));
            for (axis, link) in domain.link.iter_mut().enumerate() {
                link[here] = if cell[axis] > 0 { 1.0 } else { 0.0 };
            }
            if cell[1] == 15 {
                domain.ground[here] = 2.0;
                domain.area[here] = 1.0;
            }
            domain.rhs[here] = f64::from(hash_unit(flatten(cell.map(|c| c as usize), 16) as u64));
        }
        domain.live.refill(domain.blocks.slots(), |slot| domain.rhs.block(slot).iter().any(|&b| b != 0.0));
        solve(&mut domain, 1e-10);
        cells.iter().map(|&cell| domain.x[domain.index(place(cell))]).collect::<Vec<_>>()
    };
    let (inside, across) = (solve_at(0), solve_at(-4));
    let size = inside.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let worst = inside.iter().zip(&across).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-8 * size, "{D}D: differs by {worst:.1e} of {size:.1e}");
}

#[test]
fn blocks_beyond_the_domain_are_like_any_other_2d() {
    blocks_beyond_the_domain_are_like_any_other::<2>();
}

#[test]
fn blocks_beyond_the_domain_are_like_any_other_3d() {
    blocks_beyond_the_domain_are_like_any_other::<3>();
}

fn units_do_not_matter<const D: usize>() {
    let solve_scaled = |link: f32, rhs: f64| {
        let mut domain = tank::<D>(32, 2, 0);
        domain.drop_rhs();
        for field in domain.link.iter_mut().chain([&mut domain.ground, &mut domain.area]) {
            field.as_mut_slice().iter_mut().for_each(|g| *g *= link);
        }
        let mut shared = glug::linear::SharedNodes::default();
        for node in 0..domain.shared.len() {
            shared.push_node(domain.shared.weight(node));
            for (cell, g, area) in domain.shared.links(node) {
                shared.push_link(cell, g * link, area * link);
            }
        }
        domain.shared = shared;
        domain.rhs.as_mut_slice().iter_mut().chain(&mut domain.shared_rhs).for_each(|b| *b *= rhs);
        let info = solve(&mut domain, 1e-8);
        let factor = f64::from(link) / rhs;
        (info.iterations, domain.x.as_slice().iter().map(|x| x * factor).collect::<Vec<_>>())
    };
    let plain = solve_scaled(1.0, 1.0);
    for (link, rhs) in [(1.0, 1e-30), (2.0f32.powi(-20), 1.0), (2.0f32.powi(15), 1e25)] {
        let scaled = solve_scaled(link, rhs);
        assert_eq!(scaled.0, plain.0, "{D}D: links times {link:e}, right-hand side times {rhs:e}");
        let size = plain.1.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let worst = scaled.1.iter().zip(&plain.1).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5 * size, "{D}D: differs by {worst:.1e} of {size:.1e}");
    }
}

#[test]
fn units_do_not_matter_2d() {
    units_do_not_matter::<2>();
}

#[test]
fn units_do_not_matter_3d() {
    units_do_not_matter::<3>();
}

#[test]
fn references_need_many_more_iterations() {
    let mut domain = tank::<3>(40, 0, 0);
    domain.drop_rhs();
    let count = |domain: &mut Domain<3>, preconditioner| {
        let params =
            SolverParams { preconditioner, warm_start: false, max_iterations: 2000, ..Default::default() };
        let info = domain.solve(&mut Solver::new(), &params);
        assert!(info.converged, "{info:?}");
        info.iterations
    };
    let [multigrid, incomplete, jacobi] =
        [PreconditionerKind::Multigrid, PreconditionerKind::IncompleteCholesky, PreconditionerKind::Jacobi]
            .map(|kind| count(&mut domain, kind));
    assert!(multigrid * 3 < incomplete && incomplete < jacobi, "{multigrid}, {incomplete}, {jacobi}");
}

fn poisoned_multigrid_hands_over_to_the_diagonal<const D: usize>() {
    let side = if D == 2 { 96 } else { 20 };
    let mut domain = tank::<D>(side, 1, 0);
    domain.drop_rhs();
    let params = SolverParams { warm_start: false, ..Default::default() };
    assert!(!domain.solve(&mut Solver::new(), &params).fallback, "{D}D: healthy");
    // Grounds whose sum over an aggregate no f32 can hold: every coarse level is infinite, the system itself is not.
    for (cell, _) in domain.unknowns().into_iter().take(100) {
        domain.ground[cell] = 2e38;
        domain.area[cell] = 2e38;
    }
    let mut solver = Solver::new();
    let info = domain.solve(&mut solver, &params);
    assert!(info.fallback && info.converged && info.outcome == Outcome::Converged, "{D}D: {info:?}");
    assert!(info.relative_residual <= 1.01e-5 && info.iterations < 1000, "{D}D: {info:?}");
    assert!(domain.x.as_slice().iter().all(|x| x.is_finite()), "{D}D");
    // The next solve is not affected.
    let mut healthy = tank::<D>(side, 1, 0);
    healthy.drop_rhs();
    let info = healthy.solve(&mut solver, &params);
    assert!(info.converged && !info.fallback, "{D}D: {info:?}");
}

#[test]
fn poisoned_multigrid_hands_over_to_the_diagonal_2d() {
    poisoned_multigrid_hands_over_to_the_diagonal::<2>();
}

#[test]
fn poisoned_multigrid_hands_over_to_the_diagonal_3d() {
    poisoned_multigrid_hands_over_to_the_diagonal::<3>();
}
