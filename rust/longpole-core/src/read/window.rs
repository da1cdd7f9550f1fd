//! The examined part of the uncompressed file, in one reused buffer.
//!
//! Compression is detected from the first bytes and decoded on the way. The window grows only if an
//! element does not fit.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};

use super::packed::{MAGIC_BYTES, Unpack, is_packed, unpack};
use super::source::{SharedFile, io_error, read_fully, read_some};
use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};

/// Initial size of the window: large enough that fetching is rare, small enough for the L2 cache of
/// a core.
const WINDOW_BYTES: usize = 256 << 10;

/// Longer elements of the file are skipped.
pub(super) const MAX_ELEMENT_BYTES: usize = 128 << 20;

/// The examined part of the uncompressed file.
pub(super) struct Window<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of the buffer in the uncompressed file.
    offset: u64,
    ended: bool,
    /// Number of bytes that may still be read.
    allowed: u64,
    /// Data read ahead of the window, which comes before the source continues.
    ahead: VecDeque<Ahead>,
}

/// The source of a window, outside the part that it has entered.
pub(super) enum Outside<'a> {
    /// A file with a maximum offset.
    Limit(u64),
    Window(Window<'a>),
}

/// Data read ahead of the window.
enum Ahead {
    /// Bytes, and the index of the first one still to be used.
    Bytes(Vec<u8>, usize),
    /// Problems of the compression at this position.
    Findings(Diagnostics),
    /// A read error at this position.
    Failure(Error),
    /// The end of the file.
    End,
}

