//! Simulations to bytes and back.

use glug::archive::ArchiveError;
use glug::sim::{Model, Setup, Simulation};
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{advance_both, busy_tank, statistics, traces};
use crate::sim::{advance, corner_box, tank};

fn saved<const D: usize>(simulation: &Simulation<D>) -> Vec<u8> {
    let mut bytes = Vec::new();
    simulation.save(&mut bytes).expect("memory takes everything");
    bytes
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

/// Saved with one thread, read and gone on from with two.
fn a_saved_simulation_goes_on_as_it_would_have<const D: usize>(cells: usize, frames: [usize; 2]) {
    for model in Model::ALL {
        let what = format!("{D}D, {}", model.name());
        let setup = busy_tank::<D>(model, cells);
        let (mut origin, bytes) = pool(1).install(|| {
            let mut origin = Simulation::new(&setup).expect("it starts");
            (0..frames[0]).for_each(|_| drop(advance(&mut origin, 0.012)));
            let bytes = saved(&origin);
            (origin, bytes)
        });
        pool(2).install(|| {
            let mut again =
                Simulation::load(&setup, bytes.as_slice()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(again.params, origin.params, "{what}");
            assert!(traces(&origin) == traces(&again), "{what}: fields or particles, as read");
            let [one, other] = [&mut origin, &mut again].map(|simulation| statistics(simulation.survey()));
            assert_eq!(one, other, "{what}: statistics, as read");
            assert!(saved(&again) == bytes, "{what}: what is read and saved again is the same file");
            for _ in 0..frames[1] {
                advance_both(&mut origin, &mut again, 0.012, &what);
            }
            assert!(saved(&again) == saved(&origin), "{what}: states after {} frames", frames[1]);
        });
    }
}

#[test]
fn a_saved_simulation_goes_on_as_it_would_have_2d() {
    a_saved_simulation_goes_on_as_it_would_have::<2>(72, [8, 10]);
}

#[test]
fn a_saved_simulation_goes_on_as_it_would_have_3d() {
    a_saved_simulation_goes_on_as_it_would_have::<3>(40, [3, 4]);
}

/// Live parameters are part of it, and a simulation that was saved before its first frame starts all the same.
#[test]
fn parameters_and_first_moments_are_saved() {
    let setup = busy_tank::<2>(Model::Constraint, 48);
    let mut origin = Simulation::new(&setup).expect("it starts");
    origin.params.gravity = 1.0 / 3.0;
    origin.params.model = Model::AffineTiles;
    let mut again = Simulation::load(&setup, saved(&origin).as_slice()).expect("it is whole");
    for _ in 0..4 {
        advance_both(&mut origin, &mut again, 0.012, "changed before the first frame");
    }
}

fn small() -> (Setup<2>, Vec<u8>) {
    let setup = tank([1.0; 2], 16, vec![corner_box([0.0, 0.0], [0.5, 0.5], 1.0)]);
    let mut simulation = Simulation::new(&setup).expect("it starts");
    advance(&mut simulation, 0.01);
    let bytes = saved(&simulation);
    (setup, bytes)
}

#[test]
fn a_state_of_another_scene_is_refused() {
    let (setup, bytes) = small();
    Simulation::load(&setup, bytes.as_slice()).expect("it is whole");
    let other = tank([1.0; 2], 24, vec![corner_box([0.0, 0.0], [0.5, 0.5], 1.0)]);
    let refused = Simulation::load(&other, bytes.as_slice()).map(drop);
    assert!(matches!(refused, Err(ArchiveError::Invalid { .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens to a file: an error, no panic, no absurd memory.
    #[test]
    fn damaged_files_are_refused(cut in 0.0..1.0f64, place in 0.0..1.0f64, bit in 0..8u32, how in 0..3u32, junk in any::<[u8; 12]>()) {
        let (setup, mut bytes) = small();
        let at = |share: f64, bytes: &[u8]| (share * bytes.len() as f64) as usize;
        match how {
            0 => bytes.truncate(at(cut, &bytes)),
            1 => {
                let place = at(place, &bytes);
                bytes[place] ^= 1 << bit;
            }
            _ => {
                let place = at(place, &bytes).min(bytes.len() - junk.len());
                prop_assume!(bytes[place..place + junk.len()] != junk);
                bytes[place..place + junk.len()].copy_from_slice(&junk);
            }
        }
        prop_assert!(Simulation::load(&setup, bytes.as_slice()).is_err());
    }
}
