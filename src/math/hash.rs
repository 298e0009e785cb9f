//! Reproducible pseudo-random numbers from integers: the same cell and seed jitter the same way on every
//! machine and for any number of threads.

/// Mixes a 64-bit word so that every input bit reaches every output bit.
#[inline]
pub const fn mix(word: u64) -> u64 {
    let mut h = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    h = (h ^ (h >> 29)).wrapping_mul(0xa24b_aed4_963e_e407);
    h ^ (h >> 32)
}

/// A number in `[0, 1)` that depends on `word` alone.
#[inline]
pub fn hash_unit(word: u64) -> f32 {
    (mix(word) >> 40) as f32 * (1.0 / (1u64 << 24) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_numbers_fill_the_unit_interval_evenly() {
        let mut bins = [0usize; 16];
        for word in 0..16_000 {
            let unit = hash_unit(word);
            assert!((0.0..1.0).contains(&unit));
            bins[(unit * 16.0) as usize] += 1;
        }
        assert!(bins.iter().all(|&count| (850..1150).contains(&count)), "{bins:?}");
    }
}
