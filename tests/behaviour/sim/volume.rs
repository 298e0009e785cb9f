//! How much liquid and trapped air there is, in every built-in scene from its first frame to its last.

use glug::geometry::Label;
use glug::scene::{AnyScene, Overrides, Scene, library, load};
use glug::sim::{FrameReport, Simulation};

use super::advance;

/// What a run made of its volumes. Shares are of what there should be.
#[derive(Default)]
struct Account {
    /// Largest swelling and shrinking of the liquid, and where it was at the end.
    most: f64,
    least: f64,
    last: f64,
    /// Mean deviation of the bubbles from their rest volumes, all together, over all frames that had any.
    air: f64,
    /// Frames with bubbles that keep their volume.
    with_air: usize,
    particles: usize,
}

/// The volume that the liquid should have by the particles that came and went, m³.
fn rest<const D: usize>(simulation: &Simulation<D>, dx: f64) -> f64 {
    let tracker = simulation.tracker();
    let liquids = tracker.records().iter().filter(|record| record.phase == Label::Liquid);
    (tracker.spray() + liquids.map(|record| record.rest).sum::<f64>()) * dx.powi(D as i32)
}

impl Account {
    /// Runs a scene to its end.
    fn of<const D: usize>(scene: &Scene<D>, width: u32) -> Self {
        let mut setup = scene.setup.clone();
        setup.params.narrow_band = width;
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let (start, dx) = (simulation.survey(), setup.grid.dx);
        // Seeding is no part of it: what is there is what should be.
        let excess =
            |simulation: &Simulation<D>, report: &FrameReport| report.liquid.volume - rest(simulation, dx);
        let first = excess(&simulation, &start);
        let mut account = Account::default();
        for _ in 0..scene.frames {
            let report = advance(&mut simulation, 1.0 / scene.fps);
            let should_be = rest(&simulation, dx).max(start.liquid.volume * 0.01);
            account.last = (excess(&simulation, &report) - first) / should_be;
            account.most = account.most.max(account.last);
            account.least = account.least.min(account.last);
            account.particles = report.particles;
            let held = || report.bubbles.iter().filter(|bubble| bubble.constrained && !bubble.void);
            let all: f64 = held().map(|bubble| bubble.rest_volume).sum();
            if all > 0.0 {
                let off = held().map(|bubble| (bubble.volume - bubble.rest_volume).abs()).sum::<f64>();
                account.air += off / all;
                account.with_air += 1;
            }
        }
        account.air /= account.with_air.max(1) as f64;
        account
    }

    fn worst(&self) -> f64 {
        self.most.max(-self.least)
    }
}

/// Both ways: particles everywhere first.
fn both<const D: usize>(scene: &Scene<D>) -> [Account; 2] {
    [0, 6].map(|width| Account::of(scene, width))
}

/// The opening scene swelled by 9 % while it glugged: reseeding fills the gaps between bubbles and spray for good, faster
/// than liquid was brought back to its volume.
#[test]
fn a_glugging_bottle_does_not_swell() {
    let scene = "water_cooler_2d";
    let scene = match load(scene, &Overrides { cells: Some(96), ..Overrides::default() }) {
        Ok(AnyScene::TwoD(scene)) => Scene { frames: 130, ..scene },
        other => panic!("{scene} is a scene in two dimensions, not {other:?}"),
    };
    for width in [0, 6] {
        let account = Account::of(&scene, width);
        let Account { most, least, .. } = account;
        println!("band {width}: {:+.2} {:+.2} %", 100.0 * most, 100.0 * least);
        assert!(account.worst() < 0.025, "band {width}: {most:+.4} {least:+.4}");
    }
}

/// Cells along x for a scene of three dimensions, so that all of them together take minutes.
const CELLS_3D: usize = 40;

/// Liquid stays within 2 % of what it should be in all scenes, over their full length, and bubbles are held as well as
/// with particles everywhere. `GLUG_SCENES` picks some by parts of their names.
#[test]
#[ignore = "all scenes over their full length: half an hour"]
fn every_scene_keeps_its_liquid_and_its_air() {
    let wanted = std::env::var("GLUG_SCENES").unwrap_or_default();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.split(',').any(|part| name.contains(part));
    println!("scene: liquid at most, at least, at the end; air off; particles; with all of them first");
    let mut failures = Vec::new();
    let has_liquid = |text: &str| text.contains("liquids:") || text.contains(" sources:");
    for built_in in library().iter().filter(|scene| is_wanted(scene.name) && has_liquid(scene.text)) {
        let is_flat = built_in.name.ends_with("_2d");
        let overrides = Overrides { cells: (!is_flat).then_some(CELLS_3D), ..Overrides::default() };
        let accounts = match load(built_in.name, &overrides).expect("built-in scenes load") {
            AnyScene::TwoD(scene) => both(&scene),
            AnyScene::ThreeD(scene) => both(&scene),
        };
        let shown = accounts.each_ref().map(|account| {
            let Account { most, least, last, air, particles, .. } = account;
            let [most, least, last, air] = [most, least, last, air].map(|share| 100.0 * share);
            format!("{most:+.2} {least:+.2} {last:+.2} %, air {air:.2} %, {particles}")
        });
        println!("{}: {} | {}", built_in.name, shown[0], shown[1]);
        let [full, band] = accounts;
        if band.worst() > full.worst().max(0.02) {
            failures.push(format!("{}: liquid off by {:.4}", built_in.name, band.worst()));
        }
        if band.air > 1.1 * full.air + 0.002 {
            failures.push(format!("{}: air off by {:.4}, not {:.4}", built_in.name, band.air, full.air));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
