//! Tiles: where they are, and what the solver is to know about them.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::geometry::{Boundary, Label};
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, CellSet, Field, Slots};
use crate::linear::{Bodies, Body, BodyPatch};
use crate::math::{AffineMotion, Side};

use super::bands::{Bands, CellRole};
use super::boxes::{TileSize, boxes};
use super::carve::{CarvedTile, Carver};
use super::contacts::Contacts;
use super::full_box;
use super::interior::Interior;
use super::motion::Quadratic;
use super::shape::{Piece, ShapeResponse};

/// How the deep interior of a fluid is divided into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Division {
    /// By a lattice.
    Lattice(TileSize),
    /// Not at all: every connected part moves as one, unless it is too large for that.
    Whole,
}

/// A fluid that may have tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fluid {
    /// The liquid.
    Liquid,
    /// Air that has mass.
    Gas,
}

impl Fluid {
    /// Both fluids.
    pub const BOTH: [Fluid; 2] = [Fluid::Liquid, Fluid::Gas];
}

/// Where tiles may be in a fluid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TileRules {
    /// How large.
    pub division: Division,
    /// Layers of ordinary cells inside every surface.
    pub surface_band: usize,
    /// Layers of ordinary cells at every wall, moving or not.
    pub wall_band: usize,
    /// Density over the liquid's.
    pub density: f64,
}

/// The grid as it is at the moment.
#[derive(Clone, Copy)]
pub struct TileDomain<'a, const D: usize> {
    /// Where.
    pub blocks: &'a Blocks<D>,
    /// The walls.
    pub boundary: &'a Boundary<D>,
    /// Blocks that hold unknowns.
    pub live: &'a Slots,
}

/// One tile.
#[derive(Clone, Debug)]
pub struct Tile<const D: usize> {
    /// Says which box of the lattice it lies in, and which of the tiles there it is: the same from step to step.
    pub id: u64,
    /// First cell of the box around it.
    pub low: [i32; D],
    /// One past its last cell.
    pub high: [i32; D],
    /// The lattice corner that offsets are counted from, in cells.
    pub origin: [i32; D],
    /// Its velocity, m/s, and the change per cell.
    pub motion: AffineMotion,
    /// How many cells.
    pub cells: usize,
    /// Density over the liquid's.
    pub density: f64,
    pub(super) pressure: Quadratic,
    /// Products of (1, x, y, z) summed over the faces at its surface, x from the origin in cells.
    pub(super) surface: [[f64; 4]; 4],
    pub(super) pieces: std::ops::Range<usize>,
}

/// All tiles of a step.
#[derive(Clone, Debug)]
pub struct Tiling<const D: usize> {
    /// The tiles, those of liquid first.
    pub tiles: Vec<Tile<D>>,
    /// How many are of liquid.
    pub(super) of_liquid: usize,
    /// The motions of the step before, by id.
    pub(super) before: HashMap<u64, AffineMotion>,
    /// Bands of the liquid, and of air that has mass.
    bands: [Bands; 2],
    pub(super) inside: Field<Bits>,
    pub(super) interior: Interior,
    pub(super) pieces: Vec<Piece>,
    pub(super) bodies: Vec<Body>,
    pub(super) patches: Vec<BodyPatch>,
    pub(super) contacts: Contacts,
    /// How boxes without any cell missing shape_response, by their size in blocks.
    whole: HashMap<i32, ShapeResponse>,
}

/// Marks the ids of tiles that lie in no box.
const NO_BOX: u64 = 1 << 63;

impl<const D: usize> Tiling<D> {
    /// No tiles.
    pub fn new() -> Self {
        Tiling {
            tiles: Vec::new(),
            of_liquid: 0,
            before: HashMap::new(),
            bands: Default::default(),
            inside: Field::new(1, masks::NONE),
            interior: Interior::new(),
            pieces: Vec::new(),
            bodies: Vec::new(),
            patches: Vec::new(),
            contacts: Contacts::default(),
            whole: HashMap::new(),
        }
    }

    /// No tiles on these blocks so far. How those before moved is kept.
    pub fn clear(&mut self, blocks: &Blocks<D>) {
        self.before.clear();
        self.before.extend(self.tiles.drain(..).map(|tile| (tile.id, tile.motion)));
        self.of_liquid = 0;
        self.bands.iter_mut().for_each(Bands::clear);
        self.pieces.clear();
        self.bodies.clear();
        self.patches.clear();
        self.inside.resize(blocks.slot_count());
        self.inside.as_mut_slice().fill(masks::NONE);
    }

    /// Lays out tiles in the deep interior of the labelled liquid, before any of air.
    pub fn add_liquid(&mut self, domain: &TileDomain<'_, D>, label: &Field<Label>, rules: &TileRules) {
        let own = |slot: usize| masks::bits_of(label.block(slot), |label| label == Label::Liquid);
        let other = |slot: usize| masks::bits_of(label.block(slot), |label| label == Label::Air);
        self.bands[Fluid::Liquid as usize].find(domain, own, other, rules);
        self.add(domain, rules, Fluid::Liquid);
        self.of_liquid = self.tiles.len();
    }

    /// Lays out tiles in the deep interior of the air that has mass: the cells that `gas` names.
    pub fn add_gas(
        &mut self,
        domain: &TileDomain<'_, D>,
        label: &Field<Label>,
        gas: &Field<bool>,
        rules: &TileRules,
    ) {
        let own = |slot: usize| masks::bits_of(gas.block(slot), |gas| gas);
        let other = |slot: usize| {
            let (open, own) = (masks::bits_of(label.block(slot), |label| label != Label::Solid), own(slot));
            masks::without(&open, &own)
        };
        self.bands[Fluid::Gas as usize].find(domain, own, other, rules);
        self.add(domain, rules, Fluid::Gas);
    }

