//! Converts the debug annotations of an event to arguments.
//!
//! Lists and dictionaries become JSON text, as in Kineto's traces.

use std::fmt::Write as _;

use super::fields::{
    ANNOTATION_NAME_ID, BOOLEAN, DOUBLE, ENTRIES, INTEGER, JSON, NAME_OF_ANNOTATION, POINTER, TEXT,
    TEXT_ID, UNSIGNED, VALUES,
};
use super::sequence::Sequence;
use crate::ids::StringId;
use crate::read::protobuf::{Wire, fields};
use crate::read::rows::Rows;
use crate::tables::ArgValue;

/// Maximum depth of nested lists.
const MAX_DEPTH: usize = 16;

/// Maximum length of the JSON of a list, which may repeat the same string many times.
const MAX_JSON_BYTES: usize = 1 << 20;

/// A debug annotation: its name, and the field with its value.
#[derive(Default)]
pub(super) struct Annotation<'a> {
    name: Option<&'a [u8]>,
    name_id: Option<u64>,
    value: Option<(u64, Wire<'a>)>,
    bytes: &'a [u8],
}

/// Decodes an annotation; `None` if it is not a valid message.
pub(super) fn of(bytes: &[u8]) -> Option<Annotation<'_>> {
    let mut found = Annotation { bytes, ..Annotation::default() };
    fields(bytes, |field, wire| {
        match field {
            NAME_OF_ANNOTATION => found.name = Some(wire.bytes()?),
            ANNOTATION_NAME_ID => found.name_id = wire.number(),
            BOOLEAN | UNSIGNED | INTEGER | DOUBLE | TEXT | POINTER | JSON | ENTRIES | VALUES
            | TEXT_ID => found.value = Some((field, wire)),
            _ => {}
        }
        Some(())
    })?;
    Some(found)
}

impl Annotation<'_> {
    pub(super) fn name(&self, sequence: &Sequence, rows: &mut Rows<'_>) -> Option<StringId> {
        match self.name {
            Some(name) => Some(rows.text(name)),
            None => sequence.annotation_names.get(&self.name_id?).copied(),
        }
    }

    pub(super) fn value(&self, sequence: &Sequence, rows: &mut Rows<'_>) -> Option<ArgValue> {
        let (field, wire) = self.value?;
        Some(match (field, wire) {
            (TEXT | JSON, Wire::Bytes(bytes)) => ArgValue::Text(rows.text(bytes)),
            (TEXT_ID, _) => ArgValue::Text(*sequence.texts.get(&wire.number()?)?),
            (ENTRIES | VALUES, _) => {
                let mut json = String::new();
                nested(self.bytes, sequence, rows, 0, &mut json)?;
                ArgValue::Text(rows.tables.strings.intern(&json))
            }
            (DOUBLE, Wire::Eight(bits)) => ArgValue::Float(f64::from_bits(bits)),
            (BOOLEAN, _) => {
                let text = if wire.number()? == 0 { "false" } else { "true" };
                ArgValue::Text(rows.tables.strings.intern(text))
            }
            (INTEGER, _) => ArgValue::Integer(wire.number()?.cast_signed()),
            _ => unsigned(wire.number()?, rows),
        })
    }
}

/// Returns an unsigned integer as an argument. Integers above 63 bits are kept as text, as in JSON.
fn unsigned(value: u64, rows: &mut Rows<'_>) -> ArgValue {
    match i64::try_from(value) {
        Ok(value) => ArgValue::Integer(value),
        Err(_) => ArgValue::Text(rows.tables.strings.intern(&value.to_string())),
    }
}

/// Returns a list or a dictionary as JSON; `None` if it is not a valid message or too deep.
fn nested(
    bytes: &[u8],
    sequence: &Sequence,
    rows: &mut Rows<'_>,
    depth: usize,
    json: &mut String,
) -> Option<()> {
    let (mut is_first, mut close) = (true, ']');
    fields(bytes, |field, wire| {
        let (ENTRIES | VALUES, Wire::Bytes(bytes)) = (field, wire) else { return Some(()) };
        if depth >= MAX_DEPTH || json.len() > MAX_JSON_BYTES {
            return None;
        }
        let inner = of(bytes)?;
        if std::mem::take(&mut is_first) {
            close = if field == ENTRIES { '}' } else { ']' };
            json.push(if field == ENTRIES { '{' } else { '[' });
        } else {
            json.push_str(", ");
        }
        if field == ENTRIES {
            let key = inner.name(sequence, rows).map_or("", |name| rows.tables.strings.get(name));
            if key.len() > MAX_JSON_BYTES {
                return None;
            }
            write!(json, "{}: ", serde_json::Value::from(key)).ok()?;
        }
        match inner.value {
            Some((ENTRIES | VALUES, _)) => nested(bytes, sequence, rows, depth + 1, json)?,
            _ => scalar(&inner, sequence, rows, json)?,
        }
        Some(())
    })?;
    if !is_first {
        json.push(close);
    }
    Some(())
}

fn scalar(
    inner: &Annotation<'_>,
    sequence: &Sequence,
    rows: &mut Rows<'_>,
    json: &mut String,
) -> Option<()> {
    let is_bare = matches!(inner.value, Some((BOOLEAN | JSON, _)));
    match inner.value(sequence, rows) {
        Some(ArgValue::Integer(value)) => write!(json, "{value}").ok(),
        Some(ArgValue::Float(value)) => write!(json, "{value:?}").ok(),
        Some(ArgValue::Text(text)) if rows.tables.strings.get(text).len() > MAX_JSON_BYTES => None,
        Some(ArgValue::Text(text)) if is_bare => {
            json.push_str(rows.tables.strings.get(text));
            Some(())
        }
        Some(ArgValue::Text(text)) => {
            write!(json, "{}", serde_json::Value::from(rows.tables.strings.get(text))).ok()
        }
        None => {
            json.push_str("null");
            Some(())
        }
    }
}
