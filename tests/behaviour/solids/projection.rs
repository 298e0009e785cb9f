//! What one projection does to bodies, against theory.

use glug::geometry::{Label, MOST_MOTIONS, Material, Motion, Shape, Solid, Twist};
use glug::math::Vector;
use glug::pressure::{FREE, Hold};

use crate::bubbles::projection::trap_air;
use crate::tank::{Tank, noise};

use super::{ball, body, material, point, project};

const FALL: f64 = 0.1;

/// A ball in the middle of a round tank full of liquid, all let go at rest; lengths in cells. Returns its acceleration over gravity.
fn acceleration_in_round_tank<const D: usize>(
    radius: f64,
    tank_radius: f64,
    density: f64,
    shift: Vector<D>,
) -> Vector<D> {
    let cells = 2 * tank_radius as usize + 4;
    let centre = Vector::repeat(0.5 * cells as f64) + shift;
    let wall = Solid::new("tank", ball(centre, tank_radius).inverted(), Motion::default());
    let float = body(ball(centre, radius), density, [0.0; MOST_MOTIONS]);
    let mut tank = Tank::<D>::new([cells; D], 1.0, vec![wall, float]);
    tank.fill(|_| -1.0);
    tank.impulse[1] = -FALL;
    let found = project(&mut tank, &[], 1e-10);
    assert_eq!((found.len(), found[0].submerged), (1, 1.0), "{D}D");
    Vector::from_fn(|axis, _| found[0].velocity[axis] / FALL)
}

/// Potential theory: `a = g (1 − s)/(s + C)` (table of tests, row 1).
fn released_ball_accelerates_as_theory_says<const D: usize>(radius: f64, tank_radius: f64, tolerance: f64) {
    let (a, b) = (radius.powi(D as i32), tank_radius.powi(D as i32));
    let added = if D == 2 { (b + a) / (b - a) } else { (b + 2.0 * a) / (2.0 * (b - a)) };
    for density in [0.01, 0.5, 2.0] {
        for (x, y) in [(0.0, 0.0), (0.37, 0.11), (0.5, 0.25), (0.13, 0.74)] {
            let found = acceleration_in_round_tank::<D>(radius, tank_radius, density, point(x, y, 0.29));
            let theory = (1.0 - density) / (density + added);
            let error = (found[1] / theory - 1.0).abs();
            // With its poles on faces exactly, a disc is off by 2.3 and 1.2 percent instead of 2 and 1.
            let tolerance = if D == 2 && x == 0.0 { 1.25 * tolerance } else { tolerance };
            assert!(error < tolerance, "{D}D R = {radius}, density {density}, at {x} {y}: off by {error:.4}");
            let sideways = (0..D).filter(|&k| k != 1).map(|k| (found[k] / theory).abs()).fold(0.0, f64::max);
            assert!(
                sideways < 2e-3,
                "{D}D R = {radius}, density {density}, at {x} {y}: {sideways:.1e} sideways"
            );
        }
    }
}

#[test]
fn released_ball_accelerates_as_theory_says_2d() {
    released_ball_accelerates_as_theory_says::<2>(5.0, 20.0, 0.02);
    released_ball_accelerates_as_theory_says::<2>(8.0, 32.0, 0.01);
}

#[test]
fn released_ball_accelerates_as_theory_says_3d() {
    released_ball_accelerates_as_theory_says::<3>(6.0, 16.0, 0.02);
}

/// A neutral body in still liquid stays, whatever its shape.
#[test]
fn neutral_bodies_in_still_liquid_stay() {
    let centre = Vector::from([16.3, 15.8]);
    let half = Vector::from([5.25, 3.15]);
    let brick = Shape::Box { min: centre - half, max: centre + half };
    for angle in [0.0, 0.3, 1.1] {
        let shape = brick.clone().rotated([0.0, 0.0, 1.0], angle, centre);
        let mut tank = Tank::<2>::new([32; 2], 1.0, vec![body(shape, 1.0, [0.0; MOST_MOTIONS])]);
        tank.fill(|_| -1.0);
        tank.impulse[1] = -FALL;
        let found = project(&mut tank, &[], 1e-11)[0].velocity;
        let fastest = found.iter().fold(0.0, |most: f64, v| most.max(v.abs())) / FALL;
        assert!(fastest < 1e-8, "turned by {angle}: {fastest:.1e} g");
    }
}

