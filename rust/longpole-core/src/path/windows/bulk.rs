//! The part of a trace that contains most GPU activities, for traces without marked iterations, in
//! which start-up can take longer than the part of interest.

use std::fmt;

use super::model::Window;
use crate::ids::EventId;
use crate::tables::Tables;

/// Minimum number of activities.
const FEWEST: usize = 100;

/// Percentage of the activities that the bulk contains.
const BULK_PERCENT: usize = 90;

/// The bulk must take less than one part in this many of the window.
const TIME_ONE_IN: i64 = 2;

/// The shortest part of a window that contains most of its GPU activities.
pub(super) struct Bulk {
    start_ns: i64,
    end_ns: i64,
    activity_percent: usize,
    time_percent: i64,
}

/// Returns the bulk if it is much shorter than the window.
pub(super) fn bulk(tables: &Tables, window: &Window) -> Option<Bulk> {
    let events = &tables.events;
    let mut works: Vec<_> = events.ids().filter(|&id| events.kind(id).is_device_work()).collect();
    works.sort_by_key(|&work| (events.start_ns(work), work));
    let (start_ns, last_start_ns) = shortest(tables, &works)?;
    let inside: Vec<_> = works
        .iter()
        .filter(|&&work| (start_ns..=last_start_ns).contains(&events.start_ns(work)))
        .collect();
    let end_ns = inside.iter().filter_map(|&&work| events.end_ns(work)).max()?;
    let (length_ns, whole_ns) = (end_ns - start_ns, window.end_ns - window.start_ns);
    (length_ns.checked_mul(TIME_ONE_IN)? < whole_ns).then(|| Bulk {
        start_ns,
        end_ns,
        activity_percent: 100 * inside.len() / works.len(),
        time_percent: (length_ns.saturating_mul(100) / whole_ns).max(1),
    })
}

/// Returns the first and last start in the shortest such part.
fn shortest(tables: &Tables, works: &[EventId]) -> Option<(i64, i64)> {
    if works.len() < FEWEST {
        return None;
    }
    let start_ns = |work: &EventId| tables.events.start_ns(*work);
    let parts = works.windows((works.len() * BULK_PERCENT).div_ceil(100));
    let times = parts.filter_map(|part| Some((start_ns(part.first()?), start_ns(part.last()?))));
    times.min_by_key(|&(first_ns, last_ns)| (last_ns - first_ns, first_ns))
}

impl fmt::Display for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} % of its GPU activities lie in {} % of its time: to analyse only these, add \
             --between {} {}",
            self.activity_percent, self.time_percent, self.start_ns, self.end_ns
        )
    }
}
