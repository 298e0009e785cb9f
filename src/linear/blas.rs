//! Operations on whole vectors. Each is compiled for several instruction sets and chosen at run time; all versions add in the
//! same order.

use macro_rules_attribute::apply;

use crate::math::simd;

use super::krylov::ResidualNorm;
use super::scalar::Scalar;

/// Lanes of a sum, so that additions need not wait for each other; always as many, whatever the instruction set.
const LANES: usize = 8;

/// `x += α p`.
#[apply(simd)]
pub(super) fn axpy(x: &mut [f64], alpha: f64, p: &[f32]) {
    for (x, &p) in x.iter_mut().zip(p) {
        *x += alpha * f64::from(p);
    }
}

/// `x = α p`.
#[apply(simd)]
pub(super) fn scaled_copy(x: &mut [f64], alpha: f64, p: &[f32]) {
    for (x, &p) in x.iter_mut().zip(p) {
        *x = alpha * f64::from(p);
    }
}

/// `p = z + β p`; `β = 0` forgets `p`, whatever it holds.
#[apply(simd)]
pub(super) fn xpby(p: &mut [f32], z: &[f32], beta: f32) {
    if beta == 0.0 {
        p.copy_from_slice(z);
        return;
    }
    for (p, z) in p.iter_mut().zip(z) {
        *p = z + beta * *p;
    }
}

/// `x += α p`, unless `α = 0`; then `p = z + β p`, as [`xpby`] does.
#[apply(simd)]
pub(super) fn axpy_then_xpby(x: &mut [f64], alpha: f64, p: &mut [f32], z: &[f32], beta: f32) {
    if alpha != 0.0 && beta != 0.0 {
        for ((x, p), z) in x.iter_mut().zip(p).zip(z) {
            *x += alpha * f64::from(*p);
            *p = z + beta * *p;
        }
        return;
    }
    if alpha != 0.0 {
        axpy(x, alpha, p);
    }
    xpby(p, z, beta);
}

/// `Σ a b`, in f64.
#[apply(simd)]
pub(super) fn dot<A: Scalar, B: Scalar>(a: &[A], b: &[B]) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            let (a, b): (f64, f64) = (a[lane].into(), b[lane].into());
            sums[lane] += a * b;
        }
    }
    let term = |(&a, &b): (&A, &B)| -> f64 { a.into() * b.into() };
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(term).sum::<f64>()
}

/// `Σ a`.
#[apply(simd)]
pub(super) fn sum(a: &[f64]) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (a, rest) = a.as_chunks::<LANES>();
    for a in a {
        for lane in 0..LANES {
            sums[lane] += a[lane];
        }
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

/// `x = b · inverse`, entry by entry: Jacobi.
pub(super) fn multiply_entries(x: &mut [f32], b: &[f32], inverse: &[f32]) {
    for ((x, b), inverse) in x.iter_mut().zip(b).zip(inverse) {
        *x = b * inverse;
    }
}

/// `rounded = scale · r`, in f32.
#[apply(simd)]
pub(super) fn round(rounded: &mut [f32], r: &[f64], scale: f64) {
    for (rounded, r) in rounded.iter_mut().zip(r) {
        *rounded = (r * scale) as f32;
    }
}

/// The size of a vector.
#[apply(simd)]
pub(super) fn norm(values: &[f64]) -> ResidualNorm {
    let (mut squares, mut max) = ([0.0; LANES], [0.0f64; LANES]);
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        for lane in 0..LANES {
            let size = row[lane].abs();
            squares[lane] += size * size;
            max[lane] = if size > max[lane] { size } else { max[lane] };
        }
    }
    ResidualNorm {
        sum_sq: squares.iter().sum::<f64>() + rest.iter().map(|value| value * value).sum::<f64>(),
        max_abs: max.iter().copied().chain(rest.iter().map(|value| value.abs())).fold(0.0, f64::max),
    }
}

/// `r −= α q`, and `rounded = scale · r`; returns the size of `r`. Vectors are whole rows of eight.
#[apply(simd)]
pub(super) fn update_residual(
    r: &mut [f64],
    rounded: &mut [f32],
    q: &[f64],
    alpha: f64,
    scale: f64,
) -> ResidualNorm {
    let (mut squares, mut largest) = ([0.0f64; LANES], [0.0f64; LANES]);
    let (r, rounded) = (r.as_chunks_mut::<LANES>().0, rounded.as_chunks_mut::<LANES>().0);
    for ((r, rounded), q) in r.iter_mut().zip(rounded).zip(q.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let value = r[lane] - alpha * q[lane];
            r[lane] = value;
            rounded[lane] = (value * scale) as f32;
            squares[lane] += value * value;
            largest[lane] = if value.abs() > largest[lane] { value.abs() } else { largest[lane] };
        }
    }
    ResidualNorm { sum_sq: squares.iter().sum(), max_abs: largest.into_iter().fold(0.0, f64::max) }
}
