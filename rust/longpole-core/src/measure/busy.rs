//! How long each device computed, communicated, copied or was idle.
//!
//! Activities of several streams overlap, so durations cannot be added. One sweep over sorted
//! starts and ends assigns every instant to one class. The result is what a device did, not what it
//! waited for.

use std::collections::BTreeMap;

use super::Chosen;
use crate::columns::columns;
use crate::ids::EventId;
use crate::intervals::Spans;
use crate::names::Names;
use crate::tables::{Tables, WorkClass};
use crate::time::in_range;

columns! {
    /// The busy time of a stream, or of a device as a whole, within a window.
    ///
    /// Compute, communication, copy and idle time add up to the window. An instant with several classes
    /// counts for the first of them in this order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Busy {
        /// The device; `None` if the trace has no device numbers.
        pub device: Option<i64>,
        /// The stream; `None` for the device as a whole.
        pub stream: Option<i64>,
        /// Number of activities that ran within the window, entirely or partly.
        pub count: i64,
        /// Time with any activity.
        pub busy_ns: i64,
        /// Time with a compute kernel.
        pub compute_ns: i64,
        /// Time with a communication kernel and no compute kernel.
        pub communication_ns: i64,
        /// Time with a memcpy or memset and no kernel.
        pub copy_ns: i64,
        /// Time without any activity.
        pub idle_ns: i64,
        /// Time with a communication kernel, with or without a compute kernel.
        pub communication_total_ns: i64,
        /// Time with a memcpy or memset, with or without other activities.
        pub copy_total_ns: i64,
    }
}

/// The spans of one stream or device, by class.
#[derive(Default)]
struct Spread {
    compute: Vec<(i64, i64)>,
    communication: Vec<(i64, i64)>,
    copy: Vec<(i64, i64)>,
}

/// Returns the busy time of each device and each of its streams between `window.0` and `window.1`,
/// for the chosen activities: a row for the device, then one for each stream, by number.
pub fn busy(tables: &Tables, window: (i64, i64), chosen: &Chosen) -> Vec<Busy> {
    let window = in_range(window);
    let events = &tables.events;
    let class_of = tables.work_classes();
    let mut by_lane: Vec<Option<Spread>> = Vec::new();
    by_lane.resize_with(tables.lanes.len(), || None);
    for event in events.ids().filter(|&event| chosen.holds(event)) {
        let (Some(class), Some((start, end))) = (class_of(event), events.span(event)) else {
            continue;
        };
        // A device is listed even if it did nothing within the window.
        let spread = by_lane[events.lane(event).row()].get_or_insert_default();
        if let Some(span) = span_within((start, end), window) {
            spread.of(class).push(span);
        }
    }
    let length = window.1 - window.0;
    by_place(tables, by_lane)
        .into_iter()
        .map(|((device, stream), spread)| spread.measure(device, stream.flatten(), length))
        .collect()
}

/// Returns the part of an activity within a window, if it ran in it. Activities without duration
/// also count, although they take no time.
pub(super) fn span_within((start, end): (i64, i64), window: (i64, i64)) -> Option<(i64, i64)> {
    let span = (start.max(window.0), end.min(window.1));
    (span.0 < span.1 || (start == end && span.0 == span.1)).then_some(span)
}

/// Returns the spans of devices and their streams, in this order.
fn by_place(tables: &Tables, by_lane: Vec<Option<Spread>>) -> BTreeMap<Place, Spread> {
    let mut places: BTreeMap<Place, Spread> = BTreeMap::new();
    for (lane, spread) in tables.lanes.ids().zip(by_lane) {
        let Some(spread) = spread else { continue };
        let place = tables.lanes.place(lane);
        places.entry((place.device, None)).or_default().add(&spread);
        places.entry((place.device, Some(place.stream))).or_default().add(&spread);
    }
    places
}

/// A device and one of its streams; `None` for the device as a whole.
type Place = (Option<i64>, Option<Option<i64>>);

impl Spread {
    fn add(&mut self, other: &Self) {
        self.compute.extend_from_slice(&other.compute);
        self.communication.extend_from_slice(&other.communication);
        self.copy.extend_from_slice(&other.copy);
    }

    fn of(&mut self, class: WorkClass) -> &mut Vec<(i64, i64)> {
        match class {
            WorkClass::Compute => &mut self.compute,
            WorkClass::Communication => &mut self.communication,
            WorkClass::Copy => &mut self.copy,
        }
    }

