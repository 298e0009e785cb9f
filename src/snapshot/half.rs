//! Half-precision numbers, as textures hold them.

/// Rounds to the nearest half-precision number; too large becomes infinite, too small zero.
#[inline]
pub fn half_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= 0x4780_0000 {
        // Beyond 65504, or not a number.
        return sign | if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: adding a half lets the adder do the rounding.
        let shifted = (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits();
        return sign | shifted as u16;
    }
    let odd = (magnitude >> 13) & 1;
    sign | ((magnitude - 0x3800_0000 + 0xfff + odd) >> 13) as u16
}

/// The number that a half-precision pattern stands for.
#[inline]
pub fn f32_from_half(half: u16) -> f32 {
    let sign = (half as u32 & 0x8000) << 16;
    let (exponent, mantissa) = (half as u32 >> 10 & 31, half as u32 & 0x3ff);
    match exponent {
        0 => f32::from_bits(sign | (mantissa as f32 * 2f32.powi(-24)).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for pattern in 0..=u16::MAX {
            let value = f32_from_half(pattern);
            if !value.is_nan() {
                assert_eq!(half_from_f32(value), pattern, "{value}");
            }
        }
        assert!(f32_from_half(half_from_f32(f32::NAN)).is_nan());
        assert_eq!(f32_from_half(half_from_f32(1e9)), f32::INFINITY);
        assert_eq!(f32_from_half(half_from_f32(1.0 + 1.0 / 4096.0)), 1.0, "ties and below go down");
    }
}
