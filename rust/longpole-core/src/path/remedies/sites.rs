//! The places in the program whose calls wait for the device.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::model::{Remedy, RemedyKind};
use super::question::Question;
use crate::graph::{Evidence, Kind};
use crate::ids::{EventId, StringId};
use crate::path::what_if::{Change, Effect};
use crate::tables::EventKind;
use crate::vocabulary::is_own_frame;

/// So many places are asked about: those that waited longest.
const MOST_SITES: usize = 8;

/// The calls that waited for a device within the windows, by the operators and functions
/// around them, the longest first.
pub(super) fn sites(question: &Question<'_>) -> Vec<Remedy> {
    let mut of_place: BTreeMap<Vec<StringId>, Vec<(EventId, i64)>> = BTreeMap::new();
    for (call, waited_ns) in waiting_calls(question) {
        of_place.entry(around(call, question)).or_default().push((call, waited_ns));
    }
    let mut places: Vec<_> = of_place.into_values().collect();
    let waited_ns = |calls: &Vec<(EventId, i64)>| calls.iter().map(|(_, ns)| ns).sum::<i64>();
    places.sort_by_key(|calls| (Reverse(waited_ns(calls)), calls[0].0));
    places.truncate(MOST_SITES);
    places.into_iter().map(|calls| site(calls, question)).collect()
}

fn site(calls: Vec<(EventId, i64)>, question: &Question<'_>) -> Remedy {
    let events = calls.iter().map(|&(call, _)| call).collect();
    let kind = Some(Kind::SyncReturn);
    let change = Change { kind, ..Change::of_events(Effect::RemoveWait, events) };
    let name = name_of(calls[0].0, question);
    Remedy::new(RemedyKind::BlockingCalls, Some(name), vec![change]).shown_by(calls.into_iter())
}

/// The calls, each once, with the time that they took.
fn waiting_calls(question: &Question<'_>) -> Vec<(EventId, i64)> {
    let graph = question.graph;
    let windows = &question.scope.windows;
    let first_ns = windows.first().map_or(i64::MIN, |window| window.start_ns);
    let last_ns = windows.last().map_or(i64::MAX, |window| window.end_ns);
    let mut calls: Vec<_> = graph
        .edges
        .as_slice()
        .iter()
        .filter(|edge| edge.role.waits() == Some(Kind::SyncReturn))
        .filter(|edge| edge.evidence != Evidence::None)
        .filter(|edge| (first_ns..=last_ns).contains(&graph.nodes.time_ns(edge.target)))
        .map(|edge| graph.nodes.event(edge.target))
        .map(|call| (graph.timeline.event(call), graph.timeline.duration_ns(call)))
        .collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// The names of the call and of the operators and functions around it, from the inside.
fn around(call: EventId, question: &Question<'_>) -> Vec<StringId> {
    let events = &question.tables.events;
    let names_place = |&event: &EventId| events.kind(event) != EventKind::Annotation;
    ancestors(call, question).filter(names_place).filter_map(|event| events.name(event)).collect()
}

/// The event and all that enclose it, from the inside.
fn ancestors<'q>(event: EventId, question: &'q Question<'_>) -> impl Iterator<Item = EventId> + 'q {
    std::iter::successors(Some(event), |&event| question.nesting.parent(event))
}

/// What a reader knows the place by: the outermost operator, and the function that calls it.
fn name_of(call: EventId, question: &Question<'_>) -> String {
    let (events, strings) = (&question.tables.events, &question.tables.strings);
    let text = |event| events.name(event).map_or("", |name| strings.get(name));
    let first_frame = || {
        let is_frame = |&event: &EventId| events.kind(event) == EventKind::Python;
        ancestors(call, question).filter(is_frame).map(text).find(|name| is_own_frame(name))
    };
    let is_operator = |&event: &EventId| events.kind(event) == EventKind::Operator;
    let operator = ancestors(call, question)
        .take_while(|&event| events.kind(event) != EventKind::Python)
        .filter(is_operator)
        .last();
    let what = operator.map_or_else(|| text(call), text);
    match first_frame() {
        Some(frame) => format!("{what} in {frame}"),
        None => what.to_owned(),
    }
}
