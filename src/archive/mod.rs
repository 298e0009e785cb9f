//! Large arrays to bytes and back: named sections, compressed in chunks, with a checksum on every piece.
//!
//! An archive is a stream: it is written and read from front to back, one chunk in memory at a time.
//!
//! ```text
//! magic (8 bytes) · format (u32) · checksum
//! section*  = 1 (u8) · name · bytes per value (u32) · values (u64) · checksum · chunk*
//! chunk     = bytes stored (u32) · a zstd frame of up to 1 MiB, bytes of the same rank side by side · checksum
//! end       = 0 (u8) · checksum
//! ```
//!
//! All numbers are little-endian. Every checksum (XXH3, 64 bits) takes in the one before it: pieces that are missing, changed
//! or in another order are noticed at the first of them.

mod planes;
mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

use std::io;

/// How every archive begins. The first byte is no text, and line ends that were translated on the way are noticed.
const MAGIC: [u8; 8] = *b"\x89GLUG\r\n\x1a";

/// The format that is written, and the newest that can be read.
pub const FORMAT: u32 = 2;

/// Bytes of values in a chunk, at most.
const CHUNK: usize = 1 << 20;

/// What begins a section.
const SECTION: u8 = 1;
/// What ends an archive.
const END: u8 = 0;

/// The longest name of a section.
const LONGEST_NAME: usize = 64;

/// The checksum of some bytes that follow others with a checksum of their own.
fn checksum(before: u64, bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, before)
}

/// How many values make a chunk.
fn values_per_chunk(width: usize) -> usize {
    (CHUNK / width).max(1)
}

/// Why an archive could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk, or whatever is behind the stream.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It begins like no archive.
    #[error("it is no checkpoint of Glug")]
    Foreign,
    /// It was written by a later version.
    #[error(
        "it has format {found}, and this version of Glug knows formats up to {FORMAT}: a newer version wrote it"
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// It was written by an earlier version.
    #[error(
        "it has format {found}, and this version of Glug reads format {FORMAT} alone: an older version wrote it"
    )]
    Older {
        /// Its format.
        found: u32,
    },
    /// It ends too early.
    #[error("it ends in the middle of `{section}`: it was cut off")]
    Truncated {
        /// Where.
        section: String,
    },
    /// A checksum differs.
    #[error("its checksum is wrong in `{section}`: it is damaged")]
    Damaged {
        /// Where.
        section: String,
    },
    /// It is whole, but holds something else.
    #[error("`{section}` in it {reason}")]
    Invalid {
        /// Where.
        section: String,
        /// What is wrong there.
        reason: String,
    },
}

impl ArchiveError {
    /// A section that makes no sense.
    pub fn invalid(section: &str, reason: impl Into<String>) -> Self {
        ArchiveError::Invalid { section: section.to_owned(), reason: reason.into() }
    }

    /// [`Self::invalid`] unless something holds.
    pub fn unless(holds: bool, section: &str, reason: &str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::invalid(section, reason)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::begin(&mut bytes).expect("memory takes everything");
        let places: Vec<[f32; 3]> = (0..200_000).map(|i| [i as f32 * 0.25, f32::NAN, -1.0]).collect();
        out.array("places", &places).expect("memory takes everything");
        out.array::<u16>("nothing", &[]).expect("memory takes everything");
        out.value("words", &("a word".to_owned(), f64::INFINITY, 7u64)).expect("memory takes everything");
        out.finish().expect("memory takes everything");
        bytes
    }

    fn read(mut bytes: &[u8]) -> Result<(), ArchiveError> {
        let mut from = Reader::begin(&mut bytes)?;
        let places = from.array::<[f32; 3]>("places", 200_000)?;
        assert_eq!(places.len(), 200_000);
        assert!(
            places.iter().enumerate().all(|(i, x)| x[0] == i as f32 * 0.25 && x[1].is_nan() && x[2] == -1.0)
        );
        assert!(from.array::<u16>("nothing", 10)?.is_empty());
        let words: (String, f64, u64) = from.value("words")?;
        assert_eq!(words, ("a word".to_owned(), f64::INFINITY, 7));
        from.finish()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let bytes = sample();
        assert!(bytes.len() < 1 << 20, "{} bytes of 2.4 million are left", bytes.len());
        read(&bytes).expect("it is whole");
    }

    #[test]
    fn no_cut_goes_unnoticed() {
        let bytes = sample();
        for length in (0..bytes.len()).filter(|length| length % 97 == 0 || length + 200 > bytes.len()) {
            match read(&bytes[..length]) {
                Err(ArchiveError::Truncated { .. }) => {}
                Err(ArchiveError::Foreign) if length < MAGIC.len() => {}
                other => panic!("cut to {length} bytes: {other:?}"),
            }
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let bytes = sample();
        let places =
            (0..bytes.len()).filter(|place| place % 61 == 0 || *place < 80 || place + 200 > bytes.len());
        for place in places {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << (place % 8);
            assert!(read(&changed).is_err(), "bit {} of byte {place}", place % 8);
        }
    }

    #[test]
    fn other_formats_and_other_files_are_told_apart() {
        let mut newer = sample();
        newer[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        assert!(matches!(read(&newer), Err(ArchiveError::Newer { found }) if found == FORMAT + 1));
        let mut older = sample();
        older[8..12].copy_from_slice(&1u32.to_le_bytes());
        assert!(matches!(read(&older), Err(ArchiveError::Older { found: 1 })));
        let message = read(&older).map_err(|error| error.to_string()).expect_err("it is too old");
        assert!(message.contains("format 1,") && message.contains("older version"), "{message}");
        assert!(matches!(read(b"ply\nformat binary_little_endian 1.0\n"), Err(ArchiveError::Foreign)));
    }

    #[test]
    fn sections_of_another_name_width_or_length_are_refused() {
        let bytes = sample();
        let wrong = |read: &dyn Fn(&mut Reader<'_>) -> Result<(), ArchiveError>| {
            let mut from = bytes.as_slice();
            let mut from = Reader::begin(&mut from).expect("it is an archive");
            assert!(matches!(read(&mut from), Err(ArchiveError::Invalid { .. })));
        };
        wrong(&|from| from.array::<[f32; 3]>("names", usize::MAX).map(drop));
        wrong(&|from| from.array::<[f32; 2]>("places", usize::MAX).map(drop));
        wrong(&|from| from.array::<[f32; 3]>("places", 199_999).map(drop));
    }
}
