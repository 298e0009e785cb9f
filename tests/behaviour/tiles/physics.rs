//! What a projection with tiles must never do, and what it must always do.

use glug::geometry::{Label, Solid};
use glug::grid::block_cells;
use glug::linear::SolverParams;
use glug::tiles::{TileRules, TileSize};

use super::dense::{lattice, lay, rules, wavy_tank};
use crate::tank::Tank;

/// A flat pool at a level that is not that of any cell, with gravity.
fn pool<const D: usize>(side: usize, rules: &TileRules) -> Tank<D> {
    let mut tank = Tank::<D>::new([side; D], 1.0 / side as f64, Vec::<Solid<D>>::new());
    tank.fill(|x| x[1] - 0.8137);
    tank.impulse[1] = -0.3;
    tank.label_cells();
    lay(&mut tank, rules);
    tank
}

fn still_water_stays_still<const D: usize>(side: usize, size: TileSize) {
    let rules = lattice(size, 3);
    let mut tank = pool::<D>(side, &rules);
    let tiles = tank.projection.tiling.as_ref().map_or(0, |tiling| tiling.tiles.len());
    assert!(tiles > 3, "{D}D: {tiles} tiles");
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D: {:?}", solved.info);
    // Velocities of 0.3 m/s are stored with eight digits.
    assert!(tank.fastest() < 5e-8, "{D}D {size:?}: {} m/s", tank.fastest());
}

#[test]
fn still_water_stays_still_2d() {
    still_water_stays_still::<2>(64, TileSize { least: 8, most: 8 });
    still_water_stays_still::<2>(128, TileSize { least: 16, most: 16 });
    still_water_stays_still::<2>(200, TileSize { least: 8, most: 32 });
}

#[test]
fn still_water_stays_still_3d() {
    still_water_stays_still::<3>(40, TileSize { least: 8, most: 8 });
}

/// A velocity that is affine without divergence is what the tiles find in it. All values are small multiples of a
/// power of two, so that they are stored without rounding.
fn affine_fields_are_reproduced<const D: usize>(side: usize) {
    let mut tank = pool::<D>(side, &rules(16, 2));
    let gradient = |axis: usize, k: usize| match (axis, k) {
        (a, k) if a == k && a + 1 < D => 0.25 * (a + 1) as f64,
        (a, k) if a == k => -(0..D - 1).map(|a| 0.25 * (a + 1) as f64).sum::<f64>(),
        _ => 0.5 * axis as f64 - 0.125 * k as f64,
    };
    let cells = side as f64;
    tank.set_velocity(|x, axis| {
        1.5 - axis as f64
            + (0..D).map(|k| gradient(axis, k) * (x[k] * cells * 2.0).round() / 2.0).sum::<f64>()
    });
    let mut tiling = tank.projection.tiling.take().expect("laid out");
    tiling.fit(&tank.blocks, &tank.velocity);
    assert!(tiling.tiles.len() > 3);
    for tile in &tiling.tiles {
        for axis in 0..D {
            for k in 0..D {
                let found = tile.motion.slope(axis, k);
                assert!((found - gradient(axis, k)).abs() < 1e-12, "{D}D: {found} {}", gradient(axis, k));
            }
            let origin = tile.origin.map(f64::from);
            let expected = 1.5 - axis as f64 + (0..D).map(|k| gradient(axis, k) * origin[k]).sum::<f64>();
            assert!((tile.motion.velocity(axis) - expected).abs() < 1e-12 * side as f64, "{D}D: {axis}");
        }
    }
}

#[test]
fn affine_fields_are_reproduced_2d() {
    affine_fields_are_reproduced::<2>(64);
}

#[test]
fn affine_fields_are_reproduced_3d() {
    affine_fields_are_reproduced::<3>(56);
}

/// Twice the kinetic energy of the liquid, in cells: every face with the liquid's share of it.
fn energy<const D: usize>(tank: &Tank<D>) -> f64 {
    let share = |face: &crate::tank::Face<D>| match (tank.label(tank.below(face)), tank.label(face.index)) {
        (Label::Liquid, Label::Liquid) => 1.0,
        (Label::Liquid, Label::Air) | (Label::Air, Label::Liquid) => {
            let (a, b) = (tank.surface[tank.below(face)].abs(), tank.surface[face.index].abs());
            let liquid = if tank.label(face.index) == Label::Liquid { b } else { a };
            f64::from(liquid / (a + b)).clamp(0.01, 1.0)
        }
        _ => 0.0,
    };
    let square = |face: &crate::tank::Face<D>| f64::from(tank.velocity[face.axis][face.index]).powi(2);
    tank.faces().iter().map(|face| tank.open(face) * share(face) * square(face)).sum()
}

fn energy_never_rises<const D: usize>(side: usize, size: usize) {
    for seed in 0..4 {
        let mut tank = wavy_tank::<D>(side, &rules(size, 2), seed);
        let before = energy(&tank);
        tank.project_to(1e-8);
        let after = energy(&tank);
        assert!(after < before, "{D}D {seed}: {before} to {after}");
        tank.project_to(1e-8);
        assert!(energy(&tank) < after * (1.0 + 1e-6), "{D}D {seed}: a second projection changes nothing");
    }
}

#[test]
fn energy_never_rises_2d() {
    energy_never_rises::<2>(64, 16);
}

