//! Measurements over the time of a trace, one table for each.
//!
//! The bytes of 32-bit row numbers select events; row numbers that are not in the trace are
//! ignored.

use crate::arrow::{Table, table};
use crate::enter::{detached, enter};
use crate::statistics::{figures, integers_of, rows_of};
use crate::trace::Trace;
use longpole_core::columns::{Record, columns};
use longpole_core::ids::{EventId, LaneId, StringId, row_in_column};
use longpole_core::measure::{
    Chosen, CollectiveRow, ContextTime, ContextTimes, Frames, Places, Rest, Side,
};
use longpole_core::names::Names;
use longpole_core::tables::EventKind;
use longpole_core::vocabulary::{HostPart, host_part};
use longpole_core::{measure, path};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyDict;

/// Row numbers of events as the bytes of 32-bit integers, as in an array of `numpy`.
type Rows = PyBackedBytes;

#[pymethods]
impl Trace {
    /// Returns one row for each GPU activity and its launch.
    fn launches(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        table(py, || measure::launches(self.tables(), &launches, &nesting))
    }

    /// Returns every GPU activity with its launch, in file order.
    fn activities(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = self.tables();
        let (events, lanes) = (&tables.events, &tables.lanes);
        let name = |event: Option<EventId>| event.and_then(|event| events.name(event));
        let start_ns = |event: Option<EventId>| event.map(|event| events.start_ns(event));
        let place = |event| lanes.place(events.lane(event));
        detached(py, || {
            let rows = measure::launches(tables, &launches, &nesting);
            let columns = columns!(rows.iter(), |row| Columns {
                event: row.event,
                kind: events.kind(row.event),
                work_class: row.work_class,
                name: events.name(row.event),
                device: place(row.event).device,
                stream: place(row.event).stream,
                start_ns: events.start_ns(row.event),
                duration_ns: events.duration_ns(row.event),
                correlation: events.correlation(row.event),
                call: row.call,
                call_name: name(row.call),
                call_start_ns: start_ns(row.call),
                call_duration_ns: row.call.and_then(|call| events.duration_ns(call)),
                operator: row.operator,
                operator_name: name(row.operator),
                operator_start_ns: start_ns(row.operator),
                linked_by: row.linked_by,
                delay_ns: row.delay_ns,
            });
            Table::with_texts(columns, &tables.strings)
        })
    }

