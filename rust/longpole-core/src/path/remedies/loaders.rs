//! Determines where data is loaded: on the main thread, or in workers that it waits for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::question::Question;
use crate::graph::Kind;
use crate::ids::EventId;
use crate::names::named;

named! {
    /// Where data is loaded.
    Loader {
        /// The thread that launches GPU activities loads data itself.
        MainThread "main_thread",
        /// Worker processes load data.
        Workers "workers",
        /// A data loader that is not from PyTorch.
        Own "own",
    }
}

/// Returns the loader of most data-loading time on the paths, according to the PyTorch iterator
/// around or inside each data-loading segment; `None` without such segments.
pub(super) fn loader(question: &Question<'_>) -> Option<Loader> {
    let iterators: Vec<_> = question.tables.strings.iter().map(iterator).collect();
    let of_event = |event: EventId| {
        let name = question.tables.events.name(event)?;
        iterators[name.row()]
    };
    let around = |event: EventId| {
        let mut enclosing =
            std::iter::successors(Some(event), |&event| question.nesting.parent(event));
        enclosing.find_map(of_event)
    };
    let inside = iterators_inside(question, &iterators);
    let mut times_ns: BTreeMap<Loader, i64> = BTreeMap::new();
    for (event, ns) in question.time_on_path(|kind| kind == Kind::DataLoading) {
        let loader = around(event).or_else(|| inside.get(&event).copied()).unwrap_or(Loader::Own);
        *times_ns.entry(loader).or_default() += ns;
    }
    times_ns.into_iter().max_by_key(|&(loader, ns)| (ns, Reverse(loader))).map(|(loader, _)| loader)
}

/// Returns the loader of the iterator with a given name.
fn iterator(name: &str) -> Option<Loader> {
    if name.contains("_MultiProcessingDataLoaderIter") {
        Some(Loader::Workers)
    } else if name.contains("_SingleProcessDataLoaderIter") {
        Some(Loader::MainThread)
    } else {
        None
    }
}

/// Returns the events in which a PyTorch iterator is open, with its loader. Frames such as
/// `dataloader.py(628): __next__` do not identify the loader themselves.
fn iterators_inside(
    question: &Question<'_>,
    iterators: &[Option<Loader>],
) -> HashMap<EventId, Loader> {
    let events = &question.tables.events;
    let mut found = HashMap::new();
    for event in events.ids() {
        let Some(loader) = events.name(event).and_then(|name| iterators[name.row()]) else {
            continue;
        };
        let mut outer = question.nesting.parent(event);
        while let Some(parent) = outer.filter(|parent| !found.contains_key(parent)) {
            found.insert(parent, loader);
            outer = question.nesting.parent(parent);
        }
    }
    found
}
