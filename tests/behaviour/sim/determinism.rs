//! The same bits for any number of threads.

use glug::export::write_ply;
use glug::geometry::extract_surface;
use glug::scene::Scene;
use glug::sim::Simulation;
use rayon::ThreadPoolBuilder;

use super::{advance, scene_2d, scene_3d};

/// Everything that a run leaves behind, less what a clock has measured: statistics of every frame, the last mesh, and
/// the last particles.
#[derive(PartialEq)]
struct Traces {
    statistics: String,
    mesh: Vec<u8>,
    particles: Vec<u32>,
}

fn run<const D: usize>(scene: &Scene<D>, frames: usize, threads: usize) -> Traces {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut simulation = Simulation::new(&scene.setup).expect("it starts");
        let mut statistics = String::new();
        for _ in 0..frames {
            let mut report = advance(&mut simulation, 1.0 / scene.fps);
            report.seconds = Default::default();
            report.solve.iter_mut().for_each(|solve| solve.seconds = 0.0);
            statistics += &serde_json::to_string(&report).expect("statistics as text");
            statistics.push('\n');
        }
        let mut mesh = Vec::new();
        write_ply(&extract_surface(simulation.blocks(), simulation.surface()), &mut mesh).expect("a mesh");
        let particles = simulation.particle_positions().iter().chain(simulation.particle_velocities());
        Traces { statistics, mesh, particles: particles.flatten().map(|x| x.to_bits()).collect() }
    })
}

fn threads_do_not_change_a_bit<const D: usize>(scene: &Scene<D>, frames: usize) {
    let one = run(scene, frames, 1);
    assert!(one.mesh.len() > 1000 && one.particles.len() > 1000, "{}: there is something", scene.name);
    for threads in [2, 3] {
        let several = run(scene, frames, threads);
        for (frame, (a, b)) in one.statistics.lines().zip(several.statistics.lines()).enumerate() {
            assert_eq!(a, b, "{}: frame {} with {threads} threads", scene.name, frame + 1);
        }
        assert!(one == several, "{}: meshes or particles differ with {threads} threads", scene.name);
    }
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
