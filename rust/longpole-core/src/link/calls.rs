//! Looks up runtime API calls by correlation id.
//!
//! Ids are reused in long traces, so a lookup returns the last call before a time. Calls are sorted
//! once; every lookup is a binary search, or an index lookup if the ids are dense, as they usually
//! are. Calls without an id, or with id 0, are never found.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::ids::{EventId, LaneId, StringId, row_in_column};
use crate::tables::{EventTable, Tables, by_content};

/// Every call with its number, sorted by number, then time.
pub(super) struct Calls {
    rows: Vec<(i64, i64, EventId)>,
    /// Index of the first row of each number, starting at the lowest, followed by the end index;
    /// empty if the numbers are sparse.
    first: Vec<u32>,
}

/// Maximum ratio of the range of numbers to the number of calls for an index.
const NUMBERS_A_CALL: usize = 8;

impl Calls {
    pub(super) fn of(tables: &Tables) -> Self {
        let events = &tables.events;
        let mut rows: Vec<_> = events
            .ids()
            .filter(|&event| events.kind(event).is_call())
            .filter_map(|call| Some((number(events, call)?, events.start_ns(call), call)))
            .collect();
        rows.sort_by(|one, two| match (one.0, one.1).cmp(&(two.0, two.1)) {
            Ordering::Equal => by_content(one.2, two.2, tables),
            decided => decided,
        });
        Self { first: first_rows(&rows), rows }
    }

    pub(super) fn with_number_of(
        &self,
        work: EventId,
        events: &EventTable,
    ) -> &[(i64, i64, EventId)] {
        number(events, work).map_or(&[], |number| self.with_number(number))
    }

    /// Returns the call with a number: of several, the last that began by `time_ns`, otherwise the
    /// first.
    pub(super) fn at(&self, number: i64, time_ns: i64) -> Option<EventId> {
        let rows = self.with_number(number);
        let before = rows.partition_point(|row| row.1 <= time_ns);
        rows.get(before.saturating_sub(1)).map(|&(_, _, call)| call)
    }

    /// Returns every call with its number and start, sorted by number, then time.
    pub(super) fn rows(&self) -> &[(i64, i64, EventId)] {
        &self.rows
    }

    fn with_number(&self, number: i64) -> &[(i64, i64, EventId)] {
        if let (Some(lowest), false) = (self.rows.first(), self.first.is_empty()) {
            let place = usize::try_from(number.saturating_sub(lowest.0)).unwrap_or(usize::MAX);
            return match self.first.get(place..place.saturating_add(2)) {
                Some(&[start, end]) => &self.rows[start as usize..end as usize],
                _ => &[],
            };
        }
        let start = self.rows.partition_point(|row| row.0 < number);
        let length = self.rows[start..].partition_point(|row| row.0 == number);
        &self.rows[start..start + length]
    }
}

fn first_rows(rows: &[(i64, i64, EventId)]) -> Vec<u32> {
    let (Some(lowest), Some(highest)) = (rows.first(), rows.last()) else { return Vec::new() };
    let most = rows.len().saturating_mul(NUMBERS_A_CALL);
    let span = highest.0.checked_sub(lowest.0).and_then(|span| usize::try_from(span).ok());
    let Some(span) = span.filter(|&span| span < most) else { return Vec::new() };
    let mut first = vec![0; span + 2];
    for (place, row) in rows.iter().enumerate() {
        // Rows are sorted by number, so the last row of each number determines where the next
        // begins.
        if let Ok(number) = usize::try_from(row.0 - lowest.0) {
            first[number + 1] = row_in_column(place + 1);
        }
    }
    for number in 1..first.len() {
        first[number] = first[number].max(first[number - 1]);
    }
    first
}

/// Returns the correlation number of an event; `None` for 0, which never links.
pub(super) fn number(events: &EventTable, event: EventId) -> Option<i64> {
    events.correlation(event).filter(|&number| number > 0)
}

// Bounds the time of missing calls by their correlation ids.
//
// Profilers number the calls of a process in the order in which they begin. An activity whose call
// is missing still has the call's number: the call began after those with lower numbers and before
// those with higher ones. Numbers that do not rise with time, for example because they are reused,
// are ignored.

/// At most one in this many calls may be out of order, because two threads can take their numbers
/// and times concurrently.
const UNORDERED_ONE_IN: usize = 100;

/// The calls of each process whose numbers rise with time, by number.
#[derive(Debug)]
pub struct CallOrder {
    of_process: BTreeMap<StringId, Vec<Numbered>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Numbered {
    number: i64,
    start_ns: i64,
    /// Calls with higher numbers begin after this time: the call's end, or its start in a process
    /// in which several threads call concurrently.
    over_ns: i64,
    thread: LaneId,
}

impl CallOrder {
    /// Collects the calls of each process whose numbers rise with time.
    pub fn of(tables: &Tables) -> Self {
        let events = &tables.events;
        let mut of_process: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for call in events.ids().filter(|&event| events.kind(event).is_call()) {
            if let (Some(number), Some((start_ns, over_ns))) =
                (number(events, call), events.span(call))
            {
                let thread = events.lane(call);
                let process = tables.lanes.place(thread).process;
                let numbered = Numbered { number, start_ns, over_ns, thread };
                of_process.entry(process).or_default().push(numbered);
            }
        }
        of_process.retain(|_, calls| rises(calls));
        Self { of_process }
    }

