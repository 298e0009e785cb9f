//! The list of particles: sorting and reseeding.

use std::collections::BTreeMap;

use glug::grid::{Field, SIDE, VOID, block_cells};
use glug::liquid::{self, Bounds, Particles};
use glug::math::unflatten;

use super::pool::{Pool, random};

/// What a particle carries, from its name: so that mixed-up arrays show.
fn cargo<const D: usize>(name: usize) -> ([f32; D], [u16; D]) {
    ([name as f32; D], std::array::from_fn(|k| (name * (k + 3)) as u16))
}

fn sorting_keeps_every_particle_once<const D: usize>(count: usize) {
    let cells = if D == 2 { 40.0 } else { 20.0 };
    let mut pool = Pool::<D>::new([cells as usize; D], 0.05, Vec::new());
    let mut alive: BTreeMap<usize, [f32; D]> = BTreeMap::new();
    let mut next = 0;
    for round in 0..8u64 {
        for i in 0..pool.particles.len() {
            let name = pool.particles.velocity[i][0] as usize;
            if random(round, name as u64) < 0.1 {
                Particles::kill(&mut pool.particles.position[i]);
                alive.remove(&name);
            } else {
                for k in 0..D {
                    let step = 6.0 * (random(100 + round, (name * D + k) as u64) - 0.5);
                    let x = &mut pool.particles.position[i][k];
                    *x = (*x + step).clamp(0.0, cells - 0.01);
                }
                alive.insert(name, pool.particles.position[i]);
            }
        }
        for _ in 0..count {
            let x = std::array::from_fn(|k| cells * 0.999 * random(7 + k as u64, next as u64));
            let (velocity, affine) = cargo(next);
            pool.particles.push(x, velocity);
            for row in &mut pool.particles.affine {
                *row.last_mut().expect("just pushed") = affine;
            }
            alive.insert(next, x);
            next += 1;
        }
        pool.sort();
        assert_eq!(pool.particles.len(), alive.len(), "{D}D round {round}");
        let mut end = 0;
        for &slot in pool.blocks.slots().as_slice() {
            let first = pool.blocks.first_cell(slot as usize);
            let block = pool.ranges.of_block(slot as usize);
            assert_eq!(block.start, end, "{D}D round {round}: blocks follow each other");
            for local in 0..block_cells(D) {
                let range = pool.ranges.of_cells(slot as usize, local, local);
                assert_eq!(range.start, end, "{D}D round {round}: cells follow each other");
                end = range.end;
                let offset = unflatten::<D>(local, SIDE);
                for i in range {
                    let x = pool.particles.position[i];
                    for k in 0..D {
                        assert_eq!(x[k].floor() as i32, first[k] + offset[k] as i32, "{D}D: {x:?}");
                    }
                    let name = pool.particles.velocity[i][0] as usize;
                    assert_eq!(alive.remove(&name), Some(x), "{D}D round {round}: particle {name}");
                    let (velocity, affine) = cargo(name);
                    assert_eq!(pool.particles.velocity[i], velocity);
                    assert!(
                        pool.particles.affine.iter().all(|row| row[i] == affine),
                        "{D}D: cargo of {name}"
                    );
                }
            }
            assert_eq!(block.end, end, "{D}D round {round}: a block's cells are all of it");
        }
        assert_eq!((end, alive.len()), (pool.particles.len(), 0), "{D}D round {round}: lost {alive:?}");
    }
}

#[test]
fn sorting_keeps_every_particle_once_2d() {
    sorting_keeps_every_particle_once::<2>(3000);
    sorting_keeps_every_particle_once::<2>(1);
}

#[test]
fn sorting_keeps_every_particle_once_3d() {
    sorting_keeps_every_particle_once::<3>(5000);
    sorting_keeps_every_particle_once::<3>(1);
}

