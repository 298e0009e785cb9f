//! Eight particles side by side: the arithmetic of interpolation, in plain Rust and in vector instructions.
//!
//! Interpolation is bound by the number of loads. The two faces along x that a particle lies between are neighbours in
//! memory, and vector instructions can load such a pair per particle at once, which compilers do not find out.

use std::ops::{Add, Mul, Sub};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::time::{Duration, Instant};

/// Particles treated side by side.
pub(crate) const LANES: usize = 8;

/// What two vectors of numbers can do.
pub(crate) trait Arithmetic:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
}
impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>> Arithmetic for T {}

/// A way to compute with eight particles at once. All ways give the same bits.
pub(crate) trait Wide: Copy {
    /// A number per particle.
    type Eight: Arithmetic;
    /// A low and a high number per particle.
    type Pairs: Arithmetic;
    /// A place in an array per particle.
    type Index: Copy;

    fn splat(x: f32) -> Self::Eight;
    fn load(x: &[f32; LANES]) -> Self::Eight;
    fn store(x: Self::Eight) -> [f32; LANES];
    /// Cuts numbers to a range; what is not a number becomes `low`.
    fn within(x: Self::Eight, low: f32, high: f32) -> Self::Eight;
    /// Whether all lie in a range.
    fn all_within(x: Self::Eight, low: f32, high: f32) -> bool;
    /// The place at the start of an array.
    fn origin() -> Self::Index;
    /// Moves places on by the whole part of `x ≥ 0`, times `stride`. Returns the rest of `x`, too.
    fn split(x: Self::Eight, stride: u32, from: Self::Index) -> (Self::Index, Self::Eight);
    /// Loads the values at the places, `offset` on, and those right behind them. Cut to the array.
    fn pairs<const N: usize>(values: &[f32; N], at: Self::Index, offset: u32) -> Self::Pairs;
    /// Each number as low and high.
    fn twice(x: Self::Eight) -> Self::Pairs;
    /// The low and the high numbers.
    fn apart(x: Self::Pairs) -> (Self::Eight, Self::Eight);
    /// The upper halves of the numbers, as [`super::particles::pack`].
    fn pack(x: Self::Eight) -> [u16; LANES];
}

/// Work that can be done in any [`Wide`] way.
pub(crate) trait Job {
    /// Does the work. To be inlined always, so that it is compiled for the instructions in use.
    fn run<W: Wide>(self);
}

/// Does a job in the fastest way this processor knows.
pub(crate) fn dispatch<J: Job>(job: J) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a way is chosen only if the processor has its instructions.
    unsafe {
        match Way::fastest() {
            Way::Gather => run_avx512::<J, true>(job),
            Way::Loads => run_avx512::<J, false>(job),
            Way::Avx2 => run_avx2(job),
            Way::Portable => job.run::<Portable>(),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    job.run::<Portable>();
}

/// The ways to do a [`Job`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// AVX-512, with gather instructions.
    Gather,
    /// AVX-512, with plain loads: gathers are slow on many processors, and where their microcode guards against leaks.
    Loads,
    /// Plain Rust, compiled for AVX2.
    Avx2,
    /// Plain Rust.
    Portable,
}

#[cfg(target_arch = "x86_64")]
impl Way {
    /// The fastest one here. Found once: whether gathers pay off is told by no flag and has to be tried (some 0.1 ms).
    fn fastest() -> Way {
        static FASTEST: OnceLock<Way> = OnceLock::new();
        *FASTEST.get_or_init(|| match () {
            () if has_avx512() => Way::by_trial(),
            () if std::arch::is_x86_feature_detected!("avx2") => Way::Avx2,
            () => Way::Portable,
        })
    }

    /// Interpolates for a moment in both ways that need AVX-512, in turns.
    fn by_trial() -> Way {
        let values: Vec<f32> = (0..TRIAL_VALUES).map(|k| k as f32 * 0.01).collect();
        let values = values.as_slice().try_into().expect("as many as asked for");
        let mut least = [Duration::MAX; 2];
        for _ in 0..TRIAL_ROUNDS {
            for (gather, least) in [true, false].into_iter().zip(&mut least) {
                let (started, mut sum) = (Instant::now(), 0.0);
                let trial = Trial { values: std::hint::black_box(values), sum: &mut sum };
                // SAFETY: the caller has looked for the instructions.
                unsafe { if gather { run_avx512::<_, true>(trial) } else { run_avx512::<_, false>(trial) } };
                std::hint::black_box(sum);
                *least = (*least).min(started.elapsed());
            }
        }
        if least[0] <= least[1] { Way::Gather } else { Way::Loads }
    }
}

/// Numbers that a trial looks up.
#[cfg(target_arch = "x86_64")]
const TRIAL_VALUES: usize = 4096;
/// How often each way is tried; its best time counts.
#[cfg(target_arch = "x86_64")]
const TRIAL_ROUNDS: usize = 8;

/// Looks up pairs all over an array that fits into the innermost cache, as the boxes of the passes over particles do.
#[cfg(target_arch = "x86_64")]
struct Trial<'a> {
    values: &'a [f32; TRIAL_VALUES],
    sum: &'a mut f32,
}

#[cfg(target_arch = "x86_64")]
impl Job for Trial<'_> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let mut sum = W::twice(W::splat(0.0));
        for step in 0..200u32 {
            // Particles of a cell or two, some of them in the next row or plane.
            let x = W::load(&std::array::from_fn(|l| {
                (step * 17 % 3500 + 273 * (l as u32 % 2) + l as u32 / 2) as f32
            }));
            let (at, rest) = W::split(x, 1, W::origin());
            let (low, high) = (W::pairs(self.values, at, 0), W::pairs(self.values, at, 16));
            let (far, further) = (W::pairs(self.values, at, 256), W::pairs(self.values, at, 272));
            sum = sum + (low + high) * (far + further) + W::twice(rest);
        }
        *self.sum = W::store(W::apart(sum).0).iter().sum();
    }
}

