//! Detects the profiler that wrote a trace, so that advice can mention its options.
//!
//! The `profiler` field decides if there is one; longpole writes it when it converts other files.
//! Otherwise, the file format or the names of processes decide. A trace without these is assumed to
//! be from PyTorch; its device type follows from the names of its runtime API calls or the versions
//! in its header.

use crate::ids::StringId;
use crate::names::Names;
use crate::tables::Tables;
use crate::vocabulary::{Layer, Profiler};

/// Returns the profiler that wrote a trace.
pub fn profiler(tables: &Tables) -> Profiler {
    let mut is_telling = false;
    let mut found = Profiler::Msprof;
    for name in process_names(tables) {
        let Some(layer) = Layer::of_process(name) else { continue };
        is_telling |= layer.is_telling(name);
        found = Profiler::of_process(name).unwrap_or(found);
    }
    said(tables)
        .or_else(|| Profiler::of_format(tables.header.format))
        .unwrap_or_else(|| if is_telling { found } else { of_torch(tables) })
}

/// Detects the device type by the names of runtime API calls, otherwise by header fields; CUDA
/// takes precedence.
fn of_torch(tables: &Tables) -> Profiler {
    let first = |named: Vec<Profiler>| {
        Profiler::ALL.iter().copied().find(|profiler| named.contains(profiler))
    };
    let fields = tables.header.fields.iter();
    first(tables.strings.iter().filter_map(Profiler::of_call).collect())
        .or_else(|| first(fields.filter_map(|(name, _)| Profiler::of_field(name)).collect()))
        .unwrap_or(Profiler::TorchUnknown)
}

/// Returns the profiler according to the header.
fn said(tables: &Tables) -> Option<Profiler> {
    let (_, text) = tables.header.fields.iter().rev().find(|(name, _)| name == "profiler")?;
    Profiler::named(text.trim().trim_matches('"'))
}

fn process_names(tables: &Tables) -> impl Iterator<Item = &str> {
    let (metadata, strings) = (&tables.metadata, &tables.strings);
    let wanted = strings.lookup("process_name");
    (0..metadata.len())
        .filter(move |&row| wanted.is_some() && StringId::from_column(metadata.name[row]) == wanted)
        .filter_map(|row| Some(strings.get(StringId::from_column(metadata.value[row])?)))
}
