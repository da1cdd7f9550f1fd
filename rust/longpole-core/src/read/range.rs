//! Removes times that cannot belong to the trace.
//!
//! Profilers write 0, or another clock, for unknown times. One such event among times since 1970
//! makes the trace 54 years long: all figures of the whole trace would be dominated by that, and
//! the sum of a few of them would exceed 64 bits. Because of the checks here, later stages can
//! subtract and add times without overflow checks.
//!
//! Limits: events with another clock are removed if most of the others use a common clock.

use std::sync::Arc;

use crate::diagnostics::Code;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::NO_INTEGER;
use crate::tables::Tables;

/// Maximum distance of an event from the median, and maximum duration: 104 days. The difference of
/// two times is then exact as a floating-point number.
const LONGEST_NS: u64 = 1 << 53;

/// Maximum sum of all durations: 73 years.
const LARGEST_SUM_NS: i64 = 1 << 61;

/// Removes events that are too far from the others, and durations that are too long.
///
/// # Errors
///
/// Returns an error if something is removed and reading is strict.
pub(super) fn limit(tables: &mut Tables, is_strict: bool) -> Result<()> {
    let (n_far, n_other) = leave_out(tables);
    let n_huge = clear_durations(tables);
    let found =
        [(Code::FarTimestamp, n_far), (Code::OtherClock, n_other), (Code::LongDuration, n_huge)];
    for (code, count) in found {
        tables.diagnostics.add_many(code, 0, count);
        if is_strict && count > 0 && code.is_refused_by_strict() {
            return Err(Error::new(ErrorKind::Strict(code), 0));
        }
    }
    Ok(())
}

/// Removes events, samples and ends of arrows that are too far from the median event. Returns their
/// number, without samples and asynchronous events that all have another clock, and the number of
/// these.
fn leave_out(tables: &mut Tables) -> (u64, u64) {
    let Some((least_ns, most_ns)) = extent(tables) else { return (0, 0) };
    if most_ns.abs_diff(least_ns) <= LONGEST_NS {
        return (0, 0);
    }
    let center_ns = median(tables);
    let is_near = |time_ns: i64| time_ns.abs_diff(center_ns) <= LONGEST_NS;
    let near = |times: &[i64]| times.iter().map(|&time_ns| is_near(time_ns)).collect::<Vec<_>>();
    let events = near(tables.events.starts_ns());
    Arc::make_mut(&mut tables.events).retain(&events);
    Arc::make_mut(&mut tables.args).retain_events(&events);
    let samples = near(&tables.counters.time_ns);
    Arc::make_mut(&mut tables.counters).retain(&samples);
    let [arrows, asyncs] = [&mut tables.flows, &mut tables.asyncs].map(|rows| {
        let kept: Vec<_> = rows.time_ns.iter().map(is_near).collect();
        Arc::make_mut(rows).retain(&kept);
        kept
    });
    let n_far = |kept: &[bool]| kept.iter().filter(|&&is_kept| !is_kept).count() as u64;
    let is_other_clock = |kept: &[bool]| kept.len() > 1 && !kept.contains(&true);
    let (mut n_damaged, mut n_other) = (n_far(&events) + n_far(&arrows), 0);
    for kept in [samples, asyncs] {
        let count = if is_other_clock(&kept) { &mut n_other } else { &mut n_damaged };
        *count += n_far(&kept);
    }
    (n_damaged, n_other)
}

/// Returns all times of the trace that affect results.
fn times(tables: &Tables) -> impl Iterator<Item = i64> + '_ {
    let arrows = [&tables.flows, &tables.asyncs].into_iter().flat_map(|of| of.time_ns.iter());
    let columns = [tables.events.starts_ns(), &tables.counters.time_ns];
    columns.into_iter().flatten().copied().chain(arrows)
}

fn extent(tables: &Tables) -> Option<(i64, i64)> {
    times(tables).fold(None, |extent, time_ns| {
        let (least_ns, most_ns) = extent.unwrap_or((time_ns, time_ns));
        Some((least_ns.min(time_ns), most_ns.max(time_ns)))
    })
}

/// Returns the upper median of the event times, or of all times if there are no events.
fn median(tables: &Tables) -> i64 {
    let mut starts_ns = tables.events.starts_ns().to_vec();
    if starts_ns.is_empty() {
        starts_ns.extend(times(tables));
    }
    let middle = starts_ns.len() / 2;
    *starts_ns.select_nth_unstable(middle).1
}

/// Clears durations that are too long, individually or in total. Returns their number.
fn clear_durations(tables: &mut Tables) -> u64 {
    let durations_ns = tables.events.durations_ns();
    let has_long = durations_ns.iter().any(|&ns| is_longer(ns, LONGEST_NS));
    let lengths_ns = durations_ns.iter().filter(|&&ns| ns > 0 && !is_longer(ns, LONGEST_NS));
    let sum_ns: i128 = lengths_ns.map(|&ns| i128::from(ns)).sum();
    if !has_long && sum_ns <= i128::from(LARGEST_SUM_NS) {
        return 0;
    }
    let longest_ns = if sum_ns <= i128::from(LARGEST_SUM_NS) {
        LONGEST_NS
    } else {
        LARGEST_SUM_NS.unsigned_abs() / durations_ns.len() as u64
    };
    Arc::make_mut(&mut tables.events).clear_durations(|ns| is_longer(ns, longest_ns))
}

