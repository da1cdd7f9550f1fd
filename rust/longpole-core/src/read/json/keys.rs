//! Object keys as small numbers, recognized without being scanned.
//!
//! A writer puts the same text between two values every time: comma, line break, indent, key,
//! colon. The text that followed a key last time is therefore compared with the file first, as one
//! run of bytes, and the text is scanned only if they differ. Most of the reader's speed comes from
//! this. It does not change the result, because a gap is remembered only after it was scanned
//! completely.

use std::collections::HashMap;

use super::scan::{Scan, Scanner};
use crate::diagnostics::Code;
use crate::strings::spelled_text;

/// A key, numbered in order of first use after the given keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) struct Key(u16);

impl Key {
    /// The position before the first member.
    pub(in crate::read) const START: Self = Self(0);
    /// The end of the object.
    pub(in crate::read) const END: Self = Self(1);
    /// A key beyond the maximum number; it is not remembered.
    pub(in crate::read) const BEYOND: Self = Self(2);
    const FIRST: usize = 3;

    /// Returns the key at `row` of the list from which [`Keys`] was made, or a later one.
    pub(in crate::read) const fn at(row: u16) -> Self {
        Self(row + 3)
    }

    /// Returns the row in the list, for actual keys.
    pub(in crate::read) fn row(self) -> Option<usize> {
        usize::from(self.0).checked_sub(Self::FIRST)
    }
}

/// Maximum number of distinct keys, because a file may contain a new one in every event.
const MAX_KEYS: usize = 4096;

/// Longer gaps are scanned every time.
const MAX_GAP_BYTES: usize = 8 * GAP_WORDS;
const GAP_WORDS: usize = 8;

/// Number of gaps remembered after each key.
const WAYS: usize = 2;

/// The text between two values, in words of eight bytes; a mask covers the bytes after its end in
/// the last word.
#[derive(Clone, Copy)]
struct Gap {
    words: [u64; GAP_WORDS],
    last: usize,
    mask: u64,
    length: usize,
    next: Key,
}

/// The keys of one type of object.
pub(in crate::read) struct Keys {
    names: Vec<String>,
    by_spelling: HashMap<Box<[u8]>, Key>,
    gaps: Vec<[Gap; WAYS]>,
}

impl Keys {
    /// Creates the keys from a list of names.
    pub(in crate::read) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut keys = Self { names: Vec::new(), by_spelling: HashMap::new(), gaps: Vec::new() };
        keys.gaps.resize(Key::FIRST, [Gap::NONE; WAYS]);
        for name in names {
            keys.intern(name.as_bytes());
        }
        keys
    }

    /// Returns the name of a key. Names of keys beyond the maximum are not stored.
    pub(in crate::read) fn name(&self, row: usize) -> &str {
        &self.names[row]
    }

    /// Returns the number of distinct keys.
    pub(in crate::read) fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the maximum number of keys is reached.
    pub(in crate::read) fn is_full(&self) -> bool {
        self.names.len() >= MAX_KEYS
    }

    /// Whether there is room for `n_new` more keys.
    pub(in crate::read) fn has_room(&self, n_new: usize) -> bool {
        self.names.len() + n_new <= MAX_KEYS
    }

    /// Returns the row of the key with this name, which is added if it is new.
    pub(in crate::read) fn row(&mut self, name: &str) -> Option<usize> {
        self.intern(name.as_bytes()).row()
    }

    /// Returns the key with this spelling, if it is stored.
    pub(in crate::read) fn find(&self, spelling: &[u8]) -> Option<Key> {
        self.by_spelling.get(spelling).copied()
    }

    /// Moves the scanner from after the value of `previous` to the value of the next key, or after
    /// the end of the object.
    #[inline]
    pub(in crate::read) fn next(&mut self, scanner: &mut Scanner<'_>, previous: Key) -> Scan<Key> {
        // Near the end of the window, the fast comparison is not possible.
        if let Some(text) = scanner.text.get(scanner.at..).and_then(|text| text.first_chunk()) {
            for gap in &self.gaps[usize::from(previous.0)] {
                if gap.stands_at(text) {
                    scanner.at += gap.length;
                    return Ok(gap.next);
                }
            }
        }
        self.scan_gap(scanner, previous)
    }

    #[cold]
    fn scan_gap(&mut self, scanner: &mut Scanner<'_>, previous: Key) -> Scan<Key> {
        let (start, n_findings) = (scanner.at, scanner.findings.len());
        let next = self.scan_key(scanner, previous)?;
        if scanner.findings.len() == n_findings && previous != Key::BEYOND && next != Key::BEYOND {
            self.remember(previous, next, &scanner.text[start..scanner.at]);
        }
        Ok(next)
    }

    fn scan_key(&mut self, scanner: &mut Scanner<'_>, previous: Key) -> Scan<Key> {
        let mut comma = None;
        if previous != Key::START && scanner.peek_significant()? != b'}' {
            comma = Some(scanner.at);
            scanner.expect(b',')?;
        }
        match scanner.peek_significant()? {
            b'}' => {
                scanner.findings.extend(comma.map(|at| (Code::TrailingComma, at)));
                scanner.at += 1;
                Ok(Key::END)
            }
            b'"' => {
                let name = scanner.quoted()?;
                scanner.expect(b':')?;
                scanner.peek_significant()?;
                Ok(self.intern(name.of(scanner.text)))
            }
            _ => scanner.stop(Code::MalformedEvent),
        }
    }

    fn intern(&mut self, spelling: &[u8]) -> Key {
        if let Some(&key) = self.by_spelling.get(spelling) {
            return key;
        }
        let name = spelled_text(spelling);
        if name.as_bytes() != spelling {
            // Another spelling of a key, such as with escapes: look up the name that it spells.
            let key = self.intern(name.as_bytes());
            if key != Key::BEYOND {
                self.by_spelling.insert(spelling.into(), key);
            }
            return key;
        }
        let Some(row) =
            u16::try_from(self.names.len()).ok().filter(|_| self.names.len() < MAX_KEYS)
        else {
            return Key::BEYOND;
        };
        let key = Key::at(row);
        self.names.push(name);
        self.by_spelling.insert(spelling.into(), key);
        self.gaps.push([Gap::NONE; WAYS]);
        key
    }

    /// Stores the newest gap first, because consecutive objects often have the same order of
    /// members.
    fn remember(&mut self, previous: Key, next: Key, text: &[u8]) {
        let Some(gap) = Gap::new(text, next) else { return };
        let gaps = &mut self.gaps[usize::from(previous.0)];
        gaps.rotate_right(1);
        gaps[0] = gap;
    }
}

