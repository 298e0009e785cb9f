//! Sweeps over the network of a list, and products with it.
//!
//! Nodes are taken sixteen side by side; their neighbours are fetched by index, which the widest vector units do in one
//! instruction per neighbour. The few nodes with anything special are done again one by one.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::masks;

use super::list::{GRAIN, Group, LANES, List, Rest};

/// A number of the network's vectors.
pub(super) trait Number: Copy + Default + Send + Sync + Into<f64> + std::ops::AddAssign {
    fn from_f64(value: f64) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
}

impl Number for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> f64 {
        value
    }
}

/// Values of the nodes taken side by side.
type Lanes<T> = [T; LANES];

/// Groups that a thread takes at a time.
const GROUPS: usize = GRAIN / LANES;

/// Some groups of one colour, and what belongs to their nodes.
#[derive(Clone, Copy)]
struct Part<'a> {
    groups: &'a [Group],
    marks: &'a [u16],
    special: &'a [Lanes<u32>],
    rest: &'a [Rest],
    whole: f32,
}

impl Part<'_> {
    /// The special nodes of a group with what they have.
    #[inline(always)]
    fn specials(&self, group: usize) -> impl Iterator<Item = (usize, &Rest)> {
        masks::each_in(u64::from(self.marks[group]))
            .map(move |lane| (lane, &self.rest[self.special[group][lane] as usize]))
    }
}

/// `Σ x` over the neighbours of a group's nodes; `other` are the values of the other colour.
#[inline(always)]
fn sum_near<const D: usize, T: Number, A: Number>(group: &Group, other: &[T]) -> Lanes<A> {
    let mut sum = [A::default(); LANES];
    for k in 0..2 * D {
        for lane in 0..LANES {
            // SAFETY: neighbours are places among the nodes of the other colour, all below their count.
            let value = unsafe { *other.get_unchecked(group.near[k][lane] as usize) };
            sum[lane] += A::from_f64(value.into());
        }
    }
    sum
}

