//! Small vectors, colours included.

use std::sync::LazyLock;

/// A direction, a place, or a linear colour.
pub(super) type V3 = [f32; 3];

pub(super) fn add(a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| a[i] + b[i])
}

pub(super) fn sub(a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| a[i] - b[i])
}

pub(super) fn times(a: V3, b: V3) -> V3 {
    std::array::from_fn(|i| a[i] * b[i])
}

pub(super) fn scale(a: V3, s: f32) -> V3 {
    a.map(|x| x * s)
}

/// `a + s b`.
pub(super) fn along(a: V3, s: f32, b: V3) -> V3 {
    add(a, scale(b, s))
}

pub(super) fn mix(a: V3, b: V3, share: f32) -> V3 {
    add(scale(a, 1.0 - share), scale(b, share))
}

pub(super) fn dot(a: V3, b: V3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn unit(a: V3) -> V3 {
    scale(a, 1.0 / dot(a, a).sqrt().max(1e-20))
}

/// 0 below `low`, 1 above `high`, smooth between.
pub(super) fn smooth_step(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Steps of the table behind [`encode`]: fine enough for the darkest shades.
const SHADES: usize = 1 << 14;

static CURVE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let curve = |step: usize| {
        let linear = step as f32 / SHADES as f32;
        let curved = if linear < 0.0031308 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
        (curved * 255.0 + 0.5) as u8
    };
    (0..=SHADES).map(curve).collect()
});

/// A linear colour as an 8-bit sRGB pixel.
pub(super) fn encode(colour: V3) -> [u8; 3] {
    let curve = &*CURVE;
    colour.map(|linear| curve[(linear.clamp(0.0, 1.0) * SHADES as f32 + 0.5) as usize])
}
