//! The file layout of a saved trace: the headers of a zip archive, and those of `.npy` files.
//!
//! All sizes have 64 bits (zip64), so that every header has a single form. Timestamps are fixed, so
//! that the same tables give the same bytes.

use crate::error::{Error, ErrorKind};

/// Maximum length of the document.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 1 << 26;

/// The first member, which describes the others.
pub(crate) const DOCUMENT: &str = "longpole.json";

/// The column of lanes, with the process, thread, device and stream of each.
pub(crate) const LANES: &str = "places";

/// The column of flow sources, with the category, name, process and thread of each.
pub(crate) const SOURCES: &str = "sources";

/// The length of an array header.
pub(crate) const ARRAY_HEADER: usize = 128;

/// Returns the name of the member with a column.
pub(crate) fn member_of(table: &str, column: &str) -> String {
    format!("{table}/{column}.npy")
}

/// A member of the archive.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Its name, in ASCII.
    pub(crate) name: String,
    /// The CRC-32 of its content.
    pub(crate) crc: u32,
    /// The size of its content in bytes.
    pub(crate) size: u64,
    /// Its offset in the file.
    pub(crate) offset: u64,
}

/// Version 4.5 (zip64), no flags, not compressed, with the earliest zip timestamp.
const FACTS: [u8; 10] = [45, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
const IN_EXTRA: [u8; 4] = [0xff; 4];

impl Member {
    /// Returns the bytes before the content.
    pub(crate) fn header(&self) -> Vec<u8> {
        let extra = [&[1, 0, 16, 0][..], &self.size.to_le_bytes(), &self.size.to_le_bytes()];
        let lengths = [self.name_length(), [20, 0]];
        let head = [b"PK\x03\x04", &FACTS[..], &self.crc.to_le_bytes(), &IN_EXTRA, &IN_EXTRA];
        [head.concat(), lengths.concat(), self.name.as_bytes().to_vec(), extra.concat()].concat()
    }

    /// Returns the entry in the directory.
    fn entry(&self) -> Vec<u8> {
        let (size, offset) = (self.size.to_le_bytes(), self.offset.to_le_bytes());
        let extra = [&[1, 0, 24, 0][..], &size, &size, &offset];
        let facts = [&[45, 3][..], &FACTS, &self.crc.to_le_bytes(), &IN_EXTRA, &IN_EXTRA];
        // No comment, on the first disk, a binary file with read permission for all.
        let rest = [&self.name_length()[..], &[28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa4, 0x81]];
        [
            b"PK\x01\x02".to_vec(),
            facts.concat(),
            rest.concat(),
            IN_EXTRA.to_vec(),
            self.name.as_bytes().to_vec(),
            extra.concat(),
        ]
        .concat()
    }

    #[allow(clippy::cast_possible_truncation)] // names are those of tables and columns
    fn name_length(&self) -> [u8; 2] {
        (self.name.len() as u16).to_le_bytes()
    }
}

/// Returns the bytes after the last member, which ends at `offset`.
pub(crate) fn directory(members: &[Member], offset: u64) -> Vec<u8> {
    let mut directory: Vec<_> = members.iter().flat_map(Member::entry).collect();
    let (count, size) = ((members.len() as u64).to_le_bytes(), directory.len() as u64);
    let end = (offset + size).to_le_bytes();
    let sizes = [&count[..], &count, &size.to_le_bytes(), &offset.to_le_bytes()];
    let zip64 =
        [b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\x03\x2d\0\0\0\0\0\0\0\0\0", &sizes.concat()[..]];
    let locator = [b"PK\x06\x07\0\0\0\0", &end[..], &[1, 0, 0, 0]];
    directory.extend(zip64.concat());
    directory.extend(locator.concat());
    directory.extend(b"PK\x05\x06\0\0\0\0");
    directory.extend([0xff; 12]);
    directory.extend([0, 0]);
    directory
}

/// Returns the header of an array in a `.npy` file (version 1.0).
pub(crate) fn array_header(data_type: &str, length: u64) -> [u8; ARRAY_HEADER] {
    let facts =
        format!("{{'descr': '{data_type}', 'fortran_order': False, 'shape': ({length},), }}");
    let mut header = [b' '; ARRAY_HEADER];
    header[..10].copy_from_slice(b"\x93NUMPY\x01\x00\x76\x00");
    header[10..10 + facts.len()].copy_from_slice(facts.as_bytes());
    header[ARRAY_HEADER - 1] = b'\n';
    header
}

/// Returns the error for a file that was changed after writing.
pub(super) fn damaged(what: &'static str) -> Error {
    Error::new(ErrorKind::DamagedSave(what), 0)
}

/// Returns the error for a file whose contents differ from what was saved.
pub(super) fn not_saved(what: &str) -> Error {
    Error::new(ErrorKind::NotSaved(what.to_owned()), 0)
}

/// The bytes of values are written as they are in memory.
const _: () = assert!(cfg!(target_endian = "little"), "saved traces are little-endian");
