//! Liquid that moves as one affine field: nothing is interpolated there, and nobody should be able to tell.

use glug::grid::masks;
use glug::liquid::{self, AffineCells, Particles};

use super::pool::{Pool, random};

const DX: f64 = 0.1;

/// The velocity at a place in cells, without divergence.
fn flow<const D: usize>(x: [f64; D], axis: usize) -> f64 {
    let gradient = |k: usize| match (axis == k, axis) {
        (true, 0) => 0.02,
        (true, 1) => -0.02,
        (true, _) => 0.0,
        (false, _) => 0.013 * axis as f64 - 0.007 * k as f64,
    };
    0.3 - 0.2 * axis as f64 + (0..D).map(|k| gradient(k) * (x[k] - 16.0)).sum::<f64>()
}

/// Liquid in the middle of a tank, sorted, with velocities of its own.
fn pool<const D: usize>() -> Pool<D> {
    let mut pool = Pool::<D>::new([32; D], DX, Vec::new());
    pool.seed(1.0, |x| x.iter().all(|x| (6.0..26.0).contains(x)));
    for i in 0..pool.particles.len() {
        pool.particles.velocity[i] = std::array::from_fn(|k| random(k as u64, i as u64) - 0.5);
    }
    pool.sort();
    pool.set_velocity(flow);
    pool
}

/// Some cells of every block, all of every third one.
fn cells<const D: usize>(slot: usize) -> masks::Bits {
    let mut cells = masks::all(D);
    for cell in (0..64 * masks::words(D)).filter(|_| !slot.is_multiple_of(3)) {
        let is_out = random(slot as u64, cell as u64) < 0.1;
        cells[cell / 64] &= !(u64::from(is_out) << (cell % 64));
    }
    cells
}

/// The flow in some cells of a block.
fn affine<const D: usize>(pool: &Pool<D>, slot: usize) -> Option<AffineCells<D>> {
    let corner = pool.blocks.first_cell(slot).map(f64::from);
    let slope = |axis: usize, k: usize| {
        let mut beyond = corner;
        beyond[k] += 1.0;
        flow(beyond, axis) - flow(corner, axis)
    };
    Some(AffineCells {
        cells: cells::<D>(slot),
        velocity: std::array::from_fn(|axis| flow(corner, axis)),
        slope: std::array::from_fn(|axis| std::array::from_fn(|k| slope(axis, k))),
    })
}

fn particles_go_where_interpolation_takes_them<const D: usize>() {
    let mut pool = pool::<D>();
    let start = pool.particles.clone();
    let move_by = |pool: &Pool<D>, affine: &(dyn Fn(usize) -> Option<AffineCells<D>> + Sync)| {
        let mut particles = start.clone();
        // Half a cell at most.
        liquid::advect(&mut particles, &pool.ranges, &pool.blocks, &pool.velocity, 0.08, affine);
        particles.position
    };
    let expected = move_by(&pool, &liquid::no_affine_cells);
    let found = move_by(&pool, &|slot| affine(&pool, slot));
    let distance = |a: &[f32; D], b: &[f32; D]| (0..D).map(|k| (a[k] - b[k]).abs()).fold(0.0, f32::max);
    let pairs = || expected.iter().zip(&found).map(|(a, b)| distance(a, b));
    let way = start.position.iter().zip(&expected).map(|(a, b)| distance(a, b)).fold(0.0, f32::max);
    assert!((0.3..0.6).contains(&way), "{D}D: {way} cells");
    assert!(pairs().fold(0.0, f32::max) < 1e-5, "{D}D: {} cells off", pairs().fold(0.0, f32::max));

    // With a grid at rest, those that move are the ones that do not ask it; and most of those that need not do not.
    pool.set_velocity(|_, _| 0.0);
    let found = move_by(&pool, &|slot| affine(&pool, slot));
    let (mut moved, mut asked) = (0, 0);
    for &slot in pool.blocks.slots().as_slice() {
        let own = cells::<D>(slot as usize);
        for (cell, range) in pool.ranges.cells(slot as usize).enumerate() {
            for i in range {
                let stays = found[i] == start.position[i];
                assert!(stays || masks::has(&own, cell), "{D}D: a particle in cell {cell} asked nobody");
                moved += usize::from(!stays);
                asked += usize::from(stays);
            }
        }
    }
    assert!(2 * moved > asked && asked > 100, "{D}D: {moved} moved, {asked} asked the grid");
}

#[test]
fn particles_go_where_interpolation_takes_them_2d() {
    particles_go_where_interpolation_takes_them::<2>();
}

#[test]
fn particles_go_where_interpolation_takes_them_3d() {
    particles_go_where_interpolation_takes_them::<3>();
}

fn particles_get_what_interpolation_gives<const D: usize>() {
    let mut pool = pool::<D>();
    let start = pool.particles.clone();
    pool.transfer_to_grid();
    let before = std::mem::replace(&mut pool.velocity, pool.weight.clone());
    pool.set_velocity(flow);
    for flip in [0.0, 0.9] {
        let give = |affine: &(dyn Fn(usize) -> Option<AffineCells<D>> + Sync)| {
            let mut particles = start.clone();
            let ranges = &pool.ranges;
            liquid::grid_to_particles(
                &mut particles,
                ranges,
                &pool.blocks,
                &pool.velocity,
                &before,
                flip,
                affine,
            );
            particles
        };
        let (expected, found) = (give(&liquid::no_affine_cells), give(&|slot| affine(&pool, slot)));
        assert!(expected.velocity == found.velocity, "{D}D: velocities are interpolated in any case");
        for axis in 0..D {
            let slopes =
                expected.affine[axis].iter().zip(&found.affine[axis]).flat_map(|(a, b)| a.iter().zip(b));
            // Sixteen bits of numbers of one sign: a difference of one is one of the last digit. Interpolation rounds
            // slopes that are 0 to ones that are not.
            let off = slopes.map(|(&a, &b)| if b & 0x7fff == 0 { 0 } else { a.abs_diff(b) }).max();
            assert!(off <= Some(1), "{D}D: slopes differ by {off:?}");
        }
        check_slopes(&found, flip);
    }
}

/// All particles have the slope of the flow, or what 16 bits keep of it.
fn check_slopes<const D: usize>(particles: &Particles<D>, flip: f32) {
    for (axis, rows) in particles.affine.iter().enumerate() {
        for row in rows {
            for (k, &half) in row.iter().enumerate() {
                let found = f64::from(f32::from_bits(u32::from(half) << 16));
                let mut beyond = [0.0; D];
                beyond[k] += 1.0;
                let expected = f64::from(1.0 - flip) * (flow(beyond, axis) - flow([0.0; D], axis));
                assert!((found - expected).abs() < 0.005 * expected.abs() + 1e-6, "{D}D: {found} {expected}");
            }
        }
    }
}

#[test]
fn particles_get_what_interpolation_gives_2d() {
    particles_get_what_interpolation_gives::<2>();
}

#[test]
fn particles_get_what_interpolation_gives_3d() {
    particles_get_what_interpolation_gives::<3>();
}
