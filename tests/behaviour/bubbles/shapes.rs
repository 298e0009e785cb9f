//! Components of shapes whose answer is known beforehand.

use glug::bubbles::{Components, Measure, WallBlocks};
use glug::geometry::{Label, Motion, Nearness, Settled, Shape, Solid};
use glug::math::Vector;

use crate::tank::Tank;

/// The components of a tank.
pub fn components_of<const D: usize>(tank: &mut Tank<D>) -> Components<D> {
    tank.label_cells();
    let mut walls = WallBlocks::default();
    walls.update(&tank.blocks, &tank.walls, 0.0);
    let mut components = Components::new();
    components.fill(
        &tank.blocks,
        &tank.boundary,
        &tank.walls,
        &tank.projection.label,
        &Settled::default(),
        &walls,
    );
    components
}

fn count<const D: usize>(components: &Components<D>, phase: Label) -> usize {
    components.list.iter().filter(|component| component.phase == phase).count()
}

fn shells_in_shells_are_one_component_each<const D: usize>() {
    let cells = if D == 2 { 60 } else { 40 };
    let mut tank = Tank::<D>::new([cells; D], 1.0 / cells as f64, Vec::new());
    // Liquid outside; then air, liquid, air, and a drop in the middle.
    let edges = [0.08, 0.17, 0.26, 0.35];
    tank.fill(|x| {
        let r = (x - Vector::repeat(0.5)).norm();
        let nearest = edges.iter().map(|edge| (r - edge).abs()).fold(1.0, f64::min);
        let wet = edges.iter().filter(|edge| r > **edge).count() % 2 == 0;
        if wet { -nearest } else { nearest }
    });
    let components = components_of(&mut tank);
    assert_eq!([count(&components, Label::Liquid), count(&components, Label::Air)], [3, 2], "{D}D");
    // Each shell in one piece: the component at a radius does not depend on the direction.
    for (radius, phase) in
        [(0.0, Label::Liquid), (0.125, Label::Air), (0.215, Label::Liquid), (0.305, Label::Air)]
    {
        let mut found = Vec::new();
        for axis in 0..D {
            for side in [-1.0, 1.0] {
                let mut cell = [cells as i32 / 2; D];
                cell[axis] = ((0.5 + side * radius) * cells as f64) as i32;
                found.push(components.of[tank.index(cell)]);
            }
        }
        assert!(found.iter().all(|component| *component == found[0]), "{D}D radius {radius}: {found:?}");
        assert_eq!(components.list[found[0] as usize].phase, phase, "{D}D radius {radius}");
    }
}

#[test]
fn shells_in_shells_are_one_component_each_2d() {
    shells_in_shells_are_one_component_each::<2>();
}

#[test]
fn shells_in_shells_are_one_component_each_3d() {
    shells_in_shells_are_one_component_each::<3>();
}

/// Air around a drop around nothing else: the surface comes in two parts, the air does not.
fn a_bubble_with_a_droplet_is_one_component<const D: usize>() {
    let mut tank = Tank::<D>::new([32; D], 1.0 / 32.0, Vec::new());
    tank.fill(|x| {
        let r = (x - Vector::repeat(0.5)).norm();
        (0.3 - r).min(r - 0.1)
    });
    let components = components_of(&mut tank);
    assert_eq!([count(&components, Label::Air), count(&components, Label::Liquid)], [1, 2], "{D}D");
    let air = components.list.iter().position(|component| component.phase == Label::Air).expect("a bubble");
    let mut measure = Measure::new();
    measure.update(&tank.blocks, &tank.boundary, &tank.surface, &components, &Settled::default());
    let ball = |r: f64| if D == 2 { std::f64::consts::PI * r * r } else { 4.18879 * r.powi(3) };
    let expected = (ball(0.3) - ball(0.1)) * 32f64.powi(D as i32);
    let volume = measure.extent[air].volume;
    assert!((volume / expected - 1.0).abs() < 0.01, "{D}D: {volume} cells and not {expected}");
    assert!(measure.basin.iter().all(|&basin| basin == measure.basin[0]), "{D}D: all in one container");
}

#[test]
fn a_bubble_with_a_droplet_is_one_component_2d() {
    a_bubble_with_a_droplet_is_one_component::<2>();
}

#[test]
fn a_bubble_with_a_droplet_is_one_component_3d() {
    a_bubble_with_a_droplet_is_one_component::<3>();
}

