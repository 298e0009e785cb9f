//! Motion scripts as scene files write them.

use crate::geometry::{Interpolation, Keyframes, Motion, Move, Placement};
use crate::math::{Real, Vector};

use super::error::SceneError;
use super::read::{Field, Range, Record};
use super::shapes::read_axis;

const NAMES: &[&str] = &["glide", "spin", "swing", "rock", "keyframes"];

/// Reads a list of moves, or a single one.
pub(super) fn read_motion<const D: usize>(field: &Field<'_>) -> Result<Motion<D>, SceneError> {
    if field.name().is_some() {
        return Ok(Motion::new(vec![read_move(field)?]));
    }
    let moves = field.list("a list of moves, [name(…), …]")?;
    Ok(Motion::new(moves.iter().map(read_move).collect::<Result<_, _>>()?))
}

fn read_move<const D: usize>(field: &Field<'_>) -> Result<Move<D>, SceneError> {
    let Some(name) = field.name() else {
        return Err(field.reject(format!("a move, name(…), out of {}", NAMES.join(", "))));
    };
    match name {
        "glide" => {
            let record = field.record(&["velocity", "from", "until"])?;
            let velocity = record.require("velocity")?.vector(Range::SPEED)?;
            let (from, until) = record.span()?;
            Ok(Move::Glide { velocity, from, until })
        }
        "spin" => {
            let record = field.record(&["degrees_per_second", "axis", "center", "from", "until"])?;
            let rate = record.require("degrees_per_second")?.number(Range::DEGREES)?.to_radians();
            let center = record.require("center")?.vector(Range::POSITION)?;
            let (from, until) = record.span()?;
            Ok(Move::Spin { axis: read_axis::<D>(&record)?, center, rate, from, until })
        }
        "swing" => {
            let record = field.record(&["direction", "amplitude", "frequency", "phase"])?;
            let direction: Vector<D> = record.require("direction")?.direction()?;
            let amplitude = record.require("amplitude")?.number(Range::RADIUS)?;
            let (frequency, phase) = read_wave(&record)?;
            Ok(Move::Swing { amplitude: direction.normalize() * amplitude, frequency, phase })
        }
        "rock" => {
            let record = field.record(&["degrees", "axis", "center", "frequency", "phase"])?;
            let angle = record.require("degrees")?.number(Range::DEGREES)?.to_radians();
            let center = record.require("center")?.vector(Range::POSITION)?;
            let (frequency, phase) = read_wave(&record)?;
            Ok(Move::Rock { axis: read_axis::<D>(&record)?, center, angle, frequency, phase })
        }
        "keyframes" => {
            let record = field.record(&["interpolation", "axis", "center", "keys"])?;
            Ok(Move::Keyframes(read_keyframes(&record)?))
        }
        _ => Err(field.unknown("move", name, NAMES)),
    }
}

fn read_wave(record: &Record<'_>) -> Result<(Real, Real), SceneError> {
    let frequency = record.require("frequency")?.number(Range::FREQUENCY)?;
    Ok((frequency, record.number_or("phase", 0.0, Range::between(0.0, 1.0, ""))?))
}

fn read_keyframes<const D: usize>(record: &Record<'_>) -> Result<Keyframes<D>, SceneError> {
    let interpolation = match record.get("interpolation") {
        None => Interpolation::default(),
        Some(field) => match field.word("smooth or linear")? {
            "smooth" => Interpolation::Smooth,
            "linear" => Interpolation::Linear,
            _ => return Err(field.reject("smooth or linear")),
        },
    };
    let list = record.require("keys")?;
    let entries = list.list("a list of keys, [(time: …, move: …, degrees: …), …]")?;
    if entries.is_empty() {
        return Err(list.reject("a list of at least one key"));
    }
    let mut keys: Vec<(Real, Placement<D>)> = Vec::with_capacity(entries.len());
    for entry in &entries {
        let key = entry.record(&["time", "move", "degrees"])?;
        let time_field = key.require("time")?;
        let time = time_field.number(Range::TIME)?;
        if let Some((before, _)) = keys.last().filter(|(before, _)| *before >= time) {
            return Err(time_field.reject(format!("later than the key before it, at {before} s")));
        }
        let translation = key.vector_or("move", Vector::zeros(), Range::POSITION)?;
        let angle = key.number_or("degrees", 0.0, Range::DEGREES)?.to_radians();
        keys.push((time, Placement { translation, angle }));
    }
    let turns = keys.iter().any(|(_, place)| place.angle != 0.0);
    let center = match record.get("center") {
        None if !turns => Vector::zeros(),
        _ => record.require("center")?.vector(Range::POSITION)?,
    };
    Ok(Keyframes::new(read_axis::<D>(record)?, center, interpolation, &keys))
}