/// Whether this processor knows the instructions that the files named after AVX-512 use.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2")]
fn run_avx512<J: Job, const GATHER: bool>(job: J) {
    job.run::<super::avx512::Avx512<GATHER>>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<J: Job>(job: J) {
    job.run::<Portable>();
}

/// Arrays, which compilers turn into whatever vectors there are.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Numbers in an array.
#[derive(Clone, Copy)]
pub(crate) struct Eight([f32; LANES]);

/// Low and high numbers, each in an array.
#[derive(Clone, Copy)]
pub(crate) struct Pairs([Eight; 2]);

macro_rules! operator {
    ($trait:ident, $method:ident, $op:tt) => {
        impl $trait for Eight {
            type Output = Eight;
            #[inline(always)]
            fn $method(self, other: Eight) -> Eight {
                let mut result = [0.0; LANES];
                for l in 0..LANES {
                    result[l] = self.0[l] $op other.0[l];
                }
                Eight(result)
            }
        }
        impl $trait for Pairs {
            type Output = Pairs;
            #[inline(always)]
            fn $method(self, other: Pairs) -> Pairs {
                Pairs([self.0[0] $op other.0[0], self.0[1] $op other.0[1]])
            }
        }
    };
}
operator!(Add, add, +);
operator!(Sub, sub, -);
operator!(Mul, mul, *);

impl Wide for Portable {
    type Eight = Eight;
    type Pairs = Pairs;
    type Index = [u32; LANES];

    #[inline(always)]
    fn splat(x: f32) -> Eight {
        Eight([x; LANES])
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Eight {
        Eight(*x)
    }

    #[inline(always)]
    fn store(x: Eight) -> [f32; LANES] {
        x.0
    }

    #[inline(always)]
    fn within(mut x: Eight, low: f32, high: f32) -> Eight {
        for l in 0..LANES {
            // One comparison at a time: nested ones become branches.
            x.0[l] = if x.0[l] > low { x.0[l] } else { low };
            x.0[l] = if x.0[l] < high { x.0[l] } else { high };
        }
        x
    }

    #[inline(always)]
    fn all_within(x: Eight, low: f32, high: f32) -> bool {
        let mut all = true;
        for l in 0..LANES {
            all &= (x.0[l] >= low) & (x.0[l] <= high);
        }
        all
    }

    #[inline(always)]
    fn origin() -> [u32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    fn split(mut x: Eight, stride: u32, mut from: [u32; LANES]) -> ([u32; LANES], Eight) {
        for l in 0..LANES {
            let low = x.0[l] as i32;
            from[l] = from[l].wrapping_add((low as u32).wrapping_mul(stride));
            x.0[l] -= low as f32;
        }
        (from, x)
    }

    #[inline(always)]
    fn pairs<const N: usize>(values: &[f32; N], at: [u32; LANES], offset: u32) -> Pairs {
        let (mut low, mut high) = ([0.0; LANES], [0.0; LANES]);
        for l in 0..LANES {
            let at = at[l].wrapping_add(offset).min(N as u32 - 2) as usize;
            low[l] = values[at];
            high[l] = values[at + 1];
        }
        Pairs([Eight(low), Eight(high)])
    }

    #[inline(always)]
    fn twice(x: Eight) -> Pairs {
        Pairs([x, x])
    }

    #[inline(always)]
    fn apart(x: Pairs) -> (Eight, Eight) {
        (x.0[0], x.0[1])
    }

    #[inline(always)]
    fn pack(x: Eight) -> [u16; LANES] {
        let mut halves = [0; LANES];
        for l in 0..LANES {
            halves[l] = super::particles::pack(x.0[l]);
        }
        halves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interpolates in random places of a random array.
    struct Interpolate<'a>(&'a mut Vec<[u32; LANES]>);

    impl Job for Interpolate<'_> {
        #[inline(always)]
        fn run<W: Wide>(self) {
            let number = |k: u64| crate::math::hash_unit(k) * 20.0 - 2.0;
            let values: [f32; 64] = std::array::from_fn(|k| number(k as u64));
            for trial in 0..100 {
                let x = W::load(&std::array::from_fn(|l| number(1000 + 8 * trial + l as u64)));
                let (at, rest) = W::split(W::within(x, 0.0, 14.5), 4, W::origin());
                let (low, high) = W::apart(W::pairs(&values, at, 5) * W::twice(rest));
                let sum = low + high * (W::splat(3.0) - rest);
                self.0.push(W::store(sum).map(f32::to_bits));
                self.0.push(W::pack(sum).map(u32::from));
                self.0.push([W::all_within(x, -1.5, 17.5) as u32; LANES]);
            }
        }
    }

    #[test]
    fn all_ways_give_the_same_bits() {
        let (mut plain, mut fast) = (Vec::new(), Vec::new());
        Interpolate(&mut plain).run::<Portable>();
        dispatch(Interpolate(&mut fast));
        assert_eq!(plain, fast);
        #[cfg(target_arch = "x86_64")]
        if has_avx512() {
            let [mut gathered, mut loaded] = [Vec::new(), Vec::new()];
            // SAFETY: the processor has the instructions.
            unsafe {
                run_avx512::<_, true>(Interpolate(&mut gathered));
                run_avx512::<_, false>(Interpolate(&mut loaded));
            }
            assert_eq!((&plain, &plain), (&gathered, &loaded));
        }
        assert!(plain.iter().any(|row| row[0] == 0) && plain.iter().any(|row| row[0] == 1));
    }
}
