//! Generates inputs from others: flips, cuts, copies, splices and tokens of the formats, and other
//! ways to pass them.

use std::io::{Read, Write as _};

const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"null",
    b"tru",
    b"NaN",
    b"-inf",
    b"\0\0\0\0",
    b"\xff\xff",
    b"\xef\xbb\xbf",
    b"\"ph\":\"X\"",
    b"{\"ph\":",
    b"1e999",
    b"-9223372036854775808",
    b"99999999999999999999",
    b"0.-05",
    b"\n",
    b"\"args\":",
    b"\"ts\":",
    b"\"dur\":",
    b"\"traceEvents\":[",
    b"\x1f\x8b\x08",
    b"OP:",
    b"TIME:",
    b"WS:",
    b"us",
    b"GB/s",
];
const MOST_CHANGES: usize = 4;
const LONGEST: usize = 64;

/// Returns one of the sources with one to four changes.
pub fn mutated(sources: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = sources[random.below(sources.len())].clone();
    for _ in 0..=random.below(MOST_CHANGES) {
        change(&mut bytes, sources, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, sources: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len().max(1)).min(bytes.len());
    let length = random.below(LONGEST).min(bytes.len() - at);
    let token = TOKENS[random.below(TOKENS.len())].iter().copied();
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 => drop(bytes.splice(at..at, token)),
        2 => drop(bytes.drain(at..at + length)),
        3 => bytes.truncate(at),
        4 => {
            let copy = bytes[at..at + length].to_vec();
            let to = random.below(bytes.len().max(1)).min(bytes.len());
            drop(bytes.splice(to..to, copy));
        }
        5 => {
            let other = &sources[random.below(sources.len())];
            let from = random.below(other.len().max(1)).min(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        6 => bytes[at..at + length].fill(0),
        _ => drop(bytes.splice(at..at + length, token)),
    }
}

/// `SplitMix64` (Steele and others 2014), which is sufficient to choose where to change.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the generator for a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `limit`; 0 if `limit` is 0.
    #[allow(clippy::cast_possible_truncation)] // below a length
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) % limit.max(1) as u64) as usize
    }
}

/// A source that returns a few bytes at a time.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) random: &'a mut Random,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = if self.random.below(2) == 0 { 3 } else { 700 };
        let wish = 1 + self.random.below(most);
        let length = wish.min(buffer.len()).min(self.bytes.len());
        buffer[..length].copy_from_slice(&self.bytes[..length]);
        self.bytes = &self.bytes[length..];
        Ok(length)
    }
}

/// Compresses bytes with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
