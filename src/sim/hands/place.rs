//! Bodies that are put into a running simulation: their shapes, and a place where they fit.

use serde::{Deserialize, Serialize};

use crate::geometry::{MOST_MOTIONS, Material, PosedSolid, Shape, Solid, TouchPoint, Walls};
use crate::grid::Grid;
use crate::math::{Real, Vector};
use crate::sim::contacts::{KEPT, world_points};

use super::{EditError, point};

/// The shape of a body that is put in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// A ball.
    #[default]
    Ball,
    /// A cube.
    Box,
    /// A rod with round ends, lying.
    Capsule,
    /// A glass with its mouth down.
    Cup,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 4] = [Form::Ball, Form::Box, Form::Capsule, Form::Cup];

    /// How bodies of that shape are called; a glass is seen through.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Ball => "ball",
            Form::Box => "box",
            Form::Capsule => "capsule",
            Form::Cup => "glass cup",
        }
    }

    /// The shape, that long, on cells `dx` wide.
    fn shape<const D: usize>(self, size: Real, centre: Vector<D>, dx: Real) -> Shape<D> {
        let along = |axis: usize, length: Real| {
            Vector::<D>::from_fn(|k, _| if k == axis { 0.5 * length } else { 0.0 })
        };
        let upright = |width: Real, low: Real, high: Real| match D {
            2 => Shape::Box {
                min: centre + along(1, 2.0 * low) - along(0, width),
                max: centre + along(1, 2.0 * high) + along(0, width),
            },
            _ => Shape::cylinder(centre + along(1, 2.0 * low), centre + along(1, 2.0 * high), 0.5 * width),
        };
        match self {
            Form::Ball => Shape::Sphere { center: centre, radius: 0.5 * size },
            Form::Box => {
                let half = Vector::repeat(0.5 * size);
                Shape::Box { min: centre - half, max: centre + half }
            }
            Form::Capsule => {
                let (radius, reach) = (0.22 * size, along(0, 0.56 * size));
                Shape::Capsule { from: centre - reach, to: centre + reach, radius }
            }
            Form::Cup => {
                // Liquid does not leak through walls of a cell and a half.
                let wall = (0.1 * size).max(1.5 * dx).min(0.25 * size);
                let outer = upright(0.85 * size, -0.5 * size, 0.5 * size);
                let inner = upright(0.85 * size - 2.0 * wall, -size, 0.5 * size - wall);
                Shape::Difference(Box::new(outer), vec![inner])
            }
        }
    }
}

/// A body to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewBody {
    /// Its shape.
    pub form: Form,
    /// Its longest side, metres.
    pub size: Real,
    /// kg/m³.
    pub density: Real,
    /// Where its middle should be, metres; zero beyond the last axis.
    pub position: [Real; 3],
    /// m/s.
    pub velocity: [Real; 3],
}

/// Least and most of [`NewBody::density`], kg/m³.
pub const DENSITIES: [Real; 2] = [1.0, 2e4];
/// Least of [`NewBody::size`], in cells.
pub const LEAST_CELLS: Real = 4.0;
/// How often a body is moved out of something.
const ROUNDS: usize = 24;

impl NewBody {
    /// The body at its place, if its numbers are right.
    pub(super) fn solid<const D: usize>(
        &self,
        grid: &Grid<D>,
        walls: &Walls<D>,
    ) -> Result<Solid<D>, EditError> {
        let narrowest = walls.size.iter().fold(Real::INFINITY, |least, &side| least.min(side));
        EditError::number("the size", self.size, [LEAST_CELLS * grid.dx, 0.9 * narrowest])?;
        EditError::number("the density", self.density, DENSITIES)?;
        EditError::place("the place", &self.position)?;
        self.velocity.iter().try_for_each(|&v| EditError::number("the speed", v, [-100.0, 100.0]))?;
        for axis in 0..D {
            EditError::number("the place", self.position[axis], [0.0, walls.size[axis]])?;
        }
        let shape = self.form.shape::<D>(self.size, point(&self.position), grid.dx);
        let volume = shape.moments().map_or(0.0, |moments| moments.volume);
        let material = Material {
            mass: self.density * volume,
            friction: 0.3,
            restitution: 0.0,
            fixed: [false; MOST_MOTIONS],
        };
        let mut velocity = [0.0; MOST_MOTIONS];
        velocity[..D].copy_from_slice(&self.velocity[..D]);
        let is_alike = |solid: &&Solid<D>| solid.name.starts_with(self.form.name());
        let number = walls.solids.iter().filter(is_alike).count() + 1;
        let name = format!("{} {number}", self.form.name());
        let solid = Solid::with_body(name, shape, material, velocity);
        Ok(solid.expect("these shapes are of finite size"))
    }

