//! Reads Chakra graphs (`.et`) into nodes.
//!
//! The file is a sequence of messages, each after its length: one `GlobalMetadata`, then nodes.
//! Fields that are not in the published schema are skipped, as its own readers do. If a file ends
//! inside a message, the nodes before it are kept and the remaining bytes are counted.

mod message;

use std::io::Read;
use std::path::Path;

use super::protobuf::variable;
use super::source;
use super::window::{MAX_ELEMENT_BYTES, Window};
use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, report};
use crate::tables::chakra::ChakraTrace;
use message::{global_metadata, node};

/// Reads the graph in a file, plain or gzip.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or read, is not a Chakra graph, or contains a
/// damaged message, and if `progress` asks to stop.
pub fn read_path(path: &Path, progress: Progress<'_>) -> Result<ChakraTrace> {
    read(source::open_named(path)?, progress)
}

/// Reads the graph from a reader.
///
/// # Errors
///
/// As for [`read_path`].
pub fn read(source: impl Read, progress: Progress<'_>) -> Result<ChakraTrace> {
    let mut window = Window::new(Box::new(source), None)?;
    let mut diagnostics = Diagnostics::default();
    let mut trace = ChakraTrace::default();
    let mut n_messages = 0_u64;
    loop {
        let offset = window.offset();
        report(progress, offset)?;
        let Some((start, end)) = whole_message(&mut window, &mut diagnostics)? else {
            trace.trailing_bytes = window.text().len() as u64;
            break;
        };
        let bytes = &window.text()[start..end];
        let taken = if n_messages == 0 {
            global_metadata(bytes, &mut trace)
        } else {
            node(bytes).map(|node| trace.nodes.push(node))
        };
        taken.ok_or(Error::new(ErrorKind::NotAChakraGraph, offset))?;
        n_messages += 1;
        window.consume(end);
    }
    match n_messages {
        0 if trace.trailing_bytes == 0 => Err(Error::new(ErrorKind::Empty, 0)),
        0 => Err(Error::new(ErrorKind::NotAChakraGraph, 0)),
        _ => Ok(trace),
    }
}

/// Returns the span of the message at the front of the window; `None` if the file ends before it
/// does.
fn whole_message(
    window: &mut Window<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<(usize, usize)>> {
    loop {
        if let Some((length, start)) = variable(window.text()) {
            let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
            match end {
                Some(end) if end <= window.text().len() => return Ok(Some((start, end))),
                Some(end) if end <= MAX_ELEMENT_BYTES => {}
                _ => return Err(Error::new(ErrorKind::NotAChakraGraph, window.offset())),
            }
        }
        if !window.more(diagnostics)? {
            return Ok(None);
        }
    }
}
