//! Liquid that leaves walls: one projection at a time.

use glug::geometry::{Label, MOST_MOTIONS, Motion, Shape, Solid};
use glug::grid::block_cells;
use glug::math::Vector;
use glug::pressure::{LetGo, Solved};

use crate::solids::{ball, body, project};
use crate::tank::{Tank, noise};

const FALL: f64 = 0.1;
/// As where air is nothing: a vacuum may open anywhere.
const FREELY: Option<LetGo> = Some(LetGo { suction: 0.0, needs_air: false });

/// A box, or a round tank in it.
fn tank<const D: usize>(is_round: bool) -> Tank<D> {
    let cells = if D == 2 { 40 } else { 24 };
    let middle = 0.5 * f64::from(cells as u32);
    let round = Solid::new("tank", ball(Vector::repeat(middle), 0.93 * middle).inverted(), Motion::default());
    Tank::new([cells; D], 1.0, is_round.then_some(round).into_iter().collect())
}

fn height<const D: usize>(tank: &Tank<D>) -> f64 {
    tank.blocks.grid().cells[1] as f64
}

/// Largest difference of a decided face from falling freely, over the fall.
fn error_of_free_fall<const D: usize>(tank: &Tank<D>) -> f64 {
    let wanted = |axis: usize| if axis == 1 { -FALL } else { 0.0 };
    let faces = tank.faces().into_iter().filter(|face| tank.is_valid(face));
    let errors =
        faces.map(|face| (f64::from(tank.velocity[face.axis][face.index]) - wanted(face.axis)).abs());
    errors.fold(0.0, f64::max) / FALL
}

/// A layer under the ceiling, at rest.
fn layer<const D: usize>(is_round: bool, let_go: Option<LetGo>) -> Tank<D> {
    let mut tank = tank::<D>(is_round);
    let bottom = height(&tank) - if is_round { 9.3 } else { 5.3 };
    tank.fill(|x| bottom - x[1]);
    tank.set_velocity(|_, _| 0.0);
    tank.impulse[1] = -FALL;
    tank.let_go = let_go;
    tank
}

fn a_layer_falls_off_the_ceiling<const D: usize>() {
    for is_round in [false, true] {
        let what = format!("{D}D, round {is_round}");
        let mut hanging = layer::<D>(is_round, None);
        hanging.project();
        assert!(
            hanging.fastest() < 1e-8,
            "{what}: suction holds it, but it moves by {:.1e}",
            hanging.fastest()
        );

        let mut falling = layer::<D>(is_round, FREELY);
        let solved = falling.project();
        assert!(solved.info.converged && solved.rounds <= 3 && solved.loose > 0, "{what}: {solved:?}");
        let error = error_of_free_fall(&falling);
        assert!(error < 1e-5, "{what}: {error:.1e} g off after {} rounds", solved.rounds);
        // The next step knows already.
        falling.set_velocity(|_, _| 0.0);
        let again = falling.project();
        assert_eq!((again.rounds, again.loose), (1, solved.loose), "{what}");
        assert!(error_of_free_fall(&falling) < 1e-5, "{what}");
    }
}

#[test]
fn a_layer_falls_off_the_ceiling_2d() {
    a_layer_falls_off_the_ceiling::<2>();
}

#[test]
fn a_layer_falls_off_the_ceiling_3d() {
    a_layer_falls_off_the_ceiling::<3>();
}

/// Nothing lets go of still water: to the last bit it is as if nothing could.
fn still_water_is_as_it_was<const D: usize>() {
    for is_round in [false, true] {
        let mut tanks = [None, FREELY, Some(LetGo { suction: 0.0, needs_air: true })].map(|let_go| {
            let mut tank = tank::<D>(is_round);
            let level = 0.43 * height(&tank);
            tank.fill(|x| x[1] - level);
            tank.set_velocity(|_, _| 0.0);
            tank.impulse[1] = -FALL;
            tank.let_go = let_go;
            tank
        });
        let solved: Vec<Solved> = tanks.iter_mut().map(Tank::project).collect();
        assert!(solved.iter().all(|solved| (solved.rounds, solved.loose) == (1, 0)), "{D}D: {solved:?}");
        let [plain, others @ ..] = &tanks;
        for other in others {
            assert!(plain.pressure.q.as_slice() == other.pressure.q.as_slice(), "{D}D round {is_round}");
            for (a, b) in plain.velocity.iter().zip(&other.velocity) {
                assert!(a.as_slice() == b.as_slice(), "{D}D round {is_round}: velocities");
            }
        }
    }
}

#[test]
fn still_water_is_as_it_was_2d() {
    still_water_is_as_it_was::<2>();
}

#[test]
fn still_water_is_as_it_was_3d() {
    still_water_is_as_it_was::<3>();
}

/// Kinetic energy of the faces between cells of liquid.
fn energy<const D: usize>(tank: &Tank<D>) -> f64 {
    let faces = tank.faces().into_iter().filter(|face| {
        [face.index, tank.below(face)].iter().all(|&index| tank.label(index) == Label::Liquid)
    });
    faces.map(|face| 0.5 * tank.open(&face) * f64::from(tank.velocity[face.axis][face.index]).powi(2)).sum()
}