    /// Returns the time range in which a process made the call with the number of an activity;
    /// unbounded if nothing is known.
    pub fn around(&self, process: StringId, work: EventId, tables: &Tables) -> (i64, i64) {
        let calls = self.of_process.get(&process).map_or(&[][..], Vec::as_slice);
        let Some(number) = number(&tables.events, work) else { return (i64::MIN, i64::MAX) };
        let behind = calls.partition_point(|call| call.number <= number);
        let before_ns = calls.get(behind).map_or(i64::MAX, |call| call.start_ns);
        let after_ns = calls[..behind].last().map_or(i64::MIN, |call| call.over_ns);
        (after_ns.min(before_ns), before_ns)
    }
}

/// Sorts calls by number. Returns whether their times rise too, after small disorders are
/// corrected.
fn rises(calls: &mut [Numbered]) -> bool {
    calls.sort_unstable();
    let count = |is_out: fn(&Numbered, &Numbered) -> bool| {
        calls.windows(2).filter(|pair| is_out(&pair[0], &pair[1])).count() * UNORDERED_ONE_IN
    };
    let n_inverted = count(|one, next| next.start_ns < one.start_ns);
    let n_at_once = count(|one, next| next.start_ns < one.over_ns && next.thread != one.thread);
    let is_serial = n_at_once <= calls.len();
    let mut last_ns = i64::MIN;
    for call in calls.iter_mut() {
        last_ns = last_ns.max(call.start_ns);
        call.start_ns = last_ns;
        call.over_ns = if is_serial { call.over_ns.max(last_ns) } else { last_ns };
    }
    n_inverted <= calls.len()
}

// Captures of CUDA graphs: launches in them do no work until the graph is replayed.

/// The times in which threads capture graphs.
#[derive(Debug, Default)]
pub struct Captures {
    /// Start and end in ns by thread, sorted.
    of_lane: BTreeMap<LaneId, Vec<(i64, i64)>>,
}

impl Captures {
    /// Finds the captures of a trace. One without an end lasts until the end of the trace.
    pub fn of(tables: &Tables) -> Self {
        let events = &tables.events;
        let begins = tables.strings.matching(|name| name.contains("BeginCapture"));
        let ends = tables.strings.matching(|name| name.contains("EndCapture"));
        let mut calls: Vec<(LaneId, i64, bool)> = events
            .ids()
            .filter(|&event| events.kind(event).is_call())
            .filter_map(|event| {
                let name = events.name(event)?.row();
                let is_either = begins[name] || ends[name];
                is_either.then(|| (events.lane(event), events.start_ns(event), begins[name]))
            })
            .collect();
        calls.sort_unstable();
        let mut of_lane: BTreeMap<LaneId, Vec<(i64, i64)>> = BTreeMap::new();
        for (lane, time_ns, is_begin) in calls {
            let captures = of_lane.entry(lane).or_default();
            let open = captures.last_mut().filter(|capture| capture.1 == i64::MAX);
            match (is_begin, open) {
                (true, None) => captures.push((time_ns, i64::MAX)),
                (false, Some(capture)) => capture.1 = time_ns,
                _ => {}
            }
        }
        Self { of_lane }
    }

    /// Whether a call is made while its thread captures a graph.
    pub fn contain(&self, call: EventId, tables: &Tables) -> bool {
        let Some(captures) = self.of_lane.get(&tables.events.lane(call)) else { return false };
        let time_ns = tables.events.start_ns(call);
        let next = captures.partition_point(|capture| capture.0 <= time_ns);
        next.checked_sub(1).is_some_and(|last| time_ns < captures[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(numbers: &[i64]) -> Calls {
        let rows: Vec<_> = numbers
            .iter()
            .zip(0_u8..)
            .map(|(&n, row)| (n, 0, EventId::from_row(row.into())))
            .collect();
        Calls { first: first_rows(&rows), rows }
    }

    #[test]
    fn numbers_close_together_and_far_apart_are_found_alike() {
        let close = [3, 4, 4, 7, 9, 9, 9];
        let far = close.map(|number| number * 1_000_000_000_000);
        let (listed, searched) = (calls(&close), calls(&far));
        assert!(!listed.first.is_empty() && searched.first.is_empty());
        for number in 1..12 {
            let found = listed.with_number(number).iter().map(|row| row.2);
            let others = searched.with_number(number * 1_000_000_000_000).iter().map(|row| row.2);
            assert!(found.clone().eq(others), "{number}");
            assert_eq!(found.count(), close.iter().filter(|&&known| known == number).count());
        }
        assert!(calls(&[]).with_number(1).is_empty());
        assert!(calls(&[1, i64::MAX]).with_number(2).is_empty());
    }

    fn calls_of(number_of: impl Fn(i64) -> i64, n_threads: i64) -> Vec<Numbered> {
        let call = |place: i64| Numbered {
            number: number_of(place),
            start_ns: 10 * place,
            over_ns: 10 * place + 15,
            thread: LaneId::from_row(usize::try_from(place % n_threads).unwrap()),
        };
        (0..200).map(call).collect()
    }

    #[test]
    fn numbers_rise_but_for_a_few() {
        let mut one = calls_of(|place| place, 1);
        one[50].start_ns = 480;
        assert!(rises(&mut one));
        assert_eq!((one[50].start_ns, one[60].over_ns), (490, 615));
    }

    #[test]
    fn reused_numbers_do_not_rise() {
        assert!(!rises(&mut calls_of(|place| place % 20, 1)));
    }

    #[test]
    fn a_call_may_come_before_the_end_of_the_last_one_where_several_threads_call_at_once() {
        let mut two = calls_of(|place| place, 2);
        assert!(rises(&mut two));
        assert_eq!(two[60].over_ns, 600);
    }
}
