//! The GPU activities of every stream, sorted in the orders that the rules need.
//!
//! Rules ask "what was submitted last before this call", "what ends in this interval", "which
//! kernel runs now". Sorted columns and running maxima answer each by binary search, which keeps
//! the graph near linear in the number of events. A stream number is only unique within its device;
//! if a trace has neither number, process and thread replace them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use super::kinds::Kind;
use super::limits;
use super::timeline::Timeline;
use crate::ids::{NO_ROW, Order, StringId, row_in_column};
use crate::link::SyncRecord;
use crate::tables::{Place, Tables, WorkClass};

/// Maximum number of activities without a launcher that are skipped to find one with a launcher.
const MOST_UNLINKED: usize = 64;

/// In a process with more devices than this, devices are not compared, because each would be
/// compared with all others. No machine has as many.
const MOST_DEVICES: usize = 64;

/// All streams, and the launches of their activities. A stream number is only unique within its
/// device.
pub(in crate::graph) struct Streams<'a> {
    pub(in crate::graph) timeline: &'a Timeline,
    pub(in crate::graph) all: Vec<Stream>,
    device_of_stream: Vec<usize>,
    of_device: Vec<Vec<usize>>,
    number_of_device: Vec<Option<i64>>,
    /// For each device, the others to which its process launches.
    siblings: Vec<Vec<usize>>,
    /// Number of devices with siblings.
    n_siblings: u64,
    stream_of_number: HashMap<(Option<i64>, Option<i64>), usize>,
    /// The streams by stream number, within one device (first map) or on any; built on first use.
    numbered: OnceCell<[HashMap<Option<i64>, Vec<usize>>; 2]>,
    stream_of_lane: Vec<u32>,
    kind_of_work: Vec<Kind>,
    launched: Launched,
    /// All activities of each device as if on one stream; built on first use.
    whole_devices: OnceCell<Vec<Stream>>,
    /// All activities of each device, sorted by end; built on first use.
    ends_of_devices: OnceCell<Vec<Ends>>,
}

/// Activities with their ends, sorted by end.
type Ends = Vec<(i64, Order)>;

/// The activities of one stream, in several orders.
#[derive(Default)]
pub(in crate::graph) struct Stream {
    /// In content order.
    pub(in crate::graph) works: Vec<Order>,
    /// Activities with their submission times, sorted by time.
    submitted: Vec<(i64, Order)>,
    /// For each position in `submitted`, the activity up to there that finishes last.
    last_finished: Vec<Order>,
    /// Activities with their ends, sorted by end.
    ends: Ends,
    /// The activities without a launcher, sorted by end.
    unlinked: Vec<(i64, Order)>,
    /// Whether any activity ended before it was submitted, which happens if clocks disagree.
    has_early_ends: bool,
    /// The kernels with start and end, in content order.
    kernels: Vec<(i64, i64, Order)>,
    /// For each kernel, the last earlier one that ends later.
    longer_before: Vec<u32>,
}

impl<'a> Streams<'a> {
    pub(in crate::graph) fn of(timeline: &'a Timeline, tables: &Tables) -> Self {
        let class_of = tables.work_classes();
        let kind_of = |order| class_of(timeline.event(order)).map_or(Kind::Operator, kind_of_class);
        let mut streams = Self {
            timeline,
            all: Vec::new(),
            device_of_stream: Vec::new(),
            of_device: Vec::new(),
            number_of_device: Vec::new(),
            siblings: Vec::new(),
            n_siblings: 0,
            stream_of_number: HashMap::new(),
            numbered: OnceCell::new(),
            stream_of_lane: Vec::new(),
            kind_of_work: timeline.orders().map(kind_of).collect(),
            launched: Launched::of(timeline),
            whole_devices: OnceCell::new(),
            ends_of_devices: OnceCell::new(),
        };
        streams.number_lanes(tables);
        for work in timeline.orders().filter(|&order| timeline.kind(order).is_device_work()) {
            let stream = streams.stream_of(work);
            streams.all[stream].works.push(work);
        }
        for stream in &mut streams.all {
            stream.sort(timeline, &streams.kind_of_work);
        }
        streams.join_processes(tables);
        streams
    }

