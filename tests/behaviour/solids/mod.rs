//! Rigid bodies that liquid and gravity move.

mod contacts;
mod forces;
mod hands;
mod joints;
mod projection;
mod runs;
mod shares;
mod theory;

use glug::geometry::{MOST_MOTIONS, Material, Shape, Solid, Twist};
use glug::math::Vector;
use glug::pressure::{Hold, RigidBodies, RigidMotion};

use crate::tank::Tank;

/// Free to move, without friction, and not bouncing.
pub fn material(mass: f64) -> Material {
    Material { mass, friction: 0.0, restitution: 0.0, fixed: [false; MOST_MOTIONS] }
}

/// A body of that density over the liquid's, which is one.
pub fn body<const D: usize>(shape: Shape<D>, density: f64, velocity: Twist) -> Solid<D> {
    let volume = shape.moments().expect("a finite shape").volume;
    Solid::with_body("body", shape, material(density * volume), velocity).expect("a body")
}

pub fn ball<const D: usize>(center: Vector<D>, radius: f64) -> Shape<D> {
    Shape::Sphere { center, radius }
}

/// A point in the plane, in the middle of a third axis of that length.
pub fn point<const D: usize>(x: f64, y: f64, z: f64) -> Vector<D> {
    Vector::from_fn(|axis, _| [x, y, z][axis])
}

/// Projects with the bodies among the tank's walls, in a step of one second. The bodies keep what they had.
pub fn project<const D: usize>(tank: &mut Tank<D>, holds: &[Hold], tolerance: f64) -> Vec<RigidMotion> {
    let walls = tank.walls.clone();
    let mut rigid = RigidBodies::new(&walls, 1.0, 0.0, &[], holds);
    let solved = tank.project_with(&mut [&mut rigid], tolerance);
    assert!(solved.info.converged && !solved.info.fallback, "{D}D: {:?}", solved.info);
    rigid.motions().collect()
}
