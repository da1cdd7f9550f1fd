//! Splits the idle time of devices and streams by cause.

use std::collections::BTreeMap;

use super::{Chosen, Gap, Places, Spread, gaps, spread};
use crate::link::Launches;
use crate::names::named;
use crate::tables::{EventTable, Tables};

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