    /// Groups the devices to which one process launches.
    fn join_processes(&mut self, tables: &Tables) {
        let launcher = |&work: &Order| self.timeline.launcher(work);
        let first_launcher = |&stream: &usize| self.all[stream].works.iter().find_map(launcher);
        let process = |streams: &Vec<usize>| {
            let call = streams.iter().find_map(first_launcher)?;
            Some(tables.lanes.places()[self.timeline.lane(call)].process)
        };
        let mut devices_of: BTreeMap<StringId, Vec<usize>> = BTreeMap::new();
        for (device, streams) in self.of_device.iter().enumerate() {
            if let Some(process) = process(streams) {
                devices_of.entry(process).or_default().push(device);
            }
        }
        self.siblings = vec![Vec::new(); self.of_device.len()];
        for devices in devices_of.values().filter(|devices| devices.len() <= MOST_DEVICES) {
            for &device in devices {
                let others = devices.iter().copied().filter(|&other| other != device);
                self.siblings[device] = others.collect();
            }
        }
        self.n_siblings = self.siblings.iter().filter(|others| !others.is_empty()).count() as u64;
    }

    /// Assigns a stream to each lane of GPU activities. If the trace has no device or stream
    /// numbers, process and thread replace them.
    fn number_lanes(&mut self, tables: &Tables) {
        let mut devices: HashMap<(Option<i64>, Option<StringId>), usize> = HashMap::new();
        let mut streams: HashMap<(usize, Option<i64>, Option<StringId>), usize> = HashMap::new();
        self.stream_of_lane = vec![NO_ROW; tables.lanes.len()];
        for lane in self.lanes_of_work() {
            let place = tables.lanes.places()[lane];
            let unnamed = |named: Option<i64>, text| named.is_none().then_some(text);
            let n_devices = devices.len();
            let device = *devices
                .entry((place.device, unnamed(place.device, place.process)))
                .or_insert(n_devices);
            let stream = *streams
                .entry((device, place.stream, unnamed(place.stream, place.thread)))
                .or_insert(self.all.len());
            if stream == self.all.len() {
                self.add_stream(place, device);
            }
            self.stream_of_lane[lane] = row_in_column(stream);
        }
    }

    /// Returns the lanes of GPU activities, in content order of their first activity.
    fn lanes_of_work(&self) -> Vec<usize> {
        let mut is_known = vec![false; self.stream_of_lane.len()];
        let works =
            self.timeline.orders().filter(|&order| self.timeline.kind(order).is_device_work());
        let lanes = works.map(|work| self.timeline.lane(work));
        lanes.filter(|&lane| !std::mem::replace(&mut is_known[lane], true)).collect()
    }

    fn add_stream(&mut self, place: Place, device: usize) {
        let stream = self.all.len();
        self.all.push(Stream::default());
        self.device_of_stream.push(device);
        self.of_device.resize_with(self.of_device.len().max(device + 1), Vec::new);
        self.of_device[device].push(stream);
        self.number_of_device.resize(self.of_device.len(), None);
        self.number_of_device[device] = place.device;
        self.stream_of_number.insert((place.device, place.stream), stream);
    }

    /// Returns the number of lanes, both threads and streams.
    pub(in crate::graph) fn n_lanes(&self) -> usize {
        self.stream_of_lane.len()
    }

    pub(in crate::graph) fn stream_of(&self, work: Order) -> usize {
        self.stream_of_lane[self.timeline.lane(work)] as usize
    }

    pub(in crate::graph) fn device_of(&self, work: Order) -> usize {
        self.device_of_stream(self.stream_of(work))
    }

    pub(in crate::graph) fn device_of_stream(&self, stream: usize) -> usize {
        self.device_of_stream[stream]
    }

    pub(in crate::graph) fn n_devices(&self) -> usize {
        self.of_device.len()
    }

    /// Returns the number of a device, if the trace records it.
    pub(in crate::graph) fn device_number(&self, device: usize) -> Option<i64> {
        self.number_of_device[device]
    }

