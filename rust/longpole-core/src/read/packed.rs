//! Compressed files, told by their first bytes: gzip, zstd and xz.
//!
//! Whatever the compression is, all that stands before damage is read, and what was found wrong is
//! said under the same names.
//!
//! Limits: of xz, up to 4 KiB before the damage are lost besides the chunk that holds it (at most 2 MiB).
//! Memory is bounded by the window that a file asks for, and files that ask for more than 128 MiB are
//! refused: `xz -9` asks for 64 MiB, `zstd --long=27` for 128 MiB.

use std::io::{self, BufReader, Read};

use lzma_rust2::XzReader;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder, errors::FrameDecoderError};

use super::gzip::Gunzip;
use super::source::{io_error, read_fully};
use super::unpack::Unpack;
use crate::diagnostics::{Code, Diagnostics};
use crate::error::Result;

/// The most that the first bytes of a compressed file are.
pub(super) const MAGIC_BYTES: usize = 6;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = b"\xfd7zXZ\0";

/// The window that a file may ask for.
const MAX_WINDOW_BYTES: u64 = 128 << 20;
/// The same for xz with what its decoder takes beside it, in KiB.
const MAX_XZ_KIB: u32 = 132 << 10;

/// Whether a file that begins so is compressed.
pub(super) fn is_packed(magic: &[u8]) -> bool {
    [GZIP, ZSTD, XZ].iter().any(|its| magic.starts_with(its))
}

/// Unpacks a file that begins so; gives it back where it is not compressed.
pub(super) fn unpack<'a>(
    magic: &[u8],
    source: Box<dyn Read + 'a>,
) -> std::result::Result<Box<dyn Unpack + 'a>, Box<dyn Read + 'a>> {
    if magic.starts_with(GZIP) {
        Ok(Box::new(Gunzip::new(source)))
    } else if magic.starts_with(ZSTD) {
        Ok(Box::new(Zstd::new(source)))
    } else if magic.starts_with(XZ) {
        Ok(Box::new(Xz::new(source)))
    } else {
        Err(source)
    }
}

/// A source that remembers whether it ended or failed, which decoders tell as damage.
struct Input<'a> {
    source: Box<dyn Read + 'a>,
    has_ended: bool,
    failure: Option<io::Error>,
}

