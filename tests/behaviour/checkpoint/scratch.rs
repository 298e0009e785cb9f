//! Working memory may be dropped at any time between two substeps. Nobody should be able to tell.

use glug::sim::{Model, Simulation};

use super::{advance_both, busy_tank, statistics};

fn dropped_scratch_changes_nothing<const D: usize>(cells: usize, frames: usize) {
    for model in Model::ALL {
        let what = format!("{D}D, {}", model.name());
        let setup = busy_tank::<D>(model, cells);
        let [mut kept, mut dropped] = [(); 2].map(|()| Simulation::new(&setup).expect("it starts"));
        let mut most_substeps = 0;
        for frame in 0..frames {
            // Most frames are one substep, and then some are several.
            let (seconds, substeps) = if frame % 5 == 4 { (0.02, 3) } else { (0.004, 1) };
            for simulation in [&mut kept, &mut dropped] {
                simulation.params.min_substeps = substeps;
            }
            dropped.renew_scratch();
            let [before, renewed] = [&mut kept, &mut dropped].map(|sim| statistics(sim.survey()));
            assert_eq!(before, renewed, "{what}, frame {frame}: what is derived");
            let steps = kept.state().steps;
            advance_both(&mut kept, &mut dropped, seconds, &what);
            most_substeps = most_substeps.max(kept.state().steps - steps);
        }
        assert!(most_substeps > 1, "{what}: at most {most_substeps} substeps per frame");
        let tiles = kept.projection().tiling.as_ref().map_or(0, |tiling| tiling.tiles.len());
        assert_eq!(
            tiles > 0,
            matches!(model, Model::AffineBubbles | Model::AffineTiles),
            "{what}: {tiles} tiles"
        );
    }
}

#[test]
fn dropped_scratch_changes_nothing_2d() {
    dropped_scratch_changes_nothing::<2>(72, 40);
}

#[test]
fn dropped_scratch_changes_nothing_3d() {
    dropped_scratch_changes_nothing::<3>(40, 6);
}

/// A branch has memory of its own, and goes where its origin goes.
#[test]
fn a_branch_goes_where_its_origin_goes() {
    for model in Model::ALL {
        let mut origin = Simulation::new(&busy_tank::<2>(model, 48)).expect("it starts");
        for _ in 0..6 {
            crate::sim::advance(&mut origin, 0.01);
        }
        let mut branch = origin.branch();
        for _ in 0..6 {
            advance_both(&mut origin, &mut branch, 0.01, model.name());
        }
    }
}