    /// The way by which a body has to be moved to be in nothing else, no longer than a box around it reaches.
    pub(super) fn find_room<const D: usize>(
        &self,
        solid: &Solid<D>,
        walls: &Walls<D>,
        dx: Real,
        time: Real,
    ) -> Result<Vector<D>, EditError> {
        let reach = solid.body.as_ref().map_or(0.0, |body| body.radius);
        let longest_way = reach * (D as Real).sqrt();
        let room = Room::around(solid, walls, reach, dx, time);
        let mut shift = Vector::zeros();
        let mut what = String::new();
        for _ in 0..ROUNDS {
            let Some(overlap) = room.deepest(&shift) else {
                let is_inside =
                    (0..D).all(|k| (0.0..=walls.size[k]).contains(&(self.position[k] + shift[k])));
                if is_inside {
                    return Ok(shift);
                }
                break;
            };
            shift += overlap.out * (overlap.depth + 1e-3 * dx);
            what = overlap.what.to_owned();
            if shift.norm() > longest_way {
                break;
            }
        }
        Err(EditError::NoRoom { name: self.form.name().to_owned(), what })
    }
}

/// What may be in the way of a body.
struct Room<'a, const D: usize> {
    walls: &'a Walls<D>,
    /// The body as it would be put in, and its points.
    body: PosedSolid<'a, D>,
    points: Vec<TouchPoint<D>>,
    others: Vec<(&'a str, PosedSolid<'a, D>, Vec<TouchPoint<D>>)>,
    dx: Real,
}

/// How deep a body would be in something.
struct Overlap<'a, const D: usize> {
    depth: Real,
    /// The shortest way out.
    out: Vector<D>,
    what: &'a str,
}

impl<'a, const D: usize> Room<'a, D> {
    fn around(solid: &'a Solid<D>, walls: &'a Walls<D>, reach: Real, dx: Real, time: Real) -> Self {
        let centre = solid.body.as_ref().map_or_else(Vector::zeros, |body| body.position());
        let is_near = |other: &&Solid<D>| {
            other.is_present(time)
                && other.may_reach(&centre, 2.0 * reach + dx)
                && other.distance(&centre, time) < 2.0 * reach + dx
        };
        let others = walls.solids.iter().filter(is_near).map(|other| {
            let points = world_points(&other.shape.touch_points(), other, time);
            (other.name.as_str(), other.at(time), points)
        });
        Room { walls, body: solid.at(time), points: solid.shape.touch_points(), others: others.collect(), dx }
    }

    /// The deepest overlap of the body, moved by a way; none if there is none.
    fn deepest(&self, shift: &Vector<D>) -> Option<Overlap<'a, D>> {
        let (kept, step) = (KEPT * self.dx, 0.01 * self.dx);
        let mut deepest: Option<Overlap<'a, D>> = None;
        let mut note = |depth: Real, what: &'a str, out: &dyn Fn() -> Vector<D>| {
            if depth > deepest.as_ref().map_or(0.0, |overlap| overlap.depth) {
                deepest = Some(Overlap { depth, out: out(), what });
            }
        };
        for point in &self.points {
            let (x, radius) = (point.at + shift, point.radius + kept);
            for axis in 0..D {
                let sides = [x[axis], self.walls.size[axis] - x[axis]];
                for (side, way) in
                    [1.0, -1.0].into_iter().enumerate().filter(|(side, _)| !self.walls.open[axis][*side])
                {
                    let out = || Vector::from_fn(|k, _| if k == axis { way } else { 0.0 });
                    note(radius - sides[side], "a side of the tank", &out);
                }
            }
            for &(name, ref other, _) in &self.others {
                note(radius - other.distance(&x), name, &|| other.normal(&x, step));
            }
        }
        for &(name, _, ref points) in &self.others {
            for point in points {
                let x = point.at - shift;
                note(point.radius + kept - self.body.distance(&x), name, &|| -self.body.normal(&x, step));
            }
        }
        deepest
    }
}
