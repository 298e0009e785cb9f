//! `glug bench --scenes`: whether this machine keeps up with the clock, scene by scene.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use super::args::BenchArguments;
use super::progress::Progress;
use super::table::{Table, grouped};
use super::{FRAMES, Failure, print, source, thread_count};
use crate::runner::{Pace, Run, RunError, SolverError};
use crate::scene::{AnyScene, Overrides, opening_scene};
use crate::sim::{FrameTimes, Model, Params, SolverKind, Stage};
use crate::snapshot::{Scenery, Wanted};

/// A scene is measured for this long, unless its frames run out first.
const SECONDS: f64 = 5.0;

/// One scene, measured. The names of its fields are those of the JSON.
#[derive(Debug, Default, Serialize)]
struct Measurement {
    scene: String,
    dimension: usize,
    model: &'static str,
    cells_xyz: Vec<usize>,
    threads: usize,
    /// Frames that were measured, and how many there are per simulated second.
    frames: usize,
    fps: f64,
    substeps: usize,
    simulated_seconds: f64,
    /// Wall seconds over all frames.
    seconds: f64,
    /// Simulated seconds per wall second.
    real_time_factor: f64,
    substeps_per_frame: f64,
    /// Wall seconds: `total` and one entry per stage.
    seconds_per_substep: FrameTimes,
    /// At the last frame.
    particles: usize,
    liquid_cells: usize,
    unknowns: usize,
    picture: Picture,
    /// Two models at once on the same threads, as the window compares them; `null` in 3D.
    comparison: Option<Comparison>,
}

/// What the last frame's snapshot cost, wall seconds.
#[derive(Debug, Default, Serialize)]
struct Picture {
    /// While the simulation waited.
    pause_seconds: f64,
    /// Beside it.
    draw_seconds: f64,
}

/// Two models at once.
#[derive(Debug, Serialize)]
struct Comparison {
    models: [&'static str; 2],
    /// Threads of each.
    threads: usize,
    frames: usize,
    seconds: f64,
    real_time_factor: f64,
}

/// When a measurement ends.
#[derive(Clone, Copy)]
struct Bound {
    frames: usize,
    seconds: f64,
}

/// Measures the scenes and prints them.
pub fn bench_scenes(arguments: &BenchArguments, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let threads = thread_count(arguments.threads);
    let is_wanted =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part));
    let names: Vec<_> = source::names().filter(|name| is_wanted(name)).collect();
    if names.is_empty() {
        let known = source::names().collect::<Vec<_>>().join(", ");
        return Err(Failure::Input(format!(
            "--only {}: no scene has that in its name; scenes are {known}",
            arguments.only.join(",")
        )));
    }
    let overrides = Overrides { cells: arguments.cells, model: None, set: source::changes(&arguments.set)? };
    let scenes: Vec<_> =
        names.iter().map(|name| source::load_named(name, &overrides)).collect::<Result<_, _>>()?;
    let mut measured = Vec::new();
    for (place, scene) in scenes.iter().enumerate() {
        let bound = Bound {
            frames: arguments.frames.unwrap_or(scene.frames()),
            seconds: if arguments.frames.is_some() { f64::INFINITY } else { SECONDS },
        };
        let title = format!("{}/{} {}", place + 1, scenes.len(), scene.name());
        let bar = Progress::new(&title, bound.frames, false);
        let result = measure(scene, threads, bound, stop, &bar);
        let compared = match result {
            Ok(_) if scene.dimension() == 2 => compare(scene, threads, bound, stop).map(Some),
            _ => Ok(None),
        };
        bar.finish();
        let mut result = result.map_err(|error| named(error, scene))?;
        result.comparison = compared.map_err(|error| named(error, scene))?;
        measured.push(result);
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&measured).expect("plain numbers and names serialise");
        return print(&(text + "\n"));
    }
    print(&describe(&measured, threads))
}

fn named(failure: Failure, scene: &AnyScene) -> Failure {
    match failure {
        Failure::Work(reason) => Failure::Work(format!("{}: {reason}", scene.name())),
        other => other,
    }
}

fn pool(threads: usize) -> Result<ThreadPool, Failure> {
    Ok(ThreadPoolBuilder::new().num_threads(threads).build().map_err(RunError::from)?)
}

