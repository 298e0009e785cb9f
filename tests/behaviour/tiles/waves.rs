//! Waves over tiles against waves without.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use glug::runner::Run;
use glug::scene::{Overrides, load};
use glug::snapshot::{Scenery, Wanted};

/// A run, as one sees it from above.
pub struct Waves {
    /// Heights of all columns in every frame, in cells.
    pub heights: Vec<Vec<f32>>,
    /// Particles at its end.
    pub particles: usize,
    /// Volume on average.
    pub volume: f64,
    /// Tiles at its end.
    pub tiles: usize,
}

/// Runs a scene with parameters as `set`.
pub fn heights(scene: &str, cells: usize, frames: usize, model: &str, set: &[(&str, &str)]) -> Waves {
    let set = [&[("bubbles", "free-surface")], set].concat();
    let set = set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let overrides = Overrides { cells: Some(cells), model: Some(model.to_owned()), set };
    let scene = load(scene, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let stage = Arc::new(Scenery::of(&scene));
    let mut run = Run::new(&scene, stage, scene.params().clone(), 1).expect("it starts");
    let mut waves = Waves { heights: Vec::new(), particles: 0, volume: 0.0, tiles: 0 };
    for _ in 0..frames {
        let done = run.advance(&AtomicBool::new(false), &mut |_| ()).expect("the simulation goes on");
        assert!(done && (run.report().tiles.count > 0) == (model == "affine-tiles"));
        waves.heights.push(run.snapshot(Wanted::default(), 1.0).column_heights());
        waves.particles = run.report().particles;
        waves.tiles = run.report().tiles.count;
        waves.volume += run.report().liquid.volume / frames as f64;
    }
    waves
}

/// Mean difference, in cells.
pub fn off(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / a.iter().map(Vec::len).sum::<usize>() as f64
}

/// A splash over tiles of 16 cells against one without, over a second: within a cell under a band of 9, and worse under
/// one of 3.
fn tiles_keep_the_surface(scene: &str, cells: usize, frames: usize) {
    let run =
        |model: &str, band: &str| heights(scene, cells, frames, model, &[("surface_band", band)]).heights;
    let uniform = run("free-surface", "9");
    let [wide, thin] = ["9", "3"].map(|band| off(&run("affine-tiles", band), &uniform));
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

/// Tiles that grow with depth, from 16 cells below the band to 64, against tiles of 16 everywhere: fewer, and no worse
/// for the surface.
fn graded_tiles_keep_the_surface_as_well(scene: &str, cells: usize, frames: usize) {
    let tiled = |deep: &str| {
        let set = [("surface_band", "9"), ("tile_size", "16"), ("tile_size_deep", deep)];
        heights(scene, cells, frames, "affine-tiles", &set)
    };
    let uniform = heights(scene, cells, frames, "free-surface", &[]).heights;
    let [same, graded] = ["16", "64"].map(tiled);
    let errors = [&same, &graded].map(|waves| off(&waves.heights, &uniform));
    println!(
        "{scene}, {cells} cells: {:.3} cells off with {} tiles of 16, {:.3} with {} that grow",
        errors[0], same.tiles, errors[1], graded.tiles
    );
    assert!(4 * graded.tiles < 3 * same.tiles, "{scene}: {} and {} tiles", graded.tiles, same.tiles);
    assert!(errors[1] < 1.25 * errors[0] + 0.02, "{scene}: {errors:?} cells off");
}

#[test]
fn graded_tiles_keep_the_surface_as_well_2d() {
    graded_tiles_keep_the_surface_as_well("pool_tiles_2d", 256, 60);
}

#[test]
#[ignore = "minutes"]
fn graded_tiles_keep_the_surface_as_well_3d() {
    graded_tiles_keep_the_surface_as_well("splash_tank_tiles", 160, 15);
}
