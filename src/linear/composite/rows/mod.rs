//! Blocks kept in rows: their patterns, and SIMD `kernels` for smoothing, residuals and products. Cells that are no nodes have
//! no diagonal, and their value stays 0.

mod kernels;

use crate::grid::masks;
use crate::math::power;

use super::super::layout::{Row, plane_rows};
use super::pattern::{DIRECTIONS, End, NodeTerms, Pattern};
use super::row_layout::{HALO, Oriented, RowChoice, RowLayout, layout};

pub(super) use kernels::{
    Values, add_natural, fold, join, product, product_alone, relax, relax_alone, residual, residual_alone,
    rows, rows_mut, split,
};

/// What a pattern in rows has beside its halves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rows {
    pub layout: &'static RowLayout,
    /// Its nodes, by cell.
    pub nodes: masks::Bits,
    /// Nodes that have a link in each direction.
    pub linked: [masks::Bits; DIRECTIONS],
    /// By direction and colour: rows with links beyond that side of the block, as bits.
    pub halo_rows: [[u32; 2]; DIRECTIONS],
    /// If not all rows are kept.
    pub kept_rows: Option<KeptRows>,
}

/// The rows that a block keeps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptRows {
    kept: Vec<u8>,
    /// Each row's number among them.
    rank: [u8; 32],
}

/// Not kept.
const ABSENT: u8 = u8::MAX;

impl KeptRows {
    fn new(rows: u32) -> KeptRows {
        let kept: Vec<u8> = masks::each_in(u64::from(rows)).map(|row| row as u8).collect();
        let mut rank = [ABSENT; 32];
        kept.iter().enumerate().for_each(|(number, &row)| rank[row as usize] = number as u8);
        KeptRows { kept, rank }
    }
}

impl Rows {
    /// The rows that are kept, in order.
    pub fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        let all = if self.kept_rows.is_some() { 0 } else { self.layout.cells[0].len() / 8 };
        let kept_rows = self.kept_rows.iter().flat_map(|kept_rows| &kept_rows.kept).map(|&row| row as usize);
        (0..all).chain(kept_rows)
    }

    /// A row's number among those kept, if it is.
    #[inline]
    pub fn rank(&self, row: usize) -> Option<usize> {
        match &self.kept_rows {
            None => Some(row),
            Some(kept_rows) => (kept_rows.rank[row] != ABSENT).then_some(kept_rows.rank[row] as usize),
        }
    }

    /// A cell's place among those of its colour.
    #[inline]
    pub fn place(&self, cell: usize) -> usize {
        let place = self.layout.place[cell] as usize;
        self.kept_rows.as_ref().map_or(place, |kept_rows| 8 * kept_rows.rank[place / 8] as usize + place % 8)
    }

    /// The colour of a cell.
    #[inline]
    pub fn colour(&self, cell: usize) -> usize {
        usize::from(masks::has(&self.layout.coloured[1], cell))
    }

    /// Calls `each(coarse cell, direction, sum)` with the sums of the links that lead out of aggregates. The pattern keeps its
    /// links.
    pub fn each_sum_of_links<const D: usize>(
        &self,
        pattern: &Pattern,
        mut each: impl FnMut([u8; 3], usize, f64),
    ) {
        let (plane, orientation) = (const { plane_rows(D) }, &self.layout.orientation);
        for coarse_row in 0..4 * plane.div_ceil(2) {
            let (m, across) = (coarse_row % 4, coarse_row / 4);
            let mut lanes = LinksOfLanes::default();
            for (colour, half) in pattern.half.iter().enumerate() {
                for y in (2 * across..2 * across + 2).take_while(|&y| y < plane) {
                    if let Some(rank) = self.rank(m * plane + y) {
                        lanes.add::<D>(&rows(&half.links)[2 * D * rank..2 * D * (rank + 1)], y, colour);
                    }
                }
            }
            let sums = lanes.by_role::<D>();
            for (role, &axis) in orientation.iter().enumerate() {
                for (side, sums) in sums[role].iter().enumerate() {
                    for (x, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
                        let mut cell = [0; 3];
                        (cell[orientation[0]], cell[orientation[D - 1]]) = (x as u8, m as u8);
                        if D == 3 {
                            cell[orientation[1]] = across as u8;
                        }
                        each(cell, 2 * axis + side, sum);
                    }
                }
            }
        }
    }

    /// The other end of a cell's link.
    #[inline]
    pub fn end(&self, cell: usize, direction: usize) -> End {
        let colour = self.colour(cell);
        let near = self.layout.near[direction * self.layout.place.len() + cell];
        match (near & HALO, &self.kept_rows) {
            (0, None) => End::Local(1 - colour, near as usize),
            (0, Some(kept_rows)) => {
                End::Local(1 - colour, 8 * kept_rows.rank[near as usize / 8] as usize + near as usize % 8)
            }
            _ => End::Halo((near & !HALO) as usize),
        }
    }

    /// A cell's link in a direction, from the links of its colour; `whole` where these need not be kept.
    #[inline]
    pub fn link(&self, links: &[f32], cell: usize, direction: usize, whole: f32) -> f32 {
        links.get(self.place_of_link(cell, direction)).copied().unwrap_or(whole)
    }

    /// Where a cell's link in a direction is among those of its colour.
    #[inline]
    fn place_of_link(&self, cell: usize, direction: usize) -> usize {
        let at = self.layout.link[direction * self.layout.place.len() + cell] as usize;
        // Each row has as many rows of links as nodes have neighbours.
        let each = self.layout.link_rows * 8;
        self.kept_rows.as_ref().map_or(at, |kept_rows| kept_rows.rank[at / each] as usize * each + at % each)
    }
}

