//! Iterations of a trace that ran the operators of an execution trace, in its order.

use std::collections::{BTreeMap, HashMap};

use super::model::{link, unlinkable, ExecutionLink, Iteration, Method, Unlinked};
use super::names::{candidates, Names};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, StringId};
use crate::tables::{ExecutionTrace, Tables};

/// At least so many nodes in a hundred must stand on threads that fit, not counting
/// those for processes and threads.
const LEAST_FITTING_PERCENT: usize = 90;

/// The nodes of one thread, in the order in which they began.
struct Thread {
    rows: Vec<usize>,
    names: Vec<StringId>,
}

/// The places at which a thread fits: the events from the first on.
type Fits<'a> = Vec<&'a [EventId]>;

/// The iterations that fit, in order of time.
pub(super) fn iterations(trace: &ExecutionTrace, tables: &Tables, names: &Names) -> Vec<Iteration> {
    let threads = threads(trace, names);
    let lanes = lanes(tables);
    let fits: Vec<Fits<'_>> = threads.iter().map(|thread| fits(thread, &lanes, tables)).collect();
    let n_linkable = (0..trace.nodes.len()).filter(|&row| unlinkable(trace, row).is_none()).count();
    let Some(longest) = (0..threads.len()).max_by_key(|&place| threads[place].rows.len()) else {
        return Vec::new();
    };
    let starts: Vec<_> = fits[longest].iter().map(|fit| tables.events.start_ns(fit[0])).collect();
    (0..starts.len())
        .map(|number| {
            let until_ns = starts.get(number + 1).copied().unwrap_or(i64::MAX);
            let chosen = choose(&fits, longest, fits[longest][number], until_ns, tables);
            iteration(&threads, &chosen, tables)
        })
        .filter(|found| found.n_nodes() * 100 >= n_linkable * LEAST_FITTING_PERCENT)
        .collect()
}

/// The threads of an execution trace, by number.
fn threads(trace: &ExecutionTrace, names: &Names) -> Vec<Thread> {
    let mut threads: BTreeMap<i64, Thread> = BTreeMap::new();
    for (row, node) in trace.nodes.iter().enumerate() {
        let Some(name) = names.in_trace(row).filter(|_| unlinkable(trace, row).is_none()) else {
            continue;
        };
        let thread = threads
            .entry(node.tid)
            .or_insert_with(|| Thread { rows: Vec::new(), names: Vec::new() });
        thread.rows.push(row);
        thread.names.push(name);
    }
    threads.into_values().collect()
}

/// The events of each thread of the trace, in the order in which they began.
fn lanes(tables: &Tables) -> Vec<Vec<EventId>> {
    let mut place: HashMap<usize, usize> = HashMap::new();
    let mut lanes: Vec<Vec<EventId>> = Vec::new();
    for event in candidates(tables) {
        let lane = *place.entry(tables.events.lane(event).row()).or_insert_with(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(event);
    }
    lanes
}

/// Every place of every lane at which the names of a thread stand, in order of time
/// (Knuth, Morris and Pratt 1977: linear, whatever the names).
fn fits<'a>(thread: &Thread, lanes: &'a [Vec<EventId>], tables: &Tables) -> Fits<'a> {
    let failure = failure(&thread.names);
    let mut found = Vec::new();
    for lane in lanes {
        let mut matched = 0;
        for (place, &event) in lane.iter().enumerate() {
            let name = tables.events.name(event);
            while matched > 0
                && (matched == thread.names.len() || name != Some(thread.names[matched]))
            {
                matched = failure[matched - 1];
            }
            matched += usize::from(name == Some(thread.names[matched]));
            if matched == thread.names.len() {
                found.push(&lane[place + 1 - matched..=place]);
            }
        }
    }
    found.sort_by_key(|fit| (tables.events.start_ns(fit[0]), tables.events.position(fit[0])));
    found
}

fn failure(names: &[StringId]) -> Vec<usize> {
    let mut failure = vec![0; names.len()];
    let mut matched = 0;
    for place in 1..names.len() {
        while matched > 0 && names[place] != names[matched] {
            matched = failure[matched - 1];
        }
        matched += usize::from(names[place] == names[matched]);
        failure[place] = matched;
    }
    failure
}

/// For each thread the fit that belongs to a fit of the longest one: the first that
/// begins with it or later, and before the next iteration.
fn choose<'a>(
    fits: &[Fits<'a>],
    longest: usize,
    fit: &'a [EventId],
    until_ns: i64,
    tables: &Tables,
) -> Vec<Option<&'a [EventId]>> {
    let from_ns = tables.events.start_ns(fit[0]);
    let start_ns = |fit: &&[EventId]| tables.events.start_ns(fit[0]);
    let mut chosen: Vec<Option<&[EventId]>> = fits
        .iter()
        .map(|fits| {
            let first = fits.partition_point(|fit| start_ns(fit) < from_ns);
            fits.get(first).copied().filter(|fit| start_ns(fit) < until_ns)
        })
        .collect();
    chosen[longest] = Some(fit);
    chosen
}

fn iteration(threads: &[Thread], chosen: &[Option<&[EventId]>], tables: &Tables) -> Iteration {
    let mut found = Iteration { start_ns: i64::MAX, end_ns: i64::MIN, threads: Vec::new() };
    for (thread, fit) in threads.iter().zip(chosen) {
        let Some(events) = fit else { continue };
        for (start_ns, end_ns) in events.iter().filter_map(|&event| tables.events.span(event)) {
            found.start_ns = found.start_ns.min(start_ns);
            found.end_ns = found.end_ns.max(end_ns);
        }
        found.threads.push((thread.rows.clone(), events.to_vec()));
    }
    found
}

/// The link of one of the iterations.
pub(super) fn link_iteration(
    trace: &ExecutionTrace,
    tables: &Tables,
    iterations: Vec<Iteration>,
    asked: Option<usize>,
) -> Result<ExecutionLink> {
    let chosen = asked.unwrap_or_else(|| median(&iterations));
    let Some(iteration) = iterations.get(chosen) else {
        let found = iterations.len();
        let why = format!("there is no iteration {chosen}: {found} fit, counted from 0");
        return Err(Error::new(ErrorKind::NoWindow(why), 0));
    };
    let mut events = vec![None; trace.nodes.len()];
    for (rows, found) in &iteration.threads {
        for (&row, &event) in rows.iter().zip(found) {
            events[row] = Some(event);
        }
    }
    let mut link =
        link(trace, tables, Method::ThreadOrder, |row| events[row].ok_or(Unlinked::NoThreadFits));
    link.chosen = Some(chosen);
    link.iterations = iterations;
    Ok(link)
}

/// The one of median length, of two the earlier.
fn median(iterations: &[Iteration]) -> usize {
    let mut order: Vec<_> = (0..iterations.len()).collect();
    order.sort_by_key(|&number| (iterations[number].duration_ns(), number));
    order[(order.len() - 1) / 2]
}
