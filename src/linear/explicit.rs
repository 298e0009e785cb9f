//! Nodes of a level that are not cells of its blocks, with lists of links.
//!
//! Two kinds: shared nodes, and *extra* nodes of coarse levels, where one aggregate of 2^D cells falls into several
//! parts (the first part is the coarse cell, the others are extra nodes of the same place and colour). Parts of one
//! place are not linked to each other, unless they are of different materials. Cells feel explicit nodes through their right-hand side: `b + Σ c x_node`, kept up to date in
//! the level's `b` for the cells concerned, the *contacts*.

use rayon::prelude::*;

use crate::grid::block_cells;

use super::layout::{Node, Place, Row};

/// Below this many links, work stays on the calling thread.
const WORTH_SHARING: usize = 4096;

/// One direction of a link with an explicit end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HalfLink {
    pub from: Node,
    pub to: Node,
    pub link: f32,
    /// Size of the surface, for links of shared nodes.
    pub area: f32,
}

/// The explicit nodes of a level: red extras, black extras, shared nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Explicit<const D: usize> {
    /// End of the red extras and end of the black ones.
    pub ends: [usize; 2],
    /// All nodes.
    pub count: usize,
    /// Cell of this level in which each extra lies.
    pub position: Vec<[i32; D]>,
    /// Whether each extra is an aggregate of several finer nodes.
    pub merged: Vec<bool>,
    /// Whether each extra is of the second material.
    pub material: Vec<bool>,
    /// Whether nodes of the same place, and so of the same colour, may be linked.
    pub entangled: bool,
    pub ground: Vec<f32>,
    pub area: Vec<f32>,
    pub x: Vec<f32>,
    pub b: Vec<f32>,
    pub diagonal: Vec<f64>,
    start: Vec<u32>,
    to: Vec<Node>,
    link: Vec<f32>,
    link_area: Vec<f32>,
    contacts: Contacts,
}

/// Cells linked to explicit nodes, red ones first, each in block order.
#[derive(Clone, Debug, Default)]
struct Contacts {
    cell: Vec<Node>,
    red: usize,
    start: Vec<u32>,
    to: Vec<u32>,
    link: Vec<f32>,
    /// Sum of a cell's links to explicit nodes.
    sum: Vec<f64>,
    /// Right-hand side without the explicit nodes.
    base: Vec<f32>,
}

impl<const D: usize> Explicit<D> {
    /// Forgets all nodes.
    pub fn clear(&mut self) {
        self.ends = [0; 2];
        self.count = 0;
        self.position.clear();
        self.merged.clear();
        self.material.clear();
        self.entangled = false;
        self.ground.clear();
        self.area.clear();
    }

    /// Takes the links. `ends`, `count`, `position`, `ground` and `area` are set; `links` holds both directions of
    /// each link.
    pub fn connect(&mut self, links: &mut [HalfLink]) {
        links.sort_unstable_by_key(|l| (l.from, l.to));
        let cells = links.partition_point(|l| !l.from.is_explicit());
        let contacts = &mut self.contacts;
        for list in [&mut contacts.start, &mut contacts.to, &mut self.start] {
            list.clear();
        }
        for list in [&mut contacts.link, &mut contacts.base, &mut self.link, &mut self.link_area] {
            list.clear();
        }
        contacts.cell.clear();
        contacts.sum.clear();
        self.to.clear();
        for link in &links[..cells] {
            if contacts.cell.last() != Some(&link.from) {
                contacts.cell.push(link.from);
                contacts.start.push(contacts.to.len() as u32);
                contacts.sum.push(0.0);
            }
            if let Place::Explicit(index) = link.to.place() {
                contacts.to.push(index as u32);
                contacts.link.push(link.link);
                *contacts.sum.last_mut().expect("pushed above") += f64::from(link.link);
            }
        }
        contacts.start.push(contacts.to.len() as u32);
        contacts.red = contacts.cell.partition_point(|cell| cell.0 >> 30 == 0);
        contacts.base.resize(contacts.cell.len(), 0.0);

        self.diagonal.clear();
        self.diagonal.extend(self.ground.iter().map(|&d| f64::from(d)));
        let mut next = 0;
        for link in &links[cells..] {
            let Place::Explicit(index) = link.from.place() else { unreachable!("cells sort first") };
            while next <= index {
                self.start.push(self.to.len() as u32);
                next += 1;
            }
            self.to.push(link.to);
            self.link.push(link.link);
            self.link_area.push(link.area);
            self.diagonal[index] += f64::from(link.link);
        }
        self.start.resize(self.count + 1, self.to.len() as u32);
        self.x.clear();
        self.x.resize(self.count, 0.0);
        self.b.clear();
        self.b.resize(self.count, 0.0);
    }

