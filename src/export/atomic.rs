//! Files that are either whole or absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that takes its name only at [`Self::commit`]; until then it grows under a hidden name beside it, and
/// dropping it removes that.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    partial: PathBuf,
    /// `None` once committed.
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file. An existing one of that name stays as it is until [`Self::commit`].
    pub fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let partial = target.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        let file = Some(BufWriter::with_capacity(1 << 18, File::create(&partial)?));
        Ok(AtomicFile { target: target.to_owned(), partial, file })
    }

    /// Gives the file its name, replacing an older one.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            let renamed = file.into_inner().map_err(|error| error.into_error()).and_then(|file| {
                drop(file);
                fs::rename(&self.partial, &self.target)
            });
            if renamed.is_err() {
                // Best effort: the error that matters is the one returned.
                let _ = fs::remove_file(&self.partial);
            }
            renamed?;
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().expect("a file is written before it is committed").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("a file is written before it is committed").flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Nobody is left to tell; a stray hidden file does no harm.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Makes sure that a folder exists and takes files; creates it where it is missing.
pub fn probe_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::create_dir_all(folder)?;
    drop(AtomicFile::create(&folder.join("probe"))?);
    Ok(())
}
