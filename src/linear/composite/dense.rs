//! The coarsest level, solved exactly by dense Cholesky factors. It may still have bodies, which sparse elimination
//! (`linear::coarsest`) does not know.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::super::bodies::Body;
use super::super::coupling::CoupledSolve;
use super::super::layout::{Node, Place};
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
    /// What bodies of any weights add.
    coupled: CoupledSolve,
}

impl Default for DenseSolve {
    fn default() -> Self {
        DenseSolve {
            place: Colours::default(),
            shared: Vec::new(),
            factors: None,
            values: DVector::zeros(0),
            coupled: CoupledSolve::default(),
        }
    }
}

/// The largest difference between an entry and its mirror image, of the smaller of their two diagonals.
fn asymmetry(matrix: &DMatrix<f64>) -> f64 {
    let off = |row: usize, column: usize| {
        let least = matrix[(row, row)].min(matrix[(column, column)]);
        (matrix[(row, column)] - matrix[(column, row)]).abs() / least.max(f64::MIN_POSITIVE)
    };
    let rows = 0..matrix.nrows();
    rows.flat_map(|row| (0..row).map(move |column| off(row, column))).fold(0.0, f64::max)
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
        components: &mut Components,
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
        // Sweeps take over where there are no factors, and a solve may then stall: nobody should have to guess why.
        debug_assert!(
            asymmetry(&matrix) < 1e-4,
            "the coarsest network is not symmetric: {}",
            asymmetry(&matrix)
        );
        self.factors = Cholesky::new(matrix);
        debug_assert!(self.factors.is_some(), "the coarsest network is not positive");
        self.values = DVector::zeros(size);
        self.coupled.clear();
        if let Some(factors) = self.factors.as_ref().filter(|_| !net.coupled.is_empty()) {
            let mut component = vec![0; size];
            for (node, &at) in self.place.iter().flatten().chain(&self.shared).enumerate() {
                if at != NONE {
                    component[at as usize] = components.number_of(node) as usize;
                }
            }
            let at = |node: Node| match node.place() {
                Place::Cell { colour, index } => self.place[colour][index],
                Place::Explicit(shared) => self.shared[shared],
            };
            let place = |node: Node| Some(at(node) as usize).filter(|&at| at < size);
            let solve = |values: &mut [f64]| {
                let mut answer = DVector::from_column_slice(values);
                factors.solve_mut(&mut answer);
                values.copy_from_slice(answer.as_slice());
            };
            self.coupled.build(&net.coupled, size, place, components.count, |at| component[at], solve);
        }
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
        if self.coupled.is_empty() {
            factors.solve_mut(&mut self.values);
        } else {
            let mut block = std::mem::take(&mut net.coupled);
            block.start(|node| net.rhs(node));
            self.coupled.solve(self.values.as_mut_slice(), &mut block, |values| {
                let mut answer = DVector::from_column_slice(values);
                factors.solve_mut(&mut answer);
                values.copy_from_slice(answer.as_slice());
            });
            net.coupled = block;
        }
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
        let block = std::mem::take(&mut net.coupled);
        self.coupled.further(&block).for_each(|(node, value)| net.set_value(node, value));
        net.coupled = block;
        true
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let places = self.place.iter().map(Vec::capacity).sum::<usize>() + self.shared.capacity();
        places * 4 + self.coupled.bytes() + 8 * self.values.len() * (1 + self.values.len())
    }
}
