//! Completion of a time range of the host: all GPU activities launched in it have ended.

use std::collections::BTreeMap;

use super::model::{Moment, WindowEnd};
use crate::graph::limits::LATE_AFTER_MISSING_NS;
use crate::ids::{EventId, LaneId, StringId};
use crate::link::{CallOrder, Launches};
use crate::tables::{Tables, by_content};

/// The GPU activities that each process submitted, in order of submission.
pub(super) struct Submissions {
    of_process: BTreeMap<StringId, Vec<(i64, EventId)>>,
}

impl Submissions {
    pub(super) fn of(tables: &Tables, launches: &Launches) -> Self {
        let events = &tables.events;
        let mut of_process: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
            let call = launches.launcher(work).filter(|&call| events.end_ns(call).is_some());
            if let (Some(call), Some(_)) = (call, events.end_ns(work)) {
                let submitted = (events.start_ns(call), work);
                of_process.entry(process_of(call, tables)).or_default().push(submitted);
            }
        }
        for (submitted_ns, process, work) in unlinked(tables, launches) {
            of_process.entry(process).or_default().push((submitted_ns, work));
        }
        for works in of_process.values_mut() {
            works.sort();
        }
        Self { of_process }
    }

    /// Returns the activities that a process launched in a time range.
    pub(super) fn launched(
        &self,
        process: StringId,
        (start_ns, end_ns): (i64, i64),
    ) -> &[(i64, EventId)] {
        let works = self.of_process.get(&process).map_or(&[][..], Vec::as_slice);
        let first = works.partition_point(|&(submitted, _)| submitted < start_ns);
        let behind = works.partition_point(|&(submitted, _)| submitted < end_ns).max(first);
        &works[first..behind]
    }

    /// Returns the moments that complete a time range of a process: a moment on the host, and the
    /// end of the GPU activities launched in the range.
    pub(super) fn completion(
        &self,
        process: StringId,
        host_ns: (i64, i64),
        host: Moment,
    ) -> Vec<Moment> {
        let ends = self.launched(process, host_ns).iter().map(|&(_, work)| Moment::End(work));
        std::iter::once(host).chain(ends).collect()
    }

    /// Like [`completion`](Self::completion), for an annotation or the requested parts of it.
    pub(super) fn of_annotation(
        &self,
        annotation: EventId,
        end: WindowEnd,
        tables: &Tables,
    ) -> Vec<Moment> {
        let events = &tables.events;
        let end_ns = events.end_ns(annotation).unwrap_or(i64::MIN);
        let host_ns = (events.start_ns(annotation), end_ns);
        let process = process_of(annotation, tables);
        let mut moments = self.completion(process, host_ns, Moment::End(annotation));
        match end {
            WindowEnd::Cpu => moments.truncate(1),
            WindowEnd::Gpu => drop(moments.remove(0)),
            WindowEnd::Last | WindowEnd::Period => {}
        }
        moments
    }
}

/// Returns GPU activities whose launch is not in the trace, with their likely launch time and
/// process. The launch is assumed together with that of the previous activity on the stream if the
/// two are adjacent, otherwise just before the start, and always between the calls with the
/// neighbouring correlation ids. Streams without any known launch are left out.
fn unlinked(tables: &Tables, launches: &Launches) -> Vec<(i64, StringId, EventId)> {
    let events = &tables.events;
    let is_work = |&event: &EventId| events.kind(event).is_device_work();
    let works = || events.ids().filter(is_work).filter(|&work| events.end_ns(work).is_some());
    let mut has_unlinked = vec![false; tables.lanes.len()];
    for work in works().filter(|&work| launches.launcher(work).is_none()) {
        has_unlinked[events.lane(work).row()] = true;
    }
    let mut lanes: BTreeMap<LaneId, Vec<EventId>> = BTreeMap::new();
    for work in works().filter(|&work| has_unlinked[events.lane(work).row()]) {
        lanes.entry(events.lane(work)).or_default().push(work);
    }
    let mut found = Vec::new();
    if lanes.is_empty() {
        return found;
    }
    let order = CallOrder::of(tables);
    for mut works in lanes.into_values() {
        works.sort_by(|&one, &two| by_content(one, two, tables));
        unlinked_of_lane(&works, (launches, &order), tables, &mut found);
    }
    found
}

fn unlinked_of_lane(
    works: &[EventId],
    (launches, order): (&Launches, &CallOrder),
    tables: &Tables,
    found: &mut Vec<(i64, StringId, EventId)>,
) {
    let events = &tables.events;
    let call_of =
        |work| launches.launcher(work).filter(|&call: &EventId| events.end_ns(call).is_some());
    let Some(first) = works.iter().find_map(|&work| call_of(work)) else { return };
    let mut process = process_of(first, tables);
    let (mut last_ns, mut ended_ns) = (None, i64::MIN);
    let mut first_open = found.len();
    for &work in works {
        let (start_ns, end_ns) = events.span(work).unwrap_or_default();
        if let Some(call) = call_of(work) {
            let next_ns = events.start_ns(call);
            for open in &mut found[first_open..] {
                open.0 = open.0.min(next_ns);
            }
            first_open = found.len();
            last_ns = Some(next_ns);
            process = process_of(call, tables);
        } else {
            let (after_ns, before_ns) = order.around(process, work, tables);
            let follows = start_ns.saturating_sub(ended_ns) <= LATE_AFTER_MISSING_NS;
            let begun_ns = last_ns.unwrap_or(start_ns).max(start_ns);
            let likely_ns = last_ns.filter(|_| follows).unwrap_or(begun_ns);
            if last_ns.is_some() || (after_ns, before_ns) != (i64::MIN, i64::MAX) {
                let submitted_ns = likely_ns.max(after_ns).min(before_ns);
                found.push((submitted_ns, process, work));
                last_ns = Some(submitted_ns);
            }
        }
        ended_ns = ended_ns.max(end_ns);
    }
}

pub(super) fn process_of(event: EventId, tables: &Tables) -> StringId {
    tables.lanes.place(tables.events.lane(event)).process
}
