//! Writing.

use std::io::Write;

use bytemuck::Pod;
use rayon::prelude::*;
use serde::Serialize;

use super::{
    ArchiveError, CHUNK, END, FORMAT, LONGEST_NAME, MAGIC, SECTION, checksum, planes, values_per_chunk,
};

/// Fast: a state is saved while its simulation waits.
const LEVEL: i32 = 1;

/// Chunks compressed side by side before they are written.
const AT_ONCE: usize = 32;

/// An archive on its way out.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    chain: u64,
}

impl<'a> Writer<'a> {
    /// Begins an archive.
    pub fn begin(out: &'a mut dyn Write) -> Result<Self, ArchiveError> {
        let mut writer = Writer { out, chain: 0 };
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&FORMAT.to_le_bytes());
        writer.put(&head)?;
        Ok(writer)
    }

    /// Writes bytes and their checksum.
    fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.chain = checksum(self.chain, bytes);
        self.out.write_all(bytes)?;
        self.out.write_all(&self.chain.to_le_bytes())?;
        Ok(())
    }

    /// Writes an array.
    pub fn array<T: Pod + Sync>(&mut self, name: &str, values: &[T]) -> Result<(), ArchiveError> {
        const { assert!(size_of::<T>() > 0 && size_of::<T>() <= CHUNK) };
        assert!(name.len() <= LONGEST_NAME, "the name of a section is short: {name}");
        let width = size_of::<T>();
        let mut head = vec![SECTION, name.len() as u8];
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(&(width as u32).to_le_bytes());
        head.extend_from_slice(&(values.len() as u64).to_le_bytes());
        self.put(&head)?;
        let per_chunk = values_per_chunk(width);
        for group in values.chunks(per_chunk * AT_ONCE) {
            let buffers = || (zstd::bulk::Compressor::new(LEVEL), Vec::new());
            let chunks = group.par_chunks(per_chunk).map_init(buffers, |(compressor, apart), values| {
                planes::split(bytemuck::cast_slice(values), width, apart);
                match compressor {
                    Ok(compressor) => compressor.compress(apart),
                    Err(error) => Err(std::io::Error::new(error.kind(), error.to_string())),
                }
            });
            for chunk in chunks.collect::<Result<Vec<_>, _>>()? {
                self.out.write_all(&(chunk.len() as u32).to_le_bytes())?;
                self.put(&chunk)?;
            }
        }
        Ok(())
    }

    /// Writes something small.
    pub fn value<T: Serialize>(&mut self, name: &str, value: &T) -> Result<(), ArchiveError> {
        let bytes = postcard::to_stdvec(value)
            .map_err(|error| ArchiveError::invalid(name, format!("could not be written: {error}")))?;
        self.array(name, &bytes)
    }

    /// Ends the archive.
    pub fn finish(mut self) -> Result<(), ArchiveError> {
        self.put(&[END])?;
        Ok(self.out.flush()?)
    }
}
