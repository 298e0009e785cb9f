//! From face velocities to the affine fields of tiles, and back.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, Field, SIDE, Scatter, across, block_cells};
use crate::linear::BodyFace;
use crate::math::{Side, unflatten};

use super::shape::Piece;
use super::tiling::{Tile, Tiling};

impl<const D: usize> Tiling<D> {
    /// Sets every tile's field to the one closest to the velocities on all its faces, in kinetic energy (CBAR eq. 24).
    /// Interior faces count as much as those at its surface: so fitting and solving are together one projection.
    pub fn fit(&mut self, blocks: &Blocks<D>, velocity: &[Field<f32>; D]) {
        let (pieces, bodies, faces) = (&self.pieces, &self.bodies, &self.faces);
        self.tiles.par_iter_mut().zip(bodies).for_each(|(tile, body)| {
            let mut sums = [[0.0; 4]; 3];
            for axis in 0..D {
                for piece in &pieces[tile.pieces.clone()] {
                    let base = offset_of_block(blocks, tile, piece, axis);
                    add_block::<D>(&velocity[axis], piece, base, &mut sums[axis]);
                }
                let surface = &faces[body.faces[axis] as usize..body.faces[axis + 1] as usize];
                // Low faces of the tile's cells were counted with their cells; high ones belong to the cell beyond.
                for face in surface.iter().filter(|face| !face.ahead) {
                    let u = f64::from(velocity[axis][face.cell as usize]);
                    let place = face.twice.map(|t| 0.5 * f64::from(t));
                    sums[axis][0] += u;
                    (0..D).for_each(|k| sums[axis][k + 1] += u * place[k]);
                }
            }
            // The response is one to forces, the sums are of velocities.
            tile.field = body.response.apply::<D>(&sums).map(|row| row.map(|value| value * tile.density));
        });
    }

    /// Writes the fields to the faces at the tiles' surfaces: what the cells around them see.
    pub fn write_surfaces(&self, blocks: &Blocks<D>, velocity: &mut [Field<f32>; D]) {
        let out = velocity.each_mut().map(|field| Scatter::new(field.as_mut_slice()));
        self.tiles.par_iter().zip(&self.bodies).for_each(|(tile, body)| {
            for axis in 0..D {
                for face in &self.faces[body.faces[axis] as usize..body.faces[axis + 1] as usize] {
                    // SAFETY: the faces of tiles are disjoint, and their cells are stored.
                    unsafe { out[axis].put(place_of(blocks, face, axis), value_at::<D>(tile, axis, face)) };
                }
            }
        });
    }

    /// Corrects a right-hand side that was computed from rounded velocities at the tiles' surfaces, as
    /// [`Self::write_surfaces`] left them, to what the fields say.
    pub fn refine(&self, rhs: &mut Field<f64>) {
        let out = Scatter::new(rhs.as_mut_slice());
        // A cell may lie beside several tiles, but has one face in each direction.
        for (axis, ahead) in (0..D).flat_map(|axis| [(axis, false), (axis, true)]) {
            self.tiles.par_iter().zip(&self.bodies).for_each(|(tile, body)| {
                let faces = &self.faces[body.faces[axis] as usize..body.faces[axis + 1] as usize];
                for face in faces.iter().filter(|face| face.ahead == ahead) {
                    let exact = exact_at::<D>(tile, axis, face);
                    let error = f64::from(exact as f32) - exact;
                    // SAFETY: no other face in this direction has this cell.
                    unsafe { *out.at(face.cell as usize) += if ahead { error } else { -error } };
                }
            });
        }
    }

    /// Adds to the fields what the pressures around them and a uniform impulse do: `v + K J q` (CBAR eq. 22).
    pub fn respond(&mut self, q: &Field<f64>, impulse: [f64; D]) {
        let (bodies, faces) = (&self.bodies, &self.faces);
        self.tiles.par_iter_mut().zip(bodies).for_each(|(tile, body)| {
            let mut forces = [[0.0; 4]; 3];
            for axis in 0..D {
                for face in &faces[body.faces[axis] as usize..body.faces[axis + 1] as usize] {
                    let push = if face.ahead { q[face.cell as usize] } else { -q[face.cell as usize] };
                    forces[axis][0] += push;
                    (0..D).for_each(|k| forces[axis][k + 1] += 0.5 * f64::from(face.twice[k]) * push);
                }
            }
            let change = body.response.apply::<D>(&forces);
            tile.pressure = extended_pressure::<D>(
                &change,
                tile.density,
                &faces[body.faces[0] as usize..body.faces[D] as usize],
                q,
            );
            for axis in 0..D {
                (0..=D).for_each(|k| tile.field[axis][k] += change[axis][k]);
                tile.field[axis][0] += impulse[axis];
            }
        });
    }

