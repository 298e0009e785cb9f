//! Cost follows the liquid, not the domain.

use glug::sim::Simulation;

use super::{advance, corner_box, tank};

/// The same column of water collapses in a small tank and in one with eight times the room.
fn empty_air_costs_nothing<const D: usize>() {
    let mut large = [2.0; D];
    if D == 2 {
        large[1] = 4.0;
    }
    let mut results = Vec::new();
    for size in [[1.0; D], large] {
        let cells = (32.0 * size[0]) as usize;
        let setup = tank(size, cells, vec![corner_box([0.0, 0.0], [0.3, 0.5], 0.6)]);
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let report = (0..10).map(|_| advance(&mut simulation, 1.0 / 60.0)).last().expect("ten frames");
        results.push((report.cells.stored as f64, report.cells.liquid, setup.grid.cell_count()));
    }
    let (small, large) = (results[0], results[1]);
    assert_eq!(large.2, 8 * small.2, "{D}D: eight times the cells");
    let more = large.0 / small.0 - 1.0;
    assert!(more.abs() < 0.1, "{D}D: {} cells stored, {} in the larger tank", small.0, large.0);
    assert_eq!(small.1, large.1, "{D}D: the same liquid");
}

#[test]
fn empty_air_costs_nothing_2d() {
    empty_air_costs_nothing::<2>();
}

#[test]
fn empty_air_costs_nothing_3d() {
    empty_air_costs_nothing::<3>();
}
