//! The elements of a JSON document, one after the other at the front of a window.
//!
//! Every reader of a JSON format tries to scan an element, takes it or skips it, and counts
//! what was wrong with it. An element that the window cuts through is scanned again in a
//! longer window, so that the result does not depend on where windows end.

use crate::diagnostics::{Code, Diagnostic, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, report};

use super::json::{Scan, Scanner, Span, Stop, significant};
use super::window::{MAX_ELEMENT_BYTES, Window};

/// What became of an element.
pub(super) enum Outcome<T> {
    /// It is whole, and ends at this place of the window.
    Whole(T, usize),
    /// It is damaged at this place of the window.
    Fault(Code, usize),
    /// It is longer than an element may be.
    TooLarge,
    /// The file ends inside it.
    Cut,
}

/// A document at the element that is read next, and what was found on the way there.
pub(super) struct Elements<'a> {
    pub(super) window: Window<'a>,
    pub(super) diagnostics: Diagnostics,
    /// What the scanner noted in the element at hand, by place in the window.
    pub(super) findings: Vec<(Code, usize)>,
    progress: Progress<'a>,
    strict: bool,
}

impl<'a> Elements<'a> {
    /// `diagnostics` says what was found wrong with the bytes that are in the window already.
    pub(super) fn new(
        window: Window<'a>,
        diagnostics: Diagnostics,
        progress: Progress<'a>,
        strict: bool,
    ) -> Self {
        Self { window, diagnostics, findings: Vec::new(), progress, strict }
    }

    /// Tries to read something at the front of the window, in a longer and longer one until
    /// it ends.
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

    /// Tries to read a value of any kind; gives its text.
    pub(super) fn attempt_value(&mut self) -> Result<Outcome<Span>> {
        self.attempt(|scanner| {
            scanner.peek_significant()?;
            let start = scanner.at;
            scanner.value()?;
            Ok(Span::new(start, scanner.at))
        })
    }

    /// What was read up to `end` is taken: its findings count.
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

    /// The next byte that is no white space, left at the front of the window.
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

    /// How much white space is at the front of the window.
    pub(super) fn blank_length(&self) -> usize {
        let text = self.window.text();
        text.len() - significant(text).len()
    }

    /// Takes the byte order mark at the front of the file, if there is one.
    pub(super) fn skip_byte_order_mark(&mut self) -> Result<()> {
        if !self.window.text().starts_with(b"\xef\xbb\xbf") {
            return Ok(());
        }
        self.window.consume(3);
        self.note(Code::ByteOrderMark, 0)
    }

    /// Says how far reading has come; the caller may not want to go on.
    pub(super) fn report(&self, offset: u64) -> Result<()> {
        report(self.progress, offset)
    }

    /// Brings more bytes to hand; false at the end of the file.
    pub(super) fn more(&mut self) -> Result<bool> {
        self.report(self.window.offset())?;
        let came = self.window.more(&mut self.diagnostics)?;
        if self.strict {
            // The window notes what is wrong with the compression by itself.
            let refused = self.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
            if let Some(row) = refused {
                return Err(Error::new(ErrorKind::Strict(row.code), row.first_offset));
            }
        }
        Ok(came)
    }

    /// Goes to the end of the file, where gzip has its checksum.
    pub(super) fn drain(&mut self) -> Result<()> {
        loop {
            let length = self.window.text().len();
            self.window.consume(length);
            if !self.more()? {
                return Ok(());
            }
        }
    }

    /// The file ends too early, which is `code` unless a limit was asked for.
    pub(super) fn cut_as(&mut self, code: Code) -> Result<()> {
        self.drain()?;
        let code = if self.window.is_limited() { Code::LimitReached } else { code };
        self.note_here(code)
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
