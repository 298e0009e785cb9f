//! Bodies in a box of fluid.

use std::f64::consts::PI;
use std::sync::Arc;
use std::time::Instant;

use glug::archive::{ArchiveError, Reader, Writer};
use glug::eigenfluid::{
    Basis, Body, Coupling, Fluid, FluidParams, Form, FormError, Lead, Outline, Panel, Space, Stroke, Tank,
    TankParams,
};
use glug::math::{Vector, hash_unit};

use super::fluid::{dot, still};

const RHO: f64 = 1000.0;

fn vector(x: f64, y: f64) -> Vector<2> {
    Vector::from([x, y])
}

fn outline(form: Form, panels: usize) -> Arc<Outline> {
    Arc::new(Outline::new(&form, panels).expect("an outline"))
}

fn disc(radius: f64, panels: usize) -> Arc<Outline> {
    outline(Form::Disc { radius }, panels)
}

/// A box of still fluid with 31² modes.
fn tank(size: [f64; 2], params: TankParams) -> Tank {
    Tank::new(still(size, 31, FluidParams::default()), params)
}

fn without_gravity() -> TankParams {
    TankParams { gravity: [0.0; 2], ..Default::default() }
}

#[test]
fn panels_flow_along_their_stream_lines() {
    let panel = Panel::between(vector(0.2, 0.1), vector(0.5, 0.4));
    let h = 1e-5;
    for at in [vector(0.3, 0.6), vector(0.41, 0.29), vector(-1.0, 0.2), vector(0.34, 0.25)] {
        let slope = |step: Vector<2>| (panel.potential(at + step) - panel.potential(at - step)) / (2.0 * h);
        let expected = vector(slope(vector(0.0, h)), -slope(vector(h, 0.0)));
        let error = (panel.velocity(at) - expected).norm();
        assert!(error < 1e-6, "at {at}: {error:.1e}");
    }
    // All of its strength turns counter-clockwise around it; far away it is a point.
    let (radius, pieces) = (0.4, 20_000);
    let turn: f64 = (0..pieces)
        .map(|i| {
            let (sine, cosine) = (2.0 * PI * i as f64 / pieces as f64).sin_cos();
            let velocity = panel.velocity(panel.centre + vector(cosine, sine) * radius);
            velocity.dot(&vector(-sine, cosine)) * 2.0 * PI * radius / pieces as f64
        })
        .sum();
    assert!((turn / panel.length - 1.0).abs() < 1e-8, "{turn} of {}", panel.length);
    let far = panel.velocity(panel.centre + vector(20.0, 0.0));
    assert!((far - vector(0.0, panel.length / (2.0 * PI * 20.0))).norm() < 1e-5);
}

/// A tank with one body of each form that moves and turns, after a step; modes do not learn of it.
fn moving(form: Form, place: Vector<2>, panels: usize) -> Tank {
    let mut tank = tank([1.0, 1.3], TankParams { feedback: 0.0, ..without_gravity() });
    tank.fluid.push(vector(0.6, 0.5), vector(0.3, 0.1), 0.1);
    let mut body = Body::new(outline(form, panels), 0.5 * RHO, place);
    (body.velocity, body.angle) = ([0.4, -0.3, 2.0], 0.7);
    tank.bodies.push(body);
    assert!(tank.step(1e-9).solved);
    tank
}

fn forms() -> Vec<Form> {
    vec![
        Form::Disc { radius: 0.1 },
        Form::Rectangle { size: [0.2, 0.1] },
        Form::Capsule { length: 0.15, radius: 0.05 },
        Form::Polygon(vec![[0.0, 0.0], [0.0, 0.2], [0.1, 0.1], [0.2, 0.0]]),
    ]
}

