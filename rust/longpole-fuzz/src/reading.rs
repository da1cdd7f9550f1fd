//! Reads traces: strict means RFC 8259, reading in pieces gives the same result as reading at once,
//! predictions change nothing, and the later stages end.

use longpole_core::progress::silent;
use longpole_core::read::{Options, read, read_bytes};
use longpole_core::tables::Tables;
use longpole_core::{link, measure, stack};
use serde_json::Value;

use crate::mutation::{Pieces, Random};

/// Reads the bytes as an argument of an event. Invalid JSON is rejected in strict mode, and never
/// ends the program otherwise.
pub(crate) fn scanner(bytes: &[u8]) {
    let around = [&b"[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":"[..], bytes, b"}}]"];
    let document = around.concat();
    let is_json = serde_json::from_slice::<Value>(&document);
    let strict = Options { strict: true, ..Options::default() };
    if read_bytes(&document, &strict).is_ok() {
        // The grammar allows these, but serde_json cannot represent them.
        let allowed = ["recursion limit", "number out of range", "surrogate"];
        let error = is_json.err().map_or_else(String::new, |error| error.to_string());
        assert!(error.is_empty() || allowed.iter().any(|why| error.contains(why)), "{error}");
    }
    let _ = read_bytes(&document, &Options::default());
}

/// Reads any bytes as a trace.
pub(crate) fn reader(bytes: &[u8]) {
    let predicted = outcome(read_bytes(bytes, &Options::default()));
    let scanning = Options { scan_all: true, ..Options::default() };
    assert_eq!(predicted, outcome(read_bytes(bytes, &scanning)), "predicted, scanned");
    assert_eq!(predicted, outcome(in_pieces(bytes)), "at once, in pieces");
    if let Ok(tables) = read_bytes(bytes, &Options::default()) {
        stages(&tables);
    }
}

/// Reads any bytes as the body of a gzip file.
pub(crate) fn gzip(bytes: &[u8]) {
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let file =
        if bytes.starts_with(&header[..2]) { bytes.to_vec() } else { [&header, bytes].concat() };
    assert_eq!(outcome(read_bytes(&file, &Options::default())), outcome(in_pieces(&file)));
}

/// Reads any bytes as the rest of a zstd file.
pub(crate) fn zstd(bytes: &[u8]) {
    packed(b"\x28\xb5\x2f\xfd", bytes);
}

/// Reads any bytes as the rest of an xz file.
pub(crate) fn xz(bytes: &[u8]) {
    packed(b"\xfd7zXZ\0", bytes);
}

fn packed(magic: &[u8], bytes: &[u8]) {
    let file = if bytes.starts_with(magic) { bytes.to_vec() } else { [magic, bytes].concat() };
    let options = Options { max_bytes: Some(1 << 22), ..Options::default() };
    let mut random = Random::new(bytes.len() as u64);
    let pieces = Pieces { bytes: &file, random: &mut random };
    assert_eq!(outcome(read_bytes(&file, &options)), outcome(read(pieces, &options, &silent)));
}

/// Reads any bytes as a trace of messages.
pub(crate) fn binary(bytes: &[u8]) {
    let strict = Options { strict: true, ..Options::default() };
    let found = read_bytes(bytes, &Options::default());
    let is_clean = found
        .as_ref()
        .is_ok_and(|tables| tables.diagnostics.iter().all(|row| !row.code.is_refused_by_strict()));
    assert_eq!(read_bytes(bytes, &strict).is_ok(), is_clean, "strict");
    if let Ok(tables) = &found {
        stages(tables);
    }
    assert_eq!(outcome(found), outcome(in_pieces(bytes)), "at once, in pieces");
}

/// Runs the later stages on a trace; the only allowed failure is a request to stop.
pub(crate) fn stages(tables: &Tables) {
    let nesting = stack::nesting(tables, &silent).expect("no one asks to stop");
    let launches = link::launches(tables, &silent).expect("no one asks to stop");
    let own = measure::self_time_ns(tables, &nesting);
    assert_eq!(own.len(), tables.events.len());
    for event in nesting.outside_in() {
        let mut around = std::iter::successors(Some(event), |&event| nesting.parent(event));
        assert!(around.nth(tables.events.len()).is_none(), "events enclose each other");
    }
    assert_eq!(measure::launches(tables, &launches, &nesting).len(), n_activities(tables));
}

fn n_activities(tables: &Tables) -> usize {
    tables.events.ids().filter(|&event| tables.events.kind(event).is_device_work()).count()
}

fn in_pieces(bytes: &[u8]) -> longpole_core::Result<Tables> {
    let mut random = Random::new(bytes.len() as u64);
    read(Pieces { bytes, random: &mut random }, &Options::default(), &silent)
}

/// Returns everything visible in the result of reading, as text.
fn outcome(result: longpole_core::Result<Tables>) -> String {
    match result {
        Err(error) => format!("{error:?}"),
        Ok(tables) => format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            tables.strings.iter().collect::<Vec<_>>(),
            tables.events,
            tables.args,
            tables.header,
            tables.diagnostics,
        ),
    }
}