    /// Returns the other devices to which the process of a device launches.
    pub(in crate::graph) fn siblings_of(&self, device: usize) -> &[usize] {
        &self.siblings[device]
    }

    /// Returns the number of devices that share their process with others.
    pub(in crate::graph) fn n_siblings(&self) -> u64 {
        self.n_siblings
    }

    /// Whether the process of a device also launches to other devices.
    pub(in crate::graph) fn has_siblings(&self, device: usize) -> bool {
        !self.siblings[device].is_empty()
    }

    pub(in crate::graph) fn of_device(&self, device: usize) -> &[usize] {
        &self.of_device[device]
    }

    /// Returns all activities of a device as if on one stream.
    pub(in crate::graph) fn whole_device(&self, device: usize) -> &Stream {
        let devices = self.whole_devices.get_or_init(|| {
            let mut devices: Vec<_> = self.of_device.iter().map(|_| Stream::default()).collect();
            let is_work = |order: &Order| self.timeline.kind(*order).is_device_work();
            for work in self.timeline.orders().filter(is_work) {
                devices[self.device_of(work)].works.push(work);
            }
            for device in &mut devices {
                device.sort(self.timeline, &self.kind_of_work);
            }
            devices
        });
        &devices[device]
    }

    /// Returns the activities of a device that end in `(after, until]`, latest end first.
    pub(in crate::graph) fn ending_on_device(
        &self,
        device: usize,
        after_ns: i64,
        until_ns: i64,
    ) -> impl Iterator<Item = (i64, Order)> + '_ {
        ending_in(self.ends_of_device(device), after_ns, until_ns)
    }

    fn ends_of_device(&self, device: usize) -> &Ends {
        let devices = self.ends_of_devices.get_or_init(|| {
            let ends = |streams: &Vec<usize>| {
                let ends = streams.iter().flat_map(|&stream| &self.all[stream].ends);
                let mut ends: Ends = ends.copied().collect();
                ends.sort();
                ends
            };
            self.of_device.iter().map(ends).collect()
        });
        &devices[device]
    }

    /// Returns the streams of a device, by device number.
    pub(in crate::graph) fn of_device_number(&self, device: Option<i64>) -> &[usize] {
        self.numbers()[0].get(&device).map_or(&[], Vec::as_slice)
    }

    /// Returns the streams with a given number, on any device.
    pub(in crate::graph) fn with_number(&self, stream: Option<i64>) -> &[usize] {
        self.numbers()[1].get(&stream).map_or(&[], Vec::as_slice)
    }

    /// Returns the streams by device number, and by stream number.
    fn numbers(&self) -> &[HashMap<Option<i64>, Vec<usize>>; 2] {
        self.numbered.get_or_init(|| {
            let mut rows: Vec<_> = self.stream_of_number.iter().collect();
            rows.sort_unstable_by_key(|&(_, stream)| stream);
            let mut found = [HashMap::new(), HashMap::new()];
            for (&(device, number), &stream) in rows {
                found[0].entry(device).or_insert_with(Vec::new).push(stream);
                found[1].entry(number).or_insert_with(Vec::new).push(stream);
            }
            found
        })
    }

    /// Returns the stream with the given device and stream numbers.
    pub(in crate::graph) fn numbered(
        &self,
        device: Option<i64>,
        stream: Option<i64>,
    ) -> Option<&Stream> {
        self.stream_of_number.get(&(device, stream)).map(|&stream| &self.all[stream])
    }

    /// Returns the stream on which the awaited event was recorded. The record contains the number
    /// of the waiting device. The stream of that number on that device is meant, unless it is the
    /// waiting stream itself. In that case, if several devices have such a stream, it is the one on
    /// which the recording thread launched last.
    pub(in crate::graph) fn recorded_on(
        &self,
        record: &SyncRecord,
        number: i64,
        tables: &Tables,
    ) -> Option<&Stream> {
        let named = || self.numbered(record.device, Some(number));
        let with_number = self.with_number(Some(number));
        let waits_for_itself = record.stream == Some(number);
        let is_open = (2..=MOST_DEVICES).contains(&with_number.len())
            && (waits_for_itself || named().is_none());
        let Some(call) = record.recorded_by.filter(|_| is_open) else { return named() };
        let (thread, recorded_ns) = (tables.events.lane(call), tables.events.start_ns(call));
        let launched_ns = |stream: &usize| {
            let work = self.all[*stream].last_submitted_before(recorded_ns)?;
            let launcher = self.timeline.launcher(work)?;
            let is_of_thread = self.timeline.lane(launcher) == thread.row();
            is_of_thread.then(|| self.timeline.start_ns(launcher))
        };
        let last = with_number.iter().copied().filter(|it| launched_ns(it).is_some());
        last.max_by_key(launched_ns).map(|stream| &self.all[stream]).or_else(named)
    }

    /// Returns the previous activity on the same stream, in content order.
    pub(in crate::graph) fn before_on_stream(&self, work: Order) -> Option<Order> {
        let works = &self.all[self.stream_of(work)].works;
        works.partition_point(|&other| other < work).checked_sub(1).map(|place| works[place])
    }

    /// Returns the launch call of the nearest previous activity on the stream that has one.
    pub(in crate::graph) fn linked_before(&self, work: Order) -> Option<Order> {
        let works = &self.all[self.stream_of(work)].works;
        let before = works[..works.partition_point(|&other| other < work)].iter().rev();
        before.take(MOST_UNLINKED).find_map(|&other| self.timeline.launcher(other))
    }

    /// Returns the kind of the time of an activity.
    pub(in crate::graph) fn kind_of(&self, work: Order) -> Kind {
        self.kind_of_work[work.row()]
    }

    /// Returns the activities that a call launched, in content order.
    pub(in crate::graph) fn launched_by(&self, call: Order) -> &[Order] {
        self.launched.by(call)
    }
}

