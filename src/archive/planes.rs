//! Bytes of the same rank side by side: the exponents of numbers are alike and shrink to little, their last bits do not.

/// Puts the first bytes of all values first, then the second ones, and so on.
pub fn split(values: &[u8], width: usize, out: &mut Vec<u8>) {
    out.clear();
    out.resize(values.len(), 0);
    if width <= 1 {
        return out.copy_from_slice(values);
    }
    let count = values.len() / width;
    for (rank, plane) in out.chunks_exact_mut(count.max(1)).enumerate() {
        for (byte, value) in plane.iter_mut().zip(values.chunks_exact(width)) {
            *byte = value[rank];
        }
    }
}

/// The inverse of [`split`].
pub fn join(planes: &[u8], width: usize, out: &mut [u8]) {
    debug_assert_eq!(planes.len(), out.len());
    if width <= 1 {
        return out.copy_from_slice(planes);
    }
    let count = planes.len() / width;
    for (rank, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        for (byte, value) in plane.iter().zip(out.chunks_exact_mut(width)) {
            value[rank] = *byte;
        }
    }
}