#[test]
fn nothing_flows_through_surfaces() {
    for form in forms() {
        for panels in [16, 25, 40] {
            let tank = moving(form.clone(), vector(0.4, 0.6), panels);
            let (body, [vx, vy, spin]) = (&tank.bodies[0], tank.bodies[0].velocity);
            // Relative to the body, its outline is a stream line.
            let relative: Vec<f64> = tank
                .panels()
                .map(|(panel, _)| {
                    let arm = panel.centre - body.position;
                    let rigid = vx * arm[1] - vy * arm[0] - 0.5 * spin * arm.norm_squared();
                    tank.fluid.stream_at(panel.centre) + tank.panel_stream(panel.centre) - rigid
                })
                .collect();
            let spread = |values: &[f64]| {
                values.iter().fold(f64::MIN, |a, &b| a.max(b))
                    - values.iter().fold(f64::MAX, |a, &b| a.min(b))
            };
            // The body has moved on by 1e-9 s since.
            assert!(spread(&relative) < 1e-9, "{form:?}, {panels}: flux of {:.1e}", spread(&relative));
            let total: f64 = tank.panels().map(|(panel, strength)| panel.length * strength).sum();
            assert!(total.abs() < 1e-12, "{form:?}: a circulation of {total:.1e}");
        }
    }
}

/// Around a moving disc the sheet has the strength 2 U sin θ, for even and odd numbers of panels: there is no zig-zag.
#[test]
fn the_sheet_of_a_disc_is_that_of_theory() {
    for (panels, within) in [(15, 0.03), (16, 0.03), (33, 0.01), (64, 0.003)] {
        let mut tank = tank([100.0, 100.0], TankParams { feedback: 0.0, ..without_gravity() });
        let mut body = Body::new(disc(0.5, panels), RHO, vector(50.0, 50.0));
        body.lead = Lead::Towards([50.0 + 1e-6, 50.0]);
        tank.bodies.push(body);
        tank.step(1e-6);
        let worst = tank.panels().fold(0.0f64, |worst, (panel, strength)| {
            let sine = (panel.centre - vector(50.0, 50.0)).normalize()[1];
            worst.max((strength - 2.0 * sine).abs())
        });
        assert!(worst < 2.0 * within, "{panels} panels: off by {worst:.1e} m/s");
    }
}

/// What the modes learn of panels is the panels' share in them.
#[test]
fn feedback_is_the_projection_of_the_panels() {
    let mut tank = tank([1.0, 1.3], without_gravity());
    let mut body = Body::new(disc(0.15, 64), 0.5 * RHO, vector(0.4, 0.6));
    body.velocity = [0.4, -0.3, 0.0];
    tank.bodies.push(body);
    tank.step(1e-9);
    // The sheet's own flow goes on inside of the body.
    let coarse = Basis::<2>::new([1.0, 1.3], [120; 2]);
    let share = coarse.project(|x| tank.panel_velocity(x));
    let learnt = tank.fluid.amplitudes();
    let norm = dot(learnt, learnt).sqrt();
    for index in (0..learnt.len()).filter(|&index| tank.fluid.space.basis().is_mode(index)) {
        let numbers = tank.fluid.space.basis().numbers(index);
        if numbers[0].max(numbers[1]) <= 8 {
            let expected = share[coarse.index(numbers, 0).expect("a mode")];
            let error = (learnt[index] - expected).abs() / norm;
            assert!(error < 5e-3, "mode {numbers:?}: {} in place of {expected}", learnt[index]);
        }
    }
}

#[test]
fn walls_are_stream_lines_of_panels() {
    for place in
        [vector(0.45, 0.6), vector(0.12, 0.7), vector(0.89, 0.12), vector(0.11, 1.19), vector(0.5, 0.106)]
    {
        for size in [[1.0, 1.3], [1.3, 1.0]] {
            let place = if size[0] > 1.0 { vector(place[1], place[0]) } else { place };
            let mut tank = tank(size, TankParams { feedback: 0.0, ..without_gravity() });
            let mut body = Body::new(disc(0.1, 64), 0.5 * RHO, place);
            body.velocity = [0.4, -0.3, 1.0];
            tank.bodies.push(body);
            tank.step(1e-9);
            for i in 0..200 {
                let share = i as f64 / 200.0;
                let [lx, ly] = size;
                for at in [[share * lx, 0.0], [share * lx, ly], [0.0, share * ly], [lx, share * ly]] {
                    let stream = tank.panel_stream(Vector::from(at));
                    assert!(stream.abs() < 1e-6 * 0.5 * 0.1, "body at {place}: {stream:.1e} at {at:?}");
                }
            }
        }
    }
}