/// Where a floating box is at rest: its acceleration, put back by the slope of theory, says how far it is from there.
fn box_floats_at_its_draft(shift: f64, displaced: f64) -> f64 {
    // 12 by 8 cells, half as dense as the liquid, in 23 cells of water.
    let (width, height, density) = (12.0, 8.0, 0.5);
    let level = 23.0;
    let bottom = level - density * height + displaced;
    let (min, max) =
        (Vector::from([34.0 + shift, bottom]), Vector::from([34.0 + shift + width, bottom + height]));
    let mut tank =
        Tank::<2>::new([80, 40], 1.0, vec![body(Shape::Box { min, max }, density, [0.0; MOST_MOTIONS])]);
    tank.fill(|x| x[1] - level);
    tank.impulse[1] = -FALL;
    tank.node.fill(FREE);
    let found = project(&mut tank, &[], 1e-10)[0];
    let added = 0.605 * width * width;
    let slope = width / (density * width * height + added);
    assert!(
        (found.submerged - (density - displaced / height)).abs() < 0.07,
        "{} at {displaced}",
        found.submerged
    );
    found.velocity[1] / FALL / slope + displaced
}

#[test]
fn a_box_floats_at_its_draft() {
    for shift in [0.0, 0.3, 0.5] {
        for step in -5..=5 {
            let displaced = 0.2 * f64::from(step);
            let error = box_floats_at_its_draft(shift, displaced);
            println!("box {shift} {displaced:.1}: {error:.3}");
            assert!(error.abs() < 0.2, "moved by {shift:.1} and {displaced:.1}: {error:.3} cells off");
        }
    }
}

/// A floating box that leans is turned back.
#[test]
fn a_wide_box_rights_itself() {
    for angle in [-0.2, -0.1, -0.05, 0.05, 0.1, 0.2] {
        let centre = Vector::from([40.2, 23.0]);
        let half = Vector::from([6.0, 4.0]);
        let shape =
            Shape::Box { min: centre - half, max: centre + half }.rotated([0.0, 0.0, 1.0], angle, centre);
        let mut tank = Tank::<2>::new([80, 40], 1.0, vec![body(shape, 0.5, [0.0; MOST_MOTIONS])]);
        tank.fill(|x| x[1] - 23.0);
        tank.impulse[1] = -FALL;
        tank.node.fill(FREE);
        let spin = project(&mut tank, &[], 1e-10)[0].velocity[2];
        println!("leaning by {angle}: {spin}");
        assert!(spin * angle < 0.0, "leaning by {angle}: turned by {spin}");
    }
}

/// A blob of liquid with a body in it, partly out of it, that nothing holds up.
fn falling_blob<const D: usize>(density: f64, velocity: Twist) -> Tank<D> {
    let cells = if D == 2 { 48 } else { 32 };
    let middle = 0.5 * f64::from(cells as u32);
    let shape = ball(point(middle + 2.3, middle + 1.2, middle + 0.4), 4.3);
    let mut tank = Tank::<D>::new([cells; D], 1.0, vec![body(shape, density, velocity)]);
    let centre = Vector::repeat(middle);
    tank.fill(|x| (x - centre).norm() - 0.25 * middle - 3.0);
    tank.node.fill(FREE);
    tank.set_velocity(noise);
    tank.impulse[1] = -FALL;
    tank
}

/// Momentum and angular momentum of liquid and body change by gravity alone. The liquid's are taken from the pressures, as its
/// velocities are kept in single precision.
fn momentum_is_conserved<const D: usize>(density: f64) {
    let velocity = [0.3, -0.2, 0.1, 0.05, -0.02, 0.04];
    let mut tank = falling_blob::<D>(density, velocity);
    let found = project(&mut tank, &[], 1e-12)[0];
    let body = tank.walls.solids[0].body.as_ref().expect("a body").clone();
    let (mut sums, mut sizes) = ([0.0; MOST_MOTIONS], 0.0f64);
    for face in tank.faces() {
        let q = |index: usize| if tank.label(index) == Label::Liquid { tank.pressure.q[index] } else { 0.0 };
        let push = tank.open(&face) * (q(tank.below(&face)) - q(face.index));
        let arm = tank.face_centre(&face) - body.position();
        let direction = Vector::<D>::from_fn(|k, _| if k == face.axis { 1.0 } else { 0.0 });
        let motion = glug::geometry::Body::motion_at(&arm, &direction);
        sums.iter_mut().zip(motion).for_each(|(sum, c)| *sum += c * push);
        sizes += push.abs();
    }
    for (sum, push) in sums.iter_mut().zip(found.push) {
        *sum += push;
    }
    let worst = sums.iter().fold(0.0, |worst: f64, sum| worst.max(sum.abs())) / sizes;
    assert!(worst < 1e-10, "{D}D density {density}: {worst:.1e} of the momentum is lost: {sums:?}");
    // The body moves by that push and by gravity, and by nothing else.
    let response = body.response();
    for motion in 0..glug::geometry::motions(D) {
        let change: f64 = (0..MOST_MOTIONS).map(|k| response[motion][k] * found.push[k]).sum();
        let expected = velocity[motion] + change - if motion == 1 { FALL } else { 0.0 };
        let error = (found.velocity[motion] - expected).abs() / (1.0 + expected.abs());
        assert!(error < 1e-10, "{D}D density {density}: motion {motion} off by {error:.1e}");
    }
}

