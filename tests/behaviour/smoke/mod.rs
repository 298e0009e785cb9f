//! Smoke and heat in air that has mass.

mod carried;
mod lifted;
mod runs;
mod scenes;

use glug::geometry::{Boundary, Shape, Solid};
use glug::math::Vector;
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::{Model, Setup, Simulation, SmokeBody};
use glug::smoke::{Around, Smoke, SmokeScratch, Totals};

use crate::sim::tank;
use crate::tank::Tank;

/// A tank of air with a wind that is given.
struct Windy<const D: usize> {
    tank: Tank<D>,
    smoke: Smoke<D>,
    scratch: SmokeScratch<D>,
    steps: u64,
}

impl<const D: usize> Windy<D> {
    /// Air in a box of `cells` cells, one metre wide, with open or closed sides, and smoke and heat by their places.
    fn new(cells: [usize; D], is_open: bool, smoke: impl Fn(&Vector<D>) -> [f64; 2] + Sync + Send) -> Self {
        let dx = 1.0 / cells[0] as f64;
        let mut tank = Tank::new(cells, dx, Vec::new());
        tank.walls.open = [[is_open; 2]; D];
        tank.boundary = Boundary::new();
        tank.boundary.update(&tank.blocks, &tank.walls, 0.0);
        tank.fill(|_| 1.0);
        tank.label_cells();
        let (mut carried, mut scratch) = (Smoke::new(Some([1.0, 1.0])), SmokeScratch::new());
        let centre = |cell: [i32; D]| Vector::from_fn(|k, _| (cell[k] as f64 + 0.5) * dx);
        carried.fill(&around(&tank), &mut scratch, |cell| smoke(&centre(cell)));
        Windy { tank, smoke: carried, scratch, steps: 0 }
    }

    fn advance(&mut self, dt: f64) {
        let Windy { tank, smoke, scratch, steps } = self;
        smoke.advance(&around(tank), &tank.velocity, scratch, dt, *steps);
        *steps += 1;
    }

    fn totals(&self) -> Totals<D> {
        self.smoke.totals(&self.tank.blocks)
    }

    /// The mean over all cells of how far density is from what it should be, kg/m³.
    fn mean_error(&self, expected: impl Fn(&Vector<D>) -> f64) -> f64 {
        let cells = self.tank.cells().into_iter().filter(|&(cell, _)| self.tank.blocks.grid().contains(cell));
        let far = |(cell, index): ([i32; D], usize)| {
            (f64::from(self.smoke.density[index]) - expected(&self.tank.centre(cell))).abs()
        };
        cells.map(far).sum::<f64>() / self.tank.blocks.grid().cell_count() as f64
    }

    /// Smallest and largest density and heat where there is air.
    fn extremes(&self) -> [[f32; 2]; 2] {
        extremes(&self.smoke, &self.tank.blocks)
    }
}

fn around<const D: usize>(tank: &Tank<D>) -> Around<'_, D> {
    let Tank { blocks, boundary, projection, walls, .. } = tank;
    Around { blocks, boundary, label: &projection.label, voxels: walls.voxels }
}

/// Smallest and largest density and heat in the air of the domain.
fn extremes<const D: usize>(smoke: &Smoke<D>, blocks: &glug::grid::Blocks<D>) -> [[f32; 2]; 2] {
    let mut found = [[f32::INFINITY, f32::NEG_INFINITY]; 2];
    for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
        for (local, &air) in smoke.air.block(slot).iter().enumerate() {
            if air <= 0.0 || !blocks.grid().contains(blocks.cell_at(slot, local)) {
                continue;
            }
            for (found, field) in found.iter_mut().zip([&smoke.density, &smoke.heat]) {
                let value = field.block(slot)[local];
                *found = [found[0].min(value), found[1].max(value)];
            }
        }
    }
    found
}

/// A closed box of air, one metre a side, with smoke and heat in some shapes.
fn box_of_air<const D: usize>(
    cells: usize,
    smoke: Vec<(Shape<D>, f64, f64)>,
    solids: Vec<Solid<D>>,
) -> Setup<D> {
    let mut setup = tank([1.0; D], cells, Vec::new());
    let body = |(shape, density, heat)| SmokeBody { shape, density, heat };
    setup.smoke = smoke.into_iter().map(body).collect();
    setup.solids = solids;
    setup.params.model = Model::TwoPhase;
    setup.params.cfl = 2.0;
    setup
}

/// A ball, or a disc, around a place.
fn ball<const D: usize>(x: f64, y: f64, radius: f64) -> Shape<D> {
    Shape::Sphere { center: Vector::from_fn(|k, _| [x, y, 0.5][k]), radius }
}

/// The smoke of a simulation as a whole.
fn totals<const D: usize>(simulation: &Simulation<D>) -> Totals<D> {
    simulation.state().smoke.totals(simulation.blocks())
}

/// A built-in scene with that many cells along x.
fn scene<const D: usize>(name: &str, cells: usize, unpack: fn(AnyScene) -> Option<Scene<D>>) -> Scene<D> {
    let overrides = Overrides { cells: Some(cells), ..Overrides::default() };
    unpack(load(name, &overrides).expect("a built-in scene")).expect("of that dimension")
}

fn in_2d(scene: AnyScene) -> Option<Scene<2>> {
    match scene {
        AnyScene::TwoD(scene) => Some(scene),
        AnyScene::ThreeD(_) => None,
    }
}

fn in_3d(scene: AnyScene) -> Option<Scene<3>> {
    match scene {
        AnyScene::ThreeD(scene) => Some(scene),
        AnyScene::TwoD(_) => None,
    }
}
