//! Events for the runner, in a bounded buffer.

use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read, write};

use crate::wire::{Event, begin_frame, end_frame};

/// Maximum number of bytes read from a pipe at once: the capacity of a pipe, unless it was
/// enlarged.
const CHUNK_BYTES: usize = 64 << 10;

/// Above this, output of the job stays in its pipe until the runner has read.
const LIMIT_BYTES: usize = 1 << 20;

/// Events that the runner has not read yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    pub(crate) fn push(&mut self, event: Event, body: &[u8]) {
        let start = self.bytes.len();
        begin_frame(&mut self.bytes, event);
        self.bytes.extend_from_slice(body);
        end_frame(&mut self.bytes, start);
    }

    /// Reads once from `pipe` as an event. Returns the number of bytes.
    pub(crate) fn receive(
        &mut self,
        event: Event,
        pipe: BorrowedFd<'_>,
    ) -> rustix::io::Result<usize> {
        let start = self.bytes.len();
        begin_frame(&mut self.bytes, event);
        self.bytes.reserve(CHUNK_BYTES);
        let outcome = read(pipe, spare_capacity(&mut self.bytes));
        match outcome {
            Ok(count) if count > 0 => end_frame(&mut self.bytes, start),
            _ => self.bytes.truncate(start),
        }
        outcome
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Whether more output may be read from the job.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.len() < LIMIT_BYTES
    }

    /// Sends as much as the pipe accepts without blocking.
    pub(crate) fn flush(&mut self, events: BorrowedFd<'_>) -> rustix::io::Result<()> {
        while !self.is_empty() {
            match write(events, &self.bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Ok(())
    }
}