    /// Writes pressures to the cells of the tiles. They have none of their own, but the next step may find an ordinary
    /// cell there, which then starts from a good guess; and pictures show no holes.
    pub fn extend_pressures(&self, blocks: &Blocks<D>, q: &mut Field<f64>) {
        let out = Scatter::new(q.as_mut_slice());
        self.tiles.par_iter().for_each(|tile| {
            for piece in &self.pieces[tile.pieces.clone()] {
                let first = blocks.first_cell(piece.slot as usize);
                let start = piece.slot as usize * block_cells(D);
                for row in 0..block_cells(D) / SIDE {
                    let bits = masks::row(&piece.bits, row);
                    if bits == 0 {
                        continue;
                    }
                    let at = unflatten::<D>(row * SIDE, SIDE);
                    let mut x: [f64; D] =
                        std::array::from_fn(|k| f64::from(first[k] + at[k] as i32 - tile.origin[k]) + 0.5);
                    for lane in 0..SIDE {
                        if bits >> lane & 1 == 1 {
                            // SAFETY: the block is stored, and this tile alone writes to its own cells.
                            unsafe { out.put(start + row * SIDE + lane, tile.pressure.at(&x)) };
                        }
                        x[0] += 1.0;
                    }
                }
            }
        });
    }

    /// Writes the fields to all faces of the tiles.
    pub fn write(&self, blocks: &Blocks<D>, velocity: &mut [Field<f32>; D]) {
        let out = velocity.each_mut().map(|field| Scatter::new(field.as_mut_slice()));
        self.tiles.par_iter().zip(&self.bodies).for_each(|(tile, body)| {
            for axis in 0..D {
                for piece in &self.pieces[tile.pieces.clone()] {
                    let base = offset_of_block(blocks, tile, piece, axis);
                    let start = piece.slot as usize * block_cells(D);
                    // SAFETY: the block is stored, and this tile alone writes to the low faces of its own cells.
                    let write = |local: usize, u: f32| unsafe { out[axis].put(start + local, u) };
                    write_block::<D>(tile, piece, axis, base, write);
                }
                let surface = &self.faces[body.faces[axis] as usize..body.faces[axis + 1] as usize];
                for face in surface.iter().filter(|face| !face.ahead) {
                    // SAFETY: as above, for the faces on the high side of its cells.
                    unsafe { out[axis].put(face.cell as usize, value_at::<D>(tile, axis, face)) };
                }
            }
        });
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

/// The pressure inside a tile, from how its velocity changed and from the cells around it. A rotation has no potential
/// and is left out.
fn extended_pressure<const D: usize>(
    change: &crate::linear::Moments,
    density: f64,
    faces: &[BodyFace],
    q: &Field<f64>,
) -> Quadratic {
    let mut pressure = Quadratic::default();
    for k in 0..D {
        pressure.slope[k] = -density * change[k][0];
        for l in 0..D {
            pressure.curve[k][l] = -0.5 * density * (change[k][l + 1] + change[l][k + 1]);
        }
    }
    // Half a cell away from the faces they lie at; that averages out.
    let misfit = |face: &BodyFace| {
        let x: [f64; D] = std::array::from_fn(|k| 0.5 * f64::from(face.twice[k]));
        q[face.cell as usize] - pressure.at(&x)
    };
    pressure.constant = faces.iter().map(misfit).sum::<f64>() / faces.len().max(1) as f64;
    pressure
}

/// Offset of the low face across an axis of a block's first cell from the tile's origin, in cells.
fn offset_of_block<const D: usize>(
    blocks: &Blocks<D>,
    tile: &Tile<D>,
    piece: &Piece,
    axis: usize,
) -> [f64; 3] {
    let first = blocks.first_cell(piece.slot as usize);
    let mut base = [0.0; 3];
    for k in 0..D {
        base[k] = f64::from(first[k] - tile.origin[k]) + if k == axis { 0.0 } else { 0.5 };
    }
    base
}

/// Adds `u (1, x, y, z)` over the low faces of a piece's cells.
fn add_block<const D: usize>(velocity: &Field<f32>, piece: &Piece, base: [f64; 3], sums: &mut [f64; 4]) {
    // Sums in the block's own coordinates first, lane by lane.
    let own = add_rows(velocity.block(piece.slot as usize), &piece.bits);
    let along_x = own[0].iter().enumerate().map(|(x, sum)| x as f64 * sum).sum::<f64>();
    let [sum, along_y, along_z] = own.map(|lanes| lanes.iter().sum::<f64>());
    sums[0] += sum;
    for (k, along) in [along_x, along_y, along_z].into_iter().enumerate().take(D) {
        sums[k + 1] += along + base[k] * sum;
    }
}

/// For the cells of a block, by lane: sums of values, and of these times y and z.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn add_rows(block: &[f32], cells: &Bits) -> [[f64; SIDE]; 3] {
    let [mut sum, mut along_y, mut along_z] = [[0.0f64; SIDE]; 3];
    let layers = block.as_chunks::<{ SIDE * SIDE }>().0;
    for (z, (layer, &word)) in layers.iter().zip(cells).enumerate() {
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

/// Evaluates a tile's field on the low faces of a piece's cells.
fn write_block<const D: usize>(
    tile: &Tile<D>,
    piece: &Piece,
    axis: usize,
    base: [f64; 3],
    write: impl Fn(usize, f32),
) {
    let field = &tile.field[axis];
    for row in 0..block_cells(D) / SIDE {
        let bits = masks::row(&piece.bits, row);
        if bits == 0 {
            continue;
        }
        let at = unflatten::<D>(row * SIDE, SIDE);
        let start: f64 = field[0] + (0..D).map(|k| field[k + 1] * (base[k] + at[k] as f64)).sum::<f64>();
        let values: [f32; SIDE] = std::array::from_fn(|x| (start + field[1] * x as f64) as f32);
        if bits == u8::MAX {
            (0..SIDE).for_each(|x| write(row * SIDE + x, values[x]));
            continue;
        }
        for x in masks::each_in(u64::from(bits)) {
            write(row * SIDE + x, values[x]);
        }
    }
}

/// A tile's velocity at a face.
fn exact_at<const D: usize>(tile: &Tile<D>, axis: usize, face: &BodyFace) -> f64 {
    let field = &tile.field[axis];
    field[0] + (0..D).map(|k| field[k + 1] * 0.5 * f64::from(face.twice[k])).sum::<f64>()
}

/// The same, rounded as velocities are stored.
fn value_at<const D: usize>(tile: &Tile<D>, axis: usize, face: &BodyFace) -> f32 {
    exact_at::<D>(tile, axis, face) as f32
}

/// Where a face is stored: with the cell on its high side.
fn place_of<const D: usize>(blocks: &Blocks<D>, face: &BodyFace, axis: usize) -> usize {
    let cell = face.cell as usize;
    if !face.ahead {
        return cell;
    }
    let cells = block_cells(D);
    let (slot, (local, is_beyond)) = (cell / cells, across(cell % cells, axis, true));
    let slot = if is_beyond { blocks.beside(slot, axis, Side::High) as usize } else { slot };
    slot * cells + local
}

/// The velocity field as statistics and pictures want it.
impl<const D: usize> Tile<D> {
    /// Velocity at the centre of the tile's box, m/s.
    pub fn velocity(&self) -> [f64; D] {
        std::array::from_fn(|axis| {
            let field = &self.field[axis];
            let centre = |k: usize| 0.5 * f64::from(self.low[k] + self.high[k]) - f64::from(self.origin[k]);
            field[0] + (0..D).map(|k| field[k + 1] * centre(k)).sum::<f64>()
        })
    }

    /// Change of velocity per metre: `gradient[axis][k] = ∂u_axis/∂x_k`.
    pub fn gradient(&self, dx: f64) -> [[f64; D]; D] {
        std::array::from_fn(|axis| std::array::from_fn(|k| self.field[axis][k + 1] / dx))
    }
}
