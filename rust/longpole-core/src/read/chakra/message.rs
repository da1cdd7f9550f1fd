//! Decodes the messages of `et_def.proto`.

use crate::read::protobuf::{Wire, fields, variable};
use crate::tables::chakra::{ChakraNode, ChakraTrace, ChakraValue};

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
