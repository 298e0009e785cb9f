//! The solids of a scene together with the closed sides of the domain.

use crate::math::{Real, Vector, power};

use super::super::{Body, Pose, Solid};

/// The solids of a scene together with the closed sides of the domain.
#[derive(Clone, Debug)]
pub struct Walls<const D: usize> {
    /// Obstacles and containers.
    pub solids: Vec<Solid<D>>,
    /// Size of the domain, metres.
    pub size: [Real; D],
    /// Which sides are open: `[low, high]` per axis.
    pub open: [[bool; 2]; D],
    /// Closed sides that liquid never leaves, even where it may leave walls.
    pub sticky: [[bool; 2]; D],
    /// Whether solids close whole cells, those whose centres are in them, and none in part.
    pub voxels: bool,
    /// Along which of the other sides viscous liquid slips.
    pub slip: [[bool; 2]; D],
}

/// Solids that may matter to a place, without asking for memory: some, or too many to list.
#[derive(Clone, Copy, Debug)]
pub struct SolidsNear {
    list: [u32; MOST_NEAR],
    count: usize,
}

const MOST_NEAR: usize = 64;

impl<const D: usize> Walls<D> {
    /// Signed distance to the nearest solid or closed side, metres, negative inside.
    pub fn distance(&self, x: &Vector<D>, time: Real) -> Real {
        self.solids.iter().map(|solid| solid.distance(x, time)).fold(self.side_distance(x), Real::min)
    }

    /// Like [`Self::distance`], of the solids that never move and the closed sides.
    pub fn standing_distance(&self, x: &Vector<D>) -> Real {
        let standing = self.solids.iter().filter(|solid| !solid.is_moving());
        standing.map(|solid| solid.distance(x, 0.0)).fold(self.side_distance(x), Real::min)
    }

    /// Like [`Self::distance`], of the solids that move; infinite if none does.
    pub fn moving_distance(&self, x: &Vector<D>, time: Real) -> Real {
        let moving = self.solids.iter().filter(|solid| solid.is_moving());
        moving.map(|solid| solid.distance(x, time)).fold(Real::INFINITY, Real::min)
    }

    /// Like [`Self::distance`], of all solids that are no bodies and the closed sides.
    pub fn scripted_distance(&self, x: &Vector<D>, time: Real) -> Real {
        let scripted = self.solids.iter().filter(|solid| solid.body.is_none());
        scripted.map(|solid| solid.distance(x, time)).fold(self.side_distance(x), Real::min)
    }

    /// Distance to the nearest closed side of the domain, negative beyond it.
    pub(super) fn side_distance(&self, x: &Vector<D>) -> Real {
        let mut nearest = Real::INFINITY;
        for axis in 0..D {
            if !self.open[axis][0] {
                nearest = nearest.min(x[axis]);
            }
            if !self.open[axis][1] {
                nearest = nearest.min(self.size[axis] - x[axis]);
            }
        }
        nearest
    }

    /// Whether there is anything that liquid never leaves.
    pub fn any_sticky(&self) -> bool {
        self.sticky.as_flattened().contains(&true) || self.solids.iter().any(|solid| solid.sticky)
    }

    /// Like [`Self::distance`], of the solids and sides that liquid never leaves; infinite if there are none.
    pub fn sticky_distance(&self, x: &Vector<D>, time: Real) -> Real {
        let mut nearest = Real::INFINITY;
        for (axis, sides) in self.sticky.iter().enumerate() {
            for (sticky, distance) in sides.iter().zip([x[axis], self.size[axis] - x[axis]]) {
                nearest = if *sticky { nearest.min(distance) } else { nearest };
            }
        }
        let sticky = self.solids.iter().filter(|solid| solid.sticky);
        sticky.map(|solid| solid.distance(x, time)).fold(nearest, Real::min)
    }

    /// Whether viscous liquid slips along any wall.
    pub fn any_slip(&self) -> bool {
        self.slip.as_flattened().contains(&true) || self.solids.iter().any(|solid| solid.slip)
    }

    /// Whether viscous liquid slips along the nearest solid or side of the domain.
    pub fn slips(&self, x: &Vector<D>, time: Real) -> bool {
        let sides = (0..D).flat_map(|axis| {
            let distances = [x[axis], self.size[axis] - x[axis]];
            (0..2)
                .filter(move |&side| !self.open[axis][side])
                .map(move |side| (distances[side], self.slip[axis][side]))
        });
        let solids = self.solids.iter().map(|solid| (solid.distance(x, time), solid.slip));
        sides.chain(solids).min_by(|a, b| a.0.total_cmp(&b.0)).is_some_and(|nearest| nearest.1)
    }

