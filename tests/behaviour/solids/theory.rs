//! What one projection does to bodies of other shapes than balls and to bodies at surfaces, against theory; and how many
//! iterations it takes.

use std::f64::consts::PI;
use std::sync::Arc;
use std::time::Instant;

use glug::geometry::{MOST_MOTIONS, Material, Motion, Polygon, Shape, Solid, Twist};
use glug::math::{Vector, hash_unit};
use glug::pressure::{FREE, RigidBodies};

use crate::bubbles::projection::trap_air;
use crate::tank::Tank;

use super::{ball, body, material, point, project};

const FALL: f64 = 0.1;

/// An ellipse, by its half axes.
fn ellipse(centre: [f64; 2], a: f64, b: f64) -> Shape<2> {
    let corner = |k: u32| {
        let (sine, cosine) = (f64::from(k) * 2.0 * PI / 256.0).sin_cos();
        [centre[0] + a * cosine, centre[1] + b * sine]
    };
    let corners: Vec<_> = (0..256).map(corner).collect();
    Shape::Polygon(Arc::new(Polygon::new(&corners).expect("an ellipse")))
}

/// An ellipse in a wide tank feels the added mass `πρ b²` along its long axis, `πρ a²` along its short one, and the added inertia
/// `πρ (a² − b²)²/8` (table of tests, rows 1b and 10b).
#[test]
fn an_ellipse_feels_the_mass_that_theory_adds() {
    let (a, b) = (7.0, 4.0);
    let cells = 156;
    let theory = [PI * b * b, PI * a * a, PI * (a * a - b * b).powi(2) / 8.0];
    for shift in [0.0, 0.31] {
        for (motion, expected) in theory.into_iter().enumerate() {
            let centre = [0.5 * cells as f64 + shift, 0.5 * cells as f64 + 0.7 * shift];
            let mut velocity: Twist = [0.0; MOST_MOTIONS];
            velocity[motion] = 1.0;
            let mut tank = Tank::<2>::new([cells; 2], 1.0, vec![body(ellipse(centre, a, b), 1.0, velocity)]);
            tank.fill(|_| -1.0);
            let left = project(&mut tank, &[], 1e-10)[0].velocity[motion];
            // An impulse is met by body and liquid together: m v = (m + m_a) v'.
            let own = [PI * a * b, PI * a * b, 0.25 * PI * a * b * (a * a + b * b)][motion];
            let added = own * (1.0 / left - 1.0);
            let (error, whole) = (added / expected - 1.0, left * (own + expected) / own - 1.0);
            println!("motion {motion}, moved by {shift}: added {added:.2}, theory {expected:.2}: {error:.4}");
            assert!(error.abs() < 0.04, "motion {motion}, moved by {shift}: added mass off by {error:.4}");
            assert!(whole.abs() < 0.03, "motion {motion}, moved by {shift}: speed off by {whole:.4}");
        }
    }
}

/// Liquid without viscosity slips along a disc: it goes on turning.
#[test]
fn a_disc_goes_on_turning() {
    for density in [1.0, 4.0] {
        let centre = Vector::from([20.2, 19.7]);
        let spin = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        let mut tank = Tank::<2>::new([40; 2], 1.0, vec![body(ball(centre, 8.0), density, spin)]);
        tank.fill(|_| -1.0);
        let left = project(&mut tank, &[], 1e-10)[0].velocity[2];
        assert!((left - 1.0).abs() < 1e-3, "density {density}: {left} of its spin is left");
    }
}

