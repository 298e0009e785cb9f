//! Keeping particles out of bodies.

use rayon::prelude::*;

use crate::geometry::{Body, PosedSolid, Walls};
use crate::grid::{Blocks, DisjointMut, SIDE};
use crate::math::{Real, Vector};

use super::advect::{MOST_CELLS, SKIN};
use super::{CellRanges, Particles};

/// Pushes particles out of bodies by these' own distance, to the last one, and takes away the velocity that drove them in. Comes after
/// [`super::collide`], which knows bodies as well as cells show them; `ranges` is still that of the last sort.
pub fn leave_bodies<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    time: Real,
) {
    let dx = blocks.grid().dx;
    let bodies: Vec<_> = walls.bodies(time).map(|(solid, body)| (&walls.solids[solid], body)).collect();
    // In no block's range yet.
    born_leave_bodies(particles, ranges, blocks, walls, time);
    let position = DisjointMut::new(&mut particles.position);
    let velocity = DisjointMut::new(&mut particles.velocity);
    // As far from the middle of their block as particles may have gone.
    let reach = (0.5 * SIDE as Real * (D as Real).sqrt() + MOST_CELLS + 1.0) * dx;
    blocks.slots().as_slice().par_iter().for_each(|&slot| {
        let (slot, position, velocity) = (slot as usize, &position, &velocity);
        let range = ranges.of_block(slot);
        if range.is_empty() {
            return;
        }
        let first = blocks.first_cell(slot);
        // SAFETY: blocks have disjoint ranges of particles.
        let (position, velocity) = unsafe { (position.range(range.clone()), velocity.range(range)) };
        let middle = Vector::<D>::from_fn(|k, _| (first[k] as Real + 0.5 * SIDE as Real) * dx);
        let near: Vec<_> = bodies
            .iter()
            .filter(|(solid, _)| solid.may_reach(&middle, reach))
            .map(|(solid, body)| Obstacle { posed: solid.at(time), body })
            .filter(|obstacle| obstacle.posed.distance(&middle) <= reach)
            .collect();
        if near.is_empty() {
            return;
        }
        for (position, velocity) in position.iter_mut().zip(velocity) {
            leave_all(&near, dx, position, velocity);
        }
    });
}

/// Like [`leave_bodies`], for the particles that were born since the last sort: cells show the corners of a body rounded.
pub fn born_leave_bodies<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    time: Real,
) {
    let born = ranges.sorted_count(blocks)..particles.len();
    let obstacle = |(solid, body): (usize, _)| Obstacle { posed: walls.solids[solid].at(time), body };
    let bodies: Vec<_> = walls.bodies(time).map(obstacle).collect();
    let newborn = particles.position[born.clone()].iter_mut().zip(&mut particles.velocity[born]);
    let dx = blocks.grid().dx;
    newborn.for_each(|(position, velocity)| leave_all(&bodies, dx, position, velocity));
}

/// A body as particles meet it.
struct Obstacle<'a, const D: usize> {
    posed: PosedSolid<'a, D>,
    body: &'a Body<D>,
}

impl<const D: usize> Obstacle<'_, D> {
    /// Whether a point may be that close to it, or in it.
    fn may_reach(&self, x: &Vector<D>, distance: Real) -> bool {
        (self.body.position() - x).norm_squared() <= (self.body.radius + distance).powi(2)
    }
}

/// Moves a particle out of all bodies around it: one that is pushed out of a body may end up in the next. Where two leave no room
/// between them, it goes to where they part, and is lost if that is far.
fn leave_all<const D: usize>(
    bodies: &[Obstacle<'_, D>],
    dx: Real,
    position: &mut [f32; D],
    velocity: &mut [f32; D],
) {
    const ROUNDS: usize = 4;
    const WAY: Real = 0.25;
    for round in 0..2 * ROUNDS {
        if !Particles::is_alive(position) || !push_out_of_all(bodies, dx, position, velocity) {
            return;
        }
        if round >= ROUNDS {
            let x = Vector::<D>::from_fn(|k, _| Real::from(position[k]) * dx);
            let near = 2.0 * Real::from(SKIN) * dx;
            let touching = bodies
                .iter()
                .filter(|body| body.may_reach(&x, near))
                .map(|body| &body.posed)
                .filter(|posed| posed.distance(&x) < near);
            let apart: Vector<D> = touching.map(|body| body.normal(&x, 0.01 * dx)).sum();
            let way = apart.try_normalize(1e-6).unwrap_or_else(Vector::zeros) * WAY;
            *position = std::array::from_fn(|k| position[k] + way[k] as f32);
        }
    }
    if push_out_of_all(bodies, dx, position, velocity) {
        Particles::kill(position);
    }
}

/// Moves a particle out of each of some bodies in turn. Returns whether it was in any.
fn push_out_of_all<const D: usize>(
    bodies: &[Obstacle<'_, D>],
    dx: Real,
    position: &mut [f32; D],
    velocity: &mut [f32; D],
) -> bool {
    let mut was_in_any = false;
    for body in bodies {
        let x = Vector::<D>::from_fn(|k, _| Real::from(position[k]) * dx);
        if body.may_reach(&x, Real::from(SKIN) * dx) {
            was_in_any |= leave(&body.posed, dx, position, velocity);
        }
    }
    was_in_any
}

/// Moves a particle out of a body that it is in. Returns whether it was.
fn leave<const D: usize>(
    body: &PosedSolid<'_, D>,
    dx: Real,
    position: &mut [f32; D],
    velocity: &mut [f32; D],
) -> bool {
    let mut x = Vector::<D>::from_fn(|k, _| Real::from(position[k]) * dx);
    // Rounding to single precision must not bring it back in.
    let skin = Real::from(SKIN) * dx;
    let mut distance = body.distance(&x);
    if distance >= 0.5 * skin {
        return false;
    }
    for attempt in 0..4 {
        let normal = body.normal(&x, 0.01 * dx);
        if attempt == 0 {
            let wall = body.velocity(&x);
            let into: Real = (0..D).map(|k| (Real::from(velocity[k]) - wall[k]) * normal[k]).sum();
            (0..D).for_each(|k| velocity[k] -= (into.min(0.0) * normal[k]) as f32);
        }
        x += normal * (skin - distance);
        distance = body.distance(&x);
        if distance >= 0.5 * skin {
            break;
        }
    }
    *position = std::array::from_fn(|k| (x[k] / dx) as f32);
    true
}
