//! What keeps rigid bodies from moving freely: contacts with sides of the domain, other solids and each other, and joints.
//!
//! Joints hold always. Which contacts hold is predicted from the forces of the last step, by impulses on each contact in turn (projected Gauss–Seidel)
//! with masses that count the liquid that moves along. Those that press become rows of the projection, which finds how much: liquid
//! and contacts are solved together, as impulses computed beside the liquid are wrong for light bodies. Friction is the impulse that
//! the prediction found.

use crate::geometry::{Body, Joint, MOST_MOTIONS, PosedSolid, Solid, TouchPoint, Twist, Walls, motions};
use crate::math::{Real, Vector};
use crate::pressure::Hold;

use super::hands::{Grip, pull_rows};
use super::joints::{JointRow, joint_rows};

/// Distance that contacts keep, in cells: water gets in between, so that what rests on the floor is still lifted.
pub(super) const KEPT: Real = 0.1;
/// Contacts are looked for within this distance, in cells, besides the way of a step.
const NEAR: Real = 0.25;
/// Cosine between the normals of surfaces above which they do not face each other.
const FACING: Real = -0.3;
/// Sweeps over the contacts.
const SWEEPS: usize = 40;
/// Share of an overlap that is taken back in a step, and the most, in cells.
const TAKEN_BACK: Real = 0.2;
const MOST_TAKEN_BACK: Real = 0.5;
/// Overlaps are taken back no faster than this, in cells a second, however short the step: bodies keep that speed, and what is
/// faster makes steps shorter. Liquid between them would have to be torn apart, too.
const FASTEST_TAKEN_BACK: Real = 10.0;
/// The liquid's force in the last step predicts no more than so many times what gravity does, and that share of the speed there
/// is: what it was in an impact says nothing about the next step.
const MOST_PREDICTED: Real = 4.0;
const MOST_PREDICTED_OF_SPEED: Real = 0.1;
/// Liquid that moves along with a body, over what it displaces: along axes by dimension, and turning.
const ADDED: [Real; 4] = [0.0, 0.0, 1.0, 0.5];
const ADDED_SPIN: Real = 0.1;

/// The points of solids that may touch others, by solid.
#[derive(Clone, Debug, Default)]
pub struct ContactScratch<const D: usize> {
    points: Vec<Vec<TouchPoint<D>>>,
}

/// What a projection is told of contacts and joints.
#[derive(Clone, Debug, Default)]
pub(super) struct ContactPlan {
    /// Joints, and contacts that press.
    pub holds: Vec<Hold>,
    /// Friction, springs, hands, and motors that do their most: impulses on bodies.
    pub impulses: Vec<(usize, Twist)>,
    /// What each hand pulls with, N.
    pub hands: Vec<[Real; 3]>,
}

impl ContactPlan {
    fn add_impulse(&mut self, row: &Row) {
        self.impulses
            .extend(row.parts.iter().map(|(index, part)| (*index, part.map(|part| part * row.impulse))));
    }
}

/// What a step is to contacts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContactStep {
    /// Simulated seconds at its end, and its length.
    pub time: Real,
    /// Seconds.
    pub dt: Real,
    /// Cell width, metres.
    pub dx: Real,
    /// Downward acceleration, m/s².
    pub gravity: Real,
    /// Of the liquid, kg/m³.
    pub density: Real,
}

/// A place where two solids come close.
struct Contact<const D: usize> {
    /// The bodies: the first is pushed along the normal, the second, if it is a body, against it. Places among the solids.
    body: usize,
    other: Option<usize>,
    normal: Vector<D>,
    at: Vector<D>,
    /// Metres, less what contacts keep.
    gap: Real,
    /// Velocity of the other there, if it is no body.
    velocity: Vector<D>,
    friction: Real,
    restitution: Real,
}

/// Finds contacts and says which of them hold, with what joints want.
pub(super) fn plan_contacts<const D: usize>(
    walls: &Walls<D>,
    joints: &[Joint<D>],
    grips: &[Grip],
    scratch: &mut ContactScratch<D>,
    step: &ContactStep,
) -> ContactPlan {
    let contacts = find_contacts(walls, joints, scratch, step);
    let ties = joint_rows(walls, joints, step.time, Some(step.dt));
    if contacts.is_empty() && ties.is_empty() && grips.is_empty() {
        return ContactPlan::default();
    }
    predict(walls, &contacts, ties, grips, step)
}

