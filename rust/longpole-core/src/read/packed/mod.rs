//! Decompresses files, detected by their first bytes: gzip, zstd and xz.
//!
//! For all formats, everything before the damage is read, and problems are reported under the same
//! names.
//!
//! Limits: for xz, up to 4 KiB before the damage are lost, in addition to the damaged chunk (at
//! most 2 MiB). Memory is bounded by the window size that a file requests, and files that request
//! more than 128 MiB are rejected: `xz -9` requests 64 MiB, `zstd --long=27` 128 MiB.

mod gzip;
mod input;
mod xz;
mod zstd;

use std::io::Read;

pub(super) use input::Unpack;

/// The length of the longest magic number of a compressed file.
pub(super) const MAGIC_BYTES: usize = 6;

/// Whether a file with these first bytes is compressed.
pub(super) fn is_packed(magic: &[u8]) -> bool {
    [gzip::MAGIC, zstd::MAGIC, xz::MAGIC].iter().any(|its| magic.starts_with(its))
}

/// Returns a decompressor for a file with these first bytes, or the source itself if it is not
/// compressed.
pub(super) fn unpack<'a>(
    magic: &[u8],
    source: Box<dyn Read + 'a>,
) -> Result<Box<dyn Unpack + 'a>, Box<dyn Read + 'a>> {
    if magic.starts_with(gzip::MAGIC) {
        Ok(Box::new(gzip::Gunzip::new(source)))
    } else if magic.starts_with(zstd::MAGIC) {
        Ok(Box::new(zstd::Zstd::new(source)))
    } else if magic.starts_with(xz::MAGIC) {
        Ok(Box::new(xz::Xz::new(source)))
    } else {
        Err(source)
    }
}
