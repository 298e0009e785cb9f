//! The liquid's surface from above.

use crate::export::Picture;

/// A shaded relief of heights in cells, rows of `nx` from the back, `zoom` pixels to a cell. Light comes from the
/// left and from behind.
pub fn relief(heights: &[f32], nx: usize, zoom: usize) -> Picture {
    let nz = heights.len() / nx.max(1);
    let at = |i: f32, k: f32| {
        let (i, k) = (i.clamp(0.0, (nx - 1) as f32), k.clamp(0.0, (nz - 1) as f32));
        let (i0, k0) = (i as usize, k as usize);
        let (i1, k1) = ((i0 + 1).min(nx - 1), (k0 + 1).min(nz - 1));
        let (s, t) = (i - i0 as f32, k - k0 as f32);
        let row = |k: usize| heights[k * nx + i0] * (1.0 - s) + heights[k * nx + i1] * s;
        row(k0) * (1.0 - t) + row(k1) * t
    };
    let mean = heights.iter().sum::<f32>() / heights.len().max(1) as f32;
    let mut rgb = Vec::with_capacity(3 * nx * nz * zoom * zoom);
    for y in 0..nz * zoom {
        for x in 0..nx * zoom {
            let place = |pixel: usize| (pixel as f32 + 0.5) / zoom as f32 - 0.5;
            let (i, k) = (place(x), place(y));
            let slope = [at(i + 0.5, k) - at(i - 0.5, k), at(i, k + 0.5) - at(i, k - 0.5)];
            let length = (1.0 + slope[0] * slope[0] + slope[1] * slope[1]).sqrt();
            let light = ((0.5 * slope[0] + 0.5 * slope[1] + 0.7) / length).clamp(0.0, 1.2);
            let high = ((at(i, k) - mean) / 24.0).clamp(-0.5, 0.5);
            let colour = [0.30 + 0.35 * high, 0.58 + 0.35 * high, 0.78 + 0.25 * high];
            // Sixty-four steps are enough for the eye, and make the file smaller.
            rgb.extend(colour.map(|channel| (255.0 * (channel * light * 1.25).clamp(0.0, 1.0)) as u8 & !3));
        }
    }
    Picture { width: nx * zoom, height: nz * zoom, rgb }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_towards_the_light_are_brighter() {
        let [up, flat, down] = [1.0, 0.0, -1.0].map(|slope| {
            let heights: Vec<f32> = (0..64).map(|k| slope * (k % 8) as f32).collect();
            let picture = relief(&heights, 8, 2);
            assert_eq!((picture.width, picture.height), (16, 16));
            picture.rgb[3 * (8 * 16 + 8)]
        });
        assert!(up > flat && flat > down, "{up} {flat} {down}");
    }
}
