//! Waves over tiles against waves without.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use glug::runner::{Exhibit, Stage, Wanted};
use glug::scene::{Overrides, load};

/// Heights of all columns in every frame, in cells.
fn heights(scene: &str, cells: usize, frames: usize, model: &str, band: usize) -> Vec<Vec<f32>> {
    let set = vec![
        ("surface_band".to_owned(), band.to_string()),
        ("bubbles".to_owned(), "free-surface".to_owned()),
    ];
    let overrides = Overrides { cells: Some(cells), model: Some(model.to_owned()), set };
    let scene = load(scene, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stage = Arc::new(Stage::of(&scene));
    let mut exhibit = Exhibit::new(&scene, stage, scene.params().clone(), 1).expect("it starts");
    let frame = |_| {
        let done = exhibit.advance(&AtomicBool::new(false), &mut |_| ()).expect("the simulation goes on");
        assert!(done && (exhibit.report().tiles.count > 0) == (model == "affine-tiles"));
        exhibit.snapshot(Wanted::default(), 1.0).column_heights()
    };
    (0..frames).map(frame).collect()
}

/// Mean difference, in cells.
fn off(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / a.iter().map(Vec::len).sum::<usize>() as f64
}

/// A splash over tiles of 16 cells against one without, over a second: within a cell under a band of 9, and worse under
/// one of 3.
fn tiles_keep_the_surface(scene: &str, cells: usize, frames: usize) {
    let uniform = heights(scene, cells, frames, "free-surface", 9);
    let [wide, thin] = [9, 3].map(|band| off(&heights(scene, cells, frames, "affine-tiles", band), &uniform));
    println!("{scene}, {cells} cells: {wide:.3} cells off with a band of 9, {thin:.3} with one of 3");
    assert!(wide < 1.0, "{scene}: {wide} cells off");
    assert!(wide < 0.8 * thin, "{scene}: {wide} and {thin} cells off");
}

#[test]
fn tiles_keep_the_surface_2d() {
    tiles_keep_the_surface("pool_tiles_2d", 128, 60);
}

#[test]
#[ignore = "minutes"]
fn tiles_keep_the_surface_3d() {
    tiles_keep_the_surface("splash_tank_tiles", 96, 30);
}
