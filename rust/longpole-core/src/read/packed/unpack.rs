//! What a decoder of a compressed file does.

use crate::diagnostics::Diagnostics;
use crate::error::Result;

/// A compressed file as it is read.
pub(in crate::read) trait Unpack {
    /// What compresses it.
    fn name(&self) -> &'static str;

    /// What ended the stream too early, if anything did.
    fn fault(&self) -> Option<&'static str>;

    /// Unpacks into `output`; 0 at the end. `offset` is the place of `output` in the uncompressed
    /// file. What is found wrong stands before the bytes that are given.
    fn read(
        &mut self,
        output: &mut [u8],
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<usize>;
}
