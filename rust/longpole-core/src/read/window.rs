//! The part of the uncompressed file that is looked at, through one reused buffer.
//!
//! Compression is told by the first bytes and undone on the way. The window grows only while an
//! element does not fit it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};

use super::packed::{MAGIC_BYTES, Unpack, is_packed, unpack};
use super::source::{SharedFile, io_error, read_fully, read_some};
use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};

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
    /// What was read ahead of the window, which comes before the source goes on.
    ahead: VecDeque<Ahead>,
}

/// What a window is on beside the part that it entered.
pub(super) enum Outside<'a> {
    /// A file that bytes are allowed of up to a place.
    Limit(u64),
    Window(Window<'a>),
}

/// What was read ahead of the window.
enum Ahead {
    /// Bytes, of which those from the place on are still to come.
    Bytes(Vec<u8>, usize),
    /// What was found wrong with the compression there.
    Findings(Diagnostics),
    /// The source could not be read there.
    Failure(Error),
    /// The file ended there.
    End,
}

enum Source<'a> {
    File(SharedFile),
    Plain(Box<dyn Read + 'a>),
    Packed(Box<dyn Unpack + 'a>),
}

impl<'a> Window<'a> {
    /// Looks at the first bytes of `source` and inflates it if they say so.
    pub(super) fn new(mut source: Box<dyn Read + 'a>, max_bytes: Option<u64>) -> Result<Self> {
        let mut magic = [0; MAGIC_BYTES];
        let n_magic = read_fully(&mut source, &mut magic).map_err(|error| io_error(&error, 0))?;
        let source: Box<dyn Read + 'a> =
            Box::new(io::Cursor::new(magic).take(n_magic as u64).chain(source));
        let source = unpack(&magic, source).map_or_else(Source::Plain, Source::Packed);
        Ok(Self::at_start(source, max_bytes))
    }

    /// A window on a file, of which several threads can read parts if it is not compressed.
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

    /// A window on the beginning of a file that is not compressed.
    pub(super) fn on_file(file: SharedFile) -> Self {
        Self::at_start(Source::File(file), None)
    }

    /// A window on the first `length` bytes of `buffer`, which are all there is and stand at
    /// `offset` of the file.
    pub(super) fn on(buffer: Vec<u8>, length: usize, offset: u64) -> Self {
        let source = Source::Plain(Box::new(io::empty()));
        let ahead = VecDeque::new();
        Self { source, buffer, start: 0, end: length, offset, ended: true, allowed: 0, ahead }
    }

    /// Has only `length` bytes at `offset` before it, until it [leaves](Self::leave) them: those
    /// of the file that it is on, or else the first ones of `bytes`.
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

    /// Goes on with what is outside; gives the bytes back that it was on.
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

    /// The file, where any part of it can be read at any time, and its end as far as bytes are
    /// allowed.
    pub(super) fn file(&self) -> Option<(SharedFile, u64)> {
        match &self.source {
            Source::File(file) => Some((file.clone(), self.limit())),
            Source::Plain(_) | Source::Packed(_) => None,
        }
    }

    /// Whether it is on a file, as it stands.
    pub(super) fn is_on_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// The place of the first byte of the file that is not allowed.
    fn limit(&self) -> u64 {
        self.allowed.saturating_add(self.offset + self.end as u64)
    }

    /// Goes to another place of the [`file`](Self::file), with nothing at hand.
    pub(super) fn move_to(&mut self, offset: u64) {
        self.allowed = self.limit().saturating_sub(offset);
        (self.offset, self.start, self.end) = (offset, 0, 0);
        self.ended = false;
    }

    /// `gzip`, `zstd`, `xz` or none.
    pub(super) fn compression(&self) -> Option<&'static str> {
        match &self.source {
            Source::Packed(source) => Some(source.name()),
            Source::Plain(_) | Source::File(_) => None,
        }
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
        let count = self.read(diagnostics)?;
        self.end += count;
        self.ended = count == 0;
        Ok(count > 0)
    }

    /// Reads behind what is at hand: what was read ahead, then the source.
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

    /// Moves the bytes that come next into `room`, past the window. Where they are fewer than
    /// it takes, the file ends behind them, or something has to be said there first.
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

    /// Reads the source into `room`; what is no byte is left for the window to come to.
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

    /// Puts bytes back that were taken, before what comes next.
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

    /// Has bytes at hand again, up to a place in the file, which were at hand before they were
    /// taken and put back.
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

/// Copies bytes that were read ahead into `room`; what does not fit stays in front.
fn copy_ahead(ahead: &mut VecDeque<Ahead>, bytes: Vec<u8>, at: usize, room: &mut [u8]) -> usize {
    let count = room.len().min(bytes.len() - at);
    room[..count].copy_from_slice(&bytes[at..at + count]);
    if at + count < bytes.len() {
        ahead.push_front(Ahead::Bytes(bytes, at + count));
    }
    count
}

impl Source<'_> {
    /// Reads what is `allowed` into `room`; 0 at the end.
    fn read(
        &mut self,
        room: &mut [u8],
        allowed: &mut u64,
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<usize> {
        let length = room.len().min(usize::try_from(*allowed).unwrap_or(usize::MAX));
        // Inflating into no room would never come to an end.
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