/// Of any velocity: no cell sucks at a wall, none is pressed together, and those that expand have the pressure of the air. Energy
/// is only lost.
fn pressure_and_separation_exclude_each_other<const D: usize>() {
    for is_round in [false, true] {
        let what = format!("{D}D, round {is_round}");
        let mut tank = tank::<D>(is_round);
        let middle = Vector::<D>::repeat(0.5 * height(&tank));
        // Liquid all over but for a bubble of nothing.
        tank.fill(|x| 4.6 - (x - middle).norm());
        tank.set_velocity(noise);
        tank.let_go = FREELY;
        tank.label_cells();
        let (start, before) = (tank.velocity.clone(), energy(&tank));
        let mut rounds = Vec::new();
        // As many steps as it takes.
        while rounds.last() != Some(&1) && rounds.len() < 8 {
            tank.velocity.clone_from(&start);
            rounds.push(tank.project().rounds);
            let after = energy(&tank);
            assert!(after < before, "{what}: energy {before} → {after}");
        }
        println!("{what}: rounds {rounds:?}, {} loose cells", tank.pressure.loose.len());
        assert_eq!(rounds.last(), Some(&1), "{what}: {rounds:?}");
        assert!(tank.pressure.loose.len() > 4, "{what}: {}", tank.pressure.loose.len());
        let q = &tank.pressure.q;
        let most = tank.liquid().iter().fold(0.0f64, |most, &(_, index)| most.max(q[index].abs()));
        // Loose cells count as far as they are pressed together.
        assert!(tank.worst_outflow() < 2e-4 * most, "{what}: {:.1e} of {most:.1e}", tank.worst_outflow());
        for (cell, index) in tank.liquid() {
            let (slot, local) = (index / block_cells(D), index % block_cells(D));
            let is_cut = tank.boundary.bits(slot).cut[local / 64] >> (local % 64) & 1 == 1;
            assert!(!is_cut || q[index] > -2e-4 * most, "{what}: {cell:?} sucks by {:.1e}", q[index]);
            let is_loose = tank.pressure.loose.has(slot, local);
            assert!(is_cut || !is_loose, "{what}: {cell:?} is loose, and not along a wall");
            assert!(!is_loose || q[index].abs() < 1e-4 * most, "{what}: {cell:?} has {:.1e}", q[index]);
        }
    }
}

#[test]
fn pressure_and_separation_exclude_each_other_2d() {
    pressure_and_separation_exclude_each_other::<2>();
}

#[test]
fn pressure_and_separation_exclude_each_other_3d() {
    pressure_and_separation_exclude_each_other::<3>();
}

/// In a tank that is full there is no pressure to fall below.
#[test]
fn a_full_tank_has_nothing_to_let_go() {
    let mut full = tank::<2>(true);
    full.fill(|_| -1.0);
    full.set_velocity(noise);
    full.let_go = FREELY;
    let solved = full.project();
    assert_eq!((solved.rounds, solved.loose), (1, 0));
}

/// Sticky sides and solids hold what the others would let go, and so does suction that is large enough.
#[test]
fn sticky_walls_hold() {
    let hangs = |change: &dyn Fn(&mut Tank<2>)| {
        let mut tank = layer::<2>(false, FREELY);
        change(&mut tank);
        tank.project();
        tank.fastest() < 1e-8
    };
    assert!(!hangs(&|_| ()), "an ordinary ceiling");
    assert!(!hangs(&|tank| tank.walls.sticky[1] = [true, false]), "the bottom");
    assert!(hangs(&|tank| tank.walls.sticky = [[true; 2]; 2]), "all sides");
    // Under 5.3 cells of water, and a little less.
    let stands = |suction: f64| Some(LetGo { suction, needs_air: false });
    assert!(hangs(&|tank| tank.let_go = stands(5.4 * FALL)), "strong suction");
    assert!(!hangs(&|tank| tank.let_go = stands(4.0 * FALL)), "weak suction");
    // A plate below the ceiling, and the same that is sticky.
    for is_sticky in [false, true] {
        let shape = Shape::Box { min: Vector::from([-9.0, 30.0]), max: Vector::from([49.0, 49.0]) };
        let plate = Solid { sticky: is_sticky, ..Solid::new("plate", shape, Motion::default()) };
        let mut tank = Tank::<2>::new([40; 2], 1.0, vec![plate]);
        tank.walls.sticky[0] = [true; 2];
        tank.fill(|x| 25.3 - x[1]);
        tank.impulse[1] = -FALL;
        tank.let_go = FREELY;
        tank.project();
        let falls = tank.fastest() > 0.5 * FALL;
        assert_eq!(falls, !is_sticky, "sticky {is_sticky}: {}", tank.fastest());
    }
}

/// A plate that is pulled out of the water lets go of it: nothing but its own weight holds it back.
fn a_plate_lets_go_of_the_water<const D: usize>() {
    let rises = |let_go: Option<LetGo>| {
        let cells = if D == 2 { 40 } else { 24 };
        let middle = 0.5 * f64::from(cells as u32);
        // It lies on the water, and jumps up.
        let mut low = Vector::<D>::repeat(0.6 * middle);
        let mut high = Vector::<D>::repeat(1.4 * middle);
        (low[1], high[1]) = (0.8 * middle, 0.8 * middle + 3.4);
        let mut velocity = [0.0; MOST_MOTIONS];
        velocity[1] = 1.0;
        let plate = body(Shape::Box { min: low, max: high }, 1.0, velocity);
        let mut tank = Tank::<D>::new([cells; D], 1.0, vec![plate]);
        tank.fill(|x| x[1] - 0.8 * middle);
        tank.let_go = let_go;
        project(&mut tank, &[], 1e-10)[0].velocity[1]
    };
    let (held, free) = (rises(None), rises(FREELY));
    assert!(held < 0.8, "{D}D: suction slows it down to {held}");
    assert!((free - 1.0).abs() < 1e-4, "{D}D: it goes on by {free}");
}

#[test]
fn a_plate_lets_go_of_the_water_2d() {
    a_plate_lets_go_of_the_water::<2>();
}

#[test]
fn a_plate_lets_go_of_the_water_3d() {
    a_plate_lets_go_of_the_water::<3>();
}
