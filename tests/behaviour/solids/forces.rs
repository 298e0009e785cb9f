//! What bodies that are held press with, and the work that a motor does.

use glug::geometry::{Body, MOST_MOTIONS, OUT_OF_PLANE, Shape, Twist};
use glug::math::Vector;
use glug::pressure::{FREE, Hold, RigidBodies};
use glug::scene::{AnyScene, Overrides, load};
use glug::sim::Simulation;

use crate::sim::advance;
use crate::tank::Tank;

use super::projection::energy_of_liquid;
use super::{ball, body, point};

const FALL: f64 = 0.1;

/// A row along the vertical.
fn upright(parts: &[(usize, f64)]) -> Hold {
    let part = |&(solid, sign): &(usize, f64)| -> (usize, Twist) {
        (solid, std::array::from_fn(|motion| if motion == 1 { sign } else { 0.0 }))
    };
    Hold { parts: parts.iter().map(part).collect(), target: 0.0 }
}

/// Balls above each other in still water, from the floor up or from the lid down, and what each presses on what is beneath or above
/// it, over what it would weigh in air: `s − 1` over `s` for each that it holds.
fn forces_in_a_column<const D: usize>(count: usize, density: f64) -> Vec<f64> {
    let (radius, gap) = (4.0, 0.1);
    let height = (count as f64 * (2.0 * radius + gap)) as usize + 12;
    let size: [usize; D] = std::array::from_fn(|axis| if axis == 1 { height } else { 16 });
    let sinks = density > 1.0;
    let place = |index: usize| {
        let depth = gap + radius + index as f64 * (2.0 * radius + gap);
        if sinks { depth } else { height as f64 - depth }
    };
    let balls = (0..count).map(|index| ball::<D>(point(8.0, place(index), 8.0), radius));
    let volume = ball::<D>(Vector::zeros(), radius).moments().expect("finite").volume;
    let balls = balls.map(|shape| body(shape, density, [0.0; MOST_MOTIONS]));
    let mut tank = Tank::<D>::new(size, 1.0, balls.collect());
    tank.fill(|x| if sinks { x[1] - height as f64 + 2.3 } else { -1.0 });
    tank.impulse[1] = -FALL;
    tank.node.fill(FREE);
    let sign = if sinks { 1.0 } else { -1.0 };
    let holds: Vec<Hold> = (0..count)
        .map(|index| match index {
            0 => upright(&[(0, sign)]),
            _ => upright(&[(index, sign), (index - 1, -sign)]),
        })
        .collect();
    let walls = tank.walls.clone();
    let mut rigid = RigidBodies::new(&walls, 1.0, 0.0, &[], &holds);
    let solved = tank.project_with(&mut [&mut rigid], 1e-10);
    assert!(solved.info.converged, "{D}D: {:?}", solved.info);
    for motion in rigid.motions() {
        // Large groups give way a little: see `pressure::rigid`.
        let most = if count > 5 { 0.03 } else { 1e-9 };
        let speed = motion.velocity[1].abs() / FALL;
        assert!(
            speed < most,
            "{D}D, {count} of density {density}: moves with {speed:.1e} of what gravity adds"
        );
    }
    let weight = density * volume * FALL;
    rigid.impulses_of_holds(&holds).iter().map(|impulse| impulse / weight).collect()
}

/// The force of a contact is the weight less the lift of all that rests on it (table of tests, row 8).
fn contacts_bear_what_water_does_not<const D: usize>() {
    for (count, density) in [(1, 2.0), (1, 1.05), (1, 0.01), (3, 2.0), (14, 2.0)] {
        let found = forces_in_a_column::<D>(count, density);
        let share = (1.0 - 1.0 / density).abs();
        for (index, found) in found.iter().enumerate() {
            let theory = share * (count - index) as f64;
            let off = (found - theory).abs() / share;
            assert!(
                off < 0.04 * (count - index) as f64,
                "{D}D, ball {index} of {count}, density {density}: {found:.4} of its weight, not {theory:.4}"
            );
        }
    }
}

#[test]
fn contacts_bear_what_water_does_not_2d() {
    contacts_bear_what_water_does_not::<2>();
}

#[test]
fn contacts_bear_what_water_does_not_3d() {
    contacts_bear_what_water_does_not::<3>();
}

