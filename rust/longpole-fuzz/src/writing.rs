//! Writes traces: the written trace reads back as the same events, with the same losses.

use std::io::{Result, Write};

use longpole_core::read::{Options, read_bytes};
use longpole_core::tables::Tables;
use longpole_core::write::{document, whole};

use crate::{binary, seeds};

/// Writes any bytes that are a trace for Perfetto.
pub(crate) fn written(bytes: &[u8]) {
    let Ok(tables) = read_bytes(bytes, &Options::default()) else { return };
    let again = read_bytes(&made(&tables, whole), &Options::default());
    assert_eq!(shown(&again.expect("it was written whole")), shown(&tables));
}

/// Returns traces, and what longpole writes for them and for damaged ones, for Perfetto and as
/// documents.
pub(crate) fn inputs() -> Vec<Vec<u8>> {
    let mut inputs = [seeds::traces(), binary::packets(), binary::planes()].concat();
    for at in 0..inputs.len() {
        for length in [inputs[at].len(), inputs[at].len() * 2 / 3] {
            if let Ok(tables) = read_bytes(&inputs[at][..length], &Options::default()) {
                inputs.push(made(&tables, whole));
                inputs.push(made(&tables, document));
            }
        }
    }
    inputs
}

/// Returns what longpole writes for Perfetto, for valid and damaged traces.
pub(crate) fn packets() -> Vec<Vec<u8>> {
    let is_binary = |input: &Vec<u8>| input.starts_with(b"\x0a");
    let inputs = inputs().into_iter().filter(is_binary);
    inputs.chain(binary::packets()).collect()
}

type Writer = fn(&Tables, Option<u64>, &dyn Fn(u32) -> bool, &mut dyn Write) -> Result<u64>;

fn made(tables: &Tables, write: Writer) -> Vec<u8> {
    let mut out = Vec::new();
    write(tables, None, &|_| true, &mut out).expect("memory takes everything");
    out
}

/// Returns the times and strings of all events, and what was lost.
fn shown(tables: &Tables) -> String {
    let text = |id: Option<_>| id.map(|id| tables.strings.get(id));
    let events = &tables.events;
    let events = events.ids().map(|it| {
        let times = (events.start_ns(it), events.duration_ns(it));
        (times, text(events.category(it)), text(events.name(it)), events.correlation(it))
    });
    let losses = tables.diagnostics.iter().filter(|row| row.code.is_loss());
    format!("{:#?}\n{:#?}", events.collect::<Vec<_>>(), losses.collect::<Vec<_>>())
}
