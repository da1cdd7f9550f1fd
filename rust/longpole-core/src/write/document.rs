//! Writes the tables of a trace as a Chrome trace-event document, for formats that are not text.
//!
//! Reading the document gives the same tables, except for the positions of events. Only arguments
//! that were kept are written.

use std::io::{self, Write};

use serde_json::Value;

use crate::ids::{EventId, NO_ROW, StringId};
use crate::names::Names as _;
use crate::read::with_losses;
use crate::tables::{ArgValue, EventKind, FlowTable, Place, Tables};
use crate::vocabulary::Profiler;

/// Writes the tables of a trace as a document. Returns the number of elements in its list. Elements
/// at positions that `keeps` rejects are left out. The rank is written if the trace has none.
///
/// # Errors
///
/// Returns an error if `out` cannot be written.
pub fn document(
    tables: &Tables,
    rank: Option<u64>,
    keeps: &dyn Fn(u32) -> bool,
    out: &mut dyn Write,
) -> io::Result<u64> {
    out.write_all(b"{\"traceEvents\": [")?;
    let mut list = List { out, n_written: 0, tables, keeps };
    for event in tables.events.ids().filter(|&event| keeps(tables.events.position(event))) {
        list.event(event)?;
    }
    list.flows(&tables.flows)?;
    list.flows(&tables.asyncs)?;
    list.counters()?;
    list.statements()?;
    let n_written = list.n_written;
    out.write_all(b"\n]")?;
    header(tables, rank, out)?;
    out.write_all(b"}\n")?;
    Ok(n_written)
}

fn header(tables: &Tables, rank: Option<u64>, out: &mut dyn Write) -> io::Result<()> {
    for (name, value) in fields_of(tables, rank) {
        write!(out, ",\n{}: {value}", quoted(&name))?;
    }
    Ok(())
}

/// Returns the header fields, with additional facts from the tables.
pub(super) fn fields_of(tables: &Tables, rank: Option<u64>) -> Vec<(String, String)> {
    let header = &tables.header;
    let lacks = |name: &str| header.fields.iter().all(|(field, _)| field != name);
    let base = header.base_time_ns.map(|base_ns| ("baseTimeNanoseconds", base_ns.to_string()));
    let rank = rank.map(|rank| ("distributedInfo", format!("{{\"rank\": {rank}}}")));
    let profiler = Profiler::of_format(header.format);
    let profiler = profiler.map(|profiler| ("profiler", quoted(profiler.name())));
    let known = [base, rank, profiler].into_iter().flatten().filter(|(name, _)| lacks(name));
    let known = known.map(|(name, value)| (name.to_owned(), value));
    with_losses(header.fields.iter().cloned().chain(known), tables)
}

/// The event list under construction.
struct List<'a> {
    out: &'a mut dyn Write,
    n_written: u64,
    tables: &'a Tables,
    keeps: &'a dyn Fn(u32) -> bool,
}

