//! The inner loops over one colour of one block, in the order of `layout`.
//!
//! Each is compiled for several instruction sets and chosen at run time. They add in the same order and never fuse
//! a multiplication with an addition, so all versions give the same bits.

use macro_rules_attribute::apply;

use crate::math::simd;

use super::krylov::ResidualNorm;
use super::layout::{Row, half_rows, join_row, plane_rows, row_of_cover, split_row};
use super::topology::Topology;

/// The other colour's values in a block and in the blocks beside it.
pub(super) struct Around<'a, T, const D: usize> {
    here: &'a [Row<T>],
    low: [&'a [Row<T>]; D],
    high: [&'a [Row<T>]; D],
}

impl<'a, T, const D: usize> Around<'a, T, D> {
    /// Views `values`, whose blocks are `stride` rows long and keep the wanted colour from row `offset` on.
    #[inline(always)]
    pub fn new(
        values: &'a [Row<T>],
        stride: usize,
        offset: usize,
        topology: &Topology<D>,
        block: usize,
    ) -> Self {
        let view = |block: usize| {
            let start = block * stride + offset;
            &values[start..start + half_rows(D)]
        };
        let beside = topology.beside(block);
        Around {
            here: view(block),
            low: std::array::from_fn(|axis| view(beside[axis][0] as usize)),
            high: std::array::from_fn(|axis| view(beside[axis][1] as usize)),
        }
    }

    /// Makes sure that all are there.
    #[inline(always)]
    fn check(&self) {
        assert!(self.here.len() == half_rows(D));
        for axis in 0..D {
            assert!(self.low[axis].len() == half_rows(D) && self.high[axis].len() == half_rows(D));
        }
    }
}

/// Coefficients of one colour of one block.
pub(super) struct Coefficients<'a> {
    /// The link of blocks without links of their own.
    pub constant: f32,
    /// `2 D` rows of links for each row, in the order of [`neighbours`]; none where all links between unknowns have
    /// the constant value. Cells that are no unknowns hold 0, so links to them need not be told apart there.
    pub links: Option<&'a [Row<f32>]>,
    /// 1 over the diagonal, 0 where there is no unknown.
    pub inverse: &'a [Row<f32>],
    /// The diagonal.
    pub diagonal: &'a [Row<f32>],
}

/// The neighbours of the cells in a row: low x, high x, the other cell of the pair along the last axis, the one beyond
/// it on the other side, and in 3D low y, high y.
#[inline(always)]
pub(super) fn neighbours<T: Copy, const D: usize>(
    around: &Around<'_, T, D>,
    row: usize,
    colour: usize,
) -> [Row<T>; 6] {
    let rows = const { plane_rows(D) };
    let (m, y) = (row / rows, row % rows);
    let here = around.here[row];
    let (west, east) = (around.low[0][row][7], around.high[0][row][0]);
    let below = if m > 0 { around.here[row - rows] } else { around.low[D - 1][row + 3 * rows] };
    let above = if m < 3 { around.here[row + rows] } else { around.high[D - 1][row - 3 * rows] };
    let (even, odd) = if (y + colour).is_multiple_of(2) { (below, above) } else { (above, below) };
    let (south, north) = if D == 3 {
        (
            if y > 0 { around.here[row - 1] } else { around.low[1][row + 7] },
            if y < 7 { around.here[row + 1] } else { around.high[1][row - 7] },
        )
    } else {
        (here, here)
    };
    [
        [west, here[0], here[1], here[2], here[3], here[4], here[5], here[6]],
        [here[1], here[2], here[3], here[4], here[5], here[6], here[7], east],
        here,
        super::layout::blend(even, odd),
        south,
        north,
    ]
}

/// The links of one row, if links are kept.
#[inline(always)]
pub(super) fn links_of<const D: usize>(links: Option<&[Row<f32>]>, row: usize) -> Option<&[Row<f32>]> {
    links.map(|links| &links[row * 2 * D..(row + 1) * 2 * D])
}

/// `Σ g x` over the neighbours of a row.
#[inline(always)]
fn pull<const D: usize>(
    around: &Around<'_, f32, D>,
    row: usize,
    colour: usize,
    constant: f32,
    links: Option<&[Row<f32>]>,
) -> Row<f32> {
    pull_from::<D>(&neighbours(around, row, colour), constant, links_of::<D>(links, row))
}

