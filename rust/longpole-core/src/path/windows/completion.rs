//! When a stretch of the host is complete: the device work launched in it has ended, too.

use std::collections::BTreeMap;

use super::model::{Moment, WindowEnd};
use crate::ids::{EventId, StringId};
use crate::link::Launches;
use crate::tables::Tables;

/// The device work that each process submitted, in order of submission.
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
        for works in of_process.values_mut() {
            works.sort();
        }
        Self { of_process }
    }

    /// The work that a process launched from one time to another.
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

    /// What completes a stretch of a process: a moment on the host, and the end of the
    /// device work launched in it.
    pub(super) fn completion(
        &self,
        process: StringId,
        host_ns: (i64, i64),
        host: Moment,
    ) -> Vec<Moment> {
        let ends = self.launched(process, host_ns).iter().map(|&(_, work)| Moment::End(work));
        std::iter::once(host).chain(ends).collect()
    }

    /// The same for an annotation, or for the parts of it that were asked for.
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

pub(super) fn process_of(event: EventId, tables: &Tables) -> StringId {
    tables.lanes.place(tables.events.lane(event)).process
}
