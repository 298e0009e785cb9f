//! The velocity of liquid without particles, carried along with itself on the grid.
//!
//! A face takes the velocity from where a particle would have come. With `w` for the displacement that the velocity of the
//! substep's middle gives, and `J` for its gradient, that is at `x − (w − J w/2 + J J w/6)`: for an affine field what the
//! third-order scheme of [`super::super::advect()`] gives. There the velocity is interpolated by parabolas through three
//! faces along each axis. In one dimension this is MacCormack's scheme, and that of Lax and Wendroff: second order, and
//! stable for ways of up to a cell. A row of eight faces goes nearly the same way, so that one shift by whole cells
//! leaves less than that for each of them, and neighbouring faces are loaded side by side.

use crate::grid::masks::{self, Bits};
use crate::grid::{Halo, SIDE, halo_cells};
use crate::math::{power, unflatten};

use super::super::lanes::{Job, LANES, Wide};

/// Cells around a block where the way is found, and enough for the end of one that is no longer than a cell.
pub(super) const NEAR: Halo = Halo::new(2);
/// Cells around a block for the end of any way, and the interpolation there.
pub(super) const FAR: Halo = Halo::new(5);
/// The longest way, in cells along an axis.
pub(super) const FURTHEST: usize = FAR.margin - 1;

pub(super) const MOST_NEAR: usize = halo_cells(NEAR, 3);
pub(super) const MOST_FAR: usize = halo_cells(FAR, 3);

/// From the first to the last value that a row of faces is interpolated from, in 3D.
const fn span(halo: Halo) -> usize {
    2 * halo.stride(2) + 2 * halo.stride(1) + 2 + LANES
}
pub(super) const SPAN_NEAR: usize = span(NEAR);
pub(super) const SPAN_FAR: usize = span(FAR);

/// The cells of a block and those on its low side: so many along an axis.
const WIDE: usize = SIDE + 1;
const MOST_WAYS: usize = WIDE * WIDE * WIDE;

/// Carries the velocity to the faces of a block.
pub(super) struct Carry<'a, const D: usize, const MARGIN: usize, const MOST: usize, const SPAN: usize> {
    /// Cells whose low faces are wanted.
    pub bits: &'a Bits,
    /// The velocity that liquid goes with.
    pub paths: &'a [[f32; MOST_NEAR]; D],
    pub cells_per_speed: f32,
    /// The velocity that it takes along.
    pub faces: &'a [[f32; MOST]; D],
    pub carried: [&'a mut [f32]; D],
}

impl<const D: usize, const MARGIN: usize, const MOST: usize, const SPAN: usize> Job
    for Carry<'_, D, MARGIN, MOST, SPAN>
{
    #[inline(always)]
    fn run<W: Wide>(self) {
        const {
            assert!(
                SIDE == LANES && MOST == halo_cells(Halo::new(MARGIN), 3) && SPAN == span(Halo::new(MARGIN))
            )
        };
        let halo = const { Halo::new(MARGIN) };
        let furthest = (MARGIN - 1).min(FURTHEST) as f32;
        let mut ways = [[0f32; MOST_WAYS]; D];
        find_ways::<W, D>(self.bits, self.paths, self.cells_per_speed, &mut ways);
        let lowest: usize = (0..D).map(|k| halo.stride(k)).sum();
        for (axis, carried) in self.carried.into_iter().enumerate() {
            let (faces, below) = (&self.faces[axis], power(WIDE, axis));
            for row in 0..power(SIDE, D - 1) {
                let bits = masks::row(self.bits, row);
                if bits == 0 {
                    continue;
                }
                let at = unflatten::<D>(row * SIDE, SIDE);
                let way: usize = (0..D).map(|k| (at[k] + 1) * power(WIDE, k)).sum();
                let mut from = [W::splat(0.0); D];
                for k in 0..D {
                    let sum = eight::<W>(&ways[k], way) + eight::<W>(&ways[k], way - below);
                    from[k] = W::within(W::splat(-0.5) * sum, -furthest, furthest);
                }
                let base = halo.index(at.map(|at| at as i32)) - lowest;
                let found = if MARGIN == NEAR.margin {
                    W::store(parabolas::<W, D, MARGIN, MOST, SPAN>(faces, base, &from))
                } else {
                    far::<W, D, MARGIN, MOST, SPAN>(faces, base, &from, bits)
                };
                carried[row * SIDE..][..SIDE].copy_from_slice(&found);
            }
        }
    }
}

