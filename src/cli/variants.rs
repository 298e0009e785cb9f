//! `glug bench --state SCENE`: models and preconditioners on one and the same state.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::args::{BenchArguments, SceneArguments};
use super::source;
use super::table::{Table, grouped};
use super::{Failure, thread_count};
use crate::linear::PreconditionerKind;
use crate::runner::{Frame, Outcome, Runner, Solver, SolverError, Watch};
use crate::sim::{Bubbles, FrameReport, Model, Params, Stage, set_param};

/// A way to solve for the pressure: what the table calls it, and what it changes.
type Variant = (&'static str, &'static [(&'static str, &'static str)]);

/// Without air that has mass: tiles against single cells, the air treated as the scene does (see [`air_of`]). Each half
/// starts with what it is compared with.
const LIQUID: [Variant; 9] = [
    ("uniform", &[("model", "uniform")]),
    ("tiles 16", &[("model", "affine-tiles"), ("tile_size", "16"), ("tile_size_deep", "16")]),
    ("tiles 32", &[("model", "affine-tiles"), ("tile_size", "32"), ("tile_size_deep", "32")]),
    (
        "tiles 32, reduced",
        &[
            ("model", "affine-tiles"),
            ("tile_size", "32"),
            ("tile_size_deep", "32"),
            ("reduced_advection", "true"),
        ],
    ),
    ("tiles 16 to 64", &[("model", "affine-tiles"), ("tile_size", "16"), ("tile_size_deep", "64")]),
    ("uniform, diagonal", &[("model", "uniform"), ("preconditioner", "jacobi")]),
    (
        "tiles 16, diagonal",
        &[
            ("model", "affine-tiles"),
            ("tile_size", "16"),
            ("tile_size_deep", "16"),
            ("preconditioner", "jacobi"),
        ],
    ),
    (
        "tiles 32, diagonal",
        &[
            ("model", "affine-tiles"),
            ("tile_size", "32"),
            ("tile_size_deep", "32"),
            ("preconditioner", "jacobi"),
        ],
    ),
    ("two-phase, diagonal", &[("model", "two-phase"), ("preconditioner", "jacobi")]),
];

/// With air that has mass.
const BOTH: [Variant; 7] = [
    ("two-phase", &[("model", "two-phase")]),
    ("affine bubbles", &[("model", "affine-bubbles")]),
    ("affine bubbles, tiles of 16", &[("model", "affine-bubbles"), ("bubble_tile_size", "16")]),
    (
        "both fluids affine",
        &[
            ("model", "affine-bubbles"),
            ("affine_liquid", "true"),
            ("tile_size", "32"),
            ("tile_size_deep", "32"),
        ],
    ),
    ("two-phase, diagonal", &[("model", "two-phase"), ("preconditioner", "jacobi")]),
    ("affine bubbles, diagonal", &[("model", "affine-bubbles"), ("preconditioner", "jacobi")]),
    (
        "both fluids affine, diagonal",
        &[
            ("model", "affine-bubbles"),
            ("affine_liquid", "true"),
            ("tile_size", "32"),
            ("tile_size_deep", "32"),
            ("preconditioner", "jacobi"),
        ],
    ),
];

/// How often all ways are gone through: a machine that is slower for a while is so for all of them. No round begins after
/// so many seconds. The slow references come last, and once.
const ROUNDS: usize = 5;
const ENOUGH_SECONDS: u64 = 120;

/// One variant, measured: seconds per substep.
#[derive(Debug, Serialize)]
struct Measured {
    variant: &'static str,
    unknowns: usize,
    tiles: usize,
    iterations: usize,
    converged: bool,
    /// Layout of tiles, assembly and solve with its set-up.
    projection: f64,
    solve: f64,
    /// The whole substep.
    total: f64,
}

#[derive(Default)]
struct Last(FrameReport);

impl Watch for Last {
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome> {
        self.0 = frame.report.clone();
        Ok(Outcome::Finished)
    }
}

