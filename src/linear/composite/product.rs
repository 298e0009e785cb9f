//! Products with the network, with the bodies and with the shared nodes.

use rayon::prelude::*;

use super::body::{Body, Moments};
use super::list::{GRAIN, List, Record};

/// Part of a body's surface that belongs to one node.
pub(super) trait Patch: Copy + Send + Sync {
    /// The node.
    fn node(&self) -> usize;
    /// Its signed faces, and their first moments.
    fn weights(&self) -> [f32; 4];
}

/// One face: a patch of the finest level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    pub node: u32,
    pub twice: [i8; 3],
    pub sign: i8,
}

impl Patch for Face {
    #[inline(always)]
    fn node(&self) -> usize {
        self.node as usize
    }

    #[inline(always)]
    fn weights(&self) -> [f32; 4] {
        let sign = f32::from(self.sign);
        let half = 0.5 * sign;
        let [x, y, z] = self.twice;
        [sign, half * f32::from(x), half * f32::from(y), half * f32::from(z)]
    }
}

/// Several faces of one coarse node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faces {
    pub node: u32,
    pub weights: [f32; 4],
}

impl Patch for Faces {
    #[inline(always)]
    fn node(&self) -> usize {
        self.node as usize
    }

    #[inline(always)]
    fn weights(&self) -> [f32; 4] {
        self.weights
    }
}

/// The bodies' surfaces on one level.
#[derive(Clone, Debug)]
pub(super) struct Surfaces<P> {
    pub patches: Vec<P>,
    /// Per body: where its patches across each axis start, and where the last ones end.
    pub start: Vec<[u32; 4]>,
}

impl<P> Default for Surfaces<P> {
    fn default() -> Self {
        Surfaces { patches: Vec::new(), start: Vec::new() }
    }
}

/// Values that several threads add to, never two at the same place.
struct Sums<'a, T>(*mut T, std::marker::PhantomData<&'a mut [T]>);
// SAFETY: see `Surfaces::add`.
unsafe impl<T: Send> Sync for Sums<'_, T> {}

/// A number of the network's vectors.
pub(super) trait Number: Copy + Send + Sync + Into<f64> + std::ops::AddAssign {
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

impl<P: Patch> Surfaces<P> {
    /// `J x` of one body.
    fn forces<const D: usize, T: Number>(&self, body: usize, x: &[T]) -> Moments {
        let mut forces = [[0.0; 4]; 3];
        for axis in 0..D {
            let [from, to] = [self.start[body][axis], self.start[body][axis + 1]].map(|at| at as usize);
            // Four sums side by side, so that additions need not wait for each other.
            let mut sums = [[0.0f64; 4]; 4];
            let patches = &self.patches[from..to];
            for four in patches.chunks(4) {
                for (sums, patch) in sums.iter_mut().zip(four) {
                    let (value, weights) = (x[patch.node()].into(), patch.weights());
                    for k in 0..4 {
                        sums[k] += value * f64::from(weights[k]);
                    }
                }
            }
            forces[axis] = std::array::from_fn(|k| (sums[0][k] + sums[1][k]) + (sums[2][k] + sums[3][k]));
        }
        forces
    }

    /// `out += factor Σ_b J_bᵀ K_b J_b x`.
    pub fn add<const D: usize, X: Number, Y: Number>(
        &self,
        bodies: &[Body],
        by_colour: &[Vec<u32>],
        x: &[X],
        factor: f64,
        out: &mut [Y],
    ) {
        let len = out.len();
        let sums = Sums(out.as_mut_ptr(), std::marker::PhantomData);
        for bodies_of_colour in by_colour {
            let work = |&body: &u32| {
                let sums = &sums;
                let body = body as usize;
                let field = bodies[body].response.apply::<D>(&self.forces::<D, X>(body, x));
                for axis in 0..D {
                    let [from, to] =
                        [self.start[body][axis], self.start[body][axis + 1]].map(|at| at as usize);
                    let field = field[axis].map(|value| factor * value);
                    for patch in &self.patches[from..to] {
                        let weights = patch.weights();
                        let mut value = 0.0;
                        for k in 0..=D {
                            value += f64::from(weights[k]) * field[k];
                        }
                        let node = patch.node();
                        assert!(node < len);
                        // SAFETY: inside the slice; bodies of one colour share no node, and colours take turns.
                        unsafe { *sums.0.add(node) += Y::from_f64(value) };
                    }
                }
            };
            if self.patches.len() > 2 * GRAIN {
                bodies_of_colour.par_iter().for_each(work);
            } else {
                bodies_of_colour.iter().for_each(work);
            }
        }
    }
}

/// Shared nodes, eliminated: `x_k = (b_k + Σ a x) / d` leaves `−a aᵀ / d` in the rows of the nodes they are linked to.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedTerms {
    pub start: Vec<u32>,
    pub links: Vec<(u32, f32)>,
    /// `1 / d`, 0 for a shared node without links.
    pub inverse: Vec<f64>,
}

impl SharedTerms {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.start.clear();
        self.start.push(0);
        self.links.clear();
        self.inverse.clear();
    }

    /// Ends the links of a shared node.
    pub fn close(&mut self) {
        let from = *self.start.last().expect("cleared before") as usize;
        let diagonal: f64 = self.links[from..].iter().map(|&(_, link)| f64::from(link)).sum();
        self.inverse.push(if diagonal > 0.0 { 1.0 / diagonal } else { 0.0 });
        self.start.push(self.links.len() as u32);
    }

    /// Links of a shared node.
    pub fn of(&self, shared: usize) -> &[(u32, f32)] {
        &self.links[self.start[shared] as usize..self.start[shared + 1] as usize]
    }

    /// `out −= factor Σ a aᵀ x / d`.
    pub fn subtract<X: Number, Y: Number>(&self, x: &[X], factor: f64, out: &mut [Y]) {
        for shared in 0..self.inverse.len() {
            let links = self.of(shared);
            let sum: f64 = links.iter().map(|&(node, link)| f64::from(link) * x[node as usize].into()).sum();
            let value = -factor * sum * self.inverse[shared];
            for &(node, link) in links {
                out[node as usize] += Y::from_f64(f64::from(link) * value);
            }
        }
    }
}