fn kind_of_class(class: WorkClass) -> Kind {
    match class {
        WorkClass::Compute => Kind::Kernel,
        WorkClass::Communication => Kind::Communication,
        WorkClass::Copy => Kind::Copy,
    }
}

impl Stream {
    fn sort(&mut self, timeline: &Timeline, kind_of_work: &[Kind]) {
        let works = &self.works;
        self.submitted = works.iter().map(|&work| (timeline.submitted_ns(work), work)).collect();
        self.submitted.sort();
        self.ends = works.iter().map(|&work| (timeline.end_ns(work), work)).collect();
        self.ends.sort();
        let is_unlinked = |end: &&(i64, Order)| timeline.launcher(end.1).is_none();
        self.unlinked = self.ends.iter().filter(is_unlinked).copied().collect();
        let mut last: Option<(i64, Order)> = None;
        for &(submitted_ns, work) in &self.submitted {
            let end_ns = timeline.end_ns(work);
            last = last.max(Some((end_ns, work)));
            self.last_finished.extend(last.map(|(_, work)| work));
            self.has_early_ends |= end_ns <= submitted_ns;
        }
        self.kernels = works
            .iter()
            .filter(|work| kind_of_work[work.row()] != Kind::Copy)
            .map(|&work| (timeline.start_ns(work), timeline.end_ns(work), work))
            .collect();
        self.longer_before = longer_before(&self.kernels);
    }

    fn n_submitted_before(&self, at_ns: i64) -> usize {
        self.submitted.partition_point(|&(submitted, _)| submitted < at_ns)
    }

    /// Returns the last activity submitted before a time.
    pub(in crate::graph) fn last_submitted_before(&self, at_ns: i64) -> Option<Order> {
        let count = self.n_submitted_before(at_ns);
        count.checked_sub(1).map(|last| self.submitted[last].1)
    }

    /// Of the activities submitted before a time, returns the one that finishes last (possibly
    /// later).
    pub(in crate::graph) fn last_finished_before(&self, at_ns: i64) -> Option<Order> {
        let count = self.n_submitted_before(at_ns);
        count.checked_sub(1).map(|last| self.last_finished[last])
    }

