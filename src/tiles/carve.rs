//! Which cells make a tile.

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, SIDE, VOID};
use crate::linear::BodyPatch;
use crate::math::{AffineMotion, Sets, Side, power};

use super::boxes::{TileBox, TileSize, boxes};
use super::full_box;
use super::motion::Quadratic;
use super::shape::{BodyOnGrid, Piece, ShapeResponse};
use super::tiling::Tile;

/// Fewest cells of a tile along each axis: smaller ones are not worth their while.
const FEWEST: usize = 4;

/// The widest that a part may be and still move as one, in cells.
const WIDEST: i32 = 126;

/// Boxes that a connected part too wide for one tile is cut into.
const CUT: TileSize = TileSize { least: 64, most: 64 };

/// A tile before it is numbered among all.
pub(super) struct CarvedTile<const D: usize> {
    pub tile: Tile<D>,
    pub pieces: Vec<Piece>,
    pub shape_response: ShapeResponse,
    pub patches: [Vec<BodyPatch>; 3],
    /// Which of the tiles in its box it is; none if it lies in no box.
    pub in_box: Option<usize>,
}

/// Finds tiles in a fluid whose cells beyond the bands `deep` knows.
pub(super) struct Carver<'a, const D: usize, F> {
    pub blocks: &'a Blocks<D>,
    pub deep: F,
    /// Density over the liquid's.
    pub density: f64,
}

