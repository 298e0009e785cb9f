//! The inner loops over the nodes of one colour of a block, given the values that they are linked to.
//!
//! Each is compiled for several instruction sets and chosen at run time; all versions add in the same order.

use multiversion::multiversion;

use super::super::krylov::ResidualNorm;
use super::pattern::{DIRECTIONS, Half, ParentsOf};

/// What the nodes of a block are linked to. The first place always holds zero.
pub(super) struct Workspace<T>(Vec<T>);

impl<T: Copy + Default> Workspace<T> {
    /// Has so many places.
    pub fn new(room: usize) -> Self {
        Workspace(vec![T::default(); room])
    }

    /// Takes the values that the nodes of a colour are linked to: those of the other colour, and copies of what is beyond the
    /// block.
    #[inline]
    pub fn load(&mut self, here: &[T], beyond: &[T]) {
        let (own, there) = self.0[1..].split_at_mut(here.len());
        own.copy_from_slice(here);
        there[..beyond.len()].copy_from_slice(beyond);
    }

    #[inline(always)]
    fn check(&self, half: &Half) {
        assert!(half.room() <= self.0.len());
    }

    /// Takes the values of the nodes themselves, where they are linked to each other.
    #[inline]
    pub fn load_own(&mut self, half: &Half, own: &[T]) {
        if !half.further.is_empty() {
            self.0[half.own..][..own.len()].copy_from_slice(own);
        }
    }
}

/// One slice per direction.
#[inline(always)]
fn by_direction<T>(values: &[T], count: usize) -> [&[T]; DIRECTIONS] {
    std::array::from_fn(|direction| &values[direction * count..(direction + 1) * count])
}

#[inline(always)]
fn sum_of<T: std::ops::Add<Output = T>>(terms: [T; DIRECTIONS]) -> T {
    let [a, b, c, d, e, f] = terms;
    ((a + b) + (c + d)) + (e + f)
}

/// The value of a node's neighbour in a direction.
#[inline(always)]
fn value<T: Copy>(values: &Workspace<T>, near: &[u16], node: usize) -> T {
    // SAFETY: places are below the room that their pattern asks for (`Draft::finish`), and callers check that there is as
    // much (`Workspace::check`).
    unsafe { *values.0.get_unchecked(near[node] as usize) }
}

/// Writes `finish(node, Σ g x)` for every node, with sums over the first neighbours in all directions.
macro_rules! pull_all {
    ($half:expr, $values:expr, $whole:expr, $count:expr, $number:ty, |$node:ident, $sum:ident| $finish:expr) => {
        $values.check($half);
        let near = by_direction($half.all_near(), $count);
        if $half.links.is_empty() {
            for $node in 0..$count {
                let terms: [$number; DIRECTIONS] =
                    std::array::from_fn(|k| <$number>::from(value($values, near[k], $node)));
                let $sum = $whole * sum_of(terms);
                $finish;
            }
        } else {
            let links = by_direction(&$half.links, $count);
            for $node in 0..$count {
                let terms: [$number; DIRECTIONS] = std::array::from_fn(|k| {
                    <$number>::from(links[k][$node]) * <$number>::from(value($values, near[k], $node))
                });
                let $sum = sum_of(terms);
                $finish;
            }
        }
    };
}

/// One pass over the nodes of a colour; a node's row is `diagonal x − Σ g x_neighbour = rhs`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn relax_all(x: &mut [f32], rhs: &[f32], inverse: &[f32], half: &Half, values: &Workspace<f32>, whole: f32) {
    let count = x.len();
    let diagonal = half.rounded.as_slice();
    assert!(rhs.len() == count && inverse.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f32, |node, sum| {
        x[node] += inverse[node] * (rhs[node] + sum - diagonal[node] * x[node])
    });
}

