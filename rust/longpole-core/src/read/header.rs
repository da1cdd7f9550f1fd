//! Header fields of the trace, at any position in the file.

use super::chrome::sound_value;
use super::elements::Elements;
use crate::diagnostics::{Code, Diagnostic};
use crate::error::Result;
use crate::read::json::starts_with_key;
use crate::tables::{Header, Tables};
use serde_json::{Value, json};

/// The largest number of a rank: later stages count ranks, and multiply their numbers by a block
/// of track numbers.
const MOST_RANKS: i64 = (1 << 31) - 1;

/// The fields that profilers write next to the events. After damage in the header, reading
/// continues at the next of these, so that a key of a nested object is not mistaken for a header
/// field.
const FIELDS: &[&str] = &[
    "traceEvents",
    "traceName",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "record_shapes",
    "profile_memory",
    "with_stack",
    "with_flops",
    "with_modules",
    "trace_id",
    "host_name",
    "username",
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "INFO",
    "WARNING",
    "ERROR",
    "metadata",
    "otherData",
    "systemTraceEvents",
    "stackFrames",
    "samples",
];

/// Whether `text` begins with a known field and its colon; `None` if it is too short to decide.
pub(super) fn starts_with_field(text: &[u8]) -> Option<bool> {
    starts_with_key(text, FIELDS)
}

/// Extracts the metadata that the analyses need from the fields.
pub(super) fn facts(
    fields: Vec<(String, String)>,
    compression: Option<&'static str>,
    said: &mut Vec<(Code, u64)>,
) -> Header {
    // The last of equal names is used, as in other JSON readers.
    let value = |name: &str| -> Option<Value> {
        let (_, text) = fields.iter().rev().find(|(field, _)| field == name)?;
        serde_json::from_str(text).ok()
    };
    let distributed = value("distributedInfo").unwrap_or_default();
    let rank = distributed.get("rank").filter(|rank| !rank.is_null());
    if rank.is_some_and(|rank| count(rank).is_none()) {
        said.push((Code::BadRank, 0));
    }
    let is_kineto = value("schemaVersion").is_some() || value("deviceProperties").is_some();
    Header {
        rank: rank.and_then(count),
        world_size: distributed.get("world_size").and_then(count),
        base_time_ns: value("baseTimeNanoseconds").as_ref().and_then(integer),
        format: if is_kineto { "kineto-json" } else { "chrome-json" },
        compression,
        fields,
    }
}

/// Parses the number of a rank, or of ranks.
fn count(value: &Value) -> Option<i64> {
    integer(value).filter(|number| (0..=MOST_RANKS).contains(number))
}

/// Parses an integer, which some writers quote.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

// Records what was lost from the source of a converted trace, as a header field.
//
// A converted file is valid, although events of its source may be missing. It therefore records
// what was lost, and from how many bytes and events. Reading it reports the same losses, and files
// converted from it record them again.

/// The name of the field.
const FIELD: &str = "longpole.losses";

/// Returns the header fields as valid JSON; if anything was lost from the trace, the last field
/// records it.
pub(crate) fn with_losses(
    fields: impl Iterator<Item = (String, String)>,
    tables: &Tables,
) -> Vec<(String, String)> {
    let mut fields: Vec<_> = fields.map(|(name, value)| (name, sound_value(&value))).collect();
    if !tables.diagnostics.iter().any(|row| row.code.is_loss()) {
        return fields;
    }
    // A trace read from a converted file has the losses of both files.
    let source = value(&fields);
    let (bytes, events) = of_source(source.as_ref()).unwrap_or((tables.bytes, tables.n_events()));
    let codes = tables.diagnostics.iter().filter(|row| row.code.is_loss());
    let codes: Vec<_> = codes.map(|row| row.to_json()).collect();
    fields.retain(|(name, _)| name != FIELD);
    let losses = json!({"bytes": bytes, "events": events, "codes": codes});
    fields.push((FIELD.to_owned(), losses.to_string()));
    fields
}

/// Counts what was lost from the source, as recorded in a converted file.
pub(super) fn count_losses(fields: &[(String, String)], elements: &mut Elements<'_>) -> Result<()> {
    let Some(losses) = value(fields) else { return Ok(()) };
    match of_source(Some(&losses)).and(rows(&losses["codes"])) {
        Some(rows) => rows.into_iter().try_for_each(|row| elements.note_row(row)),
        None => elements.note(Code::MalformedHeader, 0),
    }
}

/// Returns the value of the field; the last of equal names counts.
fn value(fields: &[(String, String)]) -> Option<Value> {
    let (_, text) = fields.iter().rev().find(|(name, _)| name == FIELD)?;
    Some(serde_json::from_str(text).unwrap_or_default())
}

/// Returns the number of bytes and events of the source.
fn of_source(losses: Option<&Value>) -> Option<(u64, u64)> {
    let losses = losses?;
    Some((losses["bytes"].as_u64()?, losses["events"].as_u64()?))
}

fn rows(codes: &Value) -> Option<Vec<Diagnostic>> {
    let codes = codes.as_array().filter(|codes| codes.len() <= Code::ALL.len())?;
    codes.iter().map(Diagnostic::of_json).collect()
}
