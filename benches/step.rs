//! A frame of built-in scenes: as a whole, stage by stage, and from a reset to the first picture.
//!
//! `make bench` runs all of it; `make bench ONLY=solve` what has that word in its name. `-- --save-baseline NAME` and
//! `-- --baseline NAME` compare two states of the code on one machine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use glug::runner::{Command, Pace, Worker};
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::{FrameReport, Simulation, Stage};
use glug::snapshot::Snapshot;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Scene and cells along x: untiled and tiled liquid, air with mass and without, two sizes each.
const SCENES: [(&str, [usize; 2]); 5] = [
    ("dam_break_2d", [128, 256]),
    ("dam_break", [32, 64]),
    ("rising_bubbles", [32, 48]),
    ("splash_tank_tiles", [64, 96]),
    ("sinking_bubbles", [32, 48]),
];
const THREADS: [usize; 2] = [1, 2];
/// Frames before the one that is measured: by then the liquid moves.
const WARM_UP: usize = 4;

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

fn advance<const D: usize>(simulation: &mut Simulation<D>, fps: f64) -> FrameReport {
    let report = simulation.advance_frame(1.0 / fps, &AtomicBool::new(false)).expect("it goes on");
    report.expect("nobody asked it to stop")
}

/// Measures the frame after the first few: its wall time, and the share of each stage.
fn measure<const D: usize>(criterion: &mut Criterion, scene: &Scene<D>, threads: usize) {
    let pool = pool(threads);
    let (start, frame) = pool.install(|| {
        let mut simulation = Simulation::new(&scene.setup).expect("it starts");
        (0..WARM_UP).for_each(|_| drop(advance(&mut simulation, scene.fps)));
        let frame = advance(&mut simulation.branch(), scene.fps);
        (simulation, frame)
    });
    let name = format!("{}/{}", scene.name, scene.setup.grid.cells[0]);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements((frame.cells.liquid * frame.substeps) as u64));
    let mut bench = |name: &str, seconds: &dyn Fn(&FrameReport) -> f64| {
        group.bench_function(BenchmarkId::new(name, format!("{threads} threads")), |bencher| {
            bencher.iter_custom(|count| {
                let frame = || pool.install(|| advance(&mut start.branch(), scene.fps));
                (0..count).map(|_| Duration::from_secs_f64(seconds(&frame()))).sum()
            });
        });
    };
    bench("frame", &|frame| frame.seconds.total);
    for stage in Stage::ALL {
        bench(stage.name(), &|frame| frame.seconds.stages.of(stage));
    }
    group.finish();
}

fn frames(criterion: &mut Criterion) {
    for (name, sizes) in SCENES {
        for cells in sizes {
            let overrides = Overrides { cells: Some(cells), ..Overrides::default() };
            for threads in THREADS {
                match load(name, &overrides).expect("a built-in scene") {
                    AnyScene::TwoD(scene) => measure(criterion, &scene, threads),
                    AnyScene::ThreeD(scene) => measure(criterion, &scene, threads),
                }
            }
        }
    }
}

/// Waits for a snapshot.
fn snapshot(worker: &Worker, wanted: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
    loop {
        match worker.newest().filter(|snapshot| wanted(snapshot)) {
            Some(snapshot) => return snapshot,
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// From R in the window to the first moment of the new run.
fn resets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reset");
    for name in ["water_cooler_2d", "dam_break", "splash_tank", "faucet"] {
        let worker = Worker::start(2, &Arc::new(Pace::default())).expect("a thread");
        worker.send(Command::Load { scene: name.to_owned(), overrides: Overrides::default() });
        worker.send(Command::Play);
        snapshot(&worker, |snapshot| snapshot.report.frame >= 2);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let time = || {
                    let before = snapshot(&worker, |_| true).run;
                    let start = Instant::now();
                    worker.send(Command::Reset);
                    // The first shows how the run will start; the next one is that start.
                    let shown = snapshot(&worker, |snapshot| snapshot.run > before).run;
                    snapshot(&worker, |snapshot| snapshot.run > shown);
                    start.elapsed()
                };
                (0..count).map(|_| time()).sum()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = frames, resets
}
criterion_main!(benches);
