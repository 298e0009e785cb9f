//! Instruction sets that kernels are compiled for.

/// `#[apply(simd)]` compiles a function for the vector instructions that processors may have, and for none: the best version
/// that the processor knows is chosen on the first call. All versions give the same bits, as none of them contracts or
/// reorders arithmetic.
macro_rules! simd {
    ($($function:tt)*) => {
        #[::multiversion::multiversion(targets(
            "x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma",
            "x86_64+avx2+fma",
        ))]
        $($function)*
    };
}

pub(crate) use simd;
