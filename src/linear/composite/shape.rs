//! What a patch of a body's surface needs of the nodes beside it.
//!
//! Nodes are taken eight at a time, as they lie in the arrays: those of a sheet between two bodies all lie beside them, and
//! weights of zero for others cost less than looking up each node.

use multiversion::multiversion;

/// A node's number of faces, and twice the first moments of their cells' centres from the block's corner.
pub(super) type Weights = [f32; 4];

/// Nodes that are taken at a time: always as many, whatever the instruction set.
const LANES: usize = 8;

/// The nodes of one colour.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    /// Which eights of the block's nodes, and for each all first weights, all second ones, and so on.
    eights: Vec<u16>,
    weights: Vec<[[f32; LANES]; 4]>,
}

/// The nodes of a patch with their weights, by colour.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape([Half; 2]);

impl Shape {
    /// From nodes in ascending order.
    pub fn new(nodes: &[Vec<(u16, Weights)>; 2]) -> Shape {
        Shape([0, 1].map(|colour: usize| {
            let mut half = Half::default();
            for same in nodes[colour].chunk_by(|a, b| a.0 as usize / LANES == b.0 as usize / LANES) {
                let mut weights = [[0.0; LANES]; 4];
                for (node, own) in same {
                    (0..4).for_each(|k| weights[k][*node as usize % LANES] = own[k]);
                }
                half.eights.push(same[0].0 / LANES as u16);
                half.weights.push(weights);
            }
            half
        }))
    }

    /// Nodes of a colour, with their weights.
    pub fn each(&self, colour: usize) -> impl Iterator<Item = (usize, Weights)> + '_ {
        let half = &self.0[colour];
        half.eights.iter().zip(&half.weights).flat_map(|(&eight, weights)| {
            (0..LANES)
                .filter(|&lane| weights[0][lane] != 0.0)
                .map(move |lane| (eight as usize * LANES + lane, weights.map(|weights| weights[lane])))
        })
    }

    /// Sums over the nodes of `x` with all weights.
    pub fn add_up<T: Pressure>(&self, x: [&[T::Stored]; 2]) -> [f64; 4] {
        let [red, black] = [0, 1].map(|colour| T::add_up(&self.0[colour], x[colour]));
        std::array::from_fn(|k| red[k] + black[k])
    }

    /// Adds to each node its weights times `sum`.
    pub fn hand_out<A: Lane>(&self, sum: [f64; 4], out: &mut [&mut [A]; 2]) {
        let sum = sum.map(A::from_wide);
        for (half, out) in self.0.iter().zip(out) {
            A::hand_out(half, sum, out);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let of = |half: &Half| half.eights.capacity() * 2 + half.weights.capacity() * 4 * 4 * LANES;
        self.0.iter().map(of).sum()
    }
}

/// Eight values; zero beyond the end.
#[inline(always)]
fn eight_of<T: Copy + Default>(x: &[T], eight: usize) -> [T; LANES] {
    let (eights, rest) = x.as_chunks::<LANES>();
    eights.get(eight).copied().unwrap_or_else(|| {
        let mut values = [T::default(); LANES];
        values[..rest.len()].copy_from_slice(rest);
        values
    })
}

/// Sums over the nodes of a colour, in numbers of kind `$number`.
macro_rules! add_up {
    ($name:ident, $value:ty, $number:ty) => {
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
        fn $name(half: &Half, x: &[$value]) -> [f64; 4] {
            let mut sums = [[0.0 as $number; LANES]; 4];
            for (&eight, weights) in half.eights.iter().zip(&half.weights) {
                let values = eight_of(x, eight as usize);
                for k in 0..4 {
                    for lane in 0..LANES {
                        sums[k][lane] += <$number>::from(weights[k][lane]) * <$number>::from(values[lane]);
                    }
                }
            }
            let mut out = [0.0; 4];
            for k in 0..4 {
                for lane in 0..LANES {
                    out[k] += f64::from(sums[k][lane]);
                }
            }
            out
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
            for (&eight, weights) in half.eights.iter().zip(&half.weights) {
                let mut parts = [0.0 as $number; LANES];
                for lane in 0..LANES {
                    let part = |k: usize| sum[k] * <$number>::from(weights[k][lane]);
                    parts[lane] = (part(0) + part(1)) + (part(2) + part(3));
                }
                let (eights, rest) = out.as_chunks_mut::<LANES>();
                match eights.get_mut(eight as usize) {
                    Some(out) => {
                        for lane in 0..LANES {
                            out[lane] += parts[lane];
                        }
                    }
                    None => rest.iter_mut().zip(parts).for_each(|(out, part)| *out += part),
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
    /// Sums over the nodes of a colour of a patch, with all weights.
    fn add_up(half: &Half, x: &[Self::Stored]) -> [f64; 4];
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
    ($kind:ty, $stored:ty, $add_up:ident) => {
        impl Pressure for $kind {
            type Stored = $stored;
            fn add_up(half: &Half, x: &[$stored]) -> [f64; 4] {
                $add_up(half, x)
            }
        }
    };
}
pressure!(Rough, f32, add_up_roughly);
pressure!(Widened, f32, add_up_widened);
pressure!(Exact, f64, add_up_exactly);

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
