//! Decompresses zstd frame by frame (RFC 8878).

use std::io::{self, BufReader, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder, errors::FrameDecoderError};

use super::input::Unpack;
use super::input::{Input, damage};
use crate::diagnostics::{Code, Diagnostics};
use crate::error::Result;
use crate::read::source::{io_error, read_fully};

pub(super) const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The maximum window that a file may request.
const MAX_WINDOW_BYTES: u64 = 128 << 20;

/// Decompresses zstd frames.
pub(super) struct Zstd<'a> {
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
    /// After the bytes that were decompressed before the damage.
    Damaged(Code, &'static str),
    Done,
}

/// An empty last block, and room for a checksum: the decoder holds back a window of bytes until it
/// has seen the last block.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

impl<'a> Zstd<'a> {
    pub(super) fn new(source: Box<dyn Read + 'a>) -> Self {
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
            4 if magic == MAGIC => {
                let begun = self.decoder.reset(magic.chain(&mut self.input));
                self.n_frames += 1;
                begun
                    .map_or_else(|error| self.refused(&error, offset), |()| Ok(ZstdStage::Blocks))?
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

    /// Skips a frame without data, as `pzstd` writes before each data frame.
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

    fn refused(&mut self, error: &FrameDecoderError, offset: u64) -> Result<ZstdStage> {
        let (code, mut fault) = damage(self.input.get_mut(), offset)?;
        match error {
            FrameDecoderError::WindowSizeTooBig { .. } => fault = "it needs a window above 128 MiB",
            FrameDecoderError::DictNotProvided { .. } => fault = "it needs a dictionary",
            _ => {}
        }
        // A rejected frame must not continue with the state of an earlier one.
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
            let (code, fault) = damage(self.input.get_mut(), offset)?;
            // If even that is rejected, there is no more output.
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
