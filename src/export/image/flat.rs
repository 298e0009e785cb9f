//! A 2D frame as a picture: liquid, solids and air with smooth edges.

use rayon::prelude::*;

use super::vector::{V3, encode, mix, scale, smooth_step};
use super::{Picture, View};
use crate::math::{Real, Vector, power};

/// Pixels along the longer side of the domain.
const LONG_SIDE: Real = 1200.0;
/// Pixels around the domain.
const FRAME: usize = 24;

const PAPER: V3 = [0.86, 0.89, 0.92];
const WALL: V3 = [0.10, 0.12, 0.15];
const SHALLOW: V3 = [0.16, 0.52, 0.78];
const DEEP: V3 = [0.02, 0.12, 0.32];
const CREST: V3 = [0.75, 0.92, 1.0];
const SOLID: V3 = [0.34, 0.31, 0.29];

/// Draws the domain.
pub(super) fn draw<const D: usize>(view: &View<'_, D>) -> Picture {
    let size = view.setup.size;
    let pixel = size[0].max(size[1]) / LONG_SIDE;
    let inner = [0, 1].map(|axis| (size[axis] / pixel).round().max(1.0) as usize);
    let (width, height) = (inner[0] + 2 * FRAME, inner[1] + 2 * FRAME);
    let mut rgb = vec![0; width * height * 3];
    rgb.par_chunks_mut(width * 3).enumerate().for_each(|(row, pixels)| {
        for (column, out) in pixels.chunks_exact_mut(3).enumerate() {
            let x = (column as Real + 0.5 - FRAME as Real) * pixel;
            let y = size[1] - (row as Real + 0.5 - FRAME as Real) * pixel;
            out.copy_from_slice(&encode(colour(view, [x, y], pixel)));
        }
    });
    Picture { width, height, rgb }
}

fn colour<const D: usize>(view: &View<'_, D>, place: [Real; 2], pixel: Real) -> V3 {
    let size = view.setup.size;
    let out = (0..2).map(|axis| (-place[axis]).max(place[axis] - size[axis])).fold(Real::MIN, Real::max);
    if out > 0.0 {
        // A dark rim where a side is closed, paper beyond and at open sides.
        let closed = (0..2).all(|axis| {
            let [low, high] = view.setup.open[axis];
            !(low && place[axis] < 0.0 || high && place[axis] > size[axis])
        });
        return if closed && out < 5.0 * pixel { WALL } else { PAPER };
    }
    let x: Vector<D> = Vector::from_fn(|axis, _| place[axis]);
    let liquid = sample(view, &x);
    let height = (place[1] / size[1]).clamp(0.0, 1.0) as f32;
    let inside = (0.5 - liquid / pixel).clamp(0.0, 1.0) as f32;
    let crest = 1.0 - smooth_step(1.0, 5.0, (-liquid / pixel) as f32);
    let water = mix(mix(DEEP, SHALLOW, height.powf(0.7)), CREST, 0.55 * crest);
    let mut colour = mix(scale([0.98, 0.985, 0.99], 0.96 + 0.04 * height), water, inside);
    let solids = view.setup.solids.iter().map(|solid| solid.distance(&x, view.time));
    let solid = solids.fold(Real::MAX, Real::min);
    if solid < pixel {
        let rim = 1.0 - smooth_step(0.5, 3.0, (-solid / pixel) as f32);
        colour = mix(colour, mix(SOLID, WALL, rim), (0.5 - solid / pixel).clamp(0.0, 1.0) as f32);
    }
    colour
}

/// The liquid's signed distance between cell centres; beyond the outermost centres it stays the same.
fn sample<const D: usize>(view: &View<'_, D>, x: &Vector<D>) -> Real {
    let grid = view.blocks.grid();
    let x_grid = grid.grid_from_world(x);
    let base: [Real; D] = x_grid.map(|c| (c - 0.5).floor());
    (0..power(2, D))
        .map(|corner| {
            let mut weight = 1.0;
            let cell = std::array::from_fn(|axis| {
                let share = x_grid[axis] - 0.5 - base[axis];
                let high = corner >> axis & 1;
                weight *= if high == 1 { share } else { 1.0 - share };
                (base[axis] as i32 + high as i32).clamp(0, grid.cells[axis] as i32 - 1)
            });
            let (slot, local) = view.blocks.locate(cell);
            let limit = 3.0 * grid.dx;
            let value = Real::from(view.surface.block(slot as usize)[local]);
            weight * if value < limit { value.max(-limit) } else { limit }
        })
        .sum()
}
