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

/// Many bodies that fall onto each other and into water: none gets faster than it fell, and none gets out.
fn a_heap_of_bodies_stays_together<const D: usize>(cells: usize, rows: usize, frames: usize) {
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, 0.35], 1.0)]);
    let depths = if D == 2 { 1 } else { 3 };
    let densities = [300.0, 2200.0, 800.0, 1500.0, 950.0, 3000.0, 500.0];
    for index in 0..rows * 5 * depths {
        let (column, row) = (index % 5, index / (5 * depths));
        let at = |k: usize| (k as f64 + 0.5) / 5.0;
        let centre = point::<D>(
            at(column) + 0.01 * (row % 3) as f64,
            0.43 + 0.13 * row as f64,
            at(1 + index / 5 % depths),
        );
        let reach = Vector::from_fn(|axis, _| if axis == 0 { 0.03 } else { 0.0 });
        let shape = match index % 3 {
            0 => ball(centre, 0.055),
            1 => Shape::Box { min: centre - Vector::repeat(0.045), max: centre + Vector::repeat(0.045) },
            _ => Shape::Capsule { from: centre - reach, to: centre + reach, radius: 0.035 },
        };
        setup.solids.push(heavy("body", shape, densities[index % 7], [0.0; MOST_MOTIONS]));
    }
    setup.params.model = Model::Constraint;
    setup.size[1] = 2.0;
    setup.grid = Grid::covering(setup.size, cells);
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let mut volume = None;
    let mut fastest = 0.0f64;
    for frame in 0..frames {
        let report = advance(&mut simulation, 1.0 / 60.0);
        assert!(report.warnings.is_empty(), "{D}D frame {frame}: {:?}", report.warnings);
        let start = *volume.get_or_insert(report.liquid.volume);
        let change = (report.liquid.volume / start - 1.0).abs();
        assert!(change < 0.03, "{D}D frame {frame}: volume by {change:.3}");
        for (id, body) in simulation.state().walls.bodies(report.time) {
            fastest = fastest.max(body.max_speed());
            assert!(body.max_speed() < 8.0, "{D}D frame {frame}: body {id} at {} m/s", body.max_speed());
            let inside = body.position().iter().zip(setup.size).all(|(&x, size)| x > 0.02 && x < size - 0.02);
            assert!(inside, "{D}D frame {frame}: body {id} at {}", body.position());
        }
    }
    println!("{D}D: {fastest:.2} m/s, at most");
}

#[test]
fn a_heap_of_bodies_stays_together_2d() {
    a_heap_of_bodies_stays_together::<2>(50, 10, 60);
}

#[test]
fn a_heap_of_bodies_stays_together_3d() {
    a_heap_of_bodies_stays_together::<3>(24, 3, 40);
}

/// The same bits for any number of threads.
fn threads_do_not_change_a_bit<const D: usize>(cells: usize, frames: usize) {
    let setup = dropped_bodies::<D>(cells, Model::Constraint);
    let run = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut simulation = Simulation::new(&setup).expect("it starts");
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
    threads_do_not_change_a_bit::<2>(40, 12);
}

#[test]
fn threads_do_not_change_a_bit_3d() {
    threads_do_not_change_a_bit::<3>(20, 5);
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