    /// Returns the role of each runtime API call.
    fn api_roles(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || {
            let rows = measure::api_roles(self.tables());
            Table::of(columns!(rows.iter(), |&(event, role)| Columns { event, role }))
        })
    }

    /// Returns the runtime API calls that waited for a device, and how that is known.
    fn blocking_calls(&self, py: Python<'_>) -> PyResult<Table> {
        let rows = self.blocking(py)?;
        table(py, || rows.to_vec())
    }

    /// Returns the self time of each event: the time in which nothing that began later ran on its
    /// thread.
    fn self_times(&self, py: Python<'_>) -> PyResult<Table> {
        let (nesting, tables) = (self.nesting(py)?, self.tables());
        detached(py, || {
            let rows = measure::self_time_ns(tables, &nesting);
            let rows = tables.events.ids().zip(rows);
            Table::of(columns!(rows, |(event, self_ns)| Columns { event, self_ns }))
        })
    }

    /// Returns the events of threads within spans `(lane, start_ns, end_ns)`.
    fn times_within(&self, py: Python<'_>, spans: Vec<(u32, i64, i64)>) -> PyResult<Table> {
        let nesting = self.nesting(py)?;
        let spans = spans
            .into_iter()
            .map(|(lane, start, end)| (LaneId::from_row(lane as usize), start, end));
        table(py, || measure::times_within(self.tables(), &nesting, spans))
    }

    /// Returns the events that begin inside another event of their thread and end outside it.
    fn crossings(&self, py: Python<'_>) -> PyResult<Table> {
        let nesting = self.nesting(py)?;
        Table::of(columns!(nesting.crossings.iter(), |&event| Columns { event }))
    }

    /// Returns the busy time of each stream and device within a window, by class of activity.
    #[pyo3(signature = (window, chosen=None))]
    fn busy(&self, py: Python<'_>, window: (i64, i64), chosen: Option<Rows>) -> PyResult<Table> {
        table(py, || measure::busy(self.tables(), window, &self.chosen(chosen)))
    }

    /// Returns the time of each main thread and of each device in the phases of a training step.
    fn phase_times(
        &self,
        py: Python<'_>,
        window: (i64, i64),
        host: (i64, i64),
    ) -> PyResult<(Table, Table)> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let links = self.backward_links(py)?;
        let stages = (&*launches, &*nesting, links.as_slice());
        let (hosts, devices) = enter(py, None, None, |_| {
            measure::phase_times(self.tables(), stages, &self.data_load(None), (host, window))
        })?;
        Ok((table(py, || hosts)?, table(py, || devices)?))
    }

    /// Returns the gaps in which nothing ran on a device, and the event that ended each.
    fn gaps(&self, py: Python<'_>, window: (i64, i64)) -> PyResult<Table> {
        let launches = self.linked(py)?;
        detached(py, || {
            let (tables, places) = (self.tables(), Places::Devices);
            let rows = measure::gaps(tables, &launches, window, places, &Chosen::All);
            Table::of(columns!(rows.iter(), |row| Columns {
                device: row.device,
                start_ns: row.start_ns,
                duration_ns: row.end_ns - row.start_ns,
                next: row.next,
                call: row.call,
                host_ns: row.host_ns,
            }))
        })
    }

    /// Returns the idle time of devices and their streams by cause, with statistics of the
    /// intervals.
    #[pyo3(signature = (window, short_ns, chosen=None))]
    fn idle_causes(
        &self,
        py: Python<'_>,
        window: (i64, i64),
        short_ns: i64,
        chosen: Option<Rows>,
    ) -> PyResult<Table> {
        let launches = self.linked(py)?;
        detached(py, || {
            let places = [Places::Devices, Places::Streams];
            let chosen = self.chosen(chosen);
            let rows =
                measure::idle_causes(self.tables(), &launches, window, short_ns, &places, &chosen);
            let columns = columns!(rows.iter(), |row| Columns {
                device: row.device,
                stream: row.stream,
                cause: row.cause.name(),
                count: row.count,
                duration_ns: row.duration_ns,
                host_ns: row.host_ns,
            });
            Table::of(columns.and(figures(rows.iter().map(|row| Some(row.spread)))))
        })
    }

    /// Returns the number of activities that wait on each stream within a window.
    #[pyo3(signature = (window, chosen=None))]
    fn queues(&self, py: Python<'_>, window: (i64, i64), chosen: Option<Rows>) -> PyResult<Table> {
        let launches = self.linked(py)?;
        table(py, || measure::queues(self.tables(), &launches, window, &self.chosen(chosen)))
    }

    /// Returns how long which classes of activities ran at the same time on each device.
    #[pyo3(signature = (window, chosen=None))]
    fn class_times(
        &self,
        py: Python<'_>,
        window: (i64, i64),
        chosen: Option<Rows>,
    ) -> PyResult<Table> {
        table(py, || measure::class_times(self.tables(), window, &self.chosen(chosen)))
    }

    /// For each given event, returns the event in `among` that encloses it on its thread, or the
    /// event itself if it is one of these; null for row numbers that are not in the trace.
    #[pyo3(signature = (events, among, *, outermost))]
    fn enclosing(
        &self,
        py: Python<'_>,
        events: Rows,
        among: Rows,
        outermost: bool,
    ) -> PyResult<Table> {
        let nesting = self.nesting(py)?;
        let side = if outermost { Side::Outermost } else { Side::Innermost };
        detached(py, || {
            let n_events = self.tables().events.len();
            let known = rows_of(&events)
                .map(|row| ((row as usize) < n_events).then(|| EventId::from_row(row as usize)));
            let found = measure::enclosing(&nesting, known, &self.chosen(Some(among)), side);
            let rows = rows_of(&events).zip(found);
            Table::of(columns!(rows, |(event, around)| Columns { event, around }))
        })
    }

    /// Returns the innermost event open on a lane at each given time (rows of lanes, and ns).
    fn running_at(&self, py: Python<'_>, lanes: Rows, times_ns: PyBackedBytes) -> PyResult<Table> {
        let nesting = self.nesting(py)?;
        detached(py, || {
            let points: Vec<_> = rows_of(&lanes).zip(integers_of(&times_ns)).collect();
            let rows = measure::running_at(self.tables(), &nesting, &points);
            Table::of(columns!(rows.iter(), |&event| Columns { event }))
        })
    }

    /// Returns how long each of the given events ran at the same time as the others on its device.
    fn overlaps(&self, py: Python<'_>, events: Rows, others: Rows) -> PyResult<Table> {
        detached(py, || {
            let n_events = self.tables().events.len();
            let known = rows_of(&events).map(|row| row as usize).filter(|&row| row < n_events);
            let events: Vec<_> = known.map(EventId::from_row).collect();
            let rows = measure::overlaps(self.tables(), &events, &self.chosen(Some(others)));
            Table::of(columns!(rows.iter(), |&(event, overlap_ns)| Columns { event, overlap_ns }))
        })
    }

    /// Returns the annotation on its stream in which each GPU activity began, of all annotations or
    /// of `ranges`.
    #[pyo3(signature = (ranges=None))]
    fn device_ranges(&self, py: Python<'_>, ranges: Option<Rows>) -> PyResult<Table> {
        detached(py, || {
            let rows = measure::device_ranges(self.tables(), &self.chosen(ranges));
            Table::of(columns!(rows.iter(), |&(event, annotation)| Columns { event, annotation }))
        })
    }

    /// Returns each operator of a backward pass with its forward operator.
    #[pyo3(name = "backward_links")]
    fn backward_link_table(&self, py: Python<'_>) -> PyResult<Table> {
        let links = self.backward_links(py)?;
        Table::of(columns!(links.iter(), |link| Columns {
            backward: link.backward,
            forward: link.forward,
        }))
    }

    /// Returns a row for each collective of a trace; see `longpole.Trace.collectives`.
    fn collectives(&self, py: Python<'_>) -> PyResult<Table> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        detached(py, || {
            let found = measure::collectives(self.tables(), &launches, &nesting);
            let group = |row: &CollectiveRow| row.group.map(|place| &found.groups[place]);
            let ranks = |row: &CollectiveRow| {
                let ranks = group(row)?.ranks.as_ref()?.iter().map(ToString::to_string);
                Some(ranks.collect::<Vec<_>>().join(" "))
            };
            Table::of(columns!(found.rows.iter(), |row| Columns {
                event: row.event,
                call: row.call,
                operation: row.operation,
                named_by: row.named_by,
                group: group(row).map(|group| group.name.as_str()),
                group_size: group(row).and_then(|group| group.size),
                group_ranks: ranks(row),
                sequence: row.sequence,
                call_id: row.id.as_deref(),
                peer: row.peer,
                in_elements: row.in_elements,
                out_elements: row.out_elements,
                data_type: row.data_type,
                bytes: row.bytes,
                coalesced: row.is_coalesced,
            }))
        })
    }

    /// Returns waiting and data movement of each collective, if the profile contains its tasks; see
    /// `longpole.Trace.collective_waits`.
    fn collective_waits(&self, py: Python<'_>) -> PyResult<Table> {
        table(py, || measure::collective_waits(self.tables()))
    }

    /// Returns the kind of marks of the iterations of a server, and one row for each iteration;
    /// `None` without such marks.
    fn server_iterations(&self, py: Python<'_>) -> PyResult<Option<(&'static str, Table)>> {
        let (launches, tables) = (self.linked(py)?, self.tables());
        let found = enter(py, None, None, |_| Ok(path::server_iterations(tables, &launches)))?;
        let Some(found) = found else { return Ok(None) };
        let rows = columns!(found.rows.iter(), |(event, iteration)| Columns {
            event: *event,
            server: iteration.server,
            kind: iteration.kind,
            requests: iteration.requests,
            prefill_tokens: iteration.prefill_tokens,
            decode_tokens: iteration.decode_tokens,
        });
        Ok(Some((found.mark.name(), Table::of(rows)?)))
    }

    /// Returns the annotations and Python functions that are a known part of the host work in an
    /// iteration.
    fn host_parts(&self) -> PyResult<Table> {
        let (events, strings) = (&self.tables().events, &self.tables().strings);
        let part_of_name: Vec<Option<HostPart>> = strings.iter().map(host_part).collect();
        let is_host = |kind| matches!(kind, EventKind::Annotation | EventKind::Python);
        let part = |event| {
            let name: StringId = events.name(event).filter(|_| is_host(events.kind(event)))?;
            Some((event, part_of_name[name.row()]?))
        };
        let found: Vec<_> = events.ids().filter_map(part).collect();
        Table::of(columns!(found.iter(), |&(event, part)| Columns { event, part }))
    }

    /// Counts of problems found by linking and nesting.
    fn warning_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (launches, nesting) = (self.linked(py)?, self.nesting(py)?);
        let tables = self.tables();
        let counts =
            enter(py, None, None, |_| Ok(measure::warning_counts(tables, &launches, &nesting)))?;
        let found = PyDict::new(py);
        for (name, count) in counts {
            found.set_item(name, count)?;
        }
        Ok(found)
    }
}

