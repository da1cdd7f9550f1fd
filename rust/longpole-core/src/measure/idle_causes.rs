//! Splits the idle time of devices and streams by cause.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Chosen, Spread, spread};
use crate::ids::EventId;
use crate::intervals::Spans;
use crate::link::Launches;
use crate::names::named;
use crate::tables::{EventTable, Tables};
use crate::time::in_range;

named! {
    /// Why a device or stream was idle.
    IdleCause {
        /// The next activity had not been launched. Includes the usual pause after its launch.
        WaitingForLaunch "waiting_for_launch",
        /// The next activity had been launched and the interval is short: the usual pause between
        /// activities.
        BetweenActivities "between_activities",
        /// The next activity had been launched and waited longer: for another stream, or for a free
        /// device.
        OtherWait "other_wait",
        /// The launch of the next activity is not known.
        Unlinked "unlinked",
        /// No activity follows in the trace.
        AfterLast "after_last",
    }
}

/// The idle intervals of one device or stream with one cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleTime {
    /// The device; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// The stream; `None` for the device as a whole.
    pub stream: Option<i64>,
    /// The cause.
    pub cause: IdleCause,
    /// Number of intervals.
    pub count: i64,
    /// Total time.
    pub duration_ns: i64,
    /// The part before the launch call returned; `None` if no call is known.
    pub host_ns: Option<i64>,
    /// Statistics of the intervals.
    pub spread: Spread,
}

/// Returns the idle time within a window by device, stream and cause, for `places`. An interval of
/// less than `short_ns` before an activity that has been launched is a pause. An interval with a
/// late launch followed by a longer wait counts as two.
pub fn idle_causes(
    tables: &Tables,
    launches: &Launches,
    window: (i64, i64),
    short_ns: i64,
    places: &[Places],
    chosen: &Chosen,
) -> Vec<IdleTime> {
    let mut groups: BTreeMap<_, (Vec<i64>, Option<i64>)> = BTreeMap::new();
    for &places in places {
        for gap in gaps(tables, launches, window, places, chosen) {
            for (cause, duration_ns, part_ns) in parts_of(&gap, short_ns, &tables.events) {
                let place = (gap.device, gap.stream, cause);
                let (durations, host_ns) = groups.entry(place).or_default();
                durations.push(duration_ns);
                if let Some(ns) = part_ns {
                    *host_ns = Some(host_ns.unwrap_or(0) + ns);
                }
            }
        }
    }
    let row = |((device, stream, cause), (mut durations, host_ns)): (_, (Vec<i64>, _))| {
        Some(IdleTime {
            device,
            stream,
            cause,
            count: i64::try_from(durations.len()).unwrap_or(i64::MAX),
            duration_ns: durations.iter().sum(),
            host_ns,
            spread: spread(&mut durations)?,
        })
    };
    groups.into_iter().filter_map(row).collect()
}

/// Returns the causes of a gap, each with its time, and the part of that before the call returned.
/// The cause is that of the whole gap, so that it does not depend on the window.
fn parts_of(
    gap: &Gap,
    short_ns: i64,
    events: &EventTable,
) -> impl Iterator<Item = (IdleCause, i64, Option<i64>)> {
    let cause = cause_of(gap, short_ns, events);
    let (whole_start_ns, whole_end_ns) = gap.whole_ns;
    let returned_ns = gap.call.and_then(|call| events.end_ns(call));
    let split_ns = returned_ns
        .map(|returned_ns| returned_ns.clamp(whole_start_ns, whole_end_ns))
        .filter(|split_ns| {
            cause == IdleCause::WaitingForLaunch && whole_end_ns - split_ns >= short_ns
        })
        .unwrap_or(whole_end_ns)
        .clamp(gap.start_ns, gap.end_ns);
    let rest_host_ns = gap.host_ns.map(|_| 0);
    let parts = [
        (cause, split_ns - gap.start_ns, gap.host_ns),
        (IdleCause::OtherWait, gap.end_ns - split_ns, rest_host_ns),
    ];
    parts.into_iter().filter(|&(_, duration_ns, _)| duration_ns > 0)
}

