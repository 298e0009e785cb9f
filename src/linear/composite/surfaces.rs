//! Products with the bodies and with the shared nodes.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::Scatter;

use super::body::{Body, BodyFace};
use super::product::Number;

/// Part of a body's surface that belongs to one node.
pub(super) trait Patch: Copy + Send + Sync {
    /// The node.
    fn node(&self) -> usize;
    /// Twice its signed faces, and twice their first moments.
    fn twice(&self) -> [f32; 4];
}

/// One face: a patch of the finest level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    node: u32,
    twice: [i8; 4],
}

impl Face {
    /// A face of a body beside a node.
    pub fn new(node: u32, face: &BodyFace) -> Self {
        let [x, y, z] = face.twice;
        let sign = if face.ahead { 1 } else { -1 };
        Face { node, twice: [2 * sign, sign * x, sign * y, sign * z] }
    }
}

impl Patch for Face {
    #[inline(always)]
    fn node(&self) -> usize {
        self.node as usize
    }

    #[inline(always)]
    fn twice(&self) -> [f32; 4] {
        self.twice.map(f32::from)
    }
}

/// Several faces of one coarse node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faces {
    pub node: u32,
    pub twice: [f32; 4],
}

impl Patch for Faces {
    #[inline(always)]
    fn node(&self) -> usize {
        self.node as usize
    }

    #[inline(always)]
    fn twice(&self) -> [f32; 4] {
        self.twice
    }
}

/// A patch as its node sees it.
#[derive(Clone, Copy, Debug)]
struct Contact<P> {
    patch: P,
    /// Whose velocity counts there: three times the body, and the axis.
    field: u32,
}

/// The bodies' surfaces on one level: by body, to sum up the forces on each, and by node, to hand out their velocities.
#[derive(Clone, Debug)]
pub(super) struct Surfaces<P> {
    pub patches: Vec<P>,
    /// Per body: where its patches across each axis start, and where the last ones end.
    pub start: Vec<[u32; 4]>,
    contacts: Vec<Contact<P>>,
    /// Where the contacts of each `SHELF` nodes end.
    shelves: Vec<u32>,
}

/// Nodes whose contacts are kept together; so every thread has its own nodes.
const SHELF: usize = 2048;

/// Velocities of bodies, per axis: `(1, x, y, z)` coefficients.
pub(super) type Velocities<T> = Vec<[T; 4]>;

impl<P> Default for Surfaces<P> {
    fn default() -> Self {
        Surfaces { patches: Vec::new(), start: Vec::new(), contacts: Vec::new(), shelves: Vec::new() }
    }
}

impl<P: Patch> Surfaces<P> {
    /// Once the patches are there: sorts them by the nodes they belong to, of which there are `nodes`.
    pub fn shelve<const D: usize>(&mut self, nodes: usize) {
        let count = nodes.div_ceil(SHELF);
        let Surfaces { patches, start, contacts, shelves } = self;
        shelves.clear();
        shelves.resize(count + 1, 0);
        for patch in &*patches {
            shelves[patch.node() / SHELF + 1] += 1;
        }
        for shelf in 1..=count {
            shelves[shelf] += shelves[shelf - 1];
        }
        contacts.clear();
        contacts.reserve(patches.len());
        let spare = contacts.spare_capacity_mut();
        for (body, start) in start.iter().enumerate() {
            for axis in 0..D {
                for &patch in &patches[start[axis] as usize..start[axis + 1] as usize] {
                    let place = &mut shelves[patch.node() / SHELF];
                    spare[*place as usize].write(Contact { patch, field: (3 * body + axis) as u32 });
                    *place += 1;
                }
            }
        }
        // SAFETY: the patches of all bodies are all patches, and each was written to a place of its own.
        unsafe { contacts.set_len(patches.len()) };
    }

    /// The velocities that pressures `x` give to the bodies, `K J x`.
    fn respond<const D: usize, X: Number, A: Sums>(&self, bodies: &[Body], x: &[X], out: &mut Velocities<A>) {
        out.resize(3 * bodies.len(), [A::default(); 4]);
        out.par_chunks_mut(3).with_min_len(1).enumerate().for_each(|(body, out)| {
            let start = self.start[body].map(|at| at as usize);
            let mut forces = [[0.0; 4]; 3];
            for axis in 0..D {
                forces[axis] = sum_up::<P, X, A>(&self.patches[start[axis]..start[axis + 1]], x);
            }
            let field = bodies[body].response.apply::<D>(&forces);
            for (out, field) in out.iter_mut().zip(field) {
                // Patches count everything twice.
                *out = field.map(|value| A::from_f64(0.5 * value));
            }
        });
    }

