//! Nodes of a level that are not cells of its blocks, with lists of links.
//!
//! Two kinds: shared nodes, and *extra* nodes of coarse levels, where one aggregate of 2^D cells falls into several
//! parts (the first part is the coarse cell, the others are extra nodes of the same place and colour). Parts of one
//! place are not linked to each other, unless they are of different materials. Cells feel explicit nodes through their right-hand side: `b + Σ c x_node`, kept up to date in
//! the level's `b` for the cells concerned, the *contacts*.

use std::ops::Range;

use crate::grid::{DisjointMut, block_cells, share};

use super::layout::{Node, Place, Row};

/// Links and contacts that are worth a thread's while.
const GRAIN: usize = 1024;
/// The most links that are summed at a time: a shared node may have many thousands.
const PIECE: usize = 2048;

/// The links of one contact.
#[derive(Clone, Copy)]
pub(super) struct ContactLinks<'a> {
    to: &'a [u32],
    link: &'a [f32],
}

impl ContactLinks<'_> {
    /// Folds over the indices of the explicit nodes and the links to them.
    #[inline(always)]
    pub fn fold<T>(&self, from: T, mut step: impl FnMut(T, usize, f32) -> T) -> T {
        self.to.iter().zip(self.link).fold(from, |value, (&to, &link)| step(value, to as usize, link))
    }
}

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
    /// Links of shared nodes, cut into pieces; each node's follow each other.
    pieces: Vec<Piece>,
    contacts: Contacts,
    /// Whether each node is left alone by sweeps; empty if none is.
    pub held: Vec<bool>,
}

