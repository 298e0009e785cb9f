//! Shapes as scene files write them.

use std::sync::Arc;

use crate::geometry::{Mesh, OUT_OF_PLANE, Polygon, Shape};
use crate::math::{Real, Vector};

use super::assets::Assets;
use super::error::{Problem, SceneError, one_line};
use super::read::{Field, Range, Record};

const NAMES: &[&str] = &[
    "box",
    "rounded_box",
    "sphere",
    "capsule",
    "cylinder",
    "cone",
    "torus",
    "half_space",
    "polygon",
    "mesh",
    "union",
    "intersection",
    "difference",
    "inverted",
    "translate",
    "rotate",
    "scale",
];

/// Whether a value is written as a shape, `name(…)`.
pub(super) fn is_shape(field: &Field<'_>) -> bool {
    field.name().is_some()
}

/// Reads a shape.
pub(super) fn read_shape<const D: usize>(field: &Field<'_>, assets: &Assets) -> Result<Shape<D>, SceneError> {
    let Some(name) = field.name() else {
        return Err(field.reject(format!("a shape, name(…), out of {}", NAMES.join(", "))));
    };
    let only_in = |dimension: usize| {
        let allowed = format!("a shape for {D}D; {name} needs a {dimension}D domain");
        if D == dimension { Ok(()) } else { Err(field.reject(allowed)) }
    };
    match name {
        "box" => {
            let (min, max) = read_corners(field, &field.record(&["min", "max", "center", "size"])?)?;
            Ok(Shape::Box { min, max })
        }
        "rounded_box" => {
            let record = field.record(&["min", "max", "center", "size", "radius"])?;
            let (min, max): (Vector<D>, Vector<D>) = read_corners(field, &record)?;
            let radius = record.require("radius")?.number(Range::between(
                0.0,
                0.5 * (max - min).min(),
                " of metres",
            ))?;
            Ok(Shape::RoundedBox { min, max, radius })
        }
        "sphere" => {
            let record = field.record(&["center", "radius"])?;
            let center = record.require("center")?.vector(Range::POSITION)?;
            Ok(Shape::Sphere { center, radius: record.require("radius")?.number(Range::LENGTH)? })
        }
        "capsule" => {
            let record = field.record(&["from", "to", "radius"])?;
            let from = record.require("from")?.vector(Range::POSITION)?;
            let to = record.require("to")?.vector(Range::POSITION)?;
            Ok(Shape::Capsule { from, to, radius: record.require("radius")?.number(Range::LENGTH)? })
        }
        "cylinder" => {
            only_in(3)?;
            let record = field.record(&["from", "to", "radius"])?;
            let (from, to) = read_axis_ends(&record)?;
            Ok(Shape::cylinder(from, to, record.require("radius")?.number(Range::LENGTH)?))
        }
        "cone" => {
            only_in(3)?;
            let record = field.record(&["from", "to", "from_radius", "to_radius"])?;
            let (from, to) = read_axis_ends(&record)?;
            let from_radius = record.require("from_radius")?.number(Range::RADIUS)?;
            let to_radius = record.number_or("to_radius", 0.0, Range::RADIUS)?;
            if from_radius.max(to_radius) <= 0.0 {
                return Err(record.require("from_radius")?.reject("above 0 at one end at least"));
            }
            Ok(Shape::cone(from, to, from_radius, to_radius))
        }
        "torus" => {
            only_in(3)?;
            let record = field.record(&["center", "axis", "ring_radius", "tube_radius"])?;
            let center = record.require("center")?.vector(Range::POSITION)?;
            let axis = record.get("axis").map_or(Ok(up()), |axis| axis.direction())?;
            let ring_radius = record.require("ring_radius")?.number(Range::LENGTH)?;
            let tube = record.require("tube_radius")?;
            let tube_radius = tube.number(Range::LENGTH)?;
            if tube_radius > ring_radius {
                return Err(tube.reject(format!("at most the ring_radius, {ring_radius}")));
            }
            Ok(Shape::torus(center, axis, ring_radius, tube_radius))
        }
        "half_space" => {
            let record = field.record(&["point", "normal"])?;
            let point = record.require("point")?.vector(Range::POSITION)?;
            let normal = record.get("normal").map_or(Ok(up()), |normal| normal.direction())?;
            Ok(Shape::half_space(point, normal))
        }
        "polygon" => {
            only_in(2)?;
            read_polygon(&field.record(&["points"])?.require("points")?)
        }
        "mesh" => {
            only_in(3)?;
            read_mesh(&field.record(&["file"])?.require("file")?, assets)
        }
        "union" => Ok(Shape::Union(read_parts(&field.only(PARTS)?, assets)?)),
        "intersection" => Ok(Shape::Intersection(read_parts(&field.only(PARTS)?, assets)?)),
        "difference" => {
            let record = field.record(&["from", "cut"])?;
            let from = read_shape(&record.require("from")?, assets)?;
            Ok(Shape::Difference(Box::new(from), read_parts(&record.require("cut")?, assets)?))
        }
        "inverted" => Ok(read_shape(&field.only("one shape, inverted(shape)")?, assets)?.inverted()),
        "translate" => {
            let record = field.record(&["by", "shape"])?;
            let by = record.require("by")?.vector(Range::POSITION)?;
            Ok(read_shape(&record.require("shape")?, assets)?.translated(by))
        }
        "rotate" => {
            let record = field.record(&["degrees", "axis", "center", "shape"])?;
            let angle = record.require("degrees")?.number(Range::DEGREES)?.to_radians();
            let axis = read_axis::<D>(&record)?;
            let center = record.require("center")?.vector(Range::POSITION)?;
            Ok(read_shape(&record.require("shape")?, assets)?.rotated(axis, angle, center))
        }
        "scale" => {
            let record = field.record(&["factor", "center", "shape"])?;
            let factor = record.require("factor")?.number(Range::between(1e-6, 1e6, ""))?;
            let center = record.require("center")?.vector(Range::POSITION)?;
            Ok(read_shape(&record.require("shape")?, assets)?.scaled(factor, center))
        }
        _ => Err(field.unknown("shape", name, NAMES)),
    }
}

