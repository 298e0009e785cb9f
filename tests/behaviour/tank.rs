//! A grid with walls and fields set by hand, for tests of single stages.

use glug::geometry::{Boundary, Label, Motion, Move, Settled, Shape, Solid, Walls, label_cells};
use glug::grid::{Blocks, FaceMask, Field, Grid, SIDE, block_cells};
use glug::linear::SolverParams;
use glug::math::{Vector, hash_unit, mix, unflatten};
use glug::pressure::{self, BodyProvider, FREE, LetGo, Pressure, Problem, Projection, Roles, Solved};

/// Everything a projection needs, on a grid whose blocks are all active.
pub struct Tank<const D: usize> {
    pub blocks: Blocks<D>,
    pub walls: Walls<D>,
    pub boundary: Boundary<D>,
    pub surface: Field<f32>,
    pub velocity: [Field<f32>; D],
    pub valid: [FaceMask; D],
    pub projection: Projection<D>,
    pub pressure: Pressure,
    pub impulse: [f64; D],
    /// The components, all one without bubbles at first, and what is asked of them.
    pub component: Field<u32>,
    pub node: Vec<u32>,
    pub outflow: Vec<f64>,
    pub weight: Vec<f64>,
    /// Density of air over the liquid's, where components have their own cells.
    pub air_mass: f64,
    /// How liquid may leave walls, if it may.
    pub let_go: Option<LetGo>,
    guess: Vec<f64>,
}

/// A low face: its axis, its index in fields, and the cell on its high side.
#[derive(Clone, Copy)]
pub struct Face<const D: usize> {
    pub axis: usize,
    pub index: usize,
    pub cell: [i32; D],
}

impl<const D: usize> Tank<D> {
    /// A closed box of `cells` cells, `dx` metres wide each, with solids in it.
    pub fn new(cells: [usize; D], dx: f64, solids: Vec<Solid<D>>) -> Self {
        let grid = Grid { cells, dx };
        let blocks = Blocks::all(grid);
        let size = std::array::from_fn(|axis| cells[axis] as f64 * dx);
        let walls = Walls {
            solids,
            size,
            open: [[false; 2]; D],
            sticky: [[false; 2]; D],
            slip: [[false; 2]; D],
            voxels: false,
        };
        let mut boundary = Boundary::new();
        boundary.update(&blocks, &walls, 0.0);
        let mut field = Field::new(block_cells(D), 0f32);
        field.resize(blocks.slot_count());
        let mut mask = FaceMask::new(D);
        mask.bits.resize(blocks.slot_count());
        let mut component = Field::new(block_cells(D), 0);
        component.resize(blocks.slot_count());
        Tank {
            walls,
            boundary,
            surface: field.clone(),
            velocity: std::array::from_fn(|_| field.clone()),
            valid: std::array::from_fn(|_| mask.clone()),
            projection: Projection::new(),
            pressure: Pressure::new(D),
            impulse: [0.0; D],
            component,
            node: vec![FREE],
            outflow: vec![0.0],
            weight: Vec::new(),
            air_mass: 0.0,
            let_go: None,
            guess: Vec::new(),
            blocks,
        }
    }

    /// A tube along x of that many cells and 10 across, closed on the left by a piston that glides along it. The
    /// piston's face lies between grid lines, and leans if there is a slope.
    pub fn with_piston(length: usize, slope: f64, speed: f64) -> Self {
        let mut cells = [10; D];
        cells[0] = length;
        let velocity = Vector::from_fn(|axis, _| if axis == 0 { speed } else { 0.0 });
        let glide = Move::Glide { velocity, from: 0.0, until: 9.0 };
        let mut normal = Vector::<D>::zeros();
        (normal[0], normal[1]) = (1.0, slope);
        let mut face = Vector::<D>::repeat(0.25);
        face[0] = 0.513;
        let piston = Solid::new("piston", Shape::half_space(face, normal), Motion::new(vec![glide]));
        Tank::new(cells, 0.05, vec![piston])
    }

    /// What flows along x through the faces of a section, in cell faces times m/s.
    pub fn flux(&self, section: i32) -> f64 {
        let faces = self.faces().into_iter();
        faces
            .filter(|face| face.axis == 0 && face.cell[0] == section && self.is_valid(face))
            .map(|face| self.open(&face) * self.velocity[0][face.index] as f64)
            .sum()
    }

