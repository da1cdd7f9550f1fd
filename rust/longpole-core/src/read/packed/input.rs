//! The compressed bytes, in the form that decoder libraries expect.

use std::io::{self, BufReader, Read};

use crate::diagnostics::{Code, Diagnostics};
use crate::error::Result;
use crate::read::source::io_error;

/// A source that remembers whether it ended or failed, because decoders report both as damage.
pub(super) struct Input<'a> {
    source: Box<dyn Read + 'a>,
    has_ended: bool,
    failure: Option<io::Error>,
}

impl<'a> Input<'a> {
    pub(super) fn buffered(source: Box<dyn Read + 'a>) -> BufReader<Self> {
        BufReader::with_capacity(64 << 10, Self { source, has_ended: false, failure: None })
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.source.read(buffer) {
            Ok(count) => {
                self.has_ended |= count == 0 && !buffer.is_empty();
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failure = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

/// Returns the problem at output byte `offset`, at which a decoder stopped: the source failed,
/// ended, or is corrupt.
pub(super) fn damage(input: &mut Input<'_>, offset: u64) -> Result<(Code, &'static str)> {
    match input.failure.take() {
        Some(error) => Err(io_error(&error, offset)),
        None if input.has_ended => Ok((Code::CompressionTruncated, "it ends inside its data")),
        None => Ok((Code::CompressionCorrupt, "its data is corrupt")),
    }
}

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