#[inline(always)]
fn eight<W: Wide>(values: &[f32], at: usize) -> W::Eight {
    W::load(values[at..][..LANES].try_into().expect("eight numbers"))
}

/// How far the liquid in the cells of a block, and in those on its low side, has come, in cells.
#[inline(always)]
fn find_ways<W: Wide, const D: usize>(
    bits: &Bits,
    paths: &[[f32; MOST_NEAR]; D],
    cells_per_speed: f32,
    ways: &mut [[f32; MOST_WAYS]; D],
) {
    const { assert!(SPAN_NEAR + LANES < MOST_NEAR) };
    for row in 0..power(WIDE, D - 1) {
        let place = unflatten::<D>(row * WIDE, WIDE);
        // The rows whose low faces look at these cells.
        let inside = |step: [usize; D]| {
            let at: [usize; D] = std::array::from_fn(|k| (place[k] + step[k]).wrapping_sub(1));
            (1..D).all(|k| at[k] < SIDE)
                && masks::row(bits, (1..D).map(|k| at[k] * power(SIDE, k - 1)).sum()) != 0
        };
        let wanted = (0..D).any(|axis| inside(std::array::from_fn(|k| usize::from(k == axis && k > 0))));
        if !wanted {
            continue;
        }
        let cell: [i32; D] = std::array::from_fn(|k| place[k] as i32 - 1);
        let at = NEAR.index(cell);
        // From the cell on the block's low side on, and from its own first.
        for first in 0..2 {
            let way = way::<W, D>(paths, at + first, cells_per_speed);
            for k in 0..D {
                ways[k][row * WIDE + first..][..LANES].copy_from_slice(&W::store(way[k]));
            }
        }
    }
}

/// `w − J w/2 + J J w/6` at the centres of eight cells.
#[inline(always)]
fn way<W: Wide, const D: usize>(
    paths: &[[f32; MOST_NEAR]; D],
    at: usize,
    cells_per_speed: f32,
) -> [W::Eight; D] {
    let [half, quarter] = [0.5, 0.25].map(|share| W::splat(share * cells_per_speed));
    let full = W::splat(cells_per_speed);
    let mut w = [W::splat(0.0); D];
    let mut slope = [[W::splat(0.0); D]; D];
    for axis in 0..D {
        let (values, high) = (&paths[axis], NEAR.stride(axis));
        let both = |at: usize| eight::<W>(values, at) + eight::<W>(values, at + high);
        w[axis] = half * both(at);
        for k in 0..D {
            let stride = NEAR.stride(k);
            slope[axis][k] = if k == axis {
                full * (eight::<W>(values, at + high) - eight::<W>(values, at))
            } else {
                quarter * (both(at + stride) - both(at - stride))
            };
        }
    }
    let once = product::<W, D>(&slope, &w);
    let twice = product::<W, D>(&slope, &once);
    for k in 0..D {
        w[k] = w[k] - W::splat(0.5) * once[k] + W::splat(1.0 / 6.0) * twice[k];
    }
    w
}

#[inline(always)]
fn product<W: Wide, const D: usize>(slope: &[[W::Eight; D]; D], w: &[W::Eight; D]) -> [W::Eight; D] {
    let mut product = *w;
    for row in 0..D {
        let mut sum = slope[row][0] * w[0];
        for k in 1..D {
            sum = sum + slope[row][k] * w[k];
        }
        product[row] = sum;
    }
    product
}

