//! Particles to grid and back, and the faces around them.

use glug::grid::{ExtrapolateScratch, FaceMask, Field, block_cells, extrapolate};
use glug::liquid;

use super::pool::{Pool, random};

/// A linear velocity field, m/s, over coordinates in cells. Its slopes fit into the sixteen bits of the affine rows.
fn linear<const D: usize>(x: [f64; D], axis: usize) -> f64 {
    const SLOPE: [[f64; 3]; 3] = [[0.25, -0.5, 0.125], [1.0, -0.375, 0.0625], [-0.75, 0.5, 0.1875]];
    0.3 * axis as f64 - 0.7 + (0..D).map(|k| SLOPE[axis][k] * x[k]).sum::<f64>()
}

fn slope(axis: usize, k: usize) -> f32 {
    let mut step = [0.0; 3];
    step[k] = 1.0;
    (linear(step, axis) - linear([0.0; 3], axis)) as f32
}

fn affine_transfers_keep_a_linear_field<const D: usize>() {
    let mut pool = Pool::<D>::new([20; D], 0.05, Vec::new());
    pool.seed(1.0, |x| x.iter().all(|x| (3.0..17.0).contains(x)));
    pool.sort();
    for i in 0..pool.particles.len() {
        let x = pool.particles.position[i].map(f64::from);
        pool.particles.velocity[i] = std::array::from_fn(|axis| linear(x, axis) as f32);
        for axis in 0..D {
            pool.particles.affine[axis][i] = std::array::from_fn(|k| (slope(axis, k).to_bits() >> 16) as u16);
        }
    }
    let before = pool.particles.clone();
    pool.transfer_to_grid();
    // Spoil the particles: all must come back from the grid.
    pool.particles.velocity.iter_mut().for_each(|v| *v = [9.0; D]);
    let grid = pool.velocity.clone();
    let ranges = &pool.ranges;
    liquid::grid_to_particles(
        &mut pool.particles,
        ranges,
        &pool.blocks,
        &grid,
        &grid,
        0.0,
        liquid::no_affine_cells,
    );
    let mut interior = 0;
    for (i, x) in pool.particles.position.iter().enumerate() {
        // Particles whose faces all have a weight.
        if !x.iter().all(|x| (4.0..16.0).contains(x)) {
            continue;
        }
        interior += 1;
        for axis in 0..D {
            let error = (pool.particles.velocity[i][axis] - before.velocity[i][axis]).abs();
            assert!(error < 2e-5, "{D}D: component {axis} at {x:?} off by {error:.1e}");
            for k in 0..D {
                let found = f32::from_bits((pool.particles.affine[axis][i][k] as u32) << 16);
                let error = (found - slope(axis, k)).abs();
                assert!(error < 0.004, "{D}D: slope {axis}{k} at {x:?} is {found}");
            }
        }
    }
    assert!(interior > 400, "{D}D: {interior} particles looked at");
}

#[test]
fn affine_transfers_keep_a_linear_field_2d() {
    affine_transfers_keep_a_linear_field::<2>();
}

#[test]
fn affine_transfers_keep_a_linear_field_3d() {
    affine_transfers_keep_a_linear_field::<3>();
}

fn the_grid_gets_all_momentum_and_no_more<const D: usize>() {
    let mut pool = Pool::<D>::new([20; D], 0.05, Vec::new());
    pool.seed(1.0, |x| x.iter().enumerate().all(|(k, x)| (2.0..9.0 + 4.0 * k as f32).contains(x)));
    for i in 0..pool.particles.len() {
        pool.particles.velocity[i] = std::array::from_fn(|k| random(k as u64, i as u64) + 0.2);
        for axis in 0..D {
            pool.particles.affine[axis][i] =
                std::array::from_fn(|k| ((random(9 + k as u64, i as u64) - 0.5).to_bits() >> 16) as u16);
        }
    }
    pool.sort();
    pool.transfer_to_grid();
    for axis in 0..D {
        let (mut weight, mut momentum) = (0.0, 0.0);
        for &slot in pool.blocks.slots().as_slice() {
            let faces = pool.weight[axis].block(slot as usize);
            for (w, u) in faces.iter().zip(pool.velocity[axis].block(slot as usize)) {
                weight += *w as f64;
                momentum += *w as f64 * *u as f64;
            }
        }
        let given: f64 = pool.particles.velocity.iter().map(|v| v[axis] as f64).sum();
        let (off, lost) = (weight / pool.particles.len() as f64 - 1.0, momentum / given - 1.0);
        assert!(off.abs() < 1e-5, "{D}D: weights off by {off:.1e} along {axis}");
        assert!(lost.abs() < 2e-5, "{D}D: momentum off by {lost:.1e} along {axis}");
    }
}

