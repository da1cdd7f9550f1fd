//! Compressed files, told by their first bytes: gzip, zstd and xz.
//!
//! Whatever the compression is, all that stands before damage is read, and what was found wrong is
//! said under the same names.
//!
//! Limits: of xz, up to 4 KiB before the damage are lost besides the chunk that holds it (at most 2 MiB).
//! Memory is bounded by the window that a file asks for, and files that ask for more than 128 MiB are
//! refused: `xz -9` asks for 64 MiB, `zstd --long=27` for 128 MiB.

mod gzip;
mod input;
mod unpack;
mod xz;
mod zstd;

use std::io::Read;

pub(super) use unpack::Unpack;

/// The most that the first bytes of a compressed file are.
pub(super) const MAGIC_BYTES: usize = 6;

/// Whether a file that begins so is compressed.
pub(super) fn is_packed(magic: &[u8]) -> bool {
    [gzip::MAGIC, zstd::MAGIC, xz::MAGIC].iter().any(|its| magic.starts_with(its))
}

/// Unpacks a file that begins so; gives it back where it is not compressed.
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
