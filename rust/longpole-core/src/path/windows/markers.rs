//! Annotations that mark the iterations of programs that do not call `prof.step()`.
//!
//! From one iteration to the next, only numbers in the names differ. A name pattern marks
//! iterations if it occurs regularly on one thread, and either is a known marker, such as the
//! annotations of optimizers and loaders, or covers nearly all time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use super::model::Moment;
use super::serving;
use crate::error::Result;
use crate::graph;
use crate::ids::{EventId, LaneId, StringId};
use crate::link::Launches;
use crate::tables::{EventKind, Tables};

/// Common names of training iterations, best first. A single occurrence of one of the first
/// [`N_SINGLE`] also counts as an iteration.
const KNOWN: [&str; 5] = [
    r"(train|eval|infer|model)_?(iteration|iter|step|batch)",
    r"^Optimizer\.step#",
    r"^enumerate\(DataLoader\)#",
    r"## forward ##",
    r"^Optimizer\.zero_grad#",
];
const N_SINGLE: usize = 1;
const OPTIMIZER_STEP: usize = 1;

/// Minimum number of instances of a pattern.
const FEWEST: usize = 3;

/// Maximum median deviation of the distances from their median, as a share of the median. The
/// iterations of real training loops are far below it.
const MOST_IRREGULAR: f64 = 0.3;

/// Minimum share of the time between its first and last instance that an unknown pattern must
/// cover. Stages of servers and compiled layers covered up to 86 %.
const LEAST_COVER: f64 = 0.95;

/// Number of threads examined, those with the most launches.
const N_THREADS: usize = 2;

/// The start times of iterations on one thread, and the pattern of their names.
pub(super) struct Markers {
    pub(super) name: String,
    pub(super) moments: Vec<Moment>,
    /// The shortest annotation of the thread that contains all of them, if iterations are not known
    /// by their name.
    pub(super) around: Option<EventId>,
}

/// Returns the annotations that may mark iterations, likeliest first: those that match `pattern` if
/// given, otherwise those that are known or regular enough.
///
/// # Errors
///
/// Returns an error if the pattern is not a valid regular expression.
pub(super) fn markers(
    tables: &Tables,
    launches: &Launches,
    pattern: Option<&str>,
) -> Result<Vec<Markers>> {
    let chosen = pattern.map(|pattern| graph::matching(pattern, tables)).transpose()?;
    let busiest = busiest_threads(tables, launches);
    let rank = |group: &Group| match &chosen {
        Some(names) => (names[group.first_name.row()] && group.spans.len() > 1).then_some(0),
        None => group.rank(&busiest, tables).filter(|_| group.is_regular()),
    };
    let outermost = |group: Group| if chosen.is_some() { group.outermost() } else { group };
    let groups: Vec<_> = groups(tables).into_iter().map(outermost).collect();
    let mut found: Vec<_> = groups.iter().filter_map(|group| Some((rank(group)?, group))).collect();
    found.sort_by_key(|(rank, group)| (*rank, Reverse(group.spans.len()), group.spans[0]));
    let marked_by_end = |rank| chosen.is_none() && rank == OPTIMIZER_STEP;
    let around = |rank, group: &Group| {
        (chosen.is_none() && rank == KNOWN.len()).then(|| group.around(&groups)).flatten()
    };
    let markers =
        |(rank, group): (usize, &Group)| group.markers(marked_by_end(rank), around(rank, group));
    Ok(found.into_iter().map(markers).collect())
}

/// Returns the longest of the few marked iterations, and their number.
pub(super) fn single(tables: &Tables) -> Option<(EventId, usize)> {
    let events = &tables.events;
    let length = |event: &EventId| (events.duration_ns(*event), Reverse(events.start_ns(*event)));
    let longest = |found: Vec<EventId>| {
        let longest = found.iter().copied().max_by_key(length)?;
        Some((longest, found.len()))
    };
    if let Some(found) = serving::marked(tables) {
        return longest(found.rows.into_iter().map(|(event, _)| event).collect());
    }
    let is_single = tables.strings.matching(|name| known(name).is_some_and(|rank| rank < N_SINGLE));
    let named = annotations(tables)
        .filter(|&event| events.name(event).is_some_and(|name| is_single[name.row()]));
    longest(named.collect())
}

/// The annotations of one thread whose names differ only in numbers, in order of time.
struct Group {
    lane: LaneId,
    pattern: String,
    first_name: StringId,
    spans: Vec<(i64, i64, EventId)>,
}

fn groups(tables: &Tables) -> Vec<Group> {
    let events = &tables.events;
    let mut patterns: HashMap<StringId, String> = HashMap::new();
    let mut groups: BTreeMap<(LaneId, String), Group> = BTreeMap::new();
    for event in annotations(tables) {
        let (Some(name), Some((start, end))) = (events.name(event), events.span(event)) else {
            continue;
        };
        let pattern =
            patterns.entry(name).or_insert_with(|| pattern_of(tables.strings.get(name))).clone();
        let lane = events.lane(event);
        let group = groups.entry((lane, pattern.clone())).or_insert_with(|| Group {
            lane,
            pattern,
            first_name: name,
            spans: Vec::new(),
        });
        group.spans.push((start, end, event));
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    for group in &mut groups {
        group.spans.sort_unstable();
    }
    groups
}

fn annotations(tables: &Tables) -> impl Iterator<Item = EventId> + '_ {
    let events = &tables.events;
    events.ids().filter(|&event| {
        events.kind(event) == EventKind::Annotation && events.end_ns(event).is_some()
    })
}