/// Interpolates at `from` off a row of eight faces, no more than a cell along each axis. Values from `base` on are those
/// around, one cell further down along each axis.
#[inline(always)]
fn parabolas<W: Wide, const D: usize, const MARGIN: usize, const MOST: usize, const SPAN: usize>(
    values: &[f32; MOST],
    base: usize,
    from: &[W::Eight; D],
) -> W::Eight {
    let halo = const { Halo::new(MARGIN) };
    // As many as in 3D; in 2D they are never looked at.
    let values: &[f32; SPAN] = values[base..][..SPAN].try_into().expect("as many as asked for");
    let mut share = [[W::splat(0.0); 3]; D];
    for k in 0..D {
        let (x, one) = (from[k], W::splat(1.0));
        let half = W::splat(0.5) * x;
        share[k] = [half * (x - one), one - x * x, half * (x + one)];
    }
    let sum = |three: [W::Eight; 3], share: &[W::Eight; 3]| {
        three[0] * share[0] + three[1] * share[1] + three[2] * share[2]
    };
    let (side, mut planes) = (halo.stride(1), [W::splat(0.0); 3]);
    for (z, plane) in planes.iter_mut().enumerate().take(if D == 3 { 3 } else { 1 }) {
        let mut rows = [W::splat(0.0); 3];
        for (y, row) in rows.iter_mut().enumerate() {
            let first = z * halo.stride(2) + y * side;
            let mut three = [W::splat(0.0); 3];
            for (x, value) in three.iter_mut().enumerate() {
                *value = eight::<W>(values, first + x);
            }
            *row = sum(three, &share[0]);
        }
        *plane = sum(rows, &share[1]);
    }
    if D == 3 { sum(planes, &share[D - 1]) } else { planes[0] }
}

/// The same for longer ways: those of all wanted faces less the same whole cells, if that leaves no more than one; others
/// are looked up one by one.
#[inline(always)]
fn far<W: Wide, const D: usize, const MARGIN: usize, const MOST: usize, const SPAN: usize>(
    values: &[f32; MOST],
    base: usize,
    from: &[W::Eight; D],
    bits: u8,
) -> [f32; LANES] {
    let halo = const { Halo::new(MARGIN) };
    let (mut ends, mut shift, mut rest) = ([[0f32; LANES]; D], [0i32; D], *from);
    let mut is_apart = [false; LANES];
    for k in 0..D {
        ends[k] = W::store(from[k]);
        let (mut low, mut high) = (f32::MAX, f32::MIN);
        for lane in 0..LANES {
            if bits >> lane & 1 == 1 {
                low = if ends[k][lane] < low { ends[k][lane] } else { low };
                high = if ends[k][lane] > high { ends[k][lane] } else { high };
            }
        }
        shift[k] = nearest(0.5 * (low + high));
        let whole = shift[k] as f32;
        for lane in 0..LANES {
            is_apart[lane] |= (ends[k][lane] - whole).abs() > 1.0;
        }
        rest[k] = W::within(from[k] - W::splat(whole), -1.0, 1.0);
    }
    let moved = |shift: &[i32; D]| {
        let step: i32 = (0..D).map(|k| shift[k] * halo.stride(k) as i32).sum();
        (base as i32 + step) as usize
    };
    let mut found = W::store(parabolas::<W, D, MARGIN, MOST, SPAN>(values, moved(&shift), &rest));
    for lane in (0..LANES).filter(|&lane| is_apart[lane] && bits >> lane & 1 == 1) {
        for k in 0..D {
            shift[k] = nearest(ends[k][lane]);
            rest[k] = W::splat(ends[k][lane] - shift[k] as f32);
        }
        let row = parabolas::<W, D, MARGIN, MOST, SPAN>(values, moved(&shift), &rest);
        found[lane] = W::store(row)[lane];
    }
    found
}

/// The nearest whole number, of one that is not large.
#[inline(always)]
fn nearest(x: f32) -> i32 {
    const UP: f32 = 16.0;
    (x + (UP + 0.5)) as i32 - UP as i32
}