/// `Σ g x` over neighbours whose values are given, with the links of this row if any are kept.
#[inline(always)]
pub(super) fn pull_from<const D: usize>(
    near: &[Row<f32>; 6],
    constant: f32,
    links: Option<&[Row<f32>]>,
) -> Row<f32> {
    let mut sum = [0.0; 8];
    match links {
        None => {
            for lane in 0..8 {
                let mut s = (near[0][lane] + near[1][lane]) + (near[2][lane] + near[3][lane]);
                if D == 3 {
                    s += near[4][lane] + near[5][lane];
                }
                sum[lane] = s * constant;
            }
        }
        Some(links) => {
            let links = &links[..2 * D];
            for lane in 0..8 {
                let mut s = (links[0][lane] * near[0][lane] + links[1][lane] * near[1][lane])
                    + (links[2][lane] * near[2][lane] + links[3][lane] * near[3][lane]);
                if D == 3 {
                    s += links[4][lane] * near[4][lane] + links[5][lane] * near[5][lane];
                }
                sum[lane] = s;
            }
        }
    }
    sum
}

/// Runs a loop twice in the source, so that the choice between constant and own links is made outside of it.
macro_rules! with_links {
    ($own:expr, $rows:expr, $links:ident, $body:block) => {
        match $own {
            None => {
                let $links: Option<&[Row<f32>]> = None;
                $body
            }
            Some(own) => {
                assert!(own.len() == 2 * D * $rows);
                let $links = Some(own);
                $body
            }
        }
    };
}
pub(super) use with_links;

/// One Gauss–Seidel pass: `x = (b + Σ g x_neighbour) / diagonal` for every cell of a colour.
#[apply(simd)]
pub(super) fn relax<const D: usize>(
    x: &mut [Row<f32>],
    b: &[Row<f32>],
    around: &Around<'_, f32, D>,
    coefficients: &Coefficients<'_>,
    colour: usize,
) {
    let rows = const { half_rows(D) };
    around.check();
    let inverse = coefficients.inverse;
    assert!(x.len() == rows && b.len() == rows && inverse.len() == rows);
    with_links!(coefficients.links, rows, links, {
        for row in 0..rows {
            let sum = pull(around, row, colour, coefficients.constant, links);
            for lane in 0..8 {
                x[row][lane] = (b[row][lane] + sum[lane]) * inverse[row][lane];
            }
        }
    });
}

/// Residual of the cells of one row.
pub(super) fn residual_row<const D: usize>(
    x: &[Row<f32>],
    b: &[Row<f32>],
    around: &Around<'_, f32, D>,
    coefficients: &Coefficients<'_>,
    colour: usize,
    row: usize,
) -> Row<f32> {
    let sum = pull(around, row, colour, coefficients.constant, coefficients.links);
    let (inverse, diagonal) = (coefficients.inverse[row], coefficients.diagonal[row]);
    std::array::from_fn(|lane| ((b[row][lane] + sum[lane]) * inverse[lane] - x[row][lane]) * diagonal[lane])
}

/// What [`relax`] does when the other colour is zero.
#[inline]
pub(super) fn relax_first(x: &mut [Row<f32>], b: &[Row<f32>], inverse: &[Row<f32>]) {
    for ((x, b), inverse) in x.iter_mut().zip(b).zip(inverse) {
        for lane in 0..8 {
            x[lane] = b[lane] * inverse[lane];
        }
    }
}

