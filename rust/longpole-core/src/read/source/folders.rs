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
