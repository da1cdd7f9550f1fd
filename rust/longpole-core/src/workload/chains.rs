//! The time of each thread by operator: self times, waiting, and gaps.
//!
//! A range of the program (`record_function`, a step) that contains operators is a label and does
//! no work itself: the time between its operators counts as gaps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::model::{DependencyKind, MOST_AFTER_WAITS, Sources};
use super::waits::Waits;

use crate::ids::LaneId;
use crate::vocabulary::{EventKind, runs_on_cpu};

/// The nodes of one thread, in order of start.
pub(super) struct Chain {
    /// Start, id, end and row of each.
    pub(super) nodes: Vec<(i64, i64, i64, usize)>,
    /// End and index in `nodes`, sorted by end.
    by_end: Vec<(i64, usize)>,
}

/// Time between operators of a thread. If the thread waited in it, the time up to the end of the
/// last wait and the time after it are two gaps: only the second depends on what was awaited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    /// The row of the operator at which it ends, or of the last operator of its thread.
    pub(super) row: usize,
    /// Whether it follows the last operator.
    pub(super) is_last: bool,
    /// Whether it ends with a wait.
    pub(super) ends_waiting: bool,
    pub(super) lane: LaneId,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) work_ns: i64,
    pub(super) blocked_ns: i64,
}

/// Work of an operator after a wait in it, which depends on what was awaited, up to the next node or
/// the next wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct AfterWait {
    /// The row of the operator.
    pub(super) row: usize,
    /// Its place among those of the operator.
    pub(super) place: i64,
    pub(super) lane: LaneId,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) work_ns: i64,
}

/// All threads.
pub(super) struct Chains {
    /// By lane.
    pub(super) of_lane: BTreeMap<usize, Chain>,
    /// For each row of the execution trace, its self time before the first wait in it; zero for
    /// labels.
    pub(super) work_ns: Vec<i64>,
    /// For each row, its self time.
    pub(super) self_ns: Vec<i64>,
    /// For each row, the waiting time in its self time.
    pub(super) blocked_ns: Vec<i64>,
    /// The time between operators, by lane and time.
    pub(super) gaps: Vec<Gap>,
    /// The work of operators after their waits, by lane and time.
    pub(super) after_waits: Vec<AfterWait>,
}

impl Chain {
    /// Returns the first node that starts at or after a time.
    pub(super) fn first_from(&self, time_ns: i64) -> Option<usize> {
        let place = self.nodes.partition_point(|node| node.0 < time_ns);
        self.nodes.get(place).map(|node| node.3)
    }

    /// Returns the last node to end by a time.
    pub(super) fn last_ended(&self, time_ns: i64) -> Option<usize> {
        let place = self.by_end.partition_point(|&(end, _)| end <= time_ns);
        place.checked_sub(1).map(|place| self.nodes[self.by_end[place].1].3)
    }

    /// Returns the last node to begin by a time.
    pub(super) fn last_begun(&self, time_ns: i64) -> Option<usize> {
        let place = self.nodes.partition_point(|node| node.0 <= time_ns);
        place.checked_sub(1).map(|place| self.nodes[place].3)
    }
}

pub(super) fn chains(sources: Sources<'_>, waits: &Waits) -> Chains {
    let n_rows = sources.trace.nodes.len();
    let mut chains = Chains {
        of_lane: of_lane(sources),
        work_ns: vec![0; n_rows],
        self_ns: vec![0; n_rows],
        blocked_ns: vec![0; n_rows],
        gaps: Vec::new(),
        after_waits: Vec::new(),
    };
    let first = chains.of_lane.values().filter_map(|chain| chain.nodes.first());
    let first_ns = first.map(|node| node.0).min().unwrap_or(0);
    let origins = origins(&chains.of_lane, waits, first_ns);
    for (&lane, chain) in &chains.of_lane {
        let mut sweep = Sweep {
            blocked: &waits.blocked[lane],
            next_blocked: 0,
            lane: LaneId::from_row(lane),
            last_ns: origins[&lane],
            open: Vec::new(),
            ends: BTreeSet::new(),
            waiting: None,
            gap: None,
            gaps: &mut chains.gaps,
            after_waits: &mut chains.after_waits,
            last_after: HashMap::new(),
            work_ns: &mut chains.work_ns,
            self_ns: &mut chains.self_ns,
            blocked_ns: &mut chains.blocked_ns,
        };
        sweep.run(chain, &labels(chain, sources));
    }
    chains
}

