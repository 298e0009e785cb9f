//! Offscreen pictures against stored ones, under whatever Vulkan there is. Without one this fails, unless told to skip by
//! name: `GLUG_SKIP=pictures cargo test`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::export::Picture;
use crate::scene::{self, Overrides};
use crate::viewer::{OffscreenSetup, OffscreenViewer, UiState, theme};

/// Side of the squares whose mean colours are compared: edges may move by a pixel, shapes may not.
const BLOCK: usize = 8;
/// Root of the mean squared difference of block colours, out of 255, above which two pictures differ.
const TOLERANCE: f64 = 7.0;

fn blocks(picture: &Picture) -> Vec<f64> {
    let (across, down) = (picture.width / BLOCK, picture.height / BLOCK);
    let mut sums = vec![0.0; 3 * across * down];
    for y in 0..down * BLOCK {
        for x in 0..across * BLOCK {
            for channel in 0..3 {
                let value = picture.rgb[3 * (y * picture.width + x) + channel] as f64;
                sums[3 * (y / BLOCK * across + x / BLOCK) + channel] += value / (BLOCK * BLOCK) as f64;
            }
        }
    }
    sums
}

fn difference(a: &Picture, b: &Picture) -> f64 {
    let (a, b) = (blocks(a), blocks(b));
    (a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / a.len().max(1) as f64).sqrt()
}

fn stored(path: &Path) -> Option<Picture> {
    let file = std::io::BufReader::new(std::fs::File::open(path).ok()?);
    let mut reader = png::Decoder::new(file).read_info().ok()?;
    let mut rgb = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut rgb).ok()?;
    Some(Picture { width: info.width as usize, height: info.height as usize, rgb })
}

fn shoot(scene: &str, cells: usize, frames: usize, ui_state: UiState) -> Picture {
    let overrides = Overrides { cells: Some(cells), ..Overrides::default() };
    let scene = scene::load(scene, &overrides).expect("a built-in scene");
    let models = vec![scene.params().model];
    let setup = OffscreenSetup {
        scene,
        models,
        size: (480, 320),
        ui_state: UiState { bare: true, ..ui_state },
        threads: 2,
    };
    let mut viewer = OffscreenViewer::open(setup)
        .unwrap_or_else(|error| panic!("{error} (GLUG_SKIP=pictures skips the test that compares pictures)"));
    for _ in 0..frames {
        assert!(viewer.advance(&AtomicBool::new(false)).expect("a frame"));
    }
    viewer.picture().expect("a picture")
}

/// One test for all: every picture needs a renderer of its own, and they share the machine.
#[test]
fn pictures_look_like_the_stored_ones() {
    if std::env::var("GLUG_SKIP").is_ok_and(|names| names.split(',').any(|name| name == "pictures")) {
        eprintln!("GLUG_SKIP: pictures are not compared");
        return;
    }
    let dark = UiState { dark: true, ..UiState::default() };
    let layers = UiState { layers: theme::PRESSURE | theme::ARROWS | theme::GRID, ..UiState::default() };
    let cut = UiState { layers: theme::CUT | theme::PARTICLES, ..UiState::default() };
    let cases = [
        ("flat", "ball_in_circle_2d", 64, 18, UiState::default()),
        ("flat_dark_layers", "ball_in_circle_2d", 64, 18, UiState { dark: true, ..layers }),
        ("tank", "dam_break", 24, 14, UiState::default()),
        ("tank_dark", "splash_tank", 24, 6, dark),
        ("tank_cut", "dam_break", 24, 14, cut),
        ("glass", "faucet", 32, 20, UiState::default()),
        ("smoke_flat", "paddle_smoke_2d", 48, 20, UiState::default()),
        ("smoke", "stirred_smoke", 24, 20, UiState::default()),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
    let renew = std::env::var_os("GLUG_RENEW_PICTURES").is_some();
    let mut wrong = Vec::new();
    for (name, scene, cells, frames, ui_state) in cases {
        let picture = shoot(scene, cells, frames, ui_state);
        let path = folder.join(format!("{name}.png"));
        if renew {
            std::fs::create_dir_all(&folder).expect("a folder");
            let mut file = std::fs::File::create(&path).expect("a file");
            picture.write_png(&mut file).expect("written");
            continue;
        }
        let Some(expected) = stored(&path) else {
            wrong.push(format!("{name}: {} is missing", path.display()));
            continue;
        };
        let off = difference(&picture, &expected);
        if off > TOLERANCE {
            wrong.push(format!("{name}: off by {off:.1}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "pictures changed (GLUG_RENEW_PICTURES=1 stores them anew):\n{}",
        wrong.join("\n")
    );
}
