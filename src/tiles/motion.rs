//! From face velocities to the affine fields of tiles, and back.

use macro_rules_attribute::apply;
use rayon::prelude::*;

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, DisjointMut, Field, SIDE, block_cells};
use crate::math::{AffineMotion, Side, simd, unflatten};

use super::contacts::Contact;
use super::shape::{Piece, twice_to_face};
use super::tiling::{Tile, Tiling};

impl<const D: usize> Tiling<D> {
    /// Sets every tile's field to the one closest to the velocities on all its faces, in kinetic energy (CBAR eq. 24).
    /// Interior faces count as much as those at its surface: so fitting and solving are together one projection.
    /// Afterwards [`Self::each_tile_face`] tells what flows through the surfaces.
    pub fn fit(&mut self, blocks: &Blocks<D>, velocity: &[Field<f32>; D]) {
        let (pieces, bodies, patches) = (&self.pieces, &self.bodies, &self.patches);
        self.tiles.par_iter_mut().zip(bodies).for_each(|(tile, body)| {
            let mut sums = [[0.0; 4]; 3];
            for axis in 0..D {
                let mut add = |slot: u32, faces: &Bits, corner: [f64; 3]| {
                    let own = add_velocities(velocity[axis].block(slot as usize), faces);
                    add_moments::<D>(&own, corner, 1.0, &mut sums[axis]);
                };
                for piece in &pieces[tile.pieces.clone()] {
                    add(piece.slot, &piece.bits, corner_of(blocks, tile, piece, axis));
                }
                // Low faces of the tile's cells were counted with their cells; high ones belong to the cell beyond.
                for patch in body.across(axis, patches).iter().filter(|patch| patch.side == Side::Low) {
                    add(patch.slot, &patch.cells, patch.corner());
                }
            }
            // The response is one to forces, the sums are of velocities.
            tile.motion = AffineMotion::from(body.response.apply::<D>(&sums)).scaled(tile.density);
        });
        self.contacts.find::<D>(&self.bodies, &self.patches, blocks.slot_count());
    }

    /// Calls `each` for the faces between tiles and the cells of a block, tile by tile and axis by axis.
    pub fn each_tile_face(&self, slot: usize, mut each: impl FnMut(TileFaces<'_, D>)) {
        for &Contact { tile, axis, patch } in self.contacts.of(slot) {
            let (tile, patch, axis) =
                (&self.tiles[tile as usize], &self.patches[patch as usize], axis as usize);
            let (row, corner) = (tile.motion.row(axis), patch.corner());
            each(TileFaces { axis, side: patch.side, cells: &patch.cells, row, corner });
        }
    }

    /// Adds to the fields what the pressures around them and a uniform impulse do: `v + K J q` (CBAR eq. 22).
    pub fn respond(&mut self, q: &Field<f64>, impulse: [f64; D]) {
        let (bodies, patches) = (&self.bodies, &self.patches);
        self.tiles.par_iter_mut().zip(bodies).for_each(|(tile, body)| {
            let (mut forces, mut sum) = ([[0.0; 4]; 3], 0.0);
            for axis in 0..D {
                for patch in body.across(axis, patches) {
                    let own = add_pressures(q.block(patch.slot as usize), &patch.cells);
                    sum += add_moments::<D>(&own, patch.corner(), patch.sign(), &mut forces[axis]);
                }
            }
            let change = AffineMotion::from(body.response.apply::<D>(&forces));
            tile.pressure = extended_pressure(tile, &change, sum);
            tile.motion.accelerate(&change, &impulse);
        });
    }

    /// Writes pressures to the cells of the tiles. They have none of their own, but the next step may find an ordinary
    /// cell there, which then starts from a good guess; and pictures show no holes.
    pub fn extend_pressures(&self, blocks: &Blocks<D>, q: &mut Field<f64>) {
        let out = DisjointMut::new(q.as_mut_slice());
        self.tiles.par_iter().for_each(|tile| {
            for piece in &self.pieces[tile.pieces.clone()] {
                let first = blocks.first_cell(piece.slot as usize);
                let start = piece.slot as usize * block_cells(D);
                for (row, bits) in rows_of::<D>(&piece.bits) {
                    let at = unflatten::<D>(row * SIDE, SIDE);
                    let mut x: [f64; D] =
                        std::array::from_fn(|k| f64::from(first[k] + at[k] as i32 - tile.origin[k]) + 0.5);
                    for lane in 0..SIDE {
                        if bits >> lane & 1 == 1 {
                            // SAFETY: the block is stored, and this tile alone writes to its own cells.
                            unsafe { *out.at(start + row * SIDE + lane) = tile.pressure.at(&x) };
                        }
                        x[0] += 1.0;
                    }
                }
            }
        });
    }

    /// Writes the fields to all faces of the tiles.
    pub fn write(&self, blocks: &Blocks<D>, velocity: &mut [Field<f32>; D]) {
        let out = velocity.each_mut().map(|field| DisjointMut::new(field.as_mut_slice()));
        self.tiles.par_iter().zip(&self.bodies).for_each(|(tile, body)| {
            for axis in 0..D {
                // SAFETY: blocks are stored, and this tile alone writes to the low faces of its own cells and to the
                // faces on their high sides.
                let write = |slot, faces: &Bits, corner| unsafe {
                    write_block::<D>(tile.motion.row(axis), slot, faces, corner, &out[axis]);
                };
                for piece in &self.pieces[tile.pieces.clone()] {
                    write(piece.slot, &piece.bits, corner_of(blocks, tile, piece, axis));
                }
                for patch in body.across(axis, &self.patches).iter().filter(|patch| patch.side == Side::Low) {
                    write(patch.slot, &patch.cells, patch.corner());
                }
            }
        });
    }
}

/// Faces between a tile and cells of a block, across an axis.
pub struct TileFaces<'a, const D: usize> {
    /// The axis.
    pub axis: usize,
    /// The side of the cells that the tile lies on.
    pub side: Side,
    /// The cells.
    pub cells: &'a Bits,
    row: &'a [f64; 4],
    corner: [f64; 3],
}

