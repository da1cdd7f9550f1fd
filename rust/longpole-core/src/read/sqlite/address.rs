//! The address by which a database is opened as it stands: without locks, logs or journals.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// The files that hold changes which are not in the database yet.
const UNFINISHED: &[&str] = &["-wal", "-journal"];

/// Refuses a database beside which changes lie that are not in it.
pub(super) fn refuse_unfinished(path: &Path) -> Result<()> {
    let is_there = |ending: &&&str| beside(path, ending).metadata().is_ok_and(|it| it.len() > 0);
    match UNFINISHED.iter().find(is_there) {
        Some(ending) => Err(Error::new(ErrorKind::UnfinishedDatabase(ending), 0)),
        None => Ok(()),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The address of a database that nobody writes to.
pub(super) fn immutable(path: &Path) -> Result<String> {
    let bytes = bytes_of(path)?;
    let mut address = "file:".to_owned();
    if !bytes.starts_with(b"/") {
        address.push('/');
    }
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b':' => {
                address.push(char::from(byte));
            }
            _ => address.push_str(&format!("%{byte:02X}")),
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
