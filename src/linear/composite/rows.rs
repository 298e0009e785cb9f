//! Blocks that are nearly full keep all their cells, in the rows of `linear::layout`, and are swept as blocks of networks
//! without bodies are. Cells that are no nodes have no diagonal, and their value stays 0.

use std::sync::LazyLock;

use multiversion::multiversion;

use crate::grid::{block_cells, masks};
use crate::math::power;

use super::super::kernels::{self, Around, Coefficients, product_row, pull, with_links};
use super::super::layout::{
    Row, half_rows, join_row, natural_index, plane_rows, row_of_cover, split_index, split_row,
};
use super::super::topology::Topology;
use super::pattern::{Beyond, DIRECTIONS, End, Half, Pattern, Traits};
use super::visit::{Block, range};

/// Blocks with so many nodes are kept in rows. Below, the rows' empty places cost more than a list of neighbours does.
const fn enough(dimension: usize) -> usize {
    block_cells(dimension) * 3 / 8
}

/// Whether a block with so many nodes had better be kept in rows.
pub(super) fn is_worthwhile(nodes: usize, dimension: usize) -> bool {
    nodes >= enough(dimension)
}

/// Where things are in rows; all blocks share it.
#[derive(Debug)]
pub(super) struct Frame {
    /// The cells of each colour's places, and the cells of each colour.
    pub cells: [Vec<u16>; 2],
    pub coloured: [masks::Bits; 2],
    /// Each cell's place among those of its colour.
    pub place: Vec<u16>,
    /// For the cells of each colour: the other one's cells beyond the block, side by side, and their places there.
    pub beyond: [Vec<Beyond>; 2],
    places_beyond: [Vec<u16>; 2],
    /// By direction and cell: the neighbour's place, or [`THERE`] and its place in `beyond`.
    near: Vec<u16>,
    /// By direction and cell: the place of that link among those of the cell's colour.
    link: Vec<u16>,
}

const THERE: u16 = 1 << 15;

impl Frame {
    fn new<const D: usize>() -> Frame {
        let cells = block_cells(D);
        let mut frame = Frame {
            cells: [0, 1]
                .map(|colour| (0..cells / 2).map(|place| natural_index::<D>(colour, place) as u16).collect()),
            coloured: [masks::NONE; 2],
            place: (0..cells).map(|cell| split_index::<D>(cell).1 as u16).collect(),
            beyond: Default::default(),
            places_beyond: Default::default(),
            near: vec![0; DIRECTIONS * cells],
            link: vec![0; DIRECTIONS * cells],
        };
        for direction in 0..2 * D {
            let (axis, high) = (direction / 2, direction % 2);
            let stride = power(8, axis);
            for cell in 0..cells {
                let (colour, place) = split_index::<D>(cell);
                frame.coloured[colour][cell / 64] |= 1 << (cell % 64);
                let at = cell / stride % 8;
                let is_beyond = at == 7 * high;
                let other = match (is_beyond, high) {
                    (true, 0) => cell + 7 * stride,
                    (true, _) => cell - 7 * stride,
                    (false, 0) => cell - stride,
                    (false, _) => cell + stride,
                };
                frame.near[direction * cells + cell] = if is_beyond {
                    let there = Beyond { side: direction as u8, ordinal: 0, cell: other as u16 };
                    frame.beyond[colour].push(there);
                    frame.places_beyond[colour].push(split_index::<D>(other).1 as u16);
                    THERE | (frame.beyond[colour].len() - 1) as u16
                } else {
                    split_index::<D>(other).1 as u16
                };
                // The order of `kernels::neighbours`: x, the last axis with the other cell of the pair first, y.
                let slot = match axis {
                    0 => high,
                    axis if axis == D - 1 => 2 + usize::from(at % 2 == high),
                    _ => 4 + high,
                };
                frame.link[direction * cells + cell] = ((place / 8 * 2 * D + slot) * 8 + place % 8) as u16;
            }
        }
        frame
    }
}

static FRAME_2D: LazyLock<Frame> = LazyLock::new(Frame::new::<2>);
static FRAME_3D: LazyLock<Frame> = LazyLock::new(Frame::new::<3>);

/// The frame of a dimension.
pub(super) fn frame<const D: usize>() -> &'static Frame {
    if D == 2 { &FRAME_2D } else { &FRAME_3D }
}

/// What a pattern in rows has beside its halves.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub frame: &'static Frame,
    /// Its nodes, by cell.
    pub nodes: masks::Bits,
    /// Those that have a link in each direction.
    pub linked: [masks::Bits; DIRECTIONS],
}

