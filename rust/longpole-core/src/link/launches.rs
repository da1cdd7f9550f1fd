//! Links each GPU activity to its launch call, and to the operator around that call.
//!
//! The profiler gives both the same correlation id. Some profilers only record an external id,
//! which is used as a marked fallback. A reused id refers to the latest call that began by the time
//! of the activity. If several processes of one file use the same ids, each device is assigned to
//! one of them. In a profile without any ids, activities are assigned to the graph launch that
//! contains them. Activities without a call are counted and have no launcher.

use std::collections::HashMap;

use super::calls::{Calls, number};
use super::homes::{self, Homes};
use crate::error::Result;
use crate::ids::{EventId, InColumn, NO_ROW, StringId};
use crate::names::named;
use crate::progress::{Progress, report};
use crate::tables::{EventKind, EventTable, Tables};
use crate::vocabulary::{ApiRole, Layer};

/// The launch call of each GPU activity. See [`launches`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launches {
    launcher: Vec<u32>,
    operator: Vec<(EventId, EventId)>,
    holders: Vec<EventId>,
    /// Number of GPU activities with several possible launch calls.
    pub ambiguous: u64,
    /// Number of GPU activities without a launch call in the trace.
    pub unlinked: u64,
    /// Number of GPU activities without a usable id (none, or 0).
    pub without_correlation: u64,
}

named! {
    /// How a launch was linked.
    LinkedBy {
        /// By the correlation id of a call.
        Correlation "correlation",
        /// By the external id, which identifies the operator but not the call.
        ExternalId "external_id",
        /// By the only graph launch that contains the activity, in a profile without ids.
        Holder "holder",
    }
}

impl Launches {
    /// Returns the launch call of `event`, if it is in the trace.
    pub fn launcher(&self, event: EventId) -> Option<EventId> {
        EventId::from_column(self.launcher[event.row()])
    }

    /// Returns the column of launch calls, one row for each event; [`NO_ROW`] for none.
    pub fn launchers(&self) -> &[u32] {
        &self.launcher
    }

    /// Returns the graph launches to which activities without ids were assigned, in order.
    pub fn holders(&self) -> &[EventId] {
        &self.holders
    }

    /// Returns the GPU activities without a call, each with the operator of its external id, in
    /// order of events: inferred, for profilers that record no correlation ids.
    pub fn operators_by_external_id(&self) -> &[(EventId, EventId)] {
        &self.operator
    }
}

/// Links GPU activities and synchronization records to the calls with their correlation id. One
/// call may launch many kernels, for example a graph launch.
///
/// Ids are unique within one process, and 0 is not an id, unless one call and one activity have it.
/// If several calls have the same id, those of the process that launches on the same device are
/// preferred, then those with the same external id. Of these, the last that began before the
/// activity is used, otherwise the first. Of calls that began together, the shorter counts as the
/// later; further ties are decided by content, so that file order does not matter. Such activities
/// are counted as ambiguous.
///
/// # Errors
///
/// Returns an error only if `progress` asks to stop.
pub fn launches(tables: &Tables, progress: Progress<'_>) -> Result<Launches> {
    let (events, lanes) = (&*tables.events, &*tables.lanes);
    let calls = Calls::of(tables);
    let reused = homes::Reused::of(&calls, events, lanes);
    let homes = Homes::learn(tables, &calls, &reused);
    let mut found = Launches { launcher: vec![NO_ROW; events.len()], ..Launches::default() };
    let mut orphans = Vec::new();
    for work in events.ids() {
        if work.row() % (1 << 16) == 0 {
            report(progress, work.row() as u64)?;
        }
        let kind = events.kind(work);
        let is_record = matches!(kind, EventKind::Synchronization | EventKind::DeviceTask);
        if !kind.is_device_work() && !is_record {
            continue;
        }
        let call = match calls.with_number_of(work, events) {
            [] => None,
            [(_, _, call)] => Some(*call),
            several => {
                found.ambiguous += 1;
                Some(reused.choose(several, work, homes.of(work, events, lanes), events))
            }
        };
        found.launcher[work.row()] = call.in_column();
        if call.is_none() && kind.is_device_work() {
            orphans.push(work);
        }
    }
    if let Some((work, call)) = first_connection(&orphans, tables) {
        found.launcher[work.row()] = Some(call).in_column();
        orphans.retain(|&orphan| orphan != work);
    }
    found.find_orphans(&orphans, tables);
    Ok(found)
}

