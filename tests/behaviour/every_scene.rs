//! One frame of every built-in scene in every model that can carry it: finite, converged by multigrid, inside the domain.

use glug::scene::{AnyScene, Overrides, Scene, library, load};
use glug::sim::{Model, Simulation};
use serde_json::Value;

use crate::sim::advance;

/// The path of the first number that is none: JSON has no other way to write it than `null`.
fn missing_number(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Null => Some(path.to_owned()),
        Value::Array(entries) => entries
            .iter()
            .enumerate()
            .find_map(|(index, entry)| missing_number(entry, &format!("{path}[{index}]"))),
        Value::Object(fields) => {
            fields.iter().find_map(|(name, field)| missing_number(field, &format!("{path}.{name}")))
        }
        _ => None,
    }
}

fn one_frame<const D: usize>(scene: &Scene<D>) -> Result<(), String> {
    let mut simulation = Simulation::new(&scene.setup).map_err(|error| error.to_string())?;
    let report = advance(&mut simulation, 1.0 / scene.fps);
    let statistics = serde_json::to_value(&report).map_err(|error| error.to_string())?;
    if let Some(path) = missing_number(&statistics, "report") {
        return Err(format!("{path} is not a number"));
    }
    if let Some(solve) = report.solve.iter().find(|solve| !solve.converged || solve.method != "multigrid") {
        return Err(format!("{solve:?}"));
    }
    if !report.warnings.is_empty() {
        return Err(format!("{:?}", report.warnings));
    }
    let is_empty = report.particles == 0 && report.smoke.as_ref().is_none_or(|smoke| smoke.mass == 0.0);
    if report.solve.is_empty() || report.liquid.volume.is_nan() || is_empty {
        return Err(format!("nothing happened: {report:?}"));
    }
    let cells = scene.setup.grid.cells;
    let inside = |x: &[f32; D]| (0..D).all(|axis| x[axis] >= 0.0 && x[axis] <= cells[axis] as f32);
    // Particles about to vanish have no place.
    let mut places = simulation.particle_positions().iter().filter(|x| !x[0].is_nan());
    if let Some(x) = places.find(|x| !inside(x)) {
        return Err(format!("a particle at {x:?} of {cells:?} cells"));
    }
    match simulation.particle_velocities().iter().find(|u| !u.iter().all(|u| u.is_finite())) {
        Some(u) => Err(format!("a particle moves by {u:?}")),
        None => Ok(()),
    }
}

#[test]
fn every_scene_takes_a_step_in_every_model() {
    let mut failures = Vec::new();
    for built_in in library() {
        for model in Model::ALL {
            let cells = if built_in.name.ends_with("_2d") { 64 } else { 24 };
            let overrides = Overrides {
                cells: Some(cells),
                model: Some(model.name().to_owned()),
                ..Overrides::default()
            };
            let done = match load(built_in.name, &overrides) {
                Ok(AnyScene::TwoD(scene)) => one_frame(&scene),
                Ok(AnyScene::ThreeD(scene)) => one_frame(&scene),
                // Smoke is only for models that can carry it.
                Err(error) if built_in.text.contains("smoke:") && !model.has_gas() => {
                    assert!(error.to_string().contains("air weighs nothing"), "{error}");
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            };
            failures
                .extend(done.err().map(|reason| format!("{}, {}: {reason}", built_in.name, model.name())));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}
