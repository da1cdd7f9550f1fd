//! Reads NVTX ranges and marks: annotations, and the operators that
//! `torch.autograd.profiler.emit_nvtx` names.
//!
//! A range that one thread starts and another ends is placed on the thread that started it.

use super::device::number;
use super::export::{Export, INPUT_DIMS, RECORD_FUNCTION, SEQUENCE};
use super::torch_names::TorchName;
use crate::error::Result;
use crate::ids::StringId;
use crate::read::records::Record;
use crate::read::sqlite::Row;
use crate::tables::{ArgValue, EventKind};

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
