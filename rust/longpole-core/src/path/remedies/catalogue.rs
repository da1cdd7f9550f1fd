//! The remedies that are tried, with the changes that stand for them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::functions::Function;
use super::model::{HOST, Remedy, RemedyKind, Side, dropped};
use super::question::Question;
use super::rule::Ruling;
use crate::graph::{Kind, pattern_of};
use crate::ids::{EventId, StringId};
use crate::path::what_if::{Change, Effect, Ratio};
use crate::tables::EventKind;
use crate::vocabulary::{ApiRole, OTHER, kernel_family};

/// So many kernels and families of them are asked about: those with most time on the path.
const MOST_NAMES: usize = 7;

/// The remedies as a whole.
pub(super) fn whole(question: &Question<'_>, function: Option<&Function>) -> Vec<Remedy> {
    let waits = |kind| vec![Change::of_kind(Effect::RemoveWait, kind)];
    let of_kinds = |kinds: &'static [Kind]| question.time_on_path(|kind| kinds.contains(&kind));
    let host_work: Vec<_> = HOST[1..].iter().copied().map(dropped).collect();
    let mut remedies = vec![
        Remedy::new(RemedyKind::DataLoading, None, vec![dropped(Kind::DataLoading)])
            .shown_by(of_kinds(&[Kind::DataLoading])),
        Remedy::new(RemedyKind::BlockingCalls, None, waits(Kind::SyncReturn))
            .shown_by(of_kinds(&[Kind::SyncReturn])),
        Remedy::new(RemedyKind::Copies, None, Side::Copies.removed())
            .shown_by(of_kinds(&[Kind::Copy])),
        Remedy::new(RemedyKind::Communication, None, Side::Communication.removed())
            .shown_by(of_kinds(&[Kind::Communication])),
        Remedy::new(RemedyKind::StreamWaits, None, waits(Kind::EventWait))
            .shown_by(of_kinds(&[Kind::EventWait])),
        Remedy::new(RemedyKind::HostWork, None, host_work).shown_by(of_kinds(&HOST[1..])),
        Remedy::new(RemedyKind::Kernels, None, vec![halved(None)])
            .shown_by(of_kinds(&[Kind::Kernel])),
    ];
    remedies.extend(allocation(question));
    remedies.extend(function.map(|function| {
        let free = Effect::Scale(Ratio::ZERO);
        let events = Some(function.events.clone());
        let inside = Change { effect: free, kind: None, event_kind: None, matching: None, events };
        let name = question.tables.strings.get(function.name).to_owned();
        let remedy = Remedy::new(RemedyKind::Function, Some(name), vec![inside]);
        remedy.shown_by(function.events.iter().map(|&event| (event, duration_ns(event, question))))
    }));
    remedies
}

fn duration_ns(event: EventId, question: &Question<'_>) -> i64 {
    question.tables.events.duration_ns(event).unwrap_or(0)
}

/// Allocating takes no time and waits for nothing.
fn allocation(question: &Question<'_>) -> Option<Remedy> {
    let roles = question.tables.roles();
    let allocates = |role: ApiRole| {
        matches!(role, ApiRole::Allocate | ApiRole::StreamOrderedAllocate | ApiRole::Free)
    };
    let timeline = &question.graph.timeline;
    let calls: Vec<_> = timeline
        .orders()
        .filter(|&call| timeline.kind(call).is_call())
        .filter(|&call| timeline.name(call).is_some_and(|name| allocates(roles[name.row()])))
        .map(|call| timeline.event(call))
        .collect();
    if calls.is_empty() {
        return None;
    }
    let change = |effect, kind| Change {
        effect,
        kind: Some(kind),
        event_kind: None,
        matching: None,
        events: Some(calls.clone()),
    };
    let changes = vec![
        change(Effect::Scale(Ratio::ZERO), Kind::Runtime),
        change(Effect::RemoveWait, Kind::SyncReturn),
    ];
    let times = calls.iter().map(|&call| (call, duration_ns(call, question)));
    Some(Remedy::new(RemedyKind::Allocation, None, changes).shown_by(times))
}

