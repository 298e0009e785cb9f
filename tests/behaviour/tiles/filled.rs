//! Coarse levels on which tiles are liquid like any other.

use glug::geometry::Solid;
use glug::linear::{LevelNetwork, Solver, SolverParams};

use super::dense::{lay, rules, wavy_tank};
use crate::tank::{Tank, noise};

/// Cells half as wide as tiles, and all that follow, are those of the same liquid without tiles.
fn coarse_levels_are_those_without_tiles<const D: usize>(side: usize) {
    let mut tank = wavy_tank::<D>(side, &rules(16, 3), 7);
    let tiled = tank.project().info;
    let mut plain = wavy_tank::<D>(side, &rules(16, 3), 7);
    plain.projection.tiling = None;
    let plain = plain.project().info;
    assert!(tiled.level_count > 3 && plain.level_count > 3, "{D}D: {tiled:?} {plain:?}");
    assert!(4 * tiled.levels[0] < 3 * plain.levels[0], "{D}D: {:?} {:?}", tiled.levels, plain.levels);
    for level in 3..tiled.level_count.min(plain.level_count) {
        assert_eq!(tiled.levels[level], plain.levels[level], "{D}D level {level}");
    }
    assert!(tiled.iterations <= plain.iterations + 2, "{D}D: {} {}", tiled.iterations, plain.iterations);
}

#[test]
fn coarse_levels_are_those_without_tiles_2d() {
    coarse_levels_are_those_without_tiles::<2>(128);
}

#[test]
fn coarse_levels_are_those_without_tiles_3d() {
    coarse_levels_are_those_without_tiles::<3>(64);
}

/// A solver that has solved the system a tank was last projected with.
fn solve_again<const D: usize>(tank: &Tank<D>) -> Solver<D> {
    let projection = &tank.projection;
    let (system, bodies) = (projection.system(&tank.blocks), projection.bodies());
    let (mut rhs, mut x) = (projection.rhs().clone(), tank.pressure.q.clone());
    let (mut shared_rhs, mut shared_x) = (projection.shared_rhs().to_vec(), projection.shared_q().to_vec());
    let mut solver = Solver::new();
    let (b, c) = (&mut shared_rhs, &mut shared_x);
    solver.solve(&system, bodies.as_ref(), &mut rhs, &mut x, b, c, &SolverParams::default(), None);
    solver
}

/// The coefficients of those levels are those without tiles too, but for a few links at corners where an aggregate
/// beside a tile has a single cell outside of it: these are off by an eighth at most.
fn coarse_coefficients_are_those_without_tiles<const D: usize>(side: usize) {
    let mut tiled = wavy_tank::<D>(side, &rules(16, 3), 7);
    tiled.project_to(1e-5);
    let mut plain = wavy_tank::<D>(side, &rules(16, 3), 7);
    plain.projection.tiling = None;
    plain.project_to(1e-5);
    let (tiled, plain) = (solve_again(&tiled), solve_again(&plain));
    let networks = (3..).map_while(|level| tiled.level_network(level).zip(plain.level_network(level)));
    let mut compared = 0;
    for (level, (tiled, plain)) in (3..).zip(networks) {
        let cells = |network: &LevelNetwork<D>| network.links.keys().copied().collect::<Vec<_>>();
        assert_eq!(cells(&tiled), cells(&plain), "{D}D level {level}: linked cells");
        assert_eq!(tiled.grounds.len(), plain.grounds.len(), "{D}D level {level}: cells with ground");
        for (cell, ground) in &tiled.grounds {
            let ratio = ground / plain.grounds[cell];
            assert!((ratio - 1.0).abs() < 1e-5, "{D}D level {level}: ground {ratio} at {cell:?}");
        }
        let mut alike = 0;
        for (pair, link) in &tiled.links {
            let ratio = link / plain.links[pair];
            alike += usize::from((ratio - 1.0).abs() < 1e-5);
            assert!(ratio > 0.85 && ratio < 1.06, "{D}D level {level}: link {ratio} between {pair:?}");
        }
        let count = tiled.links.len();
        assert!(100 * alike >= 95 * count, "{D}D level {level}: {alike} of {count} links alike");
        compared += count;
    }
    assert!(compared > 100, "{D}D: only {compared} links");
}

#[test]
fn coarse_coefficients_are_those_without_tiles_2d() {
    coarse_coefficients_are_those_without_tiles::<2>(128);
}

#[test]
fn coarse_coefficients_are_those_without_tiles_3d() {
    coarse_coefficients_are_those_without_tiles::<3>(64);
}

/// A void in the middle of a tile: the liquid around it and that around the tile have nothing to do with each other, as
/// no net flow passes through a tile. The outer one has no surface, and its pressure is known but for a constant.
fn a_tile_around_a_void_does_not_connect<const D: usize>(side: usize) {
    let mut tank = Tank::<D>::new([side; D], 1.0 / side as f64, Vec::<Solid<D>>::new());
    // In the middle of a tile.
    tank.fill(|x| (1.6 - x.map(|c| c * side as f64 - 20.5).norm()) / side as f64);
    tank.set_velocity(noise::<D>);
    tank.label_cells();
    lay(&mut tank, &rules(16, 1));
    let solved = tank.project_to(1e-9);
    let tiling = tank.projection.tiling.as_ref().expect("laid out");
    let around: Vec<_> =
        tiling.tiles.iter().filter(|tile| tile.low == [13; D] && tile.high == [28; D]).collect();
    assert!(around.len() == 1 && around[0].cells < 15usize.pow(D as u32), "{D}D: {around:?}");
    assert!(solved.info.level_count > 3, "{D}D: {:?}", solved.info);
    assert_eq!(solved.info.closed_components, 1, "{D}D: {:?}", solved.info);
    assert!(solved.info.converged && solved.info.iterations <= 30, "{D}D: {:?}", solved.info);
    assert!(tank.worst_outflow() < 2e-6, "{D}D: outflow {}", tank.worst_outflow());
}

#[test]
fn a_tile_around_a_void_does_not_connect_2d() {
    a_tile_around_a_void_does_not_connect::<2>(128);
}

#[test]
fn a_tile_around_a_void_does_not_connect_3d() {
    a_tile_around_a_void_does_not_connect::<3>(64);
}