fn cause_of(gap: &Gap, short_ns: i64, events: &EventTable) -> IdleCause {
    match (gap.next, gap.call) {
        (None, _) => IdleCause::AfterLast,
        (_, None) => IdleCause::Unlinked,
        (_, Some(call)) if events.start_ns(call) > gap.whole_ns.0 => IdleCause::WaitingForLaunch,
        _ if gap.whole_ns.1 - gap.whole_ns.0 < short_ns => IdleCause::BetweenActivities,
        _ => IdleCause::OtherWait,
    }
}

// Finds the gaps in which nothing ran on a device, and the event that ended each.
//
// The activity that ends a gap, and whether its launch call had returned by then, show whether the
// device waited for launches or the activity was queued. The graph shows why.

/// A gap in which nothing ran on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The device; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// The stream; `None` for the device as a whole.
    pub stream: Option<i64>,
    /// End of the previous activity, or start of the window.
    pub start_ns: i64,
    /// Start of the next activity, or end of the window.
    pub end_ns: i64,
    /// Start and end of the gap in the trace: it may reach beyond the window, and what ended it
    /// does not depend on the window.
    pub whole_ns: (i64, i64),
    /// The next activity, also if it starts after the window; `None` if none follows in the trace.
    pub next: Option<EventId>,
    /// The launch call of that activity.
    pub call: Option<EventId>,
    /// The part of the gap before that call returned, or before the activity began inside the call:
    /// the device waited for the host. `None` without a call.
    pub host_ns: Option<i64>,
}

/// Where to look for gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// On each device as a whole.
    Devices,
    /// On each stream, regardless of other streams.
    Streams,
}

/// The activities of a device or a stream: start, end and event of each.
type Runs = Vec<(i64, i64, EventId)>;

/// Returns the gaps between the chosen activities of every device or stream between `window.0` and
/// `window.1`, sorted by place and time. If activities begin together, the shortest counts as the
/// one that ended the gap; further ties are decided by content.
pub fn gaps(
    tables: &Tables,
    launches: &Launches,
    window: (i64, i64),
    places: Places,
    chosen: &Chosen,
) -> Vec<Gap> {
    let window = in_range(window);
    let recorded = recorded(tables, window);
    let mut found = Vec::new();
    for ((device, stream), mut rows) in runs(tables, places, chosen) {
        rows.sort_by(|one, two| {
            (one.0, one.1).cmp(&(two.0, two.1)).then_with(|| by_content(one.2, two.2, tables))
        });
        let busy = Spans::union_of(rows.iter().map(|&(start, end, _)| (start, end)));
        let idle = Spans::union_of([recorded]).minus(&busy);
        let mut behind = 0;
        let is_inside =
            |&&(start_ns, end_ns): &&(i64, i64)| start_ns.max(window.0) < end_ns.min(window.1);
        found.extend(idle.as_slice().iter().filter(is_inside).map(|&whole_ns| {
            let (start_ns, end_ns) = (whole_ns.0.max(window.0), whole_ns.1.min(window.1));
            // The first activity that begins where the gap ends.
            behind += rows[behind..].iter().take_while(|row| row.0 < whole_ns.1).count();
            let next = rows.get(behind).map(|&(_, _, event)| event);
            let call = next.and_then(|next| launches.launcher(next));
            let host_ns = call
                .and_then(|call| tables.events.end_ns(call))
                .map(|returned| returned.clamp(start_ns, end_ns) - start_ns);
            Gap { device, stream, start_ns, end_ns, whole_ns, next, call, host_ns }
        }));
    }
    found
}

