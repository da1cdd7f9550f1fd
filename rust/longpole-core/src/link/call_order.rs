//! Bounds the time of missing calls by their correlation ids.
//!
//! Profilers number the calls of a process in the order in which they begin. An activity whose call
//! is missing still has the call's number: the call began after those with lower numbers and before
//! those with higher ones. Numbers that do not rise with time, for example because they are reused,
//! are ignored.

use std::collections::BTreeMap;

use super::calls::number;
use crate::ids::{EventId, LaneId, StringId};
use crate::tables::Tables;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(number_of: impl Fn(i64) -> i64, n_threads: i64) -> Vec<Numbered> {
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
        let mut one = calls(|place| place, 1);
        one[50].start_ns = 480;
        assert!(rises(&mut one));
        assert_eq!((one[50].start_ns, one[60].over_ns), (490, 615));
    }

    #[test]
    fn reused_numbers_do_not_rise() {
        assert!(!rises(&mut calls(|place| place % 20, 1)));
    }

    #[test]
    fn a_call_may_come_before_the_end_of_the_last_one_where_several_threads_call_at_once() {
        let mut two = calls(|place| place, 2);
        assert!(rises(&mut two));
        assert_eq!(two[60].over_ns, 600);
    }
}