/// A floating ball in three dimensions comes to rest so deep that `s = d² (3R − d)/(4R³)`.
#[test]
fn a_ball_floats_at_its_depth() {
    let (radius, level) = (6.0f64, 17.0);
    for (depth, x, y) in [(4.0, 0.0, 0.0), (6.0, 0.37, 0.11), (8.0, 0.5, 0.25), (9.0, 0.13, 0.74)] {
        let density = depth * depth * (3.0 * radius - depth) / (4.0 * radius.powi(3));
        let centre = point::<3>(16.0 + x, level - depth + radius, 16.0 + y);
        let float = body(ball(centre, radius), density, [0.0; MOST_MOTIONS]);
        let mut tank = Tank::<3>::new([32, 32, 32], 1.0, vec![float]);
        tank.fill(|x| x[1] - level);
        tank.impulse[1] = -FALL;
        tank.node.fill(FREE);
        let found = project(&mut tank, &[], 1e-10)[0];
        // Put back by the slope at rest: F = ρ g A δ, felt by the ball and half of what it displaces.
        let area = PI * depth * (2.0 * radius - depth);
        let displaced = density * 4.0 / 3.0 * PI * radius.powi(3);
        let off = found.velocity[1] / FALL * 1.5 * displaced / area;
        println!("depth {depth}: {off:.3} cells off, submerged {:.3} of {density:.3}", found.submerged);
        assert!(off.abs() < 0.2, "depth {depth}: {off:.3} cells off");
    }
}

/// A floating box as wide as high falls over, one and a half times as wide stands: `W/H > √(6 s (1 − s))`.
#[test]
fn narrow_boxes_fall_over_and_wide_ones_stand() {
    let height = 8.0;
    for (ratio, stands) in [(1.0, false), (1.5, true)] {
        for angle in [-0.1, 0.1] {
            let centre = Vector::from([40.3, 24.0]);
            let half = 0.5 * Vector::from([ratio * height, height]);
            let upright = Shape::Box { min: centre - half, max: centre + half };
            let leaning = upright.rotated([0.0, 0.0, 1.0], angle, centre);
            let mut tank = Tank::<2>::new([80, 40], 1.0, vec![body(leaning, 0.5, [0.0; MOST_MOTIONS])]);
            tank.fill(|x| x[1] - 24.0);
            tank.impulse[1] = -FALL;
            tank.node.fill(FREE);
            let spin = project(&mut tank, &[], 1e-10)[0].velocity[2];
            println!("{ratio} times as wide, leaning by {angle}: {spin:.5}");
            assert_eq!(
                spin * angle < 0.0,
                stands,
                "{ratio} times as wide, leaning by {angle}: turned by {spin}"
            );
        }
    }
}

/// A floating box, 12 by 8 cells and half as dense as the liquid, in 23 cells of it, from its draft by that much.
fn floating_box(displaced: f64, velocity: Twist, fall: f64) -> Twist {
    let low = Vector::from([34.3, 23.0 - 4.0 + displaced]);
    let shape = Shape::Box { min: low, max: low + Vector::from([12.0, 8.0]) };
    let mut tank = Tank::<2>::new([80, 40], 1.0, vec![body(shape, 0.5, velocity)]);
    tank.fill(|x| x[1] - 23.0);
    tank.impulse[1] = -fall;
    tank.node.fill(FREE);
    project(&mut tank, &[], 1e-10)[0].velocity
}

/// It is pushed back by `ρ g W δ`, and what swings is the box and the mass that a kick feels: more than half of `ρ W²`, for this
/// width of the tank.
#[test]
fn a_floating_box_swings_by_the_force_and_mass_of_theory() {
    let mass = 0.5 * 12.0 * 8.0;
    let kicked = floating_box(0.0, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], 0.0);
    let felt = mass / kicked[1];
    let added = (felt - mass) / (12.0 * 12.0);
    println!("added mass {added:.3} ρ W²");
    assert!((0.5..0.65).contains(&added), "added mass {added:.3} ρ W²");
    // The straight line through displacements up to a cell.
    let steps: Vec<_> = (-5..=5).map(|step| 0.2 * f64::from(step)).collect();
    let found: Vec<_> =
        steps.iter().map(|&step| floating_box(step, [0.0; MOST_MOTIONS], FALL)[1] / FALL).collect();
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    let squares: f64 = steps.iter().map(|step| step * step).sum();
    let slope = steps.iter().zip(&found).map(|(step, a)| step * a).sum::<f64>() / squares;
    let (expected, offset) = (-12.0 / felt, mean / slope);
    println!("slope {slope:.5}, theory {expected:.5}, offset {offset:.3} cells");
    // 3.6 % too small here.
    assert!((slope / expected - 1.0).abs() < 0.04, "slope {slope:.5}, theory {expected:.5}");
    for (step, a) in steps.iter().zip(&found) {
        let off = (a - mean) / slope - step;
        assert!(off.abs() < 0.15, "displaced by {step:.1}: {off:.3} cells off the line");
    }
}

