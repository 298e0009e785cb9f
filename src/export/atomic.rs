//! Files that are either whole or absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The hidden names of all unfinished files. Whoever holds it keeps files from taking their names and lines from
/// being added.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

pub(super) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process at once, whatever its threads are doing: removes unfinished files, calls `last`, and exits with
/// a code. Everything that bears its name is whole.
///
/// Exit handlers do not run: those of graphics drivers free what their own threads still draw and compile with. What is to
/// be read on standard output must have been flushed.
pub fn exit_cleanly(code: i32, last: impl FnOnce()) -> ! {
    let unfinished = unfinished();
    for partial in unfinished.iter() {
        // Best effort: nobody is left to tell.
        let _ = fs::remove_file(partial);
    }
    last();
    #[cfg(unix)]
    // SAFETY: it ends the process, and nothing else happens.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// Calls `handler` on Ctrl-C, a polite kill and a hang-up. A hang-up that is ignored from the start, as under `nohup`, stays ignored.
pub fn on_interrupt(handler: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    #[cfg(unix)]
    let is_kept = is_ignored(libc::SIGHUP);
    ctrlc::set_handler(handler)?;
    #[cfg(unix)]
    if is_kept {
        // SAFETY: it only says again what was so before.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(())
}

/// Whether Ctrl-C is ignored from the start, as in the background of a script.
pub fn ctrl_c_is_ignored() -> bool {
    #[cfg(unix)]
    return is_ignored(libc::SIGINT);
    #[cfg(not(unix))]
    false
}

#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: it only asks, into a place of its own, for which all zeros are a value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// A file that takes its name only at [`Self::commit`]; until then it grows under a hidden name beside it, and
/// dropping it removes that.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    partial: PathBuf,
    /// `None` once complete.
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file. An existing one of that name stays as it is until [`Self::commit`].
    pub fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let partial = target.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        let mut unfinished = unfinished();
        let file = Some(BufWriter::with_capacity(1 << 18, File::create(&partial)?));
        unfinished.push(partial.clone());
        Ok(AtomicFile { target: target.to_owned(), partial, file })
    }

    /// Gives the file its name, replacing an older one.
    pub fn commit(self) -> io::Result<()> {
        Self::commit_all(vec![self])
    }

    /// Gives the file its name once the disk has all of it: after a power cut, too, it is whole or absent.
    pub fn commit_synced(mut self) -> io::Result<()> {
        self.flush()?;
        if let Some(buffer) = &self.file {
            buffer.get_ref().sync_all()?;
        }
        let folder = self.target.parent().unwrap_or(Path::new("")).to_owned();
        self.commit()?;
        sync_folder(&folder)
    }

    /// Gives files their names once all of them are complete.
    pub fn commit_all(mut files: Vec<AtomicFile>) -> io::Result<()> {
        for file in &mut files {
            if let Some(buffer) = file.file.take() {
                buffer.into_inner().map_err(|error| error.into_error())?;
            }
        }
        let mut unfinished = unfinished();
        let named = files.iter().try_for_each(|file| {
            fs::rename(&file.partial, &file.target)?;
            unfinished.retain(|partial| *partial != file.partial);
            Ok(())
        });
        drop(unfinished); // Files take the list again when they are dropped.
        named
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
        let mut unfinished = unfinished();
        if let Some(index) = unfinished.iter().position(|partial| *partial == self.partial) {
            unfinished.swap_remove(index);
            // Nobody is left to tell; a stray hidden file does no harm.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Lets the disk have the names in a folder.
fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // Elsewhere folders cannot be opened, and names are safe without.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes unfinished files, of names that begin so, that processes left behind which are gone. Where one cannot tell,
/// they stay: they are hidden and do no harm.
pub fn remove_strays(folder: &Path, beginning: &str) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name
            .strip_prefix('.')
            .filter(|name| name.starts_with(beginning))
            .and_then(|name| name.rsplit_once(".partial-"))
            .and_then(|(_, process)| process.parse::<u32>().ok());
        if process.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            let _ = fs::remove_file(&path);
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
