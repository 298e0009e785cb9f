//! Bodies in whole simulations.

use glug::geometry::{MOST_MOTIONS, Material, Shape, Solid, Twist};
use glug::grid::Grid;
use glug::math::Vector;
use glug::sim::{Model, Setup, Simulation};
use rayon::ThreadPoolBuilder;

use crate::checkpoint::{advance_both, statistics, traces};
use crate::sim::{advance, corner_box, tank};

use super::{ball, point};

fn heavy<const D: usize>(name: &str, shape: Shape<D>, density: f64, velocity: Twist) -> Solid<D> {
    let mass = density * shape.moments().expect("a finite shape").volume;
    let material = Material { mass, friction: 0.3, restitution: 0.1, fixed: [false; MOST_MOTIONS] };
    Solid::with_body(name, shape, material, velocity).expect("a body")
}

/// Two bodies fall into a tank: a light box that turns, and a heavy ball.
pub fn dropped_bodies<const D: usize>(cells: usize, model: Model) -> Setup<D> {
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.4], 1.0)]);
    let (centre, half) = (point::<D>(0.35, 0.62, 0.5), Vector::repeat(0.11));
    let shape = Shape::Box { min: centre - half, max: centre + half };
    let spin = if D == 2 { [0.2, 0.0, 2.0, 0.0, 0.0, 0.0] } else { [0.2, 0.0, 0.0, 1.0, 0.5, 2.0] };
    setup.solids.push(heavy("box", shape, 400.0, spin));
    setup.solids.push(heavy("ball", ball(point(0.72, 0.56, 0.45), 0.1), 2500.0, [0.0; MOST_MOTIONS]));
    setup.params.model = model;
    setup.params.tile_size = 8;
    (setup.params.surface_band, setup.params.wall_band) = (2, 2);
    setup.params.air_density = 50.0;
    setup
}

/// Nothing gets lost, nothing gets into anything, in any model.
fn bodies_fall_in_and_all_stays_well<const D: usize>() {
    for model in Model::ALL {
        let cells = if D == 2 { 40 } else { 20 };
        let setup = dropped_bodies::<D>(cells, model);
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let what = |frame: usize| format!("{D}D {} frame {frame}", model.name());
        let mut volume = None;
        let frames = if D == 2 { 40 } else { 16 };
        for frame in 0..frames {
            let report = advance(&mut simulation, 1.0 / 60.0);
            assert!(report.warnings.is_empty(), "{}: {:?}", what(frame), report.warnings);
            let start = *volume.get_or_insert(report.liquid.volume);
            let change = (report.liquid.volume / start - 1.0).abs();
            assert!(change < 0.06, "{}: volume by {change:.3}", what(frame));
            let walls = &simulation.state().walls;
            for body in &report.bodies {
                let speed = body.velocity.iter().map(|v| v * v).sum::<f64>().sqrt();
                assert!(speed < 5.0, "{}: {body:?}", what(frame));
                let inside = body.position.iter().all(|x| (0.05..0.95).contains(x));
                assert!(inside, "{}: {body:?}", what(frame));
            }
            for solid in &walls.solids {
                let alive = simulation.particle_positions().iter().filter(|x| !x[0].is_nan());
                let place = |x: &[f32; D]| Vector::<D>::from_fn(|k, _| f64::from(x[k]) * report.dx);
                let depth = |x: &[f32; D]| solid.distance(&place(x), report.time) / report.dx;
                let Some(deepest) = alive.min_by(|a, b| depth(a).total_cmp(&depth(b))) else { continue };
                let around =
                    walls.solids.iter().map(|solid| solid.distance(&place(deepest), report.time) / report.dx);
                let around: Vec<f64> = around.collect();
                assert!(
                    depth(deepest) > -1e-3,
                    "{}: a particle at {deepest:?}, cells from bodies: {around:?}",
                    what(frame)
                );
            }
        }
    }
}

#[test]
fn bodies_fall_in_and_all_stays_well_2d() {
    bodies_fall_in_and_all_stays_well::<2>();
}

#[test]
fn bodies_fall_in_and_all_stays_well_3d() {
    bodies_fall_in_and_all_stays_well::<3>();
}

