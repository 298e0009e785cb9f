//! Statistics as JSON Lines.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

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
