//! What a patch of a body's surface needs of the nodes beside it.
//!
//! Nodes are taken eight at a time, as they lie in the arrays: those of a sheet between two bodies all lie beside them, and
//! weights of zero for others cost less than looking up each node.

use multiversion::multiversion;

use crate::grid::masks;

use super::frame::Turned;
use super::rows::Rows;
use super::stock::Alike;

/// A node's number of faces, and twice the first moments of their cells' centres from the block's corner.
pub(super) type Weights = [f32; 4];

/// Nodes that are taken at a time: always as many, whatever the instruction set.
const LANES: usize = 8;

/// Eight places of a block's nodes, and those of them that take part.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Eight {
    at: u16,
    /// Which row they are, if the block keeps rows.
    row: u8,
    lanes: u8,
}

/// What the nodes of some eights weigh.
#[derive(Clone, Debug, PartialEq)]
enum Table {
    /// One face each, and moments as rows have them: of all rows of a colour.
    Centres(&'static [[[f32; LANES]; 3]]),
    /// Of each eight: all first weights, all second ones, and so on.
    Own(Vec<[[f32; LANES]; 4]>),
}

/// The nodes of one colour.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Half {
    eights: Vec<Eight>,
    table: Table,
}

/// The nodes of a patch with their weights, by colour.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape([Half; 2]);

impl Alike for Shape {
    fn is_like(&self, other: &Shape) -> bool {
        self == other
    }
}

impl Shape {
    /// From nodes in ascending order.
    pub fn new(nodes: &[Vec<(u16, Weights)>; 2]) -> Shape {
        Shape(nodes.each_ref().map(|nodes| {
            let (mut eights, mut table) = (Vec::new(), Vec::new());
            for same in nodes.chunk_by(|a, b| a.0 as usize / LANES == b.0 as usize / LANES) {
                let (mut weights, mut lanes) = ([[0.0; LANES]; 4], 0);
                for (node, own) in same {
                    let lane = *node as usize % LANES;
                    lanes |= 1 << lane;
                    (0..4).for_each(|k| weights[k][lane] = own[k]);
                }
                eights.push(Eight { at: same[0].0 / LANES as u16, row: 0, lanes });
                table.push(weights);
            }
            Half { eights, table: Table::Own(table) }
        }))
    }

    /// From cells of a block in rows, each with one face. Those that are no nodes are left out: they have no pressure.
    pub fn in_rows<const D: usize>(rows: &Rows, cells: &masks::Bits) -> Shape {
        let cells = Turned::<D>::new(&masks::and(cells, &rows.nodes), rows.frame.index);
        Shape([0, 1].map(|colour| {
            let eight = |(at, row)| Eight { at: at as u16, row: row as u8, lanes: cells.lanes(row, colour) };
            let eights = rows.kept().enumerate().map(eight).filter(|eight| eight.lanes != 0).collect();
            Half { eights, table: Table::Centres(&rows.frame.centres[colour]) }
        }))
    }

    /// Nodes of a colour, with their weights.
    pub fn each(&self, colour: usize) -> impl Iterator<Item = (usize, Weights)> + '_ {
        let Half { eights, table } = &self.0[colour];
        eights.iter().enumerate().flat_map(move |(index, eight)| {
            masks::each_in(u64::from(eight.lanes)).map(move |lane| {
                let weights = match table {
                    Table::Own(weights) => weights[index].map(|weights| weights[lane]),
                    Table::Centres(rows) => {
                        let [x, y, z] = rows[eight.row as usize].map(|centres| centres[lane]);
                        [1.0, x, y, z]
                    }
                };
                (eight.at as usize * LANES + lane, weights)
            })
        })
    }

    /// Sums over the nodes of `x` with all weights; `x` is filled up with zeros to whole eights.
    pub fn add_up<T: Pressure>(&self, x: [&[[T::Stored; LANES]]; 2]) -> [f64; 4] {
        T::add_up(self, x).map(|lanes| {
            let lanes = lanes.map(Into::into);
            ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
        })
    }

    /// Adds to each node of a colour its weights times `sum`.
    pub fn hand_out<A: Lane>(&self, colour: usize, sum: [f64; 4], out: &mut [A]) {
        A::hand_out(&self.0[colour], sum.map(A::from_wide), out);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let of = |half: &Half| {
            let own = if let Table::Own(weights) = &half.table { weights.capacity() } else { 0 };
            half.eights.capacity() * size_of::<Eight>() + own * 4 * 4 * LANES
        };
        self.0.iter().map(of).sum()
    }
}

/// Adds to eight values, as far as there are so many.
#[inline(always)]
fn add<T: Copy + std::ops::AddAssign>(out: &mut [T], eight: usize, parts: &[T; LANES]) {
    let (eights, rest) = out.as_chunks_mut::<LANES>();
    match eights.get_mut(eight) {
        Some(out) => {
            for lane in 0..LANES {
                out[lane] += parts[lane];
            }
        }
        None => rest.iter_mut().zip(parts).for_each(|(out, part)| *out += *part),
    }
}

/// 1 for lanes that take part and 0 for others, by [`Eight::lanes`].
static TAKEN: [[f32; LANES]; 256] = {
    let mut taken = [[0.0; LANES]; 256];
    let mut at = 0;
    while at < 256 * LANES {
        taken[at / LANES][at % LANES] = ((at / LANES) >> (at % LANES) & 1) as f32;
        at += 1;
    }
    taken
};