/// What joints want of a projection that belongs to no step.
pub(super) fn plan_joints<const D: usize>(walls: &Walls<D>, joints: &[Joint<D>], time: Real) -> ContactPlan {
    let rows = joint_rows(walls, joints, time, None).into_iter();
    let holds = rows.map(|JointRow { parts, target, .. }| Hold { parts, target }).collect();
    ContactPlan { holds, ..ContactPlan::default() }
}

/// All places where bodies are, or come within a step, close to something.
fn find_contacts<const D: usize>(
    walls: &Walls<D>,
    joints: &[Joint<D>],
    scratch: &mut ContactScratch<D>,
    step: &ContactStep,
) -> Vec<Contact<D>> {
    if scratch.points.len() != walls.solids.len() {
        scratch.points = walls.solids.iter().map(|solid| solid.shape.touch_points()).collect();
    }
    let mut contacts = Vec::new();
    let bodies: Vec<(usize, &Body<D>)> = walls.bodies(step.time).collect();
    // How far the points of those may move, by solid.
    let mut ways: Vec<Option<Real>> = vec![None; walls.solids.len()];
    bodies.iter().for_each(|&(index, body)| ways[index] = Some(body.max_speed() * step.dt));
    for &(index, body) in &bodies {
        let solid = &walls.solids[index];
        let reach = NEAR * step.dx + (body.max_speed() + step.gravity * step.dt) * step.dt + KEPT * step.dx;
        let points = world_points(&scratch.points[index], solid, step.time);
        for axis in 0..D {
            for side in 0..2 {
                if !walls.open[axis][side] {
                    add_side_contacts(
                        walls,
                        (index, body),
                        &points,
                        axis,
                        side,
                        (step, reach),
                        &mut contacts,
                    );
                }
            }
        }
        for (other_index, other) in walls.solids.iter().enumerate() {
            let is_body = ways[other_index].is_some();
            // Two bodies meet once.
            if other_index == index || is_body && other_index < index || !other.is_present(step.time) {
                continue;
            }
            if other.body.is_some() && !is_body {
                continue;
            }
            let way = ways[other_index].unwrap_or(0.0);
            if !other.may_reach(&body.position(), body.radius + reach + way) {
                continue;
            }
            if joints.iter().any(|joint| joint.overlaps() && joint.ties(index, other_index)) {
                continue;
            }
            let scripted =
                if is_body { 0.0 } else { other.velocity(&body.position(), step.time).norm() * step.dt };
            let (posed, reach) = (other.at(step.time), reach + way + scripted);
            if posed.distance(&body.position()) > body.radius + reach {
                continue;
            }
            let others = world_points(&scratch.points[other_index], other, step.time);
            let pair = Pair {
                body: index,
                other: is_body.then_some(other_index),
                own: solid.at(step.time),
                posed,
                friction: match &other.body {
                    Some(other) => (body.material.friction * other.material.friction).sqrt(),
                    None => body.material.friction,
                },
                restitution: match &other.body {
                    Some(other) => body.material.restitution.max(other.material.restitution),
                    None => body.material.restitution,
                },
                radius: body.radius,
            };
            pair.add_contacts(&points, &others, (step, reach), &mut contacts);
        }
    }
    contacts
}

/// Where a solid's points are.
pub(super) fn world_points<const D: usize>(
    points: &[TouchPoint<D>],
    solid: &Solid<D>,
    time: Real,
) -> Vec<TouchPoint<D>> {
    let pose = solid.pose(time);
    let place = |x: &Vector<D>| pose.as_ref().map_or(*x, |pose| pose.from_rest(x));
    points.iter().map(|point| TouchPoint { at: place(&point.at), radius: point.radius }).collect()
}

/// Contacts with a side of the domain.
fn add_side_contacts<const D: usize>(
    walls: &Walls<D>,
    (index, body): (usize, &Body<D>),
    points: &[TouchPoint<D>],
    axis: usize,
    side: usize,
    (step, reach): (&ContactStep, Real),
    to: &mut Vec<Contact<D>>,
) {
    let sign = if side == 0 { 1.0 } else { -1.0 };
    let depth = |x: &Vector<D>| if side == 0 { x[axis] } else { walls.size[axis] - x[axis] };
    if depth(&body.position()) > body.radius + reach {
        return;
    }
    let normal = Vector::<D>::from_fn(|k, _| if k == axis { sign } else { 0.0 });
    let near = points.iter().filter(|point| depth(&point.at) - point.radius < reach);
    let found = near.map(|point| Contact {
        body: index,
        other: None,
        normal,
        at: point.at - normal * depth(&point.at),
        gap: depth(&point.at) - point.radius - KEPT * step.dx,
        velocity: Vector::zeros(),
        friction: body.material.friction,
        restitution: body.material.restitution,
    });
    keep_few(found.collect(), body.radius, to);
}

