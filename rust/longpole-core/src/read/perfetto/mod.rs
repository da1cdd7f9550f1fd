//! Reads Perfetto protobuf traces: track events, counters, flows and GPU render stages.
//!
//! The file is a series of packets, read one at a time. A packet belongs to a sequence with state
//! (`sequence`): interned names from earlier packets, and clocks. An event is on a track
//! (`tracks`), whose description may be anywhere in the file, so process, thread, device and stream
//! are assigned at the end. The overlays and merged traces that longpole writes, and traces of
//! rocprofv3, have this format.
//!
//! | Perfetto | becomes |
//! |---|---|
//! | a slice | an event; its first category determines the kind, as in Kineto's JSON |
//! | annotations of a slice | arguments; `corr_id` and `correlation` are the correlation id |
//! | flow ids | arrows |
//! | a GPU render stage | a kernel, or the kind in the name of the stage |
//! | Chrome arrows, asynchronous events and metadata statements | rows of the same tables |
//! | Chrome metadata | header fields |
//!
//! Limits: packets of other types (ftrace, processes, logs) are counted and skipped. Compressed
//! packets above 64 MiB are skipped. A critical path that longpole drew is not read as events; a
//! file that contains nothing else is rejected.

mod annotation;
pub(crate) mod fields;
mod packet;
mod sequence;
mod slices;
mod stages;
mod tracks;

use self::fields::PACKET;
use self::slices::Slices;
use super::elements::Elements;
use super::header::facts;
use super::protobuf::{Messages, Next, Wire, fields as fields_of, variable};
use super::rows::Rows;
use super::window::Window;
use super::{Options, header};
use crate::diagnostics::{Code, Diagnostics};
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Progress;
use crate::tables::{Header, Tables};
use flate2::{Decompress, FlushDecompress};

/// Maximum uncompressed size of a compressed packet.
const MAX_INFLATED_BYTES: usize = 64 << 20;

/// The error for a critical path without its trace.
const OVERLAY: ErrorKind = ErrorKind::OtherKind {
    what: "the critical path of a trace, as `longpole convert` draws it for Perfetto",
    hint: "give the trace that the path belongs to; to write the trace itself for Perfetto, run \
           `longpole convert TRACE -o FILE.perfetto-trace`",
};

/// Reads a Perfetto trace into tables.
pub(super) fn read(
    window: Window<'_>,
    diagnostics: Diagnostics,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut messages = Messages::new(Elements::new(window, diagnostics, progress, options.strict));
    let mut slices = Slices::new(Rows::new(options));
    loop {
        let offset = messages.offset();
        if slices.rows.is_full() {
            messages.elements.note(Code::LimitReached, offset)?;
            break;
        }
        match messages.next()? {
            Next::End | Next::Stop => break,
            Next::Bytes(PACKET, length) => {
                let Some(bytes) = messages.fetch(length)? else { continue };
                slices.offset = offset;
                take(&messages.elements.window.text()[..bytes], &mut slices);
                messages.elements.window.consume(bytes);
            }
            Next::Bytes(_, length) => {
                slices.say(Code::UnknownPacket);
                if !messages.skip(length)? {
                    break;
                }
            }
            Next::Number(..) => {}
        }
        for _ in 0..slices.rows.take_altered() {
            slices.say(Code::InvalidUtf8);
        }
        for (code, offset) in slices.said.drain(..) {
            messages.elements.note(code, offset)?;
        }
    }
    let bytes = messages.offset();
    for (code, offset) in slices.finish() {
        messages.elements.note(code, offset)?;
    }
    let mut said = Vec::new();
    let compression = messages.elements.window.compression();
    let facts = facts(std::mem::take(&mut slices.fields), compression, &mut said);
    for (code, offset) in said {
        messages.elements.note(code, offset)?;
    }
    header::count_losses(&facts.fields, &mut messages.elements)?;
    let header = Header { format: "perfetto", ..facts };
    if slices.n_packets == 0 {
        return Err(Error::new(ErrorKind::NoEvents, bytes));
    }
    if slices.is_overlay() {
        return Err(Error::new(OVERLAY, 0));
    }
    Ok(slices.rows.finish(header, messages.elements.diagnostics, bytes))
}

/// Reads a packet, or the packets compressed in it.
fn take(bytes: &[u8], slices: &mut Slices<'_>) {
    let Some(packet) = packet::of(bytes) else { return slices.say(Code::MalformedMessage) };
    let Some(compressed) = packet.compressed else { return slices.take(&packet) };
    let Some(inflated) = inflated(compressed) else { return slices.say(Code::MalformedMessage) };
    let all = fields_of(&inflated, |field, wire| {
        match (field, wire) {
            (PACKET, Wire::Bytes(bytes)) => match packet::of(bytes) {
                Some(packet) if packet.compressed.is_none() => slices.take(&packet),
                _ => slices.say(Code::MalformedMessage),
            },
            _ => slices.say(Code::UnknownPacket),
        }
        Some(())
    });
    if all.is_none() {
        slices.say(Code::MalformedMessage);
    }
}

/// Decompresses zlib data; `None` if it is corrupt or too long.
fn inflated(compressed: &[u8]) -> Option<Vec<u8>> {
    let mut zlib = Decompress::new(true);
    let mut inflated = Vec::with_capacity(compressed.len().saturating_mul(4).min(1 << 20));
    loop {
        let (read, written) = (zlib.total_in(), inflated.len());
        let rest = &compressed[usize::try_from(read).ok()?..];
        let status = zlib.decompress_vec(rest, &mut inflated, FlushDecompress::None).ok()?;
        if status == flate2::Status::StreamEnd {
            return Some(inflated);
        }
        if inflated.len() == inflated.capacity() {
            if inflated.len() >= MAX_INFLATED_BYTES {
                return None;
            }
            inflated.reserve(inflated.len().max(1 << 12));
        } else if zlib.total_in() == read && inflated.len() == written {
            return None;
        }
    }
}

/// Whether a file begins like a Perfetto trace: with a packet, followed by another.
pub(super) fn is_perfetto(head: &[u8]) -> bool {
    const TAG: u8 = 0x0a;
    let Some((&TAG, rest)) = head.split_first() else { return false };
    let Some((length @ 1.., n_bytes)) = variable(rest) else { return false };
    let Ok(length) = usize::try_from(length) else { return false };
    let Some(end) = length.checked_add(n_bytes) else { return false };
    match rest.get(n_bytes..end) {
        Some(packet) => packet::of(packet).is_some() && rest.get(end).is_none_or(|&it| it == TAG),
        // Longer than the examined bytes, or truncated. The tag is also a line break.
        None => {
            !matches!(head.trim_ascii_start().first(), Some(b'{' | b'['))
                && variable(&rest[n_bytes..]).is_some_and(|(tag, _)| tag >> 3 > 0 && tag & 7 <= 2)
        }
    }
}