impl<const D: usize, F: Fn([i32; D]) -> Bits> Carver<'_, D, F> {
    /// The tiles of a box; `whole` is how it answers if nothing is missing.
    pub fn carve(&self, this: &TileBox<D>, whole: &ShapeResponse) -> Vec<CarvedTile<D>> {
        match self.whole_box(this) {
            Some(pieces) => vec![self.place(this, pieces, whole.with_density(self.density))],
            None => {
                let cells = this.blocks().map(|block| (block, this.seams(block)));
                let parts = self.parts(cells.map(|(block, seams)| {
                    let deep = (self.deep)(block);
                    (block, masks::without(&deep, &seams))
                }));
                let tiles = parts.into_iter().filter_map(|part| self.measure(part, Some(this)));
                tiles.enumerate().map(|(index, tile)| CarvedTile { in_box: Some(index), ..tile }).collect()
            }
        }
    }

    /// The connected parts of the given blocks, each a tile unless it is too wide for one.
    pub fn carve_whole(&self, blocks: impl Iterator<Item = [i32; D]>) -> Vec<CarvedTile<D>> {
        let mut found = Vec::new();
        for part in self.parts(blocks.map(|block| (block, (self.deep)(block)))) {
            let (low, high) = self.extent(&part);
            if (0..D).all(|k| high[k] - low[k] <= WIDEST) {
                found.extend(self.measure(part, None));
                continue;
            }
            let own = |block: [i32; D]| {
                let slot = self.blocks.slot_at(block);
                part.iter().find(|piece| piece.slot == slot).map_or(masks::NONE, |piece| piece.bits)
            };
            let coords = part.iter().map(|piece| self.blocks.coords(piece.slot as usize));
            for this in boxes(CUT, coords, |_| false) {
                let cells = this.blocks().map(|block| (block, own(block), this.seams(block)));
                let cells = cells.map(|(block, own, seams)| (block, masks::without(&own, &seams)));
                found.extend(self.parts(cells).into_iter().filter_map(|part| self.measure(part, None)));
            }
        }
        found
    }

    /// The pieces of a box all of whose cells but the seams are deep.
    fn whole_box(&self, this: &TileBox<D>) -> Option<Vec<Piece>> {
        let mut pieces = Vec::with_capacity(power(this.side as usize, D));
        for block in this.blocks() {
            let (slot, seams) = (self.blocks.slot_at(block), this.seams(block));
            let all = masks::all(D);
            let wanted: Bits = masks::without(&all, &seams);
            let deep = (self.deep)(block);
            if slot == VOID || (0..masks::words(D)).any(|word| wanted[word] & !deep[word] != 0) {
                return None;
            }
            pieces.push(Piece { slot, bits: wanted });
        }
        Some(pieces)
    }

    /// The connected parts of the given cells, block by block.
    fn parts(&self, cells: impl Iterator<Item = ([i32; D], Bits)>) -> Vec<Vec<Piece>> {
        let open = std::array::from_fn(|_| masks::all(D));
        let mut parts: Vec<Piece> = Vec::new();
        for (block, mut left) in cells {
            let slot = self.blocks.slot_at(block);
            if slot == VOID {
                continue;
            }
            while let Some(seed) = masks::first(&left) {
                let bits = masks::connected::<D>(seed, &left, &open);
                left.iter_mut().zip(bits).for_each(|(left, bits)| *left &= !bits);
                parts.push(Piece { slot, bits });
            }
        }
        let mut by_slot: Vec<usize> = (0..parts.len()).collect();
        by_slot.sort_by_key(|&part| parts[part].slot);
        let mut sets = Sets::default();
        sets.reset(parts.len());
        for a in 0..parts.len() {
            for axis in 0..D {
                let above = self.blocks.beside(parts[a].slot as usize, axis, Side::High);
                let own = masks::plane::<D>(&parts[a].bits, axis, Side::High);
                let first = by_slot.partition_point(|&part| parts[part].slot < above);
                for &b in by_slot[first..].iter().take_while(|&&part| parts[part].slot == above) {
                    if own & masks::plane::<D>(&parts[b].bits, axis, Side::Low) != 0 {
                        sets.join(a as u32, b as u32);
                    }
                }
            }
        }
        // Roots are the lowest of their part: parts come in the order of their first pieces.
        let mut whole: Vec<Vec<Piece>> = Vec::new();
        let mut number = vec![0; parts.len()];
        for part in 0..parts.len() {
            let root = sets.find(part as u32) as usize;
            if root == part {
                number[part] = whole.len();
                whole.push(Vec::new());
            }
            add_piece(&mut whole[number[root]], parts[part]);
        }
        whole
    }

    /// The box around some pieces, in cells.
    fn extent(&self, pieces: &[Piece]) -> ([i32; D], [i32; D]) {
        let (mut low, mut high) = ([i32::MAX; D], [i32::MIN; D]);
        for piece in pieces {
            let first = self.blocks.first_cell(piece.slot as usize);
            let (from, to) = masks::extent::<D>(&piece.bits);
            for k in 0..D {
                low[k] = low[k].min(first[k] + from[k] as i32);
                high[k] = high[k].max(first[k] + to[k] as i32);
            }
        }
        (low, high)
    }

    /// A tile from its cells, unless it is too small or too thin.
    fn measure(&self, pieces: Vec<Piece>, this: Option<&TileBox<D>>) -> Option<CarvedTile<D>> {
        let cells = pieces.iter().map(|piece| masks::count(&piece.bits)).sum::<usize>();
        if cells < power(FEWEST, D) {
            return None;
        }
        let (low, high) = self.extent(&pieces);
        let origin = match this {
            Some(this) => this.middle(self.blocks),
            None => std::array::from_fn(|k| (low[k] + high[k]).div_euclid(2)),
        };
        let faces = BodyOnGrid::new(self.blocks, &pieces, origin).count();
        let shape_response = ShapeResponse::new::<D>(&faces, self.density)?;
        let tile = self.tile(low, high, origin, cells);
        Some(CarvedTile { tile, pieces, shape_response, patches: faces.patches, in_box: None })
    }

    /// A tile that fills its box.
    fn place(&self, this: &TileBox<D>, pieces: Vec<Piece>, shape_response: ShapeResponse) -> CarvedTile<D> {
        let first = self.blocks.grid().first_cell(this.low);
        let width = this.side as usize * SIDE;
        let (low, high) = (first.map(|c| c + 1), first.map(|c| c + width as i32));
        let tile = self.tile(low, high, this.middle(self.blocks), power(width - 1, D));
        CarvedTile {
            tile,
            pieces,
            shape_response,
            patches: full_box::patches(self.blocks, this),
            in_box: Some(0),
        }
    }

    fn tile(&self, low: [i32; D], high: [i32; D], origin: [i32; D], cells: usize) -> Tile<D> {
        Tile {
            id: 0,
            low,
            high,
            origin,
            motion: AffineMotion::default(),
            cells,
            density: self.density,
            pressure: Quadratic::default(),
            surface: [[0.0; 4]; 4],
            pieces: 0..0,
        }
    }
}

/// Adds cells to a part, joined with those in the same block.
fn add_piece(part: &mut Vec<Piece>, new: Piece) {
    match part.iter_mut().find(|piece| piece.slot == new.slot) {
        Some(piece) => piece.bits.iter_mut().zip(new.bits).for_each(|(piece, bits)| *piece |= bits),
        None => part.push(new),
    }
}
