//! Where the bytes come from: a path, bytes in memory or any reader.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind, IoError, Result};

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| io_error(&error, 0))
}

/// Reads until the buffer is full or the source ends.
pub(super) fn read_fully(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(source, &mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

pub(super) fn read_some(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub(super) fn io_error(error: &io::Error, offset: u64) -> Error {
    let error = IoError { number: error.raw_os_error(), message: error.to_string() };
    Error::new(ErrorKind::Io(error), offset)
}