    /// Indices of the shared nodes.
    pub fn shared(&self) -> std::ops::Range<usize> {
        self.ends[1]..self.count
    }

    /// Sets to 0 the values of shared nodes that have no links.
    pub fn clear_unlinked(&self, shared: &mut [f64]) {
        for (value, &diagonal) in shared.iter_mut().zip(&self.diagonal[self.ends[1]..]) {
            *value = if diagonal > 0.0 { *value } else { 0.0 };
        }
    }

    /// How many links the extras have, those between two of them counted twice.
    pub fn extra_link_count(&self) -> usize {
        self.start[self.ends[1]] as usize
    }

    /// The links of a node: other end, link, area.
    #[inline]
    pub fn links(&self, node: usize) -> impl Iterator<Item = (Node, f32, f32)> + '_ {
        let range = self.start[node] as usize..self.start[node + 1] as usize;
        range.map(|i| (self.to[i], self.link[i], self.link_area[i]))
    }

    /// The contacts of one colour in a block: place inside the colour's half, sum of the links.
    pub fn contacts_in(&self, colour: usize, block: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let half = block_cells(D) / 2;
        let key = move |block: usize| Node((colour << 30 | (block * half)) as u32);
        let cells = &self.contacts.cell;
        let range =
            cells.partition_point(|&c| c < key(block))..cells.partition_point(|&c| c < key(block + 1));
        range.map(move |i| ((cells[i].0 - key(block).0) as usize, self.contacts.sum[i]))
    }

    /// Whether any cell is linked to an explicit node.
    pub fn has_contacts(&self) -> bool {
        !self.contacts.cell.is_empty()
    }

    /// The links of all contacts: cell, index of the explicit node, link.
    pub fn contact_links(&self) -> impl Iterator<Item = (Node, usize, f32)> + '_ {
        let c = &self.contacts;
        (0..c.cell.len()).flat_map(move |i| {
            (c.start[i] as usize..c.start[i + 1] as usize)
                .map(move |j| (c.cell[i], c.to[j] as usize, c.link[j]))
        })
    }

    /// Remembers the right-hand side of the contacts as it is without explicit nodes.
    pub fn take_base(&mut self, b: &[Row<f32>]) {
        for (base, cell) in self.contacts.base.iter_mut().zip(&self.contacts.cell) {
            *base = *cell_value::<D>(b, *cell);
        }
    }

    /// Puts back what [`Self::take_base`] saw.
    pub fn restore_base(&self, b: &mut [Row<f32>]) {
        for (base, cell) in self.contacts.base.iter().zip(&self.contacts.cell) {
            *cell_value_mut::<D>(b, *cell) = *base;
        }
    }

    /// Brings the right-hand side of one colour's contacts up to date.
    pub fn refresh(&self, b: &mut [Row<f32>], colour: usize) {
        self.refresh_part(self.contacts_of(colour), b.as_flattened_mut(), 0);
    }

    fn contacts_of(&self, colour: usize) -> std::ops::Range<usize> {
        let c = &self.contacts;
        if colour == 0 { 0..c.red } else { c.red..c.cell.len() }
    }

    /// Refreshes some contacts of one colour, halves of them at a time on different threads: their cells are sorted, so
    /// the right-hand side (which begins with entry `offset`) can be cut between any two.
    fn refresh_part(&self, contacts: std::ops::Range<usize>, b: &mut [f32], offset: usize) {
        let c = &self.contacts;
        if contacts.len() > WORTH_SHARING {
            let middle = contacts.start + contacts.len() / 2;
            let cut = paired_index::<D>(c.cell[middle]);
            let (low, high) = b.split_at_mut(cut - offset);
            rayon::join(
                || self.refresh_part(contacts.start..middle, low, offset),
                || self.refresh_part(middle..contacts.end, high, cut),
            );
            return;
        }
        for i in contacts {
            let mut value = c.base[i];
            for j in c.start[i] as usize..c.start[i + 1] as usize {
                value += c.link[j] * self.x[c.to[j] as usize];
            }
            b[paired_index::<D>(c.cell[i]) - offset] = value;
        }
    }

    /// `Σ g x` over the links of a node, in f64: a shared node may have thousands.
    #[inline]
    fn pull(&self, node: usize, x: [&[Row<f32>]; 2], own: &[f32]) -> f64 {
        let x = x.map(|x| x.as_flattened());
        self.links(node)
            .map(|(to, link, _)| {
                let value = match to.place() {
                    Place::Cell { colour, index } => x[colour][index],
                    Place::Explicit(index) => own[index],
                };
                f64::from(link) * f64::from(value)
            })
            .sum()
    }

    fn solve_row(&self, node: usize, x: [&[Row<f32>]; 2], own: &[f32]) -> f32 {
        match self.diagonal[node] {
            diagonal if diagonal > 0.0 => {
                ((f64::from(self.b[node]) + self.pull(node, x, own)) / diagonal) as f32
            }
            _ => 0.0,
        }
    }

    /// The first pass over shared nodes and red extras, while all cells and black extras count as zero.
    pub fn start_from_zero(&mut self) {
        self.x.fill(0.0);
        let over = |value: f64, diagonal: f64| if diagonal > 0.0 { (value / diagonal) as f32 } else { 0.0 };
        for node in self.shared() {
            self.x[node] = over(f64::from(self.b[node]), self.diagonal[node]);
        }
        for node in 0..self.ends[0] {
            let mut sum = f64::from(self.b[node]);
            for (to, link, _) in self.links(node) {
                if let Place::Explicit(index) = to.place() {
                    sum += f64::from(link) * f64::from(self.x[index]);
                }
            }
            self.x[node] = over(sum, self.diagonal[node]);
        }
    }

    /// Solves the rows of one colour's extras one by one; from the last on when `backwards`, which only matters to those
    /// linked to each other.
    pub fn relax_extras(&mut self, colour: usize, x: [&[Row<f32>]; 2], backwards: bool) {
        let ends = [0, self.ends[0], self.ends[1]];
        for step in 0..ends[colour + 1] - ends[colour] {
            let node = if backwards { ends[colour + 1] - 1 - step } else { ends[colour] + step };
            self.x[node] = self.solve_row(node, x, &self.x);
        }
    }

    /// Solves the rows of the shared nodes, which are not linked to each other.
    pub fn relax_shared(&mut self, x: [&[Row<f32>]; 2]) {
        let first = self.ends[1];
        if self.count == first {
            return;
        }
        // Taken out for a moment, so that rows can be read while values are written.
        let mut own = std::mem::take(&mut self.x);
        let (extras, shared) = own.split_at_mut(first);
        if self.to.len() > WORTH_SHARING {
            shared
                .par_iter_mut()
                .enumerate()
                .for_each(|(k, value)| *value = self.solve_row(first + k, x, extras));
        } else {
            for (k, value) in shared.iter_mut().enumerate() {
                *value = self.solve_row(first + k, x, extras);
            }
        }
        self.x = own;
    }

    /// Residual of a node's row.
    pub fn residual(&self, node: usize, x: [&[Row<f32>]; 2]) -> f32 {
        if self.diagonal[node] > 0.0 {
            (f64::from(self.b[node]) + self.pull(node, x, &self.x)
                - self.diagonal[node] * f64::from(self.x[node])) as f32
        } else {
            0.0
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let c = &self.contacts;
        self.position.capacity() * size_of::<[i32; D]>()
            + self.merged.capacity()
            + self.material.capacity()
            + (self.ground.capacity() + self.area.capacity() + self.x.capacity() + self.b.capacity()) * 4
            + (self.diagonal.capacity() + c.sum.capacity()) * 8
            + (self.start.capacity() + self.to.capacity() + self.link.capacity() + self.link_area.capacity())
                * 4
            + (c.cell.capacity()
                + c.start.capacity()
                + c.to.capacity()
                + c.link.capacity()
                + c.base.capacity())
                * 4
    }
}

/// The value of a cell in an array that keeps both colours of a block together.
#[inline]
pub(super) fn cell_value<const D: usize>(values: &[Row<f32>], cell: Node) -> &f32 {
    &values.as_flattened()[paired_index::<D>(cell)]
}

/// Mutable access to the value of a cell in an array that keeps both colours of a block together.
#[inline]
pub(super) fn cell_value_mut<const D: usize>(values: &mut [Row<f32>], cell: Node) -> &mut f32 {
    &mut values.as_flattened_mut()[paired_index::<D>(cell)]
}

/// Index of a cell in an array that keeps both colours of a block together, red first.
#[inline]
pub(super) fn paired_index<const D: usize>(cell: Node) -> usize {
    let half = block_cells(D) / 2;
    match cell.place() {
        Place::Cell { colour, index } => index / half * 2 * half + colour * half + index % half,
        Place::Explicit(_) => unreachable!("only cells are stored in blocks"),
    }
}