#[test]
fn panels_in_a_box_flow_along_their_stream_lines() {
    let tank = moving(Form::Disc { radius: 0.1 }, vector(0.12, 1.1), 40);
    for at in [vector(0.5, 0.5), vector(0.25, 1.0), vector(0.9, 1.2), vector(0.02, 1.28), vector(0.015, 1.1)]
    {
        let h = 1e-5;
        let slope =
            |step: Vector<2>| (tank.panel_stream(at + step) - tank.panel_stream(at - step)) / (2.0 * h);
        let expected = vector(slope(vector(0.0, h)), -slope(vector(h, 0.0)));
        let error = (tank.panel_velocity(at) - expected).norm();
        assert!(error < 1e-6, "at {at}: {:?} or {expected:?}", tank.panel_velocity(at));
    }
}

/// The other way to find what a vortex does in a box: the sum over its modes. Smoothed by a Gaussian it converges, and
/// away from the vortex it is the same.
#[test]
fn panels_in_a_box_are_sums_of_its_modes() {
    let tank = moving(Form::Rectangle { size: [0.1, 0.06] }, vector(0.4, 0.6), 32);
    let basis = Basis::<2>::new([1.0, 1.3], [127; 2]);
    let mut sum = Fluid::new(Space::whole(Arc::new(basis)), FluidParams::default());
    // A vortex has a share in a mode that is the mode's stream function.
    let basis = sum.space.basis().clone();
    let norm = 2.0 / 1.3f64.sqrt();
    let mode = |index: usize, x: Vector<2>| {
        let [n1, n2] = basis.numbers(index).map(|n| n as f64 * PI);
        let lambda = basis.eigenvalue(index);
        norm / lambda.sqrt()
            * (n1 * x[0]).sin()
            * (n2 * x[1] / 1.3).sin()
            * (-0.5 * lambda * 0.02f64.powi(2)).exp()
    };
    for (panel, strength) in tank.panels() {
        sum.change(|amplitudes| {
            for index in (0..amplitudes.len()).filter(|&index| basis.is_mode(index)) {
                amplitudes[index] += strength * panel.length * mode(index, panel.centre);
            }
        });
    }
    for at in [vector(0.6, 0.8), vector(0.2, 0.4), vector(0.9, 1.2)] {
        let (velocity, expected) = (sum.velocity_at(at), tank.panel_velocity(at));
        let error = (velocity - expected).norm() / expected.norm();
        assert!(error < 2e-3, "at {at}: {velocity:?} or {expected:?}");
    }
}

/// What a body's added mass is in a very large box, over `ρ` and what it should be.
fn added(form: Form, panels: usize) -> [f64; 3] {
    let mut tank = tank([100.0, 100.0], TankParams { density: 1.0, ..without_gravity() });
    tank.bodies.push(Body::new(outline(form, panels), 1.0, vector(50.0, 50.0)));
    let matrix = tank.added_mass();
    let norm = matrix[0][0] + matrix[1][1];
    assert!((matrix[0][1] - matrix[1][0]).abs() < 1e-10 * norm);
    [matrix[0][0], matrix[1][1], matrix[2][2]]
}

