//! How much of a segment or square lies where a linearly interpolated function is positive, and how much of a
//! cell lies below a plane-like surface.

/// Share of the segment between two samples where the function is positive.
#[inline]
pub fn positive_segment(a: f32, b: f32) -> f32 {
    match (a > 0.0, b > 0.0) {
        (true, true) => 1.0,
        (false, false) => 0.0,
        (true, false) => a / (a - b),
        (false, true) => b / (b - a),
    }
}

/// Share of a square where the function is positive, from its corners in cyclic order (marching squares; an
/// ambiguous square is decided by its centre).
#[inline]
pub fn positive_square(corner: [f32; 4]) -> f32 {
    let positive = corner.map(|c| c > 0.0);
    // The triangle that a lone corner of one sign cuts off.
    let cut = |i: usize| {
        let (own, next, last) = (corner[i], corner[(i + 1) % 4], corner[(i + 3) % 4]);
        0.5 * (own / (own - next)) * (own / (own - last))
    };
    match positive.iter().filter(|&&p| p).count() {
        0 => 0.0,
        4 => 1.0,
        1 => (0..4).find(|&i| positive[i]).map_or(0.0, cut),
        3 => 1.0 - (0..4).find(|&i| !positive[i]).map_or(0.0, cut),
        _ if positive[0] == positive[2] => {
            let centre_positive = corner.iter().sum::<f32>() > 0.0;
            let lone = if positive[0] == centre_positive { 1 } else { 0 };
            let triangles = cut(lone) + cut(lone + 2);
            if centre_positive { 1.0 - triangles } else { triangles }
        }
        _ => {
            // Two neighbouring corners are positive: a trapezoid.
            let first = (0..4).find(|&i| positive[i] && positive[(i + 1) % 4]).unwrap_or(0);
            let [a, b, c, d] = std::array::from_fn(|k| corner[(first + k) % 4]);
            0.5 * (b / (b - c) + a / (a - d))
        }
    }
}

/// Mean of the values at the corners of a cell whose lowest corner is at `at`: what they say about its centre.
#[inline(always)]
pub fn corner_mean<const D: usize>(
    at: usize,
    stride: impl Fn(usize) -> usize,
    value: impl Fn(usize) -> f32,
) -> f32 {
    let corners = crate::math::power(2, D);
    let offset = |c: usize| (0..D).filter(|k| c & (1 << k) != 0).map(&stride).sum::<usize>();
    (0..corners).map(|c| value(at + offset(c))).sum::<f32>() / corners as f32
}

/// Rounds shares that differ from none or all by less than a thousandth: such slivers say nothing about the
/// flow, but would decide labels and spoil the matrix (every later test for closed or open is exact).
#[inline]
pub fn snap(share: f32) -> f32 {
    const SLIVER: f32 = 1e-3;
    if share < SLIVER {
        0.0
    } else if share > 1.0 - SLIVER {
        1.0
    } else {
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_cut_gives_the_exact_area() {
        // The half-plane n·x > offset over the unit square, against counting points.
        for k in 0..200 {
            let angle = k as f32 * 0.37;
            let (nx, ny) = (angle.cos(), angle.sin());
            let offset = ((k * 7919) % 200) as f32 / 100.0 - 1.0;
            let value = |x: f32, y: f32| nx * x + ny * y - offset;
            let area = positive_square([value(0.0, 0.0), value(1.0, 0.0), value(1.0, 1.0), value(0.0, 1.0)]);
            let count = (0..10_000)
                .filter(|i| value((i % 100) as f32 / 100.0 + 0.005, (i / 100) as f32 / 100.0 + 0.005) > 0.0)
                .count();
            assert!((area - count as f32 / 10_000.0).abs() < 0.012, "angle {angle}: {area} against {count}");
        }
    }

    #[test]
    fn a_square_and_its_negative_fill_it() {
        for k in 0..1000u64 {
            let corner: [f32; 4] = std::array::from_fn(|i| crate::math::hash_unit(k * 4 + i as u64) - 0.5);
            let sum = positive_square(corner) + positive_square(corner.map(|c| -c));
            assert!((sum - 1.0).abs() < 1e-6, "{corner:?}: {sum}");
        }
    }

    #[test]
    fn a_wall_on_the_grid_line_closes_its_face_and_opens_the_next() {
        assert_eq!(positive_square([0.0; 4]), 0.0);
        assert_eq!(positive_square([0.0, 1.0, 1.0, 0.0]), 1.0);
        assert_eq!(positive_segment(0.0, 1.0), 1.0);
    }
}
