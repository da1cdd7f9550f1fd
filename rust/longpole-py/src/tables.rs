//! The tables of a trace, exported one column at a time.

use std::sync::Arc;

use longpole_core::columns::{Column, columns};
use longpole_core::diagnostics::Diagnostic;
use longpole_core::ids::{StringId, row_in_column};
use longpole_core::names::Names;
use longpole_core::stack::Nesting;
use longpole_core::tables::{EventKind, EventTable, FlowSource, FlowTable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::arrow::{Arrays, Table};
use crate::enter::detached;
use crate::trace::Trace;

#[pymethods]
impl Trace {
    /// Returns some columns of the events, one row for each event. Callers request a few columns at
    /// a time, so that not all of the exported data exists at once.
    fn events(&self, py: Python<'_>, columns: Vec<PyBackedStr>) -> PyResult<Table> {
        let mut table = Arrays::default();
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
            let lanes = &self.tables().lanes;
            let columns = columns!(lanes.ids(), |lane| Columns {
                lane,
                process: lanes.place(lane).process,
                thread: lanes.place(lane).thread,
                device: lanes.place(lane).device,
                stream: lanes.place(lane).stream,
            });
            Table::with_texts(columns, &self.tables().strings)
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
            let counters = &self.tables().counters;
            let columns = columns!(0..counters.name.len(), |row| Columns {
                name: StringId::from_column(counters.name[row]),
                series: StringId::from_column(counters.series[row]),
                process: StringId::from_column(counters.process[row]),
                time_ns: counters.time_ns[row],
                value: counters.value[row],
                position: counters.position[row],
            });
            Table::with_texts(columns, &self.tables().strings)
        })
    }

    /// Returns the metadata of processes and threads.
    fn metadata_events(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let metadata = &self.tables().metadata;
            let columns = columns!(0..metadata.name.len(), |row| Columns {
                name: StringId::from_column(metadata.name[row]),
                process: StringId::from_column(metadata.process[row]),
                thread: StringId::from_column(metadata.thread[row]),
                text: StringId::from_column(metadata.value[row]),
                count: metadata.count[row],
                last_position: metadata.last_position[row],
            });
            Table::with_texts(columns, &self.tables().strings)
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
            let events = Column::Rows(table.event.rows().collect());
            let mut arrays = Arrays::default().column("event", events, strings);
            let is_asked = |key: &str| {
                names.as_ref().is_none_or(|names| names.iter().any(|name| **name == *key))
            };
            for column in table.columns.iter().filter(|column| is_asked(&column.key)) {
                arrays = arrays.values(&column.key, &column.values, strings);
            }
            arrays.into_table().map(Some)
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
        table: Arrays,
        name: &str,
    ) -> PyResult<Arrays> {
        let (events, lanes) = (&self.tables().events, &self.tables().lanes);
        let of_lanes = |texts: Vec<u32>| {
            Column::Texts(events.lanes().map(|lane| texts[lane as usize]).collect())
        };
        let integers_of_lanes = |integers: Vec<i64>| {
            Column::Integers(events.lanes().map(|lane| integers[lane as usize]).collect())
        };
        let column = match (name, nesting) {
            ("parent", Some(nesting)) => {
                return Ok(table.shared_rows(name, nesting, Nesting::parents));
            }
            ("depth", Some(nesting)) => {
                return Ok(table.shared_depths(name, nesting, Nesting::depths));
            }
            ("start_ns", _) => {
                return Ok(table.shared_integers(name, events, EventTable::starts_ns));
            }
            ("duration_ns", _) => {
                return Ok(table.shared_integers(name, events, EventTable::durations_ns));
            }
            ("correlation", _) => {
                return Ok(table.shared_integers(name, events, EventTable::correlations));
            }
            ("external_id", _) => {
                return Ok(table.shared_integers(name, events, EventTable::external_ids));
            }
            ("event", _) => Column::Rows((0..row_in_column(events.len())).collect()),
            ("kind", _) => {
                let kinds = events.kinds().iter().map(|&kind| u32::from(kind));
                Column::Names(kinds.collect(), EventKind::NAMES.to_vec())
            }
            ("category", _) => Column::Texts(events.categories().collect()),
            ("name", _) => Column::Texts(events.names().collect()),
            ("process", _) => of_lanes(lanes.processes()),
            ("thread", _) => of_lanes(lanes.threads()),
            ("device", _) => integers_of_lanes(lanes.devices()),
            ("stream", _) => integers_of_lanes(lanes.streams()),
            ("lane", _) => Column::Rows(events.lanes().collect()),
            ("position", _) => Column::Rows(events.positions().collect()),
            _ => return Err(PyValueError::new_err(format!("events have no column {name:?}"))),
        };
        Ok(table.column(name, column, &self.tables().strings))
    }

    fn flow_table(&self, id: &str, flows: &FlowTable) -> PyResult<Table> {
        let strings = &self.tables().strings;
        let letters: Vec<_> = (0..=u8::MAX).map(|letter| char::from(letter).to_string()).collect();
        let letters: Vec<_> = letters.iter().map(String::as_str).collect();
        let phases = flows.phase.iter().map(|&phase| u32::from(phase)).collect();
        let text =
            |part: fn(&FlowSource) -> Option<StringId>| Column::Texts(flows.column(part).collect());
        Arrays::default()
            .column("phase", Column::Names(phases, letters), strings)
            .values(id, &flows.id, strings)
            .column("category", text(|source| source.category), strings)
            .column("name", text(|source| source.name), strings)
            .column("process", text(|source| Some(source.process)), strings)
            .column("thread", text(|source| Some(source.thread)), strings)
            .column("time_ns", Column::Integers(flows.time_ns.iter().collect()), strings)
            .column("position", Column::Rows(flows.position.rows().collect()), strings)
            .into_table()
    }
}

/// Returns the problems found, one row for each kind.
pub(crate) fn diagnostics_table<'a>(rows: impl Iterator<Item = &'a Diagnostic>) -> PyResult<Table> {
    let rows: Vec<_> = rows.collect();
    Table::of(columns!(rows.iter(), |row| Columns {
        code: row.code.name(),
        severity: row.code.severity().name(),
        count: row.count,
        first_offset: row.first_offset,
        skipped_bytes: row.skipped_bytes,
        sentence: row.code.sentence(),
        effect: row.code.effect(),
    }))
}