#[test]
fn added_masses_are_those_of_theory() {
    let [x, y, spin] = added(Form::Disc { radius: 0.5 }, 64);
    for found in [x, y] {
        assert!((found / (0.25 * PI) - 1.0).abs() < 2e-3, "a disc: {}", found / (0.25 * PI));
    }
    assert!(spin.abs() < 1e-3 * x, "a disc turns freely: {spin:.1e}");
    // Half axes a and b: ρπb² along a, ρπa² along b, ρπ(a²−b²)²/8 in turning.
    let (a, b) = (0.5, 0.2);
    let points = (0..64).map(|i| {
        let (sine, cosine) = (2.0 * PI * i as f64 / 64.0).sin_cos();
        [a * cosine, b * sine]
    });
    let [x, y, spin] = added(Form::Polygon(points.collect()), 64);
    let theory = [PI * b * b, PI * a * a, PI * (a * a - b * b).powi(2) / 8.0];
    for (found, theory) in [x, y, spin].into_iter().zip(theory) {
        assert!((found / theory - 1.0).abs() < 0.01, "an ellipse: {}", found / theory);
    }
    let [x, ..] = added(Form::Rectangle { size: [1.0, 1.0] }, 32);
    assert!((x / (1.513 * 0.25 * PI) - 1.0).abs() < 0.02, "a square: {x}");
}

#[test]
fn released_bodies_accelerate_as_theory_says() {
    for density in [0.01, 0.5, 2.0] {
        let mut tank =
            tank([1.0, 1.0], TankParams { density: RHO, gravity: [0.0, -10.0], ..Default::default() });
        tank.bodies.push(Body::new(disc(0.05, 64), density * RHO, vector(0.5, 0.5)));
        let dt = 1e-4;
        tank.step(dt);
        // The box makes the added mass 1.6 % larger than it is in the open.
        let theory = 10.0 * (1.0 - density) / (density + 1.016);
        let found = tank.bodies[0].velocity[1] / dt;
        assert!((found / theory - 1.0).abs() < 0.01, "density {density}: {found} in place of {theory}");
        assert!(tank.bodies[0].velocity[0].abs() < 1e-9 * dt, "straight up or down");
    }
}

#[test]
fn what_weighs_as_much_as_still_fluid_stays() {
    let mut tank = tank([1.0, 1.0], TankParams::default());
    tank.bodies.push(Body::new(outline(Form::Rectangle { size: [0.2, 0.1] }, 30), RHO, vector(0.3, 0.4)));
    (0..20).for_each(|_| assert!(tank.step(0.01).solved));
    let body = &tank.bodies[0];
    assert!(body.velocity.iter().all(|v| v.abs() < 1e-12), "{:?}", body.velocity);
}

/// A disc as heavy as the fluid goes where the fluid goes: once around in the largest eddy.
#[test]
fn a_neutral_disc_follows_the_fluid() {
    let mut tank = tank([1.0, 1.0], without_gravity());
    let index = tank.fluid.space.basis().index([1, 1], 0).expect("the first mode");
    tank.fluid.change(|amplitudes| amplitudes[index] = 0.5);
    let radius = 0.04;
    let mut tracer = vector(0.5, 0.7);
    let calm = tank.fluid.clone();
    tank.bodies.push(Body::new(disc(radius, 32), RHO, tracer));
    let mut start = calm.velocity_at(tracer);
    tank.bodies[0].velocity = [start[0], start[1], 0.0];
    let (dt, mut turned, mut worst) = (1.0 / 240.0, 0.0, 0.0f64);
    while turned < 2.0 * PI {
        let before = tracer - vector(0.5, 0.5);
        start = calm.velocity_at(tracer);
        let middle = calm.velocity_at(tracer + start * (0.5 * dt));
        tracer += middle * dt;
        let after = tracer - vector(0.5, 0.5);
        turned += before.perp(&after).atan2(before.dot(&after)).abs();
        tank.step(dt);
        worst = worst.max((tank.bodies[0].position - tracer).norm());
    }
    assert!(worst < 0.5 * radius, "{:.2} radii off", worst / radius);
}