/// Bodies of many kinds, so many side by side, above water that fills a third of a tank two metres high.
fn heap<const D: usize>(cells: usize, across: usize, count: usize) -> Setup<D> {
    let size = Vector::<D>::from_fn(|axis, _| if axis == 1 { 2.0 } else { 1.0 });
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.35], 1.0)]);
    let pitch = 1.0 / across as f64;
    let deep = if D == 2 { 1 } else { across.min(5) };
    let densities = [300.0, 2200.0, 800.0, 1500.0, 950.0, 3000.0, 500.0];
    for index in 0..count {
        let (column, row) = (index % across, index / (across * deep));
        let at = |k: usize| (k as f64 + 0.5) * pitch;
        let centre = point::<D>(
            at(column) + 0.05 * pitch * (row % 3) as f64,
            0.43 + 0.65 * pitch * row as f64,
            at((1 + index / across) % deep),
        );
        let reach = Vector::from_fn(|axis, _| if axis == 0 { 0.15 * pitch } else { 0.0 });
        let half = Vector::repeat(0.225 * pitch);
        let shape = match index % 3 {
            0 => ball(centre, 0.275 * pitch),
            1 => Shape::Box { min: centre - half, max: centre + half },
            _ => Shape::Capsule { from: centre - reach, to: centre + reach, radius: 0.175 * pitch },
        };
        setup.solids.push(heavy("body", shape, densities[index % 7], [0.0; MOST_MOTIONS]));
    }
    setup.params.model = Model::Constraint;
    setup.size = std::array::from_fn(|axis| size[axis]);
    setup.grid = Grid::covering(setup.size, cells);
    setup
}

/// Bodies that fall onto each other and into water: none gets faster than it fell, none gets out or into another, and the water
/// stays.
fn a_heap_of_bodies_stays_together<const D: usize>(setup: &Setup<D>, frames: usize, most_lost: f64) {
    let mut simulation = Simulation::new(setup).expect("it starts");
    let mut volume = None;
    let (mut fastest, mut at_last, mut worst) = (0.0f64, 0.0f64, 0.0f64);
    for frame in 0..frames {
        let report = advance(&mut simulation, 1.0 / 60.0);
        assert!(report.warnings.is_empty(), "{D}D frame {frame}: {:?}", report.warnings);
        let start = *volume.get_or_insert(report.liquid.volume);
        let change = (report.liquid.volume / start - 1.0).abs();
        worst = worst.max(change);
        assert!(change < most_lost, "{D}D frame {frame}: volume by {change:.3}");
        let walls = &simulation.state().walls;
        let bodies: Vec<_> = walls.bodies(report.time).collect();
        assert_eq!(bodies.len(), setup.solids.len(), "{D}D frame {frame}: some left");
        at_last = bodies.iter().map(|(_, body)| body.max_speed()).fold(0.0, f64::max);
        fastest = fastest.max(at_last);
        for &(id, body) in &bodies {
            assert!(body.max_speed() < 8.0, "{D}D frame {frame}: body {id} at {} m/s", body.max_speed());
            let solid = &walls.solids[id];
            for touch in solid.shape.touch_points() {
                let x = body.pose().from_rest(&touch.at);
                let depth = x.iter().zip(setup.size).map(|(&x, size)| x.min(size - x)).fold(1.0, f64::min);
                let depth = (depth - touch.radius) / report.dx;
                assert!(depth > -0.5, "{D}D frame {frame}: body {id} {depth:.2} cells outside");
            }
            let others = bodies.iter().filter(|(other, _)| *other != id);
            for &(other, _) in
                others.filter(|(_, other)| (other.position() - body.position()).norm() < body.radius)
            {
                let depth = walls.solids[other].distance(&body.position(), report.time) / report.dx;
                assert!(depth > 0.0, "{D}D frame {frame}: body {id} lies {depth:.2} cells in body {other}");
            }
        }
    }
    println!("{D}D: {fastest:.2} m/s at most, {at_last:.2} m/s at last, volume by {worst:.1e}");
}

#[test]
fn a_heap_of_bodies_stays_together_2d() {
    a_heap_of_bodies_stays_together(&heap::<2>(50, 5, 50), 60, 0.03);
}

#[test]
fn a_heap_of_bodies_stays_together_3d() {
    a_heap_of_bodies_stays_together(&heap::<3>(24, 5, 75), 40, 0.03);
}

#[test]
#[ignore = "ten simulated seconds"]
fn two_hundred_bodies_stay_together_2d() {
    a_heap_of_bodies_stays_together(&heap::<2>(96, 10, 200), 600, 0.02);
}

