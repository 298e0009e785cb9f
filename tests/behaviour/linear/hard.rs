//! Iterations where coarse levels have a hard time: mazes, slugs and bubbles in tubes, tanks full of bubbles.

use glug::linear::{PreconditionerKind, Solver, SolverParams};

use super::domain::Domain;
use super::scenery::{Maze, Pack, bubbly_tank, tube};

/// The solve must reach 1e-5 in `limit` iterations.
fn expect<const D: usize>(domain: &mut Domain<D>, limit: usize, name: impl Fn() -> String) {
    let params = SolverParams { warm_start: false, ..Default::default() };
    let info = domain.solve(&mut Solver::new(), &params);
    assert!(
        info.converged && info.iterations <= limit && !info.fallback,
        "{D}D {}: {info:?}, {} shared nodes",
        name(),
        domain.shared.len()
    );
}

/// Rooms of every small width, in three mazes each, shifted against the blocks; all liquid, and with every fourth or
/// ninth room a bubble.
fn random_mazes_take_few_iterations<const D: usize>(side: i32) {
    for width in 1..=6 {
        for (seed, wall, offset) in [(0, 1, 0), (1, 2, 4), (2, 1, 3)] {
            let maze = Maze::<D>::dig((side / (width + wall)) as usize, width, wall, offset, seed);
            for period in [0, 4, 9] {
                let closed = period == 4 && seed == 1;
                expect(&mut maze.fill(period, closed, seed), 14, || {
                    format!("maze, width {width}, seed {seed}, bubbles every {period} rooms")
                });
            }
        }
    }
}

#[test]
fn random_mazes_take_few_iterations_2d() {
    random_mazes_take_few_iterations::<2>(200);
}

#[test]
fn random_mazes_take_few_iterations_3d() {
    random_mazes_take_few_iterations::<3>(48);
}

/// Slugs between bubbles, long and short, the far end open or closed.
fn tubes_take_few_iterations<const D: usize>(side: i32, slugs: &[(i32, i32)]) {
    for width in 1..=7 {
        for &(slug, gap) in slugs {
            for (offset, closed) in [(0, false), (4, false), (4, true)] {
                expect(&mut tube::<D>(side, width, slug, gap, offset, closed, 1), 14, || {
                    format!("tube, width {width}, slugs {slug}, gaps {gap}, offset {offset}, closed {closed}")
                });
            }
        }
    }
}

#[test]
fn tubes_take_few_iterations_2d() {
    tubes_take_few_iterations::<2>(192, &[(0, 0), (20, 9), (60, 1), (5, 3)]);
}

#[test]
fn tubes_take_few_iterations_3d() {
    tubes_take_few_iterations::<3>(56, &[(0, 0), (20, 9), (60, 1), (5, 3)]);
}

#[test]
fn bubbly_tanks_take_few_iterations() {
    for closed in [false, true] {
        for pack in [Pack::Overlapping, Pack::Apart, Pack::Touching] {
            for (count, radii) in [(500, [0.6, 6.0]), (500, [1.5, 3.5]), (40, [2.0, 10.0]), (3, [10.0, 16.0])]
            {
                expect(&mut bubbly_tank::<3>(64, count, radii, pack, closed, 4, 1), 12, || {
                    format!("{pack:?} bubbles, {count} of {radii:?} cells, closed {closed}")
                });
            }
            expect(&mut bubbly_tank::<2>(256, 500, [0.6, 6.0], pack, closed, 4, 1), 12, || {
                format!("{pack:?} bubbles, closed {closed}")
            });
        }
        let half = bubbly_tank::<2>(200, 1, [60.0, 60.0], Pack::Apart, closed, 4, 3);
        expect(&mut { half }, 11, || format!("one large bubble, closed {closed}"));
    }
}

#[test]
fn the_papers_way_with_bubbles_takes_more_iterations() {
    let mut domain = bubbly_tank::<3>(40, 12, [2.0, 6.0], Pack::Apart, false, 4, 1);
    let mut count = |preconditioner| {
        let params = SolverParams { preconditioner, warm_start: false, ..Default::default() };
        let info = domain.solve(&mut Solver::new(), &params);
        assert!(info.converged, "{info:?}");
        info.iterations
    };
    let ours = count(PreconditionerKind::Multigrid);
    let papers = count(PreconditionerKind::BubblePalindrome);
    let diagonal = count(PreconditionerKind::Jacobi);
    assert!(ours < papers && 2 * papers < diagonal, "{ours}, {papers}, {diagonal}");
}
