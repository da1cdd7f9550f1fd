//! GPU activities whose recorded times cannot be right.
//!
//! A stream runs its activities in the order of their launches, one at a time, and each after its
//! launch. Differences between clocks are left out: they move all activities of a device alike.

use std::collections::{HashMap, HashSet};

use crate::ids::{EventId, LaneId};
use crate::intervals::Spans;
use crate::link::Launches;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::ApiRole;

/// GPU activities with impossible times, each with the length of the contradiction.
pub(super) struct ImpossibleTimes {
    /// The order of a stream differs from that of its launches.
    pub(super) out_of_order: Vec<(EventId, i64)>,
    /// The device was idle long before an activity that had already been launched.
    pub(super) late_on_idle_device: Vec<(EventId, i64)>,
    /// The activities that started late on an idle device, and those queued after them.
    displaced: Vec<EventId>,
    /// An activity starts long before its launch, although others of the device start after theirs.
    pub(super) before_launch: Vec<(EventId, i64)>,
}

impl ImpossibleTimes {
    pub(super) fn of(tables: &Tables, launches: &Launches) -> Self {
        let works = Launched::of(tables, launches);
        let late_on_idle_device = works.late_on_idle_device();
        Self {
            out_of_order: works.out_of_order(),
            displaced: works.displaced(&late_on_idle_device),
            late_on_idle_device,
            before_launch: works.before_launch(tables),
        }
    }
}

/// Returns how much time of a window is that of GPU activities whose recorded times cannot be
/// right, or that run after the next one of their stream began.
pub fn impossible_ns(tables: &Tables, launches: &Launches, window: (i64, i64)) -> i64 {
    let times = ImpossibleTimes::of(tables, launches);
    let events = times.out_of_order.iter().chain(&times.before_launch).map(|&(event, _)| event);
    let events = events.chain(times.displaced.iter().copied());
    let whole = events.filter_map(|event| tables.events.span(event));
    let spans = whole.chain(shared(tables, launches));
    let clipped = spans.map(|(start, end)| (start.max(window.0), end.min(window.1)));
    Spans::union_of(clipped.filter(|(start, end)| start < end)).length_ns()
}

/// Returns the times of kernels that still run long after another one of their stream began. The
/// kernels of a graph may run at the same time, and a kernel may start before its predecessor has
/// ended, but not by much.
fn shared(tables: &Tables, launches: &Launches) -> Vec<(i64, i64)> {
    let events = &tables.events;
    let roles = tables.roles();
    let is_alone = |&work: &EventId| {
        let name = launches.launcher(work).and_then(|call| events.name(call));
        name.is_some_and(|name| roles[name.row()] != ApiRole::GraphLaunch)
    };
    let works = events.ids().filter(|&event| events.kind(event) == EventKind::Kernel);
    let works = works.filter(is_alone);
    let mut rows: Vec<_> =
        works.filter_map(|work| Some((events.lane(work), events.span(work)?))).collect();
    rows.sort_unstable();
    let mut found = Vec::new();
    for rows in rows.chunk_by(|one, two| one.0 == two.0) {
        let mut last_ns = i64::MIN;
        for &(_, (start_ns, end_ns)) in rows {
            if last_ns.min(end_ns).saturating_sub(start_ns) > PROMPT_NS {
                found.push((start_ns, last_ns));
            }
            last_ns = last_ns.max(end_ns);
        }
    }
    found
}

/// Returns activities that began before another one of their stream had ended, with the overlap.
pub(super) fn overlapping(tables: &Tables, work: &[EventId]) -> Vec<(EventId, i64)> {
    let events = &tables.events;
    let mut spans: Vec<_> = work
        .iter()
        .filter_map(|&event| Some((events.lane(event), events.span(event)?, event)))
        .filter(|&(_, (start, _), _)| start != 0)
        .map(|(lane, (start, end), event)| (lane, start, event, end))
        .collect();
    spans.sort_unstable();
    let mut found = Vec::new();
    let mut before = None;
    for (lane, start, event, end) in spans {
        let last = before.filter(|&(of, _)| of == lane).map(|(_, last): (_, i64)| last);
        let shared_ns = last.map_or(0, |last| last.min(end) - start);
        if shared_ns > 0 {
            found.push((event, shared_ns));
        }
        before = Some((lane, last.map_or(end, |last| last.max(end))));
    }
    found.sort_unstable();
    found
}

/// Maximum latency of a launch, and maximum overlap of activities of a stream that may overlap.
const PROMPT_NS: i64 = 100_000;

/// Minimum number of prompt launches which show that the clock of a device is right.
const LEAST_PROMPT: usize = 3;

/// An activity that starts this long after its launch, on a device that was idle meanwhile, has a
/// wrong timestamp: launches take up to 100 us.
const LATE_ON_IDLE_NS: i64 = 10_000_000;

/// The lane of a GPU activity, the spans of its launch call and of itself, and the activity.
type LaunchedWork = (LaneId, (i64, i64), (i64, i64), EventId);

/// GPU activities with their launch calls.
struct Launched {
    /// Sorted by lane of the activity and start of the call.
    rows: Vec<LaunchedWork>,
    /// The activities launched by graph launches.
    replays: HashSet<EventId>,
    /// Start and latest end so far of all GPU activities, in order of start.
    busy_ns: Vec<(i64, i64)>,
}

