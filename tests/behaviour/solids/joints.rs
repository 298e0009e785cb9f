//! Bodies that joints tie, in a tank that is nearly empty.

use std::f64::consts::PI;

use glug::geometry::{Joint, JointKind, MOST_MOTIONS, Material, Motor, Shape, Solid};
use glug::math::Vector;
use glug::sim::{FrameReport, Setup, Simulation};

use crate::sim::{advance, corner_box, tank};

use super::{ball, point};

/// A box of a metre with a little water in its corner.
fn dry_tank<const D: usize>(cells: usize) -> Setup<D> {
    let mut setup = tank([1.0; D], cells, vec![corner_box([0.0, 0.0], [0.2, 0.06], 1.0)]);
    setup.params.min_substeps = 4;
    setup
}

fn add<const D: usize>(setup: &mut Setup<D>, shape: Shape<D>, mass: f64) -> usize {
    let material = Material { mass, friction: 0.3, restitution: 0.0, fixed: [false; MOST_MOTIONS] };
    let name = format!("body {}", setup.solids.len());
    let solid = Solid::with_body(name, shape, material, [0.0; MOST_MOTIONS]);
    setup.solids.push(solid.expect("a body"));
    setup.solids.len() - 1
}

fn tie<const D: usize>(
    setup: &mut Setup<D>,
    body: usize,
    to: Option<usize>,
    at: Vector<D>,
    kind: JointKind<D>,
) {
    setup.joints.push(Joint { body, to, at: [at; 2], kind });
}

fn run<const D: usize>(setup: &Setup<D>, frames: usize, mut each: impl FnMut(&FrameReport, &Simulation<D>)) {
    let mut simulation = Simulation::new(setup).expect("it starts");
    for _ in 0..frames {
        let report = advance(&mut simulation, 1.0 / 60.0);
        each(&report, &simulation);
    }
}

/// Where a joint's points are: their distance.
fn gap<const D: usize>(setup: &Setup<D>, simulation: &Simulation<D>, joint: usize) -> f64 {
    let Joint { body, to, at, .. } = &setup.joints[joint];
    let place = |solid: usize, x: &Vector<D>| {
        let solid = &simulation.state().walls.solids[solid];
        solid.pose(0.0).map_or(*x, |pose| pose.from_rest(x))
    };
    (place(*body, &at[0]) - to.map_or(at[1], |to| place(to, &at[1]))).norm()
}

/// Times at which a series goes through zero upwards.
fn period(series: &[(f64, f64)]) -> f64 {
    let crossings: Vec<f64> = series
        .windows(2)
        .filter(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)
        .map(|pair| pair[0].0 + (pair[1].0 - pair[0].0) * pair[0].1 / (pair[0].1 - pair[1].1))
        .collect();
    assert!(crossings.len() >= 2, "it swings: {crossings:?}");
    (crossings[crossings.len() - 1] - crossings[0]) / (crossings.len() - 1) as f64
}

/// A rod on a hinge swings with the period of a physical pendulum.
fn a_pendulum_keeps_time<const D: usize>(cells: usize) {
    let mut setup = dry_tank::<D>(cells);
    let (pivot, length, tilt) = (point::<D>(0.5, 0.85, 0.5), 0.4, 0.15f64);
    let half = point::<D>(0.03, 0.5 * length, 0.03);
    let centre = pivot - point::<D>(0.0, 0.5 * length, 0.0);
    let shape = Shape::Box { min: centre - half, max: centre + half };
    let body = add(&mut setup, shape.rotated([0.0, 0.0, 1.0], tilt, pivot), 3.0);
    tie(&mut setup, body, None, pivot, JointKind::Hinge { axis: [0.0, 0.0, 1.0], motor: None });
    let (mut series, mut drift) = (Vec::new(), 0.0f64);
    run(&setup, 150, |report, simulation| {
        series.push((report.time, report.bodies[0].position[0] - 0.5));
        drift = drift.max(gap(&setup, simulation, 0));
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    });
    let (a, b) = (length, 0.06);
    let about_pivot = (a * a + b * b) / 12.0 + 0.25 * length * length;
    let theory = 2.0 * PI * (about_pivot / (9.81 * 0.5 * length)).sqrt() * (1.0 + tilt * tilt / 16.0);
    let found = period(&series);
    assert!((found / theory - 1.0).abs() < 0.02, "{D}D: {found} s, not {theory}");
    assert!(drift < 2e-4, "{D}D: the hinge is {drift} m off");
    let highest = series.iter().rev().take(60).map(|(_, x)| x.abs()).fold(0.0, f64::max);
    let start = 0.5 * length * tilt.sin();
    assert!((highest / start - 1.0).abs() < 0.1, "{D}D: swings {highest} m after {start}");
}

