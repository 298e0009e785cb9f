//! `glug bench`: speed and memory on fixed scenes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use super::args::{BenchArguments, SceneArguments};
use super::source;
use super::table::{Table, bytes, grouped};
use super::{Failure, print, thread_count};
use crate::linear::PreconditionerKind;
use crate::runner::{Frame, Outcome, Runner, Watch};
use crate::sim::{FrameReport, FrameTimes, MemoryReport, SolveReport};

/// What is measured: scene, cells along x, frames. The two dam breaks show how the cost grows with size, and the
/// larger one is what memory is budgeted on.
const CASES: [(&str, usize, usize); 4] =
    [("dam_break", 64, 20), ("dam_break", 128, 6), ("splash_tank", 96, 6), ("dam_break_2d", 512, 40)];

/// The frame length of every case, seconds; a hundredth of the tank's scale for the small tank of the experiment.
fn frame_seconds(scene: &str) -> f64 {
    if scene == "dam_break_2d" { 1.0 / 200.0 } else { 1.0 / 30.0 }
}

/// One case, measured.
#[derive(Debug, Default, Serialize)]
struct Measurement {
    scene: &'static str,
    cells_xyz: Vec<usize>,
    frames: usize,
    substeps: usize,
    threads: usize,
    /// Wall seconds over all frames.
    seconds: f64,
    /// Wall seconds per stage, over all frames.
    stages: FrameTimes,
    particles: usize,
    liquid_cells: usize,
    stored_cells: usize,
    /// Substeps times particles, per wall second.
    particles_per_second: f64,
    /// Substeps times liquid cells, per wall second.
    cells_per_second: f64,
    /// The process's most memory during the case; absent where the system does not tell.
    peak_bytes: Option<usize>,
    /// Cells that are liquid or within four cells of it: where anything is computed.
    near_cells: usize,
    grid_bytes_per_near_cell: f64,
    grid_bytes_per_stored_cell: f64,
    bytes_per_particle: f64,
    /// Wall seconds per substep and million liquid cells: what growth is judged by.
    seconds_per_substep_and_million_cells: f64,
    unknowns: usize,
    /// The last projection's system, solved with every preconditioner.
    solvers: Vec<SolveReport>,
}

impl Watch for Measurement {
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome> {
        let FrameReport { substeps, seconds, particles, cells, unknowns, cells_xyz, .. } = frame.report;
        self.cells_xyz.clone_from(cells_xyz);
        self.frames += 1;
        self.substeps += substeps;
        self.stages.add(seconds);
        self.particles = *particles;
        (self.liquid_cells, self.stored_cells) = (cells.liquid, cells.stored);
        self.unknowns = unknowns.pressure + unknowns.bubble + unknowns.body;
        Ok(Outcome::Finished)
    }
}

/// Measures all cases and prints them.
pub fn bench(arguments: &BenchArguments, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    if arguments.scenes {
        return super::bench_scenes::bench_scenes(arguments, stop);
    }
    if let Some(scene) = &arguments.state {
        return print(&super::variants::variants(scene, arguments, stop)?);
    }
    let mut measured = Vec::new();
    for case in CASES {
        measured.push(measure(case, thread_count(arguments.threads), stop)?);
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&measured).expect("plain numbers and names serialise");
        return print(&(text + "\n"));
    }
    let tables: Vec<_> = measured.iter().map(describe).collect();
    print(&tables.join("\n"))
}

