//! Eight particles side by side in AVX-512 instructions.
//!
//! SAFETY, of every `unsafe` here: [`Avx512`] is named in one place only, behind the check that the processor has the
//! instructions.

use std::arch::x86_64::*;
use std::ops::{Add, Mul, Sub};

use super::lanes::{LANES, Wide};

/// The way of processors with AVX-512; for `lanes::dispatch` alone. Pairs are loaded by gather instructions, or one by
/// one: which is faster differs by a factor of four between processors.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const GATHER: bool>;

/// Eight numbers.
#[derive(Clone, Copy)]
pub(super) struct Eight(__m256);

/// Eight pairs of numbers, low and high alternating.
#[derive(Clone, Copy)]
pub(super) struct Pairs(__m512);

macro_rules! operator {
    ($type:ident, $trait:ident, $method:ident, $instruction:ident) => {
        impl $trait for $type {
            type Output = $type;
            #[inline(always)]
            fn $method(self, other: $type) -> $type {
                unsafe { $type($instruction(self.0, other.0)) }
            }
        }
    };
}
operator!(Eight, Add, add, _mm256_add_ps);
operator!(Eight, Sub, sub, _mm256_sub_ps);
operator!(Eight, Mul, mul, _mm256_mul_ps);
operator!(Pairs, Add, add, _mm512_add_ps);
operator!(Pairs, Sub, sub, _mm512_sub_ps);
operator!(Pairs, Mul, mul, _mm512_mul_ps);

impl<const GATHER: bool> Wide for Avx512<GATHER> {
    type Eight = Eight;
    type Pairs = Pairs;
    type Index = __m256i;

    #[inline(always)]
    fn splat(x: f32) -> Eight {
        unsafe { Eight(_mm256_set1_ps(x)) }
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Eight {
        unsafe { Eight(_mm256_loadu_ps(x.as_ptr())) }
    }

    #[inline(always)]
    fn store(x: Eight) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), x.0) };
        out
    }

    #[inline(always)]
    fn within(x: Eight, low: f32, high: f32) -> Eight {
        // The second operand wins when the first is not a number.
        unsafe { Eight(_mm256_min_ps(_mm256_max_ps(x.0, _mm256_set1_ps(low)), _mm256_set1_ps(high))) }
    }

    #[inline(always)]
    fn all_within(x: Eight, low: f32, high: f32) -> bool {
        unsafe {
            let above = _mm256_cmp_ps_mask::<_CMP_GE_OQ>(x.0, _mm256_set1_ps(low));
            above & _mm256_cmp_ps_mask::<_CMP_LE_OQ>(x.0, _mm256_set1_ps(high)) == 0xff
        }
    }

    #[inline(always)]
    fn origin() -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn split(x: Eight, stride: u32, from: __m256i) -> (__m256i, Eight) {
        unsafe {
            let low = _mm256_cvttps_epi32(x.0);
            let step = _mm256_mullo_epi32(low, _mm256_set1_epi32(stride as i32));
            (_mm256_add_epi32(from, step), Eight(_mm256_sub_ps(x.0, _mm256_cvtepi32_ps(low))))
        }
    }

    #[inline(always)]
    fn pairs<const N: usize>(values: &[f32; N], at: __m256i, offset: u32) -> Pairs {
        const { assert!(N >= 2 && N < i32::MAX as usize) };
        // SAFETY: places are cut so that both numbers of the pair are in the array.
        unsafe {
            let at = _mm256_add_epi32(at, _mm256_set1_epi32(offset as i32));
            let at = _mm256_min_epu32(at, _mm256_set1_epi32(N as i32 - 2));
            if GATHER {
                return Pairs(_mm512_castsi512_ps(_mm512_i32gather_epi64::<4>(at, values.as_ptr().cast())));
            }
            let (low, high) = (_mm256_castsi256_si128(at), _mm256_extracti128_si256::<1>(at));
            let quarters = [
                two_pairs(values, _mm_cvtsi128_si64(low)),
                two_pairs(values, _mm_extract_epi64::<1>(low)),
                two_pairs(values, _mm_cvtsi128_si64(high)),
                two_pairs(values, _mm_extract_epi64::<1>(high)),
            ];
            let halves = [[quarters[0], quarters[1]], [quarters[2], quarters[3]]].map(|[low, high]| {
                _mm512_castpd256_pd512(_mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(low), high))
            });
            let high = _mm512_castpd512_pd256(halves[1]);
            Pairs(_mm512_castpd_ps(_mm512_insertf64x4::<1>(halves[0], high)))
        }
    }

    #[inline(always)]
    fn twice(x: Eight) -> Pairs {
        unsafe {
            let from = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
            Pairs(_mm512_permutexvar_ps(from, _mm512_castps256_ps512(x.0)))
        }
    }

    #[inline(always)]
    fn apart(x: Pairs) -> (Eight, Eight) {
        unsafe {
            let low = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            let high = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
            (
                Eight(_mm512_castps512_ps256(_mm512_permutexvar_ps(low, x.0))),
                Eight(_mm512_castps512_ps256(_mm512_permutexvar_ps(high, x.0))),
            )
        }
    }

    #[inline(always)]
    fn pack(x: Eight) -> [u16; LANES] {
        let mut halves = [0; LANES];
        unsafe {
            let bits = _mm256_castps_si256(x.0);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
            let upper = _mm256_cvtepi32_epi16(_mm256_srli_epi32::<16>(rounded));
            _mm_storeu_si128(halves.as_mut_ptr().cast(), upper);
        }
        halves
    }
}

/// Loads the pairs of numbers at two places, which are the halves of `at`.
///
/// # Safety
/// Both numbers of both pairs must be in the array.
#[inline(always)]
unsafe fn two_pairs<const N: usize>(values: &[f32; N], at: i64) -> __m128d {
    let [first, second] = [at as u32, (at >> 32) as u32].map(|at| at as usize);
    // SAFETY: by the caller's promise; these loads need no alignment.
    unsafe {
        let first = _mm_load_sd(values.as_ptr().add(first).cast());
        _mm_loadh_pd(first, values.as_ptr().add(second).cast())
    }
}
