//! What the fluid carries.

use std::sync::Arc;
use std::time::Instant;

use glug::eigenfluid::{
    Basis, Body, Flow, Fluid, FluidParams, Form, Ink, Lead, Outline, Space, Tank, TankParams, Tracers,
};
use glug::math::Vector;

use super::fluid::still;

fn vector(x: f64, y: f64) -> Vector<2> {
    Vector::from([x, y])
}

fn stirred(size: [f64; 2], highest: usize) -> Tank {
    let mut tank = Tank::new(still(size, highest, FluidParams::default()), TankParams::default());
    tank.fluid.push(vector(0.6, 0.5), vector(0.3, 0.1), 0.1);
    tank
}

/// On the grid there is what modes and panels say at every point, near walls as well, and few modes do not matter.
#[test]
fn a_flow_is_that_of_modes_and_panels() {
    for (highest, place) in [(31, vector(0.4, 0.6)), (6, vector(0.13, 0.75)), (6, vector(0.87, 0.87))] {
        let mut tank = stirred([1.0, 1.0], highest);
        let outline = Outline::new(&Form::Disc { radius: 0.1 }, 32).expect("an outline");
        let mut body = Body::new(Arc::new(outline), 500.0, place);
        body.velocity = [0.5, 0.3, 0.0];
        tank.bodies.push(body);
        let before = tank.fluid.clone();
        tank.step(1e-9);
        let mut flow = Flow::new(tank.fluid.space.basis(), [128, 128]);
        flow.update(&tank);
        let mut worst = 0.0f64;
        for cell in (0..flow.velocity().len()).step_by(13) {
            let (x, found) = (flow.middle(cell), Vector::from(flow.velocity()[cell]));
            let inside = (x - tank.bodies[0].position).norm() - 0.1;
            let expected = match inside < 0.0 {
                true => tank.bodies[0].velocity_at(x),
                false => before.velocity_at(x) + tank.panel_velocity(x),
            };
            // Half a panel around the outline is neither here nor there.
            if inside.abs() > 0.01 {
                worst = worst.max((found - expected).norm());
            }
        }
        assert!(worst < 3e-3, "{highest} waves, body at {place}: off by {worst:.1e} m/s");
    }
}

#[test]
fn tracers_stay_on_stream_lines_and_out_of_bodies() {
    let mut tank = stirred([1.0, 1.5], 8);
    // One mode by itself is steady.
    let index = tank.fluid.space.basis().index([2, 1], 0).expect("a mode");
    tank.fluid.change(|amplitudes| amplitudes.fill(0.0));
    tank.fluid.change(|amplitudes| amplitudes[index] = 0.5);
    let mut flow = Flow::new(tank.fluid.space.basis(), [128, 192]);
    flow.update(&tank);
    let places: Vec<Vector<2>> = (1..20).map(|i| vector(0.05 * i as f64, 0.4)).collect();
    let mut tracers = Tracers { places: places.clone() };
    for _ in 0..200 {
        tracers.advance(&flow, &tank.bodies, 0.01);
    }
    for (from, to) in places.iter().zip(&tracers.places) {
        let drift = tank.fluid.stream_at(*to) - tank.fluid.stream_at(*from);
        assert!(drift.abs() < 1e-3 * 0.5, "from {from} to {to}: {drift:.1e}");
    }
    let outline = Outline::new(&Form::Rectangle { size: [0.3, 0.2] }, 40).expect("an outline");
    let mut body = Body::new(Arc::new(outline), 1000.0, vector(0.3, 0.5));
    body.lead = Lead::Towards([0.7, 0.5]);
    tank.bodies.push(body);
    for _ in 0..60 {
        tank.step(0.01);
        flow.update(&tank);
        tracers.advance(&flow, &tank.bodies, 0.01);
        let body = &tank.bodies[0];
        for x in &tracers.places {
            let arm = nalgebra::Rotation2::new(-body.angle) * (x - body.position);
            let inside = (0.15 - arm[0].abs()).min(0.1 - arm[1].abs());
            assert!(inside < 1e-9, "a tracer {inside:.1e} m inside of the body");
            assert!((0.0..=1.0).contains(&x[0]) && (0.0..=1.5).contains(&x[1]), "a tracer at {x}");
        }
    }
}

#[test]
fn ink_stays_sharp_and_is_neither_made_nor_lost() {
    let mut tank = stirred([1.0, 1.0], 15);
    tank.fluid.change(|amplitudes| amplitudes.iter_mut().for_each(|amplitude| *amplitude *= 0.2));
    let mut flow = Flow::new(tank.fluid.space.basis(), [128, 128]);
    flow.update(&tank);
    let mut ink = Ink::<1>::new(&flow);
    ink.paint(&flow, |x, _| [if (x - vector(0.5, 0.5)).norm() < 0.2 { 1.0 } else { 0.0 }]);
    let sum = |ink: &Ink<1>| ink.values().iter().map(|value| f64::from(value[0])).sum::<f64>();
    let before = sum(&ink);
    for _ in 0..100 {
        ink.advance(&flow, 0.01);
    }
    let drift = (sum(&ink) / before - 1.0).abs();
    assert!(drift < 0.02, "{:.2} % of the ink", 100.0 * drift);
    assert!(ink.values().iter().all(|value| (0.0..=1.0).contains(&value[0])), "no new extremes");
    let between = ink.values().iter().filter(|value| (0.1..0.9).contains(&value[0])).count();
    let full = ink.values().iter().filter(|value| value[0] >= 0.9).count();
    assert!(between < full, "{between} cells at the edge of {full}");
    // The same on any number of threads.
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut ink = ink.clone();
            ink.advance(&flow, 0.02);
            ink
        })
    };
    assert_eq!(run(1), run(3));
}

/// Prints how long it takes to show a tank; by hand.
#[test]
#[ignore = "measures"]
fn flows_by_cells() {
    let basis = Arc::new(Basis::new([1.0, 1.0], [12; 2]));
    let fluid = Fluid::new(Space::smallest(basis, 73), FluidParams::default());
    let mut tank = Tank::new(fluid, TankParams::default());
    for i in 0..15 {
        let outline = Outline::new(&Form::Disc { radius: 0.04 }, 10).expect("an outline");
        let place = vector(0.14 + 0.18 * (i % 5) as f64, 0.3 + 0.2 * (i / 5) as f64);
        tank.bodies.push(Body::new(Arc::new(outline), 500.0 + 70.0 * i as f64, place));
    }
    tank.step(0.01);
    for cells in [128, 256] {
        let mut flow = Flow::new(tank.fluid.space.basis(), [cells; 2]);
        let mut ink = Ink::<3>::new(&flow);
        flow.update(&tank);
        let start = Instant::now();
        (0..10).for_each(|_| flow.update(&tank));
        let update = start.elapsed().as_secs_f64();
        (0..10).for_each(|_| ink.advance(&flow, 0.01));
        let both = start.elapsed().as_secs_f64();
        println!(
            "{cells}²: flow {:.2} ms, ink in three colours {:.2} ms",
            100.0 * update,
            100.0 * (both - update)
        );
    }
}
