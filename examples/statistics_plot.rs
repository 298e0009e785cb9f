//! Runs a built-in scene with two models of the air and plots how much of it stays trapped, as an SVG picture on standard
//! output: with a free surface bubbles collapse, with constraint bubbles they keep their volume.
//!
//!     cargo run --release --no-default-features --example statistics_plot > bubbles.svg

use std::sync::atomic::AtomicBool;

use glug::scene::{AnyScene, Overrides, load};
use glug::sim::{Model, Setup, SimError, Simulation};

const FRAMES: usize = 30;

/// Trapped air after every frame, as a share of what there was at the start.
fn trapped_air(setup: &Setup<2>, model: Model, fps: f64) -> Result<Vec<f64>, SimError> {
    let mut simulation = Simulation::new(setup)?;
    simulation.params.model = model;
    let trapped = |bubbles: &[glug::sim::BubbleReport]| -> f64 {
        bubbles.iter().filter(|bubble| !bubble.open).map(|bubble| bubble.volume).sum()
    };
    let start = trapped(&simulation.survey().bubbles);
    let mut shares = vec![1.0];
    for _ in 0..FRAMES {
        let Some(report) = simulation.advance_frame(1.0 / fps, &AtomicBool::new(false))? else { break };
        shares.push(trapped(&report.bubbles) / start);
    }
    Ok(shares)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let overrides = Overrides { cells: Some(64), ..Overrides::default() };
    let AnyScene::TwoD(scene) = load("rising_bubble_2d", &overrides)? else { panic!("a scene in 2D") };
    println!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-40 -20 480 280" font-family="sans-serif">"#
    );
    println!(r#"<path d="M0 0V240H400" fill="none" stroke="grey"/><text x="0" y="256">0</text>"#);
    println!(r#"<text x="300" y="256">{:.1} s</text>"#, FRAMES as f64 / scene.fps);
    println!(r#"<text x="-36" y="44">100 %</text><text x="-20" y="240">0</text>"#);
    for (model, colour) in [(Model::FreeSurface, "crimson"), (Model::Constraint, "royalblue")] {
        let shares = trapped_air(&scene.setup, model, scene.fps)?;
        let point = |(frame, share): (usize, &f64)| {
            format!("{:.1},{:.1}", frame as f64 * 400.0 / FRAMES as f64, 240.0 - 200.0 * share)
        };
        let points: Vec<String> = shares.iter().enumerate().map(point).collect();
        println!(
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
            points.join(" ")
        );
        let last = shares.last().copied().unwrap_or(1.0);
        println!(r#"<text x="260" y="{:.0}" fill="{colour}">{}</text>"#, 232.0 - 200.0 * last, model.name());
    }
    println!("</svg>");
    Ok(())
}