/// A float that fills one arm of a U-tube and the liquid below it swing as one: `ω² = 2ρgA/(m + ρAL)`.
#[test]
fn a_float_in_a_u_tube_swings_with_all_the_liquid() {
    // Arms 6 cells wide, 34 apart at their middles, joined at the bottom; two rigid lids leave only the arms open.
    let (width, apart, bottom) = (6.0, 12.0, 6.0);
    let density = 0.5;
    let height = 8.0;
    let inner =
        Shape::Box { min: Vector::from([4.0 + width, 4.0 + bottom]), max: Vector::from([4.0 + apart, 90.0]) };
    let outer = Shape::Box { min: Vector::from([4.0, 4.0]), max: Vector::from([4.0 + apart + width, 90.0]) };
    let walls = [
        Solid::new("inner", inner, Motion::default()),
        Solid::new("outer", outer.inverted(), Motion::default()),
    ];
    let low = 60.0;
    let accelerate = |displaced: f64, kick: f64, fall: f64| {
        let min = Vector::from([4.0 - 1.0, low + displaced]);
        let shape = Shape::Box { min, max: Vector::from([4.0 + width + 1.0, low + displaced + height]) };
        let fixed = [true, false, true, true, true, true];
        let mass = density * width * height;
        let velocity = [0.0, kick, 0.0, 0.0, 0.0, 0.0];
        let float = Solid::with_body("float", shape, Material { fixed, ..material(mass) }, velocity);
        let mut solids = walls.to_vec();
        solids.push(float.expect("a body"));
        let mut tank = Tank::<2>::new([26, 84], 1.0, solids);
        // What the float presses down stands higher in the other arm.
        let other = low + density * height - displaced;
        tank.fill(|x| if x[0] < 4.0 + 0.5 * (width + apart) { x[1] - low - displaced } else { x[1] - other });
        tank.impulse[1] = -fall;
        tank.node.fill(FREE);
        project(&mut tank, &[], 1e-10)[0].velocity[1]
    };
    // Arms of 50 and 54 cells above the bend's middle, and the way between their middles.
    let length = (low - 4.0 - 0.5 * bottom) + (low + density * height - 4.0 - 0.5 * bottom) + apart;
    let mass = density * width * height;
    let felt = mass / accelerate(0.0, 1.0, 0.0);
    let expected = mass + width * length;
    println!("felt {felt:.1}, theory {expected:.1}");
    assert!((felt / expected - 1.0).abs() < 0.05, "felt {felt:.1}, theory {expected:.1}");
    let slope = (accelerate(0.5, 0.0, FALL) - accelerate(-0.5, 0.0, FALL)) / FALL;
    let squared = 2.0 * width / expected;
    println!("ω²/g {:.5}, theory {squared:.5}", -slope);
    assert!((-slope / squared - 1.0).abs() < 0.05, "ω²/g {:.5}, theory {squared:.5}", -slope);
}