#[test]
fn the_grid_gets_all_momentum_and_no_more_2d() {
    the_grid_gets_all_momentum_and_no_more::<2>();
}

#[test]
fn the_grid_gets_all_momentum_and_no_more_3d() {
    the_grid_gets_all_momentum_and_no_more::<3>();
}

fn flip_keeps_what_the_grid_did_not_change<const D: usize>() {
    let mut pool = Pool::<D>::new([16; D], 0.05, Vec::new());
    pool.seed(1.0, |x| x.iter().all(|x| (3.0..13.0).contains(x)));
    for i in 0..pool.particles.len() {
        pool.particles.velocity[i] = std::array::from_fn(|k| random(k as u64, i as u64) - 0.5);
    }
    pool.sort();
    pool.transfer_to_grid();
    let before = pool.velocity.clone();
    let own = pool.particles.velocity.clone();
    // Uniform gravity on the grid.
    pool.velocity[1].as_mut_slice().iter_mut().for_each(|u| *u -= 0.5);
    liquid::grid_to_particles(
        &mut pool.particles,
        &pool.ranges,
        &pool.blocks,
        &pool.velocity,
        &before,
        1.0,
        liquid::no_affine_cells,
    );
    for (new, own) in pool.particles.velocity.iter().zip(&own) {
        for axis in 0..D {
            let expected = own[axis] - if axis == 1 { 0.5 } else { 0.0 };
            assert!((new[axis] - expected).abs() < 1e-6, "{D}D: {} and not {expected}", new[axis]);
        }
    }
}

#[test]
fn flip_keeps_what_the_grid_did_not_change_2d() {
    flip_keeps_what_the_grid_did_not_change::<2>();
}

#[test]
fn flip_keeps_what_the_grid_did_not_change_3d() {
    flip_keeps_what_the_grid_did_not_change::<3>();
}

fn extrapolation_spreads_a_constant_exactly<const D: usize>() {
    const LAYERS: usize = 4;
    // Also zero: a liquid at rest has neighbours, too.
    for value in [0.37f32, 0.0] {
        let mut pool = Pool::<D>::new([24; D], 0.05, Vec::new());
        pool.seed(0.0, |x| x.iter().all(|x| (11.0..13.0).contains(x)));
        pool.sort();
        let mut field = Field::new(block_cells(D), 99.0f32);
        let mut mask = FaceMask::new(D);
        field.resize(pool.blocks.slot_count());
        mask.bits.resize(pool.blocks.slot_count());
        let known: [i32; D] = [11; D];
        let (slot, local) = pool.blocks.locate(known);
        field.block_mut(slot as usize)[local] = value;
        mask.bits.block_mut(slot as usize)[local / 8] |= 1 << (local % 8);
        extrapolate(&pool.blocks, &mut field, &mut mask, &mut ExtrapolateScratch::new(D), LAYERS);
        let mut reached = 0;
        for &slot in pool.blocks.slots().as_slice() {
            let first = pool.blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let offset = glug::math::unflatten::<D>(local, 8);
                let steps: usize =
                    (0..D).map(|k| (first[k] + offset[k] as i32).abs_diff(known[k]) as usize).sum();
                let found = field.block(slot as usize)[local];
                let expected = if steps <= LAYERS { value } else { 99.0 };
                assert_eq!(found, expected, "{D}D: {steps} steps from the known face");
                assert_eq!(mask.get(slot as usize, local), steps <= LAYERS, "{D}D: mask at {steps} steps");
                reached += (steps <= LAYERS) as usize;
            }
        }
        assert_eq!(
            reached,
            if D == 2 { 41 } else { 129 },
            "{D}D: every face within {LAYERS} steps is stored"
        );
    }
}

#[test]
fn extrapolation_spreads_a_constant_exactly_2d() {
    extrapolation_spreads_a_constant_exactly::<2>();
}

#[test]
fn extrapolation_spreads_a_constant_exactly_3d() {
    extrapolation_spreads_a_constant_exactly::<3>();
}