/// Adds the residual of one colour of a fine block to the cells of its cover (`coarse`, natural order).
///
/// Where `keep` is given, it is 0 for cells that belong to another node than their cover's cell.
#[apply(simd)]
#[allow(clippy::too_many_arguments)]
pub(super) fn restrict<const D: usize>(
    coarse: &mut [Row<f32>],
    octant: &[usize; D],
    x: &[Row<f32>],
    b: &[Row<f32>],
    around: &Around<'_, f32, D>,
    coefficients: &Coefficients<'_>,
    keep: Option<&[Row<f32>]>,
    colour: usize,
) {
    let (rows, plane) = (const { half_rows(D) }, const { plane_rows(D) });
    around.check();
    let (inverse, diagonal) = (coefficients.inverse, coefficients.diagonal);
    assert!(x.len() == rows && b.len() == rows && inverse.len() == rows && diagonal.len() == rows);
    assert!(coarse.len() == 2 * rows);
    with_links!(coefficients.links, rows, links, {
        for row in 0..rows {
            let sum = pull(around, row, colour, coefficients.constant, links);
            let mut residual = [0.0; 8];
            for lane in 0..8 {
                // Through the inverse, so that cells that are no unknowns give 0 whatever their neighbours hold.
                residual[lane] =
                    ((b[row][lane] + sum[lane]) * inverse[row][lane] - x[row][lane]) * diagonal[row][lane];
            }
            if let Some(keep) = keep {
                for lane in 0..8 {
                    residual[lane] *= keep[row][lane];
                }
            }
            let lanes = &mut coarse[row_of_cover(octant, row, plane)][4 * octant[0]..4 * octant[0] + 4];
            for lane in 0..4 {
                lanes[lane] += residual[2 * lane] + residual[2 * lane + 1];
            }
        }
    });
}

/// Adds the values of a cover's cells to one colour of a fine block.
///
/// Where `inverse` is given, cells that are no unknowns (0) stay as they are; `keep` as in [`restrict`].
#[apply(simd)]
pub(super) fn prolong<const D: usize>(
    x: &mut [Row<f32>],
    octant: &[usize; D],
    red: &[Row<f32>],
    black: &[Row<f32>],
    inverse: Option<&[Row<f32>]>,
    keep: Option<&[Row<f32>]>,
) {
    let (rows, plane) = (const { half_rows(D) }, const { plane_rows(D) });
    assert!(x.len() == rows && red.len() == rows && black.len() == rows);
    for row in 0..rows {
        let natural = join_row::<_, D>(red, black, row_of_cover(octant, row, plane));
        let c = &natural[4 * octant[0]..4 * octant[0] + 4];
        let mut wide = [c[0], c[0], c[1], c[1], c[2], c[2], c[3], c[3]];
        if let Some(inverse) = inverse {
            for lane in 0..8 {
                wide[lane] = if inverse[row][lane] > 0.0 { wide[lane] } else { 0.0 };
            }
        }
        if let Some(keep) = keep {
            for lane in 0..8 {
                wide[lane] *= keep[row][lane];
            }
        }
        for lane in 0..8 {
            x[row][lane] += wide[lane];
        }
    }
}

/// Coefficients of one colour of one block for the operator itself.
pub(super) struct ExactCoefficients<'a> {
    /// The link of blocks without links of their own.
    pub constant: f64,
    /// As in [`Coefficients`].
    pub links: Option<&'a [Row<f32>]>,
    /// The diagonal, from the f32 coefficients without rounding to f32; 0 where there is no unknown.
    pub diagonal: &'a [Row<f64>],
}

/// `A p` on a row, without the part of explicit nodes.
#[inline(always)]
fn product_row<T: Copy + Into<f64>, const D: usize>(
    p: Row<T>,
    around: &Around<'_, T, D>,
    row: usize,
    colour: usize,
    constant: f64,
    links: Option<&[Row<f32>]>,
    diagonal: Row<f64>,
) -> Row<f64> {
    let near = neighbours(around, row, colour);
    product_from::<T, D>(p, &near, constant, links_of::<D>(links, row), diagonal)
}

/// `A p` on a row from the neighbours' values, as in [`pull_from`].
#[inline(always)]
pub(super) fn product_from<T: Copy + Into<f64>, const D: usize>(
    p: Row<T>,
    narrow: &[Row<T>; 6],
    constant: f64,
    links: Option<&[Row<f32>]>,
    diagonal: Row<f64>,
) -> Row<f64> {
    // Uniform loops: `array::map` would be compiled once, without the instruction sets of the caller.
    let mut near = [[0.0f64; 8]; 6];
    for side in 0..2 * D {
        for lane in 0..8 {
            near[side][lane] = narrow[side][lane].into();
        }
    }
    let mut out = [0.0; 8];
    match links {
        None => {
            for lane in 0..8 {
                let mut s = (near[0][lane] + near[1][lane]) + (near[2][lane] + near[3][lane]);
                if D == 3 {
                    s += near[4][lane] + near[5][lane];
                }
                // A cell that is no unknown may have neighbours that are.
                let s = if diagonal[lane] > 0.0 { s } else { 0.0 };
                out[lane] = diagonal[lane] * p[lane].into() - s * constant;
            }
        }
        Some(links) => {
            let links = &links[..2 * D];
            for lane in 0..8 {
                let g = |i: usize| f64::from(links[i][lane]);
                let mut s = (g(0) * near[0][lane] + g(1) * near[1][lane])
                    + (g(2) * near[2][lane] + g(3) * near[3][lane]);
                if D == 3 {
                    s += g(4) * near[4][lane] + g(5) * near[5][lane];
                }
                out[lane] = diagonal[lane] * p[lane].into() - s;
            }
        }
    }
    out
}

