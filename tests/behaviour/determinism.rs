//! The same bits for any number of threads.

use glug::export::write_ply;
use glug::geometry::extract_surface;
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::Simulation;
use rayon::ThreadPoolBuilder;

use crate::sim::{advance, scene_2d, scene_3d};

/// Everything that a run leaves behind, less what a clock has measured: statistics of every frame, the last mesh, and
/// the last particles.
#[derive(PartialEq)]
struct Traces {
    statistics: String,
    /// The most unknowns of affine tiles in any frame.
    affine_unknowns: usize,
    mesh: Vec<u8>,
    particles: Vec<u32>,
    /// Particles of the last frame that go on.
    alive: usize,
}

fn run<const D: usize>(scene: &Scene<D>, frames: usize, threads: usize) -> Traces {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut simulation = Simulation::new(&scene.setup).expect("it starts");
        let (mut statistics, mut affine_unknowns, mut alive) = (String::new(), 0, 0);
        for _ in 0..frames {
            let mut report = advance(&mut simulation, 1.0 / scene.fps);
            affine_unknowns = affine_unknowns.max(report.unknowns.body);
            alive = report.particles;
            report.seconds = Default::default();
            let solves = report.solve.iter_mut().chain(&mut report.viscosity);
            solves.for_each(|solve| solve.seconds = 0.0);
            statistics += &serde_json::to_string(&report).expect("statistics as text");
            statistics.push('\n');
        }
        let mut mesh = Vec::new();
        write_ply(&extract_surface(simulation.blocks(), simulation.surface()), &mut mesh).expect("a mesh");
        let particles = simulation.particle_positions().iter().chain(simulation.particle_velocities());
        let particles = particles.flatten().map(|x| x.to_bits()).collect();
        Traces { statistics, affine_unknowns, mesh, particles, alive }
    })
}

/// Returns what the run on one thread left behind.
fn threads_do_not_change_a_bit<const D: usize>(scene: &Scene<D>, frames: usize) -> Traces {
    let one = run(scene, frames, 1);
    assert!(one.mesh.len() > 1000 && one.particles.len() > 1000, "{}: there is something", scene.name);
    for threads in [2, 3] {
        let several = run(scene, frames, threads);
        for (frame, (a, b)) in one.statistics.lines().zip(several.statistics.lines()).enumerate() {
            assert_eq!(a, b, "{}: frame {} with {threads} threads", scene.name, frame + 1);
        }
        assert!(one == several, "{}: meshes or particles differ with {threads} threads", scene.name);
    }
    one
}

#[test]
fn threads_do_not_change_a_bit_2d() {
    threads_do_not_change_a_bit(&scene_2d("ball_in_circle_2d"), 60);
}

#[test]
fn threads_do_not_change_a_bit_3d() {
    threads_do_not_change_a_bit(&scene_3d("dam_break", 24), 60);
}

#[test]
fn threads_do_not_change_a_bit_of_two_phases() {
    threads_do_not_change_a_bit(&scene_2d("light_bubble_2d"), 8);
    threads_do_not_change_a_bit(&scene_2d("heavy_bubble_2d"), 8);
    threads_do_not_change_a_bit(&scene_3d("sinking_bubbles", 20), 8);
}

#[test]
fn threads_do_not_change_a_bit_of_the_bubbles() {
    let scene = scene_2d("rising_bubble_2d");
    threads_do_not_change_a_bit(&scene, 30);
    let statistics = run(&scene, 1, 2).statistics;
    assert!(statistics.contains("\"rest_volume\":0.0") && statistics.contains("\"present\""), "{statistics}");
}

/// A built-in scene with other parameters.
fn changed(name: &str, cells: usize, model: &str, set: &[(&str, &str)]) -> AnyScene {
    let set = set.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let overrides = Overrides { cells: Some(cells), model: Some(model.to_owned()), set };
    load(name, &overrides).expect("a built-in scene")
}

/// Runs a scene of either dimension on one, two and three threads.
fn threads_do_not_change_a_bit_of(scene: &AnyScene, frames: usize) -> Traces {
    match scene {
        AnyScene::TwoD(scene) => threads_do_not_change_a_bit(scene, frames),
        AnyScene::ThreeD(scene) => threads_do_not_change_a_bit(scene, frames),
    }
}

/// Particles after a run on one thread.
fn particles_after(scene: &AnyScene, frames: usize) -> usize {
    match scene {
        AnyScene::TwoD(scene) => run(scene, frames, 1).alive,
        AnyScene::ThreeD(scene) => run(scene, frames, 1).alive,
    }
}

/// Scenes with tiles of 8 cells in the deep liquid: name, cells along x, cells in the surface band, frames.
const TILED: [(&str, usize, &str, usize); 2] =
    [("pool_tiles_2d", 128, "4", 10), ("splash_tank_tiles", 48, "3", 4)];

#[test]
fn threads_do_not_change_a_bit_of_thick_liquid() {
    for (name, cells) in [("ball_in_circle_2d", 96), ("dam_break", 24)] {
        let scene = changed(name, cells, "constraint", &[("viscosity", "20")]);
        let traces = threads_do_not_change_a_bit_of(&scene, 6);
        assert!(traces.statistics.contains("\"viscosity\":[{"), "{name}: viscosity acted");
    }
}

#[test]
fn threads_do_not_change_a_bit_of_affine_tiles() {
    for (name, cells, band, frames) in TILED {
        let set = [("tile_size", "8"), ("surface_band", band)];
        let traces = threads_do_not_change_a_bit_of(&changed(name, cells, "affine-tiles", &set), frames);
        assert!(traces.affine_unknowns > 100, "{name}: {} unknowns of tiles", traces.affine_unknowns);
    }
}

#[test]
fn threads_do_not_change_a_bit_of_affine_bubbles() {
    let divided = [("affine_liquid", "true"), ("tile_size", "8"), ("bubble_tile_size", "8")];
    for (name, cells, frames) in [("light_bubble_2d", 96, 6), ("sinking_bubbles", 32, 3)] {
        for set in [&[][..], &divided] {
            let scene = changed(name, cells, "affine-bubbles", set);
            let traces = threads_do_not_change_a_bit_of(&scene, frames);
            assert!(traces.affine_unknowns > 0, "{name} {set:?}: bubbles have affine insides");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit_of_reduced_advection() {
    for (name, cells, band, frames) in TILED {
        let scene = |reduced| {
            // A narrow band leaves the same particles out.
            let set = [
                ("tile_size", "8"),
                ("surface_band", band),
                ("reduced_advection", reduced),
                ("narrow_band", "full"),
            ];
            changed(name, cells, "affine-tiles", &set)
        };
        let fewer = threads_do_not_change_a_bit_of(&scene("true"), frames).alive;
        let all = particles_after(&scene("false"), frames);
        assert!(20 * fewer < 19 * all, "{name}: {fewer} of {all} particles");
    }
}