/// An upturned cup with air in it, under water: up or down, by the sign of what theory says?
fn cup_acceleration<const D: usize>(mass: f64, air: f64) -> f64 {
    let cells = if D == 2 { 48 } else { 32 };
    let (width, wall, tall) = (12.0, 2.0, 14.0);
    let low =
        point::<D>(0.5 * cells as f64 - 0.5 * width + 0.23, 7.4, 0.5 * cells as f64 - 0.5 * width - 0.19);
    let size = |w: f64, h: f64| Vector::<D>::from_fn(|axis, _| if axis == 1 { h } else { w });
    let inset = size(wall, -3.0);
    let outer = Shape::Box { min: low, max: low + size(width, tall) };
    let room =
        Shape::Box { min: low + inset, max: low + inset + size(width - 2.0 * wall, tall + 3.0 - wall) };
    let roof = low[1] + tall - wall;
    let shape = Shape::Difference(Box::new(outer), vec![room.clone()]);
    let cup = Solid::with_body("cup", shape, material(mass), [0.0; MOST_MOTIONS]);
    let mut tank = Tank::<D>::new([cells; D], 1.0, vec![cup.expect("a body")]);
    let surface = cells as f64 - 3.3;
    tank.fill(|x| {
        let pocket = room.distance(x).max(roof - air - x[1]).max(x[1] - roof - 1.0);
        (x[1] - surface).max(-pocket)
    });
    tank.impulse[1] = -FALL;
    tank.label_cells();
    let bubbles = trap_air(&mut tank, |x| x[1] > surface);
    assert_eq!(bubbles.len(), 1, "{D}D: the air in the cup");
    project(&mut tank, &[], 1e-10)[0].velocity[1] / FALL
}

/// It floats if it weighs less than the water that it and its air displace; between is the mass at which it stays.
fn a_cup_is_neutral_where_theory_says<const D: usize>() {
    for air in [4.0, 6.6] {
        let inside = (12.0f64 - 4.0).powi(D as i32 - 1);
        let shell = 12f64.powi(D as i32 - 1) * 14.0 - inside * 12.0;
        let theory = shell + inside * air;
        let [light, heavy] = [0.9, 1.1].map(|share| (share, cup_acceleration::<D>(share * theory, air)));
        assert!(light.1 > 0.0 && heavy.1 < 0.0, "{D}D: {light:?} rises, {heavy:?} sinks");
        let neutral = light.0 + (heavy.0 - light.0) * light.1 / (light.1 - heavy.1);
        println!("{D}D, air {air}: neutral at {neutral:.4} of theory");
        assert!((neutral - 1.0).abs() < 0.02, "{D}D, air {air}: neutral at {neutral:.4} of theory's mass");
    }
}

#[test]
fn a_cup_is_neutral_where_theory_says_2d() {
    a_cup_is_neutral_where_theory_says::<2>();
}

#[test]
fn a_cup_is_neutral_where_theory_says_3d() {
    a_cup_is_neutral_where_theory_says::<3>();
}

/// Balls here and there in a box of that many cells, apart from each other and from its sides.
fn scattered<const D: usize>(cells: usize, count: usize, radii: [f64; 2]) -> Vec<(Vector<D>, f64)> {
    let mut balls: Vec<(Vector<D>, f64)> = Vec::new();
    let mut tries = 0;
    while balls.len() < count {
        tries += 1;
        assert!(tries < 1_000_000, "there is room for {count} balls");
        let random = |k: u64| f64::from(hash_unit((17 << 40) + 8 * tries + k));
        let radius = radii[0] + (radii[1] - radii[0]) * random(7);
        let room = cells as f64 - 2.0 * radius - 1.0;
        let centre = Vector::from_fn(|axis, _| radius + 0.5 + room * random(axis as u64));
        if balls.iter().all(|(other, r)| (other - centre).norm() > radius + r + 0.3) {
            balls.push((centre, radius));
        }
    }
    balls
}

/// Iterations to a tolerance with bodies of that density in a tank that is nearly full.
fn iterations<const D: usize>(
    cells: usize,
    balls: &[(Vector<D>, f64)],
    density: f64,
    tolerance: f64,
) -> usize {
    let bodies =
        balls.iter().map(|&(centre, radius)| body(ball(centre, radius), density, [0.0; MOST_MOTIONS]));
    let mut tank = Tank::<D>::new([cells; D], 1.0, bodies.collect());
    tank.fill(|x| x[1] - 0.93 * cells as f64);
    tank.set_velocity(crate::tank::noise);
    tank.impulse[1] = -FALL;
    tank.node.fill(FREE);
    let walls = tank.walls.clone();
    let mut rigid = RigidBodies::new(&walls, 1.0, 0.0, &[], &[]);
    let solved = tank.project_with(&mut [&mut rigid], tolerance);
    assert!(
        solved.info.converged && !solved.info.fallback,
        "{D}D, {} bodies: {:?}",
        balls.len(),
        solved.info
    );
    solved.info.iterations
}