/// Whether each node of a thread is a range that contains others.
fn labels(chain: &Chain, sources: Sources<'_>) -> Vec<bool> {
    let events = &sources.tables.events;
    let next = chain.nodes.iter().skip(1).map(Some).chain([None]);
    let is_range = |row: usize| {
        let event = sources.link.event(row);
        event.is_some_and(|event| events.kind(event) == EventKind::Annotation)
            && !runs_on_cpu(sources.trace.name(row))
    };
    let holds = |&(_, _, end_ns, _): &(i64, i64, i64, usize),
                 next: Option<&(i64, i64, i64, usize)>| {
        next.is_some_and(|next| next.2 <= end_ns && next.0 < end_ns)
    };
    chain.nodes.iter().zip(next).map(|(node, next)| is_range(node.3) && holds(node, next)).collect()
}

fn of_lane(sources: Sources<'_>) -> BTreeMap<usize, Chain> {
    let events = &sources.tables.events;
    let mut of_lane: BTreeMap<usize, Vec<(i64, i64, i64, usize)>> = BTreeMap::new();
    for (row, node) in sources.trace.nodes.iter().enumerate() {
        let Some(event) = sources.link.event(row) else { continue };
        let Some((start_ns, end_ns)) = events.span(event) else { continue };
        of_lane.entry(events.lane(event).row()).or_default().push((start_ns, node.id, end_ns, row));
    }
    let chain = |(lane, mut nodes): (usize, Vec<(i64, i64, i64, usize)>)| {
        nodes.sort_unstable();
        let mut by_end: Vec<_> =
            nodes.iter().enumerate().map(|(place, node)| (node.2, place)).collect();
        by_end.sort_unstable();
        (lane, Chain { nodes, by_end })
    };
    of_lane.into_iter().map(chain).collect()
}

/// Returns the earliest possible start of each thread: when the first thing it waited for had
/// ended, otherwise the first start of all threads.
fn origins(of_lane: &BTreeMap<usize, Chain>, waits: &Waits, first_ns: i64) -> BTreeMap<usize, i64> {
    let begin_ns = |lane: usize| of_lane.get(&lane).map(|chain| chain.nodes[0].0);
    let mut handed_ns: BTreeMap<usize, i64> = BTreeMap::new();
    for wait in waits.all.iter().filter(|wait| wait.kind == DependencyKind::Handover) {
        let lane = wait.target.lane.row();
        if begin_ns(lane).is_some_and(|begin_ns| wait.target.time_ns <= begin_ns) {
            let last_ns = handed_ns.entry(lane).or_insert(i64::MIN);
            *last_ns = wait.source.time_ns.max(*last_ns);
        }
    }
    let origin = |(&lane, chain): (&usize, &Chain)| {
        let start_ns = chain.nodes[0].0;
        let from_ns = handed_ns.get(&lane).copied().unwrap_or(first_ns);
        (lane, from_ns.clamp(first_ns.min(start_ns), start_ns))
    };
    of_lane.iter().map(origin).collect()
}

/// The state of a sweep along one thread.
struct Sweep<'a> {
    blocked: &'a [(i64, i64)],
    next_blocked: usize,
    lane: LaneId,
    last_ns: i64,
    /// The open nodes, innermost last; the innermost has not ended.
    open: Vec<Open>,
    /// The ends of the open nodes, with their indices; of two with the same end, the inner one
    /// comes first.
    ends: BTreeSet<(i64, Reverse<usize>)>,
    /// The gap that ends with the last wait so far, and the one after it.
    waiting: Option<Gap>,
    gap: Option<Gap>,
    gaps: &'a mut Vec<Gap>,
    after_waits: &'a mut Vec<AfterWait>,
    /// For each row, the index of its last work after a wait.
    last_after: HashMap<usize, usize>,
    work_ns: &'a mut [i64],
    self_ns: &'a mut [i64],
    blocked_ns: &'a mut [i64],
}

struct Open {
    row: usize,
    is_label: bool,
    /// Whether it ended before a node that began inside it.
    is_over: bool,
    /// Whether the thread has waited inside it.
    has_waited: bool,
}

