//! Sweeps over the GPU activities of a trace, or over those that a filter keeps.

use longpole_core::ids::{EventId, InColumn};
use longpole_core::measure::{self, Chosen, Places, Side};
use longpole_core::names::Names;
use longpole_core::tables::WorkClass;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::{Columns, Table};
use crate::enter::{detached, enter};
use crate::trace::Trace;

/// Row numbers of events as the bytes of 32-bit integers, as in an array of `numpy`.
pub(crate) type Rows = PyBackedBytes;

/// Returns every GPU activity with its launch, in file order.
#[pyfunction]
pub(crate) fn activities(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    let (launches, nesting) = (trace.linked(py)?, trace.nesting(py)?);
    let tables = trace.tables();
    let rows = enter(py, None, None, |_| Ok(measure::launches(tables, &launches, &nesting)))?;
    let (events, lanes, strings) = (&tables.events, &tables.lanes, &tables.strings);
    let name = |event: Option<EventId>| event.and_then(|event| events.name(event)).in_column();
    let start = |event: Option<EventId>| event.map(|event| events.start_ns(event)).in_column();
    let duration =
        |event: Option<EventId>| event.and_then(|event| events.duration_ns(event)).in_column();
    let place = |row: &measure::Launch| lanes.place(events.lane(row.work));
    detached(py, || {
        Columns::default()
            .rows("event", rows.iter().map(|row| Some(row.work).in_column()).collect())
            .words("kind", rows.iter().map(|row| events.kind(row.work)))
            .words("work_class", rows.iter().map(|row| row.class))
            .texts("name", rows.iter().map(|row| name(Some(row.work))), strings)
            .small_integers("device", rows.iter().map(|row| place(row).device.in_column()))
            .integers("stream", rows.iter().map(|row| place(row).stream.in_column()).collect())
            .integers("start_ns", rows.iter().map(|row| start(Some(row.work))).collect())
            .integers("duration_ns", rows.iter().map(|row| duration(Some(row.work))).collect())
            .integers(
                "correlation",
                rows.iter().map(|row| events.correlation(row.work).in_column()).collect(),
            )
            .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
            .texts("call_name", rows.iter().map(|row| name(row.call)), strings)
            .integers("call_start_ns", rows.iter().map(|row| start(row.call)).collect())
            .integers("call_duration_ns", rows.iter().map(|row| duration(row.call)).collect())
            .rows("operator", rows.iter().map(|row| row.operator.in_column()).collect())
            .texts("operator_name", rows.iter().map(|row| name(row.operator)), strings)
            .integers("operator_start_ns", rows.iter().map(|row| start(row.operator)).collect())
            .known_words("linked_by", rows.iter().map(|row| row.linked_by))
            .integers("delay_ns", rows.iter().map(|row| row.delay_ns.in_column()).collect())
            .into_table()
    })
}

/// Returns the busy time of each stream and device within a window, by class of activity.
#[pyfunction]
#[pyo3(signature = (trace, start_ns, end_ns, chosen=None))]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn busy(
    py: Python<'_>,
    trace: &Trace,
    start_ns: i64,
    end_ns: i64,
    chosen: Option<Rows>,
) -> PyResult<Table> {
    let (tables, chosen) = (trace.tables(), chosen_of(trace, chosen.as_ref()));
    let rows = enter(py, None, None, |_| Ok(measure::busy(tables, (start_ns, end_ns), &chosen)))?;
    let column = |value: fn(&measure::Busy) -> i64| rows.iter().map(value).collect();
    Columns::default()
        .integers("device", rows.iter().map(|row| row.device.in_column()).collect())
        .integers("stream", rows.iter().map(|row| row.stream.in_column()).collect())
        .integers("count", column(|row| row.n_events))
        .integers("busy_ns", column(|row| row.busy_ns))
        .integers("compute_ns", column(|row| row.compute_ns))
        .integers("communication_ns", column(|row| row.communication_ns))
        .integers("copy_ns", column(|row| row.copy_ns))
        .integers("idle_ns", column(|row| row.idle_ns))
        .integers("communication_total_ns", column(|row| row.communication_total_ns))
        .integers("copy_total_ns", column(|row| row.copy_total_ns))
        .into_table()
}