#[test]
fn still_bodies_take_energy_and_give_none() {
    let mut tank = tank([1.0, 1.0], without_gravity());
    let amplitudes = super::fluid::random(tank.fluid.space.basis(), 2);
    let smooth: Vec<f64> = amplitudes
        .iter()
        .enumerate()
        .map(|(index, a)| a / (1.0 + tank.fluid.space.basis().eigenvalue(index)))
        .collect();
    let norm = 1.0 / dot(&smooth, &smooth).sqrt();
    tank.fluid.change(|own| own.iter_mut().zip(&smooth).for_each(|(own, a)| *own = norm * a));
    let mut body = Body::new(disc(0.1, 48), RHO, vector(0.6, 0.5));
    body.lead = Lead::Fixed;
    tank.bodies.push(body);
    let mut before = tank.fluid.energy();
    for step in 0..60 {
        tank.step(1.0 / 120.0);
        let after = tank.fluid.energy();
        // What the fluid's own step keeps is kept to rounding.
        assert!(after < before * (1.0 + 1e-13), "step {step}: {before} to {after}");
        before = after;
    }
    assert_eq!(tank.bodies[0].position, vector(0.6, 0.5));
    assert!(before < 0.5 * 0.99, "it does take some: {before}");
}

#[test]
fn mirrored_bodies_stay_mirrored() {
    let mut tank = tank([1.0, 1.0], TankParams::default());
    for x in [0.4, 0.6] {
        tank.bodies.push(Body::new(disc(0.06, 32), 1.5 * RHO, vector(x, 0.7)));
    }
    for _ in 0..20 {
        tank.step(1.0 / 120.0);
        let [left, right] = [&tank.bodies[0], &tank.bodies[1]];
        let difference = (left.position[0] + right.position[0] - 1.0).abs()
            + (left.position[1] - right.position[1]).abs()
            + (left.angle + right.angle).abs();
        assert!(difference < 1e-11, "{difference:.1e}");
    }
    assert!(tank.bodies[0].position[1] < 0.69);
}

/// The rear one of two falling discs catches up in the wake of the first.
#[test]
fn the_rear_one_of_two_falling_discs_catches_up() {
    for steps_per_second in [60, 120] {
        let fluid = still([1.0, 1.0], 31, FluidParams { viscosity: 1e-3, ..Default::default() });
        let params = TankParams { density: RHO, gravity: [0.0, -1.0], ..Default::default() };
        let mut tank = Tank::new(fluid, params);
        for y in [0.86, 0.72] {
            tank.bodies.push(Body::new(disc(0.05, 32), 1.5 * RHO, vector(0.5, y)));
        }
        let (mut gap, mut times) = (0.0, 0);
        while times < 5 * steps_per_second {
            tank.step(1.0 / steps_per_second as f64);
            times += 1;
            gap = (tank.bodies[0].position - tank.bodies[1].position).norm() - 0.1;
            if gap < 0.012 {
                break;
            }
        }
        let seconds = times as f64 / steps_per_second as f64;
        assert!(gap < 0.012, "still {gap:.3} m apart");
        assert!(
            (2.2..2.7).contains(&seconds),
            "{steps_per_second} steps a second: they meet after {seconds:.2} s"
        );
    }
}

/// The furthest that bodies reach into each other or into walls, m.
fn overlap(tank: &Tank) -> f64 {
    let [lx, ly] = tank.fluid.space.basis().size();
    let mut worst = f64::MIN;
    for body in &tank.bodies {
        for &corner in &body.outline.core {
            let (x, r) = (body.to_world(corner), body.outline.rounding);
            worst = worst.max((r - x[0]).max(r - x[1]).max(x[0] + r - lx).max(x[1] + r - ly));
        }
        for other in &tank.bodies {
            if !std::ptr::eq(body, other) && body.outline.core.len() == 1 && other.outline.core.len() == 1 {
                let apart = (body.position - other.position).norm();
                worst = worst.max(body.outline.rounding + other.outline.rounding - apart);
            }
        }
    }
    worst
}

