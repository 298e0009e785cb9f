//! Particles on their way.

use glug::geometry::{Motion, Shape, Solid};
use glug::liquid::{self, Particles};
use glug::math::Vector;

use super::pool::{Pool, random};

/// Largest distance from its start of any particle after one turn in so many steps, in cells.
fn error_after_one_turn<const D: usize>(steps: usize) -> f64 {
    let mut pool = Pool::<D>::new([32; D], 0.1, Vec::new());
    for i in 0..200 {
        let angle = std::f64::consts::TAU * random(1, i) as f64;
        let radius = 2.0 + 5.0 * random(2, i) as f64;
        let mut x = [16.0; D];
        x[0] += (radius * angle.cos()) as f32;
        x[1] += (radius * angle.sin()) as f32;
        // The velocity only names the particle.
        pool.particles.push(x, [i as f32; D]);
    }
    let start = pool.particles.position.clone();
    let dt = std::f64::consts::TAU / steps as f64;
    for _ in 0..steps {
        pool.sort();
        // One radian per second about the axis through the middle.
        pool.set_velocity(|x, axis| match axis {
            0 => -0.1 * (x[1] - 16.0),
            1 => 0.1 * (x[0] - 16.0),
            _ => 0.0,
        });
        liquid::advect(
            &mut pool.particles,
            &pool.ranges,
            &pool.blocks,
            &pool.velocity,
            dt,
            liquid::no_affine_cells,
        );
    }
    let found = pool.particles.position.iter().zip(&pool.particles.velocity);
    let errors = found.map(|(x, v)| {
        let from = start[v[0] as usize];
        x.iter().zip(&from).map(|(a, b)| (a - b) as f64).map(|d| d * d).sum::<f64>().sqrt()
    });
    errors.fold(0.0, f64::max)
}

fn a_turn_brings_particles_back_to_third_order<const D: usize>() {
    let errors = [24, 48, 96].map(error_after_one_turn::<D>);
    assert!(errors[0] < 0.1, "{D}D: {errors:?}");
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((2.7..3.3).contains(&order), "{D}D: order {order:.2} from {errors:?}");
    }
}

#[test]
fn a_turn_brings_particles_back_to_third_order_2d() {
    a_turn_brings_particles_back_to_third_order::<2>();
}

#[test]
fn a_turn_brings_particles_back_to_third_order_3d() {
    a_turn_brings_particles_back_to_third_order::<3>();
}

/// Random flow against random solids. `depth` is how far inside, in cells, a particle may end: the grid rounds edges.
fn particles_stay_out_of_solids<const D: usize>(solid: impl Fn(u64) -> Shape<D>, depth: f64) {
    for seed in 0..6 {
        let rock = Solid::new("rock", solid(seed), Motion::default());
        let mut pool = Pool::<D>::new([20; D], 0.05, vec![rock]);
        let outside = |pool: &Pool<D>, x| pool.walls.distance(&pool.world(x), 0.0) > 0.0;
        let mut inside = Pool::<D>::new([20; D], 0.05, Vec::new());
        inside.seed(1.0, |_| true);
        for x in inside.particles.position {
            if outside(&pool, x) {
                pool.particles.push(x, [0.0; D]);
            }
        }
        let count = pool.particles.len();
        for step in 0..5u64 {
            pool.sort();
            // Up to two cells per step, every face by itself.
            pool.set_velocity(|x, axis| {
                let key = x.iter().fold(axis as u64, |key, x| key * 211 + (2.0 * x) as u64);
                0.2 * (random(seed * 10 + step, key) as f64 - 0.5)
            });
            let ranges = &pool.ranges;
            for i in 0..pool.particles.len() {
                pool.particles.velocity[i] = std::array::from_fn(|k| random(step, (i * D + k) as u64) - 0.5);
            }
            liquid::advect(
                &mut pool.particles,
                ranges,
                &pool.blocks,
                &pool.velocity,
                1.0,
                liquid::no_affine_cells,
            );
            liquid::collide(&mut pool.particles, ranges, &pool.blocks, &pool.boundary, &pool.walls, 0.0);
            for x in &pool.particles.position {
                assert!(Particles::is_alive(x), "{D}D: nothing leaves a closed box");
                let distance = pool.walls.distance(&pool.world(*x), 0.0) / 0.05;
                assert!(distance > -depth, "{D}D seed {seed}: {:.3} cells inside, at {x:?}", -distance);
                let within = x.iter().all(|&x| x > 0.0 && x < 20.0);
                assert!(within, "{D}D seed {seed}: {x:?} is outside the box");
            }
        }
        pool.sort();
        assert_eq!(pool.particles.len(), count, "{D}D seed {seed}: none is lost");
    }
}

fn particles_stay_out_of_balls<const D: usize>() {
    particles_stay_out_of_solids::<D>(
        |seed| {
            let center = Vector::from_fn(|k, _| 0.3 + 0.4 * random(seed, k as u64) as f64);
            Shape::Sphere { center, radius: 0.15 + 0.1 * random(seed, 9) as f64 }
        },
        0.1,
    );
}

#[test]
fn particles_stay_out_of_balls_2d() {
    particles_stay_out_of_balls::<2>();
}

#[test]
fn particles_stay_out_of_balls_3d() {
    particles_stay_out_of_balls::<3>();
}

/// Turned inside out, a box is a container whose corners the particles are driven into.
fn particles_stay_in_turned_containers<const D: usize>() {
    particles_stay_out_of_solids::<D>(
        |seed| {
            let middle = Vector::<D>::repeat(0.5);
            let cavity = Shape::Box { min: middle.add_scalar(-0.27), max: middle.add_scalar(0.27) };
            let axis = if D == 2 { [0.0, 0.0, 1.0] } else { [0.3, 0.5, 1.0] };
            cavity.rotated(axis, 1.5 * random(seed, 4) as f64, middle).inverted()
        },
        0.3,
    );
}

#[test]
fn particles_stay_in_turned_containers_2d() {
    particles_stay_in_turned_containers::<2>();
}

#[test]
fn particles_stay_in_turned_containers_3d() {
    particles_stay_in_turned_containers::<3>();
}

fn open_sides_let_particles_go<const D: usize>() {
    let mut pool = Pool::<D>::new([16; D], 0.05, Vec::new());
    pool.walls.open[0][1] = true;
    pool.seed(0.5, |x| x[0] > 8.0);
    let count = pool.particles.len();
    for _ in 0..5 {
        pool.sort();
        pool.set_velocity(|_, axis| if axis == 0 { 0.1 } else { 0.0 });
        let ranges = &pool.ranges;
        liquid::advect(
            &mut pool.particles,
            ranges,
            &pool.blocks,
            &pool.velocity,
            0.5,
            liquid::no_affine_cells,
        );
        liquid::collide(&mut pool.particles, ranges, &pool.blocks, &pool.boundary, &pool.walls, 0.0);
    }
    pool.sort();
    let left = pool.particles.len() as f64 / count as f64;
    assert!((left - 3.0 / 8.0).abs() < 0.02, "{D}D: five of eight cells left, {left:.3} remain");
    assert!(pool.particles.position.iter().all(|x| x[0] <= 16.0), "{D}D: none beyond the side");
}

#[test]
fn open_sides_let_particles_go_2d() {
    open_sides_let_particles_go::<2>();
}

#[test]
fn open_sides_let_particles_go_3d() {
    open_sides_let_particles_go::<3>();
}