/// Cells touch through faces that let something through, however little: nothing else divides air.
fn a_closed_row_of_faces_splits_the_air<const D: usize>() {
    let mut tank = Tank::<D>::new([12; D], 0.1, Vec::new());
    tank.fill(|_| 0.1);
    let rest = components_of(&mut tank);
    assert_eq!(rest.len(), 1, "{D}D: air and nothing else");
    let wall: Vec<_> = tank.faces().into_iter().filter(|face| face.axis == 0 && face.cell[0] == 5).collect();
    for (share, expected) in [(0.0, 2), (1e-12, 1)] {
        for face in &wall {
            let inside = tank.blocks.grid().contains(face.cell);
            tank.boundary.open[0][face.index] = if inside { share } else { 0.0 };
        }
        let components = components_of(&mut tank);
        assert_eq!(components.len(), expected, "{D}D: share {share}");
    }
    // One face is enough, whichever it is.
    let grid = *tank.blocks.grid();
    for face in wall.iter().filter(|face| grid.contains(face.cell)).step_by(7) {
        for other in &wall {
            tank.boundary.open[0][other.index] = (other.index == face.index) as usize as f32;
        }
        let components = components_of(&mut tank);
        assert_eq!(components.len(), 1, "{D}D: open at {:?}", face.cell);
    }
}

#[test]
fn a_closed_row_of_faces_splits_the_air_2d() {
    a_closed_row_of_faces_splits_the_air::<2>();
}

#[test]
fn a_closed_row_of_faces_splits_the_air_3d() {
    a_closed_row_of_faces_splits_the_air::<3>();
}

/// A plate on a grid line, thinner than a cell, divides a tank of liquid and air into two containers.
fn a_thin_plate_makes_two_containers<const D: usize>() {
    let (mut min, mut max) = (Vector::<D>::repeat(-1.0), Vector::<D>::repeat(2.0));
    (min[0], max[0]) = (0.5, 0.52);
    let plate = Solid::new("plate", Shape::Box { min, max }, Motion::default());
    let mut tank = Tank::<D>::new([24; D], 1.0 / 24.0, vec![plate]);
    tank.fill(|x| x[1] - 0.4);
    let components = components_of(&mut tank);
    let mut measure = Measure::new();
    measure.update(&tank.blocks, &tank.boundary, &tank.surface, &components, &Settled::default());
    assert_eq!([count(&components, Label::Air), count(&components, Label::Liquid)], [2, 2], "{D}D");
    let mut basins = measure.basin.clone();
    basins.sort_unstable();
    basins.dedup();
    assert_eq!(basins.len(), 2, "{D}D");
    assert!(components.list.iter().all(|component| component.touches_solid && !component.open), "{D}D");
}

#[test]
fn a_thin_plate_makes_two_containers_2d() {
    a_thin_plate_makes_two_containers::<2>();
}

#[test]
fn a_thin_plate_makes_two_containers_3d() {
    a_thin_plate_makes_two_containers::<3>();
}

/// Nothing but air: every cell of the domain counts once, none beyond it does.
fn an_empty_tank_measures_its_cells<const D: usize>() {
    for side in [5, 12, 19] {
        let mut tank = Tank::<D>::new([side; D], 0.1, Vec::new());
        tank.fill(|_| 0.1);
        let components = components_of(&mut tank);
        let mut measure = Measure::new();
        measure.update(&tank.blocks, &tank.boundary, &tank.surface, &components, &Settled::default());
        // Cells in the corners of the walls look a little smaller than they are.
        let corners = (side.pow(D as u32) - (side - 2).pow(D as u32)) as f64;
        let (volume, expected) = (measure.extent[0].volume, side.pow(D as u32) as f64);
        assert!(volume <= expected && volume > expected - 0.4 * corners, "{D}D: {volume} of {expected}");
        let cells = tank.cells().iter().filter(|(_, index)| components.of[*index] == 0).count();
        assert_eq!(cells, side.pow(D as u32), "{D}D: cells of the component");
        assert!(
            tank.blocks
                .slots()
                .as_slice()
                .iter()
                .all(|&slot| tank.boundary.nearness(slot as usize) != Nearness::Moving)
        );
    }
}

#[test]
fn an_empty_tank_measures_its_cells_2d() {
    an_empty_tank_measures_its_cells::<2>();
}

#[test]
fn an_empty_tank_measures_its_cells_3d() {
    an_empty_tank_measures_its_cells::<3>();
}