/// What a bare shape may be followed by in `union` and its like.
const PARTS: &str = "a list of at least one shape, ([shape, …])";

fn up<const D: usize>() -> Vector<D> {
    Vector::from_fn(|axis, _| if axis == 1 { 1.0 } else { 0.0 })
}

/// The optional `axis`, which only 3D has.
pub(super) fn read_axis<const D: usize>(record: &Record<'_>) -> Result<[Real; 3], SceneError> {
    match record.get("axis") {
        None => Ok(OUT_OF_PLANE),
        Some(axis) if D == 2 => Err(axis.reject("left out: in 2D everything turns about z")),
        Some(axis) => Ok(axis.direction::<3>()?.into()),
    }
}

/// A box by `min` and `max` or by `center` and `size`.
fn read_corners<const D: usize>(
    field: &Field<'_>,
    record: &Record<'_>,
) -> Result<(Vector<D>, Vector<D>), SceneError> {
    let (corners, middle) = (
        record.get("min").is_some() || record.get("max").is_some(),
        record.get("center").is_some() || record.get("size").is_some(),
    );
    if corners && middle {
        return Err(field.reject("given by min and max, or by center and size, not both"));
    }
    if middle {
        let center: Vector<D> = record.require("center")?.vector(Range::POSITION)?;
        let size: Vector<D> = record.require("size")?.vector(Range::LENGTH)?;
        return Ok((center - size * 0.5, center + size * 0.5));
    }
    let min: Vector<D> = record.require("min")?.vector(Range::POSITION)?;
    let top = record.require("max")?;
    let max: Vector<D> = top.vector(Range::POSITION)?;
    if (0..D).any(|axis| max[axis] <= min[axis]) {
        return Err(top.reject(format!("above min, {}, along every axis", show(&min))));
    }
    Ok((min, max))
}

/// The ends of something that must have a length.
fn read_axis_ends<const D: usize>(record: &Record<'_>) -> Result<(Vector<D>, Vector<D>), SceneError> {
    let from: Vector<D> = record.require("from")?.vector(Range::POSITION)?;
    let end = record.require("to")?;
    let to = end.vector(Range::POSITION)?;
    if (to - from).norm() < 1e-9 { Err(end.reject("another point than `from`")) } else { Ok((from, to)) }
}

fn read_parts<const D: usize>(field: &Field<'_>, assets: &Assets) -> Result<Vec<Shape<D>>, SceneError> {
    let parts = field.list(PARTS)?;
    if parts.is_empty() {
        return Err(field.reject(PARTS));
    }
    parts.iter().map(|part| read_shape(part, assets)).collect()
}

fn read_polygon<const D: usize>(field: &Field<'_>) -> Result<Shape<D>, SceneError> {
    const MOST_POINTS: usize = 1000;
    let corners = field.list("a list of at least 3 points, [(x, y), …]")?;
    if corners.len() > MOST_POINTS {
        return Err(field.reject(format!("at most {MOST_POINTS} points")));
    }
    let mut points = Vec::with_capacity(corners.len());
    for corner in &corners {
        points.push(corner.vector::<2>(Range::POSITION)?.into());
    }
    let polygon = Polygon::new(&points).map_err(|reason| field.fail(reason.into()))?;
    Ok(Shape::Polygon(Arc::new(polygon)))
}

fn read_mesh<const D: usize>(field: &Field<'_>, assets: &Assets) -> Result<Shape<D>, SceneError> {
    let name = field.text()?;
    let path = format!("\"{}\"", one_line(&name));
    let mesh = match assets.read(&name) {
        Ok(text) => Mesh::from_obj(&text).map_err(|reason| Problem::Mesh { path, reason }),
        Err(reason) => Err(Problem::MissingMesh { path, reason: one_line(&reason) }),
    };
    Ok(Shape::Mesh(Arc::new(mesh.map_err(|problem| field.fail(problem))?)))
}

/// A point as messages show it.
pub(super) fn show<const D: usize>(point: &Vector<D>) -> String {
    let rounded = point.iter().map(|c| format!("{}", (c * 1e6).round() / 1e6 + 0.0));
    format!("({})", rounded.collect::<Vec<_>>().join(", "))
}
