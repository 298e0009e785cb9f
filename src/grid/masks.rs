//! A block's cells as bits: 64 cells to a word, so that a flood fill moves 64 cells at once.
//!
//! In 3D a word is a layer along z, in 2D it is the whole block; x is the fastest bit, then y.

use crate::math::Side;

use super::{SIDE, block_cells};

/// Words of a block in 3D; a 2D block uses the first.
pub const WORDS: usize = SIDE;

/// One bit per cell.
pub type Bits = [u64; WORDS];

/// No cell.
pub const NONE: Bits = [0; WORDS];

/// Everything but the lowest column along x.
const NOT_FIRST_X: u64 = 0xfefe_fefe_fefe_fefe;
/// Everything but the lowest row along y.
const NOT_FIRST_Y: u64 = 0xffff_ffff_ffff_ff00;
/// The lowest column along x.
const FIRST_X: u64 = !NOT_FIRST_X;

/// Words in use.
pub const fn words(dimension: usize) -> usize {
    block_cells(dimension) / 64
}

/// All cells of a block.
pub fn all(dimension: usize) -> Bits {
    let mut bits = NONE;
    bits[..words(dimension)].fill(u64::MAX);
    bits
}

/// The cells for which `test` holds.
#[inline(always)]
pub fn bits_of<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> Bits {
    let mut bits = NONE;
    for (word, values) in bits.iter_mut().zip(values.as_chunks().0) {
        *word = word_of(values, &test);
    }
    bits
}

/// One bit for each of 64 values for which `test` holds.
#[inline(always)]
pub fn word_of<T: Copy>(values: &[T; 64], test: impl Fn(T) -> bool) -> u64 {
    // A byte for each first: tests of several values at a time give bytes, not bits.
    let mut marks = [0u8; 64];
    for (mark, &value) in marks.iter_mut().zip(values) {
        *mark = u8::from(test(value));
    }
    let rows = marks.as_chunks().0.iter().enumerate();
    rows.fold(0, |word, (row, marks)| word | u64::from(row_of(marks)) << (SIDE * row))
}

/// One bit for each of a row's marks of 0 or 1.
#[inline(always)]
pub fn row_of(marks: &[u8; SIDE]) -> u8 {
    gather_low_bits(u64::from_le_bytes(*marks)) as u8
}

/// The marks that [`row_of`] makes such a row of.
#[inline(always)]
pub fn marks_of(row: u8) -> [u8; SIDE] {
    // Each byte keeps the bit that is its own, and then has it at 0.
    let own = (u64::from(row) * FIRST_X) & 0x8040_2010_0804_0201;
    (((own + 0x7f * FIRST_X) >> 7) & FIRST_X).to_le_bytes()
}

/// Moves the bits at 0, 8, 16, … together.
#[inline(always)]
fn gather_low_bits(word: u64) -> u64 {
    (word & FIRST_X).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Rows along x that have any cell, of a word: a bit for each.
#[inline]
pub fn rows_in(word: u64) -> u64 {
    let word = word | word >> 4;
    let word = word | word >> 2;
    gather_low_bits(word | word >> 1)
}

/// Columns along y that have any cell, of a word: a bit for each.
#[inline]
pub fn columns_in(word: u64) -> u64 {
    let word = word | word >> 32;
    let word = word | word >> 16;
    (word | word >> 8) & 0xff
}

/// Cells with x and y exchanged.
#[inline]
pub fn swap_xy(bits: &Bits) -> Bits {
    bits.map(|word| {
        // Squares of one, two and four cells a side change places across the diagonal.
        let steps = [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)];
        steps.iter().fold(word, |word, &(way, moved)| {
            let change = (word ^ word >> way) & moved;
            word ^ change ^ change << way
        })
    })
}

/// Cells with y and z exchanged, in 3D.
#[inline]
pub fn swap_yz(bits: &Bits) -> Bits {
    let rows = bits.map(u64::to_le_bytes);
    std::array::from_fn(|z| u64::from_le_bytes(std::array::from_fn(|y| rows[y][z])))
}