/// `Σ g x` over a node's neighbours; `other` are the values of the other colour.
#[inline(always)]
fn pull<const D: usize>(list: &List, record: &Record, other: &[f32]) -> f32 {
    // SAFETY: neighbours are places among the nodes of the other colour, all below their count.
    let value = |k: usize| unsafe { *other.get_unchecked(record.near[k] as usize) };
    if record.rest == 0 {
        let mut sum = (value(0) + value(1)) + (value(2) + value(3));
        if D == 3 {
            sum += value(4) + value(5);
        }
        sum * list.whole
    } else {
        let link = &list.rest[record.rest as usize].link;
        (0..2 * D).map(|k| link[k] * value(k)).sum()
    }
}

/// Calls `work(first, chunk)` for chunks of a colour's nodes.
fn each_chunk<T: Send>(values: &mut [T], work: impl Fn(usize, &mut [T]) + Sync + Send) {
    if values.len() > 4 * GRAIN {
        values.par_chunks_mut(GRAIN).enumerate().for_each(|(index, chunk)| work(index * GRAIN, chunk));
    } else {
        work(0, values);
    }
}

impl List {
    /// One Gauss–Seidel pass over the nodes of a colour, with the right-hand side `rhs`. Between nodes of the same colour,
    /// which only extra links join, it is Jacobi's: so it is its own mirror image.
    pub fn relax<const D: usize>(&mut self, colour: usize) {
        let extras = self.extras_from(colour);
        self.pulled.clear();
        self.pulled
            .extend(self.extras[extras.clone()].iter().map(|extra| extra.link * self.x[extra.to as usize]));
        let mut x = std::mem::take(&mut self.x);
        let (red, black) = x.split_at_mut(self.black);
        let (own, other, base) = if colour == 0 { (red, &*black, 0) } else { (black, &*red, self.black) };
        let list = &*self;
        each_chunk(own, |first, own| {
            let at = base + first;
            let (records, rhs) = (&list.records[at..at + own.len()], &list.rhs[at..at + own.len()]);
            for ((x, record), rhs) in own.iter_mut().zip(records).zip(rhs) {
                let mut sum = rhs + pull::<D>(list, record, other);
                if record.rest != 0 {
                    sum += list.rest[record.rest as usize].shift * *x;
                }
                *x = sum * record.inverse;
            }
        });
        for (extra, pulled) in self.extras[extras].iter().zip(&self.pulled) {
            x[extra.from as usize] += pulled * self.records[extra.from as usize].inverse;
        }
        self.x = x;
    }

    /// What [`List::relax`] does to the red nodes when everything is zero; black ones become zero.
    pub fn relax_from_zero(&mut self) {
        let (records, rhs) = (&self.records, &self.rhs);
        let (red, black) = self.x.split_at_mut(self.black);
        each_chunk(red, |first, x| {
            for ((x, record), rhs) in x.iter_mut().zip(&records[first..]).zip(&rhs[first..]) {
                *x = rhs * record.inverse;
            }
        });
        // Shifted nodes look at their own old value.
        each_chunk(black, |_, x| x.fill(0.0));
    }

    /// `rhs −= L x`: what is left of a right-hand side.
    pub fn subtract_network<const D: usize>(&mut self) {
        let mut rhs = std::mem::take(&mut self.rhs);
        let (red, black) = rhs.split_at_mut(self.black);
        let (x_red, x_black) = self.x.split_at(self.black);
        let list = &*self;
        for (own, x, other, base) in [(red, x_red, x_black, 0), (black, x_black, x_red, self.black)] {
            each_chunk(own, |first, own| {
                for (offset, rhs) in own.iter_mut().enumerate() {
                    let place = first + offset;
                    let index = base + place;
                    *rhs += pull::<D>(list, &list.records[index], other) - list.diagonal[index] * x[place];
                }
            });
        }
        for extra in &self.extras {
            rhs[extra.from as usize] += extra.link * self.x[extra.to as usize];
        }
        self.rhs = rhs;
    }

    /// `out = L x` in double precision, for the network as it was given.
    pub fn product<const D: usize, T: Number>(&self, x: &[T], out: &mut [f64]) {
        let (red, black) = out.split_at_mut(self.black);
        let (x_red, x_black) = x.split_at(self.black);
        for (own, x, other, base) in [(red, x_red, x_black, 0), (black, x_black, x_red, self.black)] {
            each_chunk(own, |first, own| {
                for (offset, out) in own.iter_mut().enumerate() {
                    let place = first + offset;
                    let record = &self.records[base + place];
                    // SAFETY: neighbours are places among the nodes of the other colour, all below their count.
                    let value =
                        |k: usize| -> f64 { unsafe { *other.get_unchecked(record.near[k] as usize) }.into() };
                    let sum: f64 = if record.rest == 0 {
                        let mut sum = (value(0) + value(1)) + (value(2) + value(3));
                        if D == 3 {
                            sum += value(4) + value(5);
                        }
                        sum * f64::from(self.whole)
                    } else {
                        let link = &self.rest[record.rest as usize].link;
                        (0..2 * D).map(|k| f64::from(link[k]) * value(k)).sum()
                    };
                    *out = self.exact[base + place] * x[place].into() - sum;
                }
            });
        }
    }
}