impl Rows {
    /// Sets values to 0 where a colour has no node.
    pub fn clear_others(&self, colour: usize, values: &mut [f64]) {
        if self.nodes == masks::or(&self.frame.coloured[0], &self.frame.coloured[1]) {
            return;
        }
        for (value, &cell) in values.iter_mut().zip(&self.frame.cells[colour]) {
            *value = if masks::has(&self.nodes, cell as usize) { *value } else { 0.0 };
        }
    }

    /// The colour of a cell.
    #[inline]
    pub fn colour(&self, cell: usize) -> usize {
        usize::from(masks::has(&self.frame.coloured[1], cell))
    }

    /// Sum of the links, in a direction, of some cells of an aggregate: see [`octet`].
    #[inline]
    pub fn sum_of_links<const D: usize>(
        &self,
        pattern: &Pattern,
        at: [usize; D],
        cells: u8,
        direction: usize,
        whole: f32,
    ) -> f64 {
        if pattern.half.iter().all(|half| half.links.is_empty()) {
            return f64::from(whole) * f64::from(cells.count_ones());
        }
        let link = |cell: usize| {
            f64::from(self.link(&pattern.half[self.colour(cell)].links, cell, direction, whole))
        };
        cells_of(at, cells).map(link).sum()
    }

    /// The other end of a cell's link.
    #[inline]
    pub fn end(&self, cell: usize, direction: usize) -> End {
        let colour = self.colour(cell);
        let near = self.frame.near[direction * self.frame.place.len() + cell];
        if near & THERE == 0 {
            End::Here(1 - colour, near as usize)
        } else {
            End::There((near & !THERE) as usize)
        }
    }

    /// A cell's link in a direction, from the links of its colour; `whole` where these need not be kept.
    #[inline]
    pub fn link(&self, links: &[f32], cell: usize, direction: usize, whole: f32) -> f32 {
        let at = self.frame.link[direction * self.frame.place.len() + cell] as usize;
        links.get(at).copied().unwrap_or(whole)
    }
}

/// The eight cells (four in 2D) of an aggregate as bits.
#[inline]
pub(super) fn octet<const D: usize>(bits: &masks::Bits, at: [usize; D]) -> u8 {
    let square = |word: u64| {
        let rows = word >> (16 * at[1] + 2 * at[0]);
        (rows & 3 | rows >> 6 & 12) as u8
    };
    if D == 2 { square(bits[0]) } else { square(bits[2 * at[D - 1]]) | square(bits[2 * at[D - 1] + 1]) << 4 }
}

/// Bits of [`octet`] on the low side along each axis.
pub(super) const LOW: [u8; 3] = [0b0101_0101, 0b0011_0011, 0b0000_1111];

/// The cells that bits of [`octet`] stand for.
pub(super) fn cells_of<const D: usize>(at: [usize; D], bits: u8) -> impl Iterator<Item = usize> {
    masks::each_in(u64::from(bits))
        .map(move |bit| (0..D).map(|axis| (2 * at[axis] + (bit >> axis & 1)) * power(8, axis)).sum())
}

/// A pattern in rows: `nodes` are the cells that are nodes, `linked` those with a link in each direction, which is `whole`
/// unless `link(cell, direction)` tells, and `traits(cell)` is the rest, if there is any. None if a node is held by nothing.
pub(super) fn pattern_in_rows<const D: usize>(
    nodes: &masks::Bits,
    linked: &[masks::Bits; DIRECTIONS],
    whole: f32,
    link: Option<&dyn Fn(usize, usize) -> f32>,
    traits: Option<&dyn Fn(usize) -> Traits>,
) -> Option<Pattern> {
    let frame = frame::<D>();
    let mut pattern = Pattern::default();
    for colour in 0..2 {
        let cells = frame.cells[colour].as_slice();
        let count = cells.len();
        let half = &mut pattern.half[colour];
        half.cells = cells.into();
        half.beyond = frame.beyond[colour].as_slice().into();
        half.own = 1;
        half.diagonal = vec![0.0; count];
        if let Some(traits) = traits {
            let own = |&cell: &u16| {
                if masks::has(nodes, cell as usize) { traits(cell as usize) } else { Traits::default() }
            };
            let list: Vec<Traits> = cells.iter().map(own).collect();
            if list.iter().any(|traits| *traits != Traits::default()) {
                half.is_tied = list.iter().any(|traits| traits.is_tied);
                half.diagonal = list.iter().map(|traits| f64::from(traits.ground)).collect();
                pattern.traits[colour] = list;
            }
        }
        if link.is_some() {
            half.links = vec![0.0; 2 * D * count];
        }
        for (direction, linked) in linked.iter().enumerate().take(2 * D) {
            for (sum, &cell) in half.diagonal.iter_mut().zip(cells) {
                let cell = cell as usize;
                let Some(link) = link else {
                    *sum += f64::from(whole) * f64::from(masks::has(linked, cell) as u8);
                    continue;
                };
                if masks::has(linked, cell) {
                    let link = link(cell, direction);
                    half.links[frame.link[direction * frame.place.len() + cell] as usize] = link;
                    *sum += f64::from(link);
                }
            }
        }
        half.find_inverse();
        let is_tied = |place: usize| pattern.traits[colour].get(place).is_some_and(|traits| traits.is_tied);
        let is_held = |place: usize| half.diagonal[place] > 0.0 || is_tied(place);
        if (0..count).any(|place| masks::has(nodes, cells[place] as usize) && !is_held(place)) {
            return None;
        }
    }
    pattern.rows = Some(Box::new(Rows { frame, nodes: *nodes, linked: *linked }));
    Some(pattern)
}

