//! The bodies' surfaces on the finest level, row by row.
//!
//! Faces of a body across one axis and towards one side lie in planes, and a pair of rows (a red and a black one of the
//! same place, see `layout`) holds up to sixteen cells beside such a plane. Inside a pair of rows offsets grow by one cell
//! per lane, and along the last axis by one cell between the two cells that share a lane: so nothing but the offset of the
//! first cell need be kept.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{Scatter, block_cells, masks};

use super::super::layout::{Node, Place, Row, half_rows, plane_rows};
use super::super::level::Level;
use super::body::{Bodies, Body, BodyFace, Moments};
use super::by_place::{ByPlace, line_up};
use super::surfaces::{Term, Velocities, respond, share_of};

/// Faces of one body, across one axis and towards one side, beside the cells of a pair of rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// The pair of rows: block times rows of a colour, and row.
    row: u32,
    /// Whose velocity counts there: three times the body, and the axis.
    field: u32,
    /// Red and black lanes with a face.
    lanes: [u8; 2],
    /// Twice the offset, from the body's origin, of the face that the lower cell of lane 0 has or would have.
    twice: [i16; 3],
    /// 1 where the body lies on the high side of the cells, and −1 on the low side.
    sign: i8,
}

impl Segment {
    /// Calls `each(place among the vectors, twice the face's offset)` for every face.
    fn each_face<const D: usize>(&self, mut each: impl FnMut(usize, [f32; 3])) {
        let half = half_rows(D);
        let (block, row) = (self.row as usize / half, self.row as usize % half);
        for (colour, &lanes) in self.lanes.iter().enumerate() {
            for lane in masks::each_in(u64::from(lanes)) {
                let mut twice = self.twice.map(f32::from);
                twice[0] += 2.0 * lane as f32;
                if is_upper::<D>(row, colour, lane) {
                    twice[D - 1] += 2.0;
                }
                each(((2 * block + colour) * half + row) * 8 + lane, twice);
            }
        }
    }
}

/// Whether the cell in a lane is the upper one of the two that share it.
#[inline(always)]
fn is_upper<const D: usize>(row: usize, colour: usize, lane: usize) -> bool {
    !(row % plane_rows(D) + colour + lane).is_multiple_of(2)
}