/// Sums of those links in rows under a row of coarse cells that lead out of these, by lane. Of its two links along each axis, a
/// cell has one to another of the same aggregate: in which lanes it is which, and the order of links, are those of
/// `kernels::neighbours`.
#[derive(Default)]
struct LinksOfLanes {
    along: [f64; 8],
    /// Along the axis of pairs, of rows in which even lanes have their outer neighbour on the low side, and of others.
    pairs: [[f64; 8]; 2],
    /// To the low and to the high side.
    across: [[f64; 8]; 2],
}

impl LinksOfLanes {
    /// Adds the links of a row.
    #[inline(always)]
    fn add<const D: usize>(&mut self, links: &[Row<f32>], y: usize, colour: usize) {
        let links = &links[..2 * D];
        for lane in 0..8 {
            self.along[lane] += f64::from(if lane % 2 == 0 { links[0][lane] } else { links[1][lane] });
        }
        let pairs = &mut self.pairs[(y + colour) % 2];
        (0..8).for_each(|lane| pairs[lane] += f64::from(links[3][lane]));
        if D == 3 {
            let (across, links) = (&mut self.across[y % 2], &links[4 + y % 2]);
            (0..8).for_each(|lane| across[lane] += f64::from(links[lane]));
        }
    }

    /// By place of an axis in the orientation, by side and coarse cell.
    #[inline(always)]
    fn by_role<const D: usize>(&self) -> [[[f64; 4]; 2]; 3] {
        let mut sums = [[[0.0; 4]; 2]; 3];
        for (side, x) in [0, 1].into_iter().flat_map(|side| (0..4).map(move |x| (side, x))) {
            let (own, other) = (2 * x + side, 2 * x + 1 - side);
            sums[0][side][x] = self.along[own];
            sums[D - 1][side][x] = self.pairs[0][own] + self.pairs[1][other];
            if D == 3 {
                sums[1][side][x] = self.across[side][2 * x] + self.across[side][2 * x + 1];
            }
        }
        sums
    }
}

/// Calls `each(coarse cell, count)` for the coarse cells of a block out of which links lead in a direction, in which `linked`
/// cells have one each.
#[inline]
pub(super) fn each_count<const D: usize>(
    linked: &masks::Bits,
    direction: usize,
    mut each: impl FnMut([u8; 3], u32),
) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    const QUARTERS: u64 = 0x3333_3333_3333_3333;
    const ROWS: u64 = 0x00ff_00ff_00ff_00ff;
    let (axis, high) = (direction / 2, direction % 2);
    let facing = [[EVEN, !EVEN], [ROWS, !ROWS], [u64::MAX; 2]][axis][high];
    for z in 0..power(4, D - 2) {
        let mut layers = if D == 3 { [linked[2 * z], linked[2 * z + 1]] } else { [linked[0], 0] };
        if axis == 2 {
            layers[1 - high] = 0;
        }
        // Cells side by side, two bits for each pair; then both layers, four bits; then both rows.
        let pairs = layers.map(|word| (word & facing & EVEN) + ((word & facing) >> 1 & EVEN));
        let squares = [0, 2].map(|shift| (pairs[0] >> shift & QUARTERS) + (pairs[1] >> shift & QUARTERS));
        let counts = squares.map(|squares| squares + (squares >> 8));
        for y in 0..4 {
            for x in 0..4 {
                let count = (counts[x % 2] >> (16 * y + 4 * (x / 2)) & 15) as u32;
                if count > 0 {
                    each([x as u8, y as u8, z as u8], count);
                }
            }
        }
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

/// What a block is made of.
pub(super) struct BlockContent<'a> {
    /// The cells that are nodes.
    pub nodes: &'a masks::Bits,
    /// Nodes with a link in each direction.
    pub linked: &'a [masks::Bits; DIRECTIONS],
    /// The links, unless there is a table of them.
    pub whole: f32,
    /// Nodes that have terms other than the default.
    pub special: &'a masks::Bits,
}