impl Trace {
    pub(crate) fn chosen(&self, rows: Option<Rows>) -> Chosen {
        let n_events = self.tables().events.len();
        rows.map_or(Chosen::All, |rows| Chosen::of_rows(rows_of(&rows), n_events))
    }
}

// Calling contexts and their times, for `trace.py`.

/// The context tree, the context of each event on a thread, and the remaining time on devices as
/// `(count, duration_ns)`: launched outside all frames, and without a known launch.
type Found = (Table, Table, (i64, i64), (i64, i64));

/// Returns the time of each calling context within a window; see `Trace.contexts`.
#[pyfunction]
#[pyo3(signature = (trace, frames, window, *, host, annotation_names, by_inputs, chosen))]
#[allow(clippy::too_many_arguments)] // keywords, by value, from Python
pub(crate) fn context_times(
    py: Python<'_>,
    trace: &Trace,
    frames: Vec<PyBackedStr>,
    window: (i64, i64),
    host: (i64, i64),
    annotation_names: Option<&str>,
    by_inputs: bool,
    chosen: Option<PyBackedBytes>,
) -> PyResult<Found> {
    let has = |kind: &str| frames.iter().any(|frame| &**frame == kind);
    let frames = Frames {
        annotations: has("annotation"),
        annotation_names,
        operators: has("operator"),
        functions: has("python"),
        modules: has("module"),
        calls: has("call"),
        others: has("other"),
        by_inputs,
    };
    let (launches, nesting, tables) = (trace.linked(py)?, trace.nesting(py)?, trace.tables());
    let links = trace.backward_links(py)?;
    let chosen = trace.chosen(chosen);
    let found = enter(py, None, None, |progress| {
        let stages = (&*launches, &*nesting, links.as_slice());
        measure::context_times(tables, stages, &frames, (host, window), &chosen, progress)
    })?;
    let rest = |rest: Rest| (rest.count, rest.duration_ns);
    let tables = (tree(trace, &found)?, events(trace, &found)?);
    Ok((tables.0, tables.1, rest(found.outside), rest(found.unlinked)))
}

fn tree(trace: &Trace, found: &ContextTimes) -> PyResult<Table> {
    let rows = found.contexts.rows.iter().enumerate();
    let contexts = columns!(rows, |(context, row)| Columns {
        context: row_in_column(context),
        parent: row.parent,
        lane: row.lane,
        first: row.first,
        name: StringId::from_column(row.name),
        is_outermost: row.is_outermost,
    });
    Table::with_texts(contexts.and(ContextTime::columns(&found.times)), &trace.tables().strings)
}

fn events(trace: &Trace, found: &ContextTimes) -> PyResult<Table> {
    let ids = trace.tables().events.ids();
    let rows: Vec<_> = ids.filter_map(|event| Some((event, found.contexts.of(event)?))).collect();
    Table::of(columns!(rows.iter(), |&(event, row)| Columns { event, context: row_in_column(row) }))
}