impl<'a> Input<'a> {
    fn buffered(source: Box<dyn Read + 'a>) -> BufReader<Self> {
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

/// What is wrong where a decoder gave up: the source failed, ended or is corrupt.
fn damage(input: &mut Input<'_>) -> Result<(Code, &'static str)> {
    match input.failure.take() {
        Some(error) => Err(io_error(&error, 0)),
        None if input.has_ended => Ok((Code::CompressionTruncated, "it ends inside its data")),
        None => Ok((Code::CompressionCorrupt, "its data is corrupt")),
    }
}

/// zstd, frame by frame (RFC 8878).
struct Zstd<'a> {
    input: BufReader<Input<'a>>,
    decoder: FrameDecoder,
    stage: ZstdStage,
    n_frames: u64,
    fault: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum ZstdStage {
    Header,
    Blocks,
    /// Behind the bytes that came out before the damage.
    Damaged(Code, &'static str),
    Done,
}

/// An empty last block, and room for a checksum: the decoder keeps back a window of bytes
/// until it has seen the last block.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

impl<'a> Zstd<'a> {
    fn new(source: Box<dyn Read + 'a>) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_BYTES);
        let input = Input::buffered(source);
        Self { input, decoder, stage: ZstdStage::Header, n_frames: 0, fault: None }
    }

    fn header(&mut self, offset: u64, diagnostics: &mut Diagnostics) -> Result<()> {
        let mut magic = [0; 4];
        let count =
            read_fully(&mut self.input, &mut magic).map_err(|error| io_error(&error, offset))?;
        self.stage = match count {
            0 if self.n_frames > 0 => ZstdStage::Done,
            4 if magic == ZSTD => {
                let begun = self.decoder.reset(magic.chain(&mut self.input));
                self.n_frames += 1;
                begun.map_or_else(|error| self.refused(&error), |()| Ok(ZstdStage::Blocks))?
            }
            4 if magic[0] & 0xf0 == 0x50 && magic[1..] == [0x2a, 0x4d, 0x18] => {
                self.skippable(offset)?
            }
            _ => {
                diagnostics.add(Code::CompressionTrailing, offset);
                ZstdStage::Done
            }
        };
        Ok(())
    }

    /// A frame without data, as `pzstd` writes one before each frame with.
    fn skippable(&mut self, offset: u64) -> Result<ZstdStage> {
        let mut length = [0; 4];
        let failed = |error: io::Error| io_error(&error, offset);
        read_fully(&mut self.input, &mut length).map_err(failed)?;
        let length = u64::from(u32::from_le_bytes(length));
        let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink());
        if skipped.map_err(failed)? < length {
            return Ok(ZstdStage::Damaged(Code::CompressionTruncated, "it ends inside its data"));
        }
        Ok(ZstdStage::Header)
    }

    fn refused(&mut self, error: &FrameDecoderError) -> Result<ZstdStage> {
        let (code, mut fault) = damage(self.input.get_mut())?;
        match error {
            FrameDecoderError::WindowSizeTooBig { .. } => fault = "it needs a window above 128 MiB",
            FrameDecoderError::DictNotProvided { .. } => fault = "it needs a dictionary",
            _ => {}
        }
        // What was refused must not go on with a frame before it.
        self.decoder = FrameDecoder::new();
        self.decoder.set_max_window_size(MAX_WINDOW_BYTES);
        Ok(ZstdStage::Damaged(code, fault))
    }

    /// Decodes a block, or finds the end of the frame.
    fn block(&mut self, offset: u64, diagnostics: &mut Diagnostics) -> Result<()> {
        if self.decoder.is_finished() {
            let given = self.decoder.get_checksum_from_data();
            if given.is_some() && given != self.decoder.get_calculated_checksum() {
                diagnostics.add(Code::CompressionChecksum, offset);
            }
            self.stage = ZstdStage::Header;
            return Ok(());
        }
        let next = BlockDecodingStrategy::UptoBlocks(1);
        if self.decoder.decode_blocks(&mut self.input, next).is_err() {
            let (code, fault) = damage(self.input.get_mut())?;
            // Where even that is refused, nothing more comes out.
            let _ = self.decoder.decode_blocks(LAST_BLOCK, BlockDecodingStrategy::All);
            self.stage = ZstdStage::Damaged(code, fault);
        }
        Ok(())
    }
}

impl Unpack for Zstd<'_> {
    fn name(&self) -> &'static str {
        "zstd"
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
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(output).map_err(|error| io_error(&error, offset));
            }
            match self.stage {
                ZstdStage::Header => self.header(offset, diagnostics)?,
                ZstdStage::Blocks => self.block(offset, diagnostics)?,
                ZstdStage::Damaged(code, fault) => {
                    diagnostics.add(code, offset);
                    self.fault = Some(fault);
                    self.stage = ZstdStage::Done;
                }
                ZstdStage::Done => return Ok(0),
            }
        }
    }
}

/// xz, stream by stream (<https://tukaani.org/xz/xz-file-format.txt>).
struct Xz<'a> {
    reader: XzReader<BufReader<Input<'a>>>,
    /// What came out and was not given yet: pieces of one length, whatever is asked for, so that
    /// the same bytes come out before damage.
    piece: Vec<u8>,
    at: usize,
    has_ended: bool,
    fault: Option<&'static str>,
}

const PIECE_BYTES: usize = 4 << 10;

impl<'a> Xz<'a> {
    fn new(source: Box<dyn Read + 'a>) -> Self {
        let reader = XzReader::new_mem_limit(Input::buffered(source), true, MAX_XZ_KIB);
        Self { reader, piece: Vec::new(), at: 0, has_ended: false, fault: None }
    }

    /// Unpacks the next piece, or finds the end.
    fn next_piece(&mut self, offset: u64, diagnostics: &mut Diagnostics) -> Result<()> {
        self.piece.resize(PIECE_BYTES, 0);
        self.at = 0;
        match self.reader.read(&mut self.piece) {
            Ok(count) => {
                self.has_ended = count == 0;
                self.piece.truncate(count);
            }
            Err(error) => {
                self.piece.clear();
                self.has_ended = true;
                self.damaged(&error, offset, diagnostics)?;
            }
        }
        Ok(())
    }

    fn damaged(
        &mut self,
        error: &io::Error,
        offset: u64,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        let (code, fault) = damage(self.reader.inner_mut().get_mut())?;
        if error.kind() == io::ErrorKind::OutOfMemory {
            diagnostics.add(Code::CompressionCorrupt, offset);
            self.fault = Some("it needs a window above 128 MiB");
        } else if error.to_string().contains("after stream") {
            diagnostics.add(Code::CompressionTrailing, offset);
        } else {
            diagnostics.add(code, offset);
            self.fault = Some(fault);
        }
        Ok(())
    }
}

impl Unpack for Xz<'_> {
    fn name(&self) -> &'static str {
        "xz"
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
        if self.at == self.piece.len() && !self.has_ended {
            self.next_piece(offset, diagnostics)?;
        }
        let count = output.len().min(self.piece.len() - self.at);
        output[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