impl Launches {
    /// Finds what is known about activities without a call: their operator, or the graph launch
    /// that contains them.
    fn find_orphans(&mut self, orphans: &[EventId], tables: &Tables) {
        let events = &tables.events;
        let without_number = orphans.iter().filter(|&&work| number(events, work).is_none());
        self.unlinked = orphans.len() as u64;
        self.without_correlation = without_number.count() as u64;
        self.operator = operators_by_external_id(events, orphans);
        if self.unlinked > 0 && self.unlinked == self.without_correlation && self.is_unlinked() {
            self.give_to_holders(orphans, tables);
        }
    }

    fn is_unlinked(&self) -> bool {
        self.launcher.iter().all(|&call| call == NO_ROW)
    }

    /// Assigns activities to the only graph launch during which they run.
    fn give_to_holders(&mut self, orphans: &[EventId], tables: &Tables) {
        let events = &tables.events;
        let graphs = graph_launches(tables);
        let is_disjoint = graphs.windows(2).all(|pair| pair[0].0.1 <= pair[1].0.0);
        for &work in orphans.iter().filter(|_| is_disjoint) {
            let Some((start_ns, end_ns)) = events.span(work) else { continue };
            let behind = graphs.partition_point(|graph| graph.0.0 <= start_ns);
            let Some(&((_, returned_ns), call)) = graphs[..behind].last() else { continue };
            if end_ns <= returned_ns {
                self.launcher[work.row()] = Some(call).in_column();
                self.unlinked -= 1;
                self.without_correlation -= 1;
                self.holders.push(call);
            }
        }
        self.holders.sort_unstable();
        self.holders.dedup();
    }
}

/// Returns the activity with id 0 and its call, if only one of each has it: CANN counts the
/// connections of its profile from 0. Elsewhere, 0 means that there is no id.
fn first_connection(orphans: &[EventId], tables: &Tables) -> Option<(EventId, EventId)> {
    let events = &tables.events;
    let has_zero = |&event: &EventId| events.correlation(event) == Some(0);
    let mut works = orphans.iter().copied().filter(has_zero);
    let work = works.next().filter(|_| works.next().is_none())?;
    let mut calls = events.ids().filter(|&event| events.kind(event).is_call()).filter(has_zero);
    let call = calls.next().filter(|_| calls.next().is_none())?;
    let is_cause = events.start_ns(call) <= events.start_ns(work);
    (is_cause && is_of_cann(tables)).then_some((work, call))
}

/// Whether the names of processes are those of CANN's profiler.
fn is_of_cann(tables: &Tables) -> bool {
    let (metadata, strings) = (&tables.metadata, &tables.strings);
    let wanted = strings.lookup("process_name");
    (0..metadata.len())
        .filter(|&row| wanted.is_some() && StringId::from_column(metadata.name[row]) == wanted)
        .filter_map(|row| StringId::from_column(metadata.value[row]))
        .map(|name| strings.get(name))
        .any(|name| Layer::of_process(name).is_some_and(|layer| layer.is_telling(name)))
}

/// Returns the graph launch calls, in order of time.
fn graph_launches(tables: &Tables) -> Vec<((i64, i64), EventId)> {
    let events = &tables.events;
    let launches_graph =
        tables.strings.matching(|name| tables.vocabulary.role(name) == ApiRole::GraphLaunch);
    let is_launch = |&event: &EventId| {
        events.kind(event).is_call()
            && events.name(event).is_some_and(|name| launches_graph[name.row()])
    };
    let span = |event| Some((events.span(event)?, event));
    let mut graphs: Vec<_> = events.ids().filter(is_launch).filter_map(span).collect();
    graphs.sort_unstable();
    graphs
}