enum Source<'a> {
    File(SharedFile),
    Plain(Box<dyn Read + 'a>),
    Packed(Box<dyn Unpack + 'a>),
}

impl<'a> Window<'a> {
    /// Creates a window on `source`, which is decompressed if its first bytes require it.
    pub(super) fn new(mut source: Box<dyn Read + 'a>, max_bytes: Option<u64>) -> Result<Self> {
        let mut magic = [0; MAGIC_BYTES];
        let n_magic = read_fully(&mut source, &mut magic).map_err(|error| io_error(&error, 0))?;
        let source: Box<dyn Read + 'a> =
            Box::new(io::Cursor::new(magic).take(n_magic as u64).chain(source));
        let source = unpack(&magic, source).map_or_else(Source::Plain, Source::Packed);
        Ok(Self::at_start(source, max_bytes))
    }

    /// Creates a window on a file. If the file is not compressed, several threads can read parts of
    /// it.
    pub(super) fn of_file(file: File, max_bytes: Option<u64>) -> Result<Self> {
        let mut magic = [0; MAGIC_BYTES];
        match SharedFile::of(file) {
            Ok(file) => match file.read_at(&mut magic, 0) {
                Ok(_) if is_packed(&magic) => Self::new(Box::new(file.into_reader()), max_bytes),
                Ok(_) => Ok(Self::at_start(Source::File(file), max_bytes)),
                Err(error) => Err(io_error(&error, 0)),
            },
            Err(file) => Self::new(Box::new(file), max_bytes),
        }
    }

    fn at_start(source: Source<'a>, max_bytes: Option<u64>) -> Self {
        let buffer = vec![0; WINDOW_BYTES];
        let allowed = max_bytes.unwrap_or(u64::MAX);
        let ahead = VecDeque::new();
        Self { source, buffer, start: 0, end: 0, offset: 0, ended: false, allowed, ahead }
    }

    /// Creates a window on the beginning of an uncompressed file.
    pub(super) fn on_file(file: SharedFile) -> Self {
        Self::at_start(Source::File(file), None)
    }

    /// Creates a window on the first `length` bytes of `buffer` only, which are at `offset` in the
    /// file.
    pub(super) fn on(buffer: Vec<u8>, length: usize, offset: u64) -> Self {
        let source = Source::Plain(Box::new(io::empty()));
        let ahead = VecDeque::new();
        Self { source, buffer, start: 0, end: length, offset, ended: true, allowed: 0, ahead }
    }

    /// Restricts the window to `length` bytes at `offset`, until it [leaves](Self::leave) them:
    /// those of its file or, without a file, the first ones of `bytes`.
    pub(super) fn enter(&mut self, bytes: Vec<u8>, length: usize, offset: u64) -> Outside<'a> {
        if !self.is_on_file() {
            let part = Window::on(bytes, length, offset);
            return Outside::Window(std::mem::replace(self, part));
        }
        let limit = self.limit();
        self.move_to(offset);
        self.allowed = length as u64;
        Outside::Limit(limit)
    }

    /// Returns to the source outside the part, and returns the bytes of the part.
    pub(super) fn leave(&mut self, outside: Outside<'a>) -> Vec<u8> {
        match outside {
            Outside::Window(outside) => std::mem::replace(self, outside).buffer,
            Outside::Limit(limit) => {
                self.allowed = limit - (self.offset + self.end as u64);
                self.ended = false;
                Vec::new()
            }
        }
    }

    /// Returns the file, if any part of it can be read at any time, and its end or maximum offset.
    pub(super) fn file(&self) -> Option<(SharedFile, u64)> {
        match &self.source {
            Source::File(file) => Some((file.clone(), self.limit())),
            Source::Plain(_) | Source::Packed(_) => None,
        }
    }

    /// Whether it is on an uncompressed file.
    pub(super) fn is_on_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// Returns the maximum offset in the file.
    fn limit(&self) -> u64 {
        self.allowed.saturating_add(self.offset + self.end as u64)
    }

    /// Moves to another offset of the [`file`](Self::file), with an empty window.
    pub(super) fn move_to(&mut self, offset: u64) {
        self.allowed = self.limit().saturating_sub(offset);
        (self.offset, self.start, self.end) = (offset, 0, 0);
        self.ended = false;
    }

    /// Returns the compression: `gzip`, `zstd`, `xz` or `None`.
    pub(super) fn compression(&self) -> Option<&'static str> {
        match &self.source {
            Source::Packed(source) => Some(source.name()),
            Source::Plain(_) | Source::File(_) => None,
        }
    }

    /// Returns the text in the window.
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the offset of the window in the uncompressed file.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.start as u64
    }

    /// Removes the first `count` bytes from the window.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    /// Appends more bytes to the window. Returns false at the end of the file.
    pub(super) fn more(&mut self, diagnostics: &mut Diagnostics) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.make_room();
        let count = self.read(diagnostics)?;
        self.end += count;
        self.ended = count == 0;
        Ok(count > 0)
    }

    /// Reads bytes after the window: those read ahead, then the source.
    fn read(&mut self, diagnostics: &mut Diagnostics) -> Result<usize> {
        loop {
            let room = &mut self.buffer[self.end..];
            match self.ahead.pop_front() {
                None => {
                    let offset = self.offset + self.end as u64;
                    return self.source.read(room, &mut self.allowed, offset, diagnostics);
                }
                Some(Ahead::Bytes(bytes, at)) => {
                    return Ok(copy_ahead(&mut self.ahead, bytes, at, room));
                }
                Some(Ahead::Findings(found)) => diagnostics.append(&found),
                Some(Ahead::Failure(error)) => return Err(error),
                Some(Ahead::End) => return Ok(0),
            }
        }
    }

    /// Moves the next bytes after the window into `room`. If there are fewer, the file ends after
    /// them, or there are diagnostics at that position.
    pub(super) fn take(&mut self, room: &mut [u8]) -> usize {
        let mut count = 0;
        while count < room.len() {
            match self.take_some(&mut room[count..]) {
                0 => break,
                taken => count += taken,
            }
        }
        count
    }

    fn take_some(&mut self, room: &mut [u8]) -> usize {
        let at_hand = room.len().min(self.text().len());
        if at_hand > 0 {
            room[..at_hand].copy_from_slice(&self.text()[..at_hand]);
            self.consume(at_hand);
            return at_hand;
        }
        self.offset = self.offset();
        (self.start, self.end) = (0, 0);
        let count = match self.ahead.pop_front() {
            Some(Ahead::Bytes(bytes, at)) => copy_ahead(&mut self.ahead, bytes, at, room),
            Some(other) => {
                self.ahead.push_front(other);
                0
            }
            None => self.read_ahead(room),
        };
        self.offset += count as u64;
        count
    }

    /// Reads the source into `room`. Anything but bytes is queued for the window.
    fn read_ahead(&mut self, room: &mut [u8]) -> usize {
        if self.ended {
            return 0;
        }
        let mut found = Diagnostics::default();
        let outcome = self.source.read(room, &mut self.allowed, self.offset, &mut found);
        let is_sound = found.is_empty();
        match outcome {
            Ok(count @ 1..) if is_sound => return count,
            Ok(count) => {
                self.ahead.push_back(Ahead::Findings(found));
                let next = match count {
                    0 => Ahead::End,
                    _ => Ahead::Bytes(room[..count].to_vec(), 0),
                };
                self.ahead.push_back(next);
            }
            Err(error) => {
                self.ahead.extend([Ahead::Findings(found), Ahead::Failure(error)]);
            }
        }
        0
    }

    /// Inserts bytes that were taken, before what comes next.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        self.offset = self.offset() - bytes.len() as u64;
        let at_hand = self.buffer[self.start..self.end].to_vec();
        (self.start, self.end) = (0, 0);
        for bytes in [at_hand, bytes] {
            if !bytes.is_empty() {
                self.ahead.push_front(Ahead::Bytes(bytes, 0));
            }
        }
        if std::mem::take(&mut self.ended) {
            self.ahead.push_back(Ahead::End);
        }
    }

    /// Moves bytes that were taken and inserted again into the window, up to an offset in the file.
    pub(super) fn bring_back(&mut self, end: u64) {
        let length = usize::try_from(end.saturating_sub(self.offset())).unwrap_or(0);
        if length <= self.text().len() {
            return;
        }
        let mut bytes = vec![0; length];
        let length = self.take(&mut bytes);
        self.offset -= length as u64;
        self.buffer.resize(self.buffer.len().max(length), 0);
        self.buffer[..length].copy_from_slice(&bytes[..length]);
        self.end = length;
    }

    /// Whether the file ended only because of the byte limit.
    pub(super) fn is_limited(&self) -> bool {
        self.allowed == 0
    }

    /// Moves the contents of the window to the front; if they fill more than half of the buffer,
    /// the buffer grows.
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

    /// Returns what truncated the compressed stream, if anything did.
    pub(super) fn compression_fault(&self) -> Option<ErrorKind> {
        match &self.source {
            Source::Packed(source) => {
                let by = source.name();
                source.fault().map(|fault| ErrorKind::Compression { by, fault })
            }
            Source::Plain(_) | Source::File(_) => None,
        }
    }
}

