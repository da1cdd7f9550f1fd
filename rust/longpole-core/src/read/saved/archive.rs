//! Reads the members of a saved trace in order, and compares each with what it must be.

use bytemuck::Pod;
use crc32fast::Hasher;

use super::layout::{
    ARRAY_HEADER, DOCUMENT, MAX_DOCUMENT_BYTES, Member, array_header, damaged, directory,
    member_of, not_saved,
};
use crate::diagnostics::Diagnostics;
use crate::error::{Error, Result};
use crate::progress::{Progress, report};
use crate::read::window::Window;
use crate::tables::{ColumnMut, Packed, Values, of_shorts};

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