/// One in the lanes that a byte names, zero in the others.
static LANES: [Row<f32>; 256] = {
    let mut table = [[0.0; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut lane = 0;
        while lane < 8 {
            table[bits][lane] = (bits >> lane & 1) as f32;
            lane += 1;
        }
        bits += 1;
    }
    table
};

/// One in the red and in the black lanes whose cells are upper ones.
#[inline(always)]
fn upper_lanes<const D: usize>(row: usize) -> [&'static Row<f32>; 2] {
    let odd = [&LANES[0xaa], &LANES[0x55]];
    if (row % const { plane_rows(D) }).is_multiple_of(2) { odd } else { [odd[1], odd[0]] }
}

/// All surfaces: by body, to sum up the forces on each, and by row, to hand out their velocities.
#[derive(Clone, Debug, Default)]
pub(super) struct RowSurfaces {
    segments: Vec<Segment>,
    /// Per body: where its segments across each axis start, and where the last ones end.
    pub start: Vec<[u32; 4]>,
    /// The same by the rows they lie in.
    rows: ByPlace<Segment>,
    /// Per block: the first of its rows.
    block_start: Vec<u32>,
    /// Right-hand side of those rows without the bodies, red and black.
    base: Vec<[Row<f32>; 2]>,
    velocities: Velocities<f32>,
}

/// Rows that a thread takes at a time.
const GRAIN: usize = 512;

impl RowSurfaces {
    /// The bodies' faces on a level whose blocks are those of `block_of`.
    pub fn read<const D: usize>(&mut self, bodies: &Bodies<'_>, block_of: &[u32], level: &Level<D>) {
        let of_body = |(index, body): (usize, &Body)| {
            let (mut segments, mut ends) = (Vec::new(), [0; 4]);
            for axis in 0..D {
                let faces = &bodies.faces[body.faces[axis] as usize..body.faces[axis + 1] as usize];
                collect::<D>(faces, block_of, (3 * index + axis) as u32, &mut segments);
                ends[axis + 1] = segments.len() as u32;
            }
            (segments, ends)
        };
        let found: Vec<(Vec<Segment>, [u32; 4])> =
            bodies.list.par_iter().enumerate().with_min_len(1).map(of_body).collect();
        line_up(found, &mut self.segments, &mut self.start);
        let rows = level.topology.len() * half_rows(D);
        self.rows.sort(rows, self.segments.iter().map(|segment| (segment.row, *segment)));
        self.base.resize(self.rows.places.len(), [[0.0; 8]; 2]);
        self.block_start.clear();
        for (index, &row) in self.rows.places.iter().enumerate() {
            let block = row as usize / half_rows(D);
            self.block_start.resize(self.block_start.len().max(block + 1), index as u32);
        }
        self.block_start.resize(level.topology.len() + 1, self.rows.places.len() as u32);
    }

    /// Calls `each(place, twice the offset, sign)` for the faces of a body across an axis.
    pub fn each_face<const D: usize>(
        &self,
        start: &[u32; 4],
        axis: usize,
        mut each: impl FnMut(usize, [f32; 3], f32),
    ) {
        for segment in &self.segments[start[axis] as usize..start[axis + 1] as usize] {
            segment.each_face::<D>(|place, twice| each(place, twice, f32::from(segment.sign)));
        }
    }

    /// `J x` of one body; rows of each colour start at `stride` times their block, plus the colour's offset.
    fn forces<const D: usize, X: Copy + Into<A> + Sync, A: Lane>(
        &self,
        body: usize,
        x: &Vector<'_, X>,
    ) -> Moments {
        let mut forces = [[0.0; 4]; 3];
        for axis in 0..D {
            let range = self.start[body][axis] as usize..self.start[body][axis + 1] as usize;
            forces[axis] = sum_up::<D, X, A>(&self.segments[range], x);
        }
        forces
    }

    /// `K J x` for a vector of the solve; returns `x·JᵀKJ x`.
    pub fn respond_exactly<const D: usize, X: Copy + Into<f64> + Sync>(
        &self,
        bodies: &[Body],
        x: &[Row<X>],
        out: &mut Velocities<f64>,
    ) -> f64 {
        let x = Vector::paired::<D>(x);
        out.resize(3 * bodies.len(), [0.0; 4]);
        let energies: Vec<f64> = out
            .par_chunks_mut(3)
            .enumerate()
            .map(|(body, out)| {
                let forces = self.forces::<D, X, f64>(body, &x);
                let field = bodies[body].response.apply::<D>(&forces);
                // Segments count everything twice.
                out.iter_mut().zip(field).for_each(|(out, field)| *out = field.map(|v| 0.5 * v));
                forces.iter().flatten().zip(field.iter().flatten()).map(|(a, b)| a * b).sum()
            })
            .collect();
        energies.iter().sum()
    }

    /// `r −= α Jᵀ v` in a block.
    pub fn subtract_exactly<const D: usize>(
        &self,
        block: usize,
        alpha: f64,
        velocities: &Velocities<f64>,
        r: &mut [Row<f64>],
    ) {
        let half = half_rows(D);
        for index in self.block_start[block] as usize..self.block_start[block + 1] as usize {
            let row = self.rows.places[index] as usize % half;
            let taken = hand_out::<D, f64>(self.rows.of(index), velocities, row);
            for (colour, taken) in taken.iter().enumerate() {
                let values = &mut r[colour * half + row];
                for lane in 0..8 {
                    values[lane] -= alpha * taken[lane];
                }
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.segments.capacity() * size_of::<Segment>()
            + self.rows.bytes()
            + self.start.capacity() * 16
            + self.block_start.capacity() * 4
            + self.base.capacity() * 64
    }
}

impl<const D: usize> Term<D> for RowSurfaces {
    fn prepare(&self, bodies: &[Body], level: &mut Level<D>) {
        let half = half_rows(D);
        level.touched.clear();
        level.touched.resize(level.topology.len(), false);
        for (index, &row) in self.rows.places.iter().enumerate() {
            let (block, row) = (row as usize / half, row as usize % half);
            level.touched[block] = true;
            let mut bound = [[0.0f32; 8]; 2];
            for segment in self.rows.of(index) {
                let each = bodies[segment.field as usize / 3].bound as f32;
                for (bound, lanes) in bound.iter_mut().zip(segment.lanes) {
                    (0..8).for_each(|lane| bound[lane] += each * LANES[lanes as usize][lane]);
                }
            }
            for (colour, bound) in bound.iter().enumerate() {
                let diagonal = level.stencil.of::<D>(block, colour).diagonal[row];
                for lane in 0..8 {
                    let share = share_of(diagonal[lane], bound[lane]);
                    if share < 1.0 {
                        level.stencil.damp::<D>(block, colour, row * 8 + lane, share);
                    }
                }
            }
        }
    }

    fn take_base(&mut self, level: &Level<D>) {
        let half = half_rows(D);
        self.base.par_iter_mut().zip(&self.rows.places).with_min_len(GRAIN).for_each(|(base, &row)| {
            let start = row as usize / half * 2 * half + row as usize % half;
            *base = [level.b[start], level.b[start + half]];
        });
    }

    fn freeze(&mut self, bodies: &[Body], level: &mut Level<D>) {
        let half = half_rows(D);
        let mut velocities = std::mem::take(&mut self.velocities);
        let x = Vector::<f32> { rows: [&level.x[0], &level.x[1]], stride: half };
        respond::<D>(bodies, &mut velocities, |body| self.forces::<D, f32, f32>(body, &x));
        // What shared nodes add to the same cells is added anew by the sweeps.
        level.explicit.restore_base(&mut level.b);
        let b = Scatter::new(&mut level.b);
        self.rows.each(GRAIN, |index| {
            let row = self.rows.places[index] as usize;
            let start = row / half * 2 * half + row % half;
            let taken = hand_out::<D, f32>(self.rows.of(index), &velocities, row % half);
            for colour in 0..2 {
                let base = &self.base[index][colour];
                let value = std::array::from_fn(|lane| base[lane] - taken[colour][lane]);
                // SAFETY: every row is visited once.
                unsafe { b.put(start + colour * half, value) };
            }
        });
        level.explicit.take_base(&level.b);
        self.velocities = velocities;
    }

    fn restore(&self, level: &mut Level<D>) {
        let half = half_rows(D);
        level.explicit.restore_base(&mut level.b);
        let b = Scatter::new(&mut level.b);
        self.rows.each(GRAIN, |index| {
            let row = self.rows.places[index] as usize;
            let start = row / half * 2 * half + row % half;
            // SAFETY: every row is visited once.
            unsafe {
                b.put(start, self.base[index][0]);
                b.put(start + half, self.base[index][1]);
            }
        });
    }
}

/// Turns faces into segments. Faces come block by block, so looking back at two blocks finds nearly all that belong
/// together; those that it does not find make a segment more.
fn collect<const D: usize>(faces: &[BodyFace], block_of: &[u32], field: u32, segments: &mut Vec<Segment>) {
    const NONE: u32 = u32::MAX;
    let (cells, half) = (block_cells(D), half_rows(D));
    let mut recent = [(NONE, [[NONE; 32]; 2]); 2];
    let mut oldest = 0;
    for face in faces {
        let (slot, local) = (face.cell as usize / cells, face.cell as usize % cells);
        let block = block_of[slot];
        let Place::Cell { colour, index } = Node::cell::<D>(0, local).place() else { continue };
        let (row, lane) = (index / 8, index % 8);
        let at = match recent.iter().position(|(known, _)| *known == block) {
            Some(at) => at,
            None => {
                let at = oldest;
                recent[at] = (block, [[NONE; 32]; 2]);
                oldest = 1 - oldest;
                at
            }
        };
        let known = &mut recent[at].1[face.ahead as usize][row];
        if *known == NONE {
            *known = segments.len() as u32;
            let mut twice = face.twice.map(i16::from);
            twice[0] -= 2 * lane as i16;
            if is_upper::<D>(row, colour, lane) {
                twice[D - 1] -= 2;
            }
            segments.push(Segment {
                row: block * half as u32 + row as u32,
                field,
                lanes: [0; 2],
                twice,
                sign: if face.ahead { 1 } else { -1 },
            });
        }
        segments[*known as usize].lanes[colour] |= 1 << lane;
    }
}

/// A vector, each of its colours as rows.
struct Vector<'a, X> {
    rows: [&'a [Row<X>]; 2],
    /// Rows of a colour from one block to the next.
    stride: usize,
}

impl<'a, X> Vector<'a, X> {
    /// One that keeps both colours of a block together.
    fn paired<const D: usize>(rows: &'a [Row<X>]) -> Self {
        let half = half_rows(D);
        Vector { rows: [rows, &rows[half..]], stride: 2 * half }
    }
}

/// A number that lanes are summed up in.
trait Lane:
    Copy
    + Default
    + From<f32>
    + Into<f64>
    + std::ops::AddAssign
    + std::ops::Mul<Output = Self>
    + std::ops::Add<Output = Self>
    + Send
    + Sync
{
}

impl Lane for f32 {}
impl Lane for f64 {}

/// `J x` of one body across one axis.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn sum_up<const D: usize, X: Copy + Into<A>, A: Lane>(segments: &[Segment], x: &Vector<'_, X>) -> [f64; 4] {
    let half = const { half_rows(D) };
    let mut sums = [[A::default(); 8]; 4];
    for segment in segments {
        let row = segment.row as usize;
        let start = row / half * x.stride + row % half;
        let (red, black) = (&x.rows[0][start], &x.rows[1][start]);
        let [red_lanes, black_lanes] = segment.lanes.map(|lanes| &LANES[lanes as usize]);
        let sign = A::from(f32::from(segment.sign));
        let twice = segment.twice.map(|twice| A::from(f32::from(twice)));
        let [red_upper, black_upper] = upper_lanes::<D>(row % half);
        // One loop for each thing to do: the compiler takes all lanes at once.
        let (mut both, mut upper) = ([A::default(); 8], [A::default(); 8]);
        for lane in 0..8 {
            both[lane] = sign * A::from(red_lanes[lane]) * red[lane].into();
        }
        for lane in 0..8 {
            upper[lane] = A::from(red_upper[lane]) * both[lane];
        }
        let mut second = [A::default(); 8];
        for lane in 0..8 {
            second[lane] = sign * A::from(black_lanes[lane]) * black[lane].into();
        }
        for lane in 0..8 {
            both[lane] += second[lane];
        }
        for lane in 0..8 {
            upper[lane] += A::from(black_upper[lane]) * second[lane];
        }
        for lane in 0..8 {
            sums[0][lane] += both[lane];
        }
        for k in 0..D {
            for lane in 0..8 {
                sums[k + 1][lane] += twice[k] * both[lane];
            }
        }
        for lane in 0..8 {
            sums[D][lane] += A::from(2.0) * upper[lane];
        }
    }
    let mut total = sums.map(|lanes| lanes.into_iter().map(Into::into).sum::<f64>());
    for (lane, sum) in sums[0].into_iter().enumerate() {
        total[1] += 2.0 * lane as f64 * sum.into();
    }
    // The first was counted once, moments twice.
    [total[0], 0.5 * total[1], 0.5 * total[2], 0.5 * total[3]]
}

/// `Jᵀ v` in a pair of rows.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn hand_out<const D: usize, A: Lane>(segments: &[Segment], velocities: &[[A; 4]], row: usize) -> [Row<A>; 2] {
    let [red_upper, black_upper] = upper_lanes::<D>(row);
    let mut out = [[A::default(); 8]; 2];
    for segment in segments {
        let field = &velocities[segment.field as usize];
        let sign = A::from(f32::from(segment.sign));
        let mut first = A::from(2.0) * field[0];
        for k in 0..D {
            first += A::from(f32::from(segment.twice[k])) * field[k + 1];
        }
        let (first, along) = (sign * first, sign * A::from(2.0) * field[1]);
        let above = sign * A::from(2.0) * field[D];
        let [red_lanes, black_lanes] = segment.lanes.map(|lanes| &LANES[lanes as usize]);
        let mut lower = [A::default(); 8];
        for lane in 0..8 {
            lower[lane] = first + A::from(lane as f32) * along;
        }
        for lane in 0..8 {
            out[0][lane] += A::from(red_lanes[lane]) * (lower[lane] + A::from(red_upper[lane]) * above);
        }
        for lane in 0..8 {
            out[1][lane] += A::from(black_lanes[lane]) * (lower[lane] + A::from(black_upper[lane]) * above);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::natural_index;
    use super::*;

    /// Lanes and halves are where `layout` puts the cells.
    fn upper_cells_are_those_of_the_layout<const D: usize>() {
        for colour in 0..2 {
            for place in 0..block_cells(D) / 2 {
                let last = natural_index::<D>(colour, place) / crate::math::power(8, D - 1);
                assert_eq!(
                    is_upper::<D>(place / 8, colour, place % 8),
                    last % 2 == 1,
                    "{D}D {colour} {place}"
                );
            }
        }
    }

    #[test]
    fn upper_cells_are_those_of_the_layout_2d() {
        upper_cells_are_those_of_the_layout::<2>();
    }

    #[test]
    fn upper_cells_are_those_of_the_layout_3d() {
        upper_cells_are_those_of_the_layout::<3>();
    }
}