#[test]
fn energy_never_rises_3d() {
    energy_never_rises::<3>(32, 8);
}

/// However badly the pressures are solved for, nothing flows out of a cell inside a tile.
fn tiles_have_no_divergence<const D: usize>(side: usize, size: usize) {
    let mut tank = wavy_tank::<D>(side, &rules(size, 2), 5);
    tank.project_to(0.5);
    let tiling = tank.projection.tiling.take().expect("laid out");
    let mut checked = 0;
    for (cell, index) in tank.cells() {
        let local = index % block_cells(D);
        if tiling.inside(index / block_cells(D))[local / 64] >> (local % 64) & 1 == 0 {
            continue;
        }
        let outflow: f64 = (0..D)
            .map(|axis| {
                let mut above = cell;
                above[axis] += 1;
                let [low, high] = [index, tank.index(above)].map(|at| f64::from(tank.velocity[axis][at]));
                high - low
            })
            .sum();
        assert!(outflow.abs() < 1e-6, "{D}D {cell:?}: {outflow}");
        checked += 1;
    }
    assert_eq!(checked, tiling.cells());
    assert!(checked > 100);
}

#[test]
fn tiles_have_no_divergence_2d() {
    tiles_have_no_divergence::<2>(64, 16);
}

#[test]
fn tiles_have_no_divergence_3d() {
    tiles_have_no_divergence::<3>(32, 8);
}

/// Tiles are as easy to solve for as single cells.
fn tiles_cost_no_iterations<const D: usize>(side: usize, size: TileSize, band: usize) {
    let rules = lattice(size, band);
    let mut tank = wavy_tank::<D>(side, &rules, 7);
    let mut plain = wavy_tank::<D>(side, &rules, 7);
    plain.projection.tiling = None;
    let tolerance = SolverParams::default().tolerance;
    let (tiled, uniform) = (tank.project_to(tolerance).info, plain.project_to(tolerance).info);
    assert!(!tiled.fallback && tiled.converged, "{D}D {side} {size:?}: {tiled:?}");
    assert!(
        tiled.iterations <= (uniform.iterations + 2).min(12),
        "{D}D {side} {size:?}: {} iterations, {} without tiles",
        tiled.iterations,
        uniform.iterations
    );
}

#[test]
fn tiles_cost_no_iterations_2d() {
    tiles_cost_no_iterations::<2>(256, TileSize { least: 16, most: 16 }, 9);
    tiles_cost_no_iterations::<2>(256, TileSize { least: 32, most: 32 }, 9);
    tiles_cost_no_iterations::<2>(256, TileSize { least: 16, most: 64 }, 9);
}

#[test]
fn tiles_cost_no_iterations_3d() {
    tiles_cost_no_iterations::<3>(64, TileSize { least: 16, most: 16 }, 9);
    tiles_cost_no_iterations::<3>(96, TileSize { least: 32, most: 32 }, 3);
}

/// No two tiles touch, not even at a corner, whatever their sizes.
fn tiles_keep_apart<const D: usize>(side: usize, size: TileSize) {
    let tank = pool::<D>(side, &lattice(size, 4));
    let tiling = tank.projection.tiling.as_ref().expect("laid out");
    let (mut widths, count) = (Vec::new(), tiling.tiles.len());
    for (i, a) in tiling.tiles.iter().enumerate() {
        widths.push(a.high[0] - a.low[0]);
        assert!((0..D).all(|k| a.high[k] - a.low[k] < size.most as i32), "{D}D: {a:?}");
        for b in &tiling.tiles[i + 1..] {
            let near = (0..D).all(|k| a.low[k] < b.high[k] + 1 && b.low[k] < a.high[k] + 1);
            assert!(!near, "{D}D: {:?}..{:?} and {:?}..{:?}", a.low, a.high, b.low, b.high);
        }
    }
    widths.sort_unstable();
    widths.dedup();
    assert!(count > 4 && (size.least == size.most || widths.len() > 1), "{D}D: {count} tiles, {widths:?}");
}

#[test]
fn tiles_keep_apart_2d() {
    tiles_keep_apart::<2>(96, TileSize { least: 16, most: 16 });
    tiles_keep_apart::<2>(256, TileSize { least: 8, most: 64 });
}

#[test]
fn tiles_keep_apart_3d() {
    tiles_keep_apart::<3>(72, TileSize { least: 8, most: 16 });
}

/// Where bands are so wide that whole blocks of cells are far from any tile, wall or air, nothing flows out of cells
/// either.
fn wide_bands_have_no_divergence<const D: usize>(side: usize, band: usize) {
    let mut tank = wavy_tank::<D>(side, &rules(8, band), 5);
    let before = tank.worst_outflow();
    let solved = tank.project();
    assert!(solved.info.converged && solved.tiles > 1, "{D}D: {solved:?}");
    let after = tank.worst_outflow();
    // Velocities are kept in single precision.
    assert!(after < 1e-5 && before > 0.1, "{D}D: outflow {before} before, {after} after");
}

#[test]
fn wide_bands_have_no_divergence_2d() {
    wide_bands_have_no_divergence::<2>(64, 24);
}

#[test]
fn wide_bands_have_no_divergence_3d() {
    wide_bands_have_no_divergence::<3>(64, 36);
}
