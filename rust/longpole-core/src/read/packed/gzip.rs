//! Decompresses gzip member by member (RFC 1952), as far as the file is valid.
//!
//! The decompression itself is that of zlib-rs. Members are handled here, because a reader of
//! damaged files must return everything before the damage, regardless of buffer sizes, and must
//! continue after a wrong checksum.

use std::io::Read;

use crc32fast::Hasher;
use flate2::{Decompress, FlushDecompress, Status};

use super::input::Unpack;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::Result;
use crate::read::source::{io_error, read_some};

pub(super) const MAGIC: &[u8] = &[0x1f, 0x8b];

const INPUT_BYTES: usize = 64 << 10;

/// Decompresses gzip data from a reader.
pub(super) struct Gunzip<'a> {
    source: Box<dyn Read + 'a>,
    input: Vec<u8>,
    at: usize,
    end: usize,
    stage: Stage,
    inflate: Decompress,
    checksum: Hasher,
    n_members: u64,
    fault: Option<&'static str>,
    /// The output offset at the start of the last call.
    offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Body,
    /// After the data that was decompressed before the damage.
    Corrupt,
    Trailer,
    Done,
}

impl Unpack for Gunzip<'_> {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    fn read(
        &mut self,
        output: &mut [u8],
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<usize> {
        self.offset = offset;
        loop {
            match self.stage {
                Stage::Header => self.header(offset, diagnostics)?,
                Stage::Body => {
                    let count = self.body(output, offset, diagnostics)?;
                    if count > 0 {
                        return Ok(count);
                    }
                }
                Stage::Corrupt => {
                    self.stop(Code::CompressionCorrupt, "its data is corrupt", offset, diagnostics);
                }
                Stage::Trailer => self.trailer(offset, diagnostics)?,
                Stage::Done => return Ok(0),
            }
        }
    }
}

impl<'a> Gunzip<'a> {
    pub(super) fn new(source: Box<dyn Read + 'a>) -> Self {
        Self {
            source,
            input: vec![0; INPUT_BYTES],
            at: 0,
            end: 0,
            stage: Stage::Header,
            inflate: Decompress::new(false),
            checksum: Hasher::new(),
            n_members: 0,
            fault: None,
            offset: 0,
        }
    }

    fn body(
        &mut self,
        output: &mut [u8],
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<usize> {
        let has_input = self.has_input()?;
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status =
            self.inflate.decompress(&self.input[self.at..self.end], output, FlushDecompress::None);
        self.at += length(self.inflate.total_in() - read);
        let count = length(self.inflate.total_out() - written);
        self.checksum.update(&output[..count]);
        match status {
            Ok(Status::StreamEnd) => self.stage = Stage::Trailer,
            // Checked only now, because the output of the last input may not have fitted into the
            // last buffer.
            Ok(Status::Ok | Status::BufError) if !has_input && count == 0 => {
                self.stop(
                    Code::CompressionTruncated,
                    "it ends inside its data",
                    offset,
                    diagnostics,
                );
            }
            Ok(Status::Ok | Status::BufError) => {}
            // Reported after the earlier output is consumed, regardless of buffer sizes.
            Err(_) => self.stage = Stage::Corrupt,
        }
        Ok(count)
    }

    /// Reads the header: ten fixed bytes, then the parts indicated by its flags.
    fn header(&mut self, offset: u64, diagnostics: &mut Diagnostics) -> Result<()> {
        if self.n_members > 0 && !self.has_input()? {
            self.stage = Stage::Done;
            return Ok(());
        }
        let fixed = self.bytes::<10>()?;
        if self.n_members > 0 && !matches!(fixed, Some([0x1f, 0x8b, ..])) {
            diagnostics.add(Code::CompressionTrailing, offset);
            self.stage = Stage::Done;
            return Ok(());
        }
        let Some([_, _, method, flags, ..]) = fixed else {
            self.stop(Code::CompressionTruncated, "it ends inside its header", offset, diagnostics);
            return Ok(());
        };
        if method != 8 || flags & 0xe0 != 0 {
            self.stop(Code::CompressionCorrupt, "its header is corrupt", offset, diagnostics);
            return Ok(());
        }
        if self.optional_fields(flags)?.is_none() {
            self.stop(Code::CompressionTruncated, "it ends inside its header", offset, diagnostics);
            return Ok(());
        }
        self.inflate.reset(false);
        self.checksum.reset();
        self.n_members += 1;
        self.stage = Stage::Body;
        Ok(())
    }

    /// Skips extra field, name, comment and header checksum; `None` if they are truncated.
    fn optional_fields(&mut self, flags: u8) -> Result<Option<()>> {
        if flags & 4 != 0 {
            let Some(size) = self.bytes::<2>()? else { return Ok(None) };
            for _ in 0..u16::from_le_bytes(size) {
                if self.bytes::<1>()?.is_none() {
                    return Ok(None);
                }
            }
        }
        for flag in [8, 16] {
            if flags & flag != 0 && self.text()?.is_none() {
                return Ok(None);
            }
        }
        if flags & 2 != 0 && self.bytes::<2>()?.is_none() {
            return Ok(None);
        }
        Ok(Some(()))
    }

    /// Skips a zero-terminated string; `None` if it is truncated.
    fn text(&mut self) -> Result<Option<()>> {
        loop {
            match self.bytes::<1>()? {
                Some([0]) => return Ok(Some(())),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    fn trailer(&mut self, offset: u64, diagnostics: &mut Diagnostics) -> Result<()> {
        self.stage = Stage::Header;
        let Some([c0, c1, c2, c3, n0, n1, n2, n3]) = self.bytes::<8>()? else {
            self.stop(
                Code::CompressionTruncated,
                "it ends inside its checksum",
                offset,
                diagnostics,
            );
            return Ok(());
        };
        let checksum = u32::from_le_bytes([c0, c1, c2, c3]);
        let size = u32::from_le_bytes([n0, n1, n2, n3]);
        if checksum != self.checksum.clone().finalize()
            || u64::from(size) != self.inflate.total_out() % (1 << 32)
        {
            diagnostics.add(Code::CompressionChecksum, offset);
        }
        Ok(())
    }

    fn stop(&mut self, code: Code, what: &'static str, offset: u64, diagnostics: &mut Diagnostics) {
        diagnostics.add(code, offset);
        self.fault = Some(what);
        self.stage = Stage::Done;
    }

    fn bytes<const N: usize>(&mut self) -> Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            if !self.has_input()? {
                return Ok(None);
            }
            *byte = self.input[self.at];
            self.at += 1;
        }
        Ok(Some(bytes))
    }

    fn has_input(&mut self) -> Result<bool> {
        if self.at == self.end {
            self.at = 0;
            self.end = read_some(&mut self.source, &mut self.input)
                .map_err(|error| io_error(&error, self.offset))?;
        }
        Ok(self.end > 0)
    }
}

/// Converts a byte count within one of our buffers.
fn length(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A reader that always fails.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("input/output error"))
        }
    }

    #[test]
    fn an_error_of_the_source_names_the_byte_of_the_output_at_which_it_came() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
        encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let packed = encoder.finish().unwrap();
        let half = io::Cursor::new(packed[..packed.len() / 2].to_vec());
        let mut gunzip = Gunzip::new(Box::new(half.chain(Broken)));
        let (mut offset, mut output) = (0, vec![0; 4096]);
        let error = loop {
            match gunzip.read(&mut output, offset, &mut Diagnostics::default()) {
                Ok(count) => offset += count as u64,
                Err(error) => break error,
            }
        };
        assert!(offset > 400_000, "{offset}");
        assert_eq!(error.offset(), offset);
    }
}
