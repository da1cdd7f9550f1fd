//! Reads Chakra graphs (`.et`) into nodes.
//!
//! The file is a sequence of messages, each after its length: one `GlobalMetadata`, then nodes.
//! Fields that are not in the published schema are skipped, as its own readers do. If a file ends
//! inside a message, the nodes before it are kept and the remaining bytes are counted.

use std::io::Read;
use std::path::Path;

use super::protobuf::variable;
use super::source;
use super::window::{MAX_ELEMENT_BYTES, Window};
use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, report};
use crate::read::protobuf::{Wire, fields};
use crate::tables::chakra::{ChakraNode, ChakraTrace, ChakraValue};

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

// Decodes the messages of `et_def.proto`.

fn text(wire: Wire<'_>) -> Option<String> {
    match wire {
        Wire::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

fn number(wire: Wire<'_>) -> Option<u64> {
    match wire {
        Wire::Variable(value) => Some(value),
        _ => None,
    }
}

/// Reads a list of numbers, packed or one at a time.
fn numbers(wire: Wire<'_>, list: &mut Vec<u64>) -> Option<()> {
    match wire {
        Wire::Variable(value) => list.push(value),
        Wire::Bytes(mut rest) => {
            while !rest.is_empty() {
                let (value, length) = variable(rest)?;
                list.push(value);
                rest = &rest[length..];
            }
        }
        _ => return None,
    }
    Some(())
}

pub(super) fn global_metadata(bytes: &[u8], trace: &mut ChakraTrace) -> Option<()> {
    fields(bytes, |field, wire| {
        match (field, wire) {
            (1, _) => trace.version = text(wire)?,
            (2, Wire::Bytes(bytes)) => trace.attributes.push(attribute(bytes)?),
            _ => {}
        }
        Some(())
    })
}

pub(super) fn node(bytes: &[u8]) -> Option<ChakraNode> {
    let mut node = ChakraNode::default();
    fields(bytes, |field, wire| {
        match (field, wire) {
            (1, _) => node.id = number(wire)?,
            (2, _) => node.name = text(wire)?,
            (3, _) => node.node_type = number(wire)?,
            (4, _) => numbers(wire, &mut node.control)?,
            (5, _) => numbers(wire, &mut node.data)?,
            (6, _) => node.start_us = number(wire)?,
            (7, _) => node.duration_us = number(wire)?,
            (8, Wire::Bytes(bytes)) => lists(bytes, &mut node.inputs)?,
            (9, Wire::Bytes(bytes)) => lists(bytes, &mut node.outputs)?,
            (10, Wire::Bytes(bytes)) => node.attributes.push(attribute(bytes)?),
            _ => {}
        }
        Some(())
    })?;
    Some(node)
}

/// Reads values, shapes and types.
fn lists(bytes: &[u8], lists: &mut [String; 3]) -> Option<()> {
    fields(bytes, |field, wire| {
        let place = usize::try_from(field).ok()?.checked_sub(1)?;
        if let Some(list) = lists.get_mut(place) {
            *list = text(wire)?;
        }
        Some(())
    })
}

fn attribute(bytes: &[u8]) -> Option<(String, ChakraValue)> {
    let (mut name, mut value) = (String::new(), None);
    fields(bytes, |field, wire| {
        match field {
            1 => name = text(wire)?,
            2 => {}
            _ => value = Some(attribute_value(field, wire)?),
        }
        Some(())
    })?;
    Some((name, value.unwrap_or(ChakraValue::Other(0))))
}

/// Returns the value in a field of the `oneof`: scalars have odd field numbers, lists even ones.
#[allow(clippy::match_same_arms)] // in the order of the schema
fn attribute_value(field: u64, wire: Wire<'_>) -> Option<ChakraValue> {
    let zigzag = |value: u64| (value >> 1).cast_signed() ^ -((value & 1).cast_signed());
    let small = |value: u64| i64::from(value.to_le_bytes()[0]);
    Some(match (field, wire) {
        (3, Wire::Eight(bits)) => ChakraValue::Float(f64::from_bits(bits)),
        (5, Wire::Four(bits)) => ChakraValue::Float(f32::from_bits(bits).into()),
        (7 | 9 | 11, Wire::Variable(value)) => ChakraValue::Integer(value.cast_signed()),
        (13, Wire::Variable(value)) | (21, Wire::Eight(value)) => {
            i64::try_from(value).map_or(ChakraValue::Unsigned(value), ChakraValue::Integer)
        }
        (15 | 17, Wire::Variable(value)) => ChakraValue::Integer(zigzag(value)),
        (19, Wire::Four(value)) => ChakraValue::Integer(value.into()),
        (23, Wire::Four(value)) => ChakraValue::Integer(value.cast_signed().into()),
        (25, Wire::Eight(value)) => ChakraValue::Integer(value.cast_signed()),
        (27, Wire::Variable(value)) => ChakraValue::Bool(small(value) != 0),
        (29, wire) => ChakraValue::Text(text(wire)?),
        (8 | 10 | 12 | 14, Wire::Bytes(bytes)) => ChakraValue::Integers(integers(bytes)?),
        _ => ChakraValue::Other(field),
    })
}

fn integers(bytes: &[u8]) -> Option<Vec<i64>> {
    let mut found = Vec::new();
    fields(bytes, |field, wire| if field == 1 { numbers(wire, &mut found) } else { Some(()) })?;
    Some(found.into_iter().map(u64::cast_signed).collect())
}
