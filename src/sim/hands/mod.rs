//! Hands in a running simulation: they take hold of bodies and pull them, put new ones in, and take bodies out.
//!
//! An [`Edit`] is checked when it arrives, between two substeps, and has its effect in the next one: a body that was put in is there
//! from then on, and the liquid in its place is gone; one that was taken out is there until then. A body's number is its place among
//! the solids, so one that was taken out leaves its place behind.

mod place;
mod pull;

use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Body, Pose, Shape, Similarity, Walls};
use crate::grid::Grid;
use crate::liquid::{self, Particles};
use crate::math::{Real, Vector};

pub use place::{DENSITIES, Form, LEAST_CELLS, NewBody};
pub(super) use pull::pull_rows;

/// What a hand does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Edit {
    /// Takes hold of a body, or takes hold of it anew.
    Grab {
        /// Its number.
        body: usize,
        /// Where, in its pose in the scene, or in which it was put in; zero beyond the last axis.
        at: [Real; 3],
        /// How.
        hold: Hold,
    },
    /// Pulls a body that is held to another place.
    Move {
        /// Its number.
        body: usize,
        /// Where the place that is held should come to, metres.
        to: [Real; 3],
    },
    /// Lets go of a body. One that is not held stays as it is.
    Release {
        /// Its number.
        body: usize,
    },
    /// Puts a new body in.
    Add(NewBody),
    /// Takes a body out.
    Remove {
        /// Its number.
        body: usize,
    },
}

/// How a body is held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// How fast it follows, 1/s: what a spring of that frequency pulls with on its mass and the liquid that moves along.
    pub strength: Real,
    /// Share of the damping with which it comes to rest the soonest.
    pub damping: Real,
    /// Whether it is kept from turning.
    pub steady: bool,
}

impl Default for Hold {
    fn default() -> Self {
        Hold { strength: 15.0, damping: 1.0, steady: true }
    }
}

/// Least and most of [`Hold::strength`].
pub const STRENGTHS: [Real; 2] = [1.0, 60.0];

/// Why an edit was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EditError {
    /// No such body, or not any more.
    #[error("there is no body {0}")]
    NoBody(usize),
    /// It is not held.
    #[error("nobody holds body {0}")]
    NotHeld(usize),
    /// A number that cannot be.
    #[error("{what} is {found}, and must be {allowed}")]
    Number {
        /// What it is of.
        what: &'static str,
        /// The number.
        found: Real,
        /// What would be right.
        allowed: String,
    },
    /// It would be in something else.
    #[error("there is no room for the {name} at that place: {what} is in its way")]
    NoRoom {
        /// The body's name.
        name: String,
        /// What is there already.
        what: String,
    },
    /// A method without bodies.
    #[error("this solver has no bodies")]
    NoBodies,
}

impl EditError {
    fn number(what: &'static str, found: Real, [least, most]: [Real; 2]) -> Result<(), Self> {
        match (least..=most).contains(&found) {
            true => Ok(()),
            false => Err(EditError::Number { what, found, allowed: format!("from {least} to {most}") }),
        }
    }

    fn place(what: &'static str, place: &[Real; 3]) -> Result<(), Self> {
        place.iter().try_for_each(|&x| EditError::number(what, x, [-1e4, 1e4]))
    }
}

/// A body in a hand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grip {
    /// Its number.
    pub body: usize,
    /// Where it is held, in its first pose.
    pub at: [Real; 3],
    /// Where that should come to, metres.
    pub target: [Real; 3],
    /// How it is held.
    pub hold: Hold,
    /// How far it was turned when it was taken, as its state has it.
    turned: ([Real; 4], Real),
    /// What the hand pulled with in the last substep, N.
    pub force: [Real; 3],
}

/// A body that was put in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Added {
    body: NewBody,
    /// Since when it is there, s; if it found no room, never.
    from: Real,
}

/// What hands do and did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hands {
    /// What is held, by number.
    grips: Vec<Grip>,
    /// What was put in, in that order, behind the scene's solids.
    added: Vec<Added>,
    /// What was taken out, and when.
    removed: Vec<(usize, Real)>,
}

impl Hands {
    /// What is held, by number.
    pub fn grips(&self) -> &[Grip] {
        &self.grips
    }

    /// The hand that holds a body.
    pub fn grip(&self, body: usize) -> Option<&Grip> {
        self.grips.iter().find(|grip| grip.body == body)
    }

    /// Whether one of so many solids was taken out, or never found room.
    pub(super) fn is_gone(&self, solids: usize, body: usize) -> bool {
        let added = body.checked_sub(solids - self.added.len()).map(|place| self.added[place].from);
        added == Some(Real::INFINITY) || self.removed.iter().any(|(removed, _)| *removed == body)
    }