/// Few iterations, whatever bodies weigh: one body at most 9 to 1e-5 (13 to 1e-8), ten 11 (15), a hundred 18 (25).
fn few_iterations_are_enough<const D: usize>(cells: usize) {
    let scale = cells as f64 / 64.0;
    let wide =
        if D == 2 { [[8.0, 8.0], [3.5, 5.0], [1.6, 2.4]] } else { [[12.0, 12.0], [5.0, 7.0], [2.0, 4.5]] };
    for ((count, most), radii) in [(1, [9, 13]), (10, [11, 15]), (100, [18, 25])].into_iter().zip(wide) {
        let balls = scattered::<D>(cells, count, radii.map(|radius| radius * scale));
        let densities: &[f64] =
            if count == 1 { &[1e-3, 1e-2, 0.1, 1.0, 10.0] } else { &[1e-2, 0.1, 1.0, 10.0] };
        for &density in densities {
            let found = [1e-5, 1e-8].map(|tolerance| iterations(cells, &balls, density, tolerance));
            println!("{D}D, {cells} cells, {count} bodies of {density}: {found:?}");
            assert!(
                found[0] <= most[0] && found[1] <= most[1],
                "{D}D, {cells} cells, {count} bodies of {density}: {found:?} iterations, not {most:?}"
            );
        }
    }
}

#[test]
fn few_iterations_are_enough_2d() {
    few_iterations_are_enough::<2>(64);
}

#[test]
fn few_iterations_are_enough_3d() {
    few_iterations_are_enough::<3>(64);
}

#[test]
#[ignore = "minutes"]
fn few_iterations_are_enough_at_128_cells() {
    few_iterations_are_enough::<2>(128);
    few_iterations_are_enough::<3>(128);
}

/// Milliseconds that a projection takes with balls of half the liquid's density, the least of some.
fn milliseconds<const D: usize>(cells: usize, balls: &[(Vector<D>, f64)]) -> f64 {
    let bodies = balls.iter().map(|&(centre, radius)| body(ball(centre, radius), 0.5, [0.0; MOST_MOTIONS]));
    let mut tank = Tank::<D>::new([cells; D], 1.0, bodies.collect());
    tank.fill(|x| x[1] - 0.93 * cells as f64);
    tank.set_velocity(crate::tank::noise);
    tank.impulse[1] = -FALL;
    tank.node.fill(FREE);
    let (walls, velocity) = (tank.walls.clone(), tank.velocity.clone());
    let time = |_| {
        tank.velocity.clone_from(&velocity);
        let start = Instant::now();
        let mut rigid = RigidBodies::new(&walls, 1.0, 0.0, &[], &[]);
        let solved = tank.project_with(&mut [&mut rigid], 1e-5);
        assert!(solved.info.converged, "{:?}", solved.info);
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..5).map(time).fold(f64::INFINITY, f64::min)
}

/// One body costs at most 1.15 times the projection without it, a hundred at most twice.
fn bodies_cost_little<const D: usize>(cells: usize, radii: [[f64; 2]; 2]) {
    let alone = milliseconds::<D>(cells, &[]);
    for ((count, most), radii) in [(1, 1.15), (100, 2.0)].into_iter().zip(radii) {
        let with = milliseconds(cells, &scattered::<D>(cells, count, radii));
        println!(
            "{D}D, {cells} cells: {alone:.1} ms, {with:.1} ms with {count} bodies, {:.2} times",
            with / alone
        );
        assert!(
            with < most * alone,
            "{D}D, {cells} cells, {count} bodies: {with:.1} ms, alone {alone:.1} ms"
        );
    }
}

#[test]
#[ignore = "measures"]
fn bodies_cost_little_2d() {
    bodies_cost_little::<2>(512, [[40.0, 40.0], [12.0, 19.0]]);
}

#[test]
#[ignore = "measures"]
fn bodies_cost_little_3d() {
    bodies_cost_little::<3>(128, [[20.0, 20.0], [4.0, 9.0]]);
}
