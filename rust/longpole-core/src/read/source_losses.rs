//! Records what was lost from the source of a converted trace, as a header field.
//!
//! A converted file is valid, although events of its source may be missing. It therefore records
//! what was lost, and from how many bytes and events. Reading it reports the same losses, and files
//! converted from it record them again.

use serde_json::{Value, json};

use super::chrome::sound_value;
use super::elements::Elements;
use crate::diagnostics::{Code, Diagnostic};
use crate::error::Result;
use crate::tables::Tables;

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
pub(super) fn count(fields: &[(String, String)], elements: &mut Elements<'_>) -> Result<()> {
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