/// What the nodes of a block in rows see beyond it, where that is not in rows itself.
pub(super) struct Halo<T>(Vec<Row<T>>);

/// Values in rows.
#[inline(always)]
pub(super) fn rows<T>(values: &[T]) -> &[Row<T>] {
    values.as_chunks().0
}

/// The same, to be changed.
#[inline(always)]
pub(super) fn rows_mut<T>(values: &mut [T]) -> &mut [Row<T>] {
    values.as_chunks_mut().0
}

/// Blocks and their neighbours.
pub(super) struct Surroundings<'a, const D: usize> {
    pub topology: &'a Topology<D>,
    pub blocks: &'a [Block],
    /// For the nodes of the colour that looks around: those of the other one beyond their block.
    pub beyond: &'a [u32],
}

impl<T: Copy + Default> Halo<T> {
    /// For blocks of a dimension.
    pub fn new(dimension: usize) -> Self {
        Halo(vec![[T::default(); 8]; 2 * dimension * half_rows(dimension)])
    }

    /// What the nodes of a colour of a block see of the `other` one.
    #[inline]
    pub fn look_around<'a, const D: usize>(
        &'a mut self,
        net: &Surroundings<'a, D>,
        other: &'a [T],
        block: usize,
        colour: usize,
    ) -> Around<'a, T, D> {
        let (count, frame) = (half_rows(D), frame::<D>());
        let beside = net.topology.beside(block);
        let first = net.blocks[block].beyond[colour] as usize;
        let is_in_rows = |side: usize| net.blocks[beside[side / 2][side % 2] as usize].in_rows;
        let each = frame.beyond[colour].len() / (2 * D);
        for side in (0..2 * D).filter(|&side| !is_in_rows(side)) {
            let halo = self.0[side * count..(side + 1) * count].as_flattened_mut();
            let places = &frame.places_beyond[colour][side * each..(side + 1) * each];
            for (&place, &node) in places.iter().zip(&net.beyond[first + side * each..]) {
                // Where there is no node the index is too high.
                halo[place as usize] = other.get(node as usize).copied().unwrap_or_default();
            }
        }
        let halo = &*self;
        let view = |side: usize| match beside[side / 2][side % 2] as usize {
            block if net.blocks[block].in_rows => rows(&other[range(net.blocks, block, 1 - colour)]),
            _ => &halo.0[side * count..(side + 1) * count],
        };
        Around::of(
            rows(&other[range(net.blocks, block, 1 - colour)]),
            std::array::from_fn(|axis| view(2 * axis)),
            std::array::from_fn(|axis| view(2 * axis + 1)),
        )
    }
}

/// The links of a half, if it keeps any.
#[inline(always)]
fn links(half: &Half) -> Option<&[Row<f32>]> {
    (!half.links.is_empty()).then(|| rows(&half.links))
}

/// One pass over the nodes of a colour; a node's row is `diagonal x − Σ g x_neighbour = rhs`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn relax<const D: usize>(
    x: &mut [f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    around: &Around<'_, f32, D>,
    whole: f32,
    colour: usize,
) {
    let count = const { half_rows(D) };
    around.check();
    let (x, rhs, inverse, diagonal) = (rows_mut(x), rows(rhs), rows(inverse), rows(&half.rounded));
    assert!(x.len() == count && rhs.len() == count && inverse.len() == count && diagonal.len() == count);
    with_links!(links(half), links, {
        for row in 0..count {
            let sum = pull(around, row, colour, whole, links);
            for lane in 0..8 {
                let residual = rhs[row][lane] + sum[lane] - diagonal[row][lane] * x[row][lane];
                x[row][lane] += inverse[row][lane] * residual;
            }
        }
    });
}

