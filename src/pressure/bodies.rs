//! Bodies whose motion is found together with the pressure.
//!
//! A projection goes through a list of [`BodyProvider`]s. Each adds bodies to the system: faces that a body closes, by how much, and
//! how they move with it (`J`), how the body answers forces (`K`), and how fast it was (`v*`). The solve finds
//! `v = v* + K J q` along with the pressures `q`, and the provider takes it and writes velocities back. Tiles are the first one:
//! they close whole faces and take cells out of the system, for which the solver has a path of its own ([`Tiling::bodies`]).

use nalgebra::DMatrix;

use crate::geometry::Label;
use crate::grid::{Blocks, FaceMask, Field, across, block_cells, masks};
use crate::linear::{Couplings, TieRow, Unknown};
use crate::math::{Real, Side};
use crate::tiles::Tiling;

use super::{Problem, Projection};

/// Where bodies of one kind come from.
pub trait BodyProvider<const D: usize> {
    /// Takes the velocities before the solve, to find its own from them.
    fn prepare(&mut self, _problem: &Problem<'_, D>, _velocity: &[Field<f32>; D]) {}

    /// The tiles, if these are its bodies: their cells are no unknowns, and their faces no part of [`Self::add_bodies`].
    fn tiling(&self) -> Option<&Tiling<D>> {
        None
    }

    /// Adds its bodies to the assembled system.
    fn add_bodies(&mut self, _to: &mut CoupledSystem<'_, D>) {}

    /// Takes the solution: what it did to its bodies.
    fn respond(&mut self, solution: &Solution<'_, D>);

    /// Writes velocities to the faces that its bodies decide, after the pressure has changed all others, and pressures to cells
    /// that have none of their own.
    fn write_back(
        &self,
        _blocks: &Blocks<D>,
        _velocity: &mut [Field<f32>; D],
        _valid: &mut [FaceMask; D],
        _q: &mut Field<f64>,
    ) {
    }
}

/// A face that a body closes, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyFace {
    /// The cell whose low face it is.
    pub slot: u32,
    /// That cell inside its block.
    pub local: u32,
    /// The axis it lies across.
    pub axis: u8,
    /// The share of it that the body closes.
    pub share: f64,
}

/// An assembled system, for bodies to be added.
pub struct CoupledSystem<'a, const D: usize> {
    /// What the projection is about.
    pub problem: &'a Problem<'a, D>,
    label: &'a Field<Label>,
    gas: Option<&'a Field<bool>>,
    tiles: Option<&'a Tiling<D>>,
    couplings: &'a mut Couplings,
    rhs: &'a mut Field<f64>,
    shared_rhs: &'a mut [f64],
    /// How many bodies other providers added.
    first: usize,
    unknowns: Vec<Unknown>,
    forces: Vec<f64>,
}

impl<const D: usize> CoupledSystem<'_, D> {
    /// The unknown that a cell's pressure is: its own, that of its bubble, or none.
    pub fn unknown(&self, slot: usize, local: usize) -> Option<Unknown> {
        let own = Unknown::Cell((slot * block_cells(D) + local) as u32);
        match self.label.block(slot)[local] {
            _ if self.tiles.is_some_and(|tiles| masks::has(tiles.inside(slot), local)) => None,
            Label::Liquid => Some(own),
            Label::Air if self.gas.is_some_and(|gas| gas.block(slot)[local]) => Some(own),
            Label::Air => {
                let node = self.problem.roles.node_of(self.problem.roles.component.block(slot)[local])?;
                Some(Unknown::Shared(node as u32))
            }
            Label::Solid => None,
        }
    }

    /// Whether a cell is air, with a pressure or without.
    pub fn is_air(&self, slot: usize, local: usize) -> bool {
        self.label.block(slot)[local] == Label::Air
    }

    /// Whether a cell is liquid.
    pub fn is_liquid(&self, slot: usize, local: usize) -> bool {
        self.label.block(slot)[local] == Label::Liquid
    }

    /// Adds a body with the response `K`, which has as many rows as the body has motions, and with these velocities `v*` of them.
    /// `faces` are what it closes, each with the velocity across it of every motion (m/s per unit of that).
    pub fn add_body<'f>(
        &mut self,
        response: &DMatrix<f64>,
        velocity: &[f64],
        faces: impl IntoIterator<Item = (BodyFace, &'f [f64])>,
    ) {
        assert_eq!(response.nrows(), velocity.len(), "one velocity per motion");
        self.unknowns.clear();
        self.forces.clear();
        for (face, motion) in faces {
            let (slot, local, axis) = (face.slot as usize, face.local as usize, face.axis as usize);
            let (low_slot, low) = cell_below(self.problem.blocks, slot, local, axis);
            let flow = face.share * motion.iter().zip(velocity).map(|(c, v)| c * v).sum::<f64>();
            // What flows across it leaves the cell on its low side, and enters that on its high side.
            for (slot, local, sign) in [(low_slot, low, 1.0), (slot, local, -1.0)] {
                let Some(unknown) = self.unknown(slot, local) else { continue };
                match unknown {
                    Unknown::Cell(cell) => self.rhs[cell as usize] -= sign * flow,
                    Unknown::Shared(node) => self.shared_rhs[node as usize] -= sign * flow,
                }
                self.unknowns.push(unknown);
                self.forces.extend(motion.iter().map(|c| sign * face.share * c));
            }
        }
        self.couplings.push(response, &self.unknowns, &self.forces);
    }