#[test]
fn a_pendulum_keeps_time_2d() {
    a_pendulum_keeps_time::<2>(32);
}

#[test]
fn a_pendulum_keeps_time_3d() {
    a_pendulum_keeps_time::<3>(16);
}

/// A beam on a hinge with the same weight on both sides does not move at all.
#[test]
fn a_balanced_seesaw_is_still() {
    let mut setup = dry_tank::<2>(32);
    let pivot = Vector::from([0.5, 0.5]);
    let half = Vector::from([0.3, 0.03]);
    let body = add(&mut setup, Shape::Box { min: pivot - half, max: pivot + half }, 3.0);
    tie(&mut setup, body, None, pivot, JointKind::Hinge { axis: [0.0, 0.0, 1.0], motor: None });
    run(&setup, 30, |report, simulation| {
        assert!(gap(&setup, simulation, 0) < 1e-10, "the hinge moves");
        assert!(report.bodies[0].angular_velocity[0].abs() < 1e-10, "{:?}", report.bodies[0]);
    });
}

/// A chain of balls hangs together while it swings, and does not gain energy.
fn a_chain_hangs_together<const D: usize>(cells: usize) {
    let mut setup = dry_tank::<D>(cells);
    let (radius, step) = (0.04, 0.11);
    let mut before = None;
    for link in 0..5 {
        let at = point::<D>(0.4 + step * link as f64, 0.9, 0.5);
        let body = add(&mut setup, ball(at + point(0.5 * step, 0.0, 0.0), radius), 0.5);
        tie(&mut setup, body, before, at, JointKind::Ball);
        before = Some(body);
    }
    let energy = |report: &FrameReport| -> f64 {
        let of = |body: &glug::sim::BodyReport| {
            body.mass * (9.81 * body.position[1] + 0.5 * body.velocity.iter().map(|v| v * v).sum::<f64>())
        };
        report.bodies.iter().map(of).sum()
    };
    let (mut worst, mut first) = (0.0f64, None);
    run(&setup, 60, |report, simulation| {
        (0..5).for_each(|joint| worst = worst.max(gap(&setup, simulation, joint)));
        let start = *first.get_or_insert(energy(report));
        assert!(energy(report) < start + 0.02 * start.abs(), "{D}D: {} J after {start}", energy(report));
    });
    assert!(worst < 0.1 / cells as f64, "{D}D: a joint is {worst} m off");
}

#[test]
fn a_chain_hangs_together_2d() {
    a_chain_hangs_together::<2>(32);
}

#[test]
fn a_chain_hangs_together_3d() {
    a_chain_hangs_together::<3>(16);
}

/// What may only slide down a slope does so with the share of gravity along it, and without turning.
fn a_slider_keeps_to_its_line<const D: usize>(cells: usize) {
    let mut setup = dry_tank::<D>(cells);
    let along = point::<D>(0.8, -0.6, 0.0);
    let start = point::<D>(0.25, 0.8, 0.5);
    let half = Vector::<D>::repeat(0.05);
    let body = add(&mut setup, Shape::Box { min: start - half, max: start + half }, 2.0);
    tie(&mut setup, body, None, start, JointKind::Slider { along, motor: None });
    run(&setup, 24, |report, _| {
        let body = &report.bodies[0];
        let moved = Vector::<D>::from_fn(|k, _| body.position[k] - start[k]);
        let across = (moved - along * moved.dot(&along)).norm();
        let theory = 0.5 * 9.81 * 0.6 * report.time * report.time;
        assert!(across < 1e-9, "{D}D: {across} m off its line");
        assert!((moved.dot(&along) - theory).abs() < 0.02 * theory + 2e-3, "{D}D: {moved}, not {theory}");
        assert!(body.angular_velocity.iter().all(|spin| spin.abs() < 1e-9), "{D}D: it turns");
    });
}

#[test]
fn a_slider_keeps_to_its_line_2d() {
    a_slider_keeps_to_its_line::<2>(32);
}

