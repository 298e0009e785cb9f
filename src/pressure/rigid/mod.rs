//! Rigid bodies among the providers of a projection (Batty, Bertails, Bridson 2007).
//!
//! A body closes shares of faces; what flows out of a cell through them is `Jᵀ v`, with the velocity of its material at the centre
//! of the face. The solve finds the new motion `v = v* + K J q` with the pressures. `K` is the inverse of the mass matrix, less what
//! contacts take away: for rows `N v = target`, `K = M⁻¹ − M⁻¹ Nᵀ (N M⁻¹ Nᵀ)⁺ N M⁻¹`.
//!
//! That `K` is dense. Larger groups, heaps of bodies that lie on each other, go into the solve body by body, with the rows beside
//! them: see `linear::coupling`. There, rows give way a little.
//!
//! Units are those of the pressures: masses over `ρ dx^D`, arms in cells, angular velocities times `dx`.
//!
//! **Archimedes.** Still liquid pushes a body up by the weight of `Σ b` over faces across the vertical, whole layers of cells, and
//! not by that of its volume. What is missing is added to `v*`: for a body in liquid all around the exact difference, else the
//! difference face by face of `b` and the body's share `B` of the box of one cell around the face. Still liquid stays still. Liquid
//! that falls freely lifts nothing: what is added is scaled by how fast the pressure around the body grew downwards in the last
//! step, or before the first, by whether anything holds the liquid up.

mod float;
mod groups;

use nalgebra::{DMatrix, DVector};

use crate::geometry::{Body, BodyShare, Twist, Walls, motions};
use crate::grid::{Face, SIDE};
use crate::linear::TieRow;
use crate::math::{Real, Side, Vector, unflatten};

use super::Problem;
use super::bodies::{BodyFace, BodyProvider, CoupledSystem, Solution, cell_below};
use super::walls::face_centre;
use float::{float, gauge};
use groups::{Tied, group_bodies};

/// A row `N v = target` that motions of bodies obey: a contact that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// Its part of the motions of each body, given by its place among the solids; of one body, or of two.
    pub parts: Vec<(usize, Twist)>,
    /// m/s.
    pub target: Real,
}

/// How a projection left a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RigidMotion {
    /// Its place among the solids.
    pub solid: usize,
    /// Its new velocities, m/s and rad/s.
    pub velocity: Twist,
    /// Impulses of the fluids on it, kg m/s and kg m²/s, with what Archimedes wants of them.
    pub push: Twist,
    /// Share of its volume under liquid.
    pub submerged: Real,
    /// How fast pressure grows downwards around it, over what it does in liquid at rest.
    pub rest: Real,
}

/// The bodies among the solids, for one projection.
pub struct RigidBodies<'a, const D: usize> {
    walls: &'a Walls<D>,
    /// kg per m³ that faces of weight one stand for.
    density: Real,
    bodies: Vec<Member>,
    groups: Vec<Group<'a>>,
}

/// A body, as it goes into a projection and comes out.
struct Member {
    solid: usize,
    response: DMatrix<f64>,
    /// Before the solve: with gravity, other forces, and what Archimedes lacks.
    free: DVector<f64>,
    /// Impulses that Archimedes lacks, kg m/s and kg m²/s.
    lift: DVector<f64>,
    submerged: Real,
    rest: Real,
    /// Cells of liquid beside it, after those below them, and the shares of faces that the body closes.
    gauge: Vec<(usize, usize, f64)>,
    after: DVector<f64>,
    push: DVector<f64>,
}

/// Bodies that rows tie together.
#[derive(Default)]
struct Group<'a> {
    /// Places among the bodies.
    bodies: Vec<usize>,
    rows: Vec<&'a Hold>,
    /// Its number in the system, if any fluid pushes it; the first of one for each body of a large group.
    coupled: Option<usize>,
}

impl Group<'_> {
    /// Whether its bodies go into the solve one by one.
    fn is_large(&self, size: usize) -> bool {
        self.bodies.len() * size > MOST_TOGETHER
    }
}