/// Some links of a shared node, and what they pull with.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    node: u32,
    first: u32,
    end: u32,
    pull: f64,
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
        self.held.clear();
    }

    /// Whether sweeps leave a node alone.
    #[inline]
    fn is_held(&self, node: usize) -> bool {
        self.held.get(node) == Some(&true)
    }

    /// The links of a cell to explicit nodes.
    pub fn contacts_of_cell(&self, cell: Node) -> impl Iterator<Item = (Node, f32)> {
        let c = &self.contacts;
        let range = match c.cell.binary_search(&cell) {
            Ok(at) => c.start[at] as usize..c.start[at + 1] as usize,
            Err(_) => 0..0,
        };
        range.map(|at| (Node::explicit(c.to[at] as usize), c.link[at]))
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
        self.pieces.clear();
        for node in self.shared() {
            let (mut first, end) = (self.start[node], self.start[node + 1]);
            loop {
                let next = end.min(first + PIECE as u32);
                self.pieces.push(Piece { node: node as u32, first, end: next, pull: 0.0 });
                first = next;
                if first == end {
                    break;
                }
            }
        }
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

    /// Calls `body(cell, links)` for every contact, side by side; `links` are indices of explicit nodes and links.
    pub fn each_contact(&self, body: impl Fn(Node, ContactLinks<'_>) + Sync) {
        share(self.contacts.cell.len(), GRAIN, &|range| {
            range.for_each(|contact| body(self.contacts.cell[contact], self.links_of_contact(contact)));
        });
    }

    /// Sums something over the contacts: some of them at a time, and then in order.
    pub fn sum_over_contacts(
        &self,
        partial: &mut Vec<f64>,
        term: impl Fn(Node, ContactLinks<'_>) -> f64 + Sync,
    ) -> f64 {
        let contacts = self.contacts.cell.len();
        partial.clear();
        partial.resize(contacts.div_ceil(GRAIN), 0.0);
        let out = DisjointMut::new(partial);
        share(contacts.div_ceil(GRAIN), 1, &|range| {
            for part in range {
                let contacts = part * GRAIN..contacts.min((part + 1) * GRAIN);
                let sum = contacts.map(|i| term(self.contacts.cell[i], self.links_of_contact(i))).sum();
                // SAFETY: ranges are disjoint.
                unsafe { *out.at(part) = sum };
            }
        });
        partial.iter().sum()
    }

    #[inline]
    fn links_of_contact(&self, contact: usize) -> ContactLinks<'_> {
        let c = &self.contacts;
        let range = c.start[contact] as usize..c.start[contact + 1] as usize;
        ContactLinks { to: &c.to[range.clone()], link: &c.link[range] }
    }

    /// Remembers the right-hand side of the contacts as it is without explicit nodes.
    pub fn take_base(&mut self, b: &[Row<f32>]) {
        let Contacts { cell, base, .. } = &mut self.contacts;
        let base = DisjointMut::new(base);
        share(cell.len(), GRAIN, &|range| {
            // SAFETY: ranges are disjoint.
            let base = unsafe { base.range(range.clone()) };
            base.iter_mut().zip(&cell[range]).for_each(|(base, cell)| *base = *cell_value::<D>(b, *cell));
        });
    }

    /// Puts back what [`Self::take_base`] saw.
    pub fn restore_base(&self, b: &mut [Row<f32>]) {
        self.set_rhs(b, 0..self.contacts.cell.len(), |contact| self.contacts.base[contact]);
    }

    /// Brings the right-hand side of one colour's contacts up to date.
    pub fn refresh(&self, b: &mut [Row<f32>], colour: usize) {
        self.set_rhs(b, self.contacts_of(colour), |contact| {
            self.links_of_contact(contact)
                .fold(self.contacts.base[contact], |value, node, link| value + link * self.x[node])
        });
    }

    fn contacts_of(&self, colour: usize) -> Range<usize> {
        let c = &self.contacts;
        if colour == 0 { 0..c.red } else { c.red..c.cell.len() }
    }

    /// Sets the right-hand side of some contacts.
    fn set_rhs(&self, b: &mut [Row<f32>], contacts: Range<usize>, value: impl Fn(usize) -> f32 + Sync) {
        let b = DisjointMut::new(b.as_flattened_mut());
        share(contacts.len(), GRAIN, &|range| {
            for contact in contacts.start + range.start..contacts.start + range.end {
                // SAFETY: each contact is a cell of its own.
                unsafe { *b.at(paired_index::<D>(self.contacts.cell[contact])) = value(contact) };
            }
        });
    }

    /// `Σ g x` over the links of each shared node, for [`Self::pull_of_shared`].
    pub fn pull_shared(&mut self, x: [&[Row<f32>]; 2]) {
        let own = std::mem::take(&mut self.x);
        self.pull_shared_by(|to, _| match to.place() {
            Place::Cell { colour, index } => f64::from(x[colour].as_flattened()[index]),
            Place::Explicit(index) => f64::from(own[index]),
        });
        self.x = own;
    }

    /// [`Self::pull_shared`] with values from elsewhere: `value(to, node)` for the link of a shared node to another one.
    pub fn pull_shared_by(&mut self, value: impl Fn(Node, usize) -> f64 + Sync) {
        let mut pieces = std::mem::take(&mut self.pieces);
        // Pieces are of very different lengths where there are large bubbles and small ones.
        let grain = (pieces.len() * GRAIN).div_ceil(self.to.len().max(1));
        let (count, out) = (pieces.len(), DisjointMut::new(&mut pieces));
        share(count, grain.max(1), &|range| {
            // SAFETY: ranges are disjoint.
            for piece in unsafe { out.range(range) } {
                let links = piece.first as usize..piece.end as usize;
                let terms = self.to[links.clone()].iter().zip(&self.link[links]);
                piece.pull = terms.map(|(&to, &link)| f64::from(link) * value(to, piece.node as usize)).sum();
            }
        });
        self.pieces = pieces;
    }

    /// What [`Self::pull_shared`] found for each shared node: its index among all explicit nodes, and the sum.
    pub fn pull_of_shared(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let by_node = self.pieces.chunk_by(|one, other| one.node == other.node);
        by_node.map(|pieces| (pieces[0].node as usize, pieces.iter().map(|piece| piece.pull).sum()))
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
        for node in self.shared().filter(|&node| self.held.get(node) != Some(&true)) {
            self.x[node] = over(f64::from(self.b[node]), self.diagonal[node]);
        }
        for node in (0..self.ends[0]).filter(|&node| self.held.get(node) != Some(&true)) {
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
            if !self.is_held(node) {
                self.x[node] = self.solve_row(node, x, &self.x);
            }
        }
    }

    /// Solves the rows of the shared nodes, which are not linked to each other.
    pub fn relax_shared(&mut self, x: [&[Row<f32>]; 2]) {
        let first = self.ends[1];
        if self.count == first {
            return;
        }
        self.pull_shared(x);
        let mut own = std::mem::take(&mut self.x);
        for (node, pull) in self.pull_of_shared().filter(|&(node, _)| !self.is_held(node)) {
            let diagonal = self.diagonal[node];
            own[node] =
                if diagonal > 0.0 { ((f64::from(self.b[node]) + pull) / diagonal) as f32 } else { 0.0 };
        }
        self.x = own;
    }

    /// Residual of an extra's row.
    pub fn residual(&self, node: usize, x: [&[Row<f32>]; 2]) -> f32 {
        self.residual_with(node, self.pull(node, x, &self.x))
    }

    /// Residual of a node's row, given what its links pull with.
    pub fn residual_with(&self, node: usize, pull: f64) -> f32 {
        if self.diagonal[node] > 0.0 {
            (f64::from(self.b[node]) + pull - self.diagonal[node] * f64::from(self.x[node])) as f32
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
            + self.pieces.capacity() * size_of::<Piece>()
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
