//! Deep inside of tiles, where nothing needs to be interpolated.

use glug::grid::{CellSet, Field, block_cells, masks};
use glug::math::{AffineMotion, power, unflatten};
use glug::tiles::TileDomain;

use super::dense::{rules, tiles_of, wavy_tank};
use crate::tank::{Tank, noise};

/// Interiors are the cells with none but cells of the same tile around them; in blocks that several tiles share, those
/// of one tile.
fn interiors_lie_inside<const D: usize>(side: usize, size: usize, seed: u64) {
    let mut tank = wavy_tank::<D>(side, &rules(size, 2), seed);
    tank.projection.tiling.as_mut().expect("laid out").find_interior(&tank.blocks);
    let (of, tiling) = (tiles_of(&tank), tank.projection.tiling.as_ref().expect("laid out"));
    let (mut inner, mut found) = (0, 0);
    for (cell, index) in tank.cells() {
        let (slot, local) = (index / block_cells(D), index % block_cells(D));
        let tile = of.get(&index);
        let is_inner = tile.is_some()
            && (0..power(3, D)).map(|flat| unflatten::<D>(flat, 3)).all(|step| {
                let near = std::array::from_fn(|k| cell[k] + step[k] as i32 - 1);
                of.get(&tank.index(near)) == tile
            });
        inner += usize::from(is_inner);
        let Some((tile, cells)) = tiling.interior(slot) else { continue };
        if masks::has(&cells, local) {
            assert!(is_inner, "{D}D: {cell:?} is no inner cell");
            let tile = &tiling.tiles[tile];
            assert!(
                (0..D).all(|k| (tile.low[k]..tile.high[k]).contains(&cell[k])),
                "{D}D: {cell:?} {tile:?}"
            );
            found += 1;
        }
    }
    assert!(found > 50 && found as f64 > 0.9 * inner as f64, "{D}D: {found} of {inner} inner cells");
}

#[test]
fn interiors_lie_inside_2d() {
    (0..5).for_each(|seed| interiors_lie_inside::<2>(64, 16, seed));
    interiors_lie_inside::<2>(64, 8, 7);
}

#[test]
fn interiors_lie_inside_3d() {
    interiors_lie_inside::<3>(40, 16, 1);
}

/// Where a velocity is that of the tiles is known cell by cell: in all inner cells if it is, and nowhere near a face
/// that moves otherwise.
fn affine_velocities_are_known<const D: usize>(side: usize) {
    let mut tank = wavy_tank::<D>(side, &rules(16, 2), 3);
    assert!(tank.project().info.converged);
    let mut tiling = tank.projection.tiling.take().expect("laid out");
    tiling.find_interior(&tank.blocks);
    let fields: Vec<_> = tiling.tiles.iter().map(|tile| Some(tile.motion)).collect();
    let affine_in = |velocity: &[Field<f32>; D], motions: &[Option<AffineMotion>]| {
        let mut cells = CellSet::new();
        tiling.find_affine(&tank.blocks, velocity, motions, 1e-6, &mut cells);
        cells
    };
    let all = affine_in(&tank.velocity, &fields);
    for &slot in tank.blocks.slots().as_slice() {
        let expected = tiling.interior(slot as usize).map_or(masks::NONE, |(_, cells)| cells);
        assert_eq!(*all.bits(slot as usize), expected, "{D}D: block {slot}");
    }
    let inner: Vec<_> = tank.cells().into_iter().filter(|(_, index)| is_in::<D>(&all, *index)).collect();
    assert!(inner.len() > 50, "{D}D: {} cells", inner.len());
    for axis in 0..D {
        for &(cell, index) in [inner.first(), inner.get(inner.len() / 2), inner.last()].into_iter().flatten()
        {
            let mut velocity = tank.velocity.clone();
            velocity[axis][index] += 1e-4;
            let rest = affine_in(&velocity, &fields);
            // Its low face moves otherwise: that concerns the cells on both sides of it, and all around these.
            let is_near = |other: [i32; D]| {
                (0..D).all(|k| (-1 - i32::from(k == axis)..=1).contains(&(other[k] - cell[k])))
            };
            for &(other, index) in &inner {
                assert_eq!(
                    is_in::<D>(&rest, index),
                    !is_near(other),
                    "{D}D: {other:?} and face {axis} of {cell:?}"
                );
            }
        }
    }
    let mut some = fields.clone();
    some[0] = None;
    let rest = affine_in(&tank.velocity, &some);
    assert!(!rest.is_empty() && rest.len() < all.len(), "{D}D: a tile that does not count");
}

