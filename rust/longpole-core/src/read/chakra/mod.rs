//! Chakra graphs (`.et`) -> nodes.
//!
//! The file is the length of a message and the message, again and again: one
//! `GlobalMetadata`, then nodes. Fields that the published schema does not have are skipped,
//! as its readers do. A file that ends inside a message keeps the nodes before it; the
//! bytes behind them are counted.

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
/// When the file cannot be opened or read, is no Chakra graph, or holds a message that is
/// damaged, and when `progress` asks to stop.
pub fn read_path(path: &Path, progress: Progress<'_>) -> Result<ChakraTrace> {
    read(source::open_named(path)?, progress)
}

/// Reads the graph that a reader gives.
///
/// # Errors
///
/// As [`read_path`].
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

/// The span of the message at the front of the window; none where the file ends before it
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
