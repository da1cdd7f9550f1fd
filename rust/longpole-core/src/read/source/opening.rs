//! Opens files for reading. The core opens all input files here.
//!
//! A regular file is opened without blocking. A pipe or a terminal is opened only if the caller
//! named it. Devices and sockets are rejected, because they may never end. Once the process is
//! confined to folders (`folders`), only regular files in them are opened.

use std::fs::File;
use std::io;
use std::path::Path;

use super::folders;
use super::io_error;
use crate::error::Result;

/// Opens a file that the caller named: a regular file, a pipe or a terminal.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, is a directory, a device or a socket, or is
/// outside the folders to which the process is confined.
pub fn open_named(path: &Path) -> Result<File> {
    opened(path, true).map_err(|error| io_error(&error, 0))
}

/// Opens a file that was found next to another one. Only regular files are accepted.
///
/// # Errors
///
/// As for [`open_named`], and if the file is a pipe or a terminal.
pub fn open_regular(path: &Path) -> Result<File> {
    opened(path, false).map_err(|error| io_error(&error, 0))
}

/// Opens a folder for listing.
///
/// # Errors
///
/// Returns an error if the folder cannot be opened, or is outside the folders to which the process
/// is confined.
#[cfg(unix)]
pub fn open_folder(path: &Path) -> Result<File> {
    use rustix::fs::OFlags;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    folders::open(path, flags).map_err(|error| io_error(&error, 0))
}

#[cfg(unix)]
fn opened(path: &Path, is_named: bool) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::io::IsTerminal;
    use std::os::unix::fs::FileTypeExt;

    let takes_pipes = is_named && !folders::is_confined();
    // Opening a pipe blocks until the other program opens it for writing, which is intended for a
    // pipe that the caller named.
    let waits = takes_pipes && path.metadata().is_ok_and(|facts| facts.file_type().is_fifo());
    let wait = if waits { OFlags::empty() } else { OFlags::NONBLOCK };
    let file = folders::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | wait)?;
    let kind = file.metadata()?.file_type();
    let is_accepted = kind.is_file() || (takes_pipes && (kind.is_fifo() || file.is_terminal()));
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !is_accepted {
        return Err(refused(if kind.is_fifo() { "a pipe" } else { "a device" }));
    }
    if !waits {
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn opened(path: &Path, _: bool) -> io::Result<File> {
    folders::open(path)
}

/// Returns the error for a path that is not a regular file, with the error number of an unsupported
/// operation.
#[cfg(unix)]
fn refused(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this is {what}, not a regular file"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn a_pipe_next_to_a_file_and_a_device_are_refused_without_waiting() {
        let pipe = std::env::temp_dir().join(format!("longpole-fifo-{}", std::process::id()));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let found = open_regular(&pipe).unwrap_err().to_string();
        std::fs::remove_file(&pipe).unwrap();
        assert!(found.starts_with("this is a pipe, not a regular file"), "{found}");
        let found = open_named(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(found.starts_with("this is a device, not a regular file"), "{found}");
    }

    #[test]
    fn a_pipe_that_was_named_is_read() {
        use std::io::{Read, Write};
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"[]").unwrap();
        drop(writer);
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let mut text = String::new();
        let mut file = open_named(Path::new(&format!("/dev/fd/{number}"))).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "[]");
    }
}
