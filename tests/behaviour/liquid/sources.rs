//! Sources: where they put particles, and whom they give their velocity.

use glug::geometry::{Motion, Move, Shape, Solid};
use glug::liquid::{Emitter, Layout};
use glug::math::{Vector, power, unflatten};

use super::pool::{Pool, random};

const CELLS: usize = 24;
const DX: f64 = 0.05;

fn ball<const D: usize>(centre: f64, radius: f64) -> Shape<D> {
    Shape::Sphere { center: Vector::repeat(centre * DX), radius: radius * DX }
}

/// The regular places in the shape and outside the walls that no particle is near: every one looked at by itself.
fn empty_places<const D: usize>(
    pool: &Pool<D>,
    shape: &Shape<D>,
    layout: &Layout,
    time: f64,
) -> Vec<[f32; D]> {
    let (spacing, mut found) = (1.0 / layout.per_axis as f32, Vec::new());
    let here: Vec<[f32; D]> = pool.particles.position.iter().copied().filter(|x| !x[0].is_nan()).collect();
    for cell in (0..power(CELLS, D)).map(|flat| unflatten::<D>(flat, CELLS)) {
        for index in 0..layout.per_cell(D) {
            let sub = unflatten::<D>(index, layout.per_axis);
            let place = std::array::from_fn(|k| cell[k] as f32 + (sub[k] as f32 + 0.5) * spacing);
            let x = pool.world(place);
            if shape.distance(&x) >= 0.0 || pool.walls.distance(&x, time) <= 0.0 {
                continue;
            }
            let is_near = |x: &[f32; D]| (0..D).all(|k| (x[k] - place[k]).abs() < 0.75 * spacing);
            if !here.iter().any(|x| is_near(x) && shape.distance(&pool.world(*x)) < 0.5 * DX) {
                found.push(place);
            }
        }
    }
    found
}

/// Particles that come, go and wander between substeps; a wall in the source's mouth, which may move.
fn a_source_fills_the_places_that_are_empty<const D: usize>(motion: Motion<D>) {
    let wall = Solid::new("wall", ball(14.0, 3.0), motion);
    let mut pool = Pool::<D>::new([CELLS; D], DX, vec![wall]);
    let shape = ball(11.0, 5.3);
    let velocity = Vector::from_fn(|k, _| 1.0 + k as f64);
    let layout = Layout { per_axis: 2, jitter: 0.0, salt: 7 };
    let mut emitter = Emitter::default();
    let mut filled = Vec::new();
    for round in 0..4u64 {
        pool.sort();
        let time = 0.1 * round as f64;
        for (i, x) in pool.particles.position.iter_mut().enumerate() {
            for (k, x) in x.iter_mut().enumerate() {
                *x = (*x + 5.0 * (random(round, (i * D + k) as u64) - 0.5)).clamp(0.1, CELLS as f32 - 0.1);
            }
        }
        let (before, mut expected) = (pool.particles.clone(), empty_places(&pool, &shape, &layout, time));
        let Pool { particles, ranges, blocks, walls, .. } = &mut pool;
        let added = emitter.emit(particles, ranges, blocks, &shape, &velocity, walls, &layout, time);
        let mut found = particles.position[before.len()..].to_vec();
        assert_eq!(added, found.len(), "{D}D round {round}");
        let by_bits = |a: &[f32; D], b: &[f32; D]| a.map(f32::to_bits).cmp(&b.map(f32::to_bits));
        found.sort_by(by_bits);
        expected.sort_by(by_bits);
        assert_eq!(found, expected, "{D}D round {round}");
        filled.push(added);
        let own = std::array::from_fn::<f32, D, _>(|k| velocity[k] as f32);
        for i in 0..pool.particles.len() {
            let is_inside = shape.distance(&pool.world(pool.particles.position[i])) < 0.0;
            let expected = if is_inside { own } else { before.velocity[i] };
            assert_eq!(pool.particles.velocity[i], expected, "{D}D round {round}: particle {i}");
        }
    }
    assert!(filled[0] > filled[1] && filled[1..].iter().all(|&added| added > 0), "{D}D: {filled:?}");
}

#[test]
fn a_source_fills_the_places_that_are_empty_2d() {
    a_source_fills_the_places_that_are_empty::<2>(Motion::default());
    let velocity = Vector::from([-4.0, 0.0]) * DX;
    a_source_fills_the_places_that_are_empty::<2>(Motion::new(vec![Move::Glide {
        velocity,
        from: 0.0,
        until: 9.0,
    }]));
}

#[test]
fn a_source_fills_the_places_that_are_empty_3d() {
    a_source_fills_the_places_that_are_empty::<3>(Motion::default());
}

/// Jitter takes no particle out of the shape or into a wall, and a source that is full adds nothing.
fn jitter_keeps_to_the_shape<const D: usize>() {
    let wall = Solid::new("wall", ball(14.0, 3.0), Motion::default());
    let mut pool = Pool::<D>::new([CELLS; D], DX, vec![wall]);
    let shape = ball(11.0, 5.3);
    let mut emitter = Emitter::default();
    pool.sort();
    let regular = empty_places(&pool, &shape, &Layout { per_axis: 2, jitter: 0.0, salt: 0 }, 0.0).len();
    for (salt, wanted) in [(1, regular), (2, 0)] {
        let layout = Layout { per_axis: 2, jitter: 0.5, salt };
        let Pool { particles, ranges, blocks, walls, .. } = &mut pool;
        let added = emitter.emit(particles, ranges, blocks, &shape, &Vector::zeros(), walls, &layout, 0.0);
        assert_eq!(added, wanted, "{D}D");
        for x in particles.position.iter() {
            let x = Vector::from_fn(|k, _| x[k] as f64 * DX);
            assert!(shape.distance(&x) < 0.0 && walls.distance(&x, 0.0) > 0.0, "{D}D: {x:?}");
        }
        pool.sort();
    }
}

#[test]
fn jitter_keeps_to_the_shape_2d() {
    jitter_keeps_to_the_shape::<2>();
}

#[test]
fn jitter_keeps_to_the_shape_3d() {
    jitter_keeps_to_the_shape::<3>();
}
