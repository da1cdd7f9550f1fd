//! What was lost of the file that a trace was converted from, as a field of the header.
//!
//! A converted file is sound, though events of its source may be missing. So it says what was lost,
//! of how many bytes and events; reading it finds the same, and so does whatever is written of it.

use serde_json::{Value, json};

use super::chrome::sound_value;
use super::elements::Elements;
use crate::diagnostics::{Code, Diagnostic};
use crate::error::Result;
use crate::tables::Tables;

/// The name of the field.
const FIELD: &str = "longpole.losses";

/// The fields of a header as sound JSON, with what was lost of the trace, if anything was, as the
/// last one.
pub(crate) fn with_losses(
    fields: impl Iterator<Item = (String, String)>,
    tables: &Tables,
) -> Vec<(String, String)> {
    let mut fields: Vec<_> = fields.map(|(name, value)| (name, sound_value(&value))).collect();
    if !tables.diagnostics.iter().any(|row| row.code.is_loss()) {
        return fields;
    }
    // A trace of a converted file has the losses of both.
    let source = value(&fields);
    let (bytes, events) = of_source(source.as_ref()).unwrap_or((tables.bytes, tables.n_events()));
    let codes = tables.diagnostics.iter().filter(|row| row.code.is_loss());
    let codes: Vec<_> = codes.map(|row| row.to_json()).collect();
    fields.retain(|(name, _)| name != FIELD);
    let losses = json!({"bytes": bytes, "events": events, "codes": codes});
    fields.push((FIELD.to_owned(), losses.to_string()));
    fields
}

/// Counts what was lost of the source, as a converted file says.
pub(super) fn count(fields: &[(String, String)], elements: &mut Elements<'_>) -> Result<()> {
    let Some(losses) = value(fields) else { return Ok(()) };
    match of_source(Some(&losses)).and(rows(&losses["codes"])) {
        Some(rows) => rows.into_iter().try_for_each(|row| elements.note_row(row)),
        None => elements.note(Code::MalformedHeader, 0),
    }
}

/// The last of equal names counts.
fn value(fields: &[(String, String)]) -> Option<Value> {
    let (_, text) = fields.iter().rev().find(|(name, _)| name == FIELD)?;
    Some(serde_json::from_str(text).unwrap_or_default())
}

/// The bytes and the events of the source.
fn of_source(losses: Option<&Value>) -> Option<(u64, u64)> {
    let losses = losses?;
    Some((losses["bytes"].as_u64()?, losses["events"].as_u64()?))
}

fn rows(codes: &Value) -> Option<Vec<Diagnostic>> {
    let codes = codes.as_array().filter(|codes| codes.len() <= Code::ALL.len())?;
    codes.iter().map(Diagnostic::of_json).collect()
}