    /// Of the activities submitted before a time, returns the one that finishes last, for a call
    /// that waits for it. An activity without a launcher may have been submitted in time if it
    /// ended during the call.
    pub(in crate::graph) fn last_awaited(
        &self,
        asked_ns: i64,
        call: Order,
        timeline: &Timeline,
    ) -> Option<Order> {
        let known = self.last_finished_before(asked_ns);
        let called_ns = timeline.start_ns(call);
        let after_ns = known.map_or(called_ns, |work| timeline.end_ns(work).max(called_ns));
        let until_ns = timeline.end_ns(call) + limits::CLOCK_TOLERANCE_NS;
        self.unlinked_in(asked_ns, (after_ns, until_ns), timeline).or(known)
    }

    /// Of the activities without a launcher that may have been submitted before a time, returns the
    /// last to end in `(after, until]`.
    pub(in crate::graph) fn unlinked_in(
        &self,
        asked_ns: i64,
        (after_ns, until_ns): (i64, i64),
        timeline: &Timeline,
    ) -> Option<Order> {
        let behind = self.unlinked.partition_point(|&(end, _)| end <= until_ns);
        let mut ended =
            self.unlinked[..behind].iter().rev().take_while(|&&(end, _)| end > after_ns);
        let may_be = |&&(_, work): &&(i64, Order)| timeline.earliest_submission_ns(work) < asked_ns;
        ended.find(may_be).map(|&(_, work)| work)
    }

    /// Returns the first activity that begins at or after a device time.
    pub(in crate::graph) fn first_begun_from(
        &self,
        at_ns: i64,
        timeline: &Timeline,
    ) -> Option<Order> {
        let begun_ns = |work: &Order| timeline.start_ns(*work) - timeline.clock_shift_ns(*work);
        let first = self.works.partition_point(|work| begun_ns(work) < at_ns);
        self.works.get(first).copied()
    }

    /// Returns the last activity to end at or before a device time.
    pub(in crate::graph) fn last_over_by(&self, at_ns: i64, timeline: &Timeline) -> Option<Order> {
        let ended_ns = |end: &(i64, Order)| end.0 - timeline.clock_shift_ns(end.1);
        let behind = self.ends.partition_point(|end| ended_ns(end) <= at_ns);
        behind.checked_sub(1).map(|last| self.ends[last].1)
    }

    /// Returns the activities submitted after a time, in order.
    pub(in crate::graph) fn submitted_after(&self, at_ns: i64) -> impl Iterator<Item = Order> + '_ {
        let next = self.submitted.partition_point(|&(submitted, _)| submitted <= at_ns);
        self.submitted[next..].iter().map(|&(_, work)| work)
    }

    /// Returns the number of activities submitted before a time that end after it.
    pub(in crate::graph) fn n_outstanding(&self, at_ns: i64, timeline: &Timeline) -> usize {
        let n_submitted = self.n_submitted_before(at_ns);
        if !self.has_early_ends {
            // An activity that has ended was submitted earlier.
            return n_submitted - self.ends.partition_point(|&(end, _)| end <= at_ns);
        }
        let is_outstanding = |work: Order| timeline.end_ns(work) > at_ns;
        (0..n_submitted)
            .rev()
            .take_while(|&place| is_outstanding(self.last_finished[place]))
            .filter(|&place| is_outstanding(self.submitted[place].1))
            .count()
    }

    /// Returns the number of activities that end after a time, counted from `last` backward in
    /// order of submission, at most `limit`.
    pub(in crate::graph) fn n_ending_after(
        &self,
        last: Order,
        at_ns: i64,
        limit: usize,
        timeline: &Timeline,
    ) -> usize {
        let key = (timeline.submitted_ns(last), last);
        let behind = self.submitted.partition_point(|&work| work <= key);
        let works = self.submitted[..behind].iter().rev();
        works.take_while(|&&(_, work)| timeline.end_ns(work) > at_ns).take(limit).count()
    }

    /// Returns the activities that end in `(after, until]`, latest end first.
    pub(in crate::graph) fn ending_in(
        &self,
        after_ns: i64,
        until_ns: i64,
    ) -> impl Iterator<Item = (i64, Order)> + '_ {
        ending_in(&self.ends, after_ns, until_ns)
    }

    /// For each of the given times, returns the last activity submitted by then.
    pub(in crate::graph) fn last_at<'s>(
        &'s self,
        sorted_times_ns: &'s [i64],
    ) -> impl Iterator<Item = Order> + 's {
        let next_ns = |place: usize| self.submitted.get(place + 1).map_or(i64::MAX, |next| next.0);
        let mut times_ns = sorted_times_ns;
        let is_last = move |(place, &(submitted, work)): (usize, &(i64, Order))| {
            let n_before = times_ns.iter().take_while(|&&time| time <= submitted).count();
            times_ns = &times_ns[n_before..];
            let time = *times_ns.first()?;
            (time <= next_ns(place)).then_some(work)
        };
        self.submitted.iter().enumerate().filter_map(is_last)
    }

    /// Of the kernels running at a time, returns the one that began last.
    pub(in crate::graph) fn kernel_running_at(&self, at_ns: i64) -> Option<(i64, Order)> {
        let began = self.kernels.partition_point(|&(start, _, _)| start < at_ns);
        let mut place = began.checked_sub(1)?;
        while self.kernels[place].1 <= at_ns {
            place = self.longer_before.get(place).copied().filter(|&row| row != NO_ROW)? as usize;
        }
        let (start, _, _) = self.kernels[place];
        // Of kernels with the same start, the first in content order is the longest.
        let first = self.kernels.partition_point(|&(other, _, _)| other < start);
        Some((start, self.kernels[first].2))
    }
}