/// How many cells are set.
#[inline]
pub fn count(bits: &Bits) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// Whether a cell is set.
#[inline(always)]
pub fn has(bits: &Bits, cell: usize) -> bool {
    bits[cell / 64] >> (cell % 64) & 1 == 1
}

/// The cells that are set in either.
pub fn or(a: &Bits, b: &Bits) -> Bits {
    std::array::from_fn(|word| a[word] | b[word])
}

/// The cells that are set in both.
pub fn and(a: &Bits, b: &Bits) -> Bits {
    std::array::from_fn(|word| a[word] & b[word])
}

/// The cells that are set in the first alone.
pub fn without(a: &Bits, b: &Bits) -> Bits {
    std::array::from_fn(|word| a[word] & !b[word])
}

/// The lowest set bit as a cell's index.
pub fn first(bits: &Bits) -> Option<usize> {
    bits.iter().position(|&word| word != 0).map(|word| word * 64 + bits[word].trailing_zeros() as usize)
}

/// The box around the set bits: its first cell, and one past its last.
pub fn extent<const D: usize>(bits: &Bits) -> ([usize; D], [usize; D]) {
    let layers =
        bits.iter().enumerate().fold(0u8, |layers, (word, &bits)| layers | u8::from(bits != 0) << word);
    let layer = bits.iter().fold(0, |all, bits| all | bits);
    let along = [columns_in(layer) as u8, rows_in(layer) as u8, layers];
    let ends =
        |axis: usize| (along[axis].trailing_zeros() as usize, 8 - along[axis].leading_zeros() as usize);
    (std::array::from_fn(|axis| ends(axis).0), std::array::from_fn(|axis| ends(axis).1))
}

/// Set bits, as indices of cells.
pub fn each(bits: &Bits) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().flat_map(|(word, &bits)| each_in(bits).map(move |bit| word * 64 + bit))
}

/// Set bits in stretches as long as possible, by the indices of their cells.
pub fn runs(bits: &Bits) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let (gaps, mut next) = (bits.map(|word| !word), 0);
    std::iter::from_fn(move || {
        let start = first_from(bits, next)?;
        next = first_from(&gaps, start).unwrap_or(64 * bits.len());
        Some(start..next)
    })
}

/// The lowest set bit from a cell on.
fn first_from(bits: &Bits, cell: usize) -> Option<usize> {
    let mut rest = *bits;
    rest.iter_mut().take(cell / 64).for_each(|word| *word = 0);
    if let Some(word) = rest.get_mut(cell / 64) {
        *word &= u64::MAX << (cell % 64);
    }
    first(&rest)
}

/// Set bits of one word.
pub fn each_in(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}

/// The part of `within` that hangs together with the cell `seed` through faces that `open` marks: `open[axis]` has a
/// bit per cell for the face on its low side.
pub fn connected<const D: usize>(seed: usize, within: &Bits, open: &[Bits; D]) -> Bits {
    let mut found = NONE;
    found[seed / 64] = 1 << (seed % 64);
    loop {
        let mut grew = false;
        for word in 0..words(D) {
            let before = found[word];
            let mut now = before;
            // Along x and y inside the word, until it stops growing.
            loop {
                let last = now;
                let (open_x, open_y) = (open[0][word] & NOT_FIRST_X, open[1][word] & NOT_FIRST_Y);
                // Each move stays within: what left it could come back somewhere else.
                now |= (now << 1) & open_x & within[word];
                now |= ((now & open_x) >> 1) & within[word];
                now |= (now << SIDE) & open_y & within[word];
                now |= ((now & open_y) >> SIDE) & within[word];
                if now == last {
                    break;
                }
            }
            if D == 3 && word > 0 {
                now |= found[word - 1] & open[D - 1][word] & within[word];
            }
            found[word] = now;
            grew |= now != before;
            if D == 3 && word > 0 {
                let below = found[word - 1] | (now & open[D - 1][word] & within[word - 1]);
                grew |= below != found[word - 1];
                found[word - 1] = below;
            }
        }
        if D == 2 || !grew {
            break;
        }
    }
    found
}

