//! The tables of a trace, exported one column at a time.

use std::sync::Arc;

use longpole_core::diagnostics::Diagnostic;
use longpole_core::ids::row_in_column;
use longpole_core::names::Names;
use longpole_core::stack::Nesting;
use longpole_core::tables::{EventKind, EventTable, FlowTable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::arrow::{Columns, Table};
use crate::enter::detached;
use crate::trace::Trace;

#[pymethods]
impl Trace {
    /// Returns some columns of the events, one row for each event. Callers request a few columns at
    /// a time, so that not all of the exported data exists at once.
    fn events(&self, py: Python<'_>, columns: Vec<PyBackedStr>) -> PyResult<Table> {
        let mut table = Columns::default();
        for name in columns {
            let is_nesting = matches!(&*name, "parent" | "depth");
            let nesting = is_nesting.then(|| self.nesting(py)).transpose()?;
            table = detached(py, || self.event_column(nesting.as_ref(), table, &name))?;
        }
        table.into_table()
    }

    /// Returns the lanes: threads, streams and other places of events.
    fn lanes(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let (lanes, strings) = (&self.tables().lanes, &self.tables().strings);
            Columns::default()
                .rows("lane", (0..row_in_column(lanes.len())).collect())
                .texts("process", lanes.processes().into_iter(), strings)
                .texts("thread", lanes.threads().into_iter(), strings)
                .integers("device", lanes.devices())
                .integers("stream", lanes.streams())
                .into_table()
        })
    }

    /// Returns the endpoints of flow arrows.
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.flow_table("flow", &self.tables().flows))
    }

    /// Returns the parts of asynchronous events.
    fn asynchronous(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.flow_table("id", &self.tables().asyncs))
    }

    /// Returns samples of counters.
    fn counters(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let (counters, strings) = (&self.tables().counters, &self.tables().strings);
            Columns::default()
                .texts("name", counters.name.iter().copied(), strings)
                .texts("series", counters.series.iter().copied(), strings)
                .texts("process", counters.process.iter().copied(), strings)
                .integers("time_ns", counters.time_ns.clone())
                .floats("value", counters.value.clone())
                .rows("position", counters.position.clone())
                .into_table()
        })
    }

    /// Returns the metadata of processes and threads.
    fn metadata_events(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let (metadata, strings) = (&self.tables().metadata, &self.tables().strings);
            let counts =
                metadata.count.iter().map(|&count| i64::try_from(count).unwrap_or(i64::MAX));
            Columns::default()
                .texts("name", metadata.name.iter().copied(), strings)
                .texts("process", metadata.process.iter().copied(), strings)
                .texts("thread", metadata.thread.iter().copied(), strings)
                .texts("text", metadata.value.iter().copied(), strings)
                .integers("count", counts.collect())
                .rows("last_position", metadata.last_position.clone())
                .into_table()
        })
    }

    /// Returns the categories with arguments, in order of first use.
    fn categories(&self) -> Vec<Option<String>> {
        let strings = &self.tables().strings;
        self.tables()
            .args
            .iter()
            .map(|(category, _)| Some(strings.get(category?).to_owned()))
            .collect()
    }

    /// Returns the arguments of the events of one category: all, or those with the given names.
    #[allow(clippy::needless_pass_by_value)] // by value, from Python
    #[pyo3(signature = (category, names=None))]
    fn args(
        &self,
        py: Python<'_>,
        category: Option<&str>,
        names: Option<Vec<PyBackedStr>>,
    ) -> PyResult<Option<Table>> {
        let strings = &self.tables().strings;
        let known = match category {
            Some(category) => match strings.lookup(category) {
                Some(id) => Some(id),
                None => return Ok(None),
            },
            None => None,
        };
        let Some(table) = self.tables().args.of(known) else { return Ok(None) };
        detached(py, || {
            let mut columns = Columns::default().rows("event", table.event.rows().collect());
            let is_asked = |key: &str| {
                names.as_ref().is_none_or(|names| names.iter().any(|name| **name == *key))
            };
            for column in table.columns.iter().filter(|column| is_asked(&column.key)) {
                columns = columns.values(&column.key, &column.values, strings);
            }
            columns.into_table().map(Some)
        })
    }

    /// Returns the problems found, one row for each kind.
    fn diagnostics(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || diagnostics_table(self.tables().diagnostics.iter()))
    }

    /// Returns what was lost or may be wrong, one row for each kind.
    fn losses(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            diagnostics_table(self.tables().diagnostics.iter().filter(|row| row.code.is_loss()))
        })
    }
}

