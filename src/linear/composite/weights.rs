//! The weights of `J` on a patch of a body's surface: number of faces and first moments of the nodes beside it.
//!
//! Nodes are taken eight at a time, as they lie in the arrays: those of a sheet between two bodies all lie beside them, and
//! weights of zero for others cost less than looking up each node.

use macro_rules_attribute::apply;

use crate::math::simd;

use crate::grid::masks;

use super::super::scalar::Scalar;
use super::interner::SameContent;
use super::row_layout::Oriented;
use super::rows::Rows;

/// A node's number of faces, and twice the first moments of their cells' centres from the block's corner.
pub(super) type Weights = [f32; 4];

/// Nodes that are taken at a time: always as many, whatever the instruction set.
const LANES: usize = 8;

/// Eight places of a block's nodes, and which of them lie on the patch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LaneGroup {
    at: u16,
    /// Which row they are, if the block keeps rows.
    row: u8,
    lanes: u8,
}

/// The weights of some groups.
#[derive(Clone, Debug, PartialEq)]
enum Table {
    /// One face each, and moments as rows have them: of all rows of a colour.
    Centres(&'static [[[f32; LANES]; 3]]),
    /// Of each group: all first weights, all second ones, and so on.
    Own(Vec<[[f32; LANES]; 4]>),
}

/// The weights of the nodes of one colour.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Half {
    groups: Vec<LaneGroup>,
    table: Table,
}

/// The nodes of a patch with their weights, by colour.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatchWeights([Half; 2]);

impl SameContent for PatchWeights {
    fn is_same_as(&self, other: &PatchWeights) -> bool {
        self == other
    }
}

impl PatchWeights {
    /// From nodes in ascending order.
    pub fn new(nodes: &[Vec<(u16, Weights)>; 2]) -> PatchWeights {
        PatchWeights(nodes.each_ref().map(|nodes| {
            let (mut groups, mut table) = (Vec::new(), Vec::new());
            for same in nodes.chunk_by(|a, b| a.0 as usize / LANES == b.0 as usize / LANES) {
                let (mut weights, mut lanes) = ([[0.0; LANES]; 4], 0);
                for (node, own) in same {
                    let lane = *node as usize % LANES;
                    lanes |= 1 << lane;
                    (0..4).for_each(|k| weights[k][lane] = own[k]);
                }
                groups.push(LaneGroup { at: same[0].0 / LANES as u16, row: 0, lanes });
                table.push(weights);
            }
            Half { groups, table: Table::Own(table) }
        }))
    }

    /// From cells of a block in rows, each with one face. Those that are no nodes are left out: they have no pressure.
    pub fn in_rows<const D: usize>(rows: &Rows, cells: &masks::Bits) -> PatchWeights {
        let cells = Oriented::<D>::new(&masks::and(cells, &rows.nodes), rows.layout.index);
        PatchWeights([0, 1].map(|colour| {
            let group =
                |(at, row)| LaneGroup { at: at as u16, row: row as u8, lanes: cells.lanes(row, colour) };
            let groups = rows.kept().enumerate().map(group).filter(|group| group.lanes != 0).collect();
            Half { groups, table: Table::Centres(&rows.layout.centres[colour]) }
        }))
    }

    /// Nodes of a colour, with their weights.
    pub fn each(&self, colour: usize) -> impl Iterator<Item = (usize, Weights)> + '_ {
        let Half { groups, table } = &self.0[colour];
        groups.iter().enumerate().flat_map(move |(index, group)| {
            masks::each_in(u64::from(group.lanes)).map(move |lane| {
                let weights = match table {
                    Table::Own(weights) => weights[index].map(|weights| weights[lane]),
                    Table::Centres(rows) => {
                        let [x, y, z] = rows[group.row as usize].map(|centres| centres[lane]);
                        [1.0, x, y, z]
                    }
                };
                (group.at as usize * LANES + lane, weights)
            })
        })
    }

    /// `J x` of a patch: sums of `x` over its nodes, in numbers `N`, with all weights; `x` is filled up with zeros to whole groups.
    pub fn gather_force<S: Copy, N: Scalar + From<S>>(&self, x: [&[[S; LANES]]; 2]) -> [f64; 4] {
        gather_lanes::<S, N>(self, x).map(|lanes| {
            let lanes: [f64; LANES] = lanes.map(Into::into);
            ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
        })
    }

    /// `out += Jᵀ c` of a patch: adds to each node of a colour its weights times the coefficients `c`.
    pub fn scatter_velocity<N: Scalar>(&self, colour: usize, c: [f64; 4], out: &mut [N]) {
        scatter_lanes(&self.0[colour], c.map(N::from_f64), out);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let of = |half: &Half| {
            let own = if let Table::Own(weights) = &half.table { weights.capacity() } else { 0 };
            half.groups.capacity() * size_of::<LaneGroup>() + own * 4 * 4 * LANES
        };
        self.0.iter().map(of).sum()
    }
}