/// Returns the gaps in which nothing ran on a device, or on a stream, and the event that ended
/// each.
#[pyfunction]
#[pyo3(signature = (trace, start_ns, end_ns, by_stream, chosen=None))]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn gaps(
    py: Python<'_>,
    trace: &Trace,
    start_ns: i64,
    end_ns: i64,
    by_stream: bool,
    chosen: Option<Rows>,
) -> PyResult<Table> {
    let (launches, tables) = (trace.linked(py)?, trace.tables());
    let chosen = chosen_of(trace, chosen.as_ref());
    let places = if by_stream { Places::Streams } else { Places::Devices };
    let rows = enter(py, None, None, |_| {
        Ok(measure::gaps(tables, &launches, (start_ns, end_ns), places, &chosen))
    })?;
    let mut columns = Columns::default()
        .integers("device", rows.iter().map(|row| row.device.in_column()).collect());
    if by_stream {
        columns =
            columns.integers("stream", rows.iter().map(|row| row.stream.in_column()).collect());
    }
    columns
        .integers("start_ns", rows.iter().map(|row| row.start_ns).collect())
        .integers("duration_ns", rows.iter().map(|row| row.end_ns - row.start_ns).collect())
        .rows("next", rows.iter().map(|row| row.next.in_column()).collect())
        .rows("call", rows.iter().map(|row| row.call.in_column()).collect())
        .integers("host_ns", rows.iter().map(|row| row.host_ns.in_column()).collect())
        .into_table()
}

/// Returns the idle time of devices and their streams by cause, with statistics of the intervals.
#[pyfunction]
#[pyo3(signature = (trace, window, short_ns, chosen=None))]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn idle_causes(
    py: Python<'_>,
    trace: &Trace,
    window: (i64, i64),
    short_ns: i64,
    chosen: Option<Rows>,
) -> PyResult<Table> {
    let (launches, tables) = (trace.linked(py)?, trace.tables());
    let chosen = chosen_of(trace, chosen.as_ref());
    let rows = enter(py, None, None, |_| {
        let places = [Places::Devices, Places::Streams];
        Ok(measure::idle_causes(tables, &launches, window, short_ns, &places, &chosen))
    })?;
    let spreads: Vec<_> = rows.iter().map(|row| Some(row.spread)).collect();
    Columns::default()
        .integers("device", rows.iter().map(|row| row.device.in_column()).collect())
        .integers("stream", rows.iter().map(|row| row.stream.in_column()).collect())
        .strings("cause", rows.iter().map(|row| Some(row.cause.name())))
        .integers("count", rows.iter().map(|row| row.count).collect())
        .integers("duration_ns", rows.iter().map(|row| row.duration_ns).collect())
        .integers("host_ns", rows.iter().map(|row| row.host_ns.in_column()).collect())
        .figures(&spreads)
        .into_table()
}

/// Returns the number of activities that wait on each stream within a window.
#[pyfunction]
#[pyo3(signature = (trace, start_ns, end_ns, chosen=None))]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn queues(
    py: Python<'_>,
    trace: &Trace,
    start_ns: i64,
    end_ns: i64,
    chosen: Option<Rows>,
) -> PyResult<Table> {
    let (launches, tables) = (trace.linked(py)?, trace.tables());
    let (window, chosen) = ((start_ns, end_ns), chosen_of(trace, chosen.as_ref()));
    let rows = enter(py, None, None, |_| Ok(measure::queues(tables, &launches, window, &chosen)))?;
    Columns::default()
        .small_integers("device", rows.iter().map(|row| row.device.in_column()))
        .integers("stream", rows.iter().map(|row| row.stream.in_column()).collect())
        .integers("time_ns", rows.iter().map(|row| row.time_ns).collect())
        .rows("event", rows.iter().map(|row| Some(row.event).in_column()).collect())
        .integers("queue_length", rows.iter().map(|row| row.length).collect())
        .into_table()
}