/// The paper's game: 73 modes, 15 bodies, 147 panels.
fn game() -> Tank {
    let basis = Arc::new(Basis::new([1.0, 1.0], [12; 2]));
    let space = Space::smallest(basis, 73);
    let mut tank = Tank::new(
        Fluid::new(space, FluidParams { viscosity: 1e-4, ..Default::default() }),
        TankParams::default(),
    );
    for i in 0..15 {
        let form = match i % 3 {
            0 => Form::Disc { radius: 0.04 },
            1 => Form::Rectangle { size: [0.1, 0.06] },
            _ => Form::Capsule { length: 0.05, radius: 0.03 },
        };
        let place = vector(0.14 + 0.18 * (i % 5) as f64, 0.3 + 0.2 * (i / 5) as f64);
        let density = RHO * (0.6 + 0.07 * i as f64);
        tank.bodies.push(Body::new(outline(form, 10), density, place));
    }
    tank
}

#[test]
fn many_bodies_settle_without_meeting() {
    let mut tank = game();
    let mut contacts = 0;
    for step in 0..300 {
        let report = tank.step(1.0 / 60.0);
        assert!(report.solved, "step {step}");
        contacts += report.contacts;
        let overlap = overlap(&tank);
        assert!(overlap < 1e-3, "step {step}: {overlap} m into each other");
        let fastest = tank.bodies.iter().flat_map(|body| body.velocity).fold(0.0, |a: f64, b| a.max(b.abs()));
        assert!(fastest < 50.0, "step {step}: {fastest} m/s");
    }
    assert!(contacts > 0, "some lie on others");
}

#[test]
fn a_heavy_disc_bounces_off_the_floor() {
    let mut tank = tank([1.0, 1.0], without_gravity());
    tank.params.density = 1e-3;
    let mut body = Body::new(disc(0.1, 32), RHO, vector(0.5, 0.5));
    (body.velocity, body.restitution) = ([0.0, -1.0, 0.0], 0.8);
    tank.bodies.push(body);
    for _ in 0..60 {
        tank.step(0.01);
    }
    let up = tank.bodies[0].velocity[1];
    assert!((up - 0.8).abs() < 1e-3, "{up} m/s");
}

#[test]
fn a_hand_leads_a_body_and_lets_it_go() {
    let mut tank = tank([1.0, 1.0], TankParams::default());
    tank.bodies.push(Body::new(disc(0.08, 32), 0.5 * RHO, vector(0.3, 0.5)));
    tank.bodies[0].lead = Lead::Towards([0.6, 0.5]);
    let dt = 1.0 / 60.0;
    tank.step(dt);
    let speed = tank.bodies[0].velocity[0];
    assert!((speed - 2.0).abs() < 1e-9, "two box widths a second at most: {speed}");
    for _ in 0..10 {
        tank.step(dt);
    }
    assert!((tank.bodies[0].position - vector(0.6, 0.5)).norm() < 1e-9, "it arrives");
    assert!(tank.fluid.energy() > 0.0, "and has stirred the fluid");
    tank.bodies[0].lead = Lead::Free;
    for _ in 0..10 {
        tank.step(dt);
    }
    assert!(tank.bodies[0].position[1] > 0.5, "lighter than the fluid, it rises");
}