impl<const D: usize> TileFaces<'_, D> {
    /// The tile's velocity on the faces of a row, m/s.
    #[inline(always)]
    pub fn velocity(&self, row: usize) -> [f64; SIDE] {
        values_in_row::<D>(self.row, self.corner, row)
    }
}

/// A quadratic function: the pressure whose gradient changes a tile's velocity the way it changed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Quadratic {
    constant: f64,
    slope: [f64; 3],
    curve: [[f64; 3]; 3],
}

impl Quadratic {
    fn at<const D: usize>(&self, x: &[f64; D]) -> f64 {
        let bend = |k: usize| (0..D).map(|l| self.curve[k][l] * x[l]).sum::<f64>();
        self.constant + (0..D).map(|k| x[k] * (self.slope[k] + 0.5 * bend(k))).sum::<f64>()
    }
}

/// The pressure inside a tile, from how its velocity changes and from the `sum` of pressures around it. A rotation has
/// no potential and is left out.
fn extended_pressure<const D: usize>(tile: &Tile<D>, change: &AffineMotion, sum: f64) -> Quadratic {
    let mut pressure = Quadratic::default();
    for k in 0..D {
        pressure.slope[k] = -tile.density * change.velocity(k);
        for l in 0..D {
            pressure.curve[k][l] = -0.5 * tile.density * (change.slope(k, l) + change.slope(l, k));
        }
    }
    // On average over its surface it is what cells there have: half a cell away from their faces, but that averages
    // out.
    let (mut own, products) = (0.0, &tile.surface);
    for k in 0..D {
        own += pressure.slope[k] * products[0][k + 1];
        own += (0..D).map(|l| 0.5 * pressure.curve[k][l] * products[k + 1][l + 1]).sum::<f64>();
    }
    pressure.constant = (sum - own) / products[0][0].max(1.0);
    pressure
}

/// Offset of the low face across an axis of a block's first cell from the tile's origin, in cells.
pub(super) fn corner_of<const D: usize>(
    blocks: &Blocks<D>,
    tile: &Tile<D>,
    piece: &Piece,
    axis: usize,
) -> [f64; 3] {
    let first = blocks.first_cell(piece.slot as usize);
    twice_to_face(first, tile.origin, axis, Side::Low).map(|twice| 0.5 * f64::from(twice))
}

/// Rows that have any cell: number and cells.
fn rows_of<const D: usize>(cells: &Bits) -> impl Iterator<Item = (usize, u8)> {
    let layers = cells.iter().enumerate().filter(|(_, word)| **word != 0);
    layers.flat_map(|(layer, word)| {
        let rows = word.to_le_bytes().into_iter().enumerate().filter(|(_, bits)| *bits != 0);
        rows.map(move |(row, bits)| (SIDE * layer + row, bits))
    })
}

/// Sums of values in some places of a block and of these times x, y and z, counted from the block's first place.
fn sums_of_lanes(lanes: &[[f64; SIDE]; 3]) -> [f64; 4] {
    let along_x = lanes[0].iter().enumerate().map(|(x, sum)| x as f64 * sum).sum::<f64>();
    let [sum, along_y, along_z] = lanes.map(|lanes| lanes.iter().sum::<f64>());
    [sum, along_x, along_y, along_z]
}

/// Adds `sign` times such sums, counted from where the block's first place is at `corner`. Returns that of the values.
fn add_moments<const D: usize>(
    lanes: &[[f64; SIDE]; 3],
    corner: [f64; 3],
    sign: f64,
    moments: &mut [f64; 4],
) -> f64 {
    let own = sums_of_lanes(lanes);
    moments[0] += sign * own[0];
    (0..D).for_each(|k| moments[k + 1] += sign * (own[k + 1] + corner[k] * own[0]));
    own[0]
}

