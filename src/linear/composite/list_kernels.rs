//! Kernels for blocks stored as index lists, from a workspace with the values of all neighbours.
//!
//! Each is compiled for several instruction sets and chosen at run time; all versions add in the same order.

use macro_rules_attribute::apply;

use crate::math::simd;

use super::super::scalar::Scalar;
use super::pattern::{DIRECTIONS, Half, ParentsOf};

/// The neighbours' values of a block's nodes. The first place always holds zero.
pub(super) struct Workspace<T>(Vec<T>);

impl<T: Copy + Default> Workspace<T> {
    /// Makes room for a number of values.
    pub fn new(room: usize) -> Self {
        Workspace(vec![T::default(); room])
    }

    /// Takes the values that the nodes of a colour are linked to: those of the other colour, and the halo.
    #[inline]
    pub fn load(&mut self, here: &[T], halo: &[T]) {
        let (own, there) = self.0[1..].split_at_mut(here.len());
        own.copy_from_slice(here);
        there[..halo.len()].copy_from_slice(halo);
    }

    #[inline(always)]
    fn check(&self, half: &Half) {
        assert!(half.room() <= self.0.len());
    }

    /// Takes the values of the nodes themselves, where they are linked to each other.
    #[inline]
    pub fn load_own(&mut self, half: &Half, own: &[T]) {
        if !half.extra_links.is_empty() {
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
    // SAFETY: places are below the room that their pattern asks for (`PatternBuilder::finish`), and callers check that there is as
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
                    std::array::from_fn(|k| value($values, near[k], $node).into());
                let $sum = $whole * sum_of(terms);
                $finish;
            }
        } else {
            let links = by_direction(&$half.links, $count);
            for $node in 0..$count {
                let terms: [$number; DIRECTIONS] = std::array::from_fn(|k| {
                    let x: $number = value($values, near[k], $node).into();
                    <$number>::from(links[k][$node]) * x
                });
                let $sum = sum_of(terms);
                $finish;
            }
        }
    };
}

/// Gauss–Seidel half-sweep over the nodes of a colour; a node's row is `diagonal x − Σ g x_neighbour = rhs`.
#[apply(simd)]
fn relax_all(x: &mut [f32], rhs: &[f32], inverse: &[f32], half: &Half, values: &Workspace<f32>, whole: f32) {
    let count = x.len();
    let diagonal = half.rounded.as_slice();
    assert!(rhs.len() == count && inverse.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f32, |node, sum| {
        x[node] += inverse[node] * (rhs[node] + sum - diagonal[node] * x[node])
    });
}

/// Gauss–Seidel half-sweep where nodes of the colour are linked to each other: in order, or `backwards`.
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
    let mut rest = half.extra_links.as_slice();
    for step in 0..x.len() {
        let node = if backwards { x.len() - 1 - step } else { step };
        let is_own = |link: &&super::pattern::ExtraLink| link.node as usize == node;
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
        let extra_links: f32 = own.iter().map(|link| link.link * values.0[link.near as usize]).sum();
        let sum = sum_of(terms) + extra_links;
        x[node] += inverse[node] * (rhs[node] + sum - half.rounded[node] * x[node]);
        values.0[half.own + node] = x[node];
    }
}

/// Gauss–Seidel half-sweep over the nodes of a colour.
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
    if half.extra_links.is_empty() {
        relax_all(x, rhs, inverse, half, values, whole);
    } else {
        values.load_own(half, x);
        relax_in_turn(x, rhs, inverse, half, values, whole, backwards);
    }
}

/// `rhs + Σ g x_neighbour − diagonal x`, without further links.
#[apply(simd)]
fn residual_all(out: &mut [f32], x: &[f32], rhs: &[f32], half: &Half, values: &Workspace<f32>, whole: f32) {
    let count = x.len();
    let diagonal = half.rounded.as_slice();
    assert!(rhs.len() == count && out.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f32, |node, sum| {
        out[node] = rhs[node] + sum - diagonal[node] * x[node]
    });
}

/// Residual of the nodes of a colour.
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
    for link in &half.extra_links {
        out[link.node as usize] += link.link * values.0[link.near as usize];
    }
}

/// `A p` of the nodes of a colour, without extra links.
#[apply(simd)]
fn product_all<T: Scalar>(out: &mut [f64], p: &[T], half: &Half, values: &Workspace<T>, whole: f64) {
    let count = p.len();
    let diagonal = half.diagonal.as_slice();
    assert!(out.len() == count && diagonal.len() == count);
    pull_all!(half, values, whole, count, f64, |node, sum| {
        out[node] = diagonal[node] * p[node].into() - sum
    });
}

/// `A p` of the nodes of a colour.
#[inline]
pub(super) fn product<T: Scalar>(
    out: &mut [f64],
    p: &[T],
    half: &Half,
    values: &mut Workspace<T>,
    whole: f64,
) {
    values.load_own(half, p);
    product_all(out, p, half, values, whole);
    for link in &half.extra_links {
        out[link.node as usize] -= f64::from(link.link) * values.0[link.near as usize].into();
    }
}

/// Restriction by index: `sums[parent] += value`.
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

/// Prolongation by index: `x += above[parent]`; places where `inverse` is 0 stay as they are.
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