/// `Σ g x` over the neighbours of one node.
#[inline(always)]
fn pull<const D: usize, T: Number>(group: &Group, lane: usize, rest: &Rest, other: &[T]) -> f64 {
    (0..2 * D).map(|k| f64::from(rest.link[k]) * other[group.near[k][lane] as usize].into()).sum()
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn relax<const D: usize, const FROZEN: bool>(
    part: &Part<'_>,
    other: &[f32],
    b: &[Lanes<f32>],
    frozen: &[Lanes<f32>],
    x: &mut [Lanes<f32>],
) {
    for (index, group) in part.groups.iter().enumerate() {
        let mut rhs = b[index];
        if FROZEN {
            (0..LANES).for_each(|lane| rhs[lane] -= frozen[index][lane]);
        }
        let sum = sum_near::<D, f32, f32>(group, other);
        let mut new: Lanes<f32> =
            std::array::from_fn(|lane| (rhs[lane] + part.whole * sum[lane]) * group.inverse[lane]);
        for (lane, rest) in part.specials(index) {
            let sum = pull::<D, f32>(group, lane, rest, other) as f32;
            new[lane] = (rhs[lane] + sum + rest.shift * x[index][lane]) * group.inverse[lane];
        }
        x[index] = new;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn residual<const D: usize>(
    part: &Part<'_>,
    other: &[f32],
    [b, frozen, diagonal, x]: [&[Lanes<f32>]; 4],
    out: &mut [Lanes<f32>],
) {
    for (index, group) in part.groups.iter().enumerate() {
        let sum = sum_near::<D, f32, f32>(group, other);
        let left =
            |lane: usize| b[index][lane] - frozen[index][lane] - diagonal[index][lane] * x[index][lane];
        let mut new: Lanes<f32> = std::array::from_fn(|lane| left(lane) + part.whole * sum[lane]);
        for (lane, rest) in part.specials(index) {
            new[lane] = left(lane) + pull::<D, f32>(group, lane, rest, other) as f32;
        }
        out[index] = new;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn product<const D: usize, T: Number>(
    part: &Part<'_>,
    other: &[T],
    (diagonal, exact): (&[Lanes<f32>], &[Lanes<f64>]),
    x: &[Lanes<T>],
    out: &mut [Lanes<f64>],
) {
    let whole = f64::from(part.whole);
    for (index, group) in part.groups.iter().enumerate() {
        let sum = sum_near::<D, T, f64>(group, other);
        // A few whole links: their sum is the same in both precisions.
        let mut new: Lanes<f64> = std::array::from_fn(|lane| {
            f64::from(diagonal[index][lane]) * x[index][lane].into() - whole * sum[lane]
        });
        for (lane, rest) in part.specials(index) {
            new[lane] = exact[index][lane] * x[index][lane].into() - pull::<D, T>(group, lane, rest, other);
        }
        out[index] = new;
    }
}

/// The values of whole groups.
fn lanes<T>(values: &[T]) -> &[Lanes<T>] {
    values.as_chunks().0
}

/// Calls `work(first group, chunk)` for chunks of a colour's values.
fn each_chunk<T: Send>(values: &mut [T], work: impl Fn(usize, &mut [Lanes<T>]) + Sync + Send) {
    let (values, _) = values.as_chunks_mut();
    if values.len() > 4 * GROUPS {
        values.par_chunks_mut(GROUPS).enumerate().for_each(|(index, chunk)| work(index * GROUPS, chunk));
    } else {
        work(0, values);
    }
}

impl List {
    /// The groups from `first` on.
    fn part(&self, first: usize, count: usize) -> Part<'_> {
        Part {
            groups: &self.groups[first..first + count],
            marks: &self.marks[first..first + count],
            special: &lanes(&self.special)[first..first + count],
            rest: &self.rest,
            whole: self.whole,
        }
    }

    /// One Gauss–Seidel pass over the nodes of a colour; what is `frozen` only counts if asked for. Between nodes of the
    /// same colour, which only extra links join, it is Jacobi's: so it is its own mirror image.
    pub fn relax<const D: usize, const FROZEN: bool>(&mut self, colour: usize) {
        let extras = self.extras_from(colour);
        self.pulled.clear();
        self.pulled
            .extend(self.extras[extras.clone()].iter().map(|extra| extra.link * self.x[extra.to as usize]));
        let mut x = std::mem::take(&mut self.x);
        let (red, black) = x.split_at_mut(self.black);
        let (own, other, base) = if colour == 0 { (red, &*black, 0) } else { (black, &*red, self.black) };
        let (list, base) = (&*self, base / LANES);
        each_chunk(own, |first, own| {
            let (at, count) = (base + first, own.len());
            let [b, frozen] = [&list.b, &list.frozen].map(|values| &lanes(values)[at..at + count]);
            relax::<D, FROZEN>(&list.part(at, count), other, b, frozen, own);
        });
        for (extra, pulled) in self.extras[extras].iter().zip(&self.pulled) {
            let node = extra.from as usize;
            x[node] += pulled * self.groups[node / LANES].inverse[node % LANES];
        }
        self.x = x;
    }

    /// What [`List::relax`] does to the red nodes when everything is zero; black ones become zero.
    pub fn relax_from_zero(&mut self) {
        let (groups, b) = (&self.groups, lanes(&self.b));
        let (red, black) = self.x.split_at_mut(self.black);
        each_chunk(red, |first, x| {
            for (offset, x) in x.iter_mut().enumerate() {
                let at = first + offset;
                *x = std::array::from_fn(|lane| b[at][lane] * groups[at].inverse[lane]);
            }
        });
        // Shifted nodes look at their own old value.
        each_chunk(black, |_, x| x.iter_mut().for_each(|x| *x = [0.0; LANES]));
    }

    /// Sets `residual` to what is left of the right-hand side.
    pub fn find_residual<const D: usize>(&mut self) {
        let mut out = std::mem::take(&mut self.residual);
        let (red, black) = out.split_at_mut(self.black);
        let (x_red, x_black) = self.x.split_at(self.black);
        let list = &*self;
        for (own, other, base) in [(red, x_black, 0), (black, x_red, self.black / LANES)] {
            each_chunk(own, |first, own| {
                let (at, count) = (base + first, own.len());
                let vectors = [&list.b, &list.frozen, &list.diagonal, &list.x];
                let vectors = vectors.map(|values| &lanes(values)[at..at + count]);
                residual::<D>(&list.part(at, count), other, vectors, own);
            });
        }
        for extra in &self.extras {
            out[extra.from as usize] += extra.link * self.x[extra.to as usize];
        }
        self.residual = out;
    }

    /// `out = L x` in double precision, for the network as it was given.
    pub fn product<const D: usize, T: Number>(&self, x: &[T], out: &mut [f64]) {
        let (red, black) = out.split_at_mut(self.black);
        let (x_red, x_black) = x.split_at(self.black);
        for (own, other, base) in [(red, x_black, 0), (black, x_red, self.black / LANES)] {
            each_chunk(own, |first, own| {
                let (at, count) = (base + first, own.len());
                let range = at..at + count;
                let diagonal = (&lanes(&self.diagonal)[range.clone()], &lanes(&self.exact)[range.clone()]);
                product::<D, T>(&self.part(at, count), other, diagonal, &lanes(x)[range], own);
            });
        }
    }
}
