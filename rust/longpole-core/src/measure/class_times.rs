//! How long which classes of activities ran at the same time on each device.
//!
//! Every instant of the window belongs to one set of classes, possibly the empty set, so the times
//! of a device add up to the window.

use std::collections::BTreeMap;

use super::Chosen;
use crate::columns::columns;
use crate::intervals::Spans;
use crate::names::Names;
use crate::tables::{Tables, WorkClass};
use crate::time::in_range;

columns! {
    /// The time of one set of concurrent classes on a device within a window.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ClassTime {
        /// The device; `None` if the trace has no device numbers.
        pub device: Option<i64>,
        /// Whether compute kernels ran.
        pub compute: bool,
        /// Whether communication kernels ran.
        pub communication: bool,
        /// Whether memcpys or memsets ran.
        pub copy: bool,
        /// Time in which exactly these classes ran.
        pub duration_ns: i64,
    }
}

const N_CLASSES: usize = WorkClass::ALL.len();
const N_SETS: usize = 1 << N_CLASSES;

/// Returns the time of each set of classes on each device, sorted by device and set. Sets that
/// never ran are left out.
pub fn class_times(tables: &Tables, window: (i64, i64), chosen: &Chosen) -> Vec<ClassTime> {
    let window = in_range(window);
    let events = &tables.events;
    let class_of = tables.work_classes();
    let mut by_lane = vec![<[Vec<(i64, i64)>; N_CLASSES]>::default(); tables.lanes.len()];
    for event in events.ids().filter(|&event| chosen.holds(event)) {
        if let (Some(class), Some((start, end))) = (class_of(event), events.span(event)) {
            let spans = &mut by_lane[events.lane(event).row()][class as usize];
            spans.push((start.max(window.0), end.min(window.1)));
        }
    }
    let mut by_device: BTreeMap<Option<i64>, [Vec<(i64, i64)>; N_CLASSES]> = BTreeMap::new();
    for (lane, mut spans) in tables.lanes.ids().zip(by_lane) {
        if spans.iter().any(|spans| !spans.is_empty()) {
            let all = by_device.entry(tables.lanes.place(lane).device).or_default();
            all.iter_mut().zip(&mut spans).for_each(|(all, spans)| all.append(spans));
        }
    }
    by_device.into_iter().flat_map(|(device, spans)| rows(device, spans, window)).collect()
}

fn rows(
    device: Option<i64>,
    spans: [Vec<(i64, i64)>; N_CLASSES],
    window: (i64, i64),
) -> impl Iterator<Item = ClassTime> {
    set_times(&spans.map(Spans::union_of), window)
        .into_iter()
        .zip(0_u8..)
        .map(move |(duration_ns, classes)| {
            let runs = |class: WorkClass| classes >> class as u8 & 1 == 1;
            ClassTime {
                device,
                compute: runs(WorkClass::Compute),
                communication: runs(WorkClass::Communication),
                copy: runs(WorkClass::Copy),
                duration_ns,
            }
        })
        .filter(|row| row.duration_ns > 0)
}

/// Returns the time of each set of classes between `window.0` and `window.1`, indexed by the bits
/// of the set.
fn set_times(spans: &[Spans; N_CLASSES], window: (i64, i64)) -> [i64; N_SETS] {
    let mut changes: Vec<(i64, usize)> = Vec::new();
    for (class, spans) in spans.iter().enumerate() {
        let bounds = spans.as_slice().iter().flat_map(|&(start, end)| [start, end]);
        changes.extend(bounds.map(|time_ns| (time_ns, class)));
    }
    // Each class is already sorted, which a merge sort exploits.
    #[allow(clippy::stable_sort_primitive)]
    changes.sort();
    let mut times = [0; N_SETS];
    let (mut now_ns, mut set) = (window.0, 0);
    for (time_ns, class) in changes {
        times[set] += time_ns - now_ns;
        // The spans of one class never touch, so each of their ends is a change.
        set ^= 1 << class;
        now_ns = time_ns;
    }
    times[set] += window.1 - now_ns;
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(rows: [&[(i64, i64)]; N_CLASSES]) -> [Spans; N_CLASSES] {
        rows.map(|row| Spans::union_of(row.iter().copied()))
    }

    #[test]
    fn every_instant_belongs_to_one_set_of_classes() {
        let spans = spans([&[(0, 4), (6, 8)], &[(2, 7)], &[(9, 10)]]);
        //          none, compute, comm., both, copy, ...
        assert_eq!(set_times(&spans, (0, 12)), [3, 3, 2, 3, 1, 0, 0, 0]);
    }

    #[test]
    fn without_activities_all_time_is_idle() {
        assert_eq!(set_times(&spans([&[], &[], &[]]), (5, 9)), [4, 0, 0, 0, 0, 0, 0, 0]);
    }
}
