//! Bodies in a box of fluid, pushed by it and pushing back.
//!
//! No flow through a body's surface means that the stream function of fluid and panels together is that of the rigid motion
//! along it, up to a constant: with `S` of [`super::panels`],
//!
//! ```text
//! Σ_j S_ij γ_j + C = ψ_rigid(x_i) − ψ_fluid(x_i),   Σ_j L_j γ_j = 0
//! ```
//!
//! This is solvable for every closed outline, while the same condition on normal velocities leaves zig-zags of strengths
//! unseen. Solved for each of the three motions of each body (`γ_α`), and for the fluid alone (`γ_f`), it gives what a
//! body's motion costs in kinetic energy of the fluid, and so the velocities that minimise the energy of all (`FVF`):
//!
//! ```text
//! (m + A) U' = m U + F dt + J + l
//! A_αβ = ρ Σ L (ψ_α γ_β − ν_α ψ_β)        l_α = −ρ Σ L (ψ_α γ_f + ν_α ψ_fluid)
//! ```
//!
//! `A` is the added mass. The terms with `ν`, the flux of the harmonic function that is `ψ_α` on the outline, take out the
//! fluid that the sheet moves inside of the body. `J` is what advection pushed the displaced fluid by, as if it were there:
//! the change of that fluid's momentum. At the end the flow of the panels is projected onto the modes, `r += Σ γ L ψ(x)`,
//! since the fluid would not know of the body otherwise.

use std::ops::Range;
use std::sync::Arc;

use nalgebra::Rotation2;

use super::contacts::{Contacts, Response};
use super::elimination::Elimination;
use super::fluid::Fluid;
use super::outline::Outline;
use super::panels::{Panel, Sources, Walls};
use super::stream::StreamPoints;
use crate::math::{Real, Vector};

/// Along x, along y, and counter-clockwise: m/s and rad/s, or what belongs to these.
pub type Motions = [Real; 3];

/// Box widths per second that a body is led with at most.
const LEAD: Real = 2.0;

/// Who decides how a body moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Lead {
    /// Forces.
    #[default]
    Free,
    /// Nobody: it stays.
    Fixed,
    /// A hand that holds its centre and wants it there.
    Towards([Real; 2]),
}

/// What fluid does to bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// Bodies and fluid find their velocities together.
    #[default]
    Variational,
    /// The dynamic pressure on panels is a force (`EMRFS`).
    DynamicPressure,
    /// Nothing but buoyancy; bodies push the fluid all the same.
    None,
}

/// A body.
#[derive(Clone, Debug)]
pub struct Body {
    /// Its panels.
    pub outline: Arc<Outline>,
    /// kg/m³.
    pub density: Real,
    /// Largest tangential force of a contact over the normal one.
    pub friction: Real,
    /// Share of the speed of an impact with which it bounces back.
    pub restitution: Real,
    /// Who decides how it moves.
    pub lead: Lead,
    /// Centre of mass, m; see [`Body::put`].
    pub position: Vector<2>,
    /// Radians.
    pub angle: Real,
    /// Of its centre, and about it.
    pub velocity: Motions,
    /// Impulse on it in the last step but for that of gravity, N s and N m s.
    pub impulse: Motions,
    /// Momentum per density of the modes' flow in its place at the end of the last step.
    pub(super) carried: Option<Motions>,
}

impl Body {
    /// A body at rest.
    pub fn new(outline: Arc<Outline>, density: Real, position: Vector<2>) -> Self {
        Body {
            outline,
            density,
            friction: 0.3,
            restitution: 0.0,
            lead: Lead::Free,
            position,
            angle: 0.0,
            velocity: [0.0; 3],
            impulse: [0.0; 3],
            carried: None,
        }
    }

    /// Puts it somewhere else: what fluid it displaced before does not count there.
    pub fn put(&mut self, position: Vector<2>, angle: Real) {
        (self.position, self.angle, self.carried) = (position, angle, None);
    }

    /// A point of the body's own coordinates in the box.
    pub fn to_world(&self, x: Vector<2>) -> Vector<2> {
        self.position + Rotation2::new(self.angle) * x
    }

    /// The velocity of its point that is at a place, m/s.
    pub fn velocity_at(&self, at: Vector<2>) -> Vector<2> {
        let (arm, [x, y, spin]) = (at - self.position, self.velocity);
        Vector::from([x - spin * arm[1], y + spin * arm[0]])
    }

    /// Mass along each motion, kg and kg m².
    pub fn masses(&self) -> Motions {
        let mass = self.density * self.outline.area;
        [mass, mass, self.density * self.outline.second_moment]
    }