/// The same where some are linked to each other: one after the other, or `backwards`.
fn relax_in_turn(
    x: &mut [f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    values: &mut Workspace<f32>,
    whole: f32,
    backwards: bool,
) {
    values.check(half);
    let mut rest = half.further.as_slice();
    for step in 0..x.len() {
        let node = if backwards { x.len() - 1 - step } else { step };
        let is_own = |link: &&super::pattern::Further| link.node as usize == node;
        let count = match backwards {
            false => rest.iter().take_while(is_own).count(),
            true => rest.iter().rev().take_while(is_own).count(),
        };
        let (own, others) = match backwards {
            false => rest.split_at(count),
            true => {
                let (others, own) = rest.split_at(rest.len() - count);
                (own, others)
            }
        };
        rest = others;
        let terms = std::array::from_fn(|direction| {
            let link = half.links.get(direction * x.len() + node).copied().unwrap_or(whole);
            link * value(values, half.near(direction), node)
        });
        let further: f32 = own.iter().map(|link| link.link * values.0[link.near as usize]).sum();
        let sum = sum_of(terms) + further;
        x[node] += inverse[node] * (rhs[node] + sum - half.rounded[node] * x[node]);
        values.0[half.own + node] = x[node];
    }
}

/// One pass over the nodes of a colour.
#[inline]
pub(super) fn relax(
    x: &mut [f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    values: &mut Workspace<f32>,
    whole: f32,
    backwards: bool,
) {
    if half.further.is_empty() {
        relax_all(x, rhs, inverse, half, values, whole);
    } else {
        values.load_own(half, x);
        relax_in_turn(x, rhs, inverse, half, values, whole, backwards);
    }
}

/// `rhs + Σ g x_neighbour − diagonal x`, without further links.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn residual_all(out: &mut [f32], x: &[f32], rhs: &[f32], half: &Half, values: &Workspace<f32>, whole: f32) {
    let count = x.len();
    let diagonal = half.rounded.as_slice();
    assert!(rhs.len() == count && out.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f32, |node, sum| {
        out[node] = rhs[node] + sum - diagonal[node] * x[node]
    });
}

/// What is left of the right-hand side.
#[inline]
pub(super) fn residual(
    out: &mut [f32],
    x: &[f32],
    rhs: &[f32],
    half: &Half,
    values: &mut Workspace<f32>,
    whole: f32,
) {
    values.load_own(half, x);
    residual_all(out, x, rhs, half, values, whole);
    for link in &half.further {
        out[link.node as usize] += link.link * values.0[link.near as usize];
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn product_narrow(out: &mut [f64], p: &[f32], half: &Half, values: &Workspace<f32>, whole: f64) {
    let count = p.len();
    let diagonal = half.diagonal.as_slice();
    assert!(out.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f64, |node, sum| {
        out[node] = diagonal[node] * f64::from(p[node]) - sum
    });
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn product_wide(out: &mut [f64], p: &[f64], half: &Half, values: &Workspace<f64>, whole: f64) {
    let count = p.len();
    let diagonal = half.diagonal.as_slice();
    assert!(out.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f64, |node, sum| out[node] = diagonal[node] * p[node] - sum);
}

/// A number of the vectors that are multiplied.
pub(super) trait Factor: Copy + Default + Into<f64> + Send + Sync {
    /// `A p` of the nodes of a colour, without further links.
    fn product_all(out: &mut [f64], p: &[Self], half: &Half, values: &Workspace<Self>, whole: f64);
    /// `p·q`.
    fn alignment(p: &[Self], q: &[f64]) -> f64;
}

impl Factor for f32 {
    fn product_all(out: &mut [f64], p: &[f32], half: &Half, values: &Workspace<f32>, whole: f64) {
        product_narrow(out, p, half, values, whole);
    }
    fn alignment(p: &[f32], q: &[f64]) -> f64 {
        alignment_narrow(p, q)
    }
}

impl Factor for f64 {
    fn product_all(out: &mut [f64], p: &[f64], half: &Half, values: &Workspace<f64>, whole: f64) {
        product_wide(out, p, half, values, whole);
    }
    fn alignment(p: &[f64], q: &[f64]) -> f64 {
        alignment_wide(p, q)
    }
}

/// `A p` of the nodes of a colour.
#[inline]
pub(super) fn product<T: Factor>(
    out: &mut [f64],
    p: &[T],
    half: &Half,
    values: &mut Workspace<T>,
    whole: f64,
) {
    values.load_own(half, p);
    T::product_all(out, p, half, values, whole);
    for link in &half.further {
        out[link.node as usize] -= f64::from(link.link) * values.0[link.near as usize].into();
    }
}

/// `x = b · inverse`.
pub(super) fn divide(x: &mut [f32], b: &[f32], inverse: &[f32]) {
    for ((x, b), inverse) in x.iter_mut().zip(b).zip(inverse) {
        *x = b * inverse;
    }
}

/// `sums[parent] += value`.
pub(super) fn add_to_parents(sums: &mut [f32], values: &[f32], parents: ParentsOf<'_>) {
    match parents {
        ParentsOf::Pairs(parents) => {
            for ([one, other], &parent) in values.as_chunks().0.iter().zip(parents) {
                sums[parent as usize] += one + other;
            }
        }
        ParentsOf::Each(parents) => {
            for (value, &parent) in values.iter().zip(parents) {
                sums[parent as usize] += value;
            }
        }
    }
}

/// `x += above[parent]`; places where `inverse` is 0 stay as they are.
pub(super) fn add_from_parents(x: &mut [f32], inverse: &[f32], above: &[f32], parents: ParentsOf<'_>) {
    match parents {
        ParentsOf::Pairs(parents) => {
            let rows = x.as_chunks_mut::<8>().0.iter_mut().zip(inverse.as_chunks::<8>().0);
            for ((x, inverse), parents) in rows.zip(parents.as_chunks::<4>().0) {
                let [a, b, c, d] = parents.map(|parent| above[parent as usize]);
                let pairs = [a, a, b, b, c, c, d, d];
                for lane in 0..8 {
                    x[lane] += if inverse[lane] > 0.0 { pairs[lane] } else { 0.0 };
                }
            }
        }
        ParentsOf::Each(parents) => {
            for (x, &parent) in x.iter_mut().zip(parents) {
                *x += above[parent as usize];
            }
        }
    }
}

/// `x += α p`, unless `α = 0`; then `p = z + β p`, and `β = 0` forgets `p`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn axpy_then_xpby(x: &mut [f64], alpha: f64, p: &mut [f32], z: &[f32], beta: f32) {
    if alpha != 0.0 && beta != 0.0 {
        for ((x, p), z) in x.iter_mut().zip(p).zip(z) {
            *x += alpha * f64::from(*p);
            *p = z + beta * *p;
        }
        return;
    }
    if alpha != 0.0 {
        axpy(x, alpha, p);
    }
    if beta == 0.0 {
        p.copy_from_slice(z);
    } else {
        p.iter_mut().zip(z).for_each(|(p, z)| *p = z + beta * *p);
    }
}

/// `x += α p`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn axpy(x: &mut [f64], alpha: f64, p: &[f32]) {
    for (x, &p) in x.iter_mut().zip(p) {
        *x += alpha * f64::from(p);
    }
}

/// Lanes of a sum, so that additions need not wait for each other; always as many, whatever the instruction set.
const LANES: usize = 8;

/// `Σ a b`, in f64.
macro_rules! dot {
    ($name:ident, $a:ty, $b:ty) => {
        #[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
        pub(super) fn $name(a: &[$a], b: &[$b]) -> f64 {
            let mut sums = [0.0f64; LANES];
            let (a, a_rest) = a.as_chunks::<LANES>();
            let (b, b_rest) = b.as_chunks::<LANES>();
            for (a, b) in a.iter().zip(b) {
                for lane in 0..LANES {
                    sums[lane] += f64::from(a[lane]) * f64::from(b[lane]);
                }
            }
            let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            sums.iter().sum::<f64>() + rest
        }
    };
}
dot!(dot, f32, f32);
dot!(alignment_narrow, f32, f64);
dot!(alignment_wide, f64, f64);

/// `Σ a`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn sum(a: &[f64]) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (a, rest) = a.as_chunks::<LANES>();
    for a in a {
        for lane in 0..LANES {
            sums[lane] += a[lane];
        }
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// `r −= α q`, and `b` becomes `r`, scaled and rounded. Measures `r`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
pub(super) fn update_residual(
    r: &mut [f64],
    b: &mut [f32],
    q: &[f64],
    alpha: f64,
    scale: f64,
) -> ResidualNorm {
    let (mut squares, mut largest) = ([0.0f64; LANES], [0.0f64; LANES]);
    // Blocks start and end with whole rows.
    let (r, b, q) = (r.as_chunks_mut::<LANES>().0, b.as_chunks_mut::<LANES>().0, q.as_chunks::<LANES>().0);
    for ((r, b), q) in r.iter_mut().zip(b).zip(q) {
        for lane in 0..LANES {
            let value = r[lane] - alpha * q[lane];
            r[lane] = value;
            b[lane] = (value * scale) as f32;
            squares[lane] += value * value;
            largest[lane] = if value.abs() > largest[lane] { value.abs() } else { largest[lane] };
        }
    }
    ResidualNorm { sum_sq: squares.iter().sum(), max_abs: largest.into_iter().fold(0.0, f64::max) }
}