#[test]
fn momentum_is_conserved_2d() {
    [0.01, 1.0, 30.0].into_iter().for_each(momentum_is_conserved::<2>);
}

#[test]
fn momentum_is_conserved_3d() {
    [0.01, 30.0].into_iter().for_each(momentum_is_conserved::<3>);
}

/// Liquid and body that fall together at rest to each other go on like that.
fn all_fall_alike<const D: usize>() {
    let mut tank = falling_blob::<D>(0.3, [0.0; MOST_MOTIONS]);
    tank.set_velocity(|_, _| 0.0);
    let found = project(&mut tank, &[], 1e-12)[0];
    let off = (found.velocity[1] + FALL).abs() / FALL;
    assert!(off < 1e-10, "{D}D: {off:.1e} g");
}

#[test]
fn all_fall_alike_2d() {
    all_fall_alike::<2>();
}

#[test]
fn all_fall_alike_3d() {
    all_fall_alike::<3>();
}

/// Kinetic energy of faces between liquid cells.
pub fn energy_of_liquid<const D: usize>(tank: &Tank<D>) -> f64 {
    let faces = tank.faces().into_iter().filter(|face| {
        [face.index, tank.below(face)].iter().all(|&index| tank.label(index) == Label::Liquid)
    });
    faces.map(|face| 0.5 * tank.open(&face) * f64::from(tank.velocity[face.axis][face.index]).powi(2)).sum()
}

/// A projection takes energy away and never gives any, contacts or not.
fn energy_does_not_grow<const D: usize>(density: f64) {
    let cells = if D == 2 { 40 } else { 24 };
    let middle = 0.5 * f64::from(cells as u32);
    let shape = ball(point(middle, 0.7 * middle, middle), 0.3 * middle);
    let velocity = [0.3, -0.4, 0.1, 0.02, 0.03, -0.01];
    let mut tank = Tank::<D>::new([cells; D], 1.0, vec![body(shape, density, velocity)]);
    tank.fill(|_| -1.0);
    tank.set_velocity(noise);
    let own = |velocity: Twist| {
        let mut body = tank.walls.solids[0].body.as_ref().expect("a body").as_ref().clone();
        let state = *body.state();
        body.set_state(glug::geometry::BodyState { velocity, ..state });
        body.kinetic_energy()
    };
    let before = energy_of_liquid(&{
        let mut tank = falling_tank_like(&tank);
        tank.label_cells();
        tank
    }) + own(velocity);
    let row = glug::geometry::Body::<D>::motion_at(&point(0.0, -0.3 * middle, 0.0), &point(0.0, 1.0, 0.0));
    for holds in [vec![], vec![Hold { parts: vec![(0, row)], target: 0.0 }]] {
        let mut tank = falling_tank_like(&tank);
        let found = project(&mut tank, &holds, 1e-12)[0];
        let after = energy_of_liquid(&tank) + own(found.velocity);
        assert!(after < before * (1.0 + 1e-6), "{D}D density {density}: {before} → {after}");
        if !holds.is_empty() {
            assert!(found.velocity[1].abs() < 1e-12, "{D}D density {density}: {:?}", found.velocity);
        }
    }
}

/// The same tank again.
fn falling_tank_like<const D: usize>(tank: &Tank<D>) -> Tank<D> {
    let grid = tank.blocks.grid();
    let mut copy = Tank::new(grid.cells, grid.dx, tank.walls.solids.clone());
    copy.fill(|_| -1.0);
    copy.velocity = tank.velocity.clone();
    copy
}

#[test]
fn energy_does_not_grow_2d() {
    [0.01, 1.0, 100.0].into_iter().for_each(energy_does_not_grow::<2>);
}

#[test]
fn energy_does_not_grow_3d() {
    [0.01, 100.0].into_iter().for_each(energy_does_not_grow::<3>);
}

