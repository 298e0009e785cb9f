//! The V-cycle over listed levels, on top of the full network's coarse levels.

use rayon::prelude::*;

use super::super::hierarchy::Hierarchy;
use super::super::layout::Node;
use super::super::system::System;
use super::body::{Bodies, Body};
use super::coarse::{Family, join_patches, join_shared, link_up, parent_of};
use super::list::{GRAIN, List, Numbering};
use super::surfaces::{Face, Faces, Patch, SharedTerms, Surfaces, Velocities};

/// The network of listed cells with its bodies, and its coarser images.
#[derive(Clone, Debug, Default)]
pub(super) struct Composite {
    pub numbering: Numbering,
    pub finest: List,
    pub faces: Surfaces<Face>,
    pub shared: SharedTerms,
    shared_areas: Vec<f32>,
    coarse: Vec<Coarse>,
    /// Coarser lists in use.
    depth: usize,
    /// The first level of the full network in use; 0 if none is.
    resume: usize,
    bound: Vec<f32>,
    velocities: Velocities<f32>,
}

/// A coarser list.
#[derive(Clone, Debug, Default)]
struct Coarse {
    family: Family,
    list: List,
    surfaces: Surfaces<Faces>,
    shared: SharedTerms,
    shared_areas: Vec<f32>,
}

/// Boxes of half a body are the first that need to know nothing of bodies.
fn levels_with_bodies(width: usize) -> usize {
    (width.next_power_of_two().trailing_zeros() as usize).saturating_sub(1).max(1)
}

impl Composite {
    /// Reads a system with bodies; `full` is the hierarchy of the same system with all cells.
    pub fn build<const D: usize>(
        &mut self,
        system: &System<'_, D>,
        bodies: &Bodies<'_>,
        full: &Hierarchy<D>,
        coarse_levels: bool,
    ) {
        let live = system.live.as_slice();
        let level = full.finest();
        self.numbering.read(level, live, |slot| bodies.inside[slot]);
        self.finest.read(system, level, &self.numbering);
        self.read_faces::<D>(bodies, full.block_of());
        self.read_shared::<D>(system, full.block_of());
        let List { exact, diagonal, .. } = &mut self.finest;
        let rounded = diagonal.par_chunks_mut(GRAIN).zip(exact.par_chunks(GRAIN));
        rounded.for_each(|(rounded, exact)| {
            rounded.iter_mut().zip(exact).for_each(|(rounded, &exact)| *rounded = exact as f32);
        });
        bound_bodies::<D, _>(&self.faces, bodies.list, self.finest.len(), &mut self.bound);
        self.finest.finish(&self.bound);
        self.depth = 0;
        self.resume = 0;
        if coarse_levels {
            self.build_coarse::<D>(bodies, full);
        }
    }

    fn read_faces<const D: usize>(&mut self, bodies: &Bodies<'_>, block_of: &[u32]) {
        let (numbering, cells) = (&self.numbering, crate::grid::block_cells(D));
        let to_face = |face: &super::body::BodyFace| {
            let cell = face.cell as usize;
            Face::new(numbering.index(block_of[cell / cells] as usize, cell % cells) as u32, face)
        };
        bodies.faces.par_iter().with_min_len(GRAIN).map(to_face).collect_into_vec(&mut self.faces.patches);
        self.faces.start.clear();
        self.faces.start.extend(bodies.list.iter().map(|body| body.faces));
        self.faces.shelve::<D>(self.finest.len());
    }

    fn read_shared<const D: usize>(&mut self, system: &System<'_, D>, block_of: &[u32]) {
        let cells = crate::grid::block_cells(D);
        self.shared.clear();
        self.shared_areas.clear();
        for shared in 0..system.shared.len() {
            for (cell, link, area) in system.shared.links(shared) {
                let index = self.numbering.index(block_of[cell / cells] as usize, cell % cells);
                self.shared.links.push((index as u32, link));
                self.shared_areas.push(area);
                self.finest.add_shared(index, link);
            }
            self.shared.close();
        }
    }

