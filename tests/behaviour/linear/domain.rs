//! Networks to test the solver on.

use glug::grid::{Activation, Blocks, Field, Grid, SIDE, Slots, block_cells};
use glug::linear::{Couplings, Materials, SharedNodes, SolveInfo, Solver, SolverParams, System};
use glug::math::{hash_unit, mix, unflatten};

/// A system with its right-hand side and solution.
pub struct Domain<const D: usize> {
    pub blocks: Blocks<D>,
    pub live: Slots,
    pub link: [Field<f32>; D],
    pub ground: Field<f32>,
    pub area: Field<f32>,
    pub shared: SharedNodes,
    pub rhs: Field<f64>,
    pub x: Field<f64>,
    pub shared_rhs: Vec<f64>,
    pub shared_x: Vec<f64>,
    pub material: Option<(Field<bool>, [f32; 2])>,
    pub couplings: Option<Couplings>,
}

/// What a cell is made of.
#[derive(Clone, Copy, PartialEq)]
pub enum Matter {
    /// An unknown, if anything is open to it.
    Full,
    /// The value zero.
    Ground,
    /// A shared node.
    Shared(usize),
    /// Nothing.
    Closed,
}

impl<const D: usize> Domain<D> {
    /// Every cell of the box that lies in `wanted` blocks.
    pub fn empty(cells: [usize; D], wanted: impl Fn([i32; D]) -> bool) -> Self {
        let grid = Grid { cells, dx: 1.0 };
        let mut blocks = Blocks::new(grid);
        let mut marks = Activation::default();
        blocks.begin(&mut marks);
        let all = Blocks::all(grid);
        for &slot in all.slots().as_slice() {
            let coords = all.coords(slot as usize);
            if wanted(coords) {
                blocks.mark(&mut marks, coords);
            }
        }
        blocks.activate(&marks);
        let mut field = Field::new(block_cells(D), 0.0f32);
        field.resize(blocks.slot_count());
        let mut vector = Field::new(block_cells(D), 0.0f64);
        vector.resize(blocks.slot_count());
        Domain {
            live: Slots::default(),
            link: std::array::from_fn(|_| field.clone()),
            ground: field.clone(),
            area: field,
            shared: SharedNodes::default(),
            rhs: vector.clone(),
            x: vector,
            shared_rhs: Vec::new(),
            shared_x: Vec::new(),
            material: None,
            couplings: None,
            blocks,
        }
    }

    /// A box of cells: `matter` says what each is, `open` how open the low face along an axis is, `theta` how far the
    /// surface is on the way from a full cell to another.
    pub fn build(
        cells: [usize; D],
        matter: impl Fn([i32; D]) -> Matter,
        open: impl Fn(usize, [i32; D]) -> f32,
        theta: impl Fn([i32; D], [i32; D]) -> f32,
    ) -> Self {
        let mut domain = Domain::empty(cells, |_| true);
        let grid = *domain.blocks.grid();
        let kind = |cell: [i32; D]| if grid.contains(cell) { matter(cell) } else { Matter::Closed };
        let mut contacts: Vec<Vec<(usize, f32, f32)>> = Vec::new();
        for cell in domain.cells() {
            if kind(cell) != Matter::Full {
                continue;
            }
            let here = domain.index(cell);
            for axis in 0..D {
                for side in [0, 1] {
                    let (mut face, mut other) = (cell, cell);
                    other[axis] += 2 * side - 1;
                    face[axis] += side;
                    let w = open(axis, face);
                    if w <= 0.0 {
                        continue;
                    }
                    match kind(other) {
                        Matter::Full if side == 0 => domain.link[axis][here] = w,
                        Matter::Full | Matter::Closed => {}
                        Matter::Ground => {
                            domain.ground[here] += w / theta(cell, other);
                            domain.area[here] += w;
                        }
                        Matter::Shared(node) => {
                            if contacts.len() <= node {
                                contacts.resize(node + 1, Vec::new());
                            }
                            contacts[node].push((here, w / theta(cell, other), w));
                        }
                    }
                }
            }
        }
        for links in contacts {
            domain.add_shared(50.0, &links);
        }
        domain.finish();
        domain
    }

