//! What a projection is about.

use crate::geometry::{Boundary, Nearness, Walls};
use crate::grid::{Blocks, Face, Field};
use crate::math::Real;

use super::LetGo;
use super::phases::CellKind;
use super::walls::{scripted_flow, solid_flow};

/// What a projection is about.
pub struct Problem<'a, const D: usize> {
    /// Where.
    pub blocks: &'a Blocks<D>,
    /// Open shares and wall distances.
    pub boundary: &'a Boundary<D>,
    /// The solids themselves, for their velocities.
    pub walls: &'a Walls<D>,
    /// The liquid's signed distance at cell centres, metres.
    pub surface: &'a Field<f32>,
    /// Velocity that gravity adds in this step, m/s. Added here in double precision, so that a liquid at rest stays
    /// at rest to the solver's tolerance and not only to that of the stored velocities.
    pub impulse: [Real; D],
    /// What each connected component of air or liquid is to the projection.
    pub roles: Roles<'a>,
    /// How liquid may leave walls, if it may.
    pub let_go: Option<LetGo>,
    /// Simulated seconds.
    pub time: Real,
}

/// What the projection wants to know of the connected components.
#[derive(Clone, Copy)]
pub struct Roles<'a> {
    /// The component of every cell that is not solid.
    pub component: &'a Field<u32>,
    /// Per component: the unknown that all cells of an air component share (CBAR eq. 9), [`OWN`] or [`FREE`].
    pub node: &'a [u32],
    /// Density of air over that of the liquid, where air has cells of its own; zero where all air is weightless.
    pub air_mass: Real,
    /// Per component, net outflow asked for, m/s: by an air component as a whole (in each cell if those are its own), by a
    /// liquid in each of its cells that lies at least one cell below the surface. These are volume corrections.
    pub outflow: &'a [Real],
    /// Per shared unknown: how many cells it stands for.
    pub weight: &'a [Real],
    /// Per shared unknown: a first guess of its scaled pressure.
    pub guess: &'a [Real],
}

/// The node of air that is a free surface at zero pressure.
pub const FREE: u32 = u32::MAX;
/// The node of air that has mass, and a pressure in every cell.
pub const OWN: u32 = u32::MAX - 1;

impl Roles<'_> {
    /// The unknown that an air cell's component shares, if it shares one.
    #[inline(always)]
    pub(super) fn node_of(&self, component: u32) -> Option<usize> {
        let node = self.node.get(component as usize).copied().unwrap_or(FREE);
        (node < OWN).then_some(node as usize)
    }

    /// Whether the cells of an air component have their own unknowns.
    #[inline(always)]
    pub(super) fn is_own(&self, component: u32) -> bool {
        self.node.get(component as usize) == Some(&OWN)
    }

    /// Whether any air has mass.
    #[inline(always)]
    pub fn has_gas(&self) -> bool {
        self.air_mass > 0.0
    }

    /// Whether no air shares an unknown.
    pub(super) fn all_free(&self) -> bool {
        self.weight.is_empty()
    }
}

impl<const D: usize> Problem<'_, D> {
    /// What solids push along its axis through the closed share of a face: those that move by scripts, as bodies are not known
    /// before the solve.
    pub(super) fn scripted_flow(&self, slot: usize, face: Face<D>, open: Real) -> Real {
        if self.boundary.nearness(slot) != Nearness::Moving {
            return 0.0;
        }
        scripted_flow(self.blocks, self.boundary, self.walls, slot, face, open, self.time)
    }

    /// The same of all solids, bodies as they move now.
    pub(super) fn solid_flow(&self, slot: usize, face: Face<D>, open: Real) -> Real {
        if self.boundary.nearness(slot) != Nearness::Moving {
            return 0.0;
        }
        solid_flow(self.blocks, self.boundary, self.walls, slot, face, open, self.time)
    }

    /// Net outflow that a cell should have, m/s.
    pub(super) fn wanted_outflow(&self, kind: CellKind, slot: usize, local: usize) -> Real {
        match self.is_corrected(kind, self.surface.block(slot)[local]) {
            true => self.outflow_of(self.roles.component.block(slot)[local]),
            false => 0.0,
        }
    }

    /// Whether a cell takes part in the correction of its component's volume.
    #[inline(always)]
    pub(super) fn is_corrected(&self, kind: CellKind, distance: f32) -> bool {
        (kind == CellKind::Gas) | (kind == CellKind::Liquid) & (distance <= -self.blocks.grid().dx as f32)
    }

    /// Net outflow that such cells of a component should have, m/s.
    pub(super) fn outflow_of(&self, component: u32) -> Real {
        self.roles.outflow.get(component as usize).copied().unwrap_or(0.0)
    }
}