    fn build_coarse<const D: usize>(&mut self, bodies: &Bodies<'_>, full: &Hierarchy<D>) {
        let resume = levels_with_bodies(bodies.width).min(full.depth() - 1);
        if self.coarse.len() + 1 < resume {
            self.coarse.resize_with(resume - 1, Coarse::default);
        }
        let mut h = 1.0;
        for level in 0..resume.saturating_sub(1) {
            let (finer, this) = self.coarse[..=level].split_at_mut(level);
            let coarse = &mut this[0];
            let (fine, fine_shared, fine_areas) = match finer.last_mut() {
                None => (&mut self.finest, &self.shared, &self.shared_areas),
                Some(finer) => (&mut finer.list, &finer.shared, &finer.shared_areas),
            };
            coarse.family.found(fine, full.level(level), full.level(level + 1), &mut coarse.list);
            link_up::<D>(fine, &coarse.family, &mut coarse.list, h);
            let targets = (&mut coarse.shared, &mut coarse.shared_areas, &mut coarse.list);
            join_shared(fine_shared, fine_areas, &coarse.family, &fine.parent, h, targets);
            let nodes = coarse.list.len();
            match finer.last() {
                None => join_patches::<D, _>(&self.faces, &self.finest.parent, nodes, &mut coarse.surfaces),
                Some(finer) => {
                    join_patches::<D, _>(&finer.surfaces, &finer.list.parent, nodes, &mut coarse.surfaces)
                }
            }
            coarse.surfaces.shelve::<D>(nodes);
            self.bound = sum_bounds(&self.bound, &coarse.family);
            coarse.list.finish(&self.bound);
            h *= 2.0;
        }
        self.depth = resume.saturating_sub(1);
        self.resume = resume;
        if resume > 0 {
            let last = self.depth;
            let list = if last == 0 { &mut self.finest } else { &mut self.coarse[last - 1].list };
            let (nodes, below) = (&list.node, full.level(resume - 1));
            list.parent.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, parents)| {
                for (parent, &node) in parents.iter_mut().zip(&nodes[chunk * GRAIN..]) {
                    *parent = parent_of(below, node).0;
                }
            });
        }
    }

    /// Sets the finest `x` from the finest `b`.
    pub fn cycle<const D: usize>(&mut self, bodies: &[Body], full: &mut Hierarchy<D>, sweeps: usize) {
        let Composite { finest, faces, shared, coarse, velocities, .. } = self;
        // One frozen product serves both sweeps of the finest level: it starts from zero on the way down.
        let terms = Terms { bodies, surfaces: &*faces, shared: &*shared };
        terms.sweep_down::<D>(finest, velocities, sweeps, false);
        for level in 0..self.depth {
            let (finer, this) = coarse[..=level].split_at_mut(level);
            let fine = finer.last().map_or(&*finest, |finer| &finer.list);
            let this = &mut this[0];
            restrict(fine, &this.family, &mut this.list);
            let terms = Terms { bodies, surfaces: &this.surfaces, shared: &this.shared };
            terms.sweep_down::<D>(&mut this.list, velocities, sweeps, true);
        }
        if self.resume > 0 {
            let last = match self.depth {
                0 => &mut *finest,
                depth => &mut coarse[depth - 1].list,
            };
            full.begin(self.resume);
            for (&parent, &value) in last.parent.iter().zip(&last.residual) {
                full.add(self.resume, Node(parent), value);
            }
            full.cycle_from(self.resume, sweeps);
            for (&parent, x) in last.parent.iter().zip(&mut last.x) {
                *x += full.value(self.resume, Node(parent));
            }
        }
        for level in (0..self.depth).rev() {
            let (finer, this) = coarse[..=level].split_at_mut(level);
            let this = &mut this[0];
            let terms = Terms { bodies, surfaces: &this.surfaces, shared: &this.shared };
            terms.sweep_up::<D>(&mut this.list, velocities, sweeps, true);
            let fine = finer.last_mut().map_or(&mut *finest, |finer| &mut finer.list);
            prolong(fine, &this.list);
        }
        let terms = Terms { bodies, surfaces: &*faces, shared: &*shared };
        terms.sweep_up::<D>(finest, velocities, sweeps, false);
    }

    /// Nodes of the listed levels.
    pub fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        let lists = std::iter::once(&self.finest).chain(self.coarse[..self.depth].iter().map(|c| &c.list));
        lists.map(|list| list.len() - 2)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let coarse = self
            .coarse
            .iter()
            .map(|coarse| coarse.family.bytes() + coarse.list.bytes() + coarse.surfaces.bytes());
        self.numbering.bytes() + self.finest.bytes() + self.faces.bytes() + coarse.sum::<usize>()
    }
}