/// Returns the time from the first event of a trace to the last, extended to a window.
fn recorded(tables: &Tables, window: (i64, i64)) -> (i64, i64) {
    let spans = tables.events.ids().filter_map(|event| tables.events.span(event));
    spans.fold(window, |(first, last), (start, end)| (first.min(start), last.max(end)))
}

/// Returns the chosen activities of each place. Activities without duration end no gap.
fn runs(
    tables: &Tables,
    places: Places,
    chosen: &Chosen,
) -> BTreeMap<(Option<i64>, Option<i64>), Runs> {
    let events = &tables.events;
    let mut by_lane: Vec<Option<Runs>> = vec![None; tables.lanes.len()];
    let is_work = |event: &EventId| events.kind(*event).is_device_work() && chosen.holds(*event);
    for event in events.ids().filter(is_work) {
        if let Some((start, end)) = events.span(event) {
            let rows = by_lane[events.lane(event).row()].get_or_insert_default();
            if start < end {
                rows.push((start, end, event));
            }
        }
    }
    let mut work: BTreeMap<_, Runs> = BTreeMap::new();
    for (lane, rows) in tables.lanes.ids().zip(by_lane) {
        let Some(mut rows) = rows else { continue };
        let place = tables.lanes.place(lane);
        let stream = place.stream.filter(|_| places == Places::Streams);
        work.entry((place.device, stream)).or_default().append(&mut rows);
    }
    work
}

/// Compares activities with equal times by content; row numbers only decide between equal events.
fn by_content(one: EventId, two: EventId, tables: &Tables) -> Ordering {
    let content = |work: EventId| {
        let events = &tables.events;
        let name = events.name(work).map(|name| tables.strings.get(name));
        (tables.lanes.place(events.lane(work)).stream, name, events.correlation(work), work)
    };
    content(one).cmp(&content(two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::launches;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};

    #[test]
    fn an_interval_before_a_late_launch_waited_for_it() {
        let both = |stream| {
            [
                (stream, IdleCause::WaitingForLaunch, 30, Some(25_000)),
                (stream, IdleCause::BetweenActivities, 2, Some(1_000)),
            ]
        };
        assert_eq!(causes_before(40), [both(None), both(Some(7))].concat());
    }

    #[test]
    fn what_an_interval_lasts_after_the_launch_is_another_wait() {
        let parts = |stream| {
            [
                (stream, IdleCause::WaitingForLaunch, 25, Some(25_000)),
                (stream, IdleCause::BetweenActivities, 2, Some(1_000)),
                (stream, IdleCause::OtherWait, 55, Some(0)),
            ]
        };
        assert_eq!(causes_before(90), [parts(None), parts(Some(7))].concat());
    }

    type Shown = (Option<i64>, IdleCause, i64, Option<i64>);

    /// Returns the idle times before a kernel that starts at `start_us` and whose call returned at
    /// 35 us.
    fn causes_before(start_us: i64) -> Vec<Shown> {
        let row = |category: &str, tid: i64, ts: i64, dur: i64, id: i64| {
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"n","pid":1,"tid":{tid},"ts":{ts},"dur":{dur},
                "args":{{"correlation":{id},"device":0,"stream":{tid}}}}}"#
            )
        };
        let rows = [
            row("cuda_runtime", 1, 0, 1, 1),
            row("cuda_runtime", 1, 30, 5, 2),
            row("kernel", 7, 2, 8, 1),
            row("kernel", 7, start_us, 10, 2),
        ];
        let tables =
            read_bytes(format!("[{}]", rows.join(",")).as_bytes(), &Options::default()).unwrap();
        let launches = launches(&tables, &silent).unwrap();
        let window = (0, 1000 * (start_us + 10));
        let places = [Places::Devices, Places::Streams];
        let found = idle_causes(&tables, &launches, window, 30_000, &places, &Chosen::All);
        found
            .iter()
            .map(|row| (row.stream, row.cause, row.duration_ns / 1000, row.host_ns))
            .collect()
    }
}
