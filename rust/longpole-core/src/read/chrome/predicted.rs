//! Events whose text was predicted -> rows of tables.
//!
//! The collector says what it made of an event that the scanner read; later events of the
//! same shape become rows by that plan, and nothing about them is looked up again.

use super::arguments::{DEVICE, STREAM};
use super::collect::Collector;
use super::event::EventScanner;
use super::shapes::{EventPlan, Found, Name, Plan, Predictor};
use super::stream::EventStream;
use crate::ids::{EventId, StringId};
use crate::read::json::Keys;
use crate::tables::{ArgValue, EventKind, EventRow};

/// Where a run of predicted events ended.
pub(super) enum RunEnd {
    /// Behind an event.
    BehindEvent,
    /// Before an event that was not predicted, behind the comma at this byte of the file.
    BehindComma(u64),
}

/// Takes the predicted events at the front of the window, up to `max_events` in all; none where
/// the first one is not.
pub(super) fn take_run(
    stream: &mut EventStream<'_>,
    collector: &mut Collector,
    position: &mut u32,
    max_events: u64,
) -> Option<RunEnd> {
    let (window, keys) = (&stream.elements.window, &stream.scanner.argument_keys);
    let (mut at, mut taken) = (0, 0);
    let mut end = None;
    while collector.n_events() < max_events {
        let text = &window.text()[at..];
        let Some((shape, length)) = stream.predictor.read(text, &collector.strings) else { break };
        let predictor = &stream.predictor;
        let name =
            collector.add_predicted(predictor.plan(shape), &predictor.found, text, *position, keys);
        stream.predictor.advance(shape, name);
        *position = position.saturating_add(1);
        taken = at + length;
        end = Some(RunEnd::BehindEvent);
        let Some(gap) = comma_and_indent(&text[length..], &stream.indent) else { break };
        end = Some(RunEnd::BehindComma(window.offset() + taken as u64));
        at = taken + gap;
        taken += 1;
    }
    stream.elements.window.consume(taken);
    end
}

/// The length of a comma and the indent before the next event, if that is what stands there.
#[inline]
fn comma_and_indent(text: &[u8], indent: &[u8]) -> Option<usize> {
    let behind = text.strip_prefix(b",")?;
    let is_indented = indent.is_empty() || behind.starts_with(indent);
    (is_indented && behind.get(indent.len()) == Some(&b'{')).then_some(1 + indent.len())
}

/// Learns the shape of the event that was read last, of which nothing was to be said.
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
    /// What the event that was added last is, for others of its shape; none for those that
    /// are never predicted.
    fn plan(&mut self, scanner: &EventScanner, text: &[u8]) -> Option<Plan> {
        match scanner.draft.phase {
            b'X' | b'i' | b'I' | b'R' => self.event_plan(scanner, text).map(Plan::Event),
            phase @ (b's' | b't' | b'f') => {
                Some(Plan::Arrow { phase, source: self.flows.last_source_row()? })
            }
            b'M' => Some(Plan::Statement { row: self.last_statement }),
            _ => None,
        }
    }

    fn event_plan(&mut self, scanner: &EventScanner, text: &[u8]) -> Option<EventPlan> {
        let event = self.last_event()?;
        let (kind, category) = (self.events.kind(event), self.events.category(event));
        if kind == EventKind::CounterRange {
            return None;
        }
        let depends_on_name =
            category.is_some_and(|id| self.kinds.of(id, &self.strings).depends_on_name());
        let name = self.events.name(event).filter(|_| depends_on_name);
        let fixed = if kind.is_on_device() { Vec::new() } else { self.fixed(scanner, text) };
        let lane = self.events.lane(event);
        Some(EventPlan { phase: scanner.draft.phase, kind, category, name, lane, fixed })
    }

    /// The stream and the device of an event that stands on neither.
    fn fixed(&mut self, scanner: &EventScanner, text: &[u8]) -> Vec<(usize, ArgValue)> {
        let tokens = [(STREAM, scanner.draft.stream), (DEVICE, scanner.draft.device)];
        let values = tokens
            .into_iter()
            .filter_map(|(key, token)| Some((key.row()?, self.argument_value(token?, text)?)));
        values.collect()
    }

    fn last_event(&self) -> Option<EventId> {
        self.events.len().checked_sub(1).map(EventId::from_row)
    }

    fn last_name(&self) -> Option<StringId> {
        self.events.name(self.last_event()?)
    }

    /// Adds an event of a known shape; gives its name where that is not part of the shape.
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
                self.count(*phase);
                let id = found.arrow_id.map(ArgValue::Integer);
                let strings = &mut self.strings;
                self.flows.push(*phase, id, *source, found.start_ns, position, strings);
                None
            }
            Plan::Statement { row } => {
                self.count(b'M');
                self.metadata.repeat(*row, position);
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
        self.count(plan.phase);
        let name = found.name.map(|name| match name {
            Name::Known(id) => id,
            Name::At(span) => self.strings.intern_plain(span.of(text)),
        });
        let event = self.events.push(&EventRow {
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
        for &argument in &found.arguments {
            self.argument(keys, text, event, plan.category, argument);
        }
        for &(row, value) in &plan.fixed {
            let table = self.args.of_mut(plan.category);
            table.push(event, row, keys.name(row), value, &mut self.strings);
        }
        name
    }
}