/// What a level has beyond its network.
struct Terms<'a, P> {
    bodies: &'a [Body],
    surfaces: &'a Surfaces<P>,
    shared: &'a SharedTerms,
}

impl<P: Patch> Terms<'_, P> {
    /// Takes bodies and shared nodes as they are now.
    fn freeze<const D: usize>(&self, list: &mut List, velocities: &mut Velocities<f32>) {
        let List { x, frozen, .. } = list;
        self.shared.links.iter().for_each(|&(node, _)| frozen[node as usize] = 0.0);
        self.surfaces.set::<D>(self.bodies, x, velocities, frozen);
        self.shared.subtract(x, frozen);
    }

    /// Sweeps from zero, and finds the residual. Bodies are asked again for every sweep if `each`.
    fn sweep_down<const D: usize>(
        &self,
        list: &mut List,
        velocities: &mut Velocities<f32>,
        sweeps: usize,
        each: bool,
    ) {
        list.relax_from_zero();
        list.relax::<D, false>(1);
        for _ in 1..sweeps {
            if each {
                self.freeze::<D>(list, velocities);
                list.relax::<D, true>(0);
                list.relax::<D, true>(1);
            } else {
                list.relax::<D, false>(0);
                list.relax::<D, false>(1);
            }
        }
        self.freeze::<D>(list, velocities);
        list.find_residual::<D>();
    }

    /// The sweeps of [`Terms::sweep_down`] in reverse, from the values at hand.
    fn sweep_up<const D: usize>(
        &self,
        list: &mut List,
        velocities: &mut Velocities<f32>,
        sweeps: usize,
        each: bool,
    ) {
        for sweep in 0..sweeps {
            if sweep == 0 || each {
                self.freeze::<D>(list, velocities);
            }
            list.relax::<D, true>(1);
            list.relax::<D, true>(0);
        }
    }
}

/// Sums the residuals of `fine` over the children of each coarse node.
fn restrict(fine: &List, family: &Family, coarse: &mut List) {
    coarse.b.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, b)| {
        for (offset, b) in b.iter_mut().enumerate() {
            *b = family.of(chunk * GRAIN + offset).iter().map(|&child| fine.residual[child as usize]).sum();
        }
    });
}

/// Adds each coarse value to its children.
fn prolong(fine: &mut List, coarse: &List) {
    let parent = &fine.parent;
    fine.x.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, x)| {
        for (x, &parent) in x.iter_mut().zip(&parent[chunk * GRAIN..]) {
            *x += coarse.x[parent as usize];
        }
    });
}

/// Per node: `λ_b` times its faces, summed over the bodies beside it.
fn bound_bodies<const D: usize, P: Patch>(
    surfaces: &Surfaces<P>,
    bodies: &[Body],
    len: usize,
    bound: &mut Vec<f32>,
) {
    bound.clear();
    bound.resize(len, 0.0);
    for (start, body) in surfaces.start.iter().zip(bodies) {
        for patch in &surfaces.patches[start[0] as usize..start[D] as usize] {
            bound[patch.node()] += body.bound as f32;
        }
    }
}

/// The same for the coarse nodes: that of all their children.
fn sum_bounds(fine: &[f32], family: &Family) -> Vec<f32> {
    let of = |node: usize| family.of(node).iter().map(|&child| fine[child as usize]).sum::<f32>();
    (0..family.start.len() - 1).into_par_iter().with_min_len(GRAIN).map(of).collect()
}
