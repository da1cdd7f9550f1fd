//! Sums the times of events by name: kernels, operators and blocking calls of a window.
//!
//! Each name has its longest event for inspection. Events of one name that run at the same time
//! count twice.

use std::collections::HashMap;

use super::{Blocking, Reason, times_within};
use crate::ids::{EventId, StringId};
use crate::intervals::Spans;
use crate::link::{Belonging, Launches};
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables, argument_text};

/// The events of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameTime {
    /// The name; `None` for events without a name.
    pub name: Option<StringId>,
    /// Number of events.
    pub count: u64,
    /// Total time.
    pub duration_ns: i64,
    /// Time of the longest event.
    pub longest_ns: i64,
    /// The longest event, the first of several.
    pub longest: EventId,
}

/// Sums times of events by name, largest sum first; ties are sorted by name.
pub fn by_name(tables: &Tables, times: impl IntoIterator<Item = (EventId, i64)>) -> Vec<NameTime> {
    let mut row_of: HashMap<Option<StringId>, usize> = HashMap::new();
    let mut rows: Vec<NameTime> = Vec::new();
    for (event, time_ns) in times {
        let name = tables.events.name(event);
        let row = *row_of.entry(name).or_insert(rows.len());
        if row == rows.len() {
            let (longest_ns, longest) = (time_ns, event);
            rows.push(NameTime { name, count: 0, duration_ns: 0, longest_ns, longest });
        }
        rows[row].add(event, time_ns);
    }
    let text = |row: &NameTime| row.name.map(|name| tables.strings.get(name));
    rows.sort_by(|one, two| {
        two.duration_ns.cmp(&one.duration_ns).then_with(|| text(one).cmp(&text(two)))
    });
    rows
}

impl NameTime {
    fn add(&mut self, event: EventId, time_ns: i64) {
        self.count += 1;
        self.duration_ns += time_ns;
        if (time_ns, self.longest) > (self.longest_ns, event) {
            (self.longest_ns, self.longest) = (time_ns, event);
        }
    }
}

/// Returns the kernels that belong to a window, by name. A kernel without duration counts in the
/// window where it ran.
pub fn kernels_by_name(tables: &Tables, belonging: &Belonging<'_>) -> Vec<NameTime> {
    let events = &tables.events;
    let kernels = events.ids().filter(|&event| events.kind(event) == EventKind::Kernel);
    by_name(tables, kernels.filter_map(|event| Some((event, belonging.time_ns(event)?))))
}

/// Returns the operators of a window by name, with their self time.
pub fn operators_by_name(tables: &Tables, nesting: &Nesting, window: (i64, i64)) -> Vec<NameTime> {
    let spans = tables.lanes.ids().map(|lane| (lane, window.0, window.1));
    let times = times_within(tables, nesting, spans);
    let is_operator = |event| tables.events.kind(event) == EventKind::Operator;
    let operators = times.iter().filter(|row| is_operator(row.event));
    by_name(tables, operators.map(|row| (row.event, row.self_ns)))
}

/// Returns the blocking calls of a window by name, over all threads, and why the longest of each
/// blocks.
pub fn blocking_by_name(
    tables: &Tables,
    blocking: &[Blocking],
    window: (i64, i64),
) -> Vec<(NameTime, Reason)> {
    let reasons: HashMap<_, _> = blocking.iter().map(|row| (row.event, row.reason)).collect();
    let times = blocking.iter().filter_map(|row| {
        let span = tables.events.span(row.event)?;
        overlaps(span, window).then(|| (row.event, inside_ns(span, window).unwrap_or(0)))
    });
    let rows = by_name(tables, times);
    rows.into_iter().map(|row| (row, reasons[&row.longest])).collect()
}

/// Returns the innermost operator that launched a GPU activity, and the sizes of its inputs as
/// recorded in the trace, if they were read.
pub fn launching_operator<'a>(
    event: EventId,
    tables: &'a Tables,
    launches: &Launches,
    nesting: &Nesting,
) -> Option<(EventId, Option<&'a str>)> {
    let is_operator = |&event: &EventId| tables.events.kind(event) == EventKind::Operator;
    let around = |call: EventId| {
        std::iter::successors(Some(call), |&event| nesting.parent(event)).find(is_operator)
    };
    let by_external_id = || {
        let known = launches.operators_by_external_id();
        known.binary_search_by_key(&event, |row| row.0).ok().map(|place| known[place].1)
    };
    let operator = launches.launcher(event).and_then(around).or_else(by_external_id)?;
    let sizes = ["Input Dims", "Input dims"];
    let sizes = sizes.iter().find_map(|key| argument_text(operator, key, tables));
    Some((operator, sizes))
}