fn operators_by_external_id(events: &EventTable, orphans: &[EventId]) -> Vec<(EventId, EventId)> {
    if orphans.is_empty() {
        return Vec::new();
    }
    let mut operators: HashMap<i64, Option<EventId>> = HashMap::new();
    for operator in events.ids().filter(|&event| events.kind(event) == EventKind::Operator) {
        if let Some(id) = events.external_id(operator).filter(|&id| id != 0) {
            // An id of two operators identifies neither.
            operators.entry(id).and_modify(|known| *known = None).or_insert(Some(operator));
        }
    }
    let operator = |work: EventId| *operators.get(&events.external_id(work)?)?;
    orphans.iter().filter_map(|&work| Some((work, operator(work)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};

    /// Links events given as `(category, pid, ts, correlation, external id)`.
    fn linked(rows: &[(&str, i64, i64, i64, i64)]) -> (Vec<Option<usize>>, Launches) {
        let events: Vec<_> = rows
            .iter()
            .map(|(category, pid, ts, correlation, id)| {
                format!(
                    r#"{{"ph":"X","cat":"{category}","name":"n","pid":{pid},"tid":1,"ts":{ts},"dur":1,
                    "args":{{"correlation":{correlation},"External id":{id}}}}}"#
                )
            })
            .collect();
        let tables =
            read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap();
        let found = launches(&tables, &silent).unwrap();
        let rows = tables.events.ids().map(|id| found.launcher(id).map(EventId::row)).collect();
        (rows, found)
    }

    #[test]
    fn a_kernel_finds_its_call_even_when_written_before_it() {
        let (rows, _) = linked(&[("kernel", 0, 5, 7, 1), ("cuda_runtime", 9, 1, 7, 1)]);
        assert_eq!(rows, [Some(1), None]);
    }

    #[test]
    fn an_operator_with_the_same_number_is_no_launch() {
        let (rows, found) = linked(&[("cpu_op", 9, 1, 7, 1), ("kernel", 0, 5, 7, 1)]);
        assert_eq!((rows, found.unlinked), (vec![None, None], 1));
    }

    #[test]
    fn the_number_zero_joins_nothing() {
        let (rows, found) = linked(&[("cuda_runtime", 9, 1, 0, 1), ("kernel", 0, 5, 0, 1)]);
        assert_eq!((rows, found.without_correlation), (vec![None, None], 1));
    }

    #[test]
    fn one_graph_launch_has_many_kernels() {
        let (rows, _) =
            linked(&[("cuda_runtime", 9, 1, 7, 1), ("kernel", 0, 5, 7, 1), ("kernel", 0, 8, 7, 1)]);
        assert_eq!(rows, [None, Some(0), Some(0)]);
    }

    #[test]
    fn a_reused_number_takes_the_last_call_before_the_kernel_and_is_counted() {
        let (rows, found) = linked(&[
            ("cuda_runtime", 9, 1, 7, 0),
            ("cuda_runtime", 9, 10, 7, 0),
            ("cuda_runtime", 9, 30, 7, 0),
            ("kernel", 0, 20, 7, 0),
        ]);
        assert_eq!((rows[3], found.ambiguous), (Some(1), 1));
    }

    #[test]
    fn of_calls_that_began_together_content_decides_and_not_the_order_of_the_file() {
        let (kernel, one, two) =
            (("kernel", 0, 20, 7, 0), ("cuda_runtime", 91, 1, 7, 0), ("cuda_runtime", 92, 1, 7, 0));
        assert_eq!(linked(&[kernel, one, two]).0[0], Some(2));
        assert_eq!(linked(&[kernel, two, one]).0[0], Some(1));
    }

    #[test]
    fn ranks_in_one_file_keep_to_their_own_calls() {
        let (rows, _) = linked(&[
            ("cuda_runtime", 91, 1, 1, 0),
            ("kernel", 1, 5, 1, 0),
            ("cuda_runtime", 92, 1, 2, 0),
            ("kernel", 2, 5, 2, 0),
            ("cuda_runtime", 91, 10, 7, 0),
            ("cuda_runtime", 92, 12, 7, 0),
            ("kernel", 1, 20, 7, 0),
            ("kernel", 2, 20, 7, 0),
        ]);
        assert_eq!(rows[6..], [Some(4), Some(5)]);
    }

    #[test]
    fn ranks_that_share_all_numbers_keep_to_the_calls_that_began_before_their_work() {
        let (rows, _) = linked(&[
            ("cuda_runtime", 91, 1, 1, 0),
            ("cuda_runtime", 92, 3, 1, 0),
            ("kernel", 1, 2, 1, 0),
            ("kernel", 2, 6, 1, 0),
            ("cuda_runtime", 91, 10, 7, 0),
            ("cuda_runtime", 92, 12, 7, 0),
            ("kernel", 1, 20, 7, 0),
            ("kernel", 2, 15, 7, 0),
        ]);
        assert_eq!(rows[2..4], [Some(0), Some(1)]);
        assert_eq!(rows[6..], [Some(4), Some(5)]);
    }

    #[test]
    fn without_correlations_the_external_id_names_the_operator() {
        let (rows, found) = linked(&[("cpu_op", 9, 1, 0, 3), ("kernel", 0, 5, 0, 3)]);
        let [operator, kernel] = [0, 1].map(EventId::from_row);
        assert_eq!((rows[1], found.operators_by_external_id()), (None, &[(kernel, operator)][..]));
    }
}
