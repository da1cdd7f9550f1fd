//! String interning: each string is stored once.
//!
//! A trace of a million events has a few hundred names. They are looked up by the bytes between the
//! quotes, *before* any unescaping, so that escapes, surrogates and invalid UTF-8 are handled once
//! for each distinct spelling. Two spellings of the same string still get the same handle.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use crate::ids::{InColumn, StringId};

mod spelling;

pub use spelling::{MAX_TEXT_BYTES, SpellingFaults};
pub(crate) use spelling::{spelled_text, spelling_faults};

/// A set of strings with handles, numbered in order of first use.
#[derive(Debug)]
pub struct Strings {
    /// All strings, one after another.
    text: String,
    /// The end of each string in `text`.
    ends: Vec<usize>,
    /// Open addressing: handle plus one, zero if free. The length is a power of two.
    slots: Vec<u32>,
    /// The hash of each string, compared before the bytes.
    hashes: Vec<u64>,
    /// Spellings that differ from the string they represent, for example because of escapes.
    spelled: HashMap<Box<[u8]>, StringId>,
    /// Random seed, against traces crafted to collide.
    seed: u64,
    /// Whether a column contains a value that depends on earlier parts of the file, so that columns
    /// of parts of the file cannot be joined.
    pub(crate) is_order_bound: bool,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            text: String::new(),
            ends: Vec::new(),
            slots: vec![0; 1024],
            hashes: Vec::new(),
            spelled: HashMap::new(),
            seed: RandomState::new().hash_one(0_u8) | 1,
            is_order_bound: false,
        }
    }
}

impl Strings {
    /// Returns the handle of `text`.
    pub fn intern(&mut self, text: &str) -> StringId {
        let hash = hash(text.as_bytes(), self.seed);
        if let Some(id) = self.find(text.as_bytes(), hash) {
            return id;
        }
        self.insert(text, hash)
    }

    /// Returns the handle of a JSON string without escapes: `raw` is plain printable ASCII.
    pub(crate) fn intern_plain(&mut self, raw: &[u8]) -> StringId {
        let hash = hash(raw, self.seed);
        if let Some(id) = self.find(raw, hash) {
            return id;
        }
        self.insert(&String::from_utf8_lossy(raw), hash)
    }

    /// Returns the handle of a JSON string with any content; `raw` are the bytes between its
    /// quotes.
    pub(crate) fn intern_spelled(&mut self, raw: &[u8]) -> StringId {
        if is_literal(raw) {
            return self.intern_plain(raw);
        }
        if let Some(&id) = self.spelled.get(raw) {
            return id;
        }
        let (text, faults) = spelling::unescape(raw);
        let id = self.intern(&text);
        // A spelling that was truncated is not stored as a key, because it may be as long as the
        // file.
        if !faults.cut {
            self.spelled.insert(raw.into(), id);
        }
        id
    }

    /// Returns all strings, one after another, and the end of each.
    pub(crate) fn parts(&self) -> (&str, &[usize]) {
        (&self.text, &self.ends)
    }

    /// Creates the set from the strings that end in `text` at `ends`; `None` if these are invalid
    /// or a string occurs twice.
    pub(crate) fn of_parts(text: &str, ends: &[u64]) -> Option<Self> {
        let mut strings = Self::default();
        strings.text.reserve(text.len());
        let mut start = 0;
        for (row, &end) in ends.iter().enumerate() {
            let end = usize::try_from(end).ok()?;
            let id = strings.intern(text.get(start..end)?);
            if id.row() != row {
                return None;
            }
            start = end;
        }
        (start == text.len()).then_some(strings)
    }

    /// Returns the string of a handle.
    pub fn get(&self, id: StringId) -> &str {
        &self.text[self.range(id.row())]
    }

    /// Returns the bytes of the string of a handle.
    #[inline]
    pub(crate) fn bytes(&self, id: StringId) -> &[u8] {
        &self.text.as_bytes()[self.range(id.row())]
    }

    fn range(&self, row: usize) -> Range<usize> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        start..self.ends[row]
    }

    /// Returns the handle of a known string.
    pub fn lookup(&self, text: &str) -> Option<StringId> {
        self.find(text.as_bytes(), hash(text.as_bytes(), self.seed))
    }

    /// Returns the number of distinct strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all strings, in handle order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|row| self.get(StringId::from_row(row)))
    }

    /// For each handle, returns the result of `test` for its string; called once per string.
    pub fn matching(&self, test: impl Fn(&str) -> bool) -> Vec<bool> {
        self.iter().map(test).collect()
    }

    /// Makes the set shareable. Nothing can be added afterwards.
    pub fn freeze(self) -> Arc<Self> {
        Arc::new(self)
    }

    fn find(&self, text: &[u8], hash: u64) -> Option<StringId> {
        let mask = self.slots.len() - 1;
        let mut slot = low_bits(hash) & mask;
        loop {
            let row = (self.slots[slot] as usize).checked_sub(1)?;
            let id = StringId::from_row(row);
            if self.hashes[row] == hash && &self.text.as_bytes()[self.range(row)] == text {
                return Some(id);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn insert(&mut self, text: &str, hash: u64) -> StringId {
        if (self.ends.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let id = StringId::from_row(self.ends.len());
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.hashes.push(hash);
        self.place(id, hash);
        id
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for row in 0..self.ends.len() {
            self.place(StringId::from_row(row), self.hashes[row]);
        }
    }

    fn place(&mut self, id: StringId, hash: u64) {
        let mask = self.slots.len() - 1;
        let mut slot = low_bits(hash) & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = Some(id).in_column() + 1;
    }
}

/// Whether the bytes between two JSON quotes are the string itself.
fn is_literal(raw: &[u8]) -> bool {
    raw.len() <= MAX_TEXT_BYTES && raw.is_ascii() && !raw.contains(&b'\\')
}

/// Returns the low half of a hash as an index; the complete hash if `usize` has 32 bits.
fn low_bits(hash: u64) -> usize {
    (hash & 0xffff_ffff) as usize
}

/// Hashes a text by multiplying and folding, eight bytes at a time, with a seed for each table (the
/// construction of wyhash and foldhash; not safe against attackers who can observe handles).
pub(crate) fn hash(text: &[u8], seed: u64) -> u64 {
    let mut state = seed ^ (text.len() as u64);
    let mut chunks = text.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        state = fold(state ^ word);
    }
    let mut tail = [0; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    fold(fold(state ^ u64::from_le_bytes(tail)))
}

#[allow(clippy::cast_possible_truncation)] // taking the two halves is the point
fn fold(value: u64) -> u64 {
    let product = u128::from(value) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_handle_however_it_is_spelled() {
        let mut strings = Strings::default();
        let plain = strings.intern_plain(b"a/b");
        assert_eq!(strings.intern_spelled(br"a\/b"), plain);
        assert_eq!(strings.intern_spelled(br"\u0061\u002fb"), plain);
        assert_eq!((strings.len(), strings.get(plain)), (1, "a/b"));
    }

    #[test]
    fn handles_count_up_in_order_of_first_use() {
        let mut strings = Strings::default();
        let rows: Vec<_> = (0..5000)
            .map(|number| strings.intern(&format!("kernel_{}", number % 3000)).row())
            .collect();
        assert_eq!(rows, (0..3000).chain(0..2000).collect::<Vec<_>>());
        assert_eq!(strings.lookup("kernel_17").map(StringId::row), Some(17));
        assert_eq!(strings.lookup("kernel_3000"), None);
    }
}
