//! The interface of a decompressor.

use crate::diagnostics::Diagnostics;
use crate::error::Result;

/// A compressed file while it is read.
pub(in crate::read) trait Unpack {
    /// Returns the name of the compression.
    fn name(&self) -> &'static str;

    /// Returns what ended the stream too early, if anything did.
    fn fault(&self) -> Option<&'static str>;

    /// Decompresses into `output`; returns 0 at the end. `offset` is the position of `output` in
    /// the uncompressed file. Problems are reported with positions before the returned bytes.
    fn read(
        &mut self,
        output: &mut [u8],
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<usize>;
}
