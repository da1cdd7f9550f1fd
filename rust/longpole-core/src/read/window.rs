//! The part of the uncompressed file that is looked at, through one reused buffer.
//!
//! gzip is told by its first bytes and inflated on the way. The window grows only while an
//! element does not fit it.

use std::io::{self, Read};

use super::gzip::Gunzip;
use super::source::{io_error, read_fully, read_some};
use crate::diagnostics::Diagnostics;
use crate::error::Result;

/// The window at the start: large enough that going on is rare, small enough
/// for the second cache of a core.
const WINDOW_BYTES: usize = 256 << 10;

/// An element of the file beyond this is skipped.
pub(super) const MAX_ELEMENT_BYTES: usize = 128 << 20;

/// The part of the uncompressed file that is looked at.
pub(super) struct Window<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The place of the buffer in the uncompressed file.
    offset: u64,
    ended: bool,
    /// How many bytes may still come.
    allowed: u64,
}

enum Source<'a> {
    Plain(Box<dyn Read + 'a>),
    Gzip(Box<Gunzip<'a>>),
}

impl<'a> Window<'a> {
    /// Looks at the first bytes of `source` and inflates it if they say so.
    pub(super) fn new(mut source: Box<dyn Read + 'a>, max_bytes: Option<u64>) -> Result<Self> {
        let mut magic = [0; 2];
        let n_magic = read_fully(&mut source, &mut magic).map_err(|error| io_error(&error, 0))?;
        let source: Box<dyn Read + 'a> =
            Box::new(io::Cursor::new(magic).take(n_magic as u64).chain(source));
        let source = if magic == [0x1f, 0x8b] {
            Source::Gzip(Box::new(Gunzip::new(source)))
        } else {
            Source::Plain(source)
        };
        let buffer = vec![0; WINDOW_BYTES];
        let allowed = max_bytes.unwrap_or(u64::MAX);
        Ok(Self { source, buffer, start: 0, end: 0, offset: 0, ended: false, allowed })
    }

    /// `gzip`, or none.
    pub(super) fn compression(&self) -> Option<&'static str> {
        matches!(self.source, Source::Gzip(_)).then_some("gzip")
    }

    /// What is at hand.
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The place of the first byte at hand in the uncompressed file.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.start as u64
    }

    /// Lets go of the first `count` bytes at hand.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    /// Brings more bytes to hand behind those that are there; false at the end
    /// of the file.
    pub(super) fn more(&mut self, diagnostics: &mut Diagnostics) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.make_room();
        let offset = self.offset + self.end as u64;
        let allowed = usize::try_from(self.allowed).unwrap_or(usize::MAX);
        let room = &mut self.buffer[self.end..];
        let room_length = room.len().min(allowed);
        let room = &mut room[..room_length];
        let count = match &mut self.source {
            Source::Plain(source) => {
                read_some(source, room).map_err(|error| io_error(&error, offset))?
            }
            Source::Gzip(source) => source.read(room, offset, diagnostics)?,
        };
        self.allowed -= count as u64;
        self.end += count;
        self.ended = count == 0;
        Ok(count > 0)
    }

    /// Whether the file ended only because no more bytes were allowed.
    pub(super) fn is_limited(&self) -> bool {
        self.allowed == 0
    }

    /// What is at hand moves to the front; where that is more than half of the
    /// buffer, the buffer grows.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.end * 2 > self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        } else if self.buffer.len() > WINDOW_BYTES && self.end * 4 < WINDOW_BYTES {
            self.buffer.truncate(WINDOW_BYTES);
            self.buffer.shrink_to_fit();
        }
    }

    /// What cut the compressed stream short, if anything did.
    pub(super) fn compression_fault(&self) -> Option<&'static str> {
        match &self.source {
            Source::Gzip(source) => source.fault(),
            Source::Plain(_) => None,
        }
    }
}
