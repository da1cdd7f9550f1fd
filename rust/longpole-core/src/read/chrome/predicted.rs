//! Turns events with a predicted text into table rows.
//!
//! The collector records what it did with an event from the scanner as a plan. Later events of the
//! same shape become rows by that plan, without further lookups.

use super::arguments::{DEVICE, STREAM};
use super::collect::{Collector, argument_value};
use super::event::EventScanner;
use super::shapes::{EventPlan, Found, Name, Plan, Predictor, begins_with};
use super::stream::EventStream;
use crate::ids::{EventId, StringId};
use crate::read::json::Keys;
use crate::tables::{ArgValue, EventKind, EventRow};

/// How a run of predicted events ended.
pub(super) enum RunEnd {
    /// After an event.
    BehindEvent,
    /// Before an event that was not predicted, after the comma at this offset.
    BehindComma(u64),
}

/// Reads the predicted events at the front of the window, up to `max_events` in total; `None` if
/// the first one is not predicted.
pub(super) fn take_run(
    stream: &mut EventStream<'_>,
    collector: &mut Collector,
    position: &mut u32,
    max_events: u64,
) -> Option<RunEnd> {
    let EventStream { elements, scanner, predictor, indent } = stream;
    let (offset, whole) = (elements.window.offset(), elements.window.text());
    let mut text = whole;
    let mut end = None;
    while collector.tables.n_events < max_events {
        let Some((shape, length)) = predictor.read(text, &collector.tables.strings) else { break };
        let (plan, found) = (predictor.plan(shape), &predictor.found);
        let name = collector.add_predicted(plan, found, text, *position, &scanner.argument_keys);
        predictor.advance(shape, name);
        *position = position.saturating_add(1);
        text = &text[length..];
        let taken = whole.len() - text.len();
        let Some(gap) = comma_and_indent(text, indent) else {
            end = Some((taken, RunEnd::BehindEvent));
            break;
        };
        end = Some((taken + 1, RunEnd::BehindComma(offset + taken as u64)));
        text = &text[gap..];
    }
    let (taken, end) = end?;
    elements.window.consume(taken);
    Some(end)
}

/// Returns the length of a comma and the indent before the next event, if they are next in the
/// text.
#[inline]
fn comma_and_indent(text: &[u8], indent: &[u8]) -> Option<usize> {
    let behind = text.strip_prefix(b",")?;
    let is_event = begins_with(behind, indent) && behind.get(indent.len()) == Some(&b'{');
    is_event.then_some(1 + indent.len())
}

/// Learns the shape of the last event, if it had no findings.
pub(super) fn learn(
    predictor: &mut Predictor,
    collector: &mut Collector,
    scanner: &EventScanner,
    text: &[u8],
) {
    if !predictor.is_patient() {
        return predictor.forget();
    }
    let Some(plan) = collector.plan(scanner, text) else { return predictor.forget() };
    let name = match &plan {
        Plan::Event(EventPlan { name: None, .. }) => collector.last_name(),
        _ => None,
    };
    predictor.learn(text, name, plan, (&scanner.argument_keys, &scanner.wanted));
}

impl Collector {
    /// Returns the plan of the event that was added last; `None` for events that are never
    /// predicted.
    fn plan(&mut self, scanner: &EventScanner, text: &[u8]) -> Option<Plan> {
        match scanner.draft.phase {
            b'X' | b'i' | b'I' | b'R' => self.event_plan(scanner, text).map(Plan::Event),
            phase @ (b's' | b't' | b'f') => {
                Some(Plan::Arrow { phase, source: self.tables.flows.last_source_row()? })
            }
            b'M' => Some(Plan::Statement { row: self.last_statement }),
            _ => None,
        }
    }

    fn event_plan(&mut self, scanner: &EventScanner, text: &[u8]) -> Option<EventPlan> {
        let event = self.last_event()?;
        let (kind, category) = (self.tables.events.kind(event), self.tables.events.category(event));
        if kind == EventKind::CounterRange {
            return None;
        }
        let depends_on_name =
            category.is_some_and(|id| self.kinds.of(id, &self.tables.strings).depends_on_name());
        let name = self.tables.events.name(event).filter(|_| depends_on_name);
        let fixed = if kind.is_on_device() { Vec::new() } else { self.fixed(scanner, text) };
        let lane = self.tables.events.lane(event);
        Some(EventPlan { phase: scanner.draft.phase, kind, category, name, lane, fixed })
    }

    /// Returns the stream and device arguments of an event that is not on a device.
    fn fixed(&mut self, scanner: &EventScanner, text: &[u8]) -> Vec<(usize, ArgValue)> {
        let tokens = [(STREAM, scanner.draft.stream), (DEVICE, scanner.draft.device)];
        let values = tokens.into_iter().filter_map(|(key, token)| {
            Some((key.row()?, argument_value(token?, text, &mut self.tables.strings)?))
        });
        values.collect()
    }

    fn last_event(&self) -> Option<EventId> {
        self.tables.events.len().checked_sub(1).map(EventId::from_row)
    }

    fn last_name(&self) -> Option<StringId> {
        self.tables.events.name(self.last_event()?)
    }

    /// Adds an event of a known shape. Returns its name if that is not part of the shape.
    #[inline]
    fn add_predicted(
        &mut self,
        plan: &Plan,
        found: &Found,
        text: &[u8],
        position: u32,
        keys: &Keys,
    ) -> Option<StringId> {
        match plan {
            Plan::Event(plan) => self.predicted_event(plan, found, text, position, keys),
            Plan::Arrow { phase, source } => {
                self.tables.count(*phase);
                let id = found.arrow_id.map(ArgValue::Integer);
                let strings = &mut self.tables.strings;
                self.tables.flows.push(*phase, id, *source, found.start_ns, position, strings);
                None
            }
            Plan::Statement { row } => {
                self.tables.count(b'M');
                self.tables.metadata.repeat(*row, position);
                self.note_statement(*row, position);
                None
            }
        }
    }

    #[inline]
    fn predicted_event(
        &mut self,
        plan: &EventPlan,
        found: &Found,
        text: &[u8],
        position: u32,
        keys: &Keys,
    ) -> Option<StringId> {
        self.tables.count(plan.phase);
        let name = found.name.map(|name| match name {
            Name::Known(id) => id,
            Name::At(span) => self.tables.strings.intern_plain(span.of(text)),
        });
        let event = self.tables.events.push(&EventRow {
            kind: plan.kind,
            category: plan.category,
            name: name.or(plan.name),
            lane: plan.lane,
            start_ns: found.start_ns,
            duration_ns: found.duration_ns,
            correlation: found.correlation,
            external_id: found.external_id,
            position,
        });
        if !found.arguments.is_empty() || !plan.fixed.is_empty() {
            self.predicted_arguments(plan, found, text, event, keys);
        }
        name
    }

    /// Adds the arguments of an event that has not got any yet.
    fn predicted_arguments(
        &mut self,
        plan: &EventPlan,
        found: &Found,
        text: &[u8],
        event: EventId,
        keys: &Keys,
    ) {
        let (table, strings) = (self.tables.args.of_mut(plan.category), &mut self.tables.strings);
        let row = table.add_row(event);
        for argument in &found.arguments {
            // Values in holes are never null.
            if let Some(value) = argument_value(argument.token, text, strings) {
                table.set(row, argument.row, keys.name(argument.row), value, strings);
            }
        }
        for &(key, value) in &plan.fixed {
            table.set(row, key, keys.name(key), value, strings);
        }
    }
}