    /// Half a panel: how near to something else a body gets.
    pub(super) fn gap_kept(&self) -> Real {
        0.5 * self.outline.panels.iter().map(|panel| panel.length).fold(0.0, Real::max)
    }

    /// The distance of a point from the core, negative inside, and the direction away from it.
    pub(super) fn off_core(&self, at: Vector<2>) -> (Real, Vector<2>) {
        let own = Rotation2::new(-self.angle) * (at - self.position);
        let core = &self.outline.core;
        let (mut nearest, mut away) = (Real::INFINITY, Vector::from([1.0, 0.0]));
        let mut inside = false;
        for (i, &start) in core.iter().enumerate() {
            let along = core[(i + 1) % core.len()] - start;
            let arm = own - start;
            let share = arm.dot(&along) / along.norm_squared().max(Real::MIN_POSITIVE);
            let off = arm - along * share.clamp(0.0, 1.0);
            let distance = off.norm();
            // A ray towards +x crosses a side that spans the point's height to the right of it.
            if (arm[1] >= 0.0) != (arm[1] >= along[1]) && (along.perp(&arm) > 0.0) == (along[1] > 0.0) {
                inside = !inside;
            }
            if distance < nearest {
                nearest = distance;
                away = match distance > 0.0 {
                    true => off / distance,
                    false => away,
                };
            }
        }
        let sign = if inside { -1.0 } else { 1.0 };
        (sign * nearest, Rotation2::new(self.angle) * away * sign)
    }

    fn momentum(&self, velocity: Motions) -> Motions {
        let masses = self.masses();
        std::array::from_fn(|motion| masses[motion] * velocity[motion])
    }

    /// Stream functions of its three motions at a point.
    fn rigid(&self, at: Vector<2>) -> Motions {
        let arm = at - self.position;
        [arm[1], -arm[0], -0.5 * arm.norm_squared()]
    }
}

/// What bodies and fluid do to each other.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct TankParams {
    /// Density of the fluid, kg/m³.
    pub density: Real,
    /// m/s².
    pub gravity: [Real; 2],
    /// How bodies feel the fluid.
    pub coupling: Coupling,
    /// Share of the panels' flow that the modes learn of, 0 to 1.
    pub feedback: Real,
}