/// Simulates a scene up to a frame, and does the next substep in every way; returns what was measured, as text.
pub fn variants(scene: &str, arguments: &BenchArguments, stop: &Arc<AtomicBool>) -> Result<String, Failure> {
    let threads = thread_count(arguments.threads);
    let asked = SceneArguments {
        scene: scene.to_owned(),
        cells: arguments.cells,
        model: None,
        set: arguments.set.clone(),
        threads: Some(threads),
    };
    let loaded = source::load(&asked)?;
    let (fps, params) = (loaded.fps(), loaded.params().clone());
    let all: &[Variant] = if params.model.has_gas() { &BOTH } else { &LIQUID };
    let is_wanted = |name: &str| arguments.only.iter().any(|text| name.contains(text.as_str()));
    let wanted = all.iter().filter(|(name, _)| arguments.only.is_empty() || is_wanted(name));
    let list: Vec<Variant> = wanted.copied().collect();
    if list.is_empty() {
        let known: Vec<_> = all.iter().map(|(name, _)| format!("`{name}`")).collect();
        return Err(Failure::Input(format!(
            "--only {} is part of no name; the names are {}",
            arguments.only.join(","),
            known.join(", ")
        )));
    }
    let mut runner = Runner::start(threads, Arc::clone(stop), move || source::start(&loaded))?;
    let mut last = Last::default();
    if runner.advance(arguments.frame, 1.0 / fps, &mut last)? == Outcome::Stopped {
        return Err(Failure::Stopped(last.0.frame));
    }
    let seconds = 1.0 / fps / last.0.substeps.max(1) as f64;
    let mut reports: Vec<Vec<FrameReport>> = vec![Vec::new(); list.len()];
    let measured = runner.install(|solver| {
        let measure = |variant: &Variant, reports: &mut Vec<FrameReport>| {
            let changed = |own: &mut Params| apply(variant, &params, own);
            reports.extend(substep(solver.branch(), changed, seconds, stop)?);
            Ok(())
        };
        let (slow, mut fast): (Vec<_>, Vec<_>) =
            list.iter().zip(&mut reports).partition(|(variant, _)| is_slow(variant));
        let clock = std::time::Instant::now();
        for round in 0..ROUNDS {
            if round > 0 && clock.elapsed().as_secs() > ENOUGH_SECONDS {
                break;
            }
            fast.iter_mut().try_for_each(|(variant, reports)| measure(variant, reports))?;
        }
        slow.into_iter().try_for_each(|(variant, reports)| measure(variant, reports))
    });
    measured.map_err(|error: SolverError| Failure::Work(error.to_string()))?;
    let measured: Vec<Measured> =
        list.iter().zip(&reports).map(|((name, _), reports)| sum_up(name, reports)).collect();
    if arguments.json {
        let text = serde_json::to_string_pretty(&measured).expect("plain numbers and names serialise");
        return Ok(text + "\n");
    }
    Ok(format!(
        "{} {}, after frame {}: one substep, {threads} threads\n{}",
        scene,
        last.0.cells_xyz.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
        arguments.frame,
        describe(&measured)
    ))
}

/// Whether a way is a reference that takes long.
fn is_slow(variant: &Variant) -> bool {
    let mut own = Params::default();
    apply(variant, &Params::default(), &mut own);
    own.preconditioner != PreconditionerKind::default()
}

/// How a scene without air that has mass treats its air. Tiles must do the same as single cells: the shared pressure of a
/// tank's air makes another system, with a larger right-hand side, and so with a looser tolerance.
fn air_of(scene: &Params) -> Bubbles {
    match scene.model {
        Model::FreeSurface => Bubbles::FreeSurface,
        Model::AffineTiles => scene.bubbles,
        _ => Bubbles::Constraint,
    }
}

/// Sets the parameters to what a way wants.
fn apply((_, changes): &Variant, scene: &Params, own: &mut Params) {
    let air = air_of(scene);
    own.bubbles = air;
    for (parameter, value) in *changes {
        // Without tiles and without mass, air is what the scene makes of it.
        let value = if *value == "uniform" { air.name() } else { value };
        set_param(own, parameter, value).expect("a value that the table knows");
    }
    // The references are given all the iterations they want.
    own.max_iterations = 100_000;
}

