//! Reads the members of a saved trace in order, and compares each with what it must be.

use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, report};
use crate::read::window::Window;
use crate::tables::{ColumnMut, Packed, Values, of_shorts};
use bytemuck::Pod;
use crc32fast::Hasher;

/// Number of bytes of a column read between two progress reports.
const PART_BYTES: usize = 1 << 20;

/// The length of a member header before the name.
const FIXED: usize = 30;

/// The length of the extra field after the name of a member, with its sizes.
const EXTRA: usize = 20;

/// A saved trace, read from start to end.
pub(super) struct Archive<'a> {
    window: Window<'a>,
    members: Vec<Member>,
    /// Problems of a compression around the file.
    diagnostics: Diagnostics,
    checksum: Hasher,
    /// Number of bytes left in the current member.
    left: u64,
    /// Maximum number of rows in a column.
    max_rows: u64,
    progress: Progress<'a>,
}

impl<'a> Archive<'a> {
    pub(super) fn new(window: Window<'a>, progress: Progress<'a>) -> Self {
        Self {
            window,
            members: Vec::new(),
            diagnostics: Diagnostics::default(),
            checksum: Hasher::new(),
            left: 0,
            max_rows: u64::MAX,
            progress,
        }
    }

    /// Limits the number of rows of the columns that follow.
    pub(super) fn limit_rows(&mut self, max_rows: Option<u64>) {
        self.max_rows = max_rows.unwrap_or(u64::MAX);
    }

    /// Reads the document, which comes first.
    pub(super) fn document(&mut self) -> Result<Vec<u8>> {
        self.open(DOCUMENT)?;
        if self.left > MAX_DOCUMENT_BYTES {
            return Err(differs());
        }
        let (mut text, length) = (Vec::new(), self.left);
        self.fill(&mut text, length)?;
        self.close()?;
        Ok(text)
    }

