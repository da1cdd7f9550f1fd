//! Reads Chrome metadata as header fields.
//!
//! Traces that longpole writes in this format contain the header fields of the original trace.

use serde_json::Value;

use super::fields::{
    CHROME_METADATA, METADATA_BOOLEAN, METADATA_INTEGER, METADATA_JSON, METADATA_NAME,
    METADATA_TEXT,
};
use crate::read::protobuf::{Wire, fields};

/// Reads the fields from a bundle of Chrome events. Returns whether the bundle contains nothing
/// else; `None` if it is not a valid message.
pub(super) fn take(bytes: &[u8], found: &mut Vec<(String, String)>) -> Option<bool> {
    let mut is_all = true;
    fields(bytes, |field, wire| {
        match (field, wire) {
            (CHROME_METADATA, Wire::Bytes(bytes)) => field_of(bytes, found)?,
            _ => is_all = false,
        }
        Some(())
    })?;
    Some(is_all)
}

/// Reads a name and its value as JSON, if there is one; `None` if it is not a valid message.
fn field_of(bytes: &[u8], found: &mut Vec<(String, String)>) -> Option<()> {
    let (mut name, mut value) = (String::new(), None);
    fields(bytes, |field, wire| {
        let text = || Some(String::from_utf8_lossy(wire.bytes()?).into_owned());
        match field {
            METADATA_NAME => name = text()?,
            METADATA_TEXT => value = Some(Value::from(text()?).to_string()),
            METADATA_BOOLEAN => value = Some((wire.number()? != 0).to_string()),
            METADATA_INTEGER => value = Some(wire.number()?.cast_signed().to_string()),
            METADATA_JSON => value = text().filter(|text| is_json(text)),
            _ => {}
        }
        Some(())
    })?;
    found.extend(value.map(|value| (name, value)));
    Some(())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
