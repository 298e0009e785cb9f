//! Tiles: where they are, and what the solver is to know about them.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::geometry::{Boundary, Label};
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, Field, SIDE, Slots, VOID};
use crate::linear::{Bodies, Body, BodyFace, Moments};
use crate::math::{Side, power};

use super::bands::Bands;
use super::boxes::{Box, TileSize, boxes};
use super::motion::Quadratic;
use super::shape::{Answer, Around, Piece};
use super::whole;

/// Where tiles may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRules {
    /// How large.
    pub size: TileSize,
    /// Layers of ordinary cells below every surface.
    pub surface_band: usize,
    /// Layers of ordinary cells at every wall, moving or not.
    pub wall_band: usize,
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
    /// Its velocity field: per axis the velocity at the origin, m/s, and its change per cell along each axis.
    pub field: Moments,
    /// How many cells.
    pub cells: usize,
    pub(super) pressure: Quadratic,
    pub(super) pieces: std::ops::Range<usize>,
}

/// All tiles of a step.
#[derive(Clone, Debug)]
pub struct Tiling<const D: usize> {
    /// The tiles.
    pub tiles: Vec<Tile<D>>,
    bands: Bands,
    inside: Field<Bits>,
    pub(super) pieces: Vec<Piece>,
    pub(super) bodies: Vec<Body>,
    pub(super) faces: Vec<BodyFace>,
    /// How boxes without any cell missing answer, by their size in blocks.
    whole: HashMap<i32, Answer>,
    width: usize,
}

/// Tiles with fewer cells than so many along each axis are not worth their while.
const FEWEST: usize = 4;

/// Boxes have so many colours; several tiles in one box take further ones, up to so many. What is left stays ordinary.
const BOX_COLOURS: u8 = 32;
const MOST_IN_BOX: usize = 7;

/// A tile before it is numbered among all.
struct Found<const D: usize> {
    tile: Tile<D>,
    pieces: Vec<Piece>,
    answer: Answer,
    faces: [Vec<BodyFace>; 3],
    colour: u8,
}

impl<const D: usize> Tiling<D> {
    /// No tiles.
    pub fn new() -> Self {
        Tiling {
            tiles: Vec::new(),
            bands: Bands::default(),
            inside: Field::new(1, masks::NONE),
            pieces: Vec::new(),
            bodies: Vec::new(),
            faces: Vec::new(),
            whole: HashMap::new(),
            width: 0,
        }
    }

    /// Lays out the tiles in the deep interior of the labelled liquid.
    pub fn update(
        &mut self,
        blocks: &Blocks<D>,
        boundary: &Boundary<D>,
        label: &Field<Label>,
        live: &Slots,
        rules: &TileRules,
    ) {
        self.bands.find(blocks, boundary, label, live, rules);
        self.inside.resize(blocks.slot_count());
        self.inside.as_mut_slice().fill(masks::NONE);
        self.width = rules.size.most;
        let bands = &self.bands;
        let deep = |block: [i32; D]| bands.deep(bands.place[blocks.slot_at(block) as usize] as usize);
        let candidates = live.as_slice().iter().enumerate();
        let candidates = candidates.filter(|(index, _)| bands.deep(index + 1) != masks::NONE);
        let candidates = candidates.map(|(_, &slot)| blocks.coords(slot as usize));
        let boxes = boxes(rules.size, candidates, |block| deep(block) == masks::all(D));
        for &this in &boxes {
            self.whole.entry(this.side).or_insert_with(|| whole::answer::<D>(this.side));
        }
        let whole = &self.whole;
        let found: Vec<Vec<Found<D>>> = boxes
            .par_iter()
            .with_min_len(1)
            .map(|this| match whole_box(blocks, this, &deep) {
                Some(pieces) => vec![place(blocks, this, pieces, whole[&this.side])],
                None => broken_box(blocks, this, &deep),
            })
            .collect();
        self.number(found.into_iter().flatten());
    }

    fn number(&mut self, found: impl Iterator<Item = Found<D>>) {
        self.tiles.clear();
        self.pieces.clear();
        self.bodies.clear();
        self.faces.clear();
        for Found { mut tile, pieces, answer, faces, colour } in found {
            tile.id = tile
                .origin
                .iter()
                .fold(u64::from(colour / BOX_COLOURS), |id, &c| id << 16 | (c as u64 & 0xffff));
            tile.pieces = self.pieces.len()..self.pieces.len() + pieces.len();
            for piece in &pieces {
                let inside = &mut self.inside[piece.slot as usize];
                inside.iter_mut().zip(piece.bits).for_each(|(inside, bits)| *inside |= bits);
            }
            self.pieces.extend(pieces);
            let mut start = [self.faces.len() as u32; 4];
            for (axis, faces) in faces.iter().enumerate() {
                self.faces.extend_from_slice(faces);
                start[axis + 1] = self.faces.len() as u32;
            }
            let Answer { response, bound } = answer;
            self.bodies.push(Body { faces: start, response, colour, bound });
            self.tiles.push(tile);
        }
    }