/// Returns how long which classes of activities ran at the same time on each device.
#[pyfunction]
#[pyo3(signature = (trace, start_ns, end_ns, chosen=None))]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn class_times(
    py: Python<'_>,
    trace: &Trace,
    start_ns: i64,
    end_ns: i64,
    chosen: Option<Rows>,
) -> PyResult<Table> {
    let (tables, chosen) = (trace.tables(), chosen_of(trace, chosen.as_ref()));
    let window = (start_ns, end_ns);
    let rows = enter(py, None, None, |_| Ok(measure::class_times(tables, window, &chosen)))?;
    let runs = |class: WorkClass| {
        rows.iter().map(|row| row.classes >> class as u8 & 1 == 1).collect::<Vec<_>>()
    };
    Columns::default()
        .integers("device", rows.iter().map(|row| row.device.in_column()).collect())
        .booleans("compute", runs(WorkClass::Compute))
        .booleans("communication", runs(WorkClass::Communication))
        .booleans("copy", runs(WorkClass::Copy))
        .integers("duration_ns", rows.iter().map(|row| row.duration_ns).collect())
        .into_table()
}

/// For each event in `of`, returns the event in `among` that encloses it on its thread, or the
/// event itself if it is one of these. Row numbers that are not in the trace have no result.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn enclosing(
    py: Python<'_>,
    trace: &Trace,
    of: Rows,
    among: Rows,
    outermost: bool,
) -> PyResult<Table> {
    let nesting = trace.nesting(py)?;
    let among = chosen_of(trace, Some(&among));
    let side = if outermost { Side::Outermost } else { Side::Innermost };
    let n_events = trace.tables().events.len();
    detached(py, || {
        let events = rows_of(&of)
            .map(|row| ((row as usize) < n_events).then(|| EventId::from_row(row as usize)));
        let around = measure::enclosing(&nesting, events, &among, side);
        Columns::default()
            .rows("event", rows_of(&of).collect())
            .rows("around", around.into_iter().map(InColumn::in_column).collect())
            .into_table()
    })
}

/// Returns the innermost event open on a lane at each given time (rows of lanes, and ns).
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // from Python, by value
pub(crate) fn running_at(
    py: Python<'_>,
    trace: &Trace,
    lanes: Rows,
    times_ns: PyBackedBytes,
) -> PyResult<Table> {
    let (nesting, tables) = (trace.nesting(py)?, trace.tables());
    detached(py, || {
        let (times, _) = times_ns.as_chunks::<8>();
        let times = times.iter().map(|&time| i64::from_ne_bytes(time));
        let points: Vec<_> = rows_of(&lanes).zip(times).collect();
        let found = measure::running_at(tables, &nesting, &points);
        Columns::default()
            .rows("event", found.into_iter().map(InColumn::in_column).collect())
            .into_table()
    })
}

/// Returns how long each event in `of` ran at the same time as events in `beside` on its device.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // keywords, by value, from Python
pub(crate) fn overlaps(py: Python<'_>, trace: &Trace, of: Rows, beside: Rows) -> PyResult<Table> {
    let (tables, beside) = (trace.tables(), chosen_of(trace, Some(&beside)));
    let of = events_of(trace, &of);
    let rows = enter(py, None, None, |_| Ok(measure::overlaps(tables, &of, &beside)))?;
    Columns::default()
        .rows("event", rows.iter().map(|row| Some(row.0).in_column()).collect())
        .integers("overlap_ns", rows.iter().map(|row| row.1).collect())
        .into_table()
}

/// Returns the annotation on its stream in which each GPU activity began, of all annotations or of
/// `ranges`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as Python gives it
pub(crate) fn device_ranges(
    py: Python<'_>,
    trace: &Trace,
    ranges: Option<Rows>,
) -> PyResult<Table> {
    let tables = trace.tables();
    let chosen = chosen_of(trace, ranges.as_ref());
    let rows = enter(py, None, None, |_| Ok(measure::device_ranges(tables, &chosen)))?;
    Columns::default()
        .rows("event", rows.iter().map(|row| Some(row.0).in_column()).collect())
        .rows("annotation", rows.iter().map(|row| Some(row.1).in_column()).collect())
        .into_table()
}

fn chosen_of(trace: &Trace, rows: Option<&Rows>) -> Chosen {
    rows.map_or(Chosen::All, |rows| Chosen::of_rows(rows_of(rows), trace.tables().events.len()))
}

/// Returns the events with these rows; row numbers that are not in the trace are ignored.
fn events_of(trace: &Trace, rows: &Rows) -> Vec<EventId> {
    let n_events = trace.tables().events.len();
    let rows = rows_of(rows).map(|row| row as usize).filter(|&row| row < n_events);
    rows.map(EventId::from_row).collect()
}

fn rows_of(bytes: &Rows) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|row| u32::from_ne_bytes([row[0], row[1], row[2], row[3]]))
}
