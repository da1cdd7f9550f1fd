//! The URI that opens a database as it is, without locks, logs or journals.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::read::source;

/// The suffixes of files with changes that are not in the database yet.
const UNFINISHED: &[&str] = &["-wal", "-journal"];

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Rejects a database with unapplied changes in a file next to it.
pub(super) fn refuse_unfinished(path: &Path) -> Result<()> {
    let is_there = |ending: &&&str| beside(path, ending).metadata().is_ok_and(|it| it.len() > 0);
    match UNFINISHED.iter().find(is_there) {
        Some(ending) => Err(Error::new(ErrorKind::UnfinishedDatabase(ending), 0)),
        None => Ok(()),
    }
}

/// Whether the last writer of a database used a write-ahead log.
pub(super) fn has_log(path: &Path) -> bool {
    const VERSIONS: usize = 18;
    const WITH_LOG: u8 = 2;
    let mut header = [0; VERSIONS + 2];
    let is_read = source::open_regular(path).is_ok_and(|mut it| it.read_exact(&mut header).is_ok());
    is_read && header[VERSIONS..].contains(&WITH_LOG)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Returns the URI of a database that no other process writes.
pub(super) fn immutable(path: &Path) -> Result<String> {
    let bytes = bytes_of(path)?;
    let mut address = "file:".to_owned();
    if !bytes.starts_with(b"/") {
        address.push('/');
    }
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/.-_~:".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push('%');
            address
                .extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
        }
    }
    address.push_str("?immutable=1");
    Ok(address)
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // elsewhere a path may have no address
fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    Ok(path.as_os_str().as_bytes().to_vec())
}

#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let text = path.to_str().map(|text| text.trim_start_matches(r"\\?\").replace('\\', "/"));
    let no_address = || ErrorKind::Database("its path is not Unicode".to_owned());
    text.map(String::into_bytes).ok_or_else(|| Error::new(no_address(), 0))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_an_address_is_escaped() {
        let address = immutable(Path::new("/a b/c?mode=rw#d%41.sqlite")).unwrap();
        assert_eq!(address, "file:/a%20b/c%3Fmode%3Drw%23d%2541.sqlite?immutable=1");
    }
}