#[test]
fn forms_that_are_no_bodies_are_refused() {
    let refused = |form: Form| Outline::new(&form, 32).expect_err("no body");
    assert_eq!(refused(Form::Disc { radius: 0.0 }), FormError::Length(0.0));
    assert!(matches!(refused(Form::Rectangle { size: [1.0, f64::NAN] }), FormError::Length(_)));
    assert!(matches!(refused(Form::Polygon(vec![[0.0, 0.0], [1.0, 0.0]])), FormError::Polygon(_)));
    let sliver = Form::Polygon(vec![[0.0, 0.0], [1.0, 0.0], [1.0, 0.2]]);
    assert!(matches!(refused(sliver), FormError::Sharp { corner: 0, .. }));
    let clockwise = Outline::new(&Form::Polygon(vec![[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]), 32);
    assert!((clockwise.expect("a square").area - 1.0).abs() < 1e-12);
}

/// Whatever is done to it, a tank goes on with finite numbers.
#[test]
fn random_deeds_do_no_harm() {
    let basis = Arc::new(Basis::new([1.0, 0.8], [8; 2]));
    let mut tank =
        Tank::new(Fluid::new(Space::smallest(basis, 30), FluidParams::default()), TankParams::default());
    let mut word = 0;
    let mut next = || {
        word += 1;
        hash_unit(word) as f64
    };
    let outlines: Vec<Arc<Outline>> = forms().into_iter().map(|form| outline(form, 12)).collect();
    for deed in 0..3000 {
        let place = vector(2.0 * next() - 0.5, 2.0 * next() - 0.5);
        match (next() * 9.0) as usize {
            0 if tank.bodies.len() < 6 => {
                let outline = Arc::clone(&outlines[(next() * 4.0) as usize]);
                tank.bodies.push(Body::new(outline, 2.0 * next() * RHO + 1.0, place));
            }
            1 if tank.bodies.len() > 3 => drop(tank.bodies.remove((next() * 3.0) as usize)),
            2 => tank.fluid.push(place, vector(next(), f64::NAN), 0.1),
            3 => tank.fluid.push(place, vector(next() - 0.5, next() - 0.5), 0.1 * next()),
            4 => tank.bodies.iter_mut().take(1).for_each(|body| body.lead = Lead::Towards(place.into())),
            5 => tank.bodies.iter_mut().for_each(|body| body.lead = Lead::Free),
            6 => {
                let coupling = [Coupling::Variational, Coupling::DynamicPressure, Coupling::None];
                tank.params.coupling = coupling[(next() * 3.0) as usize];
            }
            7 => tank.fluid.scale_band(&(0.0..50.0 * next()), next()),
            _ => tank.fluid.params.viscosity = 1e-3 * next(),
        }
        tank.step(0.02 * next() + 1e-9);
        assert!(tank.fluid.energy().is_finite(), "deed {deed}");
        for body in &tank.bodies {
            let finite = body.velocity.iter().chain(&body.position).all(|value| value.is_finite());
            assert!(finite, "deed {deed}: {:?} at {:?}", body.velocity, body.position);
        }
    }
}

fn saved(tank: &Tank) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer::begin(&mut bytes).expect("memory");
    tank.save(&mut out).expect("memory");
    out.finish().expect("memory");
    bytes
}

fn loaded(bytes: &[u8]) -> Result<Tank, ArchiveError> {
    let mut bytes = bytes;
    let mut from = Reader::begin(&mut bytes)?;
    let tank = Tank::load(&mut from)?;
    from.finish()?;
    Ok(tank)
}

#[test]
fn a_saved_tank_goes_on_with_the_same_bits() {
    let mut tank = game();
    let points = vec![vector(0.2, 0.2), vector(0.8, 0.7)];
    let stroke = Stroke { points, radius: 0.05 };
    let mode = tank.fluid.space.field_of(&stroke).expect("a mode");
    tank.fluid.space.add(mode);
    tank.fluid.excite(0, 0.5);
    tank.bodies[3].lead = Lead::Towards([0.4, 0.4]);
    let steps = |tank: &mut Tank| {
        for _ in 0..10 {
            tank.step(1.0 / 60.0);
        }
    };
    steps(&mut tank);
    let bytes = saved(&tank);
    let mut again = loaded(&bytes).expect("what was saved");
    assert_eq!(saved(&again), bytes);
    steps(&mut tank);
    steps(&mut again);
    assert_eq!(saved(&again), saved(&tank));
    for cut in [bytes.len() / 3, bytes.len() - 1] {
        assert!(loaded(&bytes[..cut]).is_err(), "half a file is told");
    }
}

/// Prints how long steps of the paper's game take; by hand.
#[test]
#[ignore = "measures"]
fn steps_of_the_game() {
    let mut tank = game();
    let panels: usize = tank.bodies.iter().map(|body| body.outline.panels.len()).sum();
    let mut times: Vec<f64> = (0..300)
        .map(|_| {
            let start = Instant::now();
            tank.step(1.0 / 60.0);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{panels} panels, 15 bodies, 73 modes: median {:.3} ms, worst {:.3} ms",
        1e3 * times[150],
        1e3 * times[299]
    );
}