/// Copies bytes that were read ahead into `room`; the rest stays in front.
fn copy_ahead(ahead: &mut VecDeque<Ahead>, bytes: Vec<u8>, at: usize, room: &mut [u8]) -> usize {
    let count = room.len().min(bytes.len() - at);
    room[..count].copy_from_slice(&bytes[at..at + count]);
    if at + count < bytes.len() {
        ahead.push_front(Ahead::Bytes(bytes, at + count));
    }
    count
}

impl Source<'_> {
    /// Reads at most `allowed` bytes into `room`; returns 0 at the end.
    fn read(
        &mut self,
        room: &mut [u8],
        allowed: &mut u64,
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<usize> {
        let length = room.len().min(usize::try_from(*allowed).unwrap_or(usize::MAX));
        // Decompressing into an empty buffer would never end.
        if length == 0 {
            return Ok(0);
        }
        let room = &mut room[..length];
        let count = match self {
            Self::File(file) => {
                file.read_at(room, offset).map_err(|error| io_error(&error, offset))?
            }
            Self::Plain(source) => {
                read_some(source, room).map_err(|error| io_error(&error, offset))?
            }
            Self::Packed(source) => source.read(room, offset, diagnostics)?,
        };
        *allowed -= count as u64;
        Ok(count)
    }
}
