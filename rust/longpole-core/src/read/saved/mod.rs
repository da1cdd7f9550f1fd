//! Reads a saved trace: its columns as they are in memory, without parsing text.
//!
//! The file is an uncompressed zip archive of `NumPy` arrays (`.npy`) and one JSON document that
//! describes them ([`layout`]). `numpy.load` opens it, and it contains no pickles. Arrow files
//! would need a parser of their schemas in the core; a `.npy` file has a header of 128 bytes that
//! follows from the type and length of the column, so that reading a column consists of comparing
//! and copying.
//!
//! longpole writes these files in only one way. Every byte except the values is therefore known and
//! compared, and the values have checksums. Any difference is rejected.

pub(crate) mod archive;
mod document;

pub(crate) use self::document::document_of;

use std::sync::Arc;

use self::archive::Archive;
use self::document::Document;
use super::Options;
use super::window::Window;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{NO_INTEGER, NO_ROW, StringId};
use crate::progress::Progress;
use crate::strings::Strings;
use crate::tables::{
    ArgColumn, ArgTables, Arguments, ColumnMut, CounterTable, EventTable, FlowSource, FlowTable,
    LaneTable, MetadataTable, Place, Tables,
};
use archive::{LANES, SOURCES, damaged, not_saved};

/// Whether a file begins like a saved trace.
pub(super) fn is_saved(head: &[u8]) -> bool {
    let name = archive::DOCUMENT.as_bytes();
    head.starts_with(b"PK\x03\x04") && head.get(30..).is_some_and(|rest| rest.starts_with(name))
}

/// Reads the tables of a saved trace, as an event reader with these options would build them.
pub(super) fn read(
    window: Window<'_>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Tables> {
    let mut archive = Archive::new(window, progress);
    let document = Document::of(&archive.document()?)?;
    refuse(&document, options)?;
    let tables = tables(&mut archive, document, options)?;
    archive.finish()?;
    match tables.fault() {
        Some(what) => Err(damaged(what)),
        None => Ok(tables),
    }
}

/// Returns an error if requested data is not in the file.
fn refuse(document: &Document, options: &Options) -> Result<()> {
    if let Some(missing) = document.arguments.lacks(&options.arguments) {
        let what = format!("the trace was saved without some arguments of events: {missing}");
        return Err(not_saved(&what));
    }
    let asked = options.vocabulary.additions();
    if !asked.is_empty() && asked != document.vocabulary.additions() {
        return Err(not_saved(
            "the trace was saved with another vocabulary, which cannot be changed",
        ));
    }
    let refused = document.diagnostics.iter().find(|row| row.code.is_refused_by_strict());
    match refused.filter(|_| options.strict) {
        Some(row) => Err(Error::new(ErrorKind::Strict(row.code), row.first_offset)),
        None => Ok(()),
    }
}

fn tables(archive: &mut Archive<'_>, document: Document, options: &Options) -> Result<Tables> {
    let strings = strings(archive)?;
    let mut events = EventTable::default();
    archive.limit_rows(options.max_events);
    archive.table("events", events.columns_mut())?;
    archive.limit_rows(None);
    let lanes = lanes(archive, &strings)?;
    let args = args(archive, &strings, &document, &options.arguments)?;
    let flows = flows(archive, &strings, "flows")?;
    let asyncs = self::flows(archive, &strings, "asyncs")?;
    let mut counters = CounterTable::default();
    archive.table("counters", counters.columns_mut())?;
    let mut metadata = MetadataTable::default();
    archive.table("metadata", metadata.columns_mut())?;
    Ok(Tables {
        strings: strings.freeze(),
        vocabulary: Arc::new(document.vocabulary),
        events: Arc::new(events),
        lanes: Arc::new(lanes),
        arguments: options.arguments.clone(),
        args: Arc::new(args),
        flows: Arc::new(flows),
        counters: Arc::new(counters),
        asyncs: Arc::new(asyncs),
        metadata: Arc::new(metadata),
        header: Arc::new(document.header),
        diagnostics: document.diagnostics,
        phases: document.phases,
        bytes: document.bytes,
    })
}

fn strings(archive: &mut Archive<'_>) -> Result<Strings> {
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    archive.table(
        "strings",
        vec![("text", ColumnMut::Bytes(&mut text)), ("ends", ColumnMut::Counts(&mut ends))],
    )?;
    let text = std::str::from_utf8(&text).map_err(|_| damaged("a text in it is not UTF-8"))?;
    Strings::of_parts(text, &ends).ok_or_else(|| damaged("its table of strings is invalid"))
}

fn lanes(archive: &mut Archive<'_>, strings: &Strings) -> Result<LaneTable> {
    let mut rows = Vec::new();
    archive.table("lanes", vec![(LANES, ColumnMut::Integers(&mut rows))])?;
    let mut lanes = LaneTable::default();
    let (places, rest) = rows.as_chunks::<4>();
    for &[process, thread, device, stream] in places {
        let given = |number: i64| (number != NO_INTEGER).then_some(number);
        let (device, stream) = (given(device), given(stream));
        let (process, thread) = (text(process, strings)?, text(thread, strings)?);
        lanes.intern(Place { process, thread, device, stream });
    }
    if rest.is_empty() && lanes.len() == places.len() {
        return Ok(lanes);
    }
    Err(damaged("it contains a thread or stream twice"))
}

fn args(
    archive: &mut Archive<'_>,
    strings: &Strings,
    document: &Document,
    asked: &Arguments,
) -> Result<ArgTables> {
    let mut args = ArgTables::default();
    for (number, (category, keys)) in document.args.iter().enumerate() {
        let category = category.map(|row| text(row, strings)).transpose()?;
        let table = args.of_mut(category);
        if !table.event.is_empty() || !table.columns.is_empty() {
            return Err(damaged("it contains a category twice"));
        }
        let name = format!("args/{number}");
        archive.table(&name, vec![("event", ColumnMut::PackedRows(&mut table.event))])?;
        for (place, key) in keys.iter().enumerate() {
            let values = archive.values(&name, &place.to_string())?;
            table.columns.push(ArgColumn { key: key.clone(), values });
        }
    }
    let is_whole = document.arguments == *asked;
    Ok(if is_whole { args } else { args.narrowed(|key| asked.keeps(key)) })
}

fn flows(archive: &mut Archive<'_>, strings: &Strings, name: &str) -> Result<FlowTable> {
    let mut flows = FlowTable::default();
    archive.table(name, flows.columns_mut())?;
    flows.id = archive.values(name, "id")?;
    let mut rows = Vec::new();
    archive.table(name, vec![(SOURCES, ColumnMut::Rows(&mut rows))])?;
    let (sources, rest) = rows.as_chunks::<4>();
    for (row, &[category, name, process, thread]) in sources.iter().enumerate() {
        let known = |row: u32| match row {
            NO_ROW => Ok(None),
            row => text(row.into(), strings).map(Some),
        };
        let (category, name) = (known(category)?, known(name)?);
        let (process, thread) = (text(process.into(), strings)?, text(thread.into(), strings)?);
        let source = flows.source_row(FlowSource { category, name, process, thread });
        if source as usize != row {
            return Err(damaged("it contains a source of arrows twice"));
        }
    }
    if rest.is_empty() {
        return Ok(flows);
    }
    Err(damaged("its sources of arrows are incomplete"))
}

fn text(row: i64, strings: &Strings) -> Result<StringId> {
    let row = usize::try_from(row).ok().filter(|&row| row < strings.len());
    row.map(StringId::from_row).ok_or_else(|| damaged("a string is missing in it"))
}