/// The cells whose neighbour on a side along an axis is set; `beyond` are the cells of the block there.
#[inline]
pub fn beside<const D: usize>(bits: &Bits, axis: usize, side: Side, beyond: &Bits) -> Bits {
    away::<D>(bits, axis, side, beyond, 1)
}

/// The cells for which the one `steps` cells (1 to 7) away on a side along an axis is set; `beyond` are the
/// cells of the block there.
#[inline]
pub fn away<const D: usize>(bits: &Bits, axis: usize, side: Side, beyond: &Bits, steps: usize) -> Bits {
    debug_assert!((1..SIDE).contains(&steps));
    let mut out = NONE;
    // Cells along x whose other one is in the same block.
    let inner = FIRST_X
        * match side {
            Side::Low => (0xff << steps) & 0xff,
            Side::High => 0xff >> steps,
        };
    for word in 0..words(D) {
        let (here, there) = (bits[word], beyond[word]);
        out[word] = match (axis, side) {
            (0, Side::Low) => (here << steps) & inner | (there >> (SIDE - steps)) & !inner,
            (0, Side::High) => (here >> steps) & inner | (there << (SIDE - steps)) & !inner,
            (1, Side::Low) => here << (SIDE * steps) | there >> (64 - SIDE * steps),
            (1, Side::High) => here >> (SIDE * steps) | there << (64 - SIDE * steps),
            (_, Side::Low) if word < steps => beyond[WORDS + word - steps],
            (_, Side::Low) => bits[word - steps],
            (_, Side::High) if word + steps >= WORDS => beyond[word + steps - WORDS],
            (_, Side::High) => bits[word + steps],
        };
    }
    out
}

/// A row of eight cells along x.
#[inline]
pub fn row(bits: &Bits, row: usize) -> u8 {
    (bits[row / SIDE] >> (row % SIDE * SIDE)) as u8
}

/// The lowest or highest layer of cells across an axis, as a word: in 3D 64 bits (the axes left, in order, fastest
/// first), in 2D eight.
pub fn plane<const D: usize>(bits: &Bits, axis: usize, side: Side) -> u64 {
    let high = side == Side::High;
    let column = |word: u64| gather_low_bits(if high { word >> (SIDE - 1) } else { word });
    let row = |word: u64| if high { word >> 56 } else { word & 0xff };
    match (D, axis) {
        (2, 0) => column(bits[0]),
        (2, _) => row(bits[0]),
        (_, 0) => (0..WORDS).fold(0, |plane, z| plane | column(bits[z]) << (SIDE * z)),
        (_, 1) => (0..WORDS).fold(0, |plane, z| plane | row(bits[z]) << (SIDE * z)),
        _ => bits[if high { WORDS - 1 } else { 0 }],
    }
}

