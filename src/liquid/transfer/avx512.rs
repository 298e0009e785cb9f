//! Scattering in AVX-512 instructions: all faces that a cell's particles reach, of all three components, side by side.
//!
//! The sums are those of `scatter::scatter_cell` to the last bit: every face adds up the same numbers in the same
//! order.

use std::arch::x86_64::*;

use crate::grid::{SIDE, block_cells};
use crate::math::unflatten;

use super::super::{CellRanges, Particles};
use super::scatter::BlockSums;
use super::{HALO, MOST};

/// Places for faces: nine of each component, and some that none is in. A row of three along x never lies in both
/// halves.
const PLACES: usize = 32;

/// First place of the faces across x, and of each row of faces across y and z.
const ACROSS_X: usize = 0;
const ROWS: [[usize; 3]; 2] = [[9, 12, 16], [19, 22, 25]];

/// By place: where to find what a face needs.
struct Table {
    /// The component.
    axis: [i32; PLACES],
    /// Among distances along all axes, four for each: those along the first and the second other axis.
    one: [i32; PLACES],
    two: [i32; PLACES],
    /// Among slopes of all components, four for each: those along the three axes, the component's own first.
    slope: [[i32; PLACES]; 3],
}

impl Table {
    /// A face of a component, that many cells away along each axis.
    const fn put(&mut self, place: usize, axis: usize, step: [usize; 3]) {
        let (one, two) = ((axis + 1) % 3, (axis + 2) % 3);
        self.axis[place] = axis as i32;
        self.one[place] = (4 * one + step[one]) as i32;
        self.two[place] = (4 * two + step[two]) as i32;
        self.slope[0][place] = (4 * axis + axis) as i32;
        self.slope[1][place] = (4 * axis + one) as i32;
        self.slope[2][place] = (4 * axis + two) as i32;
    }
}

const TABLE: Table = {
    // The fourth distance along an axis is too long to reach anything.
    let nowhere = [3; PLACES];
    let mut table = Table { axis: [0; PLACES], one: nowhere, two: nowhere, slope: [[0; PLACES]; 3] };
    let mut i = 0;
    while i < 9 {
        let (a, b) = (i % 3, i / 3);
        table.put(ACROSS_X + i, 0, [0, a, b]);
        table.put(ROWS[0][b] + a, 1, [a, 0, b]);
        table.put(ROWS[1][b] + a, 2, [a, b, 0]);
        i += 1;
    }
    table
};

/// Place of a face along an axis, in cells from the particles' own cell, four for each axis.
const STEPS: [f32; 16] = {
    let mut steps = [9.0; 16];
    let mut i = 0;
    while i < 9 {
        steps[4 * (i / 3) + i % 3] = (i % 3) as f32 - 1.0;
        i += 1;
    }
    steps
};

/// Half of a table.
#[inline]
#[target_feature(enable = "avx512f")]
fn half(table: &[i32; PLACES], half: usize) -> __m512i {
    // SAFETY: sixteen of the places.
    unsafe { _mm512_loadu_si512(table[16 * half..][..16].as_ptr().cast()) }
}

/// The three numbers of a particle.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load(from: &[f32; 3]) -> __m128 {
    // SAFETY: no more than these three are read.
    unsafe { _mm_maskz_loadu_ps(0b111, from.as_ptr()) }
}

/// A particle's slopes, four places for each component.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw")]
fn load_slopes(rows: [&[u16; 3]; 3]) -> __m512 {
    // SAFETY: no more than the three of each row are read.
    let [x, y, z] = rows.map(|row| unsafe { _mm_maskz_loadu_epi16(0b111, row.as_ptr().cast()) });
    let all = _mm256_set_m128i(z, _mm_unpacklo_epi64(x, y));
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(all)))
}

/// Sums at a cell's low faces, and those beside them, and at its high ones: momentum and weight.
#[derive(Clone, Copy)]
struct CellSums {
    low: [[f32; PLACES]; 2],
    high: [[f32; PLACES]; 2],
}

/// Adds up a block's particles cell by cell.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
pub(super) fn scatter_block(
    particles: &Particles<3>,
    ranges: &CellRanges,
    slot: usize,
    first_cell: [i32; 3],
    sums: &mut BlockSums<3>,
) {
    for (local, range) in ranges.cells(slot).enumerate().filter(|(_, range)| !range.is_empty()) {
        let cell = unflatten::<3>(local, SIDE).map(|c| c as i32);
        let low: [f32; 3] = std::array::from_fn(|k| (first_cell[k] + cell[k]) as f32);
        let found = add_cell(particles, range, &low);
        add_to_faces(&found, HALO.index(cell), sums);
    }
    debug_assert!(ranges.cells(slot).count() == block_cells(3));
}