    /// Adds a node that counts as `weight` cells, linked to cells by (index, link, area).
    pub fn add_shared(&mut self, weight: f64, links: &[(usize, f32, f32)]) {
        self.shared.push_node(weight);
        for &(cell, link, area) in links {
            self.shared.push_link(cell, link, area);
        }
        self.shared_rhs.push(0.0);
        self.shared_x.push(0.0);
    }

    /// Makes the fields hold all active blocks.
    pub fn resize(&mut self) {
        let slots = self.blocks.slot_count();
        self.link.iter_mut().for_each(|field| field.resize(slots));
        self.ground.resize(slots);
        self.area.resize(slots);
        self.rhs.resize(slots);
        self.x.resize(slots);
    }

    /// Finds the live blocks.
    pub fn finish(&mut self) {
        let mut any = vec![false; self.blocks.slot_count()];
        for (cell, _) in self.unknowns() {
            any[cell / block_cells(D)] = true;
        }
        self.live.refill(self.blocks.slots(), |slot| any[slot]);
    }

    /// All cells of the box.
    pub fn cells(&self) -> Vec<[i32; D]> {
        let mut cells = Vec::new();
        for &slot in self.blocks.slots().as_slice() {
            let first = self.blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                let cell = std::array::from_fn(|a| first[a] + offset[a] as i32);
                if self.blocks.grid().contains(cell) {
                    cells.push(cell);
                }
            }
        }
        cells
    }

    /// Index of a cell in all fields.
    pub fn index(&self, cell: [i32; D]) -> usize {
        let (slot, local) = self.blocks.locate(cell);
        slot as usize * block_cells(D) + local
    }

    /// Indices and diagonals of the unknown cells.
    pub fn unknowns(&self) -> Vec<(usize, f64)> {
        let mut diagonal = vec![0.0f64; self.blocks.slot_count() * block_cells(D)];
        for cell in self.cells() {
            let here = self.index(cell);
            diagonal[here] += f64::from(self.ground[here]);
            for axis in 0..D {
                let mut low = cell;
                low[axis] -= 1;
                let link = f64::from(self.link[axis][here]);
                diagonal[here] += link;
                if link > 0.0 {
                    diagonal[self.index(low)] += link;
                }
            }
        }
        for node in 0..self.shared.len() {
            for (cell, link, _) in self.shared.links(node) {
                diagonal[cell] += f64::from(link);
            }
        }
        diagonal.into_iter().enumerate().filter(|&(_, d)| d > 0.0).collect()
    }

    pub fn system(&self) -> System<'_, D> {
        System {
            blocks: &self.blocks,
            live: &self.live,
            link: &self.link,
            ground: &self.ground,
            ground_area: &self.area,
            shared: &self.shared,
            materials: self.material.as_ref().map(|(second, whole)| Materials { second, whole: *whole }),
            couplings: self.couplings.as_ref(),
        }
    }

    /// A right-hand side like that of falling matter: flux along the second axis with some noise, through open links.
    pub fn drop_rhs(&mut self) {
        self.rhs.as_mut_slice().fill(0.0);
        self.shared_rhs.fill(0.0);
        let noise = |axis: usize, i: usize| 0.2 * (hash_unit((i * 3 + axis) as u64) as f64 - 0.5);
        for cell in self.cells() {
            let here = self.index(cell);
            for axis in 0..D {
                let w = f64::from(self.link[axis][here]);
                if w > 0.0 {
                    let flux = w * (if axis == 1 { -1.0 } else { 0.0 } + noise(axis, here));
                    let mut low = cell;
                    low[axis] -= 1;
                    let low = self.index(low);
                    self.rhs[here] += flux;
                    self.rhs[low] -= flux;
                }
            }
            self.rhs[here] += f64::from(self.area[here]) * (1.0 + noise(0, here));
        }
        for node in 0..self.shared.len() {
            for (cell, _, area) in self.shared.links(node) {
                let flux = f64::from(area) * (0.3 + noise(2, cell));
                self.rhs[cell] += flux;
                self.shared_rhs[node] -= flux;
            }
        }
    }

    /// Changes the guess in all active blocks.
    pub fn change_guess(&mut self, change: impl Fn(f64) -> f64) {
        for &slot in self.blocks.slots().as_slice() {
            self.x.block_mut(slot as usize).iter_mut().for_each(|x| *x = change(*x));
        }
    }

    /// Noise in all unknowns.
    pub fn random_rhs(&mut self, seed: u64) {
        self.rhs.as_mut_slice().fill(0.0);
        for (i, _) in self.unknowns() {
            self.rhs[i] = f64::from(hash_unit(mix(seed) ^ i as u64)) - 0.5;
        }
        for (k, b) in self.shared_rhs.iter_mut().enumerate() {
            *b = f64::from(hash_unit(mix(seed + 7) ^ k as u64)) - 0.5;
        }
    }

    /// Solves with the right-hand side at hand.
    pub fn solve(&mut self, solver: &mut Solver<D>, params: &SolverParams) -> SolveInfo {
        let system = System {
            blocks: &self.blocks,
            live: &self.live,
            link: &self.link,
            ground: &self.ground,
            ground_area: &self.area,
            shared: &self.shared,
            materials: self.material.as_ref().map(|(second, whole)| Materials { second, whole: *whole }),
            couplings: self.couplings.as_ref(),
        };
        solver.solve(
            &system,
            None,
            &mut self.rhs,
            &mut self.x,
            &mut self.shared_rhs,
            &mut self.shared_x,
            params,
            None,
        )
    }
}

