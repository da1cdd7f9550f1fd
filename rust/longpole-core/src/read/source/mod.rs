//! Sources of bytes: a path, bytes in memory or any reader.

mod opening;

#[cfg(unix)]
pub use opening::open_folder;
pub use opening::{confine, is_confined, open_named, open_regular};

use std::fs::File;
use std::io;
use std::io::Read;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, IoError};

/// A file that several threads can read at any offset, concurrently.
#[derive(Clone)]
pub(super) struct SharedFile(Arc<File>);

impl SharedFile {
    /// Creates a shared file, or returns the file if it is a pipe or a device.
    #[cfg(unix)]
    pub(super) fn of(file: File) -> std::result::Result<Self, File> {
        match file.metadata() {
            Ok(facts) if facts.is_file() => Ok(Self(Arc::new(file))),
            _ => Err(file),
        }
    }

    /// Returns the file: on this platform, threads cannot share it because they share its position.
    #[cfg(not(unix))]
    pub(super) fn of(file: File) -> std::result::Result<Self, File> {
        Err(file)
    }

    /// Returns a reader from the beginning of the file.
    pub(super) fn into_reader(self) -> impl Read {
        self.0
    }

    /// Reads at an offset until the buffer is full or the file ends.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_fully(&mut At { file: &self.0, offset }, buffer)
    }
}

/// A reader at an offset of a file.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for At<'_> {
    #[cfg(unix)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }

    #[cfg(not(unix))]
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
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
    let error = IoError { number: number(error), message: error.to_string() };
    Error::new(ErrorKind::Io(error), offset)
}

/// Returns the number of a system error, or of an error from `opening`.
fn number(error: &io::Error) -> Option<i32> {
    #[cfg(unix)]
    if error.kind() == io::ErrorKind::Unsupported {
        return Some(rustix::io::Errno::NOTSUP.raw_os_error());
    }
    error.raw_os_error()
}
