//! Statistics as JSON Lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Deserialize;

use crate::sim::FrameReport;

/// Appends one line per frame; a line reaches the file in one piece.
#[derive(Debug)]
pub struct StatsWriter {
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl StatsWriter {
    /// Starts an empty file, replacing an older one.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(StatsWriter { file: File::create(path)?, length: 0 })
    }

    /// Goes on with the file of a run that got to a frame at least: its whole lines up to that frame stay. Where there is
    /// no such file, starts an empty one.
    pub fn resume(path: &Path, frame: usize) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Line {
            frame: usize,
        }
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let (mut length, mut lines, mut line) = (0, BufReader::new(&file), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            let known = serde_json::from_slice::<Line>(&line).ok().filter(|_| line.ends_with(b"\n"));
            if known.is_none_or(|known| known.frame > frame) {
                break;
            }
            length += line.len() as u64;
            line.clear();
        }
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(StatsWriter { file, length })
    }

    /// Appends a frame.
    pub fn write(&mut self, report: &FrameReport) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        let _whole = super::atomic::unfinished();
        if let Err(error) = self.file.write_all(&line) {
            // A full disk may have taken a part of the line; the error to report is the first one.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }
}