/// A pattern in the rows of a [`RowChoice`] made for its nodes; `terms(cell)` are those of special ones. `table` has the links by
/// direction and cell, 0 where there is none, unless all are whole. None if a node is held by nothing.
pub(super) fn pattern_in_rows<const D: usize>(
    choice: RowChoice,
    content: &BlockContent<'_>,
    table: Option<&[f32]>,
    terms: impl Fn(usize) -> NodeTerms,
) -> Option<Pattern> {
    let &BlockContent { nodes, linked, whole, special } = content;
    let layout = layout::<D>(choice.orientation);
    let kept_rows = choice.rows.map(KeptRows::new);
    let mut rows =
        Box::new(Rows { layout, nodes: *nodes, linked: *linked, halo_rows: Default::default(), kept_rows });
    let mut halo_rows = rows.halo_rows;
    let oriented = |bits: &masks::Bits| Oriented::<D>::new(bits, choice.orientation);
    let (oriented_nodes, oriented_links) = (oriented(nodes), linked.each_ref().map(oriented));
    let mut pattern = Pattern::default();
    for colour in 0..2 {
        let half = &mut pattern.half[colour];
        let (all, _) = layout.cells[colour].as_chunks::<8>();
        half.cells = match &rows.kept_rows {
            None => layout.cells[colour].as_slice().into(),
            Some(kept_rows) => kept_rows.kept.iter().flat_map(|&row| all[row as usize]).collect(),
        };
        half.halo = layout.halo[colour].as_slice().into();
        half.own = 1;
        let count = half.cells.len();
        half.diagonal = vec![0.0; count];
        let own_special = masks::and(&masks::and(special, nodes), &layout.coloured[colour]);
        if own_special != masks::NONE {
            let mut list = vec![NodeTerms::default(); count];
            for cell in masks::each(&own_special) {
                let (own, place) = (terms(cell), rows.place(cell));
                half.has_shared |= own.has_shared;
                half.diagonal[place] = f64::from(own.ground);
                list[place] = own;
            }
            pattern.terms[colour] = list;
        }
        if table.is_some() {
            half.links = vec![0.0; 2 * D * count];
        }
        for (at, (row, sums)) in rows.kept().zip(rows_mut(&mut half.diagonal)).enumerate() {
            let mut counts = [0; 8];
            for (direction, linked) in oriented_links.iter().enumerate().take(2 * D) {
                let lanes = linked.lanes(row, colour);
                let looks_out = lanes & layout.outer[direction][colour][row] != 0;
                halo_rows[direction][colour] |= u32::from(looks_out) << row;
                let marks = masks::marks_of(lanes);
                (0..8).for_each(|lane| counts[lane] += marks[lane]);
            }
            if let Some(table) = table {
                let links = &mut rows_mut(&mut half.links)[2 * D * at..2 * D * (at + 1)];
                take_links::<D>(table, layout, colour, row, links);
                for links in &*links {
                    (0..8).for_each(|lane| sums[lane] += f64::from(links[lane]));
                }
            } else {
                (0..8).for_each(|lane| sums[lane] += f64::from(whole) * f64::from(counts[lane]));
            }
            let has_shared = |place: usize| {
                half.has_shared && pattern.terms[colour].get(place).is_some_and(|terms| terms.has_shared)
            };
            let mut loose = [0; 8];
            (0..8).for_each(|lane| loose[lane] = u8::from(sums[lane] <= 0.0));
            let loose = masks::row_of(&loose) & oriented_nodes.lanes(row, colour);
            if masks::each_in(u64::from(loose)).any(|lane| !has_shared(8 * at + lane)) {
                return None;
            }
        }
        half.find_inverse();
    }
    rows.halo_rows = halo_rows;
    pattern.rows = Some(rows);
    Some(pattern)
}

/// Takes the links of a row of cells from a table by direction and cell, in the order of `kernels::neighbours`: along rows, to
/// the other cell of the pair, to the one on its other side, across rows.
#[inline]
fn take_links<const D: usize>(
    table: &[f32],
    layout: &RowLayout,
    colour: usize,
    row: usize,
    links: &mut [Row<f32>],
) {
    let (cells, _) = layout.cells[colour].as_chunks::<8>();
    let (cells, each) = (cells[row], table.len() / DIRECTIONS);
    let of = |role: usize, high: usize| &table[(2 * layout.orientation[role] + high) * each..][..each];
    for high in 0..2 {
        let along = of(0, high);
        (0..8).for_each(|lane| links[high][lane] = along[cells[lane] as usize]);
        if D == 3 {
            let across = of(1, high);
            (0..8).for_each(|lane| links[4 + high][lane] = across[cells[lane] as usize]);
        }
    }
    let pair = [of(D - 1, 0), of(D - 1, 1)];
    for (lane, &cell) in cells.iter().enumerate() {
        let odd = (lane + row % plane_rows(D) + colour) % 2;
        links[2][lane] = pair[1 - odd][cell as usize];
        links[3][lane] = pair[odd][cell as usize];
    }
}
