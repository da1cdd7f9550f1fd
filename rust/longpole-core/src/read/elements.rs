//! The elements of a JSON document, one after the other at the front of a window.
//!
//! Every reader of a JSON format tries to scan an element, accepts or skips it, and counts its
//! problems. An element that exceeds the window is scanned again in a longer window, so that the
//! result does not depend on window boundaries.

use crate::diagnostics::{Code, Diagnostic, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, report};

use super::json::{Scan, Scanner, Span, Stop, significant};
use super::window::{MAX_ELEMENT_BYTES, Window};

/// The result of scanning an element.
pub(super) enum Outcome<T> {
    /// It is complete, and ends at this position of the window.
    Whole(T, usize),
    /// It is damaged at this position of the window.
    Fault(Code, usize),
    /// It exceeds the maximum length.
    TooLarge,
    /// The file ends inside it.
    Cut,
}

/// A document, positioned at the next element, and the diagnostics so far.
pub(super) struct Elements<'a> {
    pub(super) window: Window<'a>,
    pub(super) diagnostics: Diagnostics,
    /// The scanner's findings about the current element, by position in the window.
    pub(super) findings: Vec<(Code, usize)>,
    progress: Progress<'a>,
    strict: bool,
}

impl<'a> Elements<'a> {
    /// Starts at the front of the window. `diagnostics` contains the problems of bytes already in
    /// the window.
    pub(super) fn new(
        window: Window<'a>,
        diagnostics: Diagnostics,
        progress: Progress<'a>,
        strict: bool,
    ) -> Self {
        Self { window, diagnostics, findings: Vec::new(), progress, strict }
    }

    /// Tries to read something at the front of the window, in longer and longer windows until it
    /// ends.
    pub(super) fn attempt<T>(
        &mut self,
        mut read: impl FnMut(&mut Scanner<'_>) -> Scan<T>,
    ) -> Result<Outcome<T>> {
        loop {
            self.findings.clear();
            let mut scanner = Scanner::new(self.window.text(), 0, &mut self.findings);
            match read(&mut scanner) {
                Ok(_) if scanner.at > MAX_ELEMENT_BYTES => return Ok(Outcome::TooLarge),
                Ok(value) => return Ok(Outcome::Whole(value, scanner.at)),
                Err(Stop::Fault) => return Ok(Outcome::Fault(scanner.fault.0, scanner.fault.1)),
                Err(Stop::NeedMore) if self.window.text().len() > MAX_ELEMENT_BYTES => {
                    return Ok(Outcome::TooLarge);
                }
                Err(Stop::NeedMore) => {}
            }
            if !self.more()? {
                return Ok(Outcome::Cut);
            }
        }
    }

    /// Tries to read a key and its colon.
    pub(super) fn attempt_key(&mut self) -> Result<Outcome<Span>> {
        self.attempt(|scanner| {
            let key = scanner.quoted()?;
            scanner.expect(b':')?;
            Ok(key)
        })
    }

    /// Tries to read a value of any type. Returns its span.
    pub(super) fn attempt_value(&mut self) -> Result<Outcome<Span>> {
        self.attempt(|scanner| {
            scanner.peek_significant()?;
            let start = scanner.at;
            scanner.value()?;
            Ok(Span::new(start, scanner.at))
        })
    }

    /// Consumes the text up to `end` and keeps the findings about it.
    pub(super) fn accept(&mut self, end: usize) -> Result<()> {
        let offset = self.window.offset();
        self.window.consume(end);
        if self.findings.is_empty() {
            return Ok(());
        }
        for (code, at) in std::mem::take(&mut self.findings) {
            self.note(code, offset + at as u64)?;
        }
        Ok(())
    }

    /// Moves the window to the next byte that is not white space and returns that byte.
    pub(super) fn next_significant(&mut self) -> Result<Option<u8>> {
        loop {
            let blank = self.blank_length();
            let next = self.window.text().get(blank).copied();
            self.window.consume(blank);
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    /// Returns the amount of white space at the front of the window.
    pub(super) fn blank_length(&self) -> usize {
        let text = self.window.text();
        text.len() - significant(text).len()
    }

    /// Skips the byte order mark at the start of the file, if there is one.
    pub(super) fn skip_byte_order_mark(&mut self) -> Result<()> {
        if !self.window.text().starts_with(b"\xef\xbb\xbf") {
            return Ok(());
        }
        self.window.consume(3);
        self.note(Code::ByteOrderMark, 0)
    }

    /// Reports progress; the caller may ask to stop.
    pub(super) fn report(&self, offset: u64) -> Result<()> {
        report(self.progress, offset)
    }

    /// Fetches more bytes. Returns false at the end of the file.
    pub(super) fn more(&mut self) -> Result<bool> {
        self.report(self.window.offset())?;
        let came = self.window.more(&mut self.diagnostics)?;
        if self.strict {
            // The window reports problems of the compression itself.
            let refused = self.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
            if let Some(row) = refused {
                return Err(Error::new(ErrorKind::Strict(row.code), row.first_offset));
            }
        }
        Ok(came)
    }

    /// Reads to the end of the file, where gzip has its checksum.
    pub(super) fn drain(&mut self) -> Result<()> {
        loop {
            let length = self.window.text().len();
            self.window.consume(length);
            if !self.more()? {
                return Ok(());
            }
        }
    }

    /// Reports that the file ends too early as `code`, unless a byte limit was requested.
    pub(super) fn cut_as(&mut self, code: Code) -> Result<()> {
        self.cut_before(code, 0)
    }

    /// The same for a file of which a length says that it has `end` bytes or more.
    pub(super) fn cut_before(&mut self, code: Code, end: u64) -> Result<()> {
        self.drain()?;
        let offset = self.window.offset();
        if self.window.is_limited() {
            return self.note(Code::LimitReached, offset);
        }
        self.note_skipped(code, offset, end.saturating_sub(offset))
    }

    pub(super) fn note_here(&mut self, code: Code) -> Result<()> {
        self.note(code, self.window.offset())
    }

    pub(super) fn note(&mut self, code: Code, offset: u64) -> Result<()> {
        self.note_skipped(code, offset, 0)
    }

    pub(super) fn note_skipped(&mut self, code: Code, offset: u64, bytes: u64) -> Result<()> {
        self.note_row(Diagnostic { code, count: 1, first_offset: offset, skipped_bytes: bytes })
    }

    pub(super) fn note_row(&mut self, row: Diagnostic) -> Result<()> {
        if self.strict && row.code.is_refused_by_strict() {
            return Err(Error::new(ErrorKind::Strict(row.code), row.first_offset));
        }
        self.diagnostics.add_row(row);
        Ok(())
    }
}