/// For some places of a block, by lane: sums of values, and of these times y and z.
macro_rules! add_rows {
    ($name:ident, $number:ty) => {
        #[apply(simd)]
        fn $name(block: &[$number], places: &Bits) -> [[f64; SIDE]; 3] {
            let [mut sum, mut along_y, mut along_z] = [[0.0f64; SIDE]; 3];
            let layers = block.as_chunks::<{ SIDE * SIDE }>().0;
            for (z, (layer, &word)) in layers.iter().zip(places).enumerate() {
                if word == 0 {
                    continue;
                }
                let mut in_layer = [0.0f64; SIDE];
                for (y, values) in layer.as_chunks::<SIDE>().0.iter().enumerate() {
                    let (bits, mut own) = (word >> (SIDE * y), values.map(f64::from));
                    if word != u64::MAX {
                        for x in 0..SIDE {
                            own[x] = if bits >> x & 1 == 1 { own[x] } else { 0.0 };
                        }
                    }
                    for x in 0..SIDE {
                        in_layer[x] += own[x];
                    }
                    for x in 0..SIDE {
                        along_y[x] += y as f64 * own[x];
                    }
                }
                for x in 0..SIDE {
                    sum[x] += in_layer[x];
                }
                for x in 0..SIDE {
                    along_z[x] += z as f64 * in_layer[x];
                }
            }
            [sum, along_y, along_z]
        }
    };
}
add_rows!(add_velocities, f32);
add_rows!(add_pressures, f64);

/// A component of a tile's velocity on a row of faces, in a block whose first one is at `corner`. What it is at a face
/// does not depend on the block that the face is counted from, to the last bit.
#[inline(always)]
fn values_in_row<const D: usize>(field: &[f64; 4], corner: [f64; 3], row: usize) -> [f64; SIDE] {
    let at = unflatten::<D>(row * SIDE, SIDE);
    let aside = (1..D).map(|k| field[k + 1] * (corner[k] + at[k] as f64)).sum::<f64>();
    let start = field[0] + aside;
    std::array::from_fn(|x| start + field[1] * (corner[0] + x as f64))
}

/// Which of some faces of a block, whose first one is at `corner`, have values no further than `tolerance` from a
/// component of a tile's velocity.
#[apply(simd)]
pub(super) fn matching_faces<const D: usize>(
    field: &[f64; 4],
    values: &[f32],
    faces: &Bits,
    corner: [f64; 3],
    tolerance: f64,
) -> Bits {
    let (mut found, rows) = (masks::NONE, values.as_chunks::<SIDE>().0);
    for (row, bits) in rows_of::<D>(faces) {
        let (own, values) = (values_in_row::<D>(field, corner, row), &rows[row]);
        let mut near = 0u8;
        for x in 0..SIDE {
            near |= u8::from((own[x] - f64::from(values[x])).abs() <= tolerance) << x;
        }
        found[row / SIDE] |= u64::from(near & bits) << (SIDE * (row % SIDE));
    }
    found
}

/// Writes a component of a tile's velocity to some faces of a block whose first one is at `corner`.
///
/// # Safety
/// The block is stored, and nobody else writes to these faces.
unsafe fn write_block<const D: usize>(
    field: &[f64; 4],
    slot: u32,
    faces: &Bits,
    corner: [f64; 3],
    out: &DisjointMut<'_, f32>,
) {
    let start = slot as usize * block_cells(D);
    for (row, bits) in rows_of::<D>(faces) {
        let values = values_in_row::<D>(field, corner, row).map(|value| value as f32);
        // SAFETY: ours alone by the caller's promise.
        let write = |x: usize| unsafe { *out.at(start + row * SIDE + x) = values[x] };
        if bits == u8::MAX {
            (0..SIDE).for_each(write);
        } else {
            masks::each_in(u64::from(bits)).for_each(write);
        }
    }
}

/// The velocity field as statistics and pictures want it.
impl<const D: usize> Tile<D> {
    /// Velocity at the centre of the tile's box, m/s.
    pub fn velocity(&self) -> [f64; D] {
        std::array::from_fn(|axis| {
            let centre = |k: usize| 0.5 * f64::from(self.low[k] + self.high[k]) - f64::from(self.origin[k]);
            self.motion.velocity(axis) + (0..D).map(|k| self.motion.slope(axis, k) * centre(k)).sum::<f64>()
        })
    }

    /// Change of velocity per metre: `gradient[axis][k] = ∂u_axis/∂x_k`.
    pub fn gradient(&self, dx: f64) -> [[f64; D]; D] {
        std::array::from_fn(|axis| std::array::from_fn(|k| self.motion.slope(axis, k) / dx))
    }
}
