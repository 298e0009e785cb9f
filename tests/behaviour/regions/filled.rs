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

/// The network of a level of the system that a tank was last projected with.
fn network_of<const D: usize>(tank: &Tank<D>, level: usize) -> LevelNetwork<D> {
    let projection = &tank.projection;
    let (system, bodies) = (projection.system(&tank.blocks), projection.bodies());
    let (mut rhs, mut x) = (projection.rhs().clone(), projection.q.clone());
    let (mut shared_rhs, mut shared_x) = (projection.shared_rhs().to_vec(), projection.shared_q().to_vec());
    let mut solver = Solver::new();
    let params = SolverParams::default();
    let (b, c) = (&mut shared_rhs, &mut shared_x);
    solver.solve(&system, bodies.as_ref(), &mut rhs, &mut x, b, c, &params, None);
    solver.level_network(level).expect("so many levels")
}

/// The coefficients of those levels are those without tiles too.
fn coarse_coefficients_are_those_without_tiles<const D: usize>(side: usize) {
    let mut tiled = wavy_tank::<D>(side, &rules(16, 3), 7);
    tiled.project_to(1e-5);
    let mut plain = wavy_tank::<D>(side, &rules(16, 3), 7);
    plain.projection.tiling = None;
    plain.project_to(1e-5);
    for level in 3..5 {
        let (tiled, plain) = (network_of(&tiled, level), network_of(&plain, level));
        let cells = |network: &LevelNetwork<D>| network.links.keys().copied().collect::<Vec<_>>();
        assert_eq!(cells(&tiled), cells(&plain), "{D}D level {level}: linked cells");
        assert_eq!(tiled.grounds.len(), plain.grounds.len(), "{D}D level {level}: cells with ground");
        let ratios = tiled.links.iter().map(|(pair, link)| link / plain.links[pair]);
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        let alike = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() < 1e-4).count();
        println!(
            "{D}D level {level}: {} links, {alike} alike, ratios {:?} to {:?}",
            ratios.len(),
            ratios[0],
            ratios.last()
        );
        let grounds = tiled.grounds.iter().map(|(cell, ground)| ground / plain.grounds[cell]);
        let worst = grounds.map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max);
        println!("{D}D level {level}: {} grounds, off by {worst:.1e}", plain.grounds.len());
        assert!(2 * alike > ratios.len(), "{D}D level {level}: {alike} of {} links", ratios.len());
    }
}

#[test]
fn coarse_coefficients_are_those_without_tiles_2d() {
    coarse_coefficients_are_those_without_tiles::<2>(128);
}

#[test]
fn coarse_coefficients_are_those_without_tiles_3d() {
    coarse_coefficients_are_those_without_tiles::<3>(64);
}

/// A void in the middle of a tile: the liquid around it and that around the tile have nothing to do with each other, as no
/// net flow passes through a tile. The outer one has no surface, and its pressure is known but for a constant.
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
