//! Videos: pictures piped into ffmpeg.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Picture;
use super::atomic::unfinished;

/// An MP4 being written. It has its name only once it is whole.
#[derive(Debug)]
pub struct Video {
    encoder: Option<Child>,
    path: PathBuf,
    part: PathBuf,
}

impl Video {
    /// Starts the encoder for pictures of a size at a rate.
    pub fn create(path: &Path, [width, height]: [usize; 2], rate: f64) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = path.with_file_name(format!(".{name}.part.mp4"));
        let encoder = Command::new("ffmpeg")
            .args(["-hide_banner", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"])
            .args(["-s", &format!("{width}x{height}"), "-r", &rate.to_string(), "-i", "-", "-an"])
            .args(["-c:v", "libx264", "-preset", "medium", "-crf", "18", "-pix_fmt", "yuv420p"])
            .args(["-movflags", "+faststart"])
            .arg(&part)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::new(
                    error.kind(),
                    "ffmpeg is missing (on Debian `apt install ffmpeg`); a folder instead of an .mp4 gets pictures",
                ),
                _ => error,
            })?;
        unfinished().push(part.clone());
        Ok(Video { encoder: Some(encoder), path: path.to_owned(), part })
    }

    /// Adds a picture.
    pub fn add(&mut self, picture: &Picture) -> io::Result<()> {
        let pipe = self.encoder.as_mut().and_then(|encoder| encoder.stdin.as_mut());
        pipe.ok_or_else(|| io::Error::other("the encoder is closed"))?.write_all(&picture.rgb)
    }

    /// Ends the video and gives it its name.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(mut encoder) = self.encoder.take() else { return Ok(()) };
        drop(encoder.stdin.take());
        let status = encoder.wait()?;
        if !status.success() {
            let _ = std::fs::remove_file(&self.part);
            return Err(io::Error::other(format!("ffmpeg gave up ({status})")));
        }
        let mut unfinished = unfinished();
        std::fs::rename(&self.part, &self.path)?;
        unfinished.retain(|partial| *partial != self.part);
        Ok(())
    }
}

impl Drop for Video {
    /// A video that was not finished leaves nothing behind.
    fn drop(&mut self) {
        if let Some(mut encoder) = self.encoder.take() {
            let _ = encoder.kill();
            let _ = encoder.wait();
            let _ = std::fs::remove_file(&self.part);
        }
    }
}