/// A tank with walls, a solid ball cutting through cells, and a wavy surface whose distances are clamped at 0.01;
/// `bubbles` pockets below the surface are shared nodes.
pub fn tank<const D: usize>(n: usize, bubbles: usize, shift: i32) -> Domain<D> {
    let h = 1.0 / n as f64;
    let at = |cell: [i32; D]| -> [f64; D] { cell.map(|c| (f64::from(c - shift) + 0.5) * h) };
    let distance = |x: [f64; D], c: [f64; 3]| (0..D).map(|a| (x[a] - c[a]).powi(2)).sum::<f64>().sqrt();
    let centre = |k: usize| {
        let u = |i: usize| f64::from(hash_unit((k * 3 + i + 11) as u64));
        [0.1 + 0.8 * u(0), 0.1 + 0.4 * u(1), 0.1 + 0.8 * u(2)]
    };
    let ball = |x: [f64; D]| distance(x, [0.5, 0.3, 0.5]) - 0.17;
    // Negative in the fluid; which pocket, if any, is nearest.
    let surface = |x: [f64; D]| {
        let mut height = 0.62 + 0.04 * (9.0 * x[0]).sin();
        if D == 3 {
            height += 0.03 * (7.0 * x[2] + 1.0).cos();
        }
        let mut level = (x[1] - height, None);
        for k in 0..bubbles {
            let inside = 0.055 - distance(x, centre(k));
            if inside > level.0 && ball(x) > -2.0 * h {
                level = (inside, Some(k));
            }
        }
        level
    };
    let size = n as i32;
    Domain::build(
        [n + shift as usize; D],
        |cell| {
            if cell.iter().any(|&c| c < shift || c >= size + shift) {
                return Matter::Closed;
            }
            match surface(at(cell)) {
                (level, _) if level < 0.0 => Matter::Full,
                (_, None) => Matter::Ground,
                (_, Some(k)) => Matter::Shared(k),
            }
        },
        |axis, face| {
            if (0..D).any(|a| face[a] < shift || face[a] >= size + shift) || face[axis] <= shift {
                return 0.0;
            }
            let mut x = at(face);
            x[axis] -= 0.5 * h;
            let open = (0.5 + ball(x) / h).clamp(0.0, 1.0);
            if open < 0.02 { 0.0 } else { open as f32 }
        },
        |from, to| {
            let (a, b) = (surface(at(from)).0, surface(at(to)).0);
            (a / (a - b)).clamp(0.01, 1.0) as f32
        },
    )
}