impl Gap {
    /// A gap that matches nothing.
    const NONE: Self =
        Self { words: [1; GAP_WORDS], last: 0, mask: 0, length: 0, next: Key::START };

    fn new(text: &[u8], next: Key) -> Option<Self> {
        let mut bytes = [0; MAX_GAP_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let words = std::array::from_fn(|place| word(&bytes, place));
        let last = text.len().checked_sub(1)? / 8;
        let unused = (last + 1) * 8 - text.len();
        Some(Self { words, last, mask: u64::MAX >> (8 * unused), length: text.len(), next })
    }

    #[inline]
    fn stands_at(&self, text: &[u8; MAX_GAP_BYTES]) -> bool {
        let last = self.last % GAP_WORDS;
        (0..last).all(|place| word(text, place) == self.words[place])
            && word(text, last) & self.mask == self.words[last]
    }
}

#[inline]
fn word(bytes: &[u8; MAX_GAP_BYTES], place: usize) -> u64 {
    bytes[place * 8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(keys: &mut Keys, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let mut scanner = Scanner::new(text.as_bytes(), 1, &mut findings);
        let (mut found, mut key) = (Vec::new(), Key::START);
        loop {
            key = keys.next(&mut scanner, key).unwrap();
            let Some(row) = key.row() else { return found };
            found.push(keys.name(row).to_owned());
            scanner.value().unwrap();
        }
    }

    #[test]
    fn objects_of_changing_shape_are_read_right_every_time() {
        let mut keys = Keys::new(["ph".to_owned()]);
        let shapes = [
            (r#"{"ph": "X", "name": "a", "ts": 1}"#, vec!["ph", "name", "ts"]),
            (r#"{"ph": "X", "ts": 1}"#, vec!["ph", "ts"]),
            (r#"{ "ts":1,"ph":"X" , "name": "a"}"#, vec!["ts", "ph", "name"]),
            (r"{}", vec![]),
        ];
        for _ in 0..3 {
            for (text, expected) in &shapes {
                assert_eq!(&keys_of(&mut keys, text), expected);
            }
        }
    }

    #[test]
    fn keys_beyond_the_limit_are_read_but_not_told_apart() {
        let mut keys = Keys::new([]);
        let members: Vec<_> = (0..MAX_KEYS + 10).map(|number| format!("\"k{number}\":1")).collect();
        let text = format!("{{{}}}", members.join(","));
        let mut findings = Vec::new();
        let mut scanner = Scanner::new(text.as_bytes(), 1, &mut findings);
        let (mut key, mut n_beyond) = (Key::START, 0);
        while key != Key::END {
            key = keys.next(&mut scanner, key).unwrap();
            if key != Key::END {
                scanner.value().unwrap();
            }
            n_beyond += usize::from(key == Key::BEYOND);
        }
        assert_eq!((n_beyond, keys.names.len()), (10, MAX_KEYS));
    }
}
