//! Reading.

use std::io::{self, Read};

use bytemuck::Pod;
use serde::de::DeserializeOwned;

use super::{
    ArchiveError, CHUNK, END, FORMAT, LONGEST_NAME, MAGIC, SECTION, checksum, planes, values_per_chunk,
};

/// The largest value that is not an array, in bytes.
const LARGEST_VALUE: usize = 1 << 30;

/// An archive on its way in.
pub struct Reader<'a> {
    from: &'a mut dyn Read,
    chain: u64,
    /// The section that is being read, for messages.
    section: String,
}

impl<'a> Reader<'a> {
    /// Begins to read an archive.
    pub fn begin(from: &'a mut dyn Read) -> Result<Self, ArchiveError> {
        let mut reader = Reader { from, chain: 0, section: "head".to_owned() };
        let mut magic = [0; MAGIC.len()];
        match reader.get(&mut magic) {
            Err(ArchiveError::Truncated { .. }) => return Err(ArchiveError::Foreign),
            other => other?,
        }
        if magic != MAGIC {
            return Err(ArchiveError::Foreign);
        }
        let format: [u8; 4] = reader.bytes()?;
        // What comes behind the number of another format is not for us to say.
        match u32::from_le_bytes(format) {
            FORMAT => {}
            0 => return Err(ArchiveError::invalid("head", "names a format that never was")),
            found if found < FORMAT => return Err(ArchiveError::Older { found }),
            found => return Err(ArchiveError::Newer { found }),
        }
        reader.check(&[&magic[..], &format].concat())?;
        Ok(reader)
    }

    fn get(&mut self, bytes: &mut [u8]) -> Result<(), ArchiveError> {
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ArchiveError::Truncated { section: self.section.clone() },
            _ => ArchiveError::Io(error),
        })
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ArchiveError> {
        let mut bytes = [0; N];
        self.get(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the checksum of bytes, and compares.
    fn check(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.chain = checksum(self.chain, bytes);
        match u64::from_le_bytes(self.bytes()?) == self.chain {
            true => Ok(()),
            false => Err(ArchiveError::Damaged { section: self.section.clone() }),
        }
    }

    /// The array of that name, which must be next, with `most` values at most.
    pub fn array<T: Pod>(&mut self, name: &str, most: usize) -> Result<Vec<T>, ArchiveError> {
        let width = size_of::<T>();
        self.section = name.to_owned();
        let count = self.head(name, width)?;
        if count > most as u64 {
            return Err(ArchiveError::invalid(
                name,
                format!("has {count} values, but at most {most} make sense"),
            ));
        }
        // Room is made as bytes arrive, so that a number alone cannot ask for memory.
        let (mut values, mut left) = (Vec::new(), count as usize);
        let mut decompressor = zstd::bulk::Decompressor::new()?;
        let (mut packed, mut apart) = (Vec::new(), Vec::new());
        while left > 0 {
            let here = left.min(values_per_chunk(width));
            self.chunk(&mut packed)?;
            apart.clear();
            apart.reserve(here * width);
            let found = decompressor.decompress_to_buffer(&packed, &mut apart);
            if found.ok() != Some(here * width) {
                return Err(ArchiveError::Damaged { section: self.section.clone() });
            }
            let start = values.len();
            values.resize(start + here, T::zeroed());
            planes::join(&apart, width, bytemuck::cast_slice_mut(&mut values[start..]));
            left -= here;
        }
        Ok(values)
    }

    /// Exactly `count` values.
    pub fn array_of<T: Pod>(&mut self, name: &str, count: usize) -> Result<Vec<T>, ArchiveError> {
        let values = self.array(name, count)?;
        match values.len() {
            found if found == count => Ok(values),
            found => Err(ArchiveError::invalid(name, format!("has {found} values, but {count} are needed"))),
        }
    }

    /// The head of a section: how many values it has.
    fn head(&mut self, name: &str, width: usize) -> Result<u64, ArchiveError> {
        let [kind] = self.bytes()?;
        if kind == END {
            self.check(&[END])?;
            return Err(ArchiveError::invalid(name, "is missing"));
        }
        let [length] = self.bytes()?;
        if kind != SECTION || length as usize > LONGEST_NAME {
            return Err(ArchiveError::Damaged { section: self.section.clone() });
        }
        let mut head = vec![0; 2 + length as usize + 12];
        (head[0], head[1]) = (kind, length);
        self.get(&mut head[2..])?;
        self.check(&head)?;
        let (found, numbers) = head[2..].split_at(length as usize);
        if found != name.as_bytes() {
            let found = String::from_utf8_lossy(found);
            return Err(ArchiveError::invalid(name, format!("is missing: there is `{found}` instead")));
        }
        let (own, count) = numbers.split_at(4);
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        if number(own) != width as u64 {
            return Err(ArchiveError::invalid(
                name,
                format!("has values of {} bytes, not {width}", number(own)),
            ));
        }
        Ok(number(count))
    }

    /// The bytes of a chunk as they are stored.
    fn chunk(&mut self, packed: &mut Vec<u8>) -> Result<(), ArchiveError> {
        let length = u32::from_le_bytes(self.bytes()?) as usize;
        if length > zstd::zstd_safe::compress_bound(CHUNK) {
            return Err(ArchiveError::Damaged { section: self.section.clone() });
        }
        packed.clear();
        packed.resize(length, 0);
        self.get(packed)?;
        self.check(packed)
    }

    /// The value of that name, which must be next.
    pub fn value<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ArchiveError> {
        let bytes = self.array::<u8>(name, LARGEST_VALUE)?;
        postcard::from_bytes(&bytes)
            .map_err(|error| ArchiveError::invalid(name, format!("cannot be understood: {error}")))
    }

    /// Makes sure that the archive ends here.
    pub fn finish(mut self) -> Result<(), ArchiveError> {
        self.section = "end".to_owned();
        match self.bytes()? {
            [END] => self.check(&[END]),
            _ => Err(ArchiveError::invalid("end", "is missing: there is more")),
        }
    }
}