/// Two solids that may touch; the first is a body.
struct Pair<'a, const D: usize> {
    body: usize,
    other: Option<usize>,
    own: PosedSolid<'a, D>,
    posed: PosedSolid<'a, D>,
    friction: Real,
    restitution: Real,
    radius: Real,
}

impl<const D: usize> Pair<'_, D> {
    /// Points of each among the distances of the other.
    fn add_contacts(
        &self,
        own: &[TouchPoint<D>],
        others: &[TouchPoint<D>],
        (step, reach): (&ContactStep, Real),
        to: &mut Vec<Contact<D>>,
    ) {
        let mut found = Vec::new();
        let ways = [(own, &self.own, &self.posed, 1.0), (others, &self.posed, &self.own, -1.0)];
        for (points, owner, field, sign) in ways {
            for point in points {
                let gap = field.distance(&point.at) - point.radius;
                if gap >= reach {
                    continue;
                }
                let away = field.normal(&point.at, 0.01 * step.dx);
                // The surfaces have to face each other: a side that something slides along stops nothing.
                let faces = || owner.normal(&point.at, 0.01 * step.dx).dot(&away) < FACING;
                if point.radius == 0.0 && !faces() {
                    continue;
                }
                let at = point.at - away * (point.radius + 0.5 * gap);
                let velocity = match self.other {
                    Some(_) => Vector::zeros(),
                    None => self.posed.velocity(&at),
                };
                found.push(Contact {
                    body: self.body,
                    other: self.other,
                    normal: away * sign,
                    at,
                    gap: gap - KEPT * step.dx,
                    velocity,
                    friction: self.friction,
                    restitution: self.restitution,
                });
            }
        }
        keep_few(found, self.radius, to);
    }
}

/// Keeps the deepest contact, and some that lie elsewhere or point elsewhere.
fn keep_few<const D: usize>(mut found: Vec<Contact<D>>, radius: Real, to: &mut Vec<Contact<D>>) {
    found.sort_by(|a, b| a.gap.total_cmp(&b.gap));
    let first = to.len();
    for contact in found {
        let kept = &to[first..];
        let is_new = kept.iter().all(|kept| {
            (kept.at - contact.at).norm() > 0.2 * radius || kept.normal.dot(&contact.normal) < 0.94
        });
        if is_new && kept.len() < 2 * D {
            to.push(contact);
        }
    }
}

/// A row that a contact makes: its part of the motions of one body or two.
struct Row {
    parts: Vec<(usize, Twist)>,
    /// What an impulse along it does to the motions of each.
    answers: Vec<Twist>,
    /// Velocity along it per impulse.
    answer: Real,
    impulse: Real,
}

/// A body in the prediction.
struct Predicted {
    velocity: Twist,
    /// How it answers impulses, with the liquid that moves along.
    response: [[Real; MOST_MOTIONS]; MOST_MOTIONS],
}