impl Group {
    /// Returns the group without annotations inside another one of it, which begin no iteration.
    fn outermost(mut self) -> Self {
        self.spans
            .sort_unstable_by_key(|&(start_ns, end_ns, event)| (start_ns, Reverse(end_ns), event));
        let mut until_ns = i64::MIN;
        self.spans.retain(|&(_, end_ns, _)| {
            let is_outermost = end_ns > until_ns;
            until_ns = until_ns.max(end_ns);
            is_outermost
        });
        self
    }

    fn markers(&self, by_end: bool, around: Option<EventId>) -> Markers {
        let moment = if by_end { Moment::End } else { Moment::Start };
        let moments = self.spans.iter().map(|&(_, _, event)| moment(event)).collect();
        Markers { name: self.pattern.clone(), moments, around }
    }

    /// Returns the shortest annotation of the same thread and of another name that contains all of
    /// the group.
    fn around(&self, groups: &[Self]) -> Option<EventId> {
        let start_ns = self.spans.first()?.0;
        let end_ns = self.spans.iter().map(|span| span.1).max()?;
        let others = groups
            .iter()
            .filter(|group| group.lane == self.lane && group.pattern != self.pattern)
            .flat_map(|group| &group.spans);
        others
            .filter(|span| span.0 <= start_ns && end_ns <= span.1)
            .min_by_key(|span| (span.1 - span.0, span.2))
            .map(|span| span.2)
    }

    /// Returns the index among the known patterns; patterns of busy threads that cover nearly all
    /// time come after those.
    fn rank(&self, busiest: &[LaneId], tables: &Tables) -> Option<usize> {
        let name = tables.strings.get(self.first_name);
        known(name).or_else(|| {
            (busiest.contains(&self.lane) && self.cover() >= LEAST_COVER).then_some(KNOWN.len())
        })
    }

    /// Returns the share of the time from first to last in which one of them is open.
    #[allow(clippy::cast_precision_loss)] // a share
    fn cover(&self) -> f64 {
        let (Some(first), Some(last)) = (self.spans.first(), self.spans.last()) else { return 0.0 };
        let inner = &self.spans[..self.spans.len() - 1];
        let covered: i64 = inner.iter().map(|(start, end, _)| end - start).sum();
        covered as f64 / (last.0 - first.0).max(1) as f64
    }

    fn is_regular(&self) -> bool {
        let overlaps = self.spans.windows(2).any(|pair| pair[1].0 < pair[0].1);
        if overlaps || self.spans.len() < FEWEST {
            return false;
        }
        let distances = self.spans.windows(2).skip(1).map(|pair| pair[1].0 - pair[0].0);
        let distances: Vec<_> = distances.collect();
        let median_ns = median(distances.clone());
        let deviation_ns = median(distances.iter().map(|ns| (ns - median_ns).abs()).collect());
        #[allow(clippy::cast_precision_loss)] // a share
        let is_regular = deviation_ns as f64 <= MOST_IRREGULAR * median_ns as f64;
        is_regular
    }
}

/// Returns the lower median.
pub(super) fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

fn known(name: &str) -> Option<usize> {
    static PATTERNS: LazyLock<Vec<Regex>> =
        LazyLock::new(|| KNOWN.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect());
    PATTERNS.iter().position(|pattern| pattern.is_match(name))
}

/// Returns the name with each number (decimal or long hexadecimal) replaced by `#`.
fn pattern_of(name: &str) -> String {
    static NUMBER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[0-9a-fA-F]{8,}|\d+").ok());
    NUMBER.as_ref().map_or_else(|| name.to_owned(), |number| number.replace_all(name, "#").into())
}

/// Returns the threads that launch the most GPU activities.
fn busiest_threads(tables: &Tables, launches: &Launches) -> Vec<LaneId> {
    let events = &tables.events;
    let mut count = vec![0_usize; tables.lanes.len()];
    for work in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        if let Some(call) = launches.launcher(work) {
            count[events.lane(call).row()] += 1;
        }
    }
    let mut lanes: Vec<_> = (0..count.len()).filter(|&lane| count[lane] > 0).collect();
    lanes.sort_by_key(|&lane| (Reverse(count[lane]), lane));
    lanes.into_iter().take(N_THREADS).map(LaneId::from_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_long_hexadecimal_words_of_a_name_do_not_matter() {
        assert_eq!(pattern_of("execute_12_batch_deadbeef01"), "execute_#_batch_#");
        assert_eq!(pattern_of("run 0badcafe0 of 17"), "run # of #");
        assert_eq!(pattern_of("forward"), "forward");
    }

    #[test]
    fn iterations_are_known_by_what_frameworks_call_them() {
        let cases = [
            ("my_train_step", Some(0)),
            ("Optimizer.step#AdamW.step", Some(1)),
            ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Some(2)),
            ("execute_context_3", None),
            ("nccl:all_reduce", None),
        ];
        for (name, expected) in cases {
            assert_eq!(known(name), expected, "{name}");
        }
    }

    #[test]
    fn of_an_even_number_the_lower_median_counts() {
        assert_eq!((median(vec![4, 1, 3, 2]), median(vec![])), (2, 0));
    }
}