fn is_longer(duration_ns: i64, longest_ns: u64) -> bool {
    duration_ns != NO_INTEGER && duration_ns.unsigned_abs() > longest_ns
}

#[cfg(test)]
mod tests {
    use crate::diagnostics::Code;
    use crate::read::{Options, read, read_bytes};
    use crate::tables::Tables;

    const NOW_US: i64 = 1_712_195_495_506_763;

    fn tables(events: &[String]) -> Tables {
        read_bytes(format!("[{}]", events.join(",")).as_bytes(), &Options::default()).unwrap()
    }

    fn operator(start_us: i64, duration_us: i64) -> String {
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"n{start_us}","pid":1,"tid":1,"ts":{start_us},"dur":{duration_us},"args":{{"External id":{start_us}}}}}"#
        )
    }

    fn names(tables: &Tables) -> Vec<&str> {
        let names = tables.events.ids().map(|event| tables.events.name(event).unwrap());
        names.map(|name| tables.strings.get(name)).collect()
    }

    #[test]
    fn an_event_decades_away_from_the_others_is_left_out_with_its_arguments() {
        let events = [operator(0, 10), operator(NOW_US, 5), operator(NOW_US + 10, 5)];
        let tables = tables(&events);
        assert_eq!(names(&tables), [format!("n{NOW_US}"), format!("n{}", NOW_US + 10)]);
        assert_eq!(tables.diagnostics.count(Code::FarTimestamp), 1);
        let numbers: Vec<_> = tables.args.iter().flat_map(|(_, table)| table.events()).collect();
        assert_eq!(numbers, tables.events.ids().take(numbers.len()).collect::<Vec<_>>());
    }

    #[test]
    fn samples_and_arrows_decades_away_are_left_out() {
        let with = |ph: &str, ts: i64| {
            format!(
                r#"{{"ph":"{ph}","cat":"c","name":"n","id":1,"pid":1,"tid":1,"ts":{ts},"args":{{"v":1}}}}"#
            )
        };
        let far = ["C", "s", "b"].map(|ph| with(ph, 0));
        let near = ["C", "s", "b"].map(|ph| with(ph, NOW_US));
        let tables = tables(&[&far[..], &near, &[operator(NOW_US, 1)]].concat());
        assert_eq!(tables.diagnostics.count(Code::FarTimestamp), 3);
        assert_eq!(
            (tables.counters.time_ns.len(), tables.flows.len(), tables.asyncs.len()),
            (1, 1, 1)
        );
    }

    #[test]
    fn asynchronous_events_of_another_clock_are_a_note() {
        let with = |ph: &str| {
            format!(r#"{{"ph":"{ph}","cat":"c","name":"n","id":1,"pid":1,"tid":1,"ts":10}}"#)
        };
        let tables = tables(&[with("b"), with("e"), operator(NOW_US, 1), operator(NOW_US, 2)]);
        assert_eq!(tables.diagnostics.count(Code::OtherClock), 2);
        assert_eq!(tables.diagnostics.count(Code::FarTimestamp), 0);
        assert_eq!((tables.asyncs.len(), tables.events.len()), (0, 2));
    }

    #[test]
    fn of_two_clocks_the_one_of_most_events_is_kept() {
        let events = [operator(1, 1), operator(5, 1), operator(NOW_US, 5)];
        assert_eq!(names(&tables(&events)), ["n1", "n5"]);
        assert_eq!(names(&tables(&events[1..])), [format!("n{NOW_US}")]);
    }

    #[test]
    fn strict_reading_refuses_a_far_time() {
        let text = format!("[{},{}]", operator(0, 10), operator(NOW_US, 5));
        let options = Options { strict: true, ..Options::default() };
        let error = read(text.as_bytes(), &options, &crate::progress::silent).unwrap_err();
        assert_eq!(error.kind(), &crate::error::ErrorKind::Strict(Code::FarTimestamp));
    }

    #[test]
    fn durations_add_up_to_less_than_a_century_whatever_the_file_says() {
        let month_us = 30 * 86_400 * 1_000_000;
        for (n_events, duration_us, n_huge) in
            [(3, 4 * month_us, 3), (3, month_us, 0), (999, month_us, 999)]
        {
            let events: Vec<_> = (0..n_events).map(|at| operator(at, duration_us)).collect();
            let tables = tables(&events);
            assert_eq!(tables.diagnostics.count(Code::LongDuration), n_huge, "{n_events}");
            let durations =
                tables.events.ids().filter_map(|event| tables.events.duration_ns(event));
            assert!(durations.map(i128::from).sum::<i128>() <= 1 << 61);
        }
    }
}
