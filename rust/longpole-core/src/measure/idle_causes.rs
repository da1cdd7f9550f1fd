//! Splits the idle time of devices and streams by what they waited for.

use std::collections::BTreeMap;

use super::{Chosen, Gap, Places, Spread, gaps, spread};
use crate::link::Launches;
use crate::names::named;
use crate::tables::{EventTable, Tables};

named! {
    /// Why nothing ran for a while.
    IdleCause {
        /// The next activity had not been launched when the interval began.
        WaitingForLaunch "waiting_for_launch",
        /// It had been launched, and the interval is short: the usual pause between activities.
        BetweenActivities "between_activities",
        /// It had been launched and waited longer: for another stream, or a free device.
        OtherWait "other_wait",
        /// What launched it is not known.
        Unlinked "unlinked",
        /// Nothing follows in the window.
        AfterLast "after_last",
    }
}

/// The idle intervals of one device or stream with one cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleTime {
    /// The device; none where the trace names none.
    pub device: Option<i64>,
    /// The stream; none for the device as a whole.
    pub stream: Option<i64>,
    /// The cause.
    pub cause: IdleCause,
    /// How many intervals.
    pub count: i64,
    /// Their time.
    pub duration_ns: i64,
    /// The part of it before the launching call returned; none where no call is known.
    pub host_ns: Option<i64>,
    /// The figures of the intervals.
    pub spread: Spread,
}

/// The idle time within a window by device, stream and cause, where `places` says so. Up to
/// `short_ns` an interval before an activity that was launched in time is a pause.
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
            let cause = cause_of(&gap, short_ns, &tables.events);
            let (durations, host_ns) = groups.entry((gap.device, gap.stream, cause)).or_default();
            durations.push(gap.end_ns - gap.start_ns);
            if let Some(ns) = gap.host_ns {
                *host_ns = Some(host_ns.unwrap_or(0) + ns);
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

fn cause_of(gap: &Gap, short_ns: i64, events: &EventTable) -> IdleCause {
    match (gap.next, gap.call) {
        (None, _) => IdleCause::AfterLast,
        (_, None) => IdleCause::Unlinked,
        (_, Some(call)) if events.start_ns(call) > gap.start_ns => IdleCause::WaitingForLaunch,
        _ if gap.end_ns - gap.start_ns < short_ns => IdleCause::BetweenActivities,
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
            row("kernel", 7, 40, 10, 2),
        ];
        let tables =
            read_bytes(format!("[{}]", rows.join(",")).as_bytes(), &Options::default()).unwrap();
        let launches = launches(&tables, &silent).unwrap();
        let window = (0, 50_000);
        let places = [Places::Devices, Places::Streams];
        let found = idle_causes(&tables, &launches, window, 30_000, &places, &Chosen::All);
        let shown: Vec<_> = found
            .iter()
            .map(|row| (row.stream, row.cause, row.duration_ns / 1000, row.host_ns))
            .collect();
        let both = |stream| {
            [
                (stream, IdleCause::WaitingForLaunch, 30, Some(25_000)),
                (stream, IdleCause::BetweenActivities, 2, Some(1_000)),
            ]
        };
        assert_eq!(shown, [both(None), both(Some(7))].concat());
    }
}