/// Every cell within four of a particle is stored, and blocks far from all particles are not.
fn blocks_follow_the_particles<const D: usize>() {
    let mut pool = Pool::<D>::new([48; D], 0.05, Vec::new());
    for round in 0..20u64 {
        pool.particles = Particles::default();
        let x: [f32; D] = std::array::from_fn(|k| 48.0 * random(round, k as u64));
        pool.particles.push(x, [0.0; D]);
        pool.sort();
        let cell = x.map(|x| x.floor() as i32);
        for corner in 0..3usize.pow(D as u32) {
            let step = unflatten::<D>(corner, 3);
            let near = std::array::from_fn(|k| (cell[k] + 4 * (step[k] as i32 - 1)).clamp(-4, 51));
            assert_ne!(pool.blocks.locate(near).0, VOID, "{D}D: {near:?} near {cell:?} is not stored");
        }
        for &slot in pool.blocks.slots().as_slice() {
            let first = pool.blocks.first_cell(slot as usize);
            let near = (0..D).all(|k| cell[k] >= first[k] - 4 && cell[k] < first[k] + SIDE as i32 + 4);
            assert!(near, "{D}D: the block at {first:?} is of no use to {cell:?}");
        }
    }
}

#[test]
fn blocks_follow_the_particles_2d() {
    blocks_follow_the_particles::<2>();
}

#[test]
fn blocks_follow_the_particles_3d() {
    blocks_follow_the_particles::<3>();
}

fn reseeding_keeps_counts_within_bounds<const D: usize>() {
    let mut pool = Pool::<D>::new([24; D], 0.05, Vec::new());
    // One particle per cell on the left, crowds on the right, nothing above.
    pool.seed(1.0, |x| x[1] < 14.0 && (x[0] >= 12.0 || x.iter().all(|x| x.fract() < 0.5)));
    let crowd: Vec<_> = pool.particles.position.iter().copied().filter(|x| x[0] >= 12.0).collect();
    for shift in 1..4u64 {
        for (i, x) in crowd.iter().enumerate() {
            if random(shift, i as u64) < 0.6 {
                pool.particles.push(*x, [0.0; D]);
            }
        }
    }
    pool.sort();
    pool.rebuild_surface(2);
    pool.set_velocity(|x, axis| x[axis] * 0.1);
    let bounds = Bounds::around(2usize.pow(D as u32));
    let before = pool.particles.len();
    let deep = pool.scratch.deep.clone();
    let mut flags = Field::new(1, 0);
    flags.resize(pool.blocks.slot_count());
    let done = liquid::reseed(
        &mut pool.particles,
        &pool.ranges,
        &pool.blocks,
        &pool.velocity,
        &pool.boundary,
        &deep,
        bounds,
        5,
        &mut flags,
    );
    assert!(done.added > 20 && done.removed > 20, "{D}D: {done:?}");
    for (x, v) in pool.particles.position[before..].iter().zip(&pool.particles.velocity[before..]) {
        for axis in 0..D {
            assert!((v[axis] - 0.1 * x[axis]).abs() < 1e-4, "{D}D: the new particle at {x:?} moves at {v:?}");
        }
    }
    pool.sort();
    assert_eq!(pool.particles.len(), before + done.added - done.removed, "{D}D: all accounted for");
    let mut looked_at = 0;
    for &slot in pool.blocks.slots().as_slice() {
        let first = pool.blocks.first_cell(slot as usize);
        for local in 0..block_cells(D) {
            let offset = unflatten::<D>(local, SIDE);
            let cell: [i32; D] = std::array::from_fn(|k| first[k] + offset[k] as i32);
            let count = pool.ranges.of_cells(slot as usize, local, local).len();
            assert!(count <= bounds.most, "{D}D: {count} particles in {cell:?}");
            let inside = cell.iter().all(|&c| (1..23).contains(&c));
            if inside && deep.block(slot as usize)[local / SIDE] & (1 << (local % SIDE)) != 0 {
                looked_at += 1;
                assert!(count >= bounds.fewest, "{D}D: only {count} particles in {cell:?}");
            }
        }
    }
    assert!(looked_at > 50, "{D}D: {looked_at} cells below the surface");
}

#[test]
fn reseeding_keeps_counts_within_bounds_2d() {
    reseeding_keeps_counts_within_bounds::<2>();
}

#[test]
fn reseeding_keeps_counts_within_bounds_3d() {
    reseeding_keeps_counts_within_bounds::<3>();
}
