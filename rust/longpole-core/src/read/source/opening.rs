//! Opens files for reading. The core opens all input files here.
//!
//! A regular file is opened without blocking. A pipe or a terminal is opened only if the caller
//! named it. Devices and sockets are rejected, because they may never end, and so are the files of
//! the kernel, such as `/proc/kmsg`. Once the process is confined to folders (`folders`), only
//! regular files in them are opened.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use super::io_error;
use crate::error::{Error, ErrorKind, IoError, Result};

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
    open(path, flags).map_err(|error| io_error(&error, 0))
}

#[cfg(unix)]
fn opened(path: &Path, is_named: bool) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::io::IsTerminal;
    use std::os::unix::fs::FileTypeExt;

    let takes_pipes = is_named && !is_confined();
    if !is_confined() {
        refuse_kernel_file(rustix::fs::statfs(path))?; // opening some of them has an effect
    }
    // Opening a pipe blocks until the other program opens it for writing, which is intended for a
    // pipe that the caller named.
    let waits = takes_pipes && path.metadata().is_ok_and(|facts| facts.file_type().is_fifo());
    let wait = if waits { OFlags::empty() } else { OFlags::NONBLOCK };
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | wait)?;
    let kind = file.metadata()?.file_type();
    let is_accepted = kind.is_file() || (takes_pipes && (kind.is_fifo() || file.is_terminal()));
    if kind.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !is_accepted {
        return Err(refused(if kind.is_fifo() { "a pipe" } else { "a device" }));
    }
    refuse_kernel_file(rustix::fs::fstatfs(&file))?;
    if !waits {
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    }
    Ok(file)
}

/// Returns an error for a file of the operating system: it looks like a regular file, and reading it
/// may wait forever, or take what another program was to read. A path without such a description
/// fails when it is opened.
#[cfg(target_os = "linux")]
fn refuse_kernel_file(of: rustix::io::Result<rustix::fs::StatFs>) -> io::Result<()> {
    const KERNEL: [i64; 5] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
    ];
    #[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion)]
    // its width depends on the platform
    let kind = of.ok().and_then(|facts| i64::try_from(facts.f_type).ok());
    if kind.is_some_and(|kind| KERNEL.contains(&kind)) {
        return Err(refused("a file of the kernel"));
    }
    Ok(())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn refuse_kernel_file<T>(_: T) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn opened(path: &Path, _: bool) -> io::Result<File> {
    open(path)
}

/// Returns the error for a path that is not a regular file, with the error number of an unsupported
/// operation.
#[cfg(unix)]
fn refused(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("this is {what}, not a regular file"))
}

// Confines a process to folders, for requests from untrusted users.
//
// A path is resolved, compared with the folders, and then opened without following any link, so
// that a link that replaces a file or folder meanwhile is rejected. Links from one file in the
// folders to another can be followed. On Linux the kernel rejects links (`openat2`); on other
// systems the folders of the path are opened one after the other.
//
// Limits: Windows has no such call, so a link created meanwhile is followed there.

static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Confines this process: it can then only open files in these folders and below.
///
/// The folders must be given by their real paths. They are not resolved again, so that a link that
/// replaces one later has no effect.
///
/// # Errors
///
/// Returns an error if the process is already confined.
pub fn confine(folders: Vec<PathBuf>) -> Result<()> {
    FOLDERS.set(folders).map_err(|_| {
        let message = "the process is confined to folders already".to_owned();
        Error::new(ErrorKind::Io(IoError { number: None, message }), 0)
    })
}

/// Whether the process is confined to folders.
pub fn is_confined() -> bool {
    FOLDERS.get().is_some()
}

/// Opens a file or folder, within the folders if the process is confined.
#[cfg(unix)]
pub(super) fn open(path: &Path, flags: rustix::fs::OFlags) -> io::Result<File> {
    let opened = match FOLDERS.get() {
        Some(folders) => strictly::open(&within(path, folders)?, flags)?,
        None => rustix::fs::open(path, flags, rustix::fs::Mode::empty())?,
    };
    Ok(opened.into())
}

