//! Reads NVTX ranges and marks: annotations, and the operators that
//! `torch.autograd.profiler.emit_nvtx` names.
//!
//! A range that one thread starts and another ends is placed on the thread that started it.

use super::device::number;
use super::export::{Export, INPUT_DIMS, RECORD_FUNCTION, SEQUENCE};
use crate::error::Result;
use crate::ids::StringId;
use crate::read::records::Record;
use crate::read::sqlite::Row;
use crate::tables::{ArgValue, EventKind};
use crate::vocabulary::{is_backward_node, is_engine_work};

pub(super) const RANGES: &str = "NVTX_EVENTS";

const RANGE: &[&str] = &["start", "end", "globalTid", "eventType", "textId", "text"];

/// The event types of ranges (push/pop, or start/end) of both libraries.
const RANGE_TYPES: &[i64] = &[59, 60, 70, 71];

/// The event types of marks.
const MARK_TYPES: &[i64] = &[34, 65];

/// The categories of the events made from NVTX ranges.
struct Categories {
    annotation: StringId,
    operator: StringId,
    mark: StringId,
}

impl Export<'_> {
    /// Reads ranges and marks.
    pub(super) fn ranges(&mut self) -> Result<()> {
        let [annotation, operator, mark] = ["user_annotation", "cpu_op", "nvtx_mark"]
            .map(|category| self.reading.records.tables.strings.intern(category));
        let categories = Categories { annotation, operator, mark };
        self.each(RANGES, RANGE, |export, row| {
            let kind = row.integer(3).unwrap_or(0);
            if RANGE_TYPES.contains(&kind) {
                export.range(row, &categories);
            } else if MARK_TYPES.contains(&kind) {
                let name = export.range_text(row);
                export.range_event(row, EventKind::Instant, categories.mark, name);
            }
        })
    }

    fn range(&mut self, row: &Row<'_>, categories: &Categories) {
        let text = self.range_text(row);
        let torch =
            text.and_then(|text| TorchName::of(self.reading.records.tables.strings.get(text)));
        let Some(torch) = torch else {
            self.range_event(row, EventKind::Annotation, categories.annotation, text);
            return;
        };
        let (kind, category) = if torch.is_operator {
            (EventKind::Operator, categories.operator)
        } else {
            (EventKind::Annotation, categories.annotation)
        };
        let strings = &mut self.reading.records.tables.strings;
        let (name, sizes) = (torch.name.clone(), torch.sizes.clone());
        let name = strings.intern(&name);
        let sizes = sizes.map(|sizes| ArgValue::Text(strings.intern(&sizes)));
        let event = self.range_event(row, kind, category, Some(name));
        let Some(event) = event else { return };
        let records = &mut self.reading.records;
        records.argument(event, category, RECORD_FUNCTION, number(Some(torch.id)));
        records.argument(event, category, SEQUENCE, number(torch.sequence));
        records.argument(event, category, INPUT_DIMS, sizes);
    }

    fn range_text(&mut self, row: &Row<'_>) -> Option<StringId> {
        match row.text(5) {
            Some(text) => Some(self.reading.records.text(text)),
            None => self.reading.text(row.integer(4)),
        }
    }

    fn range_event(
        &mut self,
        row: &Row<'_>,
        kind: EventKind,
        category: StringId,
        name: Option<StringId>,
    ) -> Option<crate::ids::EventId> {
        let [start_ns, end_ns, thread] = row.integers(0);
        let records = &mut self.reading.records;
        let lane = self.places.of_thread(thread, records);
        let correlation = None;
        records.add(&Record { kind, category, name, lane, start_ns, end_ns, correlation })
    }
}

// Parses the text that PyTorch writes into NVTX ranges:
// `aten::mm, seq = 3, op_id = 12, sizes = [[2, 3]]`.
//
// Limits: under `emit_nvtx` a user range has the same form as an operator. Operators are
// identified by their names: those with a namespace (`aten::mm`) and those of the autograd engine.

/// The operator with which PyTorch records a collective.
const COLLECTIVE_RECORD: &str = "record_param_comms";

/// A name written by PyTorch, and the values after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TorchName {
    pub(super) name: String,
    /// The number of the call, counted by PyTorch.
    pub(super) id: i64,
    pub(super) sequence: Option<i64>,
    pub(super) sizes: Option<String>,
    pub(super) is_operator: bool,
}

impl TorchName {
    /// Parses the text of a range, if PyTorch wrote it.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (front, behind) = text.split_once(", op_id = ")?;
        let (id, behind) = leading_number(behind)?;
        let (name, sequence) = match front.rsplit_once(", seq = ") {
            Some((name, digits)) => (name, Some(digits.parse().ok()?)),
            None => (front, None),
        };
        Some(Self {
            name: name.to_owned(),
            id,
            sequence,
            sizes: sizes_of(behind).ok()?,
            is_operator: is_of_namespace(name)
                || is_engine_work(name)
                || is_backward_node(name)
                || name == COLLECTIVE_RECORD,
        })
    }
}

/// Whether a name is that of an operator in a namespace, unlike `FSDP::pre_forward (layer.1)`.
fn is_of_namespace(name: &str) -> bool {
    name.contains("::")
        && name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && !name.contains(char::is_whitespace)
}

/// Returns the number at the front, and the text after it.
fn leading_number(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Returns the shapes of the inputs, if any; an error if the text is something else.
fn sizes_of(text: &str) -> std::result::Result<Option<String>, ()> {
    if text.is_empty() || text.starts_with(", input_op_ids = ") {
        return Ok(None);
    }
    let sizes = text.strip_prefix(", sizes = ").ok_or(())?;
    Ok(sizes.split(", input_op_ids = ").next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_told_by_its_name_and_numbers() {
        let text = "aten::mm, seq = 3, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(4,0)]";
        let name = TorchName::of(text).unwrap();
        assert_eq!((name.name.as_str(), name.id, name.sequence), ("aten::mm", 12, Some(3)));
        assert_eq!(name.sizes.as_deref(), Some("[[2, 3], []]"));
        assert!(name.is_operator);
        assert!(TorchName::of("AddmmBackward0, seq = 3, op_id = 7").unwrap().is_operator);
    }

    #[test]
    fn a_range_of_the_user_is_no_operator() {
        for text in ["forward, op_id = 5", "FSDP::pre_forward (layer.1), op_id = 5"] {
            assert!(!TorchName::of(text).unwrap().is_operator, "{text}");
        }
        for text in ["forward", "step, op_id = x", "a, op_id = 5 and more", ""] {
            assert_eq!(TorchName::of(text), None, "{text}");
        }
    }
}