/// `Σ p (A p)` over one colour of a block.
#[apply(simd)]
pub(super) fn energy<const D: usize>(
    p: &[Row<f32>],
    around: &Around<'_, f32, D>,
    coefficients: &ExactCoefficients<'_>,
    colour: usize,
) -> f64 {
    let rows = const { half_rows(D) };
    around.check();
    let diagonal = coefficients.diagonal;
    assert!(p.len() == rows && diagonal.len() == rows);
    let mut sums = [0.0; 8];
    with_links!(coefficients.links, rows, links, {
        for row in 0..rows {
            let product =
                product_row(p[row], around, row, colour, coefficients.constant, links, diagonal[row]);
            for lane in 0..8 {
                sums[lane] += product[lane] * f64::from(p[row][lane]);
            }
        }
    });
    sums.iter().sum()
}

/// `r −= α A p`, and `r` times `scale` in f32 into `rounded`; measures the new `r`.
#[apply(simd)]
#[allow(clippy::too_many_arguments)]
pub(super) fn step<T: Copy + Into<f64>, const D: usize>(
    r: &mut [Row<f64>],
    rounded: &mut [Row<f32>],
    scale: f64,
    alpha: f64,
    p: &[Row<T>],
    around: &Around<'_, T, D>,
    coefficients: &ExactCoefficients<'_>,
    colour: usize,
) -> ResidualNorm {
    let rows = const { half_rows(D) };
    around.check();
    let diagonal = coefficients.diagonal;
    assert!(p.len() == rows && diagonal.len() == rows && r.len() == rows && rounded.len() == rows);
    let (mut squares, mut max) = ([0.0; 8], [0.0f64; 8]);
    with_links!(coefficients.links, rows, links, {
        for row in 0..rows {
            let product =
                product_row(p[row], around, row, colour, coefficients.constant, links, diagonal[row]);
            for lane in 0..8 {
                let value = r[row][lane] - alpha * product[lane];
                r[row][lane] = value;
                rounded[row][lane] = (value * scale) as f32;
                squares[lane] += value * value;
                let size = value.abs();
                max[lane] = if size > max[lane] { size } else { max[lane] };
            }
        }
    });
    ResidualNorm { sum_sq: squares.iter().sum(), max_abs: max.iter().copied().fold(0.0, f64::max) }
}

/// Sorts a block of natural order by colour, and measures it.
#[apply(simd)]
pub(super) fn load<const D: usize>(out: &mut [Row<f64>], natural: &[Row<f64>]) -> ResidualNorm {
    let rows = const { half_rows(D) };
    assert!(out.len() == 2 * rows && natural.len() == 2 * rows);
    let (mut squares, mut max) = ([0.0; 8], [0.0f64; 8]);
    for colour in 0..2 {
        for row in 0..rows {
            let values = split_row::<_, D>(natural, colour, row);
            out[colour * rows + row] = values;
            for lane in 0..8 {
                squares[lane] += values[lane] * values[lane];
                let size = values[lane].abs();
                max[lane] = if size > max[lane] { size } else { max[lane] };
            }
        }
    }
    ResidualNorm { sum_sq: squares.iter().sum(), max_abs: max.iter().copied().fold(0.0, f64::max) }
}

/// Puts a block back into natural order.
#[apply(simd)]
pub(super) fn store<const D: usize>(natural: &mut [Row<f64>], values: &[Row<f64>]) {
    let rows = const { half_rows(D) };
    assert!(values.len() == 2 * rows && natural.len() == 2 * rows);
    let (red, black) = values.split_at(rows);
    for (row, out) in natural.iter_mut().enumerate() {
        *out = join_row::<_, D>(red, black, row);
    }
}
