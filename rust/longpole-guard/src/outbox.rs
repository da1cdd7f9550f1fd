//! Events on their way to the runner, in a buffer with a limit.

use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read, write};

use crate::wire::{Event, begin_frame, end_frame};

/// Read at once from a pipe: as much as a pipe holds unless it was enlarged.
const CHUNK_BYTES: usize = 64 << 10;

/// Beyond this, output of the job is left in its pipe until the runner has read.
const LIMIT_BYTES: usize = 1 << 20;

/// What the runner has not taken yet.
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

    /// Takes what one read of `pipe` gives, and says how many bytes those are.
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

    /// Sends what the pipe takes without waiting.
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
