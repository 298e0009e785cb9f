//! Joints as scene files write them.

use crate::geometry::{Body, Joint, JointKind, Motor, Solid};
use crate::math::{Real, Vector};

use super::error::SceneError;
use super::read::{Field, Range, Record};
use super::shapes::read_axis;

const NAMES: &[&str] = &["hinge", "slider", "ball", "weld", "spring", "rope"];

/// Reads the list of joints between solids.
pub(super) fn read_joints<const D: usize>(
    record: &Record<'_>,
    solids: &[Solid<D>],
) -> Result<Vec<Joint<D>>, SceneError> {
    let items = record.list_or_empty("joints", "a list of joints, [hinge(…), …]")?;
    items.iter().map(|item| read_joint(item, solids)).collect()
}

fn read_joint<const D: usize>(field: &Field<'_>, solids: &[Solid<D>]) -> Result<Joint<D>, SceneError> {
    let Some(name) = field.name() else {
        return Err(field.reject(format!("a joint, name(…), out of {}", NAMES.join(", "))));
    };
    let known: &[&str] = match name {
        "hinge" => &["body", "to", "at", "axis", "motor"],
        "slider" => &["body", "to", "along", "motor"],
        "ball" => &["body", "to", "at"],
        "weld" => &["body", "to"],
        "spring" => &["body", "to", "at", "to_at", "stiffness", "damping", "length"],
        "rope" => &["body", "to", "at", "to_at", "length"],
        _ => return Err(field.unknown("joint", name, NAMES)),
    };
    let record = field.record(known)?;
    let (body, to) = read_ends(&record, solids)?;
    let held = solids[body].body.as_deref();
    let centre = held.map_or_else(Vector::zeros, Body::position);
    let at = match name {
        "hinge" | "ball" => record.require("at")?.vector(Range::POSITION)?,
        _ => record.vector_or("at", centre, Range::POSITION)?,
    };
    let ends = match (name, to) {
        ("spring" | "rope", Some(other)) => {
            let centre = solids[other].body.as_deref().map(Body::position);
            let to_at = match centre {
                Some(centre) => record.vector_or("to_at", centre, Range::POSITION)?,
                None => record.require("to_at")?.vector(Range::POSITION)?,
            };
            [at, to_at]
        }
        ("spring" | "rope", None) => [at, record.require("to_at")?.vector(Range::POSITION)?],
        _ => [at, at],
    };
    let distance = (ends[0] - ends[1]).norm();
    let kind = match name {
        "hinge" => JointKind::Hinge {
            axis: nalgebra::Vector3::from(read_axis::<D>(&record)?).normalize().into(),
            motor: read_motor(&record, "degrees_per_second", "torque", Real::to_radians)?,
        },
        "slider" => {
            let along: Vector<D> = record.require("along")?.direction()?;
            let motor = read_motor(&record, "speed", "force", |speed| speed)?;
            JointKind::Slider { along: along.normalize(), motor }
        }
        "ball" => JointKind::Ball,
        "weld" => JointKind::Weld,
        "spring" => JointKind::Spring {
            stiffness: record.require("stiffness")?.number(Range::between(0.0, 1e12, " of N/m"))?,
            damping: record.number_or("damping", 0.0, Range::between(0.0, 1e12, " of N s/m"))?,
            length: record.number_or("length", distance, Range::between(0.0, 1e4, " of metres"))?,
        },
        _ => JointKind::Rope {
            length: record.number_or("length", distance, Range::between(0.0, 1e4, " of metres"))?,
        },
    };
    Ok(Joint { body, to, at: ends, kind })
}

/// The two solids by their names.
fn read_ends<const D: usize>(
    record: &Record<'_>,
    solids: &[Solid<D>],
) -> Result<(usize, Option<usize>), SceneError> {
    let names = |only_bodies: bool| -> String {
        let wanted = solids.iter().filter(|solid| !only_bodies || solid.body.is_some());
        let names: Vec<&str> = wanted.map(|solid| solid.name.as_str()).collect();
        if names.is_empty() { "of which there are none".to_owned() } else { names.join(", ") }
    };
    let find = |field: &Field<'_>, only_bodies: bool, what: &str| -> Result<usize, SceneError> {
        let allowed = format!("the name of a {what}: {}", names(only_bodies));
        let name = field.word(&allowed)?;
        let mut named = solids.iter().enumerate().filter(|(_, solid)| solid.name == name);
        match (named.next(), named.next()) {
            (Some((index, solid)), None) if !only_bodies || solid.body.is_some() => Ok(index),
            (Some(_), Some(_)) => Err(field.reject("a name that only one solid has")),
            _ => Err(field.reject(allowed)),
        }
    };
    let body_field = record.require("body")?;
    let body = find(&body_field, true, "solid with `density` or `mass`")?;
    let Some(to_field) = record.get("to") else { return Ok((body, None)) };
    let to = find(&to_field, false, "solid")?;
    if to == body {
        return Err(to_field.reject("another solid than `body`, or left out for the scene itself"));
    }
    Ok((body, Some(to)))
}

fn read_motor(
    record: &Record<'_>,
    speed: &'static str,
    strength: &'static str,
    unit: impl Fn(Real) -> Real,
) -> Result<Option<Motor>, SceneError> {
    let Some(field) = record.get("motor") else { return Ok(None) };
    let motor = field.record(&[speed, strength])?;
    let range = Range::between(-1e6, 1e6, "");
    let speed = unit(motor.require(speed)?.number(range)?);
    let strength = motor.number_or(strength, Real::INFINITY, Range::between(0.0, 1e12, ""))?;
    Ok(Some(Motor { speed, strength }))
}
