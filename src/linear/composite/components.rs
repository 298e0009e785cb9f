//! Parts of the network without ground: there the right-hand side must sum to zero, and `x` is known up to a constant.
//!
//! Bodies do not connect: a field without divergence has no net flow through any closed surface, so every part of the
//! network around and inside of bodies has a null vector of its own.

use super::list::List;
use super::surfaces::SharedTerms;

/// The component of every node, where that matters.
#[derive(Clone, Debug, Default)]
pub(super) struct Components {
    /// Per node, from 1; 0 where the component has a ground. Empty if all have.
    of: Vec<u32>,
    of_shared: Vec<u32>,
    count: usize,
    sums: Vec<[f64; 2]>,
    set: Vec<u32>,
}

impl Components {
    /// All components have a ground.
    pub fn clear(&mut self) {
        self.of.clear();
        self.of_shared.clear();
        self.count = 0;
    }

    /// How many have none.
    pub fn count(&self) -> usize {
        self.count
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.set[node] as usize != node {
            self.set[node] = self.set[self.set[node] as usize];
            node = self.set[node] as usize;
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.set[a.max(b)] = a.min(b) as u32;
    }

    /// Finds the components of a network.
    pub fn find<const D: usize>(&mut self, list: &List, shared: &SharedTerms) {
        let len = list.len();
        self.set.clear();
        self.set.extend(0..(len + shared.inverse.len()) as u32);
        for node in 0..list.black {
            for k in 0..2 * D {
                if list.near(node, k) != 0 {
                    self.join(node, list.near(node, k) as usize + list.black);
                }
            }
        }
        for index in 0..shared.inverse.len() {
            for &(node, _) in shared.of(index) {
                self.join(len + index, node as usize);
            }
        }
        let mut has_ground = vec![false; self.set.len()];
        for node in 0..len {
            if list.rest(node).is_some_and(|rest| rest.ground > 0.0) {
                let root = self.root(node);
                has_ground[root] = true;
            }
        }
        let mut number = vec![0u32; self.set.len()];
        self.of.clear();
        self.of.resize(len, 0);
        self.count = 0;
        for node in 0..len {
            if list.exact[node] <= 0.0 {
                continue;
            }
            let root = self.root(node);
            if has_ground[root] {
                continue;
            }
            if number[root] == 0 {
                self.count += 1;
                number[root] = self.count as u32;
            }
            self.of[node] = number[root];
        }
        self.of_shared.clear();
        for index in 0..shared.inverse.len() {
            let root = self.root(len + index);
            self.of_shared.push(number[root]);
        }
    }

    /// Takes the same from every cell of a component, so that its right-hand side sums to zero. A shared node counts as
    /// `weight` cells.
    pub fn balance(&mut self, rhs: &mut [f64], shared: &mut [f64], weight: impl Fn(usize) -> f64) {
        self.sums.clear();
        self.sums.resize(self.count + 1, [0.0; 2]);
        for (&component, &b) in self.of.iter().zip(&*rhs) {
            let sum = &mut self.sums[component as usize];
            *sum = [sum[0] + b, sum[1] + 1.0];
        }
        for (index, (&component, &b)) in self.of_shared.iter().zip(&*shared).enumerate() {
            let sum = &mut self.sums[component as usize];
            *sum = [sum[0] + b, sum[1] + weight(index)];
        }
        let mean = |component: u32| match component {
            0 => 0.0,
            component => self.sums[component as usize][0] / self.sums[component as usize][1],
        };
        for (&component, b) in self.of.iter().zip(rhs) {
            *b -= mean(component);
        }
        for (index, (&component, b)) in self.of_shared.iter().zip(shared).enumerate() {
            *b -= mean(component) * weight(index);
        }
    }

    /// Makes the mean of `x` vanish over every component.
    pub fn center(&mut self, x: &mut [f64]) {
        if self.count == 0 {
            return;
        }
        let mut none = Vec::new();
        self.sums.clear();
        self.sums.resize(self.count + 1, [0.0; 2]);
        self.of_shared.clear();
        self.balance(x, &mut none, |_| 0.0);
    }
}