    /// The tiles as bodies.
    pub fn bodies(&self) -> Bodies<'_> {
        Bodies { inside: &self.inside, list: &self.bodies, faces: &self.faces, width: self.width }
    }

    /// How many cells lie in tiles.
    pub fn cells(&self) -> usize {
        self.tiles.iter().map(|tile| tile.cells).sum()
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

/// The origin of a box: its middle, in cells.
fn origin<const D: usize>(blocks: &Blocks<D>, this: &Box<D>) -> [i32; D] {
    blocks.grid().first_cell(this.low).map(|first| first + this.side * SIDE as i32 / 2)
}

/// The pieces of a box all of whose cells but the seams are deep.
fn whole_box<const D: usize>(
    blocks: &Blocks<D>,
    this: &Box<D>,
    deep: &impl Fn([i32; D]) -> Bits,
) -> Option<Vec<Piece>> {
    let mut pieces = Vec::with_capacity(power(this.side as usize, D));
    for block in this.blocks() {
        let (slot, seams) = (blocks.slot_at(block), this.seams(block));
        let all = masks::all(D);
        let wanted: Bits = std::array::from_fn(|word| all[word] & !seams[word]);
        let deep = deep(block);
        if slot == VOID || (0..masks::words(D)).any(|word| wanted[word] & !deep[word] != 0) {
            return None;
        }
        pieces.push(Piece { slot, bits: wanted });
    }
    Some(pieces)
}

/// The connected parts of what is deep in a box.
fn broken_box<const D: usize>(
    blocks: &Blocks<D>,
    this: &Box<D>,
    deep: &impl Fn([i32; D]) -> Bits,
) -> Vec<Found<D>> {
    let open = std::array::from_fn(|_| masks::all(D));
    let mut parts: Vec<Piece> = Vec::new();
    for block in this.blocks() {
        let (slot, seams) = (blocks.slot_at(block), this.seams(block));
        if slot == VOID {
            continue;
        }
        let mut left = deep(block);
        left.iter_mut().zip(seams).for_each(|(left, seams)| *left &= !seams);
        while let Some(seed) = masks::first(&left) {
            let bits = masks::connected::<D>(seed, &left, &open);
            left.iter_mut().zip(bits).for_each(|(left, bits)| *left &= !bits);
            parts.push(Piece { slot, bits });
        }
    }
    let mut set: Vec<usize> = (0..parts.len()).collect();
    for a in 0..parts.len() {
        for axis in 0..D {
            let above = blocks.beside(parts[a].slot as usize, axis, Side::High);
            let own = masks::plane::<D>(&parts[a].bits, axis, true);
            for b in 0..parts.len() {
                if parts[b].slot == above && own & masks::plane::<D>(&parts[b].bits, axis, false) != 0 {
                    let (from, to) = (set[a].max(set[b]), set[a].min(set[b]));
                    set.iter_mut().filter(|root| **root == from).for_each(|root| *root = to);
                }
            }
        }
    }
    let mut roots = set.clone();
    roots.sort_unstable();
    roots.dedup();
    let regions = roots
        .into_iter()
        .map(|root| merge(parts.iter().zip(&set).filter(|(_, r)| **r == root).map(|(p, _)| *p)));
    let tiles = regions.filter_map(|pieces| measure(blocks, this, pieces)).take(MOST_IN_BOX).enumerate();
    tiles.map(|(index, tile)| Found { colour: tile.colour + index as u8 * BOX_COLOURS, ..tile }).collect()
}

/// Joins pieces in the same block.
fn merge(parts: impl Iterator<Item = Piece>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for part in parts {
        match pieces.iter_mut().find(|piece| piece.slot == part.slot) {
            Some(piece) => piece.bits.iter_mut().zip(part.bits).for_each(|(piece, bits)| *piece |= bits),
            None => pieces.push(part),
        }
    }
    pieces
}

/// A tile from its cells, unless it is too small or too thin.
fn measure<const D: usize>(blocks: &Blocks<D>, this: &Box<D>, pieces: Vec<Piece>) -> Option<Found<D>> {
    let cells = pieces.iter().flat_map(|piece| piece.bits).map(u64::count_ones).sum::<u32>() as usize;
    if cells < power(FEWEST, D) {
        return None;
    }
    let (mut low, mut high) = ([i32::MAX; D], [i32::MIN; D]);
    for piece in &pieces {
        let first = blocks.first_cell(piece.slot as usize);
        for local in masks::each(&piece.bits) {
            let at = crate::math::unflatten::<D>(local, SIDE);
            for k in 0..D {
                low[k] = low[k].min(first[k] + at[k] as i32);
                high[k] = high[k].max(first[k] + at[k] as i32 + 1);
            }
        }
    }
    let origin = origin(blocks, this);
    let faces = Around { blocks, pieces: &pieces, origin }.count();
    let answer = Answer::new::<D>(&faces, 1.0)?;
    let tile = Tile {
        id: 0,
        low,
        high,
        origin,
        field: [[0.0; 4]; 3],
        cells,
        pressure: Quadratic::default(),
        pieces: 0..0,
    };
    Some(Found { tile, pieces, answer, faces: faces.list, colour: this.colour() })
}

/// A tile that fills its box.
fn place<const D: usize>(blocks: &Blocks<D>, this: &Box<D>, pieces: Vec<Piece>, answer: Answer) -> Found<D> {
    let first = blocks.grid().first_cell(this.low);
    let width = this.side as usize * SIDE;
    let tile = Tile {
        id: 0,
        low: first.map(|c| c + 1),
        high: first.map(|c| c + width as i32),
        origin: origin(blocks, this),
        field: [[0.0; 4]; 3],
        cells: power(width - 1, D),
        pressure: Quadratic::default(),
        pieces: 0..0,
    };
    Found { tile, pieces, answer, faces: whole::faces(blocks, this), colour: this.colour() }
}