fn measure(
    (scene, cells, frames): (&'static str, usize, usize),
    threads: usize,
    stop: &Arc<AtomicBool>,
) -> Result<Measurement, Failure> {
    let asked = SceneArguments {
        scene: scene.to_owned(),
        cells: Some(cells),
        model: None,
        set: Vec::new(),
        threads: Some(threads),
    };
    let loaded = source::load(&asked)?;
    reset_peak();
    let mut runner = Runner::start(threads, Arc::clone(stop), move || source::start(&loaded))?;
    let mut result = Measurement { scene, threads, ..Measurement::default() };
    let started = Instant::now();
    if runner.advance(frames, frame_seconds(scene), &mut result)? == Outcome::Stopped {
        return Err(Failure::Stopped(result.frames));
    }
    result.seconds = started.elapsed().as_secs_f64();
    result.peak_bytes = peak();
    let (memory, solvers) = runner.install(|solver| {
        let grid = solver.grid().expect("the measured scenes are solved on the grid");
        (grid.memory(), PreconditionerKind::ALL.map(|which| grid.solve_again(which)))
    });
    result.solvers = solvers.into_iter().flatten().collect();
    let MemoryReport { grid_bytes, particle_bytes, near_cells, particles, stored_cells } = memory;
    let share = |total: usize, count: usize| total as f64 / count.max(1) as f64;
    result.near_cells = near_cells;
    result.grid_bytes_per_near_cell = share(grid_bytes, near_cells);
    result.grid_bytes_per_stored_cell = share(grid_bytes, stored_cells);
    result.bytes_per_particle = share(particle_bytes, particles);
    result.seconds_per_substep_and_million_cells =
        result.seconds / result.substeps.max(1) as f64 / (result.liquid_cells.max(1) as f64 * 1e-6);
    result.particles_per_second = (result.particles * result.substeps) as f64 / result.seconds;
    result.cells_per_second = (result.liquid_cells * result.substeps) as f64 / result.seconds;
    Ok(result)
}

fn describe(case: &Measurement) -> String {
    let size: Vec<_> = case.cells_xyz.iter().map(usize::to_string).collect();
    let mut text = format!(
        "{} {}: {} frames, {} substeps, {:.2} s on {} threads\n",
        case.scene,
        size.join(" × "),
        case.frames,
        case.substeps,
        case.seconds,
        case.threads
    );
    let total = case.stages.total.max(1e-9);
    let mut stages: Vec<_> = case.stages.stages.iter().collect();
    stages.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut table = Table::with_numbers(&[1, 2, 3]);
    for (stage, seconds) in stages {
        let (what, count) = match stage.grows_with_particles() {
            true => ("particles", case.particles),
            false => ("cells", case.liquid_cells),
        };
        if seconds < 1e-6 {
            continue;
        }
        let rate = (count * case.substeps) as f64 / seconds * 1e-6;
        table.row([
            format!("  {stage}"),
            format!("{seconds:.3} s"),
            format!("{:.0} %", 100.0 * seconds / total),
            format!("{rate:.1} M {what}/s"),
        ]);
    }
    text += &table.to_string();
    let mut table = Table::with_numbers(&[1]);
    table
        .row(["  particles".to_owned(), grouped(case.particles)])
        .row(["  particles/s".to_owned(), grouped(case.particles_per_second as usize)])
        .row(["  liquid cells".to_owned(), grouped(case.liquid_cells)])
        .row(["  liquid cells/s".to_owned(), grouped(case.cells_per_second as usize)])
        .row(["  peak memory".to_owned(), case.peak_bytes.map_or("unknown".to_owned(), |p| bytes(p as f64))])
        .row([
            "  per substep and million liquid cells".to_owned(),
            format!("{:.3} s", case.seconds_per_substep_and_million_cells),
        ])
        .row(["  liquid or near-surface cells".to_owned(), grouped(case.near_cells)])
        .row(["  grid memory per such cell".to_owned(), bytes(case.grid_bytes_per_near_cell)])
        .row(["  grid memory per stored cell".to_owned(), bytes(case.grid_bytes_per_stored_cell)])
        .row(["  memory per particle".to_owned(), bytes(case.bytes_per_particle)])
        .row(["  unknowns".to_owned(), grouped(case.unknowns)]);
    text += &table.to_string();
    let mut table = Table::with_numbers(&[1, 2, 3]);
    for solve in &case.solvers {
        let state = if solve.converged { "" } else { "gave up" };
        table.row([
            format!("  solve, {}", solve.method),
            format!("{} iterations", solve.iterations),
            format!("{:.4} s", solve.seconds),
            format!("{:.1e}", solve.relative_residual),
            state.to_owned(),
        ]);
    }
    text + &table.to_string()
}

/// Forgets the process's memory peak, so that the next case measures its own. Linux only; elsewhere nothing
/// happens.
fn reset_peak() {
    // Refused on some systems: then the peak is that of all cases so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The process's memory peak, bytes.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib * 1024)
}
