//! String interning: each string is stored once.
//!
//! A trace of a million events has a few hundred names. They are looked up by the bytes between the
//! quotes, *before* any unescaping, so that escapes, surrogates and invalid UTF-8 are handled once
//! for each distinct spelling. Two spellings of the same string still get the same handle.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use crate::ids::{InColumn, StringId};

/// A set of strings with handles, numbered in order of first use.
#[derive(Debug, Clone)]
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
        let (text, faults) = unescape(raw);
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

// Decodes the bytes between two quotes of a JSON document.

/// Longer strings are truncated, which is counted.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// Problems in the encoding or escapes of a string that could still be decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a finding of its own
pub struct SpellingFaults {
    /// Invalid UTF-8, replaced by U+FFFD.
    pub invalid_utf8: bool,
    /// Control characters that JSON requires to be escaped, kept.
    pub control_characters: bool,
    /// A backslash before an invalid escape, kept.
    pub unknown_escapes: bool,
    /// Half a surrogate pair, replaced by U+FFFD.
    pub lone_surrogates: bool,
    /// Longer than [`MAX_TEXT_BYTES`], truncated.
    pub cut: bool,
}

/// Returns the problems in the encoding and escapes of `raw`.
pub(crate) fn spelling_faults(raw: &[u8]) -> SpellingFaults {
    // Most strings that are not plain contain valid UTF-8 and nothing else.
    let is_sound = raw.len() <= MAX_TEXT_BYTES
        && !raw.iter().any(|&byte| byte < b' ' || byte == b'\\')
        && std::str::from_utf8(raw).is_ok();
    if is_sound {
        return SpellingFaults::default();
    }
    unescape(raw).1
}

/// Returns the string that `raw` spells.
pub(crate) fn spelled_text(raw: &[u8]) -> String {
    unescape(raw).0
}

/// Returns the string that `raw` spells, and the problems of the spelling.
fn unescape(raw: &[u8]) -> (String, SpellingFaults) {
    let mut faults = SpellingFaults::default();
    let mut rest = &raw[..raw.len().min(MAX_TEXT_BYTES)];
    if rest.len() < raw.len() {
        faults.cut = true;
        rest = trim_to_character(rest);
    }
    faults.control_characters = rest.iter().any(|&byte| byte < b' ');
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest) {
        push_bytes(&mut text, &rest[..at], &mut faults);
        rest = push_escape(&mut text, &rest[at..], &mut faults);
    }
    push_bytes(&mut text, rest, &mut faults);
    (text, faults)
}

/// Removes an incomplete character at the end, so that truncation does not split a character.
fn trim_to_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

fn push_bytes(text: &mut String, bytes: &[u8], faults: &mut SpellingFaults) {
    let valid = String::from_utf8_lossy(bytes);
    faults.invalid_utf8 |= matches!(valid, Cow::Owned(_));
    text.push_str(&valid);
}

/// Decodes the escape at the front of `rest`, which begins with a backslash.
fn push_escape<'a>(text: &mut String, rest: &'a [u8], faults: &mut SpellingFaults) -> &'a [u8] {
    let simple = match rest.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return push_unicode_escape(text, rest, faults),
        _ => {
            faults.unknown_escapes = true;
            text.push('\\');
            return &rest[1..];
        }
    };
    text.push(simple);
    &rest[2..]
}

fn push_unicode_escape<'a>(
    text: &mut String,
    rest: &'a [u8],
    faults: &mut SpellingFaults,
) -> &'a [u8] {
    let Some(first) = code_unit(rest) else {
        faults.unknown_escapes = true;
        text.push('\\');
        return &rest[1..];
    };
    if let Some(character) = char::from_u32(first) {
        text.push(character);
        return &rest[6..];
    }
    let second = code_unit(&rest[6..]).filter(|unit| (0xdc00..0xe000).contains(unit));
    if let (0xd800..0xdc00, Some(second)) = (first, second) {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return &rest[12..];
    }
    faults.lone_surrogates = true;
    text.push(char::REPLACEMENT_CHARACTER);
    &rest[6..]
}

/// Returns the number in `\uXXXX` at the front of `bytes`.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = bytes else { return None };
    digits
        .get(..4)?
        .iter()
        .try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
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

    fn faults(raw: &[u8]) -> (String, Vec<&'static str>) {
        let (text, faults) = unescape(raw);
        let all = [
            (faults.invalid_utf8, "utf8"),
            (faults.control_characters, "control"),
            (faults.unknown_escapes, "escape"),
            (faults.lone_surrogates, "surrogate"),
        ];
        (text, all.into_iter().filter_map(|(set, name)| set.then_some(name)).collect())
    }

    #[test]
    fn sound_escapes_are_taken_literally() {
        let raw = br#"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"#;
        assert_eq!(faults(raw), ("\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600}\0".into(), vec![]));
    }

    #[test]
    fn damage_is_kept_or_replaced_and_named() {
        let cases: [(&[u8], &str, &str); 7] = [
            (br"C:\cuda\_x", "C:\\cuda\\_x", "escape"),
            (br"\u12g4", "\\u12g4", "escape"),
            (br"a\ud800b", "a\u{fffd}b", "surrogate"),
            (br"\udc00\ud800", "\u{fffd}\u{fffd}", "surrogate"),
            (br"\ud800\u0041", "\u{fffd}A", "surrogate"),
            (b"caf\xe9", "caf\u{fffd}", "utf8"),
            (b"a\nb", "a\nb", "control"),
        ];
        for (raw, text, fault) in cases {
            assert_eq!(faults(raw), (text.into(), vec![fault]), "{raw:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let raw = "\u{e9}".repeat(MAX_TEXT_BYTES / 2 + 1);
        let raw = [b"a", raw.as_bytes()].concat();
        let (text, faults) = unescape(&raw);
        assert!(faults.cut && !faults.invalid_utf8);
        assert_eq!(text.len(), MAX_TEXT_BYTES - 1);
    }
}