#[cfg(not(unix))]
pub(super) fn open(path: &Path) -> io::Result<File> {
    match FOLDERS.get() {
        Some(folders) => File::open(within(path, folders)?),
        None => File::open(path),
    }
}

/// Returns the resolved path, if it is in one of the folders.
///
/// A path that cannot be resolved is compared as it is. Opening it without following links then
/// reports why it cannot be opened, without revealing the target of a link to the outside.
fn within(path: &Path, folders: &[PathBuf]) -> io::Result<PathBuf> {
    let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let is_inside = folders.iter().any(|folder| path.starts_with(folder));
    if is_inside && !goes_up { Ok(path) } else { Err(outside()) }
}

/// Returns the error for paths outside the folders.
fn outside() -> io::Error {
    #[cfg(unix)]
    return rustix::io::Errno::ACCESS.into();
    #[cfg(not(unix))]
    return io::ErrorKind::PermissionDenied.into();
}

/// Opens absolute paths without following any link.
#[cfg(unix)]
mod strictly {
    use std::os::fd::OwnedFd;
    use std::path::{Component, Path};

    use rustix::fs::{Mode, OFlags, open as open_at_once, openat};
    use rustix::io::{Errno, Result};

    pub(super) fn open(path: &Path, flags: OFlags) -> Result<OwnedFd> {
        let opened = at_once(path, flags).unwrap_or_else(|| part_by_part(path, flags));
        opened.map_err(|error| if error == Errno::LOOP { Errno::ACCESS } else { error })
    }

    #[cfg(test)]
    thread_local! {
        /// Whether this thread opens as on a system that cannot reject links in all parts of a path.
        pub(in crate::read::source) static IS_PART_BY_PART: std::cell::Cell<bool> =
            const { std::cell::Cell::new(false) };
    }