/// The same where `inverse` is one over the diagonal: what a node was before does not matter.
pub(super) fn relax_alone<const D: usize>(
    x: &mut [f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    around: &Around<'_, f32, D>,
    whole: f32,
    colour: usize,
) {
    let coefficients = Coefficients {
        constant: whole,
        links: links(half),
        inverse: rows(inverse),
        diagonal: rows(&half.rounded),
    };
    kernels::relax(rows_mut(x), rows(rhs), around, &coefficients, colour);
}

/// `rhs + Σ g x_neighbour − diagonal x`, and 0 where there is no node.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
#[allow(clippy::too_many_arguments)]
pub(super) fn residual<const D: usize>(
    out: &mut [f32],
    x: &[f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    around: &Around<'_, f32, D>,
    whole: f32,
    colour: usize,
) {
    let count = const { half_rows(D) };
    around.check();
    let (out, x, rhs, inverse, diagonal) =
        (rows_mut(out), rows(x), rows(rhs), rows(inverse), rows(&half.rounded));
    assert!(out.len() == count && x.len() == count && rhs.len() == count);
    assert!(inverse.len() == count && diagonal.len() == count);
    with_links!(links(half), links, {
        for row in 0..count {
            let sum = pull(around, row, colour, whole, links);
            for lane in 0..8 {
                let residual = rhs[row][lane] + sum[lane] - diagonal[row][lane] * x[row][lane];
                out[row][lane] = if inverse[row][lane] > 0.0 { residual } else { 0.0 };
            }
        }
    });
}

/// Adds the values of one colour of a block to the cells of its cover, which are in natural order.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn fold<const D: usize>(cover: &mut [Row<f32>], octant: &[usize; D], values: &[f32]) {
    let (count, plane) = (const { half_rows(D) }, const { plane_rows(D) });
    let values = rows(values);
    assert!(values.len() == count && cover.len() == 2 * count);
    for row in 0..count {
        let lanes = &mut cover[row_of_cover(octant, row, plane)][4 * octant[0]..4 * octant[0] + 4];
        for lane in 0..4 {
            lanes[lane] += values[row][2 * lane] + values[row][2 * lane + 1];
        }
    }
}

/// Adds values in natural order to one colour of a block.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn add_natural<const D: usize>(out: &mut [f32], natural: &[Row<f32>], colour: usize) {
    let count = const { half_rows(D) };
    let out = rows_mut(out);
    assert!(out.len() == count && natural.len() == 2 * count);
    for row in 0..count {
        let values = split_row::<_, D>(natural, colour, row);
        for lane in 0..8 {
            out[row][lane] += values[lane];
        }
    }
}

/// Takes one colour of a block in natural order.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn split<const D: usize>(out: &mut [f64], natural: &[f64], colour: usize) {
    let natural = rows(natural);
    assert!(natural.len() == 2 * half_rows(D));
    for (row, out) in rows_mut(out).iter_mut().enumerate().take(half_rows(D)) {
        *out = split_row::<_, D>(natural, colour, row);
    }
}

/// Puts both colours of a block into natural order.
pub(super) fn join<const D: usize>(natural: &mut [f64], red: &[f64], black: &[f64]) {
    let (red, black) = (rows(red), rows(black));
    assert!(red.len() == half_rows(D) && black.len() == half_rows(D));
    for (row, out) in rows_mut(natural).iter_mut().enumerate() {
        *out = join_row::<_, D>(red, black, row);
    }
}

/// `A p` of the nodes of a colour; 0 where there is no node.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn product<T: Copy + Into<f64>, const D: usize>(
    out: &mut [f64],
    p: &[T],
    half: &Half,
    around: &Around<'_, T, D>,
    whole: f64,
    colour: usize,
) {
    let count = const { half_rows(D) };
    around.check();
    let (out, p, diagonal) = (rows_mut(out), rows(p), rows(&half.diagonal));
    assert!(out.len() == count && p.len() == count && diagonal.len() == count);
    with_links!(links(half), links, {
        for row in 0..count {
            out[row] = product_row(p[row], around, row, colour, whole, links, diagonal[row]);
        }
    });
}
