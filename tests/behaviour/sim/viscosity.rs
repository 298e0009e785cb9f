//! Thick liquids. The viscous step by itself is held to theory beside its code.

use glug::geometry::Shape;
use glug::math::Vector;
use glug::sim::{FrameReport, Params, Simulation};

use super::{advance, corner_box, rms_speed, tank};

/// A run of so many frames of a sixtieth of a second.
fn run<const D: usize>(simulation: &mut Simulation<D>, frames: usize) -> FrameReport {
    let mut last = FrameReport::default();
    for frame in 1..=frames {
        last = advance(simulation, 1.0 / 60.0);
        assert!(last.warnings.is_empty(), "{D}D, frame {frame}: {:?}", last.warnings);
    }
    last
}

fn a_thick_drop_falls_as_all_things_fall<const D: usize>() {
    let mut center = Vector::<D>::repeat(0.5);
    center[1] = 0.8;
    let cells = if D == 2 { 64 } else { 24 };
    for viscosity in [1.0, 100.0, 10000.0] {
        let mut setup = tank([1.0; D], cells, vec![Shape::Sphere { center, radius: 0.12 }]);
        setup.params.viscosity = viscosity;
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let report = run(&mut simulation, 18);
        assert!(report.viscosity.len() == report.substeps);
        let velocities = simulation.particle_velocities();
        for velocity in velocities {
            let slower = 1.0 + f64::from(velocity[1]) / (setup.params.gravity * report.time);
            assert!(slower.abs() < 1e-2, "{D}D, {viscosity} Pa·s: {velocity:?}");
        }
    }
}

#[test]
fn a_thick_drop_falls_as_all_things_fall_2d() {
    a_thick_drop_falls_as_all_things_fall::<2>();
}

#[test]
fn a_thick_drop_falls_as_all_things_fall_3d() {
    a_thick_drop_falls_as_all_things_fall::<3>();
}

#[test]
fn a_thick_disc_spins_on() {
    let center = Vector::<2>::repeat(0.5);
    let energies = [0.0, 1.0, 1000.0].map(|viscosity| {
        let mut setup = tank([1.0; 2], 64, vec![Shape::Sphere { center, radius: 0.3 }]);
        setup.liquids[0].flow.center = center;
        setup.liquids[0].flow.spin = [0.0, 0.0, 1.0];
        // Viscosity makes it APIC.
        setup.params = Params { gravity: 0.0, flip: 0.0, viscosity, ..setup.params };
        let mut simulation = Simulation::new(&setup).expect("it starts");
        run(&mut simulation, 60).liquid.kinetic_energy
    });
    for energy in &energies[1..] {
        // Projections that alternate with it cost some.
        assert!((energy / energies[0] - 1.0).abs() < 0.1, "{energies:?}");
    }
}

#[test]
fn the_thicker_the_sooner_at_rest() {
    let energies = [0.0, 1.0, 10.0, 100.0].map(|viscosity| {
        let mut setup = tank([1.0; 2], 48, vec![corner_box([0.0, 0.0], [0.4, 0.6], 0.0)]);
        setup.params.viscosity = viscosity;
        let mut simulation = Simulation::new(&setup).expect("it starts");
        run(&mut simulation, 30).liquid.kinetic_energy
    });
    assert!(energies.windows(2).all(|pair| pair[1] < pair[0]), "{energies:?}");
}

#[test]
fn thick_liquid_at_rest_stays_at_rest() {
    // Without viscosity, particles that settle stir it at 2.3 mm/s.
    for (viscosity, most) in [(0.01, 2.5e-3), (10.0, 1.5e-3), (10000.0, 3e-4)] {
        let mut setup = tank([1.0; 2], 32, vec![corner_box([0.0, 0.0], [1.0, 0.47], 0.0)]);
        setup.params.viscosity = viscosity;
        let mut simulation = Simulation::new(&setup).expect("it starts");
        let speed = rms_speed(&run(&mut simulation, 30), setup.params.density);
        assert!(speed < most, "{viscosity} Pa·s: {speed} m/s");
    }
}