impl List<'_> {
    fn event(&mut self, event: EventId) -> io::Result<()> {
        let events = &self.tables.events;
        let place = self.tables.lanes.place(events.lane(event));
        let duration_ns = events.duration_ns(event);
        let is_instant = events.kind(event) == EventKind::Instant && duration_ns.is_none();
        self.begin(if is_instant { 'i' } else { 'X' }, events.start_ns(event))?;
        self.track(place.process, place.thread)?;
        self.text("cat", events.category(event))?;
        self.text("name", events.name(event))?;
        if let Some(ns) = duration_ns {
            write!(self.out, ", \"dur\": {}", Microseconds(ns))?;
        }
        self.arguments(event, place)?;
        self.out.write_all(b"}")
    }

    fn arguments(&mut self, event: EventId, place: Place) -> io::Result<()> {
        let events = &self.tables.events;
        let given = [
            ("External id", events.external_id(event)),
            ("correlation", events.correlation(event)),
            ("device", place.device),
            ("stream", place.stream),
        ];
        let mut before = ", \"args\": {";
        for (name, number) in given {
            if let Some(number) = number {
                write!(self.out, "{before}\"{name}\": {number}")?;
                before = ", ";
            }
        }
        let table = self.tables.args.of(events.category(event));
        if let Some((table, row)) = table.and_then(|table| Some((table, table.row_of(event)?))) {
            for column in &table.columns {
                if let Some(value) = column.values.get(row) {
                    write!(self.out, "{before}{}: {}", quoted(&column.key), self.value(value))?;
                    before = ", ";
                }
            }
        }
        self.out.write_all(if before == ", " { b"}" } else { b"" })
    }

    fn flows(&mut self, flows: &FlowTable) -> io::Result<()> {
        for row in (0..flows.len()).filter(|&row| (self.keeps)(flows.position.row(row))) {
            let source = flows.source(row);
            self.begin(char::from(flows.phase[row]), flows.time_ns(row))?;
            self.track(source.process, source.thread)?;
            self.text("cat", source.category)?;
            self.text("name", source.name)?;
            if let Some(id) = flows.id.get(row) {
                write!(self.out, ", \"id\": {}", self.value(id))?;
            }
            self.out.write_all(b"}")?;
        }
        Ok(())
    }

    fn counters(&mut self) -> io::Result<()> {
        let counters = &self.tables.counters;
        for (row, &time_ns) in counters.time_ns.iter().enumerate() {
            if !(self.keeps)(counters.position[row]) {
                continue;
            }
            self.begin('C', time_ns)?;
            self.member("pid", &self.number_or_text(counters.process[row]))?;
            self.text("name", StringId::from_column(counters.name[row]))?;
            let value = ArgValue::Float(counters.value[row]);
            let (series, value) = (self.spelled(counters.series[row]), self.value(value));
            write!(self.out, ", \"args\": {{{series}: {value}}}}}")?;
        }
        Ok(())
    }

    fn statements(&mut self) -> io::Result<()> {
        let metadata = &self.tables.metadata;
        for row in 0..metadata.len() {
            self.begin('M', 0)?;
            self.member("pid", &self.number_or_text(metadata.process[row]))?;
            self.member("tid", &self.number_or_text(metadata.thread[row]))?;
            self.text("name", StringId::from_column(metadata.name[row]))?;
            if metadata.value[row] != NO_ROW {
                let value = self.spelled(metadata.value[row]);
                write!(self.out, ", \"args\": {{\"name\": {value}}}")?;
            }
            self.out.write_all(b"}")?;
        }
        Ok(())
    }

    fn begin(&mut self, phase: char, time_ns: i64) -> io::Result<()> {
        let comma = if self.n_written > 0 { "," } else { "" };
        self.n_written += 1;
        let phase = quoted(&phase.to_string());
        write!(self.out, "{comma}\n{{\"ph\": {phase}, \"ts\": {}", Microseconds(time_ns))
    }

    fn track(&mut self, process: StringId, thread: StringId) -> io::Result<()> {
        let [process, thread] =
            [process, thread].map(|id| number_or_text(self.tables.strings.get(id)));
        self.member("pid", &process)?;
        self.member("tid", &thread)
    }

    fn text(&mut self, name: &str, value: Option<StringId>) -> io::Result<()> {
        match value {
            Some(value) => self.member(name, &quoted(self.tables.strings.get(value))),
            None => Ok(()),
        }
    }

    fn member(&mut self, name: &str, value: &str) -> io::Result<()> {
        write!(self.out, ", \"{name}\": {value}")
    }

    fn spelled(&self, text: u32) -> String {
        quoted(StringId::from_column(text).map_or("", |text| self.tables.strings.get(text)))
    }

    fn number_or_text(&self, text: u32) -> String {
        let text = StringId::from_column(text);
        number_or_text(text.map_or("", |text| self.tables.strings.get(text)))
    }

    fn value(&self, value: ArgValue) -> String {
        match value {
            ArgValue::Integer(number) => number.to_string(),
            ArgValue::Float(number) => Value::from(number).to_string(),
            ArgValue::Text(text) => {
                let text = self.tables.strings.get(text);
                if is_list(text) { text.to_owned() } else { quoted(text) }
            }
        }
    }
}

/// Formats nanoseconds as the microseconds of a document.
struct Microseconds(i64);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:03}", ns / 1000, ns % 1000)
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Formats process and thread ids as numbers if possible.
fn number_or_text(text: &str) -> String {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => text.to_owned(),
        _ => quoted(text),
    }
}

/// Whether a string is a list in JSON notation.
fn is_list(text: &str) -> bool {
    text.starts_with('[') && serde_json::from_str::<Vec<Value>>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    #[test]
    fn a_document_that_is_written_reads_as_the_same_tables() {
        let text = r#"[
            {"ph":"X","cat":"kernel","name":"k\"1","pid":0,"tid":7,"ts":-1.001,"dur":2.5,
             "args":{"device":0,"stream":7,"correlation":3,"grid":[1, 2, 3],"bytes":4}},
            {"ph":"X","cat":"cpu_op","name":"a","pid":9,"tid":"main","ts":5,"dur":1,
             "args":{"External id":2}},
            {"ph":"i","cat":"mark","name":"m","pid":9,"tid":9,"ts":6},
            {"ph":"s","id":3,"cat":"ac2g","name":"ac2g","pid":9,"tid":9,"ts":5},
            {"ph":"C","name":"c","pid":9,"ts":7,"args":{"x":1.5}},
            {"ph":"M","name":"process_name","pid":9,"tid":0,"ts":0,"args":{"name":"python"}}
        ]"#;
        let shown = |tables: &Tables| {
            let codes: Vec<_> = tables.diagnostics.iter().map(|row| row.code).collect();
            let tables = (&tables.events, &tables.args, &tables.flows, &tables.counters);
            format!("{tables:?} {codes:?}")
        };
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let mut written = Vec::new();
        assert_eq!(document(&tables, Some(4), &|_| true, &mut written).unwrap(), 6);
        let again = read_bytes(&written, &Options::default()).unwrap();
        assert_eq!(shown(&again), shown(&tables));
        assert_eq!(again.header.rank, Some(4));
    }
}