    /// Checks an edit at a time between two substeps, and takes it on.
    pub(super) fn take<const D: usize>(
        &mut self,
        edit: &Edit,
        walls: &mut Walls<D>,
        grid: &Grid<D>,
        time: Real,
    ) -> Result<(), EditError> {
        let next = time.next_up();
        match *edit {
            Edit::Grab { body, at, hold } => {
                let state = body_of(walls, body, next)?.state();
                EditError::place("a place on the body", &at)?;
                EditError::number("the strength", hold.strength, STRENGTHS)?;
                EditError::number("the damping", hold.damping, [0.0, 10.0])?;
                let turned = (state.quaternion, state.angle);
                let target = body_of(walls, body, next)?.pose().from_rest(&point(&at));
                let grip = Grip { body, at, target: padded(&target), hold, turned, force: [0.0; 3] };
                let place = self.grips.partition_point(|grip| grip.body < body);
                self.grips.retain(|grip| grip.body != body);
                self.grips.insert(place, grip);
            }
            Edit::Move { body, to } => {
                EditError::place("a place", &to)?;
                let grip = self.grips.iter_mut().find(|grip| grip.body == body);
                grip.ok_or(EditError::NotHeld(body))?.target = to;
            }
            Edit::Release { body } => self.grips.retain(|grip| grip.body != body),
            Edit::Add(body) => {
                let room = body.find_room(&body.solid(grid, walls)?, walls, grid.dx, next);
                let way = *room.as_ref().unwrap_or(&Vector::zeros());
                let position = std::array::from_fn(|k| body.position[k] + if k < D { way[k] } else { 0.0 });
                // Simulations that are compared count alike, whether or not all of them have room.
                let from = if room.is_ok() { next } else { Real::INFINITY };
                let added = Added { body: NewBody { position, ..body }, from };
                let mut solid = added.body.solid(grid, walls)?;
                solid.present[0] = from;
                walls.solids.push(solid);
                self.added.push(added);
                room?;
            }
            Edit::Remove { body } => {
                body_of(walls, body, next)?;
                walls.solids[body].present[1] = next;
                self.grips.retain(|grip| grip.body != body);
                self.removed.push((body, next));
            }
        }
        Ok(())
    }

    /// Takes the liquid away that bodies cover which were not there yet at the time `before`.
    pub(super) fn make_way<const D: usize>(
        &self,
        walls: &Walls<D>,
        particles: &mut Particles<D>,
        grid: &Grid<D>,
        [before, time]: [Real; 2],
    ) {
        let first = walls.solids.len() - self.added.len();
        let is_new = |added: &Added| added.from > before && added.from <= time;
        for (solid, _) in walls.solids[first..].iter().zip(&self.added).filter(|(_, added)| is_new(added)) {
            let Some(Pose { rotation, translation, .. }) = solid.pose(time) else { continue };
            let placement = Similarity { rotation, translation, scale: 1.0 };
            liquid::drain(
                particles,
                grid,
                &Shape::Placed { shape: Box::new(solid.shape.clone()), placement },
            );
        }
    }

    /// Notes what hands pulled with in a substep.
    pub(super) fn note_forces(&mut self, forces: &[[Real; 3]]) {
        self.grips.iter_mut().zip(forces).for_each(|(grip, force)| grip.force = *force);
    }

    /// Writes what hands do and did.
    pub(super) fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("hands", &(&self.grips, &self.added, &self.removed))
    }

    /// Reads what [`Self::save`] wrote, and gives the scene's walls the bodies that were put in, and takes out what was taken out.
    pub(super) fn load<const D: usize>(
        walls: &mut Walls<D>,
        grid: &Grid<D>,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let (grips, added, removed): (Vec<Grip>, Vec<Added>, Vec<(usize, Real)>) = from.value("hands")?;
        for Added { body, from } in &added {
            let solid = body.solid(grid, walls);
            let mut solid = solid.map_err(|error| ArchiveError::invalid("hands", error.to_string()))?;
            solid.present[0] = *from;
            walls.solids.push(solid);
        }
        let is_body = |body: usize| walls.solids.get(body).is_some_and(|solid| solid.body.is_some());
        let is_sane = grips.iter().all(|grip| is_body(grip.body) && grip.is_finite())
            && removed.iter().all(|&(body, time)| is_body(body) && time.is_finite())
            && added.iter().all(|added| !added.from.is_nan());
        ArchiveError::unless(is_sane, "hands", "is about other bodies than there are")?;
        removed.iter().for_each(|&(body, time)| walls.solids[body].present[1] = time);
        Ok(Hands { grips, added, removed })
    }
}

impl Grip {
    fn is_finite(&self) -> bool {
        let Grip { at, target, hold, turned, force, .. } = self;
        let all = at.iter().chain(target).chain(force).chain(&turned.0);
        all.chain([&turned.1, &hold.strength, &hold.damping]).all(|number| number.is_finite())
    }
}

/// A body that is there at a time.
fn body_of<const D: usize>(walls: &Walls<D>, body: usize, time: Real) -> Result<&Body<D>, EditError> {
    let solid = walls.solids.get(body).filter(|solid| solid.is_present(time));
    solid.and_then(|solid| solid.body.as_deref()).ok_or(EditError::NoBody(body))
}

/// A place given by three numbers.
fn point<const D: usize>(x: &[Real; 3]) -> Vector<D> {
    Vector::from_fn(|axis, _| x[axis])
}

/// Three numbers, zeros beyond the last axis.
fn padded<const D: usize>(x: &Vector<D>) -> [Real; 3] {
    std::array::from_fn(|axis| if axis < D { x[axis] } else { 0.0 })
}
