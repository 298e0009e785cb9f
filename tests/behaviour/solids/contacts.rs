//! Bodies that meet sides, solids and each other.

use glug::geometry::{MOST_MOTIONS, Material, Motion, Shape, Solid};
use glug::math::Vector;
use glug::sim::{FrameReport, Setup, Simulation};

use crate::sim::{advance, corner_box, tank};

use super::{ball, point};

/// A body in kg/m³.
fn heavy<const D: usize>(
    name: &str,
    shape: Shape<D>,
    density: f64,
    friction: f64,
    restitution: f64,
) -> Solid<D> {
    let mass = density * shape.moments().expect("a finite shape").volume;
    let material = Material { mass, friction, restitution, fixed: [false; MOST_MOTIONS] };
    Solid::with_body(name, shape, material, [0.0; MOST_MOTIONS]).expect("a body")
}

/// A tank of a metre with a little water.
fn wet_tank<const D: usize>(cells: usize, level: f64) -> Setup<D> {
    tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [1.0, level], 1.0)])
}

fn run<const D: usize>(setup: &Setup<D>, seconds: f64, mut each: impl FnMut(&FrameReport)) {
    let mut simulation = Simulation::new(setup).expect("it starts");
    for _ in 0..(seconds * 60.0) as usize {
        each(&advance(&mut simulation, 1.0 / 60.0));
    }
}

/// A ball on the floor, under water or not, stays where it is, and the floor does not let it through.
fn what_lies_on_the_floor_stays<const D: usize>(density: f64, level: f64) {
    let cells = if D == 2 { 32 } else { 20 };
    let dx = 1.0 / cells as f64;
    let mut setup = wet_tank::<D>(cells, level);
    let radius = 0.15;
    setup.solids.push(heavy("ball", ball(point(0.5, radius + 0.1 * dx, 0.5), radius), density, 0.3, 0.0));
    run(&setup, 0.5, |report| {
        let body = &report.bodies[0];
        let height = body.position[1] - radius;
        assert!(height > -1e-6 && height < 0.3 * dx, "{D}D: {height} m above the floor at {}", report.time);
        let speed = body.velocity.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!(speed < 0.02, "{D}D: {speed} m/s at {}", report.time);
    });
}

#[test]
fn what_lies_on_the_floor_stays_2d() {
    what_lies_on_the_floor_stays::<2>(2000.0, 0.6);
    what_lies_on_the_floor_stays::<2>(2000.0, 0.05);
}

#[test]
fn what_lies_on_the_floor_stays_3d() {
    what_lies_on_the_floor_stays::<3>(2000.0, 0.6);
}

/// A ball falls on dry floor, and bounces as it should.
#[test]
fn a_falling_ball_bounces_by_its_restitution() {
    for restitution in [0.0, 0.6] {
        let mut setup = wet_tank::<2>(32, 0.03);
        setup.params.min_substeps = 4;
        setup.solids.push(heavy("ball", ball(point(0.5, 0.7, 0.5), 0.1), 5000.0, 0.3, restitution));
        let (mut impact, mut rebound, mut lowest) = (0.0f64, 0.0f64, 1.0f64);
        run(&setup, 0.7, |report| {
            let [y, v] = [report.bodies[0].position[1], report.bodies[0].velocity[1]];
            lowest = lowest.min(y);
            (impact, rebound) = (impact.min(v), rebound.max(v));
        });
        assert!(impact < -2.5, "it falls: {impact} m/s");
        assert!(lowest > 0.1 - 0.2 / 32.0, "it stays above the floor: {lowest} m");
        let share = -rebound / impact;
        assert!((share - restitution).abs() < 0.2, "it bounces by {share}, not {restitution}");
    }
}

/// A stack of boxes on dry floor stands.
#[test]
fn a_stack_stands() {
    let cells = 32;
    let dx = 1.0 / f64::from(cells);
    let mut setup = wet_tank::<2>(cells as usize, 0.03);
    let size = 0.15;
    for k in 0..3 {
        let low = Vector::from([0.4, 0.1 * dx + f64::from(k) * (size + 0.1 * dx)]);
        let shape = Shape::Box { min: low, max: low + Vector::repeat(size) };
        setup.solids.push(heavy("box", shape, 2000.0, 0.5, 0.0));
    }
    let start: Vec<_> =
        setup.solids.iter().map(|solid| solid.body.as_ref().expect("a body").position()).collect();
    run(&setup, 1.0, |report| {
        for (body, start) in report.bodies.iter().zip(&start) {
            let moved = (0..2).map(|k| (body.position[k] - start[k]).powi(2)).sum::<f64>().sqrt();
            assert!(moved < 0.5 * dx, "{moved} m at {}: {body:?}", report.time);
        }
    });
}

/// A box on a slope slides if the slope is steeper than its friction.
#[test]
fn a_box_slides_on_a_slope_that_is_steeper_than_its_friction() {
    let angle = 0.35f64;
    for (friction, slides) in [(0.6, false), (0.1, true)] {
        let mut setup = wet_tank::<2>(32, 0.03);
        let normal = Vector::from([-angle.sin(), angle.cos()]);
        let foot = Vector::from([0.2, 0.2]);
        setup.solids.push(Solid::new("slope", Shape::half_space(foot, normal), Motion::default()));
        setup.liquids[0].shape = corner_box([0.0, 0.0], [0.1, 0.03], 1.0);
        let along = Vector::from([angle.cos(), angle.sin()]);
        let centre = foot + along * 0.5 + normal * (0.06 + 0.1 / 32.0);
        let half = Vector::from([0.1, 0.06]);
        let shape =
            Shape::Box { min: centre - half, max: centre + half }.rotated([0.0, 0.0, 1.0], angle, centre);
        setup.solids.push(heavy("box", shape, 2000.0, friction, 0.0));
        setup.liquids[0].shape = corner_box([0.0, 0.9], [0.1, 0.95], 1.0);
        let mut moved = 0.0;
        run(&setup, 0.4, |report| {
            let body = &report.bodies[0];
            moved = (foot + along * 0.5 - Vector::from([body.position[0], body.position[1]])).dot(&along);
        });
        let expected = 0.5 * 9.81 * (angle.sin() - friction * angle.cos()).max(0.0) * 0.4 * 0.4;
        assert!(
            (moved - expected).abs() < 0.02 + 0.15 * expected,
            "friction {friction}: {moved} m, not {expected}"
        );
        assert_eq!(moved > 0.05, slides, "friction {friction}: {moved} m");
    }
}