    /// Calls `work` with the contacts of each shelf. No two threads see the same node.
    fn each_shelf(&self, work: impl Fn(&[Contact<P>]) + Sync) {
        let count = self.shelves.len().saturating_sub(1);
        (0..count).into_par_iter().with_min_len(1).for_each(|shelf| {
            let from = if shelf == 0 { 0 } else { self.shelves[shelf - 1] as usize };
            work(&self.contacts[from..self.shelves[shelf] as usize]);
        });
    }

    /// Sets `out` to `Σ JᵀKJ x` at the nodes beside bodies, and leaves all others.
    pub fn set<const D: usize>(
        &self,
        bodies: &[Body],
        x: &[f32],
        velocities: &mut Velocities<f32>,
        out: &mut [f32],
    ) {
        self.respond::<D, f32, f32>(bodies, x, velocities);
        let out = Scatter::new(out);
        self.each_shelf(|contacts| {
            for contact in contacts {
                // SAFETY: a node's contacts are all on one shelf, and nobody else looks at it meanwhile.
                unsafe { *out.at(contact.patch.node()) = 0.0 };
            }
            hand_out(contacts, velocities, &out);
        });
    }

    /// Adds `Σ JᵀKJ x` in double precision.
    pub fn add<const D: usize, X: Number>(
        &self,
        bodies: &[Body],
        x: &[X],
        velocities: &mut Velocities<f64>,
        out: &mut [f64],
    ) {
        self.respond::<D, X, f64>(bodies, x, velocities);
        let out = Scatter::new(out);
        self.each_shelf(|contacts| hand_out(contacts, velocities, &out));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.patches.capacity() * size_of::<P>()
            + self.contacts.capacity() * size_of::<Contact<P>>()
            + self.start.capacity() * 16
    }
}

/// `J x` of one body across one axis, with sums in the precision of `A`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn sum_up<P: Patch, X: Number, A: Sums>(patches: &[P], x: &[X]) -> [f64; 4] {
    // Four sums side by side, so that additions need not wait for each other.
    let mut sums = [[A::default(); 4]; 4];
    let (fours, rest) = patches.as_chunks::<4>();
    let add = |sums: &mut [A; 4], patch: &P| {
        let (value, twice) = (A::from_f64(x[patch.node()].into()), patch.twice());
        (0..4).for_each(|k| sums[k] += value * A::from_f64(f64::from(twice[k])));
    };
    for four in fours {
        sums.iter_mut().zip(four).for_each(|(sums, patch)| add(sums, patch));
    }
    sums.iter_mut().zip(rest).for_each(|(sums, patch)| add(sums, patch));
    std::array::from_fn(|k| {
        let [a, b, c, d] = sums.map(|sum| -> f64 { sum[k].into() });
        0.5 * ((a + b) + (c + d))
    })
}

/// Adds the bodies' velocities at contacts to the nodes they belong to, which are this thread's alone.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn hand_out<P: Patch, A: Sums>(contacts: &[Contact<P>], velocities: &[[A; 4]], out: &Scatter<'_, A>) {
    for contact in contacts {
        let (twice, field) = (contact.patch.twice(), &velocities[contact.field as usize]);
        let [mut a, b, mut c, d]: [A; 4] =
            std::array::from_fn(|k| A::from_f64(f64::from(twice[k])) * field[k]);
        a += b;
        c += d;
        a += c;
        // SAFETY: nobody else looks at the node meanwhile.
        unsafe { *out.at(contact.patch.node()) += a };
    }
}

/// A number to sum up in.
pub(super) trait Sums: Number + std::ops::Mul<Output = Self> {}

impl<T: Number + std::ops::Mul<Output = T>> Sums for T {}

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

    /// `out −= Σ a aᵀ x / d`.
    pub fn subtract<X: Number, Y: Number>(&self, x: &[X], out: &mut [Y]) {
        for shared in 0..self.inverse.len() {
            let links = self.of(shared);
            let sum: f64 = links.iter().map(|&(node, link)| f64::from(link) * x[node as usize].into()).sum();
            let value = -sum * self.inverse[shared];
            for &(node, link) in links {
                out[node as usize] += Y::from_f64(f64::from(link) * value);
            }
        }
    }
}