/// Most motions of a group whose response is found at once.
const MOST_TOGETHER: usize = 36;
/// How much rows of larger groups give way. Contacts repeat each other nearly, as those of two boxes along a face do, and what is
/// left between them must not throw bodies sideways: a hundredth of a degree between normals is that of a contact seen from both sides.
const GIVE: Real = 1e-4;

impl<'a, const D: usize> RigidBodies<'a, D> {
    /// All bodies that are there at a time, in a liquid of that density, with external impulses (kg m/s, kg m²/s) on those that
    /// are named, and rows that tie them.
    pub fn new(
        walls: &'a Walls<D>,
        density: Real,
        time: Real,
        impulses: &[(usize, Twist)],
        holds: &'a [Hold],
    ) -> Self {
        let size = motions(D);
        let bodies: Vec<Member> = walls
            .bodies(time)
            .map(|(solid, body)| {
                let response = body.response();
                let response = DMatrix::from_fn(size, size, |i, j| response[i][j]);
                let mut free = DVector::from_row_slice(&body.state().velocity[..size]);
                for (_, impulse) in impulses.iter().filter(|(of, _)| *of == solid) {
                    free += &response * DVector::from_row_slice(&impulse[..size]);
                }
                let zero = DVector::zeros(size);
                let (lift, after, push) = (zero.clone(), free.clone(), zero);
                let rest = body.state().rest;
                Member { solid, response, free, lift, submerged: 0.0, rest, gauge: Vec::new(), after, push }
            })
            .collect();
        let groups = group_bodies(&bodies, holds);
        RigidBodies { walls, density, bodies, groups }
    }

    /// What became of the bodies.
    pub fn motions(&self) -> impl Iterator<Item = RigidMotion> {
        let twist = |values: &DVector<f64>| -> Twist {
            std::array::from_fn(|motion| if motion < motions(D) { values[motion] } else { 0.0 })
        };
        self.bodies.iter().map(move |body| RigidMotion {
            solid: body.solid,
            velocity: twist(&body.after),
            push: twist(&(&body.push + &body.lift)),
            submerged: body.submerged,
            rest: body.rest,
        })
    }

    /// The impulse of every row, in the order in which they were given, N s.
    pub fn impulses_of_holds(&self, holds: &[Hold]) -> Vec<Real> {
        let mut found = vec![0.0; holds.len()];
        for group in self.groups.iter().filter(|group| !group.rows.is_empty()) {
            if group.is_large(motions(D)) {
                for row in &group.rows {
                    let place = holds.iter().position(|hold| std::ptr::eq(hold, *row));
                    let answer = GIVE * self.along(row, |body, part| part.dot(&(&body.response * part)));
                    let missing = row.target - self.along(row, |body, part| part.dot(&body.after));
                    if let Some(place) = place.filter(|_| answer > 0.0) {
                        found[place] = missing / answer;
                    }
                }
                continue;
            }
            let tied = Tied::new(group, &self.bodies, motions(D));
            let moved = |of: &dyn Fn(&Member) -> DVector<f64>| tied.gather(group, &self.bodies, of);
            let free = moved(&|body| &body.free + &body.response * &body.push);
            let impulses = &tied.inverse * (&tied.targets - &tied.rows * free);
            for (row, impulse) in group.rows.iter().zip(impulses.iter()) {
                if let Some(place) = holds.iter().position(|hold| std::ptr::eq(hold, *row)) {
                    found[place] = *impulse;
                }
            }
        }
        found
    }

    /// The sum of `of(body, part)` over the bodies of a row.
    fn along(&self, row: &Hold, of: impl Fn(&Member, &DVector<f64>) -> f64) -> f64 {
        let parts = row.parts.iter().filter_map(|(solid, part)| {
            let body = self.bodies.iter().find(|body| body.solid == *solid)?;
            Some(of(body, &DVector::from_row_slice(&part[..motions(D)])))
        });
        parts.sum()
    }

    fn body(&self, member: &Member) -> &Body<D> {
        self.walls.solids[member.solid].body.as_deref().expect("members are bodies")
    }
}