/// Adds products to the lanes of a sum.
macro_rules! add_products {
    ($sum:ident, $number:ty, $weights:expr, $values:expr) => {
        for lane in 0..LANES {
            $sum[lane] += <$number>::from($weights[lane]) * <$number>::from($values[lane]);
        }
    };
}

/// Sums over the nodes of a patch, lane by lane, in numbers of kind `$number`.
///
/// Four sums of eight lanes stay in registers only if nothing in a loop can panic, and if the lanes are added up elsewhere:
/// compilers would turn them into eight sums of four.
macro_rules! add_up {
    ($name:ident, $value:ty, $number:ty) => {
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
        fn $name(shape: &Shape, x: [&[[$value; LANES]]; 2]) -> [[$number; LANES]; 4] {
            let [mut sum, mut along_x, mut along_y, mut along_z] = [[0.0 as $number; LANES]; 4];
            for (half, x) in shape.0.iter().zip(x) {
                assert!(half.eights.last().is_none_or(|eight| (eight.at as usize) < x.len()));
                match &half.table {
                    Table::Own(table) => {
                        for (eight, weights) in half.eights.iter().zip(table) {
                            let Some(values) = x.get(eight.at as usize) else { continue };
                            add_products!(sum, $number, weights[0], values);
                            add_products!(along_x, $number, weights[1], values);
                            add_products!(along_y, $number, weights[2], values);
                            add_products!(along_z, $number, weights[3], values);
                        }
                    }
                    Table::Centres(rows) => {
                        for eight in &half.eights {
                            let Some(values) = x.get(eight.at as usize) else { continue };
                            let Some(centres) = rows.get(eight.row as usize) else { continue };
                            let (taken, mut own) = (&TAKEN[eight.lanes as usize], [0.0; LANES]);
                            add_products!(own, $number, taken, values);
                            for lane in 0..LANES {
                                sum[lane] += own[lane];
                            }
                            add_products!(along_x, $number, centres[0], own);
                            add_products!(along_y, $number, centres[1], own);
                            add_products!(along_z, $number, centres[2], own);
                        }
                    }
                }
            }
            [sum, along_x, along_y, along_z]
        }
    };
}
add_up!(add_up_roughly, f32, f32);
add_up!(add_up_exactly, f64, f64);
add_up!(add_up_widened, f32, f64);

/// Gives the nodes of a colour their part.
macro_rules! hand_out {
    ($name:ident, $number:ty) => {
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
        fn $name(half: &Half, sum: [$number; 4], out: &mut [$number]) {
            match &half.table {
                Table::Own(table) => {
                    for (eight, weights) in half.eights.iter().zip(table) {
                        let mut parts = [0.0 as $number; LANES];
                        for k in 0..4 {
                            for lane in 0..LANES {
                                parts[lane] += sum[k] * <$number>::from(weights[k][lane]);
                            }
                        }
                        add(out, eight.at as usize, &parts);
                    }
                }
                Table::Centres(rows) => {
                    for eight in &half.eights {
                        let centres = &rows[eight.row as usize];
                        let mut parts = [sum[0]; LANES];
                        for k in 0..3 {
                            for lane in 0..LANES {
                                parts[lane] += sum[k + 1] * <$number>::from(centres[k][lane]);
                            }
                        }
                        let taken = &TAKEN[eight.lanes as usize];
                        for lane in 0..LANES {
                            parts[lane] *= <$number>::from(taken[lane]);
                        }
                        add(out, eight.at as usize, &parts);
                    }
                }
            }
        }
    };
}
hand_out!(hand_out_roughly, f32);
hand_out!(hand_out_exactly, f64);

/// A vector that bodies answer to, and how exactly their answer is found.
pub(super) trait Pressure: Copy + Sync {
    /// Numbers as stored.
    type Stored: Copy + Sync;
    /// Numbers that are summed.
    type Number: Copy + Into<f64>;
    /// Sums over the nodes of a patch, with all weights, lane by lane.
    fn add_up(shape: &Shape, x: [&[[Self::Stored; LANES]]; 2]) -> [[Self::Number; LANES]; 4];
}

/// Of a sweep: in single precision.
#[derive(Clone, Copy)]
pub(super) struct Rough;
/// Of a direction of conjugate gradients: stored in single precision, summed in double.
#[derive(Clone, Copy)]
pub(super) struct Widened;
/// Of a solution: in double precision.
#[derive(Clone, Copy)]
pub(super) struct Exact;

macro_rules! pressure {
    ($kind:ty, $stored:ty, $number:ty, $add_up:ident) => {
        impl Pressure for $kind {
            type Stored = $stored;
            type Number = $number;
            fn add_up(shape: &Shape, x: [&[[$stored; LANES]]; 2]) -> [[$number; LANES]; 4] {
                $add_up(shape, x)
            }
        }
    };
}
pressure!(Rough, f32, f32, add_up_roughly);
pressure!(Widened, f32, f64, add_up_widened);
pressure!(Exact, f64, f64, add_up_exactly);

/// A number that a node's part is given in.
pub(super) trait Lane: Copy {
    fn from_wide(value: f64) -> Self;
    fn hand_out(half: &Half, sum: [Self; 4], out: &mut [Self]);
}

macro_rules! lane {
    ($number:ty, $hand_out:ident) => {
        impl Lane for $number {
            fn from_wide(value: f64) -> $number {
                value as $number
            }
            fn hand_out(half: &Half, sum: [$number; 4], out: &mut [$number]) {
                $hand_out(half, sum, out);
            }
        }
    };
}
lane!(f32, hand_out_roughly);
lane!(f64, hand_out_exactly);