/// Adds up the particles of a cell whose low corner is `low`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn add_cell(particles: &Particles<3>, range: std::ops::Range<usize>, low: &[f32; 3]) -> CellSums {
    let axis = [half(&TABLE.axis, 0), half(&TABLE.axis, 1)];
    let one = [half(&TABLE.one, 0), half(&TABLE.one, 1)];
    let two = [half(&TABLE.two, 0), half(&TABLE.two, 1)];
    let slope = TABLE.slope.each_ref().map(|table| [half(table, 0), half(table, 1)]);
    // SAFETY: sixteen numbers.
    let steps = unsafe { _mm512_loadu_ps(STEPS.as_ptr()) };
    let by_axis = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    let diagonal = _mm512_set_epi32(3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 10, 5, 0);
    let (zero, ones) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
    let low = load(low);
    let (mut low_momentum, mut low_weight) = ([zero; 2], [zero; 2]);
    let (mut high_momentum, mut high_weight) = ([zero; 2], [zero; 2]);
    let affine = particles.affine.each_ref().map(|row| &row[range.clone()]);
    let moving = particles.position[range.clone()].iter().zip(&particles.velocity[range]);
    let rows = affine[0].iter().zip(affine[1]).zip(affine[2]);
    for ((position, velocity), ((x, y), z)) in moving.zip(rows) {
        let inside = _mm_sub_ps(load(position), low);
        let slopes = load_slopes([x, y, z]);
        let along = _mm512_castps512_ps128(_mm512_permutexvar_ps(diagonal, slopes));
        let velocity = _mm_sub_ps(load(velocity), _mm_mul_ps(along, inside));
        // Faces across the axis sit at cell centres.
        let centred = _mm512_castps128_ps512(_mm_sub_ps(inside, _mm_set1_ps(0.5)));
        let way = _mm512_sub_ps(steps, _mm512_permutexvar_ps(by_axis, centred));
        let share = _mm512_max_ps(_mm512_sub_ps(ones, _mm512_abs_ps(way)), zero);
        let [inside, velocity] = [inside, velocity].map(|own| _mm512_castps128_ps512(own));
        for h in 0..2 {
            let (a, b) = (_mm512_permutexvar_ps(one[h], way), _mm512_permutexvar_ps(two[h], way));
            let weight =
                _mm512_mul_ps(_mm512_permutexvar_ps(one[h], share), _mm512_permutexvar_ps(two[h], share));
            let [along, first, second] =
                [slope[0][h], slope[1][h], slope[2][h]].map(|place| _mm512_permutexvar_ps(place, slopes));
            let own = _mm512_permutexvar_ps(axis[h], velocity);
            let v = _mm512_add_ps(_mm512_add_ps(own, _mm512_mul_ps(first, a)), _mm512_mul_ps(second, b));
            let high = _mm512_permutexvar_ps(axis[h], inside);
            let low_share = _mm512_mul_ps(weight, _mm512_sub_ps(ones, high));
            let high_share = _mm512_mul_ps(weight, high);
            low_momentum[h] = _mm512_add_ps(low_momentum[h], _mm512_mul_ps(low_share, v));
            low_weight[h] = _mm512_add_ps(low_weight[h], low_share);
            let v = _mm512_add_ps(v, along);
            high_momentum[h] = _mm512_add_ps(high_momentum[h], _mm512_mul_ps(high_share, v));
            high_weight[h] = _mm512_add_ps(high_weight[h], high_share);
        }
    }
    CellSums {
        low: [store(low_momentum), store(low_weight)],
        high: [store(high_momentum), store(high_weight)],
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(halves: [__m512; 2]) -> [f32; PLACES] {
    let mut out = [0.0; PLACES];
    for (half, out) in halves.into_iter().zip(out.as_chunks_mut::<16>().0) {
        // SAFETY: sixteen places.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), half) };
    }
    out
}

/// Adds the sums of a cell, whose own place in the box is `at`, to its faces.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn add_to_faces(found: &CellSums, at: usize, sums: &mut BlockSums<3>) {
    let [y, z] = [HALO.stride(1), HALO.stride(2)];
    // A cell of the block is a layer away from the box's ends, in which all faces below are.
    let corner = at - y - z;
    for kind in 0..2 {
        let all = if kind == 0 { &mut sums.momentum } else { &mut sums.weight };
        let (low, high) = (&found.low[kind], &found.high[kind]);
        for i in 0..9 {
            let face = (corner + i % 3 * y + i / 3 * z) & (MOST - 1);
            all[0][face] += low[ACROSS_X + i];
            all[0][(face + 1) & (MOST - 1)] += high[ACROSS_X + i];
        }
        for row in 0..3 {
            add_row(&mut all[1], at - z + row * z - 1, low, ROWS[0][row]);
            add_row(&mut all[1], at - z + row * z - 1 + y, high, ROWS[0][row]);
            add_row(&mut all[2], at - y + row * y - 1, low, ROWS[1][row]);
            add_row(&mut all[2], at - y + row * y - 1 + z, high, ROWS[1][row]);
        }
    }
}

/// Adds the three sums from a place on to a row of faces.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn add_row(faces: &mut [f32; MOST], first: usize, sums: &[f32; PLACES], place: usize) {
    let (faces, sums) = (&mut faces[first..first + 3], &sums[place..place + 3]);
    // SAFETY: three numbers of each.
    unsafe {
        let sum =
            _mm_add_ps(_mm_maskz_loadu_ps(0b111, faces.as_ptr()), _mm_maskz_loadu_ps(0b111, sums.as_ptr()));
        _mm_mask_storeu_ps(faces.as_mut_ptr(), 0b111, sum);
    }
}