impl<const D: usize> BodyProvider<D> for RigidBodies<'_, D> {
    fn add_bodies(&mut self, to: &mut CoupledSystem<'_, D>) {
        let (size, dx) = (motions(D), to.problem.blocks.grid().dx);
        let weight = self.density * dx.powi(D as i32);
        // From velocities to those of the solve.
        let unit = |motion: usize| if motion < D { 1.0 } else { dx };
        let faces = self.faces_of_bodies(to.problem);
        for index in 0..self.bodies.len() {
            let sums = float(self, index, &faces[index], to);
            let member = &mut self.bodies[index];
            let mut impulse = DVector::zeros(size);
            for motion in 0..size {
                impulse[motion] = sums.lift[motion] * weight * unit(motion);
            }
            let gravity = DVector::from_fn(size, |motion, _| match motion {
                axis if axis < D && member.response[(axis, axis)] > 0.0 => to.problem.impulse[axis],
                _ => 0.0,
            });
            member.free += &member.response * &impulse + gravity;
            member.lift = impulse;
            member.submerged = sums.submerged;
            member.rest = sums.rest;
            member.gauge = sums.gauge;
        }
        let mut count = 0;
        let mut rows = Vec::new();
        for index in 0..self.groups.len() {
            if self.groups[index].is_large(size) {
                self.groups[index].coupled = Some(count);
                rows.extend(self.add_one_by_one(index, count, &faces, weight, to));
                count += self.groups[index].bodies.len();
                continue;
            }
            let group = &mut self.groups[index];
            let tied = Tied::new(group, &self.bodies, size);
            let mut start = tied.gather(group, &self.bodies, &|body| body.free.clone());
            let mut response = tied.response.clone();
            if !group.rows.is_empty() {
                start += &tied.answers * (&tied.inverse * (&tied.targets - &tied.rows * &start));
                response = tied.response();
            }
            let all = start.len();
            let scaled = DMatrix::from_fn(all, all, |i, j| {
                response[(i, j)] * weight * unit(i % size) * unit(j % size)
            });
            let velocity: Vec<f64> = (0..all).map(|k| start[k] * unit(k % size)).collect();
            // Each face moves with one body of the group.
            let mut motion = Vec::new();
            let mut places = Vec::new();
            for (place, &body) in group.bodies.iter().enumerate() {
                for (face, own) in &faces[body] {
                    places.push(*face);
                    motion.extend((0..all).map(|k| if k / size == place { own[k % size] } else { 0.0 }));
                }
            }
            group.coupled = None;
            if places.iter().any(|face| touches_unknown(face, to)) {
                to.add_body(&scaled, &velocity, places.into_iter().zip(motion.chunks_exact(all)));
                group.coupled = Some(count);
                count += 1;
            }
            for (place, &body) in group.bodies.iter().enumerate() {
                self.bodies[body].after = start.rows(place * size, size).into_owned();
            }
        }
        if rows.is_empty() {
            return;
        }
        let changes = to.tie(rows);
        for group in self.groups.iter().filter(|group| group.is_large(size)) {
            let changes = changes[group.coupled.unwrap_or(0)..].iter();
            for (&body, change) in group.bodies.iter().zip(changes) {
                let after = self.bodies[body].after.iter_mut().enumerate().zip(change);
                after.for_each(|((motion, after), change)| *after += change / unit(motion));
            }
        }
    }

    fn respond(&mut self, solution: &Solution<'_, D>) {
        let (size, dx) = (motions(D), solution.dx);
        let weight = self.density * dx.powi(D as i32);
        let unit = |motion: usize| if motion < D { 1.0 } else { dx };
        for group in &self.groups {
            let Some(index) = group.coupled else { continue };
            if group.is_large(size) {
                for (number, &body) in (index..).zip(&group.bodies) {
                    let member = &mut self.bodies[body];
                    member.rest = gauge(member, solution);
                    let (impulse, change) = (solution.impulse_on(number), solution.change_of(number));
                    for motion in 0..size {
                        member.after[motion] += change[motion] / unit(motion);
                        member.push[motion] = impulse[motion] * weight * unit(motion);
                    }
                }
                continue;
            }
            let (impulse, change) = (solution.impulse_on(index), solution.change_of(index));
            for (place, &body) in group.bodies.iter().enumerate() {
                let member = &mut self.bodies[body];
                member.rest = gauge(member, solution);
                for motion in 0..size {
                    let k = place * size + motion;
                    member.after[motion] += change[k] / unit(motion);
                    member.push[motion] = impulse[k] * weight * unit(motion);
                }
            }
        }
    }
}

