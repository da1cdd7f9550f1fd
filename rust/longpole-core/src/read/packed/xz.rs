//! Decompresses xz stream by stream (<https://tukaani.org/xz/xz-file-format.txt>).

use std::io::{self, BufReader, Read};

use lzma_rust2::XzReader;

use super::input::Unpack;
use super::input::{Input, damage};
use crate::diagnostics::{Code, Diagnostics};
use crate::error::Result;

pub(super) const MAGIC: &[u8] = b"\xfd7zXZ\0";

/// The maximum window that a file may request, plus what the decoder needs in addition.
const MAX_KIB: u32 = 132 << 10;

/// Decompresses xz streams.
pub(super) struct Xz<'a> {
    reader: XzReader<BufReader<Input<'a>>>,
    /// Decompressed bytes not yet returned. Pieces have a fixed length for any buffer size, so that
    /// the same bytes are returned before damage.
    piece: Vec<u8>,
    at: usize,
    has_ended: bool,
    fault: Option<&'static str>,
}

const PIECE_BYTES: usize = 4 << 10;

impl<'a> Xz<'a> {
    pub(super) fn new(source: Box<dyn Read + 'a>) -> Self {
        let reader = XzReader::new_mem_limit(Input::buffered(source), true, MAX_KIB);
        Self { reader, piece: Vec::new(), at: 0, has_ended: false, fault: None }
    }

    /// Decompresses the next piece, or finds the end.
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
        let (code, fault) = damage(self.reader.inner_mut().get_mut(), offset)?;
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