/// A lid over a column of air on water, as wide as the tank and free to move up and down alone.
fn lid_on_air<const D: usize>(keeps_volume: bool) -> f64 {
    let cells = if D == 2 { 24 } else { 16 };
    let top = cells as f64;
    let (mut min, mut max) = (Vector::<D>::repeat(-2.0), Vector::<D>::repeat(top + 2.0));
    (min[1], max[1]) = (0.6 * top + 0.3, 0.6 * top + 3.1);
    let shape = Shape::Box { min, max };
    let mut fixed = [true; MOST_MOTIONS];
    fixed[1] = false;
    let lid = Solid::with_body("lid", shape, Material { fixed, ..material(3.0 * top) }, [0.0; MOST_MOTIONS]);
    let mut tank = Tank::<D>::new([cells; D], 1.0, vec![lid.expect("a body")]);
    tank.fill(|x| x[1] - 0.3 * top - 0.2);
    tank.impulse[1] = -FALL;
    tank.label_cells();
    if keeps_volume {
        let bubbles = trap_air(&mut tank, |x| x[1] > 0.6 * top + 2.0);
        assert_eq!(bubbles.len(), 1, "{D}D: the air below the lid");
    } else {
        tank.node.fill(FREE);
    }
    project(&mut tank, &[], 1e-12)[0].velocity[1] / FALL
}

fn a_lid_rests_on_air_that_keeps_its_volume<const D: usize>() {
    let rests = lid_on_air::<D>(true);
    assert!(rests.abs() < 1e-4, "{D}D: falls by {rests:.1e} g");
    let falls = lid_on_air::<D>(false);
    assert!((falls + 1.0).abs() < 1e-12, "{D}D: falls by {falls} g");
}

#[test]
fn a_lid_rests_on_air_that_keeps_its_volume_2d() {
    a_lid_rests_on_air_that_keeps_its_volume::<2>();
}

#[test]
fn a_lid_rests_on_air_that_keeps_its_volume_3d() {
    a_lid_rests_on_air_that_keeps_its_volume::<3>();
}

/// A body too heavy to be moved is a solid with a script.
#[test]
fn a_very_heavy_body_is_a_scripted_solid() {
    let centre = Vector::from([20.2, 17.9]);
    let velocity = [0.2, -0.1, 0.0, 0.0, 0.0, 0.0];
    let heavy = body(ball(centre, 5.3), 1e9, velocity);
    let glide = glug::geometry::Move::Glide { velocity: Vector::from([0.2, -0.1]), from: 0.0, until: 9.0 };
    let scripted = Solid::new("ball", ball(centre, 5.3), Motion::new(vec![glide]));
    let mut tanks = [heavy, scripted].map(|solid| {
        // Where there is a body, faces of all that moves are sampled alike.
        let spectator = body(ball(Vector::from([35.0, 36.0]), 1.0), 1.0, [0.0; MOST_MOTIONS]);
        let mut tank = Tank::<2>::new([40; 2], 1.0, vec![solid, spectator]);
        tank.fill(|x| x[1] - 30.0);
        tank.set_velocity(noise);
        tank.node.fill(FREE);
        project(&mut tank, &[], 1e-11);
        tank
    });
    let faces = tanks[0].faces().into_iter().filter(|face| tanks[0].is_valid(face));
    let worst = faces.fold(0.0, |worst: f32, face| {
        let [a, b] = [0, 1].map(|tank| tanks[tank].velocity[face.axis][face.index]);
        worst.max((a - b).abs())
    });
    assert!(worst < 2e-6, "{worst:.1e} m/s apart");
    let divergence = tanks.each_mut().map(|tank| tank.worst_outflow());
    assert!(divergence[1] < 1e-5, "{divergence:?}");
}

/// The added mass of a disc grows as it comes near a wall, up to theory's `π²/3 − 1` at contact.
#[test]
fn added_mass_grows_towards_a_wall() {
    let radius = 5.0;
    let mut before = 0.0;
    for gap in [1.0, 0.5, 0.3, 0.1, 0.01] {
        let centre = Vector::from([50.3, radius + gap]);
        let mut tank = Tank::<2>::new(
            [100, 60],
            1.0,
            vec![body(ball(centre, radius), 1.0, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0])],
        );
        tank.fill(|_| -1.0);
        // The momentum that is left after the wall is met at once: m v = (m + m_a) v'.
        let left = project(&mut tank, &[], 1e-10)[0].velocity[1];
        let added = 1.0 / left - 1.0;
        println!("gap {gap}: {added}");
        assert!(added > before, "gap {gap}: {added} after {before}");
        before = added;
    }
    assert!((before - 2.29).abs() < 0.2, "{before} at contact");
}
