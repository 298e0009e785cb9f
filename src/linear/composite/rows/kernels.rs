//! SIMD kernels over the rows of blocks: Gauss–Seidel half-sweeps, residuals, products, restriction.

use macro_rules_attribute::apply;

use crate::math::simd;

use super::super::super::kernels::{links_of, product_from, pull_from, with_links};
use super::super::super::layout::{Row, half_rows, join_row, plane_rows, row_of_cover, split_row};
use super::super::neighbours::NeighbourView;
use super::super::pattern::Half;

/// Values in rows.
#[inline(always)]
pub(in super::super) fn rows<T>(values: &[T]) -> &[Row<T>] {
    values.as_chunks().0
}

/// Mutable values in rows.
#[inline(always)]
pub(in super::super) fn rows_mut<T>(values: &mut [T]) -> &mut [Row<T>] {
    values.as_chunks_mut().0
}

/// A coefficient of the nodes of some rows.
#[derive(Clone, Copy)]
pub(in super::super) enum Values<'a> {
    /// One value for all.
    Same(f32),
    /// Row by row.
    Each(&'a [Row<f32>]),
}

/// Runs a loop twice in the source, so that the choice between one value for all and each row's own is made outside of it.
macro_rules! with_values {
    ($given:expr, $rows:expr, $values:ident, $body:block) => {
        match $given {
            Values::Same(value) => {
                let $values = |_: usize| [value; 8];
                $body
            }
            Values::Each(own) => {
                assert!(own.len() == $rows);
                let $values = |row: usize| own[row];
                $body
            }
        }
    };
}

/// The links of a half, if it keeps any.
#[inline(always)]
fn links(half: &Half) -> Option<&[Row<f32>]> {
    (!half.links.is_empty()).then(|| rows(&half.links))
}

