//! The usual what-if questions about one window.

use std::collections::BTreeMap;

use super::walk::Path;
use super::what_if::{what_if, Change, Effect, Ratio};
use super::windows::Window;
use crate::error::Result;
use crate::graph::{Graph, Kind};
use crate::ids::StringId;
use crate::progress::Progress;
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// A question about a better world, and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Ideal {
    /// The question in words.
    pub question: &'static str,
    /// The kind it is about.
    pub kind: Option<Kind>,
    /// The name it is about.
    pub name: Option<StringId>,
    /// How long the window would take.
    pub makespan_ns: i64,
}

/// So many names of one kind are asked about: those with most time on the path. Who
/// wants to know of another asks for it.
const MOST_NAMES: usize = 8;

/// A name with less than one part in this many of the path is not asked about: nothing
/// gains more than it has of the path.
const LEAST_PART: i64 = 1_000;

/// What the window would take if this or that were free: the real long poles, the
/// greatest gain first.
///
/// # Errors
///
/// Only when `progress` asks to stop.
pub fn ideal(
    graph: &Graph,
    tables: &Tables,
    window: &Window,
    path: &Path,
    lags_ns: &[i64],
    progress: Progress<'_>,
) -> Result<Vec<Ideal>> {
    let mut answers = Vec::new();
    for (question, name, change) in questions(graph, tables, path) {
        let kind = change.kind;
        let answer = what_if(graph, tables, window, lags_ns, &[change], progress)?;
        answers.push(Ideal { question, kind, name, makespan_ns: answer.makespan_ns });
    }
    answers.sort_by_key(|answer| answer.makespan_ns);
    Ok(answers)
}

type Question = (&'static str, Option<StringId>, Change);

fn questions(graph: &Graph, tables: &Tables, path: &Path) -> Vec<Question> {
    let of_kind = |question, kind, effect| {
        (question, None, Change { effect, kind: Some(kind), matching: None })
    };
    let free = Effect::Scale(Ratio::ZERO);
    let mut questions = vec![
        of_kind("launches took no time", Kind::Launch, free),
        of_kind("calls took no time", Kind::Runtime, free),
        of_kind("there were no gaps on the host", Kind::HostGap, free),
        of_kind("data loading took no time", Kind::DataLoading, free),
        of_kind("communication was overlapped", Kind::Communication, free),
        of_kind("copies took no time", Kind::Copy, free),
        of_kind("no call waited for the device", Kind::SyncReturn, Effect::RemoveWait),
        of_kind("no stream waited for another", Kind::EventWait, Effect::RemoveWait),
    ];
    let half = Effect::Scale(Ratio::HALF);
    for kind in [Kind::Kernel, Kind::Operator, Kind::Runtime, Kind::DataLoading] {
        let names = longest_names(tables, path, kind);
        questions.extend(names.into_iter().map(|name| {
            let matching = Some(exactly(tables.strings.get(name)));
            (
                "this took half the time",
                Some(name),
                Change { effect: half, kind: Some(kind), matching },
            )
        }));
    }
    questions.extend(waiting_names(graph, tables).into_iter().map(|name| {
        let matching = Some(exactly(tables.strings.get(name)));
        let change = Change { effect: Effect::RemoveWait, kind: Some(Kind::SyncReturn), matching };
        ("this did not wait", Some(name), change)
    }));
    questions
}

/// A pattern that is found in one name only.
fn exactly(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}

/// The names of a kind with most time on the path.
fn longest_names(tables: &Tables, path: &Path, kind: Kind) -> Vec<StringId> {
    let mut time_ns: BTreeMap<StringId, i64> = BTreeMap::new();
    for segment in path.segments.iter().filter(|segment| segment.kind == kind) {
        if let Some(name) = segment.event.and_then(|event| tables.events.name(event)) {
            *time_ns.entry(name).or_default() += segment.duration_ns();
        }
    }
    let length_ns = path.end_ns - path.start_ns;
    let mut names: Vec<_> =
        time_ns.into_iter().filter(|&(_, ns)| ns > length_ns / LEAST_PART).collect();
    names.sort_by_key(|&(name, ns)| (std::cmp::Reverse(ns), tables.strings.get(name)));
    names.into_iter().take(MOST_NAMES).map(|(name, _)| name).collect()
}

/// The names of calls that waited for a device somewhere.
fn waiting_names(graph: &Graph, tables: &Tables) -> Vec<StringId> {
    let roles = tables.roles();
    let mut names: Vec<_> = graph
        .edges
        .as_slice()
        .iter()
        .filter(|edge| edge.role.waits() == Some(Kind::SyncReturn))
        .filter_map(|edge| graph.timeline.name(graph.nodes.event(edge.target)))
        .filter(|name| roles[name.row()] != ApiRole::Query)
        .collect();
    names.sort_by_key(|&name| tables.strings.get(name));
    names.dedup();
    names.truncate(MOST_NAMES);
    names
}