    /// Velocity of the nearest solid's material at `x`; zero next to a side of the domain.
    pub fn velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        self.nearest_velocity(self.solids.iter(), x, time)
    }

    /// The solids that may come within a distance of a point.
    pub fn near(&self, x: &Vector<D>, distance: Real) -> SolidsNear {
        let mut near = SolidsNear { list: [0; MOST_NEAR], count: 0 };
        for (index, _) in self.solids.iter().enumerate().filter(|(_, solid)| solid.may_reach(x, distance)) {
            if let Some(place) = near.list.get_mut(near.count) {
                *place = index as u32;
            }
            near.count += 1;
        }
        near
    }

    /// Like [`Self::velocity`], if the nearest solid is one of these.
    pub fn velocity_of(&self, near: &SolidsNear, x: &Vector<D>, time: Real) -> Vector<D> {
        match near.list.get(..near.count) {
            Some(list) => {
                self.nearest_velocity(list.iter().map(|&index| &self.solids[index as usize]), x, time)
            }
            None => self.velocity(x, time),
        }
    }

    fn nearest_velocity<'a>(
        &'a self,
        solids: impl Iterator<Item = &'a Solid<D>>,
        x: &Vector<D>,
        time: Real,
    ) -> Vector<D> {
        let mut nearest: Option<(Real, &Solid<D>)> = None;
        for solid in solids {
            let least = nearest.map_or(Real::INFINITY, |nearest| nearest.0);
            // Quick to see of a body.
            if nearest.is_none() || solid.may_reach(x, least) {
                let distance = solid.distance(x, time);
                if nearest.is_none() || distance < least {
                    nearest = Some((distance, solid));
                }
            }
        }
        match nearest {
            Some((distance, solid)) if solid.is_moving() && distance < self.side_distance(x) => {
                solid.velocity(x, time)
            }
            _ => Vector::zeros(),
        }
    }

    /// Velocity of the material at `x` of the nearest solid that is no body; zero next to a side of the domain.
    pub fn scripted_velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        let scripted = self.solids.iter().filter(|solid| solid.body.is_none());
        let nearest =
            scripted.map(|solid| (solid.distance(x, time), solid)).min_by(|a, b| a.0.total_cmp(&b.0));
        match nearest {
            Some((distance, solid)) if solid.is_moving() && distance < self.side_distance(x) => {
                solid.velocity(x, time)
            }
            _ => Vector::zeros(),
        }
    }

    /// The bodies that take part at a time, each with its place among the solids: not those that are not there yet or any more, nor
    /// those that have left the domain for good.
    pub fn bodies(&self, time: Real) -> impl Iterator<Item = (usize, &Body<D>)> {
        self.solids.iter().enumerate().filter_map(move |(index, solid)| {
            let body = solid.body.as_deref().filter(|_| solid.is_present(time))?;
            let x = body.position();
            let is_near =
                (0..D).all(|k| x[k] > -2.0 * body.radius && x[k] < self.size[k] + 2.0 * body.radius);
            is_near.then_some((index, body))
        })
    }

    /// Where bodies are.
    pub(super) fn poses(&self) -> impl Iterator<Item = &Pose<D>> {
        self.solids.iter().filter_map(|solid| solid.body.as_deref()).map(Body::pose)
    }

    /// Whether any solid is a body.
    pub fn has_bodies(&self) -> bool {
        self.solids.iter().any(|solid| solid.body.is_some())
    }

    /// The fastest that any point of a body moves, m/s.
    pub fn max_body_speed(&self, time: Real) -> Real {
        self.bodies(time).map(|(_, body)| body.max_speed()).fold(0.0, Real::max)
    }

    /// Whether any solid ever moves.
    pub fn any_moving(&self) -> bool {
        self.solids.iter().any(Solid::is_moving)
    }

    /// The fastest any solid with a script moves near the domain, m/s: what limits the step.
    pub fn max_speed(&self, time: Real) -> Real {
        let corners = power(2, D);
        let mut fastest: Real = 0.0;
        for solid in self.solids.iter().filter(|solid| solid.motion.is_moving()) {
            for corner in 0..corners {
                let x = Vector::from_fn(|axis, _| self.size[axis] * ((corner >> axis) & 1) as Real);
                fastest = fastest.max(solid.velocity(&x, time).norm());
            }
        }
        fastest
    }
}
