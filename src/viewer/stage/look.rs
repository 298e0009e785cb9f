//! From a snapshot and the options to the numbers that the shaders see.

use bevy::prelude::*;

use super::material::Look;
use super::pane::{CUT_AXIS, DrawOptions};
use crate::snapshot::Snapshot;
use crate::viewer::theme;

/// What all drawables on a stage have in common.
pub fn look_of(snapshot: &Snapshot, options: &DrawOptions) -> Look {
    let stage = &snapshot.scenery;
    let three = |values: [usize; 3], fourth: f32| {
        Vec4::new(values[0] as f32, values[1] as f32, values[2] as f32, fourth)
    };
    let size = Vec3::from(stage.size);
    let cut = options.cut.map_or(f32::MAX, |cut| cut * size[CUT_AXIS]);
    let open = stage.open.iter().take(2).flatten().enumerate();
    let open = open.map(|(bit, &open)| (open as u32) << bit).sum();
    let selected = options.selected.and_then(|id| snapshot.region_of(id)).unwrap_or(0);
    let [pressure, divergence] = theme::scales(stage, &snapshot.params);
    Look {
        size: size.extend(stage.dx),
        cells: three(snapshot.cells.cells, stage.dimension as f32),
        corners: three(snapshot.solids.corners, 0.0),
        cut: Vec4::new(cut, 0.0, 0.0, stage.speed),
        // The shader counts pressure in hundreds of pascals.
        scales: Vec4::new(
            pressure / 100.0,
            divergence,
            snapshot.report.time as f32,
            options.dark as u8 as f32,
        ),
        layers: UVec4::new(options.layers, selected as u32, snapshot.report.bubbles.len() as u32, open),
        ..Look::default()
    }
}