/// Whether there is a pressure on a side of a face.
fn touches_unknown<const D: usize>(face: &BodyFace, to: &CoupledSystem<'_, D>) -> bool {
    let (slot, local, axis) = (face.slot as usize, face.local as usize, usize::from(face.axis));
    let below = cell_below(to.problem.blocks, slot, local, axis);
    [(slot, local), below].into_iter().any(|(slot, local)| to.unknown(slot, local).is_some())
}

/// A face and the velocity across it of each motion of a body, in the units of the solve.
type Moved = (BodyFace, Twist);

impl<const D: usize> RigidBodies<'_, D> {
    /// Adds the bodies of a large group to the system, where the first of them has the number `first`. Returns the rows that tie
    /// them there.
    fn add_one_by_one(
        &mut self,
        index: usize,
        first: usize,
        faces: &[Vec<Moved>],
        weight: f64,
        to: &mut CoupledSystem<'_, D>,
    ) -> Vec<TieRow> {
        let (size, dx) = (motions(D), to.problem.blocks.grid().dx);
        let unit = |motion: usize| if motion < D { 1.0 } else { dx };
        let mut number = vec![usize::MAX; self.walls.solids.len()];
        for (place, &body) in self.groups[index].bodies.iter().enumerate() {
            let member = &mut self.bodies[body];
            number[member.solid] = first + place;
            member.after = member.free.clone();
            let scaled =
                DMatrix::from_fn(size, size, |i, j| member.response[(i, j)] * weight * unit(i) * unit(j));
            let velocity: Vec<f64> = (0..size).map(|k| member.free[k] * unit(k)).collect();
            to.add_body(&scaled, &velocity, faces[body].iter().map(|(face, own)| (*face, &own[..size])));
        }
        let row = |hold: &&Hold| TieRow {
            parts: hold
                .parts
                .iter()
                .filter(|(solid, _)| number[*solid] != usize::MAX)
                .map(|(solid, part)| (number[*solid], (0..size).map(|k| part[k] / unit(k)).collect()))
                .collect(),
            missing: hold.target - self.along(hold, |body, part| part.dot(&body.free)),
            give: GIVE,
        };
        self.groups[index].rows.iter().map(row).collect()
    }

    /// The faces that each body closes.
    fn faces_of_bodies(&self, problem: &Problem<'_, D>) -> Vec<Vec<Moved>> {
        let mut faces: Vec<Vec<Moved>> = self.bodies.iter().map(|_| Vec::new()).collect();
        let mut place = vec![usize::MAX; self.walls.solids.len()];
        self.bodies.iter().enumerate().for_each(|(index, body)| place[body.solid] = index);
        for held in problem.boundary.body_shares() {
            let Some(list) = faces.get_mut(place[held.solid as usize]) else { continue };
            let body = self.body(&self.bodies[place[held.solid as usize]]);
            let &BodyShare { slot, axis, local, share, .. } = held;
            let (axis, cell) = (usize::from(axis), unflatten::<D>(local.into(), SIDE));
            let centre = face_centre(problem.blocks, slot as usize, Face::of(cell, axis, Side::Low));
            let arm = (centre - body.position()) / problem.blocks.grid().dx;
            let direction = Vector::<D>::from_fn(|k, _| if k == axis { 1.0 } else { 0.0 });
            let face = BodyFace { slot, local: local.into(), axis: axis as u8, share };
            list.push((face, Body::motion_at(&arm, &direction)));
        }
        faces
    }
}