fn is_in<const D: usize>(cells: &CellSet, index: usize) -> bool {
    masks::has(cells.bits(index / block_cells(D)), index % block_cells(D))
}

/// What is told of a tile's field is what the field is.
#[test]
fn fields_look_the_same_from_everywhere() {
    let mut tank = wavy_tank::<3>(40, &rules(16, 2), 3);
    assert!(tank.project().info.converged);
    let tiling = tank.projection.tiling.as_ref().expect("laid out");
    for tile in &tiling.tiles {
        let (velocity, slope) = tile.motion_from(&tile.motion, tile.low);
        let corners = (0..8).map(|flat| unflatten::<3>(flat, 2));
        let speeds = corners.flat_map(|at| {
            let corner = std::array::from_fn(|k| [tile.low[k], tile.high[k]][at[k]]);
            let found = tile.motion_from(&tile.motion, corner).0;
            for axis in 0..3 {
                let way = |k: usize| f64::from(corner[k] - tile.low[k]);
                let expected = velocity[axis] + (0..3).map(|k| slope[axis][k] * way(k)).sum::<f64>();
                assert!((found[axis] - expected).abs() < 1e-12, "{} and {expected}", found[axis]);
            }
            found
        });
        let fastest = speeds.fold(0.0, |most: f64, speed| most.max(speed.abs()));
        assert!((tile.fastest(&tile.motion) - fastest).abs() < 1e-12, "{fastest}");
    }
    // Nothing was there before: nothing changes.
    assert!(
        tiling
            .motions_at_midpoint(0.5)
            .iter()
            .zip(&tiling.tiles)
            .all(|(motion, tile)| *motion == tile.motion)
    );
}

/// What comes is what was and half of the change once more.
#[test]
fn fields_go_on_as_they_changed() {
    let mut tank = wavy_tank::<2>(64, &rules(16, 2), 3);
    let mut before = Vec::new();
    for seed in 0..2 {
        tank.set_velocity(|x, axis| noise(x, axis) * f64::from(1 + seed));
        lay_again(&mut tank);
        let tiling = tank.projection.tiling.as_mut().expect("laid out");
        tiling.fit(&tank.blocks, &tank.velocity);
        let now: Vec<_> = tiling.tiles.iter().map(|tile| tile.motion).collect();
        for (tile, found) in tiling.motions_at_midpoint(0.5).iter().enumerate() {
            // They were laid out before, at rest.
            let was: AffineMotion = before.get(tile).copied().unwrap_or_default();
            for (k, &found) in found.rows().iter().flatten().enumerate() {
                let (now, was) = (now[tile].rows().as_flattened()[k], was.rows().as_flattened()[k]);
                assert!((found - 1.5 * now + 0.5 * was).abs() < 1e-12, "{found} from {was} and {now}");
            }
        }
        before = now;
    }
    assert!(before.len() > 3);
}

/// Lays the same tiles as in the step before.
fn lay_again(tank: &mut Tank<2>) {
    let mut tiling = tank.projection.tiling.take().expect("laid out");
    let domain = TileDomain { blocks: &tank.blocks, boundary: &tank.boundary, live: &tank.projection.live };
    tiling.clear(&tank.blocks);
    tiling.add_liquid(&domain, &tank.projection.label, &rules(16, 2));
    tank.projection.tiling = Some(tiling);
}

#[test]
fn affine_velocities_are_known_2d() {
    affine_velocities_are_known::<2>(64);
}

#[test]
fn affine_velocities_are_known_3d() {
    affine_velocities_are_known::<3>(48);
}