    /// Fills columns of a table.
    pub(super) fn table(&mut self, name: &str, columns: Vec<(&str, ColumnMut<'_>)>) -> Result<()> {
        for (column, values) in columns {
            self.open(&member_of(name, column))?;
            let header = self.array_header()?;
            self.column(&header, values)?;
        }
        Ok(())
    }

    /// Reads the values of an argument, of the type in its member name.
    pub(super) fn values(&mut self, name: &str, column: &str) -> Result<Values> {
        self.open(&member_of(name, column))?;
        let header = self.array_header()?;
        let (mut shorts, mut integers, mut floats) = (Vec::new(), Packed::default(), Vec::new());
        let mut texts = Packed::default();
        Ok(match header.get(21..24) {
            Some(b"<i4") => {
                self.column(&header, ColumnMut::Shorts(&mut shorts))?;
                Values::Integers(of_shorts(&shorts))
            }
            Some(b"<i8") => {
                self.column(&header, ColumnMut::PackedIntegers(&mut integers))?;
                Values::Integers(integers)
            }
            Some(b"<f8") => {
                self.column(&header, ColumnMut::Floats(&mut floats))?;
                Values::of_floats(&floats)
            }
            Some(b"<u4") => {
                self.column(&header, ColumnMut::PackedRows(&mut texts))?;
                Values::Texts(texts)
            }
            _ => return Err(differs()),
        })
    }

    /// Reads the directory, which must match the members.
    pub(super) fn finish(mut self) -> Result<()> {
        let expected = directory(&self.members, self.window.offset());
        let mut found = vec![0; expected.len()];
        self.take(&mut found)?;
        let ends = self.window.text().is_empty() && !self.window.more(&mut self.diagnostics)?;
        if found != expected || !ends || self.diagnostics.is_recovered() {
            return Err(damaged("its end was changed"));
        }
        Ok(())
    }

    /// Opens the next member, which must have this name.
    fn open(&mut self, name: &str) -> Result<()> {
        let offset = self.window.offset();
        let mut header = vec![0; FIXED + name.len() + EXTRA];
        self.take(&mut header)?;
        let crc = u32::from_le_bytes(header[14..18].try_into().unwrap_or_default());
        let size = &header[header.len() - 8..];
        let size = u64::from_le_bytes(size.try_into().unwrap_or_default());
        let member = Member { name: name.to_owned(), crc, size, offset };
        if header != member.header() {
            return Err(damaged("a member has an unexpected name"));
        }
        self.left = size;
        self.checksum.reset();
        self.members.push(member);
        Ok(())
    }

    fn array_header(&mut self) -> Result<[u8; ARRAY_HEADER]> {
        let mut header = [0; ARRAY_HEADER];
        self.take_content(&mut header)?;
        Ok(header)
    }

    fn column(&mut self, header: &[u8; ARRAY_HEADER], column: ColumnMut<'_>) -> Result<()> {
        match column {
            ColumnMut::Bytes(values) => self.array(header, "|u1", values)?,
            ColumnMut::Rows(values) => self.array(header, "<u4", values)?,
            ColumnMut::Shorts(values) => self.array(header, "<i4", values)?,
            ColumnMut::Integers(values) => self.array(header, "<i8", values)?,
            ColumnMut::Counts(values) => self.array(header, "<u8", values)?,
            ColumnMut::Floats(values) => self.array(header, "<f8", values)?,
            ColumnMut::PackedRows(packed) => {
                let mut values: Vec<u32> = Vec::new();
                self.array(header, "<u4", &mut values)?;
                *packed = values.into_iter().collect();
            }
            ColumnMut::PackedIntegers(packed) => {
                let mut values: Vec<i64> = Vec::new();
                self.array(header, "<i8", &mut values)?;
                *packed = values.into_iter().collect();
            }
        }
        self.close()
    }

    fn array<T: Pod>(
        &mut self,
        header: &[u8; ARRAY_HEADER],
        data_type: &str,
        values: &mut Vec<T>,
    ) -> Result<()> {
        let length = self.left / size_of::<T>() as u64;
        if *header != array_header(data_type, length) {
            return Err(differs());
        }
        if length > self.max_rows {
            return Err(not_saved(
                "the saved trace has more events than max_events and cannot be truncated",
            ));
        }
        self.fill(values, length)
    }

    fn fill<T: Pod>(&mut self, values: &mut Vec<T>, length: u64) -> Result<()> {
        let length = usize::try_from(length).map_err(|_| differs())?;
        values.try_reserve_exact(length).map_err(|_| differs())?;
        while values.len() < length {
            let start = values.len();
            let end = length.min(start + PART_BYTES / size_of::<T>());
            values.resize(end, T::zeroed());
            self.take_content(bytemuck::cast_slice_mut(&mut values[start..]))?;
            report(self.progress, self.window.offset())?;
        }
        Ok(())
    }

    /// Closes the current member, which must be at its end and match its checksum.
    fn close(&mut self) -> Result<()> {
        let crc = self.members.last().map(|member| member.crc);
        if self.left > 0 || crc != Some(self.checksum.clone().finalize()) {
            return Err(damaged("the checksum of a member is wrong"));
        }
        Ok(())
    }

    fn take_content(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(differs)?;
        self.take(bytes)?;
        self.checksum.update(bytes);
        Ok(())
    }

    fn take(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            let count = self.window.text().len().min(bytes.len());
            if count == 0 && !self.window.more(&mut self.diagnostics)? {
                return Err(if self.window.is_limited() {
                    not_saved("the saved trace is larger than max_bytes and cannot be truncated")
                } else {
                    damaged("it ends too early")
                });
            }
            bytes[..count].copy_from_slice(&self.window.text()[..count]);
            self.window.consume(count);
            bytes = &mut bytes[count..];
        }
        Ok(())
    }
}

fn differs() -> Error {
    damaged("a column has the wrong type or length")
}

// The file layout of a saved trace: the headers of a zip archive, and those of `.npy` files.
//
// All sizes have 64 bits (zip64), so that every header has a single form. Timestamps are fixed, so
// that the same tables give the same bytes.

/// Maximum length of the document.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 1 << 26;

/// The first member, which describes the others.
pub(crate) const DOCUMENT: &str = "longpole.json";

/// The column of lanes, with the process, thread, device and stream of each.
pub(crate) const LANES: &str = "places";

/// The column of flow sources, with the category, name, process and thread of each.
pub(crate) const SOURCES: &str = "sources";

/// The length of an array header.
const ARRAY_HEADER: usize = 128;

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