/// A substep, and before it two that only warm up: memory is there after them, liquid in tiles has lost the particles that it
/// needs no more, and both velocities that particles are moved with come from this way. Slow references go without.
fn substep(
    mut solver: Box<dyn Solver>,
    change: impl Fn(&mut Params),
    seconds: f64,
    stop: &AtomicBool,
) -> Result<Option<FrameReport>, SolverError> {
    change(solver.params_mut());
    if solver.params().preconditioner == PreconditionerKind::Multigrid {
        for _ in 0..2 {
            solver.advance_frame(seconds, stop, &mut |_| ())?;
        }
    }
    solver.advance_frame(seconds, stop, &mut |_| ())
}

fn sum_up(variant: &'static str, reports: &[FrameReport]) -> Measured {
    let median = |stages: &[Stage]| {
        let per_substep = |report: &FrameReport| {
            let seconds = stages.iter().map(|&stage| report.seconds.stages.of(stage));
            seconds.sum::<f64>() / report.substeps.max(1) as f64
        };
        let mut found: Vec<f64> = reports.iter().map(per_substep).collect();
        found.sort_by(f64::total_cmp);
        found.get(found.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let solves = || reports.iter().flat_map(|report| &report.solve);
    Measured {
        variant,
        unknowns: reports.last().map_or(0, |report| report.unknowns.pressure + report.unknowns.bubble),
        tiles: reports.last().map_or(0, |report| report.tiles.count),
        iterations: solves().map(|solve| solve.iterations).max().unwrap_or(0),
        converged: solves().all(|solve| solve.converged),
        projection: median(&[Stage::Tiles, Stage::Assemble, Stage::Solve]),
        solve: median(&[Stage::Solve]),
        // The frame's total has its statistics as well.
        total: median(&Stage::ALL),
    }
}

fn describe(measured: &[Measured]) -> String {
    let mut table = Table::with_numbers(&[1, 2, 3, 4, 5, 6, 7, 8]);
    table.row(["  model", "unknowns", "tiles", "iterations", "solve", "", "projection", "", "substep", ""]);
    let mut reference = &measured[0];
    for (index, this) in measured.iter().enumerate() {
        let is_diagonal = this.variant.ends_with("diagonal");
        if index > 0 && is_diagonal && !measured[index - 1].variant.ends_with("diagonal") {
            reference = this;
        }
        let faster = |of: fn(&Measured) -> f64| format!("{:.2}x", of(reference) / of(this));
        let note = if this.converged { String::new() } else { "gave up".to_owned() };
        table.row([
            format!("  {}", this.variant),
            grouped(this.unknowns),
            grouped(this.tiles),
            this.iterations.to_string(),
            format!("{:.1} ms", 1e3 * this.solve),
            faster(|m| m.solve),
            format!("{:.1} ms", 1e3 * this.projection),
            faster(|m| m.projection),
            format!("{:.1} ms", 1e3 * this.total),
            faster(|m| m.total),
            note,
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios mean something only if both sides solve the same problem.
    #[test]
    fn all_ways_treat_the_air_as_the_scene_does() {
        let scene = |model, bubbles| Params { model, bubbles, ..Params::default() };
        let cases = [
            (scene(Model::FreeSurface, Bubbles::Constraint), Bubbles::FreeSurface),
            (scene(Model::Constraint, Bubbles::FreeSurface), Bubbles::Constraint),
            (scene(Model::AffineTiles, Bubbles::FreeSurface), Bubbles::FreeSurface),
            (scene(Model::AffineTiles, Bubbles::Constraint), Bubbles::Constraint),
        ];
        for (scene, air) in &cases {
            for variant in LIQUID.iter().filter(|(name, _)| !name.contains("two-phase")) {
                let mut own = scene.clone();
                apply(variant, scene, &mut own);
                assert_eq!(air_of(&own), *air, "{} of {}", variant.0, scene.model.name());
                assert_eq!(own.model == Model::AffineTiles, variant.0.starts_with("tiles"), "{}", variant.0);
            }
        }
    }
}