    fn measure(self, device: Option<i64>, stream: Option<i64>, length: i64) -> Busy {
        let n_events = self.compute.len() + self.communication.len() + self.copy.len();
        let compute = Spans::union_of(self.compute);
        let communication = Spans::union_of(self.communication);
        let copy = Spans::union_of(self.copy);
        let kernels = compute.union(&communication);
        let busy_ns = kernels.union(&copy).length_ns();
        Busy {
            device,
            stream,
            count: i64::try_from(n_events).unwrap_or(i64::MAX),
            busy_ns,
            compute_ns: compute.length_ns(),
            communication_ns: communication.minus(&compute).length_ns(),
            copy_ns: copy.minus(&kernels).length_ns(),
            idle_ns: length - busy_ns,
            communication_total_ns: communication.length_ns(),
            copy_total_ns: copy.length_ns(),
        }
    }
}

// How long some activities ran at the same time as other activities of their device.

/// For each event in `of` with a start and an end, returns the time in which any event in `beside`
/// ran on the same device.
pub fn overlaps(tables: &Tables, of: &[EventId], beside: &Chosen) -> Vec<(EventId, i64)> {
    let events = &tables.events;
    let device = |event| tables.lanes.place(events.lane(event)).device;
    let mut spans: BTreeMap<Option<i64>, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.ids().filter(|&event| beside.holds(event)) {
        if let Some(span) = events.span(event) {
            spans.entry(device(event)).or_default().push(span);
        }
    }
    let spans: BTreeMap<_, _> =
        spans.into_iter().map(|(device, spans)| (device, Spans::union_of(spans))).collect();
    of.iter()
        .filter_map(|&event| Some((event, events.span(event)?)))
        .map(|(event, (start, end))| {
            let beside = spans.get(&device(event));
            (event, beside.map_or(0, |spans| spans.length_within_ns(start, end)))
        })
        .collect()
}

// How long which classes of activities ran at the same time on each device.
//
// Every instant of the window belongs to one set of classes, possibly the empty set, so the times
// of a device add up to the window.

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
    use crate::read::{Options, read_bytes};

    /// Reads kernels from (name, stream, start, duration).
    fn kernels(rows: &[(&str, i64, i64, i64)]) -> Tables {
        let events: Vec<_> = rows
            .iter()
            .map(|(name, stream, start, duration)| {
                format!(
                    r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{start}e-3,
                    "dur":{duration}e-3,"args":{{"device":0,"stream":{stream}}}}}"#
                )
            })
            .collect();
        read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap()
    }

    #[test]
    fn work_without_duration_counts_and_takes_no_time() {
        let tables = kernels(&[("a", 7, 0, 10), ("b", 7, 10, 0), ("c", 7, 30, 0)]);
        let found = busy(&tables, (0, 20), &Chosen::All);
        assert_eq!((found[0].count, found[0].busy_ns, found[0].idle_ns), (2, 10, 10));
    }

    #[test]
    fn the_classes_and_idle_sum_to_the_window() {
        let rows =
            [("gemm", 7, 0, 40), ("ncclDevKernel_AllReduce", 9, 30, 40), ("gemm", 7, 80, 40)];
        let found = busy(&kernels(&rows), (10, 100), &Chosen::All);
        let figures: Vec<_> = found
            .iter()
            .map(|row| {
                (
                    row.stream,
                    row.compute_ns,
                    row.communication_ns,
                    row.idle_ns,
                    row.communication_total_ns,
                )
            })
            .collect();
        assert_eq!(
            figures,
            [(None, 50, 30, 10, 40), (Some(7), 50, 0, 40, 0), (Some(9), 0, 40, 50, 40)]
        );
        for row in found {
            assert_eq!(row.compute_ns + row.communication_ns + row.copy_ns + row.idle_ns, 90);
        }
    }

    #[test]
    fn only_the_same_device_counts_and_each_instant_once() {
        let rows = [(0, 10, 20), (0, 0, 12), (0, 5, 14), (0, 28, 9), (1, 10, 20)];
        let events: Vec<_> = rows
            .iter()
            .map(|(device, start, duration)| {
                format!(
                    r#"{{"ph":"X","cat":"kernel","name":"a","pid":{device},"tid":{start},"ts":{start}e-3,
                    "dur":{duration}e-3,"args":{{"device":{device},"stream":{start}}}}}"#
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let of = EventId::from_row(0);
        let found = overlaps(&tables, &[of], &Chosen::of_rows([1, 2, 3, 4], 5));
        assert_eq!(found, [(of, 9 + 2)]);
    }

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
