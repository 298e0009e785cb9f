//! Draws a jet into a box of fluid, and lets it carry ink past a falling disc: with 64 eigenmodes alone, and with the jet as a
//! mode beside them. Prints how much of the jet each of them holds, and writes `drawn_jet.png` with both side by side.
//!
//!     cargo run --release --no-default-features --example drawn_jet

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use glug::eigenfluid::{
    Basis, Body, Flow, Fluid, FluidParams, Form, Ink, Outline, Space, Stroke, Tank, TankParams,
};
use glug::math::Vector;

const CELLS: usize = 256;
const SECONDS: f64 = 0.9;
const DT: f64 = 1.0 / 120.0;

/// A box of a square metre with a jet through its middle and a disc above it, and ink where both are.
fn run(space: Space<2>, jet: &[f64]) -> Result<(Tank, Ink<1>), Box<dyn Error>> {
    let mut tank = Tank::new(
        Fluid::new(space, FluidParams { viscosity: 1e-4, ..Default::default() }),
        TankParams { gravity: [0.0, -2.0], ..Default::default() },
    );
    tank.fluid.change(|amplitudes| amplitudes.copy_from_slice(jet));
    let disc = Outline::new(&Form::Disc { radius: 0.06 }, 40)?;
    tank.bodies.push(Body::new(Arc::new(disc), 2000.0, Vector::from([0.72, 0.85])));
    let mut flow = Flow::new(tank.fluid.space.basis(), [CELLS; 2]);
    let mut ink = Ink::new(&flow);
    ink.paint(&flow, |x, _| {
        let stripes = (x[0] < 0.35 && (x[1] - 0.5).abs() < 0.1) || x[1] > 0.7;
        [if stripes && ((40.0 * x[1]) as usize).is_multiple_of(2) { 1.0 } else { 0.0 }]
    });
    for _ in 0..(SECONDS / DT) as usize {
        tank.step(DT);
        flow.update(&tank);
        ink.advance(&flow, DT);
    }
    Ok((tank, ink))
}

fn main() -> Result<(), Box<dyn Error>> {
    let basis = Arc::new(Basis::new([1.0, 1.0], [63, 63]));
    let plain = Space::smallest(basis, 64);
    let points = vec![Vector::from([0.1, 0.5]), Vector::from([0.55, 0.5])];
    let jet = plain.field_of(&Stroke { points, radius: 0.015 })?;
    let mut enriched = plain.clone();
    enriched.add(jet.clone());
    let amplitudes: Vec<f64> = jet.field.iter().map(|value| value / jet.peak).collect();
    let whole: f64 = amplitudes.iter().map(|value| value * value).sum();

    let mut picture = vec![255u8; 3 * 2 * CELLS * CELLS];
    for (side, (name, space)) in [("eigenmodes", plain), ("enriched", enriched)].into_iter().enumerate() {
        let mut held = amplitudes.clone();
        space.project(&mut held);
        let share = held.iter().map(|value| value * value).sum::<f64>() / whole;
        println!("{name:10}: {:.1} % of the jet's energy", 100.0 * share);
        let (tank, ink) = run(space, &held)?;
        let disc = tank.bodies[0].position;
        for (cell, value) in ink.values().iter().enumerate() {
            let [x, y] = [cell / CELLS, cell % CELLS];
            let at = Vector::from([x as f64 + 0.5, y as f64 + 0.5]) / CELLS as f64;
            let colour = match (at - disc).norm() < 0.06 {
                true => [90.0, 90.0, 100.0],
                false => [[255.0, 30.0], [252.0, 60.0], [245.0, 140.0]]
                    .map(|[none, full]| none + (full - none) * value[0]),
            };
            let pixel = 3 * ((CELLS - 1 - y) * 2 * CELLS + side * CELLS + x);
            picture[pixel..pixel + 3].copy_from_slice(&colour.map(|channel| channel as u8));
        }
    }
    let mut encoder =
        png::Encoder::new(BufWriter::new(File::create("drawn_jet.png")?), 2 * CELLS as u32, CELLS as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&picture)?;
    println!("drawn_jet.png shows eigenmodes on the left, the enriched basis on the right");
    Ok(())
}
