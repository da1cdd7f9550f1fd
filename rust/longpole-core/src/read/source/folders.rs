//! Confines a process to folders, for requests from untrusted users.
//!
//! A path is resolved, compared with the folders, and then opened without following any link, so
//! that a link that replaces a file or folder meanwhile is rejected. Links from one file in the
//! folders to another can be followed. On Linux the kernel rejects links (`openat2`); on other
//! systems the folders of the path are opened one after the other.
//!
//! Limits: Windows has no such call, so a link created meanwhile is followed there.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, IoError, Result};

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

    /// Returns `None` if the system cannot reject links in all parts of a path.
    #[cfg(target_os = "linux")]
    fn at_once(path: &Path, flags: OFlags) -> Option<Result<OwnedFd>> {
        use rustix::fs::{CWD, ResolveFlags, openat2};
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

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use super::*;

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

    #[test]
    fn no_link_is_followed_when_a_resolved_path_is_opened() {
        let folder = layout("strictly").unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        for open in [strictly::open, strictly::part_by_part] {
            assert!(open(&folder.join("inside/file"), flags).is_ok());
            assert_eq!(open(&folder.join("inside/missing"), flags).err(), Some(Errno::NOENT));
            for link in ["to_file", "to_outside", "to_missing", "to_folder/file"] {
                let refused = open(&folder.join("inside").join(link), flags).err();
                let links = [Errno::ACCESS, Errno::LOOP, Errno::NOTDIR];
                assert!(refused.is_some_and(|error| links.contains(&error)), "{link}: {refused:?}");
            }
        }
    }
}