/// Starts a scene with one of the models.
fn begin(scene: &AnyScene, model: Model) -> Result<Run, SolverError> {
    let params = Params { model, ..scene.params().clone() };
    Run::new(scene, Arc::new(Scenery::of(scene)), params, 1)
}

fn measure(
    scene: &AnyScene,
    threads: usize,
    bound: Bound,
    stop: &AtomicBool,
    bar: &Progress,
) -> Result<Measurement, Failure> {
    let model = scene.params().model;
    let mut result = Measurement {
        scene: scene.name().to_owned(),
        dimension: scene.dimension(),
        model: model.name(),
        threads,
        fps: scene.fps(),
        ..Measurement::default()
    };
    let mut times = FrameTimes::default();
    let done = pool(threads)?.install(|| {
        let mut run = begin(scene, model)?;
        let start = Instant::now();
        while result.frames < bound.frames && (result.frames == 0 || result.seconds < bound.seconds) {
            if stop.load(Ordering::Relaxed) || !run.advance(stop, &mut |_| ())? {
                return Ok(false);
            }
            result.seconds = start.elapsed().as_secs_f64();
            result.frames += 1;
            result.substeps += run.report().substeps;
            times.add(&run.report().seconds);
            FRAMES.store(result.frames, Ordering::Relaxed);
            bar.tick();
        }
        let report = run.report();
        result.cells_xyz.clone_from(&report.cells_xyz);
        result.particles = report.particles;
        result.liquid_cells = report.cells.liquid;
        result.unknowns = report.unknowns.pressure + report.unknowns.bubble + report.unknowns.body;
        // The first one also makes what all of them share.
        run.snapshot(Wanted::default(), 0.0);
        let snapshot = run.snapshot(Wanted::default(), 0.0);
        result.picture =
            Picture { pause_seconds: snapshot.pause_seconds, draw_seconds: snapshot.draw_seconds };
        Ok(true)
    });
    if !done.map_err(|error: SolverError| RunError::from(error))? {
        return Err(Failure::Stopped(result.frames));
    }
    let substeps = result.substeps.max(1) as f64;
    result.simulated_seconds = result.frames as f64 / result.fps;
    result.real_time_factor = result.simulated_seconds / result.seconds.max(1e-9);
    result.substeps_per_frame = result.substeps as f64 / result.frames.max(1) as f64;
    result.seconds_per_substep.total = times.total / substeps;
    for (stage, seconds) in times.stages.iter() {
        result.seconds_per_substep.stages.add(stage, seconds / substeps);
    }
    Ok(result)
}

/// The models that the window compares in a scene.
fn compared_models(scene: &AnyScene) -> [Model; 2] {
    let own = scene.params().model;
    let mut first = SolverKind::Grid.models();
    match (first.next(), first.next()) {
        (Some(one), Some(two)) if scene.name() == opening_scene() => [one, two],
        _ => [own, own.next()],
    }
}

/// Both models at once, frame by frame on one clock, sharing the threads as in the window.
fn compare(scene: &AnyScene, threads: usize, bound: Bound, stop: &AtomicBool) -> Result<Comparison, Failure> {
    let models = compared_models(scene);
    let share = (threads / models.len()).max(1);
    let pace = if threads < models.len() { Pace::taking_turns() } else { Pace::default() };
    let barrier = Barrier::new(models.len());
    // The frame after which all of them end.
    let last = AtomicUsize::new(bound.frames.saturating_sub(1));
    let pools = [pool(share)?, pool(share)?];
    let outcomes = std::thread::scope(|scope| {
        let members: Vec<_> = models
            .into_iter()
            .zip(&pools)
            .map(|(model, pool)| {
                let member = Member { barrier: &barrier, last: &last, pace: &pace, stop, bound };
                scope.spawn(move || pool.install(|| member.run(begin(scene, model))))
            })
            .collect();
        members.into_iter().map(|member| member.join()).collect::<Vec<_>>()
    });
    let mut wall: f64 = 0.0;
    for outcome in outcomes {
        let seconds = outcome.map_err(|_| Failure::Work("it stumbled over a bug".to_owned()))?;
        wall = wall.max(seconds.map_err(RunError::from)?);
    }
    let frames = last.load(Ordering::Relaxed) + 1;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Stopped(frames));
    }
    Ok(Comparison {
        models: models.map(Model::name),
        threads: share,
        frames,
        seconds: wall,
        real_time_factor: frames as f64 / scene.fps() / wall.max(1e-9),
    })
}