impl Launched {
    fn of(tables: &Tables, launches: &Launches) -> Self {
        let events = &tables.events;
        let timed =
            |event: &EventId| events.kind(*event).is_device_work() && events.start_ns(*event) != 0;
        let works: Vec<_> = events.ids().filter(timed).collect();
        let roles = tables.roles();
        let is_graph = |call: EventId| {
            events.name(call).is_some_and(|name| roles[name.row()] == ApiRole::GraphLaunch)
        };
        let is_replay = |work: &EventId| launches.launcher(*work).is_some_and(is_graph);
        let replays = works.iter().copied().filter(is_replay).collect();
        let row = |&work: &EventId| {
            let call = events.span(launches.launcher(work)?)?;
            Some((events.lane(work), call, events.span(work)?, work))
        };
        let mut rows: Vec<_> = works.iter().filter_map(row).collect();
        rows.sort_unstable();
        let mut busy_ns: Vec<_> = works.iter().filter_map(|&work| events.span(work)).collect();
        busy_ns.sort_unstable();
        let mut last_ns = i64::MIN;
        for (_, end_ns) in &mut busy_ns {
            last_ns = last_ns.max(*end_ns);
            *end_ns = last_ns;
        }
        Self { rows, replays, busy_ns }
    }

    /// Returns activities that start long before their launch, with the time between the two, if
    /// the clock of their device is not off: more launches into idle streams are prompt.
    fn before_launch(&self, tables: &Tables) -> Vec<(EventId, i64)> {
        let device = |lane: LaneId| {
            let place = tables.lanes.place(lane);
            (place.process, place.device)
        };
        let mut n_prompt: HashMap<_, usize> = HashMap::new();
        let mut early: HashMap<_, Vec<(EventId, i64)>> = HashMap::new();
        for rows in self.rows.chunk_by(|one, two| one.0 == two.0) {
            let mut free_ns = i64::MIN;
            for &(lane, (call_ns, _), (start_ns, end_ns), work) in rows {
                let late_ns = start_ns.saturating_sub(call_ns);
                if late_ns < -PROMPT_NS {
                    early.entry(device(lane)).or_default().push((work, -late_ns));
                } else if free_ns <= call_ns && (0..=PROMPT_NS).contains(&late_ns) {
                    *n_prompt.entry(device(lane)).or_default() += 1;
                }
                free_ns = free_ns.max(end_ns);
            }
        }
        early.retain(|device, works| {
            let n_prompt = n_prompt.get(device).copied().unwrap_or(0);
            n_prompt >= LEAST_PROMPT && n_prompt > works.len()
        });
        let mut found: Vec<_> = early.into_values().flatten().collect();
        found.sort_unstable();
        found
    }

    /// Returns activities that start after the end of an activity of their stream that was launched
    /// later, with the time between the two. Overlapping calls have no order.
    fn out_of_order(&self) -> Vec<(EventId, i64)> {
        let mut found = Vec::new();
        for rows in self.rows.chunk_by(|one, two| one.0 == two.0) {
            // Later launches, from the last call backward, with the smallest end so far.
            let mut later: Vec<(i64, i64)> = Vec::new();
            for &(_, (call_ns, returned_ns), (start_ns, end_ns), work) in rows.iter().rev() {
                let n_after = later.partition_point(|&(other_ns, _)| other_ns >= returned_ns);
                let least_ns = n_after.checked_sub(1).map(|place| later[place].1);
                if let Some(least_ns) = least_ns.filter(|&least_ns| start_ns >= least_ns) {
                    found.push((work, start_ns - least_ns));
                }
                let before_ns = later.last().map_or(i64::MAX, |&(_, least_ns)| least_ns);
                later.push((call_ns, before_ns.min(end_ns)));
            }
        }
        found.sort_unstable();
        found
    }

    /// Returns late activities, and those of their streams that had been launched by the time they
    /// start and start after them.
    fn displaced(&self, late: &[(EventId, i64)]) -> Vec<EventId> {
        let late: HashSet<EventId> = late.iter().map(|&(event, _)| event).collect();
        let mut found = Vec::new();
        for rows in self.rows.chunk_by(|one, two| one.0 == two.0) {
            let mut late_ns = None;
            for &(_, (_, returned_ns), (start_ns, _), work) in rows {
                late_ns = if late.contains(&work) { Some(start_ns) } else { late_ns };
                if late_ns.is_some_and(|late_ns| returned_ns <= late_ns && late_ns <= start_ns) {
                    found.push(work);
                }
            }
        }
        found
    }

    /// Returns the graph replays that start long after their call, although no device was busy and
    /// a later call had already launched the next replay on the stream, with the time since the
    /// call. The first launch of a kernel is excluded, because it can take as long to load its
    /// code.
    fn late_on_idle_device(&self) -> Vec<(EventId, i64)> {
        let mut found = Vec::new();
        for rows in self.rows.chunk_by(|one, two| one.0 == two.0) {
            for &(_, (_, returned_ns), (start_ns, _), work) in rows {
                let late_ns = start_ns.saturating_sub(returned_ns);
                let n_before = self.busy_ns.partition_point(|&(other_ns, _)| other_ns < start_ns);
                let busy_until = n_before.checked_sub(1).map(|place| self.busy_ns[place].1);
                let was_idle = busy_until.is_none_or(|end_ns| end_ns <= returned_ns);
                if late_ns <= LATE_ON_IDLE_NS || !was_idle || !self.replays.contains(&work) {
                    continue;
                }
                let next = rows.partition_point(|row| row.1.0 < returned_ns);
                let mut waiting = rows[next..].iter().take_while(|row| row.1.0 < start_ns);
                if waiting.any(|row| self.replays.contains(&row.3)) {
                    found.push((work, late_ns));
                }
            }
        }
        found.sort_unstable();
        found
    }
}