/// A motor that turns a wheel with four paddles from rest, in a tank full of liquid at rest, does the work that liquid and wheel
/// take up: half its impulse times the speed that it reaches (table of tests, row 11).
#[test]
fn a_motor_does_the_work_that_wheel_and_liquid_take_up() {
    let centre = Vector::from([24.3, 23.8]);
    let blade =
        |half: [f64; 2]| Shape::Box { min: centre - Vector::from(half), max: centre + Vector::from(half) };
    let wheel = Shape::Union(vec![blade([14.0, 2.5]), blade([2.5, 14.0])]).rotated(OUT_OF_PLANE, 0.3, centre);
    let mut tank = Tank::<2>::new([48; 2], 1.0, vec![body(wheel, 1.5, [0.0; MOST_MOTIONS])]);
    tank.fill(|_| -1.0);
    let (arm, speed) = (Vector::zeros(), 0.02);
    let axle = |direction: [f64; 2]| Hold {
        parts: vec![(0, Body::<2>::motion_at(&arm, &Vector::from(direction)))],
        target: 0.0,
    };
    let motor = Hold { parts: vec![(0, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])], target: speed };
    let holds = [axle([1.0, 0.0]), axle([0.0, 1.0]), motor];
    let walls = tank.walls.clone();
    let mut rigid = RigidBodies::new(&walls, 1.0, 0.0, &[], &holds);
    let solved = tank.project_with(&mut [&mut rigid], 1e-10);
    assert!(solved.info.converged, "{:?}", solved.info);
    let found = rigid.motions().next().expect("the wheel").velocity;
    assert!((found[2] / speed - 1.0).abs() < 1e-9, "{found:?}");
    let work = 0.5 * rigid.impulses_of_holds(&holds)[2] * speed;
    let mut wheel = walls.solids[0].body.as_ref().expect("a body").as_ref().clone();
    wheel.set_state(glug::geometry::BodyState { velocity: found, ..*wheel.state() });
    let (own, liquid) = (wheel.kinetic_energy(), energy_of_liquid(&tank));
    println!("work {work:.4e}, wheel {own:.4e}, liquid {liquid:.4e}");
    assert!(liquid > 0.5 * own, "the paddles move liquid: {liquid:.2e} beside {own:.2e}");
    let off = (own + liquid) / work - 1.0;
    assert!(
        off.abs() < 0.05,
        "{work:.4e} of work make {:.4e} of energy: {:.1} % off",
        own + liquid,
        100.0 * off
    );
}

/// A jet that hits the right side of a wheel turns it clockwise, about an axle that stays, and with no more power than the jet has
/// (table of tests, row 11).
#[test]
fn a_jet_turns_a_paddle_wheel_with_less_power_than_it_has() {
    let overrides = Overrides { cells: Some(64), ..Overrides::default() };
    let Ok(AnyScene::TwoD(scene)) = load("paddle_wheel_2d", &overrides) else { panic!("a scene in 2D") };
    let setup = scene.setup;
    let source = &setup.sources[0];
    let [low, high] = source.shape.bounds().expect("a box");
    let axle = setup.solids[0].body.as_ref().expect("a wheel").position();
    let fall = 2.0 * setup.params.gravity * (high[1] - (axle[1] - 0.3));
    let rate = (high[0] - low[0]) * source.velocity.norm();
    let most = 0.5 * setup.params.density * rate * (source.velocity.norm_squared() + fall);
    let mut simulation = Simulation::new(&setup).expect("it starts");
    // Its axle has no friction: what the jet does is what it gains.
    let (mut energy, mut power, mut turned) = (0.0, 0.0f64, 0.0);
    for frame in 0..40 {
        let report = advance(&mut simulation, 1.0 / 30.0);
        let wheel = simulation.state().walls.solids[0].body.as_ref().expect("a wheel");
        let state = wheel.state();
        let off = (0..2).map(|axis| (state.position[axis] - axle[axis]).abs()).fold(0.0, f64::max);
        assert!(off < 1e-4 * report.dx, "frame {frame}: its axle is {off:.1e} m off");
        power = power.max((wheel.kinetic_energy() - energy) * 30.0);
        (energy, turned) = (wheel.kinetic_energy(), state.angle);
        let rim = 0.3 * state.velocity[2].abs();
        assert!(
            rim.powi(2) < source.velocity.norm_squared() + fall,
            "frame {frame}: {rim:.2} m/s outruns the jet"
        );
    }
    println!("turned by {turned:.2}, {power:.0} W of at most {most:.0} W, {energy:.1} J");
    assert!(turned < -5.0, "it turned by {turned:.2}");
    assert!(energy > 1.0 && power < most, "{energy:.2} J, {power:.0} W of at most {most:.0} W");
}