/// Returns the number of GPU activities in a window, and how many of them have no known launch
/// call, although one launched them.
pub fn unlinked(tables: &Tables, launches: &Launches, window: (i64, i64)) -> (u64, u64) {
    let events = &tables.events;
    let is_inside = |event| events.span(event).is_some_and(|span| overlaps(span, window));
    let work =
        events.ids().filter(|&event| events.kind(event).is_device_work() && is_inside(event));
    work.fold((0, 0), |(all, unlinked), event| {
        (all + 1, unlinked + u64::from(is_unlinked(event, tables, launches)))
    })
}

/// Whether the launch call of a GPU activity is not known. Nothing launches the migrations of
/// managed memory.
pub(super) fn is_unlinked(work: EventId, tables: &Tables, launches: &Launches) -> bool {
    launches.launcher(work).is_none() && !tables.is_migration(work)
}

fn overlaps((start, end): (i64, i64), window: (i64, i64)) -> bool {
    start < window.1 && end > window.0
}

/// Returns the part of a span inside a window; `None` if it is empty.
fn inside_ns((start, end): (i64, i64), window: (i64, i64)) -> Option<i64> {
    let inside = end.min(window.1).saturating_sub(start.max(window.0));
    (inside > 0).then_some(inside)
}

/// Returns the number of such activities in a window, and the time during which any of them runs.
pub fn earlier_work(tables: &Tables, launches: &Launches, window: (i64, i64)) -> (u64, i64) {
    let events = &tables.events;
    let first_ns = first_linked_ns(tables, launches);
    let is_earlier = |event: EventId| {
        let first_ns = first_ns[events.lane(event).row()];
        launches.launcher(event).is_none() && first_ns.is_some_and(|ns| events.start_ns(event) < ns)
    };
    let work = events.ids().filter(|&event| events.kind(event).is_device_work());
    let spans = work.filter(|&event| is_earlier(event)).filter_map(|event| events.span(event));
    let clipped = spans.map(|(start, end)| (start.max(window.0), end.min(window.1)));
    let inside: Vec<_> = clipped.filter(|(start, end)| start < end).collect();
    (inside.len() as u64, Spans::union_of(inside).length_ns())
}

/// For each lane, returns the start of the first activity with a launch.
fn first_linked_ns(tables: &Tables, launches: &Launches) -> Vec<Option<i64>> {
    let events = &tables.events;
    let mut first_ns: Vec<Option<i64>> = vec![None; tables.lanes.len()];
    for event in events.ids().filter(|&event| launches.launcher(event).is_some()) {
        let (first, start_ns) = (&mut first_ns[events.lane(event).row()], events.start_ns(event));
        *first = Some(first.map_or(start_ns, |ns| ns.min(start_ns)));
    }
    first_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    fn tables(rows: &[(&str, i64, i64)]) -> Tables {
        let kernels = rows.iter().map(|(name, start, end)| {
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{start},"dur":{},"args":{{"device":0,"stream":7}}}}"#,
                end - start
            )
        });
        let text = format!("[{}]", kernels.collect::<Vec<_>>().join(","));
        read_bytes(text.as_bytes(), &Options::default()).unwrap()
    }

    fn rows(tables: &Tables, window: (i64, i64)) -> Vec<(&str, u64, i64, i64, usize)> {
        let launches = Launches::default();
        let rows = kernels_by_name(tables, &Belonging::of(tables, &launches, window, window));
        let text = |row: &NameTime| tables.strings.get(row.name.unwrap());
        rows.iter()
            .map(|row| (text(row), row.count, row.duration_ns, row.longest_ns, row.longest.row()))
            .collect()
    }

    #[test]
    fn the_greatest_sum_comes_first_and_ties_go_by_text() {
        let tables = tables(&[("b", 0, 2), ("a", 2, 4), ("c", 4, 5), ("c", 5, 7)]);
        let found = rows(&tables, (0, 10_000));
        assert_eq!(
            found,
            [("c", 2, 3000, 2000, 3), ("a", 1, 2000, 2000, 1), ("b", 1, 2000, 2000, 0)]
        );
    }

    #[test]
    fn only_the_part_in_the_window_counts_and_of_equals_the_first_is_the_longest() {
        let tables = tables(&[("a", 0, 4), ("a", 6, 10), ("a", 10, 20), ("a", 3, 3)]);
        assert_eq!(rows(&tables, (2_000, 8_000)), [("a", 3, 4000, 2000, 0)]);
    }
}
