//! Questions about whole shapes and grids, asked before anything is allocated.

use crate::geometry::Shape;
use crate::grid::Grid;
use crate::math::{Real, Vector, power};

use super::error::Problem;

/// Memory a simulation needs per cell of its box, bytes; measured with a box half full of liquid.
const BYTES_PER_CELL: f64 = 200.0;

/// Scenes that need more memory are refused, bytes.
const MOST_BYTES: f64 = 4e9;

/// Fewest and most cells along x.
pub(super) const CELLS: (usize, usize) = (4, 4096);

/// The grid of a domain, if it fits in memory.
pub(super) fn grid_for<const D: usize>(size: [Real; D], cells: usize) -> Result<Grid<D>, Problem> {
    // In floating point, because a long thin domain may have more cells than an integer can count.
    let bytes = |cells: usize| {
        let dx = size[0] / cells as Real;
        size.iter().map(|length| (length / dx).ceil().max(1.0)).product::<Real>() * BYTES_PER_CELL
    };
    if bytes(cells) > MOST_BYTES {
        let guess = cells as Real * (MOST_BYTES / bytes(cells)).powf(1.0 / D as Real);
        let fitting = (CELLS.0..=guess as usize + 1).rev().find(|&fewer| bytes(fewer) <= MOST_BYTES);
        return Err(Problem::TooLarge {
            cells,
            count: (bytes(cells) / BYTES_PER_CELL) as u128,
            gigabytes: bytes(cells) / 1e9,
            limit_gigabytes: MOST_BYTES / 1e9,
            fitting,
        });
    }
    let grid = Grid::covering(size, cells);
    let thinnest = (0..D).min_by_key(|&axis| grid.cells[axis]).unwrap_or(0);
    if grid.cells[thinnest] < CELLS.0 {
        let needed = (CELLS.0 as Real * size[0] / size[thinnest]).ceil();
        return Err(Problem::Value {
            found: format!(
                "{cells}, which leaves {} cells along {},",
                grid.cells[thinnest],
                ["x", "y", "z"][thinnest]
            ),
            allowed: format!("at least {needed}, for {} cells across the domain's thinnest side", CELLS.0),
        });
    }
    Ok(grid)
}

/// A point of the box where the shape is and `wanted` holds, if there is one wider than about `finest`.
///
/// Boxes farther from the shape than they are large are skipped whole, which the bound on distances allows.
pub(super) fn find_point<const D: usize>(
    shape: &Shape<D>,
    corners: [Vector<D>; 2],
    finest: Real,
    skip: &dyn Fn(&[Vector<D>; 2]) -> bool,
    wanted: &dyn Fn(&Vector<D>) -> bool,
) -> Option<Vector<D>> {
    /// Enough for any surface at the finest resolution; a bound on the time a strange shape may cost.
    const MOST_BOXES: usize = 2_000_000;
    let mut open = vec![corners];
    let mut visited = 0;
    while let Some([min, max]) = open.pop() {
        visited += 1;
        if visited > MOST_BOXES || skip(&[min, max]) {
            continue;
        }
        let (middle, half) = ((min + max) * 0.5, (max - min) * 0.5);
        let distance = shape.distance(&middle);
        if distance < 0.0 && wanted(&middle) {
            return Some(middle);
        }
        if distance > half.norm() || half.max() < 0.5 * finest {
            continue;
        }
        // Only sides longer than the finest width are cut, so that slivers do not multiply.
        let cut: [bool; D] = std::array::from_fn(|axis| half[axis] >= 0.5 * finest);
        for corner in 0..power(2, D) {
            if (0..D).any(|axis| !cut[axis] && corner >> axis & 1 == 1) {
                continue;
            }
            let (mut low, mut high) = (min, max);
            for axis in (0..D).filter(|&axis| cut[axis]) {
                if corner >> axis & 1 == 0 { high[axis] = middle[axis] } else { low[axis] = middle[axis] }
            }
            open.push([low, high]);
        }
    }
    None
}

/// A point of the shape inside the domain.
pub(super) fn point_inside<const D: usize>(
    shape: &Shape<D>,
    size: &Vector<D>,
    dx: Real,
) -> Option<Vector<D>> {
    let [low, high] = shape.extent();
    let corners = [low.sup(&Vector::zeros()), high.inf(size)];
    if (0..D).any(|axis| corners[0][axis] >= corners[1][axis]) {
        return None;
    }
    find_point(shape, corners, 0.25 * dx, &|_| false, &|_| true)
}

/// A point of a finite shape outside the domain. What goes on forever is cut off by the walls, and fine.
pub(super) fn point_outside<const D: usize>(
    shape: &Shape<D>,
    size: &Vector<D>,
    dx: Real,
) -> Option<Vector<D>> {
    let [low, high] = shape.bounds()?;
    let slack = 1e-6 * size.max();
    let outside = |x: &Vector<D>| (0..D).any(|axis| x[axis] < -slack || x[axis] > size[axis] + slack);
    if !outside(&low) && !outside(&high) {
        return None;
    }
    let finest = (0.5 * dx).max((high - low).max() / 512.0);
    find_point(shape, [low, high], finest, &|[low, high]| !outside(low) && !outside(high), &outside)
}
