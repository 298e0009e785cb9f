//! Velocities at closed faces.

use crate::geometry::{Boundary, Nearness, Walls};
use crate::grid::{Blocks, Field, Halo, SIDE, for_each_block, halo_cells, load_halo};
use crate::math::{Real, Vector, power, unflatten};

/// Gives closed faces along a wall the wall's own velocity, so that particles next to it are not carried into it.
/// Faces oblique to the wall keep what was extrapolated: half of that is flow along the wall.
pub fn stop_at_walls<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    time: Real,
    velocity: &mut [Field<f32>; D],
) {
    const ALONG: f32 = 0.95;
    let halo = Halo::new(1);
    for_each_block(blocks.slots(), velocity.each_mut().map(Field::parts), |slot, velocity| {
        if boundary.nearness(slot) == Nearness::Clear {
            return;
        }
        let mut corner = [0f32; halo_cells(Halo::new(1), 3)];
        load_halo(blocks, &boundary.corner, slot, halo, &mut corner);
        for (axis, velocity) in velocity.into_iter().enumerate() {
            let open = boundary.open[axis].block(slot);
            for (local, u) in velocity.iter_mut().enumerate().filter(|&(local, _)| open[local] == 0.0) {
                let cell = unflatten::<D>(local, SIDE);
                let normal = face_normal(&corner, halo, cell, axis);
                if normal.abs() > ALONG {
                    let x = Vector::from_fn(|k, _| {
                        let half = if k == axis { 0.0 } else { 0.5 };
                        ((blocks.first_cell(slot)[k] + cell[k] as i32) as Real + half) * blocks.grid().dx
                    });
                    *u = match boundary.nearness(slot) {
                        Nearness::Moving => walls.velocity(&x, time)[axis] as f32,
                        _ => 0.0,
                    };
                }
            }
        }
    });
}

/// Component of the wall's normal along `axis` at a face's centre.
fn face_normal<const D: usize>(corner: &[f32], halo: Halo, cell: [usize; D], axis: usize) -> f32 {
    let base = halo.index(cell.map(|c| c as i32));
    let stride = halo.stride(axis);
    let mut gradient = [0f32; D];
    for c in (0..power(2, D)).filter(|c| c & (1 << axis) == 0) {
        let at = base + (0..D).filter(|k| c & (1 << k) != 0).map(|k| halo.stride(k)).sum::<usize>();
        // Across the face: from the cell before to the cell behind. Along it: between its corners.
        gradient[axis] += 0.5 * (corner[at + stride] - corner[at - stride]);
        for k in (0..D).filter(|&k| k != axis) {
            gradient[k] += if c & (1 << k) != 0 { corner[at] } else { -corner[at] };
        }
    }
    let scale = power(2, D - 1) as f32;
    let norm = (0..D)
        .map(|k| gradient[k] / if k == axis { scale } else { scale * 0.5 })
        .map(|g| g * g)
        .sum::<f32>()
        .sqrt()
        .max(1e-6);
    gradient[axis] / scale / norm
}