/// Impulses on joints and contacts in turn, until they agree; joints and those contacts that press hold.
fn predict<const D: usize>(
    walls: &Walls<D>,
    contacts: &[Contact<D>],
    ties: Vec<JointRow>,
    grips: &[Grip],
    step: &ContactStep,
) -> ContactPlan {
    let mut bodies: Vec<Option<Predicted>> = walls.solids.iter().map(|_| None).collect();
    for (index, body) in walls.bodies(step.time) {
        bodies[index] = Some(predict_body(body, step));
    }
    let row_of = |parts: Vec<(usize, Twist)>, bodies: &[Option<Predicted>]| {
        let answer_of = |(index, part): &(usize, Twist)| {
            bodies[*index].as_ref().map_or([0.0; MOST_MOTIONS], |body| answer_of::<D>(body, part))
        };
        let answers: Vec<Twist> = parts.iter().map(answer_of).collect();
        let answer = parts.iter().zip(&answers).map(|((_, part), answer)| dot(part, answer)).sum();
        Row { parts, answers, answer, impulse: 0.0 }
    };
    let row = |contact: &Contact<D>, direction: &Vector<D>| {
        let part = |index: usize, sign: Real| {
            let body = walls.solids[index].body.as_deref().expect("contacts are of bodies");
            (index, Body::motion_at(&(contact.at - body.position()), &(direction * sign)))
        };
        let mut parts = vec![part(contact.body, 1.0)];
        parts.extend(contact.other.map(|other| part(other, -1.0)));
        row_of(parts, &bodies)
    };
    let mut normals: Vec<Row> = contacts.iter().map(|contact| row(contact, &contact.normal)).collect();
    // With the velocity of the other along them, if it is no body.
    let mut tangents: Vec<Vec<(Row, Real)>> = contacts
        .iter()
        .map(|contact| {
            let tangents = tangents_of(&contact.normal).into_iter();
            tangents.map(|tangent| (row(contact, &tangent), tangent.dot(&contact.velocity))).collect()
        })
        .collect();
    let before: Vec<Real> = normals.iter().map(|row| speed_now(walls, row)).collect();
    let targets: Vec<Real> = contacts
        .iter()
        .zip(&before)
        .map(|(contact, &before)| {
            let wall = contact.normal.dot(&contact.velocity);
            let most = MOST_TAKEN_BACK * step.dx;
            let stop = match contact.gap > 0.0 {
                true => -contact.gap / step.dt,
                false => (TAKEN_BACK * (-contact.gap).min(most) / step.dt).min(FASTEST_TAKEN_BACK * step.dx),
            };
            // What gravity alone does in some steps is no impact.
            let approach = wall - before;
            let is_impact = approach > 4.0 * step.gravity * step.dt;
            let bounce = if is_impact { contact.restitution * approach } else { 0.0 };
            wall + if bounce > 0.0 { stop.max(bounce) } else { stop }
        })
        .collect();
    let mut plan = ContactPlan::default();
    let (springs, ties): (Vec<JointRow>, Vec<JointRow>) =
        ties.into_iter().partition(|tie| tie.spring.is_some());
    let mut ties: Vec<(JointRow, Row)> = ties
        .into_iter()
        .map(|mut tie| {
            let row = row_of(std::mem::take(&mut tie.parts), &bodies);
            (tie, row)
        })
        .collect();
    for tie in springs {
        let mut row = row_of(tie.parts, &bodies);
        let Some(spring) = tie.spring else { continue };
        // By where it will be at the end of the step: stiff ones do not swing up.
        let rate = spring.damping + spring.stiffness * step.dt;
        let force = spring.stiffness * spring.stretch + rate * (speed(&bodies, &row) - tie.target);
        let impulse = -force * step.dt / (1.0 + rate * step.dt * row.answer);
        push(&mut bodies, &mut row, impulse);
        plan.add_impulse(&row);
    }
    plan.hands.resize(grips.len(), [0.0; 3]);
    for pull in pull_rows(grips, walls, step) {
        let mut row = row_of(vec![pull.part], &bodies);
        if row.answer > 0.0 {
            let impulse = pull.impulse(speed(&bodies, &row), row.answer, step.dt);
            push(&mut bodies, &mut row, impulse);
            plan.add_impulse(&row);
            let force = &mut plan.hands[pull.hand];
            (0..D).for_each(|axis| force[axis] += pull.part.1[axis] * impulse / step.dt);
        }
    }
    for _ in 0..SWEEPS {
        for (tie, row) in ties.iter_mut().filter(|(_, row)| row.answer > 0.0) {
            let wanted = row.impulse + (tie.target - speed(&bodies, row)) / row.answer;
            push(&mut bodies, row, wanted.clamp(tie.range[0], tie.range[1]));
        }
        for (index, contact) in contacts.iter().enumerate() {
            let normal = &mut normals[index];
            if normal.answer <= 0.0 {
                continue;
            }
            let missing = targets[index] - speed(&bodies, normal);
            let impulse = (normal.impulse + missing / normal.answer).max(0.0);
            push(&mut bodies, normal, impulse);
            let most = contact.friction * impulse;
            for (tangent, wall) in tangents[index].iter_mut().filter(|(tangent, _)| tangent.answer > 0.0) {
                let slip = speed(&bodies, tangent) - *wall;
                let impulse = (tangent.impulse - slip / tangent.answer).clamp(-most, most);
                push(&mut bodies, tangent, impulse);
            }
        }
    }
    for (tie, row) in ties {
        let [least, most] = tie.range;
        if row.impulse <= least && least < 0.0 || row.impulse >= most {
            // A motor that does what it can, and no more.
            plan.add_impulse(&row);
        } else if row.impulse != 0.0 || least < 0.0 {
            plan.holds.push(Hold { parts: row.parts, target: tie.target });
        }
    }
    for ((normal, tangents), target) in normals.into_iter().zip(tangents).zip(targets) {
        if normal.impulse <= 0.0 {
            continue;
        }
        plan.holds.push(Hold { parts: normal.parts, target });
        tangents
            .iter()
            .filter(|(tangent, _)| tangent.impulse != 0.0)
            .for_each(|(tangent, _)| plan.add_impulse(tangent));
    }
    plan
}

