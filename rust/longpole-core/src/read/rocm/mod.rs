//! Reads the files of the ROCm profilers: `rocpd` databases, JSON and CSV of `rocprofv3`, CSV of
//! the older `rocprof`, and databases of rocmProfileData. `chrome` reads the timeline of `rocprof`.
//!
//! The formats of `rocprofv3` contain the same records: kernel dispatches, memory copies, calls of the
//! HIP and HSA interfaces, and `ROCTx` markers. A call and its activities have a common correlation
//! id.
//!
//! Limits: no format records what a call waited for, or a rank. Grids are converted to blocks, as
//! in HIP, if the file has work items.

mod activities;
mod csv;
mod document;
mod fields;
mod layout;
mod rocpd;
mod rpd;
mod timeline;

pub(super) use csv::{is_csv, read as read_csv};
pub(super) use document::read as read_document;
pub(super) use rocpd::{is_rocpd, read as read_rocpd};
pub(super) use rpd::{is_rpd, read as read_rpd};
pub(super) use timeline::interpret;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::{EventId, StringId};
use crate::tables::{EventTable, Tables};
use crate::vocabulary::{EventKind, blit_call, blit_kernel};

// Changes kernels of the HIP runtime that perform a memset or memcpy to that kind.
//
// HIP performs many memsets and memcpys with its own kernels, and most versions of its profilers
// record these as kernels. The call with the same correlation id shows what the program requested.
// If that call was not recorded, as for the nodes of a graph, or if several calls with the id
// disagree, the event remains a kernel.

/// The operation that the calls with a correlation id request.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    ByNoCall,
    For(EventKind),
    Unclear,
}

pub(super) fn interpret_blits(tables: &mut Tables) {
    let kernels = named(tables, blit_kernel);
    if kernels.is_empty() {
        return;
    }
    let found = performed(tables, &kernels);
    let events = Arc::make_mut(&mut tables.events);
    for (event, kind) in found {
        events.assign_kind(event, kind);
    }
}

/// Returns the names with a meaning.
fn named(
    tables: &Tables,
    meaning: impl Fn(&str) -> Option<EventKind>,
) -> HashMap<StringId, EventKind> {
    let names = tables.strings.iter().enumerate();
    names.filter_map(|(row, name)| Some((StringId::from_row(row), meaning(name)?))).collect()
}

/// Returns the kernels that do what their call requests.
fn performed(tables: &Tables, kernels: &HashMap<StringId, EventKind>) -> Vec<(EventId, EventKind)> {
    let events = &*tables.events;
    let does = |event| Some((event, *kernels.get(&events.name(event)?)?, number(event, events)?));
    let of_kind = |wanted| events.ids().filter(move |&event| events.kind(event) == wanted);
    let works: Vec<_> = of_kind(EventKind::Kernel).filter_map(does).collect();
    let mut asked: HashMap<_, _> =
        works.iter().map(|&(.., number)| (number, Asked::ByNoCall)).collect();
    let calls = named(tables, blit_call);
    for call in of_kind(EventKind::Runtime) {
        let own = events.name(call).and_then(|name| calls.get(&name).copied());
        if let Some(known) = number(call, events).and_then(|number| asked.get_mut(&number)) {
            *known = match (*known, own) {
                (Asked::ByNoCall, Some(own)) => Asked::For(own),
                (Asked::For(other), Some(own)) if other == own => Asked::For(own),
                _ => Asked::Unclear,
            };
        }
    }
    let is_asked = |&(_, kind, number): &(_, _, i64)| asked[&number] == Asked::For(kind);
    works.into_iter().filter(is_asked).map(|(event, kind, _)| (event, kind)).collect()
}

/// Returns the correlation id of an event; `None` for 0.
fn number(event: EventId, events: &EventTable) -> Option<i64> {
    events.correlation(event).filter(|&number| number != 0)
}