/// Gauss–Seidel half-sweep over the nodes of a colour; a node's row is `diagonal x − Σ g x_neighbour = rhs`.
#[apply(simd)]
pub(in super::super) fn relax<const D: usize>(
    x: &mut [f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    view: &NeighbourView<'_, f32>,
    whole: f32,
) {
    let (x, rhs, inverse, diagonal) = (rows_mut(x), rows(rhs), rows(inverse), rows(&half.rounded));
    let count = x.len();
    view.check(count);
    assert!(rhs.len() == count && inverse.len() == count && diagonal.len() == count);
    with_links!(links(half), count, links, {
        for row in 0..count {
            let near = view.neighbours(row);
            let sum = pull_from::<D>(&near, whole, links_of::<D>(links, row));
            for lane in 0..8 {
                let residual = rhs[row][lane] + sum[lane] - diagonal[row][lane] * x[row][lane];
                x[row][lane] += inverse[row][lane] * residual;
            }
        }
    });
}

/// Gauss–Seidel half-sweep where `inverse` is one over the diagonal: what a node was before does not matter.
#[apply(simd)]
pub(in super::super) fn relax_alone<const D: usize>(
    x: &mut [f32],
    rhs: &[f32],
    inverse: Values<'_>,
    links: Option<&[Row<f32>]>,
    view: &NeighbourView<'_, f32>,
    whole: f32,
) {
    let (x, rhs) = (rows_mut(x), rows(rhs));
    let count = x.len();
    view.check(count);
    assert!(rhs.len() == count);
    with_values!(inverse, count, inverse, {
        with_links!(links, count, links, {
            for row in 0..count {
                let (near, inverse) = (view.neighbours(row), inverse(row));
                let sum = pull_from::<D>(&near, whole, links_of::<D>(links, row));
                for lane in 0..8 {
                    x[row][lane] = (rhs[row][lane] + sum[lane]) * inverse[lane];
                }
            }
        })
    });
}

/// Residual `rhs + Σ g x_neighbour − diagonal x`, and 0 where there is no node.
#[apply(simd)]
pub(in super::super) fn residual<const D: usize>(
    out: &mut [f32],
    x: &[f32],
    rhs: &[f32],
    inverse: &[f32],
    half: &Half,
    view: &NeighbourView<'_, f32>,
    whole: f32,
) {
    let (out, x, rhs, inverse, diagonal) =
        (rows_mut(out), rows(x), rows(rhs), rows(inverse), rows(&half.rounded));
    let count = out.len();
    view.check(count);
    assert!(x.len() == count && rhs.len() == count && inverse.len() == count && diagonal.len() == count);
    with_links!(links(half), count, links, {
        for row in 0..count {
            let near = view.neighbours(row);
            let sum = pull_from::<D>(&near, whole, links_of::<D>(links, row));
            for lane in 0..8 {
                let residual = rhs[row][lane] + sum[lane] - diagonal[row][lane] * x[row][lane];
                out[row][lane] = if inverse[row][lane] > 0.0 { residual } else { 0.0 };
            }
        }
    });
}

/// Residual where `inverse` is one over the diagonal.
#[apply(simd)]
pub(in super::super) fn residual_alone<const D: usize>(
    out: &mut [f32],
    x: &[f32],
    rhs: &[f32],
    inverse: Values<'_>,
    links: Option<&[Row<f32>]>,
    view: &NeighbourView<'_, f32>,
    whole: f32,
) {
    let (out, x, rhs) = (rows_mut(out), rows(x), rows(rhs));
    let count = out.len();
    view.check(count);
    assert!(x.len() == count && rhs.len() == count);
    with_values!(inverse, count, inverse, {
        with_links!(links, count, links, {
            for row in 0..count {
                let (near, inverse) = (view.neighbours(row), inverse(row));
                let sum = pull_from::<D>(&near, whole, links_of::<D>(links, row));
                for lane in 0..8 {
                    let residual = rhs[row][lane] + sum[lane] - x[row][lane] / inverse[lane];
                    out[row][lane] = if inverse[lane] > 0.0 { residual } else { 0.0 };
                }
            }
        })
    });
}

/// Restriction: adds the values of one colour of a block to the cells of its cover, which are in natural order.
#[apply(simd)]
pub(in super::super) fn fold<const D: usize>(cover: &mut [Row<f32>], octant: &[usize; D], values: &[f32]) {
    let (count, plane) = (const { half_rows(D) }, const { plane_rows(D) });
    let values = rows(values);
    assert!(values.len() == count && cover.len() == 2 * count);
    for row in 0..count {
        let lanes = &mut cover[row_of_cover(octant, row, plane)][4 * octant[0]..4 * octant[0] + 4];
        for lane in 0..4 {
            lanes[lane] += values[row][2 * lane] + values[row][2 * lane + 1];
        }
    }
}

/// Adds values in natural order to one colour of a block.
#[apply(simd)]
pub(in super::super) fn add_natural<const D: usize>(out: &mut [f32], natural: &[Row<f32>], colour: usize) {
    let count = const { half_rows(D) };
    let out = rows_mut(out);
    assert!(out.len() == count && natural.len() == 2 * count);
    for row in 0..count {
        let values = split_row::<_, D>(natural, colour, row);
        for lane in 0..8 {
            out[row][lane] += values[lane];
        }
    }
}

/// Takes one colour of a block in natural order.
#[apply(simd)]
pub(in super::super) fn split<const D: usize>(out: &mut [f64], natural: &[f64], colour: usize) {
    let natural = rows(natural);
    assert!(natural.len() == 2 * half_rows(D));
    for (row, out) in rows_mut(out).iter_mut().enumerate().take(half_rows(D)) {
        *out = split_row::<_, D>(natural, colour, row);
    }
}

/// Puts both colours of a block into natural order.
pub(in super::super) fn join<const D: usize>(natural: &mut [f64], red: &[f64], black: &[f64]) {
    let (red, black) = (rows(red), rows(black));
    assert!(red.len() == half_rows(D) && black.len() == half_rows(D));
    for (row, out) in rows_mut(natural).iter_mut().enumerate() {
        *out = join_row::<_, D>(red, black, row);
    }
}

/// `A p` of the nodes of a colour; 0 where there is no node.
#[apply(simd)]
pub(in super::super) fn product<T: Copy + Into<f64>, const D: usize>(
    out: &mut [f64],
    p: &[T],
    half: &Half,
    view: &NeighbourView<'_, T>,
    whole: f64,
) {
    let (out, p, diagonal) = (rows_mut(out), rows(p), rows(&half.diagonal));
    let count = out.len();
    view.check(count);
    assert!(p.len() == count && diagonal.len() == count);
    with_links!(links(half), count, links, {
        for row in 0..count {
            let near = view.neighbours(row);
            out[row] = product_from::<T, D>(p[row], &near, whole, links_of::<D>(links, row), diagonal[row]);
        }
    });
}

/// `A p` of the nodes of a colour with whole links, and with a diagonal that does not come from a pattern.
#[apply(simd)]
pub(in super::super) fn product_alone<T: Copy + Into<f64>, const D: usize>(
    out: &mut [f64],
    p: &[T],
    diagonal: Values<'_>,
    view: &NeighbourView<'_, T>,
    whole: f64,
) {
    let (out, p) = (rows_mut(out), rows(p));
    let count = out.len();
    view.check(count);
    assert!(p.len() == count);
    with_values!(diagonal, count, diagonal, {
        for row in 0..count {
            let near = view.neighbours(row);
            out[row] = product_from::<T, D>(p[row], &near, whole, None, diagonal(row).map(f64::from));
        }
    });
}