/// One of several simulations that wait for each other after every frame.
struct Member<'a> {
    barrier: &'a Barrier,
    last: &'a AtomicUsize,
    pace: &'a Pace,
    stop: &'a AtomicBool,
    bound: Bound,
}

impl Member<'_> {
    /// Goes on until one of the group says that it is the last frame; wall seconds.
    fn run(&self, run: Result<Run, SolverError>) -> Result<f64, SolverError> {
        self.barrier.wait();
        let start = Instant::now();
        let mut run = run.map_err(|error| self.give_up(0, error));
        for frame in 0.. {
            if let Ok(simulation) = &mut run {
                let turn = self.pace.turn();
                // The others would wait for ever.
                let done = catch_unwind(AssertUnwindSafe(|| simulation.advance(self.stop, &mut |_| ())));
                let done =
                    done.unwrap_or_else(|_| Err(SolverError::Refused("it stumbled over a bug".to_owned())));
                drop(turn);
                if let Err(error) = done {
                    run = Err(self.give_up(frame, error));
                }
            }
            let over =
                start.elapsed() >= Duration::try_from_secs_f64(self.bound.seconds).unwrap_or(Duration::MAX);
            if over || self.stop.load(Ordering::Relaxed) {
                self.last.fetch_min(frame, Ordering::Relaxed);
            }
            // Whatever is said before the barrier is heard behind it; what is said later is about later frames.
            self.barrier.wait();
            if frame >= self.last.load(Ordering::Relaxed) {
                break;
            }
        }
        run.map(|_| start.elapsed().as_secs_f64())
    }

    fn give_up(&self, frame: usize, error: SolverError) -> SolverError {
        self.last.fetch_min(frame, Ordering::Relaxed);
        error
    }
}

fn describe(measured: &[Measurement], threads: usize) -> String {
    let mut table = Table::with_numbers(&[3, 4, 5, 6, 7, 8, 9, 10]);
    table.row([
        "SCENE",
        "MODEL",
        "CELLS",
        "FRAMES",
        "REAL TIME",
        "COMPARED",
        "SUBSTEP",
        "PER FRAME",
        "PARTICLES",
        "UNKNOWNS",
        "PICTURE",
    ]);
    for scene in measured {
        let Picture { pause_seconds, draw_seconds } = scene.picture;
        table.row([
            scene.scene.clone(),
            scene.model.to_owned(),
            scene.cells_xyz.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
            scene.frames.to_string(),
            factor(scene.real_time_factor),
            scene.comparison.as_ref().map_or(String::new(), |both| factor(both.real_time_factor)),
            format!("{:.1} ms", 1e3 * scene.seconds_per_substep.total),
            format!("{:.1}", scene.substeps_per_frame),
            grouped(scene.particles),
            grouped(scene.unknowns),
            format!("{:.1} + {:.1} ms", 1e3 * pause_seconds, 1e3 * draw_seconds),
        ]);
    }
    // Stages that take no time anywhere are left out.
    let shown: Vec<_> = Stage::ALL
        .into_iter()
        .filter(|stage| measured.iter().any(|scene| scene.seconds_per_substep.stages.of(*stage) >= 5e-6))
        .collect();
    let mut stages = Table::with_numbers(&(1..=shown.len() + 1).collect::<Vec<_>>());
    let heads = shown.iter().map(|stage| stage.name().to_owned());
    stages.row(["ms PER SUBSTEP".to_owned(), "total".to_owned()].into_iter().chain(heads));
    for scene in measured {
        let times = &scene.seconds_per_substep;
        let parts = shown.iter().map(|stage| times.stages.of(*stage));
        let numbers = [times.total].into_iter().chain(parts).map(|seconds| format!("{:.2}", 1e3 * seconds));
        stages.row([scene.scene.clone()].into_iter().chain(numbers));
    }
    format!(
        "Simulated seconds per wall second on {threads} threads (1 is real time), alone and with two models side by side; \
         a picture's cost: the simulation waits + beside it.\n\n{table}\n{stages}"
    )
}

fn factor(factor: f64) -> String {
    if factor < 10.0 { format!("{factor:.2}") } else { format!("{factor:.0}") }
}