    /// Ties bodies that were added, counted in that order, by rows. Returns how much faster each is on account of what the rows
    /// miss.
    pub fn tie(&mut self, mut rows: Vec<TieRow>) -> Vec<Vec<f64>> {
        rows.iter_mut().flat_map(|row| &mut row.parts).for_each(|(body, _)| *body += self.first);
        let changes = self.couplings.tie(&rows).split_off(self.first);
        let (rhs, shared_rhs) = (&mut *self.rhs, &mut *self.shared_rhs);
        for (body, change) in changes.iter().enumerate() {
            self.couplings.each_flow(self.first + body, change, |unknown, flow| match unknown {
                Unknown::Cell(cell) => rhs[cell as usize] -= flow,
                Unknown::Shared(node) => shared_rhs[node as usize] -= flow,
            });
        }
        changes
    }
}

/// The cell on the low side of a cell across an axis: its slot, and where it is there.
pub(super) fn cell_below<const D: usize>(
    blocks: &Blocks<D>,
    slot: usize,
    local: usize,
    axis: usize,
) -> (usize, usize) {
    let (low, is_beyond) = across(local, axis, Side::Low);
    (if is_beyond { blocks.beside(slot, axis, Side::Low) as usize } else { slot }, low)
}

/// A solution, as far as it concerns the bodies of one provider.
pub struct Solution<'a, const D: usize> {
    /// Scaled pressures of cells.
    pub q: &'a Field<f64>,
    /// Scaled pressures of bubbles.
    pub shared_q: &'a [f64],
    /// Velocity that gravity adds in this step, m/s.
    pub impulse: [Real; D],
    /// Width of cells, metres.
    pub dx: Real,
    couplings: &'a Couplings,
    /// How hard the pressures pull at bodies.
    pull: &'a [f64],
    first: usize,
}

fn value_of(q: &Field<f64>, shared_q: &[f64], unknown: Unknown) -> f64 {
    match unknown {
        Unknown::Cell(cell) => q[cell as usize],
        Unknown::Shared(node) => shared_q[node as usize],
    }
}

impl<const D: usize> Solution<'_, D> {
    /// `J q`: the impulse of the pressures on a body's motions. Bodies count in the order in which the provider added them.
    pub fn impulse_on(&self, body: usize) -> Vec<f64> {
        self.couplings.impulse(self.first + body, |unknown| value_of(self.q, self.shared_q, unknown))
    }

    /// `K J q`: how the velocities of its motions change, as the rows of the pressures saw it.
    pub fn change_of(&self, body: usize) -> Vec<f64> {
        self.couplings.change(self.first + body, self.pull)
    }
}

/// Takes the bodies of all providers into the assembled system. Returns where those of each begin.
pub(super) fn add_bodies<const D: usize>(
    problem: &Problem<'_, D>,
    providers: &mut [&mut dyn BodyProvider<D>],
    to: &mut Projection<D>,
) -> Vec<usize> {
    to.couplings.clear();
    let mut firsts = Vec::with_capacity(providers.len());
    for index in 0..providers.len() {
        let first = to.couplings.len();
        firsts.push(first);
        // Tiles come first, and add nothing here.
        let (before, provider) = providers.split_at_mut(index);
        let tiles = before.iter().find_map(|other| other.tiling());
        provider[0].add_bodies(&mut CoupledSystem {
            problem,
            label: &to.label,
            gas: to.mixed.then_some(&to.gas),
            tiles,
            couplings: &mut to.couplings,
            rhs: &mut to.rhs,
            shared_rhs: &mut to.shared_rhs,
            first,
            unknowns: Vec::new(),
            forces: Vec::new(),
        });
    }
    firsts
}

/// Hands the solution to all providers, and lets them write it back.
pub(super) fn write_back<const D: usize>(
    problem: &Problem<'_, D>,
    providers: &mut [&mut dyn BodyProvider<D>],
    firsts: &[usize],
    from: &Projection<D>,
    velocity: &mut [Field<f32>; D],
    valid: &mut [FaceMask; D],
    q: &mut Field<f64>,
) {
    let pull = from.couplings.pull(|unknown| value_of(q, &from.shared_q, unknown));
    for (provider, &first) in providers.iter_mut().zip(firsts) {
        let (shared_q, couplings, impulse) = (&from.shared_q, &from.couplings, problem.impulse);
        let dx = problem.blocks.grid().dx;
        provider.respond(&Solution { q, shared_q, impulse, dx, couplings, pull: &pull, first });
        provider.write_back(problem.blocks, velocity, valid, q);
    }
}

impl<const D: usize> BodyProvider<D> for Tiling<D> {
    fn prepare(&mut self, problem: &Problem<'_, D>, velocity: &[Field<f32>; D]) {
        self.fit(problem.blocks, velocity);
    }

    fn tiling(&self) -> Option<&Tiling<D>> {
        Some(self)
    }

    fn respond(&mut self, solution: &Solution<'_, D>) {
        Tiling::respond(self, solution.q, solution.impulse);
    }

    fn write_back(
        &self,
        blocks: &Blocks<D>,
        velocity: &mut [Field<f32>; D],
        _valid: &mut [FaceMask; D],
        q: &mut Field<f64>,
    ) {
        self.write(blocks, velocity);
        self.extend_pressures(blocks, q);
    }
}