impl Trace {
    fn event_column(
        &self,
        nesting: Option<&Arc<Nesting>>,
        table: Columns,
        name: &str,
    ) -> PyResult<Columns> {
        let (events, lanes, strings) =
            (&self.tables().events, &self.tables().lanes, &self.tables().strings);
        let texts_of_lane = |table: Columns, column: Vec<u32>| {
            table.texts(name, events.lanes().map(|lane| column[lane as usize]), strings)
        };
        let of_lane = |column: Vec<i64>| events.lanes().map(move |lane| column[lane as usize]);
        Ok(match (name, nesting) {
            ("parent", Some(nesting)) => table.shared_rows(name, nesting, Nesting::parents),
            ("depth", Some(nesting)) => table.shared_depths(name, nesting, Nesting::depths),
            ("event", _) => table.rows(name, (0..row_in_column(events.len())).collect()),
            ("kind", _) => {
                let kinds = EventKind::NAMES;
                table.choices(name, events.kinds().iter().map(|&kind| u32::from(kind)), kinds)
            }
            ("category", _) => table.texts(name, events.categories(), strings),
            ("name", _) => table.texts(name, events.names(), strings),
            ("process", _) => texts_of_lane(table, lanes.processes()),
            ("thread", _) => texts_of_lane(table, lanes.threads()),
            ("device", _) => table.small_integers(name, of_lane(lanes.devices())),
            ("stream", _) => table.integers(name, of_lane(lanes.streams()).collect()),
            ("start_ns", _) => table.shared_integers(name, events, EventTable::starts_ns),
            ("duration_ns", _) => table.shared_integers(name, events, EventTable::durations_ns),
            ("correlation", _) => table.shared_integers(name, events, EventTable::correlations),
            ("external_id", _) => table.shared_integers(name, events, EventTable::external_ids),
            ("lane", _) => table.rows(name, events.lanes().collect()),
            ("position", _) => table.rows(name, events.positions().collect()),
            _ => return Err(PyValueError::new_err(format!("events have no column {name:?}"))),
        })
    }

    fn flow_table(&self, id: &str, flows: &FlowTable) -> PyResult<Table> {
        let strings = &self.tables().strings;
        let letters: Vec<_> = (0..=u8::MAX).map(|letter| char::from(letter).to_string()).collect();
        let letters: Vec<_> = letters.iter().map(String::as_str).collect();
        Columns::default()
            .choices("phase", flows.phase.iter().map(|&phase| u32::from(phase)), &letters)
            .values(id, &flows.id, strings)
            .texts("category", flows.column(|source| source.category), strings)
            .texts("name", flows.column(|source| source.name), strings)
            .texts("process", flows.column(|source| Some(source.process)), strings)
            .texts("thread", flows.column(|source| Some(source.thread)), strings)
            .integers("time_ns", flows.time_ns.iter().collect())
            .rows("position", flows.position.rows().collect())
            .into_table()
    }
}

/// Returns the problems found, one row for each kind.
pub(crate) fn diagnostics_table<'a>(rows: impl Iterator<Item = &'a Diagnostic>) -> PyResult<Table> {
    let rows: Vec<_> = rows.copied().collect();
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Columns::default()
        .strings("code", rows.iter().map(|row| Some(row.code.name())))
        .strings("severity", rows.iter().map(|row| Some(row.code.severity().name())))
        .integers("count", rows.iter().map(|row| count(row.count)).collect())
        .integers("first_offset", rows.iter().map(|row| count(row.first_offset)).collect())
        .integers("skipped_bytes", rows.iter().map(|row| count(row.skipped_bytes)).collect())
        .strings("sentence", rows.iter().map(|row| Some(row.code.sentence())))
        .strings("effect", rows.iter().map(|row| Some(row.code.effect())))
        .into_table()
}
