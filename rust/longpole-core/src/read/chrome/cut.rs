//! Divides the event list into parts, cut before what looks like the start of an event.
//!
//! For a file that any thread can read, only the text around the cuts is read here, and the reader
//! of a part fetches its bytes. For other sources, the bytes are taken from the window.

use memchr::memmem::FinderRev;

use super::part::{Piece, Rows};
use crate::read::json::is_whitespace;
use crate::read::source::SharedFile;
use crate::read::window::Window;

/// Maximum length of text searched for the start of an event.
const MAX_BEGINNING: usize = 256;

/// Number of bytes searched for a cut first, at the end of a part.
const TAIL_BYTES: usize = 4 << 10;

/// Returns the text between two events: the end of one, the indent, and the start of the next up to
/// its first key.
pub(super) fn separator(text: &[u8], indent: &[u8]) -> Option<Vec<u8>> {
    let head = &text[..text.len().min(MAX_BEGINNING)];
    let blank = head.get(1..)?.iter().take_while(|&&byte| is_whitespace(byte)).count();
    let key = head.get(1 + blank..)?.strip_prefix(b"\"")?;
    let length = 1 + blank + 1 + memchr::memchr(b'"', key)? + 1;
    Some([b"},", indent, &head[..length]].concat())
}

/// Divides the text that follows into parts that start with an event.
pub(super) struct Cutter {
    separator: FinderRev<'static>,
    part_bytes: usize,
    /// The file, if any thread can read it, and its end.
    file: Option<(SharedFile, u64)>,
    /// The offset of the first byte after the last cut.
    pub(super) offset: u64,
    /// Bytes read after the last cut and, for a file, before it.
    rest: Vec<u8>,
    /// Buffers and tables for reuse.
    spare: Vec<(Vec<u8>, Rows)>,
    /// Whether a part was already cut.
    is_behind_first: bool,
    is_ended: bool,
}

impl Cutter {
    /// Starts cutting at the front of the window.
    pub(super) fn new(separator: &[u8], part_bytes: usize, window: &Window<'_>) -> Self {
        Self {
            separator: FinderRev::new(separator).into_owned(),
            part_bytes,
            file: window.file(),
            offset: window.offset(),
            rest: Vec::new(),
            spare: Vec::new(),
            is_behind_first: false,
            is_ended: false,
        }
    }

    /// Returns the next part; `None` if the file ends, or no event start is found.
    pub(super) fn next(&mut self, window: &mut Window<'_>) -> Option<Piece> {
        if self.is_ended {
            return None;
        }
        let (mut bytes, rows) = self.spare.pop().unwrap_or_default();
        let length = match self.file.clone() {
            Some((file, end)) => self.find_cut(&file, end),
            None => self.cut_off(&mut bytes, window),
        };
        self.is_ended |= length.is_none();
        let offset = self.offset;
        self.offset += length? as u64;
        let is_indent_taken = !std::mem::replace(&mut self.is_behind_first, true);
        Some(Piece { bytes, length: length?, offset, is_indent_taken, rows })
    }

    /// Returns the length of the next part of a file, found by reading as little as possible.
    fn find_cut(&mut self, file: &SharedFile, end: u64) -> Option<usize> {
        let left = usize::try_from(end - self.offset).unwrap_or(usize::MAX);
        let length = self.part_bytes.min(left);
        let tail = length.saturating_sub(TAIL_BYTES);
        let starts = [tail, 0];
        // If there is no cut in the tail, the whole part is searched.
        starts.into_iter().find_map(|start| {
            self.rest.resize(length - start, 0);
            let filled = file.read_at(&mut self.rest, self.offset + start as u64).ok()?;
            self.is_ended = start + filled < self.part_bytes;
            let cut = self.separator.rfind(&self.rest[..filled])?;
            // After the comma.
            Some(start + cut + 2)
        })
    }

    /// Cuts the next part from the text in the window.
    fn cut_off(&mut self, bytes: &mut Vec<u8>, window: &mut Window<'_>) -> Option<usize> {
        let length = self.rest.len() + self.part_bytes;
        bytes.resize(length, 0);
        bytes[..self.rest.len()].copy_from_slice(&self.rest);
        let filled = self.rest.len() + window.take(&mut bytes[self.rest.len()..]);
        self.is_ended = filled < length;
        let cut = self.separator.rfind(&bytes[..filled]);
        let cut = cut.map_or(0, |at| at + 2);
        self.rest.clear();
        self.rest.extend_from_slice(&bytes[cut..filled]);
        (cut > 0).then_some(cut)
    }

    /// Accepts the buffer and tables of a part for reuse.
    pub(super) fn take_back(&mut self, bytes: Vec<u8>, rows: Rows) {
        self.spare.push((bytes, rows));
    }

    /// Returns the parts that were not joined, and the text after them, to the window.
    pub(super) fn put_back(
        self,
        left: impl DoubleEndedIterator<Item = Piece>,
        window: &mut Window<'_>,
    ) {
        let mut left = left;
        if self.file.is_some() {
            let offset = left.next().map_or(self.offset, |piece| piece.offset);
            if offset != window.offset() {
                window.move_to(offset);
            }
            return;
        }
        window.put_back(self.rest);
        for piece in left.rev() {
            let mut bytes = piece.bytes;
            bytes.truncate(piece.length);
            window.put_back(bytes);
        }
    }
}