    /// Returns `None` if the system cannot reject links in all parts of a path.
    #[cfg(target_os = "linux")]
    fn at_once(path: &Path, flags: OFlags) -> Option<Result<OwnedFd>> {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        #[cfg(test)]
        if IS_PART_BY_PART.get() {
            return None;
        }
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(CWD, path, flags, Mode::empty(), resolve) {
            // Kernels before 5.6, and containers that do not allow the call.
            Err(Errno::NOSYS | Errno::PERM) => None,
            opened => Some(opened),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn at_once(_: &Path, _: OFlags) -> Option<Result<OwnedFd>> {
        None
    }

    #[cfg(target_os = "linux")]
    const PASSED: OFlags = OFlags::PATH; // needs no permission to list the folder
    #[cfg(not(target_os = "linux"))]
    const PASSED: OFlags = OFlags::RDONLY;

    pub(super) fn part_by_part(path: &Path, flags: OFlags) -> Result<OwnedFd> {
        let folder = PASSED | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut passed = open_at_once("/", folder, Mode::empty())?;
        let mut parts = path.components().filter(|part| *part != Component::RootDir).peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(Errno::ACCESS) };
            let flags = if parts.peek().is_some() { folder } else { flags | OFlags::NOFOLLOW };
            passed = openat(&passed, name, flags, Mode::empty())?;
        }
        Ok(passed)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
    use rustix::io::Errno;

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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_kernel_is_refused() {
        for path in
            ["/proc/kmsg", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"]
        {
            if Path::new(path).exists() {
                let found = open_named(Path::new(path)).unwrap_err().to_string();
                assert!(found.starts_with("this is a file of the kernel"), "{path}: {found}");
            }
        }
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

    /// Creates a folder with `inside/file`, `outside/file`, and links from the first to both.
    fn layout(name: &str) -> io::Result<PathBuf> {
        let folder = std::env::temp_dir().join(format!("longpole-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        for place in ["inside", "outside"] {
            std::fs::create_dir_all(folder.join(place))?;
            File::create(folder.join(place).join("file"))?;
        }
        symlink("file", folder.join("inside/to_file"))?;
        symlink("../outside", folder.join("inside/to_folder"))?;
        symlink("../outside/file", folder.join("inside/to_outside"))?;
        symlink("../outside/missing", folder.join("inside/to_missing"))?;
        folder.canonicalize()
    }

    #[test]
    fn only_what_is_resolved_to_a_place_in_the_folders_is_inside() {
        let folder = layout("within").unwrap();
        let inside = [folder.join("inside")];
        let real = within(&folder.join("inside/to_file"), &inside).unwrap();
        assert_eq!(real, folder.join("inside/file"));
        for path in ["inside/to_folder/file", "inside/to_outside", "inside/../outside/file"] {
            let refused = within(&folder.join(path), &inside).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{path}");
        }
    }

    /// Runs checks with the call that rejects links at once, and with the one that does not have it.
    fn in_both_ways(check: impl Fn()) {
        for is_part_by_part in [false, true] {
            strictly::IS_PART_BY_PART.set(is_part_by_part);
            check();
        }
        strictly::IS_PART_BY_PART.set(false);
    }

    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

    const OF_LINKS: [Errno; 3] = [Errno::ACCESS, Errno::LOOP, Errno::NOTDIR];

    #[test]
    fn no_link_is_followed_when_a_resolved_path_is_opened() {
        let folder = layout("strictly").unwrap();
        in_both_ways(|| {
            assert!(strictly::open(&folder.join("inside/file"), FLAGS).is_ok());
            let missing = strictly::open(&folder.join("inside/missing"), FLAGS);
            assert_eq!(missing.err(), Some(Errno::NOENT));
            for link in ["to_file", "to_outside", "to_missing", "to_folder/file", "to_folder"] {
                let refused = strictly::open(&folder.join("inside").join(link), FLAGS).err();
                assert!(refused.is_some_and(|it| OF_LINKS.contains(&it)), "{link}: {refused:?}");
            }
        });
    }

    #[test]
    fn a_link_that_takes_the_place_of_a_folder_after_the_check_is_refused() {
        let folder = layout("swapped").unwrap();
        let (inside, secret) = (folder.join("inside"), folder.join("outside"));
        std::fs::create_dir(inside.join("deep")).unwrap();
        File::create(inside.join("deep/file")).unwrap();
        in_both_ways(|| {
            let resolved =
                within(&inside.join("deep/file"), std::slice::from_ref(&inside)).unwrap();
            assert!(strictly::open(&resolved, FLAGS).is_ok());
            for (place, target) in [("deep", &secret), ("deep/file", &secret.join("file"))] {
                std::fs::rename(inside.join(place), folder.join("away")).unwrap();
                symlink(target, inside.join(place)).unwrap();
                let refused = strictly::open(&resolved, FLAGS).err();
                std::fs::remove_file(inside.join(place)).unwrap();
                std::fs::rename(folder.join("away"), inside.join(place)).unwrap();
                assert!(refused.is_some_and(|it| OF_LINKS.contains(&it)), "{place}: {refused:?}");
            }
        });
    }

    #[test]
    fn a_path_that_goes_up_and_one_that_is_not_absolute_are_refused() {
        let folder = layout("up").unwrap();
        let up = folder.join("inside/../outside/file");
        assert_eq!(within(&up, &[folder.join("inside")]).unwrap_err().raw_os_error(), Some(13));
        let refused = strictly::part_by_part(&folder.join("inside/../outside/file"), FLAGS);
        assert_eq!(refused.err(), Some(Errno::ACCESS));
    }

    #[test]
    fn a_pipe_is_opened_without_waiting_for_a_writer() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = layout("pipe").unwrap();
        let pipe = folder.join("inside/pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        in_both_ways(|| assert!(strictly::open(&pipe, FLAGS).is_ok()));
    }

    #[test]
    fn a_folder_that_cannot_be_listed_can_be_passed_and_a_file_is_no_folder() {
        let folder = layout("passed").unwrap();
        in_both_ways(|| {
            let below_a_file = strictly::open(&folder.join("inside/file/x"), FLAGS).err();
            assert_eq!(below_a_file, Some(Errno::NOTDIR));
            let listed = strictly::open(&folder.join("inside"), FLAGS | OFlags::DIRECTORY);
            assert!(listed.is_ok());
        });
    }
}
