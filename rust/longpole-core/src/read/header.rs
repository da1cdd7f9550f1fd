//! Header fields of the trace, at any position in the file.

use serde_json::Value;

use crate::diagnostics::Code;
use crate::read::json::starts_with_key;
use crate::tables::Header;

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