    /// All stored cells with their index in fields.
    pub fn cells(&self) -> Vec<([i32; D], usize)> {
        let mut cells = Vec::new();
        for &slot in self.blocks.slots().as_slice() {
            let first = self.blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                let cell = std::array::from_fn(|axis| first[axis] + offset[axis] as i32);
                cells.push((cell, slot as usize * block_cells(D) + local));
            }
        }
        cells
    }

    /// A cell's index in fields; the void block's for cells that are not stored.
    pub fn index(&self, cell: [i32; D]) -> usize {
        let (slot, local) = self.blocks.locate(cell);
        slot as usize * block_cells(D) + local
    }

    /// The cell at the other side of a low face.
    pub fn below(&self, face: &Face<D>) -> usize {
        let mut cell = face.cell;
        cell[face.axis] -= 1;
        self.index(cell)
    }

    /// All stored low faces.
    pub fn faces(&self) -> Vec<Face<D>> {
        let cells = self.cells();
        (0..D).flat_map(|axis| cells.iter().map(move |&(cell, index)| Face { axis, index, cell })).collect()
    }

    /// Middle of a cell, metres.
    pub fn centre(&self, cell: [i32; D]) -> Vector<D> {
        Vector::from_fn(|axis, _| (cell[axis] as f64 + 0.5) * self.blocks.grid().dx)
    }

    /// Middle of a face, metres.
    pub fn face_centre(&self, face: &Face<D>) -> Vector<D> {
        let mut x = self.centre(face.cell);
        x[face.axis] -= 0.5 * self.blocks.grid().dx;
        x
    }

    /// Sets the liquid's signed distance.
    pub fn fill(&mut self, distance: impl Fn(&Vector<D>) -> f64) {
        for (cell, index) in self.cells() {
            self.surface[index] = distance(&self.centre(cell)) as f32;
        }
    }

    /// Sets the velocity of every face.
    pub fn set_velocity(&mut self, flow: impl Fn(&Vector<D>, usize) -> f64) {
        for face in self.faces() {
            self.velocity[face.axis][face.index] = flow(&self.face_centre(&face), face.axis) as f32;
        }
    }

    pub fn open(&self, face: &Face<D>) -> f64 {
        self.boundary.open[face.axis][face.index] as f64
    }

    pub fn label(&self, index: usize) -> Label {
        self.projection.label[index]
    }

    /// Whether the projection decided a face.
    pub fn is_valid(&self, face: &Face<D>) -> bool {
        self.valid[face.axis].get(face.index / block_cells(D), face.index % block_cells(D))
    }

    pub fn problem(&self) -> Problem<'_, D> {
        Problem {
            blocks: &self.blocks,
            boundary: &self.boundary,
            walls: &self.walls,
            surface: &self.surface,
            impulse: self.impulse,
            roles: Roles {
                component: &self.component,
                node: &self.node,
                air_mass: self.air_mass,
                outflow: &self.outflow,
                weight: &self.weight,
                guess: &self.guess,
            },
            let_go: self.let_go,
            time: 0.0,
        }
    }

    /// Labels the cells.
    pub fn label_cells(&mut self) {
        let Tank { blocks, boundary, surface, projection, .. } = self;
        // Tests set shares by hand.
        boundary.derive_bits(blocks);
        let Projection { label, live, .. } = projection;
        label_cells(blocks, boundary, surface, label, live, &mut Settled::default());
    }

    /// Labels the cells and projects to a tight tolerance.
    pub fn project(&mut self) -> Solved {
        self.project_to(1e-12)
    }

    /// Labels the cells and projects to a tolerance.
    pub fn project_to(&mut self, tolerance: f64) -> Solved {
        self.project_with(&mut [], tolerance)
    }

    /// Labels the cells and projects to a tolerance, with bodies.
    pub fn project_with(&mut self, bodies: &mut [&mut dyn BodyProvider<D>], tolerance: f64) -> Solved {
        self.label_cells();
        let params = SolverParams { tolerance, max_iterations: 2000, ..SolverParams::default() };
        self.guess.clear();
        self.guess.resize(self.weight.len(), 0.0);
        // Taken out for the time that the rest of the tank is lent to the problem.
        let mut projection = std::mem::take(&mut self.projection);
        let mut pressure = self.pressure.clone();
        let (mut velocity, mut valid) = (self.velocity.clone(), self.valid.clone());
        let problem = self.problem();
        pressure::find_unknowns(problem.blocks, &problem.roles, &mut projection);
        let (faces, system) = ((&mut velocity, &mut valid), (&mut pressure, &mut projection));
        let (guess, system) = system;
        let solved = pressure::project(faces.0, faces.1, &problem, &params, guess, system, bodies, 1.0, None);
        (self.projection, self.pressure) = (projection, pressure);
        (self.velocity, self.valid) = (velocity, valid);
        solved
    }

    /// Largest velocity on the faces that the projection decided.
    pub fn fastest(&self) -> f64 {
        let valid = self.faces().into_iter().filter(|face| self.is_valid(face));
        valid.fold(0.0, |most, face| most.max((self.velocity[face.axis][face.index] as f64).abs()))
    }

    /// Largest net outflow of a liquid cell over its faces, m/s.
    pub fn worst_outflow(&self) -> f64 {
        let mut partial = Vec::new();
        let (projection, loose) = (&self.projection, &self.pressure.loose);
        let [most, _] =
            pressure::divergence(&self.problem(), projection, loose, &self.velocity, &mut partial);
        most * self.blocks.grid().dx
    }

    /// Liquid cells with their index in fields.
    pub fn liquid(&self) -> Vec<([i32; D], usize)> {
        self.cells().into_iter().filter(|&(_, index)| self.label(index) == Label::Liquid).collect()
    }
}

/// A velocity that knows nothing of its neighbours.
pub fn noise<const D: usize>(x: &Vector<D>, axis: usize) -> f64 {
    let key = x.iter().fold(axis as u64, |key, x| mix(key ^ x.to_bits()));
    hash_unit(key) as f64 - 0.5
}