fn longer_before(kernels: &[(i64, i64, Order)]) -> Vec<u32> {
    let mut longer = Vec::with_capacity(kernels.len());
    for (place, &(_, end, _)) in kernels.iter().enumerate() {
        let mut before = place.checked_sub(1);
        while let Some(other) = before.filter(|&other| kernels[other].1 <= end) {
            before = Some(longer[other]).filter(|&row| row != NO_ROW).map(|row: u32| row as usize);
        }
        longer.push(before.map_or(NO_ROW, row_in_column));
    }
    longer
}

/// The activities that each call launched.
struct Launched {
    first: Vec<u32>,
    works: Vec<Order>,
}

impl Launched {
    fn of(timeline: &Timeline) -> Self {
        let launched =
            || timeline.orders().filter_map(|work| Some((timeline.launcher(work)?, work)));
        let mut first = vec![0_u32; timeline.len() + 1];
        for (call, _) in launched() {
            first[call.row() + 1] += 1;
        }
        for row in 0..timeline.len() {
            first[row + 1] += first[row];
        }
        let mut next = first.clone();
        let mut works = vec![Order::from_row(0); first.last().copied().unwrap_or(0) as usize];
        for (call, work) in launched() {
            let slot = &mut next[call.row()];
            works[*slot as usize] = work;
            *slot += 1;
        }
        Self { first, works }
    }

    fn by(&self, call: Order) -> &[Order] {
        &self.works[self.first[call.row()] as usize..self.first[call.row() + 1] as usize]
    }
}

/// Returns the activity that ends last; of several, the first in content order.
pub(in crate::graph) fn latest_to_end(works: impl Iterator<Item = (i64, Order)>) -> Option<Order> {
    works.max_by_key(|&(end, work)| (end, std::cmp::Reverse(work))).map(|(_, work)| work)
}

/// Returns the activities that end in `(after, until]`, latest end first.
fn ending_in(
    ends: &[(i64, Order)],
    after_ns: i64,
    until_ns: i64,
) -> impl Iterator<Item = (i64, Order)> + '_ {
    let behind = ends.partition_point(|&(end, _)| end <= until_ns);
    ends[..behind].iter().rev().copied().take_while(move |&(end, _)| end > after_ns)
}

/// Returns the first in content order of the activities that end last, for a list of `(end,
/// activity)` sorted by descending end.
pub(in crate::graph) fn first_of_last(
    mut works: impl Iterator<Item = (i64, Order)>,
) -> Option<(i64, Order)> {
    let last = works.next()?;
    Some(works.take_while(|work| work.0 == last.0).last().unwrap_or(last))
}