fn halved(matching: Option<String>) -> Change {
    Change { matching, ..Change::of_kind(Effect::Scale(Ratio::HALF), Kind::Kernel) }
}

/// Kernels at half their time, by family and by name: those with most time on the path.
pub(super) fn kernels(question: &Question<'_>) -> Vec<Remedy> {
    let strings = &question.tables.strings;
    let times = question.time_on_path(|kind| kind == Kind::Kernel);
    let mut of_name: BTreeMap<StringId, Vec<(EventId, i64)>> = BTreeMap::new();
    for (event, ns) in times {
        if let Some(name) = question.tables.events.name(event) {
            of_name.entry(name).or_default().push((event, ns));
        }
    }
    let mut of_family: BTreeMap<&str, Vec<(EventId, i64)>> = BTreeMap::new();
    for (name, times) in &of_name {
        of_family.entry(kernel_family(strings.get(*name))).or_default().extend(times);
    }
    let all: Vec<_> =
        kernel_names(question).into_iter().map(|name| (kernel_family(name), name)).collect();
    let families = most(of_family).into_iter().map(|(of, times)| {
        let of_this = all.iter().filter(|(family, _)| *family == of);
        let names: Vec<_> = of_this.map(|(_, name)| *name).collect();
        part(of.to_owned(), &names, times)
    });
    let names = most(of_name).into_iter().map(|(name, times)| {
        let name = strings.get(name);
        part(name.to_owned(), &[name], times)
    });
    families.chain(names).collect()
}

fn most<Key: Ord>(of: BTreeMap<Key, Vec<(EventId, i64)>>) -> Vec<(Key, Vec<(EventId, i64)>)> {
    let mut rows: Vec<_> = of.into_iter().collect();
    rows.sort_by_key(|(_, times)| Reverse(times.iter().map(|(_, ns)| ns).sum::<i64>()));
    rows.truncate(MOST_NAMES);
    rows
}

fn part(name: String, names: &[&str], times: Vec<(EventId, i64)>) -> Remedy {
    let pattern = pattern_of(names);
    Remedy::new(RemedyKind::Kernels, Some(name), vec![halved(Some(pattern))])
        .shown_by(times.into_iter())
}

/// The names of all kernels in the trace, in order.
fn kernel_names<'a>(question: &Question<'a>) -> Vec<&'a str> {
    let timeline = &question.graph.timeline;
    let mut is_kernel = vec![false; question.tables.strings.len()];
    for kernel in timeline.orders().filter(|&work| timeline.kind(work) == EventKind::Kernel) {
        if let Some(name) = timeline.name(kernel) {
            is_kernel[name.row()] = true;
        }
    }
    let names = question.tables.strings.iter().zip(is_kernel).filter(|(_, is_kernel)| *is_kernel);
    let mut names: Vec<_> = names.map(|(name, _)| name).collect();
    names.sort_unstable();
    names
}

/// Places that block are named until they gain this share of what all of them do.
const ENOUGH_OF_ALL: f64 = 0.8;

/// Marks what a ruling names, and the parts of it that have most.
pub(super) fn name(remedies: &mut [Remedy], ruling: &Ruling) {
    let is_named = |kind| ruling.remedies.contains(&kind) || ruling.waits.contains(&kind);
    let all_blocking = remedies
        .iter()
        .find(|remedy| remedy.kind == RemedyKind::BlockingCalls)
        .map_or(0.0, |remedy| remedy.gain);
    let mut reached = 0.0;
    let mut family_named = false;
    for remedy in remedies {
        let kind = remedy.kind;
        remedy.named = match (kind, &remedy.name) {
            (RemedyKind::Function, _) => ruling.sides.contains(&Side::Host) && !ruling.waits_lead,
            (RemedyKind::BlockingCalls, Some(_)) => {
                let more = reached < ENOUGH_OF_ALL * all_blocking;
                reached = remedy.cumulative.unwrap_or(reached);
                more && is_named(kind)
            }
            (RemedyKind::Kernels, Some(name)) => {
                let is_first = !family_named && name != OTHER;
                family_named |= is_first;
                is_first && is_named(kind)
            }
            _ => is_named(kind),
        };
    }
}