/// Adds to eight values, or to as many as there are.
#[inline(always)]
fn add<T: Copy + std::ops::AddAssign>(out: &mut [T], group: usize, parts: &[T; LANES]) {
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    match groups.get_mut(group) {
        Some(out) => {
            for lane in 0..LANES {
                out[lane] += parts[lane];
            }
        }
        None => rest.iter_mut().zip(parts).for_each(|(out, part)| *out += *part),
    }
}

/// 1 for lanes that take part and 0 for others, by [`LaneGroup::lanes`].
static TAKEN: [[f32; LANES]; 256] = {
    let mut taken = [[0.0; LANES]; 256];
    let mut at = 0;
    while at < 256 * LANES {
        taken[at / LANES][at % LANES] = ((at / LANES) >> (at % LANES) & 1) as f32;
        at += 1;
    }
    taken
};

/// `sum += weights · values`, lane by lane.
#[inline(always)]
fn add_products<S: Copy, N: Scalar + From<S>>(
    sum: &mut [N; LANES],
    weights: &[f32; LANES],
    values: &[S; LANES],
) {
    for lane in 0..LANES {
        sum[lane] += <N as From<f32>>::from(weights[lane]) * <N as From<S>>::from(values[lane]);
    }
}

/// `J x` of a patch, lane by lane: sums over its nodes of numbers `S`, in numbers `N`, with all weights.
///
/// Four sums of eight lanes stay in registers only if nothing in a loop can panic, and if the lanes are added up elsewhere:
/// compilers would turn them into eight sums of four.
#[apply(simd)]
fn gather_lanes<S: Copy, N: Scalar + From<S>>(
    weights: &PatchWeights,
    x: [&[[S; LANES]]; 2],
) -> [[N; LANES]; 4] {
    let [mut sum, mut along_x, mut along_y, mut along_z] = [[N::default(); LANES]; 4];
    for (half, x) in weights.0.iter().zip(x) {
        assert!(half.groups.last().is_none_or(|group| (group.at as usize) < x.len()));
        match &half.table {
            Table::Own(table) => {
                for (group, weights) in half.groups.iter().zip(table) {
                    let Some(values) = x.get(group.at as usize) else { continue };
                    add_products(&mut sum, &weights[0], values);
                    add_products(&mut along_x, &weights[1], values);
                    add_products(&mut along_y, &weights[2], values);
                    add_products(&mut along_z, &weights[3], values);
                }
            }
            Table::Centres(rows) => {
                for group in &half.groups {
                    let Some(values) = x.get(group.at as usize) else { continue };
                    let Some(centres) = rows.get(group.row as usize) else { continue };
                    let mut own = [N::default(); LANES];
                    add_products(&mut own, &TAKEN[group.lanes as usize], values);
                    for lane in 0..LANES {
                        sum[lane] += own[lane];
                    }
                    add_own_products(&mut along_x, &centres[0], &own);
                    add_own_products(&mut along_y, &centres[1], &own);
                    add_own_products(&mut along_z, &centres[2], &own);
                }
            }
        }
    }
    [sum, along_x, along_y, along_z]
}

/// `sum += weights · values` for values that are numbers of the sum already.
#[inline(always)]
fn add_own_products<N: Scalar>(sum: &mut [N; LANES], weights: &[f32; LANES], values: &[N; LANES]) {
    for lane in 0..LANES {
        sum[lane] += N::from(weights[lane]) * values[lane];
    }
}

/// `out += Jᵀ c` over the nodes of a colour.
#[apply(simd)]
fn scatter_lanes<N: Scalar>(half: &Half, c: [N; 4], out: &mut [N]) {
    match &half.table {
        Table::Own(table) => {
            for (group, weights) in half.groups.iter().zip(table) {
                let mut parts = [N::default(); LANES];
                for k in 0..4 {
                    for lane in 0..LANES {
                        parts[lane] += c[k] * N::from(weights[k][lane]);
                    }
                }
                add(out, group.at as usize, &parts);
            }
        }
        Table::Centres(rows) => {
            for group in &half.groups {
                let centres = &rows[group.row as usize];
                let mut parts = [c[0]; LANES];
                for k in 0..3 {
                    for lane in 0..LANES {
                        parts[lane] += c[k + 1] * N::from(centres[k][lane]);
                    }
                }
                let taken = &TAKEN[group.lanes as usize];
                for lane in 0..LANES {
                    parts[lane] *= N::from(taken[lane]);
                }
                add(out, group.at as usize, &parts);
            }
        }
    }
}
