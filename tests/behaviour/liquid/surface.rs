//! The surface around particles.

use glug::geometry::{Motion, Shape, Solid};
use glug::grid::block_cells;
use glug::liquid;
use glug::math::Vector;

use super::pool::Pool;

/// Where the surface crosses a column of cells, in cells from the bottom; interpolated between cell centres.
fn height_of_column<const D: usize>(pool: &Pool<D>, mut cell: [i32; D]) -> f64 {
    for y in 0..pool.blocks.grid().cells[1] as i32 {
        cell[1] = y;
        let low = pool.distance(cell);
        cell[1] = y + 1;
        let high = pool.distance(cell);
        if low <= 0.0 && high > 0.0 {
            return y as f64 + 0.5 + low / (low - high);
        }
    }
    f64::NAN
}

/// Layers of particles half a cell apart, the topmost a quarter cell below the surface. `worst` and `mean` are how far
/// single columns and all together may be off, in cells.
fn the_surface_of_a_pool_is_flat<const D: usize>(jitter: f32, worst: f64, mean: f64) {
    for height in [8.0, 8.11, 8.25, 8.4, 8.5, 8.75, 8.95] {
        let mut pool = Pool::<D>::new([20; D], 0.05, Vec::new());
        pool.seed(jitter, |x| x[1] < height as f32);
        pool.particles.position.iter_mut().for_each(|x| x[1] = (height as f32 - x[1]).max(0.02));
        pool.sort();
        pool.rebuild_surface(2);
        let (mut sum, mut columns) = (0.0, 0);
        for x in 0..20 {
            for z in 0..if D == 2 { 1 } else { 20 } {
                let mut column = [z; D];
                column[0] = x;
                let found = height_of_column(&pool, column);
                let error = found - height;
                assert!(error.abs() < worst, "{D}D: {found:.3} cells high at {column:?}, not {height}");
                (sum, columns) = (sum + error, columns + 1);
            }
        }
        let off = sum / columns as f64;
        assert!(off.abs() < mean, "{D}D: {off:.3} cells too high on average at {height}");
    }
}

#[test]
fn the_surface_of_an_even_pool_is_flat_2d() {
    the_surface_of_a_pool_is_flat::<2>(0.0, 0.1, 0.1);
}

#[test]
fn the_surface_of_an_even_pool_is_flat_3d() {
    the_surface_of_a_pool_is_flat::<3>(0.0, 0.1, 0.1);
}

#[test]
fn the_surface_of_an_uneven_pool_is_nearly_flat_2d() {
    the_surface_of_a_pool_is_flat::<2>(0.5, 0.25, 0.1);
}

#[test]
fn the_surface_of_an_uneven_pool_is_nearly_flat_3d() {
    the_surface_of_a_pool_is_flat::<3>(0.5, 0.25, 0.1);
}

/// Volume from the surface over the true one.
fn measured<const D: usize>(mut pool: Pool<D>, volume: f64) -> f64 {
    pool.sort();
    pool.rebuild_surface(2);
    let mut shares = vec![0f32; block_cells(D)];
    let mut cells = 0.0;
    for &slot in pool.blocks.slots().as_slice() {
        liquid::liquid_shares(&pool.blocks, &pool.boundary, &pool.surface, slot as usize, &mut shares);
        cells += shares.iter().map(|&share| share as f64).sum::<f64>();
    }
    cells / volume
}

fn a_ball_has_its_volume<const D: usize>() {
    for radius in [4.0f32, 7.3] {
        for shift in [0.0f32, 0.21, 0.5] {
            let mut pool = Pool::<D>::new([24; D], 0.05, Vec::new());
            let center = 12.0 + shift;
            pool.seed(0.5, |x| x.iter().map(|x| (x - center).powi(2)).sum::<f32>() < radius * radius);
            let pi = std::f64::consts::PI;
            let r = radius as f64;
            let volume = if D == 2 { pi * r * r } else { 4.0 / 3.0 * pi * r.powi(3) };
            let share = measured(pool, volume);
            assert!(
                (share - 1.0).abs() < 0.05,
                "{D}D: radius {radius}, shift {shift}: {share:.3} of its volume"
            );
        }
    }
}

#[test]
fn a_ball_has_its_volume_2d() {
    a_ball_has_its_volume::<2>();
}

#[test]
fn a_ball_has_its_volume_3d() {
    a_ball_has_its_volume::<3>();
}

/// Walls hide particles; that must not cost volume.
fn a_full_turned_container_has_its_volume<const D: usize>() {
    let middle = Vector::<D>::repeat(0.6);
    let cavity = Shape::Box { min: middle.add_scalar(-0.35), max: middle.add_scalar(0.35) };
    let axis = if D == 2 { [0.0, 0.0, 1.0] } else { [0.3, 0.5, 1.0] };
    let turned = cavity.rotated(axis, 0.5, middle);
    let tank = Solid::new("tank", turned.clone().inverted(), Motion::default());
    let mut pool = Pool::<D>::new([24; D], 0.05, vec![tank]);
    pool.seed(0.5, |x| turned.distance(&Vector::from_fn(|k, _| x[k] as f64 * 0.05)) < 0.0);
    let share = measured(pool, 14f64.powi(D as i32));
    assert!((share - 1.0).abs() < 0.04, "{D}D: {share:.3} of its volume");
}

#[test]
fn a_full_turned_container_has_its_volume_2d() {
    a_full_turned_container_has_its_volume::<2>();
}

#[test]
fn a_full_turned_container_has_its_volume_3d() {
    a_full_turned_container_has_its_volume::<3>();
}
