//! The water cooler: water leaves the bottle only as fast as air comes in.

use std::collections::{BTreeSet, HashMap};

use glug::bubbles::{Event, EventKind};
use glug::geometry::Label;
use glug::grid::block_cells;
use glug::pressure::FREE;
use glug::scene::{AnyScene, Overrides, Scene, load};
use glug::sim::{FrameReport, Simulation};

use crate::sim::advance;

fn cooler(cells: usize) -> Scene<2> {
    match load("water_cooler_2d", &Overrides { cells: Some(cells), ..Overrides::default() }) {
        Ok(AnyScene::TwoD(scene)) => scene,
        other => panic!("the cooler is a scene in two dimensions, not {other:?}"),
    }
}

/// A cell's index in fields.
fn index(simulation: &Simulation<2>, cell: [i32; 2]) -> usize {
    let (slot, local) = simulation.blocks().locate(cell);
    slot as usize * block_cells(2) + local
}

/// Volume flow through the row of faces below the cells at `row` inside the neck, upwards, and its sum without signs;
/// m²/s. `None` unless the neck is full of liquid there.
fn neck_flow(simulation: &Simulation<2>, row: i32, columns: std::ops::Range<i32>) -> Option<[f64; 2]> {
    let state = simulation.state();
    let dx = simulation.blocks().grid().dx;
    let mut flow = [0.0; 2];
    for x in columns {
        let (high, low) = (index(simulation, [x, row]), index(simulation, [x, row - 1]));
        let open = simulation.boundary().open[1][high] as f64;
        if open == 0.0 {
            continue;
        }
        if [high, low].iter().any(|&cell| simulation.projection().label[cell] != Label::Liquid) {
            return None;
        }
        let through = open * state.velocity[1][high] as f64 * dx;
        flow[0] += through;
        flow[1] += through.abs();
    }
    Some(flow)
}

/// What the volume corrections ask of everything in the bottle, m²/s outwards: found by walking from the neck upwards.
/// `None` if that leads to open air.
fn asked_inside(simulation: &Simulation<2>, row: i32, columns: std::ops::Range<i32>) -> Option<f64> {
    let (state, roles) = (simulation.state(), simulation.roles());
    let dx = simulation.blocks().grid().dx;
    let mut seen: HashMap<[i32; 2], ()> = HashMap::new();
    let mut queue: Vec<[i32; 2]> = columns.map(|x| [x, row]).collect();
    let (mut asked, mut bubbles) = (0.0, BTreeSet::new());
    while let Some(cell) = queue.pop() {
        let at = index(simulation, cell);
        let label = simulation.projection().label[at];
        if cell[1] < row || label == Label::Solid || at < block_cells(2) || seen.insert(cell, ()).is_some() {
            continue;
        }
        let component = roles.component[at] as usize;
        match label {
            Label::Liquid if state.surface[at] <= -dx as f32 => asked += roles.outflow[component],
            Label::Air if roles.node[component] == FREE => return None,
            Label::Air if bubbles.insert(component) => asked += roles.outflow[component],
            _ => {}
        }
        for (axis, step) in [(0, -1), (0, 1), (1, -1), (1, 1)] {
            let mut next = cell;
            next[axis] += step;
            let face = if step > 0 { index(simulation, next) } else { at };
            if simulation.boundary().open[axis][face] > 0.0 {
                queue.push(next);
            }
        }
    }
    Some(asked * dx)
}

#[test]
fn as_much_air_goes_up_the_neck_as_water_goes_down() {
    let mut scene = cooler(64);
    scene.setup.params.tolerance = 1e-10;
    let dx = scene.setup.grid.dx;
    let (row, columns) = ((0.56 / dx) as i32, (0.44 / dx).floor() as i32..(0.56 / dx).ceil() as i32);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let (mut checked, mut worst) = (0, 0.0f64);
    for _ in 0..180 {
        advance(&mut simulation, 0.5 / scene.fps);
        let (Some([net, flow]), Some(asked)) =
            (neck_flow(&simulation, row, columns.clone()), asked_inside(&simulation, row, columns.clone()))
        else {
            continue;
        };
        if flow > 1e-3 {
            checked += 1;
            // What is asked for inside must leave through the neck, and nothing else may.
            worst = worst.max((net + asked).abs() / flow);
        }
    }
    println!("{checked} frames, worst {worst:.1e} of the flow");
    assert!(checked > 5, "only {checked} frames with a neck full of water");
    assert!(worst < 1e-6, "{worst:.1e} of the flow");
}

/// Air that was closed in at the mouth and became part of the bottle's air, once per lot of air.
#[derive(Default)]
struct Glugs {
    from_outside: BTreeSet<u64>,
    count: usize,
}

impl Glugs {
    fn watch(&mut self, report: &FrameReport, bottle: u64) {
        for event in &report.events {
            match event.kind {
                EventKind::Trapped => _ = self.from_outside.insert(event.id),
                EventKind::SplitFrom(parent) if self.from_outside.contains(&parent) => {
                    self.from_outside.insert(event.id);
                }
                EventKind::MergedInto(other) if self.from_outside.remove(&event.id) => {
                    if other == bottle {
                        self.count += 1;
                    } else {
                        self.from_outside.insert(other);
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_bottle_glugs() {
    let scene = cooler(64);
    let mut simulation = Simulation::new(&scene.setup).expect("it starts");
    let (mut glugs, mut lots, mut first, mut last) = (Glugs::default(), 0, None, 0.0);
    let mut name = 1;
    for _ in 0..120 {
        let report = advance(&mut simulation, 1.0 / scene.fps);
        let inside = report.bubbles.iter().filter(|bubble| !bubble.open && bubble.centroid[1] > 0.8);
        let Some(bottle) = inside.max_by(|a, b| a.volume.total_cmp(&b.volume)) else { break };
        // Large bubbles rise into it, splash and break up. Once one of them gave it its name.
        let has_burst = |event: &Event| event.id == name && event.kind == EventKind::Burst;
        assert!(bottle.id == name || report.events.iter().any(has_burst), "{name} is now {}", bottle.id);
        name = bottle.id;
        let before = glugs.count;
        glugs.watch(&report, bottle.id);
        // Air that arrives in the same frame is one glug.
        lots += (glugs.count > before) as usize;
        first = first.or(Some(bottle.rest_volume));
        last = bottle.rest_volume;
    }
    assert!(name < 100, "the bottle's air is called {name}");
    let first = first.expect("air in the bottle");
    assert!(lots >= 3, "{lots} glugs in {:.1} s", simulation.time());
    assert!(last > 1.3 * first, "the bottle's air grew from {first:.4} to {last:.4} m²");
}
