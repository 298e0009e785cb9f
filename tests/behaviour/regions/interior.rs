//! Deep inside of tiles, where nothing needs to be interpolated.

use glug::grid::{block_cells, masks};
use glug::math::{power, unflatten};

use super::dense::{rules, tiles_of, wavy_tank};

/// Interiors are the cells with none but cells of the same tile around them; in blocks that several tiles share, those of one
/// tile.
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

/// A velocity is known to be affine on the tiles where it is, with the right field, and on no others.
fn affine_velocities_are_known<const D: usize>(side: usize) {
    let mut tank = wavy_tank::<D>(side, &rules(16, 2), 3);
    assert!(tank.project().info.converged);
    let tiling = tank.projection.tiling.take().expect("laid out");
    let fields = tiling.fields_of(&tank.blocks, &tank.velocity, 1e-6);
    for (tile, field) in tiling.tiles.iter().zip(&fields) {
        let field = field.expect("tiles move as tiles");
        for axis in 0..D {
            let (own, found) = (&tile.field[axis], &field[axis]);
            assert!((0..=D).all(|k| (own[k] - found[k]).abs() < 1e-6), "{D}D: {own:?} and {found:?}");
        }
        let speeds = |cell: [i32; D]| tile.field_from(&field, cell).0;
        let corners = (0..power(2, D)).map(|flat| unflatten::<D>(flat, 2));
        let corners = corners.map(|at| std::array::from_fn(|k| [tile.low[k], tile.high[k]][at[k]]));
        let fastest = corners.flat_map(speeds).fold(0.0, |most: f64, speed| most.max(speed.abs()));
        let told = tile.fastest(&field);
        assert!((told - fastest).abs() < 1e-12 + 1e-9 * fastest, "{D}D: {told} and {fastest}");
    }
    // One face of one tile at a time, by a little more than is allowed: at its low end, and at its high end.
    let (last, tile) = (tiling.tiles.len() - 1, tiling.tiles.last().expect("there are tiles"));
    for axis in 0..D {
        let of = tiles_of_faces(&tank, &tiling, last, axis);
        assert!(of.len() > tile.cells, "{D}D: {} faces", of.len());
        for &index in [of.first(), of.last()].into_iter().flatten() {
            let before = tank.velocity[axis][index];
            tank.velocity[axis][index] += 2e-3;
            let fields = tiling.fields_of(&tank.blocks, &tank.velocity, 1e-3);
            assert!(fields[last].is_none() && fields[0].is_some(), "{D}D: axis {axis}, face {index}");
            tank.velocity[axis][index] = before;
        }
    }
}

/// Places of the faces across an axis of a tile's cells.
fn tiles_of_faces<const D: usize>(
    tank: &crate::tank::Tank<D>,
    tiling: &glug::regions::Tiling<D>,
    tile: usize,
    axis: usize,
) -> Vec<usize> {
    let tile = &tiling.tiles[tile];
    let is_in = |index: usize| masks::has(tiling.inside(index / block_cells(D)), index % block_cells(D));
    let in_box = |cell: [i32; D]| (0..D).all(|k| (tile.low[k]..tile.high[k]).contains(&cell[k]));
    let own = |cell: [i32; D]| in_box(cell) && is_in(tank.index(cell));
    let faces = tank.faces().into_iter().filter(|face| face.axis == axis);
    let touching = faces.filter(|face| {
        let mut below = face.cell;
        below[axis] -= 1;
        own(face.cell) || own(below)
    });
    touching.map(|face| face.index).collect()
}

#[test]
fn affine_velocities_are_known_2d() {
    affine_velocities_are_known::<2>(64);
}

#[test]
fn affine_velocities_are_known_3d() {
    affine_velocities_are_known::<3>(48);
}
