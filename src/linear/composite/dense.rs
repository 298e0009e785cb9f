//! The coarsest level, solved exactly by dense Cholesky factors. It may still have bodies, which sparse elimination
//! (`linear::coarsest`) does not know.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::super::bodies::Body;
use super::components::Components;
use super::network::{Colours, Network};
use super::surfaces::Surfaces;

/// Not among the unknowns.
const NONE: u32 = u32::MAX;

/// The exact inverse of a small network with bodies.
#[derive(Clone, Debug)]
pub(super) struct DenseSolve {
    /// Each node's place among the unknowns. Nodes without links are not among them: they are divided by their diagonal.
    place: Colours<u32>,
    shared: Vec<u32>,
    factors: Option<Cholesky<f64, Dyn>>,
    values: DVector<f64>,
}

impl Default for DenseSolve {
    fn default() -> Self {
        DenseSolve { place: Colours::default(), shared: Vec::new(), factors: None, values: DVector::zeros(0) }
    }
}

impl DenseSolve {
    /// Drops the factors.
    pub fn clear(&mut self) {
        self.factors = None;
    }

    /// Takes a network with its bodies and components.
    pub fn build<const D: usize>(
        &mut self,
        net: &Network<D>,
        surfaces: Option<&Surfaces>,
        bodies: &[Body],
        components: &Components,
    ) {
        let mut count = 0;
        let mut next = |is_unknown: bool| {
            count += u32::from(is_unknown);
            if is_unknown { count - 1 } else { NONE }
        };
        self.place = net.is_linked().map(|linked| linked.into_iter().map(&mut next).collect());
        self.shared = net.shared.diagonal.iter().map(|&diagonal| next(diagonal > 0.0)).collect();
        let size = count as usize;
        let mut matrix = DMatrix::zeros(size, size);
        let mut add = |a: u32, b: u32, value: f64| {
            if a != NONE && b != NONE {
                matrix[(a as usize, b as usize)] += value;
            }
        };
        let place = &self.place;
        for block in 1..net.blocks.len() - 1 {
            for (colour, half) in net.pattern(block).half.iter().enumerate() {
                let own = &place[colour][net.range(block, colour)];
                own.iter().zip(&half.diagonal).for_each(|(&at, &diagonal)| add(at, at, diagonal));
            }
        }
        net.each_link(|colour, node, other, index, link| {
            add(place[colour][node], place[other][index], -f64::from(link));
        });
        for entry in net.shared.list() {
            let (node, shared) =
                (place[entry.node.0 as usize][entry.node.1 as usize], self.shared[entry.shared as usize]);
            let link = f64::from(entry.link);
            add(node, node, link);
            add(node, shared, -link);
            add(shared, node, -link);
            add(shared, shared, link);
        }
        if let Some(surfaces) = surfaces {
            surfaces.each_entry(bodies, net, |a, b, value| add(place[a.0][a.1], place[b.0][b.1], value));
        }
        // Without ground a component's level is open: hold its first node. Right-hand sides that add up to zero feel
        // nothing of that.
        let places = || place.iter().flatten().chain(&self.shared);
        let firsts = places().enumerate().filter(|(node, _)| components.is_first_of_closed(*node));
        for at in firsts.map(|(_, &at)| at as usize).filter(|&at| at < size) {
            matrix[(at, at)] *= 2.0;
        }
        self.factors = Cholesky::new(matrix);
        self.values = DVector::zeros(size);
    }

    /// Sets `x` from `b`; returns false if that cannot be done here.
    pub fn solve<const D: usize>(&mut self, net: &mut Network<D>) -> bool {
        let Some(factors) = &self.factors else { return false };
        for colour in 0..2 {
            for (&place, &b) in self.place[colour].iter().zip(&net.b[colour]) {
                if place != NONE {
                    self.values[place as usize] = f64::from(b);
                }
            }
        }
        for (&place, &b) in self.shared.iter().zip(&net.shared.b) {
            if place != NONE {
                self.values[place as usize] = f64::from(b);
            }
        }
        factors.solve_mut(&mut self.values);
        let values = self.values.as_slice();
        let value = |place: u32| values.get(place as usize).map(|&value| value as f32);
        for colour in 0..2 {
            let (b, inverse) = (&net.b[colour], &net.inverse[colour]);
            for (node, (x, &place)) in net.x[colour].iter_mut().zip(&self.place[colour]).enumerate() {
                *x = value(place).unwrap_or_else(|| b[node] * inverse[node]);
            }
        }
        for (x, &place) in net.shared.x.iter_mut().zip(&self.shared) {
            *x = value(place).unwrap_or(0.0);
        }
        true
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let places = self.place.iter().map(Vec::capacity).sum::<usize>() + self.shared.capacity();
        places * 4 + 8 * self.values.len() * (1 + self.values.len())
    }
}