#[test]
#[ignore = "ten simulated seconds"]
fn two_hundred_bodies_stay_together_3d() {
    a_heap_of_bodies_stays_together(&heap::<3>(32, 5, 200), 600, 0.02);
}

/// The same bits for any number of threads.
fn threads_do_not_change_a_bit<const D: usize>(setup: &Setup<D>, frames: usize) {
    let run = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut simulation = Simulation::new(setup).expect("it starts");
            let reports: Vec<String> =
                (0..frames).map(|_| statistics(advance(&mut simulation, 1.0 / 60.0))).collect();
            (reports, traces(&simulation))
        })
    };
    let one = run(1);
    for threads in [2, 4] {
        let several = run(threads);
        assert_eq!(one.0, several.0, "{D}D: statistics with {threads} threads");
        assert!(one.1 == several.1, "{D}D: fields or particles with {threads} threads");
    }
}

#[test]
fn threads_do_not_change_a_bit_2d() {
    threads_do_not_change_a_bit(&dropped_bodies::<2>(40, Model::Constraint), 12);
    // So close that they lie on each other soon.
    threads_do_not_change_a_bit(&heap::<2>(50, 5, 40), 24);
}

#[test]
fn threads_do_not_change_a_bit_3d() {
    threads_do_not_change_a_bit(&dropped_bodies::<3>(20, Model::Constraint), 5);
}

/// A run that was saved goes on as if it had not been, with new memory as with old.
fn resumed_runs_are_like_uninterrupted_ones<const D: usize>(cells: usize, frames: usize) {
    for model in Model::ALL {
        let setup = dropped_bodies::<D>(cells, model);
        let mut whole = Simulation::new(&setup).expect("it starts");
        (0..frames).for_each(|_| drop(advance(&mut whole, 1.0 / 60.0)));
        let mut saved = Vec::new();
        whole.save(&mut saved).expect("it is saved");
        let mut resumed = Simulation::<D>::load(&setup, saved.as_slice()).expect("it is read");
        for _ in 0..4 {
            advance_both(&mut whole, &mut resumed, 1.0 / 60.0, &format!("{D}D {}", model.name()));
        }
        let bodies = |simulation: &Simulation<D>| {
            let solids = simulation.state().walls.solids.iter();
            solids.filter_map(|solid| solid.body.as_ref().map(|body| *body.state())).collect::<Vec<_>>()
        };
        assert_eq!(bodies(&whole), bodies(&resumed), "{D}D {}", model.name());
    }
}

#[test]
fn resumed_runs_are_like_uninterrupted_ones_2d() {
    resumed_runs_are_like_uninterrupted_ones::<2>(40, 9);
}

#[test]
fn resumed_runs_are_like_uninterrupted_ones_3d() {
    resumed_runs_are_like_uninterrupted_ones::<3>(20, 4);
}

/// A box let go a little above its draft comes to rest there.
#[test]
fn a_box_settles_at_its_draft() {
    let cells = 50;
    let mut setup = tank([1.0, 0.8], cells, vec![corner_box([0.0, 0.0], [1.0, 0.4], 1.0)]);
    let (width, height, density) = (0.3, 0.16, 500.0);
    let low = Vector::from([0.35, 0.35]);
    let shape = Shape::Box { min: low, max: low + Vector::from([width, height]) };
    setup.solids.push(heavy("box", shape.clone(), density, [0.0; MOST_MOTIONS]));
    let cut = setup.liquids[0].shape.clone();
    setup.liquids[0].shape = Shape::Difference(Box::new(cut), vec![shape]);
    setup.params.flip = 0.5;
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let (mut sum, mut count) = (0.0, 0.0);
    for frame in 0..240 {
        let report = advance(&mut simulation, 1.0 / 60.0);
        if frame >= 120 {
            // The level without waves, from what there is of liquid.
            let body = &report.bodies[0];
            let level = report.liquid.volume + body.submerged * width * height;
            sum += (level - (body.position[1] - 0.5 * height)) / report.dx;
            count += 1.0;
        }
    }
    let (draft, expected) = (sum / count, 0.5 * height * cells as f64);
    assert!((draft - expected).abs() < 0.3, "draft {draft:.2} cells, not {expected:.2}");
}