/// The cell that a bit of [`plane`] stands for.
pub fn plane_cell<const D: usize>(bit: usize, axis: usize, side: Side) -> usize {
    let fixed = side.index() * (SIDE - 1);
    let (fast, slow) = (bit % SIDE, bit / SIDE);
    match (D, axis) {
        (2, 0) => fixed + SIDE * fast,
        (2, _) => fast + SIDE * fixed,
        (_, 0) => fixed + SIDE * (fast + SIDE * slow),
        (_, 1) => fast + SIDE * (fixed + SIDE * slow),
        _ => fast + SIDE * (slow + SIDE * fixed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{hash_unit, unflatten};

    fn random(salt: u64, share: f32, dimension: usize) -> Bits {
        let mut bits = NONE;
        for cell in 0..block_cells(dimension) {
            bits[cell / 64] |= ((hash_unit(salt * 1000 + cell as u64) < share) as u64) << (cell % 64);
        }
        bits
    }

    #[test]
    fn rows_and_marks_are_two_ways_to_say_the_same() {
        for row in 0..=u8::MAX {
            let marks = marks_of(row);
            assert_eq!(marks, std::array::from_fn(|x| row >> x & 1), "{row:#b}");
            assert_eq!(row_of(&marks), row);
        }
    }

    #[test]
    fn runs_are_the_cells_in_stretches() {
        let cases = (0..20).map(|salt| random(salt, 0.05 * salt as f32, 3));
        for bits in cases.chain([NONE, all(2), all(3)]) {
            let runs: Vec<_> = runs(&bits).collect();
            assert!(runs.iter().cloned().flatten().eq(each(&bits)));
            assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{runs:?}");
        }
        assert!(runs(&all(2)).eq(std::iter::once(0..64)) && runs(&all(3)).eq(std::iter::once(0..512)));
    }

    /// Connected cells, found by following one neighbour at a time.
    fn slow<const D: usize>(seed: usize, within: &Bits, open: &[Bits; D]) -> Bits {
        let get = |bits: &Bits, cell: usize| bits[cell / 64] >> (cell % 64) & 1 == 1;
        let mut found = NONE;
        let mut todo = vec![seed];
        while let Some(cell) = todo.pop() {
            if get(&found, cell) || !get(within, cell) {
                continue;
            }
            found[cell / 64] |= 1 << (cell % 64);
            let at = unflatten::<D>(cell, SIDE);
            for axis in 0..D {
                let stride = crate::math::power(SIDE, axis);
                if at[axis] > 0 && get(&open[axis], cell) {
                    todo.push(cell - stride);
                }
                if at[axis] + 1 < SIDE && get(&open[axis], cell + stride) {
                    todo.push(cell + stride);
                }
            }
        }
        found
    }

    fn words_grow_like_single_cells<const D: usize>() {
        for salt in 0..200 {
            let share = 0.4 + 0.05 * (salt % 10) as f32;
            let within = random(3 * salt, share, D);
            let open = std::array::from_fn(|axis| random(7919 * (salt + 1) + axis as u64, 0.8, D));
            let Some(seed) = first(&within) else { continue };
            assert_eq!(connected::<D>(seed, &within, &open), slow::<D>(seed, &within, &open), "{D}D {salt}");
        }
    }

    #[test]
    fn words_grow_like_single_cells_2d() {
        words_grow_like_single_cells::<2>();
    }

    #[test]
    fn words_grow_like_single_cells_3d() {
        words_grow_like_single_cells::<3>();
    }

    fn neighbours_are_found_across_blocks<const D: usize>() {
        let (here, there) = (random(5, 0.4, D), random(11, 0.5, D));
        let get = |bits: &Bits, cell: usize| bits[cell / 64] >> (cell % 64) & 1 == 1;
        for axis in 0..D {
            let stride = crate::math::power(SIDE, axis);
            for side in Side::BOTH {
                let found = beside::<D>(&here, axis, side, &there);
                for cell in 0..block_cells(D) {
                    let expected = match (side, unflatten::<D>(cell, SIDE)[axis]) {
                        (Side::Low, 0) => get(&there, cell + (SIDE - 1) * stride),
                        (Side::Low, _) => get(&here, cell - stride),
                        (Side::High, 7) => get(&there, cell - (SIDE - 1) * stride),
                        (Side::High, _) => get(&here, cell + stride),
                    };
                    assert_eq!(get(&found, cell), expected, "{D}D axis {axis} {side:?} cell {cell}");
                }
            }
        }
    }

    #[test]
    fn neighbours_are_found_across_blocks_2d() {
        neighbours_are_found_across_blocks::<2>();
    }

    #[test]
    fn neighbours_are_found_across_blocks_3d() {
        neighbours_are_found_across_blocks::<3>();
    }

    #[test]
    fn planes_name_their_cells() {
        for axis in 0..3 {
            for side in Side::BOTH {
                for bit in 0..64 {
                    let cell = plane_cell::<3>(bit, axis, side);
                    let mut bits = NONE;
                    bits[cell / 64] |= 1 << (cell % 64);
                    assert_eq!(plane::<3>(&bits, axis, side), 1 << bit, "axis {axis} {side:?} bit {bit}");
                }
                if axis < 2 {
                    for bit in 0..8 {
                        let cell = plane_cell::<2>(bit, axis, side);
                        let bits = [1 << cell, 0, 0, 0, 0, 0, 0, 0];
                        assert_eq!(plane::<2>(&bits, axis, side), 1 << bit, "2D axis {axis} {side:?}");
                    }
                }
            }
        }
    }
}