impl Sweep<'_> {
    fn run(&mut self, chain: &Chain, labels: &[bool]) {
        let mut last = 0;
        for (&(start_ns, _, end_ns, row), &is_label) in chain.nodes.iter().zip(labels) {
            self.close_until(start_ns);
            self.pass(start_ns);
            self.end_gap(row, false);
            self.ends.insert((end_ns, Reverse(self.open.len())));
            self.open.push(Open { row, is_label, is_over: false, has_waited: false });
            last = row;
        }
        self.close_until(i64::MAX);
        self.end_gap(last, true);
    }

    /// Closes the open nodes that end by a time, in order of end: usually the innermost first; if
    /// nodes cross, the one that ends first.
    fn close_until(&mut self, time_ns: i64) {
        while let Some(&(end_ns, Reverse(place))) = self.ends.first() {
            if end_ns > time_ns {
                break;
            }
            self.pass(end_ns);
            self.ends.pop_first();
            self.open[place].is_over = true;
            while self.open.pop_if(|open| open.is_over).is_some() {}
        }
    }

    /// Assigns the time up to a point to the innermost open node, or to a gap.
    fn pass(&mut self, time_ns: i64) {
        let from_ns = self.last_ns;
        if time_ns <= from_ns {
            return;
        }
        self.last_ns = time_ns;
        let (blocked_ns, over_ns) = self.blocked_within(from_ns, time_ns);
        let work_ns = time_ns - from_ns - blocked_ns;
        if let Some(open) = self.open.last() {
            self.self_ns[open.row] += time_ns - from_ns;
        }
        if let Some(&Open { row, is_label: false, has_waited, .. }) = self.open.last() {
            self.blocked_ns[row] += blocked_ns;
            let is_waiting = blocked_ns > 0;
            let waiting_ns = if is_waiting { over_ns - from_ns - blocked_ns } else { 0 };
            match (has_waited, is_waiting) {
                (false, false) => self.work_ns[row] += work_ns,
                (false, true) => self.work_ns[row] += waiting_ns,
                (true, _) => self.work_after(row, waiting_ns, from_ns, over_ns),
            }
            if has_waited || is_waiting {
                self.work_after(row, time_ns - over_ns, over_ns, time_ns);
            }
        } else {
            if blocked_ns > 0 {
                self.pass_gap(over_ns - from_ns - blocked_ns, from_ns, over_ns);
                self.wait_in_gap(blocked_ns);
            }
            self.pass_gap(time_ns - over_ns, over_ns, time_ns);
        }
        if blocked_ns > 0 {
            self.open.iter_mut().for_each(|open| open.has_waited = true);
        }
    }

    /// Adds work of an operator after a wait in it.
    fn work_after(&mut self, row: usize, work_ns: i64, start_ns: i64, end_ns: i64) {
        if work_ns <= 0 {
            return;
        }
        let last = self.last_after.get(&row).copied();
        let place = last.map_or(0, |last| self.after_waits[last].place + 1);
        if let Some(last) = last.filter(|_| place >= MOST_AFTER_WAITS) {
            self.after_waits[last].work_ns += work_ns;
            return;
        }
        self.last_after.insert(row, self.after_waits.len());
        let lane = self.lane;
        self.after_waits.push(AfterWait { row, place, lane, start_ns, end_ns, work_ns });
    }

    fn pass_gap(&mut self, work_ns: i64, start_ns: i64, end_ns: i64) {
        let gap = self.gap.get_or_insert(Gap {
            row: 0,
            is_last: false,
            ends_waiting: false,
            lane: self.lane,
            start_ns,
            end_ns,
            work_ns: 0,
            blocked_ns: 0,
        });
        gap.work_ns += work_ns;
        gap.end_ns = end_ns;
    }

    /// Joins the gap so far with those before it to one that ends with a wait.
    fn wait_in_gap(&mut self, blocked_ns: i64) {
        let Some(gap) = self.gap.take() else { return };
        let waiting = self.waiting.get_or_insert(Gap { work_ns: 0, ends_waiting: true, ..gap });
        waiting.work_ns += gap.work_ns;
        waiting.blocked_ns += blocked_ns;
        waiting.end_ns = gap.end_ns;
    }

    /// Returns the waiting time in a span, and the end of the last wait in it.
    fn blocked_within(&mut self, from_ns: i64, until_ns: i64) -> (i64, i64) {
        let (mut sum_ns, mut last_ns) = (0, from_ns);
        while let Some(&(start_ns, end_ns)) = self.blocked.get(self.next_blocked) {
            if start_ns >= until_ns {
                break;
            }
            let overlap_ns = end_ns.min(until_ns) - start_ns.max(from_ns);
            if overlap_ns > 0 {
                sum_ns += overlap_ns;
                last_ns = end_ns.min(until_ns);
            }
            if end_ns > until_ns {
                break;
            }
            self.next_blocked += 1;
        }
        (sum_ns, last_ns)
    }

    fn end_gap(&mut self, row: usize, is_last: bool) {
        let gaps = self.waiting.take().into_iter().chain(self.gap.take());
        let gaps = gaps.filter(|gap| gap.work_ns > 0);
        self.gaps.extend(gaps.map(|gap| Gap { row, is_last, ..gap }));
    }
}