/// A body's velocity as the forces of the last step would make it.
fn predict_body<const D: usize>(body: &Body<D>, step: &ContactStep) -> Predicted {
    let state = body.state();
    let mut response = body.response();
    let wet = step.density * body.volume * state.submerged;
    let heavier = body.material.mass / (body.material.mass + wet_mass(body, step));
    let slower = body.material.mass / (body.material.mass + ADDED_SPIN * wet);
    for (row, line) in response.iter_mut().enumerate() {
        line.iter_mut().for_each(|value| *value *= if row < D { heavier } else { slower });
    }
    let mut predicted = Predicted { velocity: state.velocity, response };
    let fall = step.gravity * step.dt;
    let change = answer_of::<D>(&predicted, &state.force.map(|force| force * step.dt));
    let fastest = body.speed_of(&change);
    let most = MOST_PREDICTED * fall + MOST_PREDICTED_OF_SPEED * body.max_speed();
    let share = if fastest > most { most / fastest } else { 1.0 };
    predicted.velocity.iter_mut().zip(change).for_each(|(velocity, change)| *velocity += share * change);
    let mut weight = [0.0; MOST_MOTIONS];
    weight[1] = -body.material.mass * fall;
    let change = answer_of::<D>(&predicted, &weight);
    predicted.velocity.iter_mut().zip(change).for_each(|(velocity, change)| *velocity += change);
    predicted
}

/// What moves along with a body of the liquid around it, kg.
pub(super) fn wet_mass<const D: usize>(body: &Body<D>, step: &ContactStep) -> Real {
    ADDED[D] * step.density * body.volume * body.state().submerged
}

fn dot(a: &Twist, b: &Twist) -> Real {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// How a body's motions answer an impulse.
fn answer_of<const D: usize>(body: &Predicted, impulse: &Twist) -> Twist {
    let mut answer = [0.0; MOST_MOTIONS];
    for (answer, row) in answer.iter_mut().zip(&body.response).take(motions(D)) {
        *answer = dot(row, impulse);
    }
    answer
}

/// The velocity along a row, as predicted so far.
fn speed(bodies: &[Option<Predicted>], row: &Row) -> Real {
    let of = |(index, part): &(usize, Twist)| {
        bodies[*index].as_ref().map_or(0.0, |body| dot(part, &body.velocity))
    };
    row.parts.iter().map(of).sum()
}

/// The velocity along a row before the step.
fn speed_now<const D: usize>(walls: &Walls<D>, row: &Row) -> Real {
    let of = |(index, part): &(usize, Twist)| {
        walls.solids[*index].body.as_ref().map_or(0.0, |body| dot(part, &body.state().velocity))
    };
    row.parts.iter().map(of).sum()
}

/// Changes the impulse of a row.
fn push(bodies: &mut [Option<Predicted>], row: &mut Row, impulse: Real) {
    let change = impulse - row.impulse;
    row.impulse = impulse;
    for ((index, _), answer) in row.parts.iter().zip(&row.answers) {
        let Some(body) = &mut bodies[*index] else { continue };
        body.velocity.iter_mut().zip(answer).for_each(|(velocity, answer)| *velocity += answer * change);
    }
}

/// Directions across a normal.
pub(super) fn tangents_of<const D: usize>(normal: &Vector<D>) -> Vec<Vector<D>> {
    let least = normal.iamin();
    let unit = Vector::<D>::from_fn(|k, _| if k == least { 1.0 } else { 0.0 });
    let first = (unit - normal * normal[least]).normalize();
    if D == 2 {
        return vec![first];
    }
    let second = Vector::<D>::from_fn(|k, _| {
        let (i, j) = ((k + 1) % D, (k + 2) % D);
        normal[i] * first[j] - normal[j] * first[i]
    });
    vec![first, second]
}