#[test]
fn a_slider_keeps_to_its_line_3d() {
    a_slider_keeps_to_its_line::<3>(16);
}

/// A weight on a spring swings up and down with the period that its stiffness says.
#[test]
fn a_weight_on_a_spring_keeps_time() {
    let mut setup = dry_tank::<2>(32);
    setup.params.min_substeps = 16;
    let (mass, stiffness) = (2.0, 300.0);
    let (hook, start) = (Vector::from([0.5, 0.95]), Vector::from([0.5, 0.6]));
    let body = add(&mut setup, ball(start, 0.06), mass);
    // As long as it is at the start, less the weight and three centimetres.
    let length = 0.35 - mass * 9.81 / stiffness - 0.03;
    setup.joints.push(Joint {
        body,
        to: None,
        at: [start, hook],
        kind: JointKind::Spring { stiffness, damping: 0.0, length },
    });
    let mut series = Vec::new();
    run(&setup, 120, |report, _| series.push((report.time, report.bodies[0].position[1] - 0.63)));
    let (found, theory) = (period(&series), 2.0 * PI * (mass / stiffness).sqrt());
    assert!((found / theory - 1.0).abs() < 0.03, "{found} s, not {theory}");
}

/// A ball falls freely until its rope is tight, and is not further away than that afterwards.
#[test]
fn a_rope_holds_at_its_length() {
    let mut setup = dry_tank::<2>(32);
    let (hook, start) = (Vector::from([0.5, 0.95]), Vector::from([0.5, 0.85]));
    let body = add(&mut setup, ball(start, 0.05), 1.0);
    setup.joints.push(Joint { body, to: None, at: [start, hook], kind: JointKind::Rope { length: 0.4 } });
    let (mut fell, mut longest) = (false, 0.0f64);
    run(&setup, 60, |report, _| {
        let below = 0.95 - report.bodies[0].position[1];
        longest = longest.max(below);
        fell |= (report.bodies[0].velocity[1] + 9.81 * report.time).abs() < 1e-6 && report.time > 0.1;
        if report.time > 0.6 {
            assert!(report.bodies[0].velocity[1].abs() < 1e-6, "it hangs: {:?}", report.bodies[0]);
        }
    });
    assert!(fell, "nothing holds it while the rope is loose");
    assert!((longest - 0.4).abs() < 2e-3, "{longest} m");
}

/// A motor speeds a wheel up by its torque, until it turns as fast as it should.
#[test]
fn a_motor_gives_its_torque_until_it_is_fast_enough() {
    let mut setup = dry_tank::<2>(32);
    let (centre, radius, mass) = (Vector::from([0.5, 0.5]), 0.2, 5.0);
    let body = add(&mut setup, ball(centre, radius), mass);
    let (speed, strength) = (6.0, 1.5);
    let motor = Some(Motor { speed, strength });
    tie(&mut setup, body, None, centre, JointKind::Hinge { axis: [0.0, 0.0, 1.0], motor });
    let inertia = 0.5 * mass * radius * radius;
    run(&setup, 40, |report, _| {
        let theory = (strength / inertia * report.time).min(speed);
        let found = report.bodies[0].angular_velocity[0];
        assert!(
            (found - theory).abs() < 0.02 * theory + 1e-9,
            "{found} rad/s at {}, not {theory}",
            report.time
        );
    });
}

/// Two welded boxes fall, land and lie like one.
#[test]
fn what_is_welded_stays_together() {
    let mut setup = dry_tank::<3>(16);
    let place = |x: f64, y: f64| {
        let low = Vector::from([x, y, 0.4]);
        Shape::Box { min: low, max: low + Vector::repeat(0.15) }
    };
    let first = add(&mut setup, place(0.4, 0.4), 3.0);
    let second = add(&mut setup, place(0.55, 0.48), 1.0);
    tie(&mut setup, second, Some(first), Vector::from([0.55, 0.5, 0.5]), JointKind::Weld);
    run(&setup, 40, |_, simulation| {
        let off = gap(&setup, simulation, 0);
        assert!(off < 2e-3, "{off} m apart");
        let solids = &simulation.state().walls.solids;
        let [a, b] = [0, 1].map(|k| solids[k].pose(0.0).expect("a body").rotation);
        assert!((a - b).norm() < 0.01, "turned against each other by {}", (a - b).norm());
    });
}