    /// Finds the cells of liquid beyond its bands, by `margin` cells in every direction at least. Seams
    /// between tiles are among them.
    pub fn find_core(&self, blocks: &Blocks<D>, margin: usize, core: &mut CellSet) {
        let bands = &self.bands[Fluid::Liquid as usize];
        core.fill(blocks, |slot| match bands.place[slot] as usize {
            0 => masks::NONE,
            place => bands.deep(place),
        });
        core.shrink(blocks, margin);
    }

    /// Lays out tiles beyond the bands of a fluid.
    fn add(&mut self, domain: &TileDomain<'_, D>, rules: &TileRules, fluid: Fluid) {
        let (blocks, bands) = (domain.blocks, &self.bands[fluid as usize]);
        let deep = |block: [i32; D]| bands.deep(bands.place[blocks.slot_at(block) as usize] as usize);
        let candidates = domain.live.as_slice().iter().enumerate();
        let candidates = candidates.filter(|(index, _)| bands.deep(index + 1) != masks::NONE);
        let candidates = candidates.map(|(_, &slot)| blocks.coords(slot as usize));
        let carver = Carver { blocks, deep, density: rules.density };
        let found = match rules.division {
            Division::Lattice(size) => {
                let boxes = boxes(size, candidates, |block| bands.is_calm(blocks.slot_at(block)));
                for &this in &boxes {
                    self.whole.entry(this.side).or_insert_with(|| full_box::response::<D>(this.side));
                }
                let whole = &self.whole;
                boxes.par_iter().with_min_len(1).map(|this| carver.carve(this, &whole[&this.side])).collect()
            }
            Division::Whole => vec![carver.carve_whole(candidates)],
        };
        let found: Vec<Vec<CarvedTile<D>>> = found;
        self.number(found.into_iter().flatten());
    }

    fn number(&mut self, found: impl Iterator<Item = CarvedTile<D>>) {
        let mut boxless = 0;
        for CarvedTile { mut tile, pieces, shape_response, patches, in_box } in found {
            tile.id = match in_box {
                Some(index) => tile.origin.iter().fold(index as u64, |id, &c| id << 16 | (c as u64 & 0xffff)),
                None => {
                    boxless += 1;
                    NO_BOX | boxless
                }
            };
            tile.pieces = self.pieces.len()..self.pieces.len() + pieces.len();
            for piece in &pieces {
                let inside = &mut self.inside[piece.slot as usize];
                inside.iter_mut().zip(piece.bits).for_each(|(inside, bits)| *inside |= bits);
            }
            self.pieces.extend(pieces);
            let mut start = [self.patches.len() as u32; 4];
            for (axis, patches) in patches.iter().enumerate() {
                self.patches.extend_from_slice(patches);
                start[axis + 1] = self.patches.len() as u32;
            }
            let ShapeResponse { response, bound, surface } = shape_response;
            tile.surface = surface;
            let width = (0..D).map(|k| tile.high[k] - tile.low[k]).max().unwrap_or(0) as u32;
            self.bodies.push(Body { patches: start, width, response, bound });
            self.tiles.push(tile);
        }
    }

    /// Calls `each(slot, cells)` for the parts of tiles in every block.
    pub fn for_each_piece(&self, mut each: impl FnMut(usize, &Bits)) {
        self.pieces.iter().for_each(|piece| each(piece.slot as usize, &piece.bits));
    }

    /// The tiles as bodies; `whole` is a whole link of the liquid around them.
    /// The cells around them are `known` as far as [`Self::left_in`] told, and of the same fluid as they if there is
    /// but `one_fluid`.
    pub fn bodies<'a>(&'a self, whole: f32, known: &'a Field<Option<Bits>>, one_fluid: bool) -> Bodies<'a> {
        let inside = one_fluid.then_some(&self.inside);
        Bodies { list: &self.bodies, patches: &self.patches, whole, known, inside }
    }

    /// Cells of a `fluid` that tiles leave of a block, and that touch others that they leave, in or beside it. That
    /// makes them unknowns if all faces between them are open; `fluid(slot)` are the cells of a block that are of the
    /// fluid.
    pub fn left_in(&self, blocks: &Blocks<D>, slot: usize, fluid: impl Fn(usize) -> Bits) -> Bits {
        let left = |slot: usize| masks::without(&fluid(slot), &self.inside[slot]);
        let (here, mut touching) = (left(slot), masks::NONE);
        for axis in 0..D {
            for side in Side::BOTH {
                let beyond = left(blocks.beside(slot, axis, side) as usize);
                touching = masks::or(&touching, &masks::beside::<D>(&here, axis, side, &beyond));
            }
        }
        masks::and(&here, &touching)
    }

    /// How many cells lie in tiles.
    pub fn cells(&self) -> usize {
        self.tiles.iter().map(|tile| tile.cells).sum()
    }

    /// What a stored cell is to the pressure solve, and which fluid it is of; `None` if that fluid has no tiles.
    pub fn role(&self, slot: usize, local: usize) -> Option<(Fluid, CellRole)> {
        let role = |fluid: Fluid| self.bands[fluid as usize].role(slot, local, &self.inside[slot]);
        Fluid::BOTH.into_iter().find_map(|fluid| role(fluid).map(|role| (fluid, role)))
    }

    /// Cells of a block that lie in tiles.
    pub fn inside(&self, slot: usize) -> &Bits {
        &self.inside[slot]
    }
}

impl<const D: usize> Default for Tiling<D> {
    fn default() -> Self {
        Self::new()
    }
}