impl Default for TankParams {
    fn default() -> Self {
        TankParams { density: 1000.0, gravity: [0.0, -9.81], coupling: Coupling::Variational, feedback: 1.0 }
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TankStep {
    /// Steps of the fluid alone.
    pub fluid_steps: usize,
    /// Contacts.
    pub contacts: usize,
    /// Whether panels could be given strengths; not, if bodies coincide.
    pub solved: bool,
}

/// A box of fluid with bodies in it.
#[derive(Clone, Debug)]
pub struct Tank {
    /// The fluid.
    pub fluid: Fluid<2>,
    /// The bodies.
    pub bodies: Vec<Body>,
    /// How they act on each other.
    pub params: TankParams,
    walls: Walls,
    /// Strengths of all panels, body by body, in the last step.
    strengths: Vec<Real>,
    scratch: Scratch,
}

#[derive(Clone, Debug, Default)]
struct Scratch {
    sources: Sources,
    /// The panels of each body.
    ranges: Vec<Range<usize>>,
    points: StreamPoints,
    /// Amplitudes before the feedback.
    pushed: Vec<Real>,
    /// Of the modes, at all panels, then at all points inside of bodies.
    stream: Vec<Real>,
    system: Elimination,
    coupled: Elimination,
    velocities: Vec<Real>,
    response: Vec<Real>,
    momenta: Vec<Motions>,
    forces: Vec<Motions>,
    circulations: Vec<Real>,
    contacts: Contacts,
}

impl Tank {
    /// A fluid without bodies.
    pub fn new(fluid: Fluid<2>, params: TankParams) -> Self {
        let walls = Walls::new(fluid.space.basis().size());
        Tank { fluid, bodies: Vec::new(), params, walls, strengths: Vec::new(), scratch: Scratch::default() }
    }

    /// Panels of all bodies where they were in the last step, with their strengths.
    pub fn panels(&self) -> impl Iterator<Item = (&Panel, Real)> {
        self.scratch.sources.panels.iter().zip(self.strengths.iter().copied())
    }

    /// Amplitudes of the last step before the modes learned of the panels: with [`Tank::panels`], all of the flow.
    pub fn pushed(&self) -> &[Real] {
        if self.strengths.is_empty() { self.fluid.amplitudes() } else { &self.scratch.pushed }
    }

    /// The velocity that the panels of the last step add to that of the modes, m/s.
    pub fn panel_velocity(&self, at: Vector<2>) -> Vector<2> {
        self.walls.velocity(at, &self.scratch.sources, &self.strengths)
    }

    /// The stream function that the panels of the last step add to that of the modes, m²/s.
    pub fn panel_stream(&self, at: Vector<2>) -> Real {
        let mut row = vec![0.0; self.strengths.len()];
        self.walls.influence(at, &self.scratch.sources, &mut row);
        row.iter().zip(&self.strengths).map(|(influence, strength)| influence * strength).sum()
    }

    /// Goes forward by `dt` seconds, more than 0: first the fluid, then bodies and fluid together.
    pub fn step(&mut self, dt: Real) -> TankStep {
        assert!(dt > 0.0 && dt.is_finite(), "a step takes time: {dt} s");
        let size = self.fluid.space.basis().size();
        self.bodies.iter_mut().for_each(|body| body.stay_inside(size));
        if self.bodies.iter().any(|body| body.carried.is_none()) {
            self.place();
            for body in 0..self.bodies.len() {
                let carried = self.displaced(body);
                self.bodies[body].carried.get_or_insert(carried);
            }
        }
        let mut report = TankStep { fluid_steps: self.fluid.advance(dt), solved: true, ..Default::default() };
        self.strengths.clear();
        if self.bodies.is_empty() {
            self.scratch.sources.panels.clear();
            return report;
        }
        self.place();
        report.solved = self.solve_panels() && self.find_velocities(dt);
        if report.solved {
            let Scratch { contacts, velocities, response, .. } = &mut self.scratch;
            let response = Response { values: response, size: velocities.len() };
            report.contacts = contacts.resolve(&self.bodies, size, velocities, &response, dt);
            self.feed_back();
        } else {
            self.scratch.velocities.clear();
            self.scratch.velocities.extend(self.bodies.iter().flat_map(|body| body.velocity));
        }
        self.move_bodies(dt);
        report
    }

    /// Puts panels and points where the bodies are, and finds the stream function of the modes there.
    fn place(&mut self) {
        let Scratch { sources, ranges, points, stream, .. } = &mut self.scratch;
        sources.panels.clear();
        ranges.clear();
        for body in &self.bodies {
            let start = sources.panels.len();
            let turn = Rotation2::new(body.angle);
            sources.panels.extend(body.outline.panels.iter().map(|panel| Panel {
                centre: body.position + turn * panel.centre,
                tangent: turn * panel.tangent,
                length: panel.length,
            }));
            ranges.push(start..sources.panels.len());
        }
        self.walls.place(sources);
        let centres = sources.panels.iter().map(|panel| panel.centre);
        let inside =
            self.bodies.iter().flat_map(|body| body.outline.inside.iter().map(|(x, _)| body.to_world(*x)));
        points.place(self.fluid.space.basis(), centres.chain(inside));
        points.stream(self.fluid.amplitudes(), stream);
    }

    /// Momentum per density of the modes' flow in the place of a body.
    fn displaced(&self, body: usize) -> Motions {
        let Scratch { sources, ranges, stream, .. } = &self.scratch;
        let mut momentum = [0.0; 3];
        for i in ranges[body].clone() {
            let (panel, normal) = (&sources.panels[i], sources.panels[i].normal());
            momentum[0] += panel.length * stream[i] * normal[1];
            momentum[1] -= panel.length * stream[i] * normal[0];
        }
        let before: usize = self.bodies[..body].iter().map(|body| body.outline.inside.len()).sum();
        let values = &stream[sources.panels.len() + before..];
        let inside = &self.bodies[body].outline.inside;
        momentum[2] = inside.iter().zip(values).map(|((_, weight), value)| weight * value).sum();
        momentum
    }

    /// Strengths for every motion of every body, and for the fluid.
    fn solve_panels(&mut self) -> bool {
        let Scratch { sources, ranges, stream, system, .. } = &mut self.scratch;
        let (panels, bodies) = (sources.panels.len(), self.bodies.len());
        system.clear(panels + bodies, 3 * bodies + 1);
        for (number, (body, range)) in self.bodies.iter().zip(&*ranges).enumerate() {
            for i in range.clone() {
                let (panel, row) = (sources.panels[i], system.row_mut(i));
                self.walls.influence(panel.centre, sources, row);
                row[panels + number] = 1.0;
                let sides = &mut row[panels + bodies..];
                sides[3 * number..][..3].copy_from_slice(&body.rigid(panel.centre));
                sides[3 * bodies] = -stream[i];
            }
            let row = system.row_mut(panels + number);
            range.clone().for_each(|i| row[i] = sources.panels[i].length);
        }
        system.solve()
    }

    /// The added mass of all bodies where they are: a row and a column for each motion of each body, kg and so on. Rows of
    /// bodies that are led are those of the identity.
    pub fn added_mass(&mut self) -> Vec<Vec<Real>> {
        self.place();
        if !self.solve_panels() {
            return Vec::new();
        }
        self.assemble_motions(0.0);
        let count = 3 * self.bodies.len();
        let row = |own: usize| {
            let body = &self.bodies[own / 3];
            let mass = if body.lead == Lead::Free { body.masses()[own % 3] } else { 0.0 };
            let mut row = self.scratch.coupled.row(own)[..count].to_vec();
            row[own] -= mass;
            row
        };
        (0..count).map(row).collect()
    }

    /// The velocities that bodies get, without contacts, and how they answer to impulses; false if there are none.
    fn find_velocities(&mut self, dt: Real) -> bool {
        self.assemble_motions(dt);
        let Scratch { coupled, velocities, response, .. } = &mut self.scratch;
        let count = 3 * self.bodies.len();
        velocities.clear();
        response.clear();
        let solved = coupled.solve();
        velocities.extend(coupled.solution(count));
        for column in 0..count {
            response.extend(coupled.solution(column));
        }
        // Bodies that lie in each other may have no strengths that make sense.
        solved && velocities.iter().chain(&*response).all(|value| value.is_finite())
    }

    /// The system of all motions, with an impulse on each and the momentum of all as right-hand sides.
    fn assemble_motions(&mut self, dt: Real) {
        let mut momenta = std::mem::take(&mut self.scratch.momenta);
        let mut forces = std::mem::take(&mut self.scratch.forces);
        momenta.clear();
        forces.clear();
        for body in 0..self.bodies.len() {
            momenta.push(self.displaced(body));
            forces.push(match self.params.coupling {
                Coupling::DynamicPressure => self.dynamic_pressure(body),
                Coupling::Variational | Coupling::None => [0.0; 3],
            });
        }
        let Scratch { sources, ranges, stream, system, coupled, .. } = &mut self.scratch;
        let (panels, count) = (sources.panels.len(), 3 * self.bodies.len());
        let rho = self.params.density;
        let together = self.params.coupling == Coupling::Variational;
        let layers = panels + self.bodies.len();
        coupled.clear(count, count + 1);
        for (number, (body, range)) in self.bodies.iter().zip(&*ranges).enumerate() {
            let (masses, momentum) = (body.masses(), body.momentum(body.velocity));
            let carried = body.carried.unwrap_or_default();
            for motion in 0..3 {
                let own = 3 * number + motion;
                let row = coupled.row_mut(own);
                if let Some(velocity) = body.led(dt, self.fluid.space.basis().size()) {
                    (row[own], row[2 * count]) = (1.0, velocity[motion]);
                    continue;
                }
                row[own] = masses[motion];
                row[count + own] = 1.0;
                let weight = (masses[0] - rho * body.outline.area)
                    * self.params.gravity.get(motion).copied().unwrap_or(0.0);
                let mut side = momentum[motion] + dt * (weight + forces[number][motion]);
                if together {
                    side += rho * (momenta[number][motion] - carried[motion]);
                    for i in range.clone() {
                        let panel = &sources.panels[i];
                        let normal = panel.normal();
                        let flux = [normal[1], -normal[0], body.outline.spin[i - range.start]][motion];
                        let rigid = body.rigid(panel.centre);
                        let (rigid_weight, flux) =
                            (rho * panel.length * rigid[motion], rho * panel.length * flux);
                        let sides = &system.row(i)[layers..];
                        for (value, layer) in row[..count].iter_mut().zip(sides) {
                            *value += rigid_weight * layer;
                        }
                        for (value, rigid) in row[3 * number..][..3].iter_mut().zip(rigid) {
                            *value -= flux * rigid;
                        }
                        side -= rigid_weight * sides[count] + flux * stream[i];
                    }
                }
                row[2 * count] = side;
            }
        }
        symmetrise(coupled, count, &self.bodies);
        (self.scratch.momenta, self.scratch.forces) = (momenta, forces);
    }

    /// The force of the dynamic pressure on a body's panels: the flow of the modes relative to the body presses on it from
    /// outside.
    fn dynamic_pressure(&self, number: usize) -> Motions {
        let (body, mut force) = (&self.bodies[number], [0.0; 3]);
        for i in self.scratch.ranges[number].clone() {
            let panel = &self.scratch.sources.panels[i];
            let arm = panel.centre - body.position;
            let relative = self.fluid.velocity_at(panel.centre) - body.velocity_at(panel.centre);
            let speed_squared = relative.norm_squared();
            let push = panel.normal() * (-0.5 * self.params.density * panel.length * speed_squared);
            force[0] += push[0];
            force[1] += push[1];
            force[2] += arm.perp(&push);
        }
        force
    }

    /// Strengths for the velocities found, and what the modes learn of them.
    fn feed_back(&mut self) {
        let Scratch { sources, points, system, velocities, stream, pushed, circulations, .. } =
            &mut self.scratch;
        pushed.clear();
        pushed.extend_from_slice(self.fluid.amplitudes());
        let panels = sources.panels.len();
        let first = panels + self.bodies.len();
        for i in 0..panels {
            let sides = &system.row(i)[first..];
            let moving: Real = sides.iter().zip(&*velocities).map(|(layer, velocity)| layer * velocity).sum();
            self.strengths.push(moving + sides[velocities.len()]);
        }
        let share = self.params.feedback;
        let circulation = |(strength, panel): (&Real, &Panel)| share * strength * panel.length;
        circulations.clear();
        circulations.extend(self.strengths.iter().zip(&sources.panels).map(circulation));
        self.fluid.change(|amplitudes| points.add_vortices(circulations, amplitudes));
        points.stream(self.fluid.amplitudes(), stream);
        for body in 0..self.bodies.len() {
            self.bodies[body].carried = Some(self.displaced(body));
        }
    }

    fn move_bodies(&mut self, dt: Real) {
        let size = self.fluid.space.basis().size();
        for (body, velocity) in self.bodies.iter_mut().zip(self.scratch.velocities.chunks_exact(3)) {
            let before = body.momentum(body.velocity);
            body.velocity = std::array::from_fn(|motion| velocity[motion]);
            let after = body.momentum(body.velocity);
            let mass = body.masses()[0];
            body.impulse = std::array::from_fn(|motion| {
                let gravity = self.params.gravity.get(motion).copied().unwrap_or(0.0);
                after[motion] - before[motion] - dt * mass * gravity
            });
            body.position += Vector::from([velocity[0], velocity[1]]) * dt;
            body.angle = (body.angle + velocity[2] * dt) % std::f64::consts::TAU;
            body.stay_inside(size);
        }
    }
}

impl Body {
    /// The velocity that it is led with, if it is.
    fn led(&self, dt: Real, size: [Real; 2]) -> Option<Motions> {
        match self.lead {
            Lead::Free => None,
            Lead::Fixed => Some([0.0; 3]),
            Lead::Towards(target) => {
                let velocity = (Vector::from(target) - self.position) / dt.max(Real::MIN_POSITIVE);
                let most = LEAD * size[0].max(size[1]);
                let velocity = velocity * (most / velocity.norm().max(most));
                Some([velocity[0], velocity[1], 0.0])
            }
        }
    }

    /// Shifts it back between the walls: a contact is a matter of velocities, and a hand may lead it anywhere.
    fn stay_inside(&mut self, size: [Real; 2]) {
        for axis in 0..2 {
            let ends = |end: Real, corner: &Vector<2>| end.min(self.to_world(*corner)[axis]);
            let other = |end: Real, corner: &Vector<2>| end.max(self.to_world(*corner)[axis]);
            let reach = self.outline.rounding + 0.5 * self.gap_kept();
            let low = self.outline.core.iter().fold(Real::INFINITY, ends) - reach;
            let high = self.outline.core.iter().fold(Real::NEG_INFINITY, other) + reach - size[axis];
            self.position[axis] -= low.min(0.0) + high.max(0.0);
        }
    }
}

/// Takes the mean of what should be equal: the matrix of free bodies is symmetric but for the panels' error.
fn symmetrise(coupled: &mut Elimination, count: usize, bodies: &[Body]) {
    let free = |motion: usize| bodies[motion / 3].lead == Lead::Free;
    for i in (0..count).filter(|&i| free(i)) {
        for j in (0..i).filter(|&j| free(j)) {
            let mean = 0.5 * (coupled.row(i)[j] + coupled.row(j)[i]);
            (coupled.row_mut(i)[j], coupled.row_mut(j)[i]) = (mean, mean);
        }
    }
}
