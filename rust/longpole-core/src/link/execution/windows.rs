//! Finds the iterations of a trace that ran the operators of an execution trace, in the same order.

use std::collections::{BTreeMap, HashMap};

use super::fits::{Lane, Thread, fits};
use super::fits::{Names, candidates};
use super::model::{ExecutionLink, Iteration, Method, Unlinked, link, unlinkable};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, StringId};
use crate::tables::{ExecutionTrace, Tables};

/// Minimum percentage of nodes on threads that match, not counting nodes for processes and threads.
const LEAST_FITTING_PERCENT: usize = 90;

/// Added to the error message if the search was not exhaustive.
pub(super) const SEARCH_CUT: &str =
    "; the search was stopped at 1,000 comparisons for each event, so there may be more";

/// The matches of a thread in order of time, each with the events of its nodes.
type Fits = Vec<Vec<EventId>>;

/// Returns the matching iterations in order of time, and whether the search was exhaustive.
pub(super) fn iterations(
    trace: &ExecutionTrace,
    tables: &Tables,
    names: &Names,
) -> (Vec<Iteration>, bool) {
    let threads = threads(trace, names);
    let lanes = lanes(tables);
    let (fits, are_all): (Vec<Fits>, Vec<bool>) =
        threads.iter().map(|thread| all_fits(thread, &lanes, tables)).unzip();
    let n_linkable = (0..trace.nodes.len()).filter(|&row| unlinkable(trace, row).is_none()).count();
    let Some(longest) = (0..threads.len()).max_by_key(|&place| threads[place].rows().len()) else {
        return (Vec::new(), true);
    };
    let found = (0..fits[longest].len())
        .map(|number| {
            let chosen = choose(&threads, &fits, longest, number, tables);
            iteration(&threads, &chosen, tables)
        })
        .filter(|found| found.n_nodes() * 100 >= n_linkable * LEAST_FITTING_PERCENT)
        .collect();
    (found, are_all.into_iter().all(|is_all| is_all))
}

/// Returns the threads of an execution trace, by number.
fn threads(trace: &ExecutionTrace, names: &Names) -> Vec<Thread> {
    let mut threads: BTreeMap<i64, Vec<(usize, StringId)>> = BTreeMap::new();
    for (row, node) in trace.nodes.iter().enumerate() {
        let Some(name) = names.in_trace(row).filter(|_| unlinkable(trace, row).is_none()) else {
            continue;
        };
        threads.entry(node.tid).or_default().push((row, name));
    }
    threads.into_values().map(|nodes| Thread::of(nodes, trace)).collect()
}

/// Returns the threads of the trace.
fn lanes(tables: &Tables) -> Vec<Lane> {
    let mut place: HashMap<usize, usize> = HashMap::new();
    let mut lanes: Vec<Vec<EventId>> = Vec::new();
    for event in candidates(tables) {
        let lane = *place.entry(tables.events.lane(event).row()).or_insert_with(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(event);
    }
    lanes.into_iter().map(|events| Lane::of(events, tables)).collect()
}

/// Returns all positions where this operator sequence matches, in time order, and whether the
/// search was exhaustive.
fn all_fits(thread: &Thread, lanes: &[Lane], tables: &Tables) -> (Fits, bool) {
    let (found, are_all): (Vec<Fits>, Vec<bool>) =
        lanes.iter().map(|lane| fits(thread, lane)).unzip();
    let mut found = found.concat();
    found.sort_by_key(|fit| (tables.events.start_ns(fit[0]), tables.events.position(fit[0])));
    (found, are_all.into_iter().all(|is_all| is_all))
}

/// For each thread, returns the match in the same iteration as match `number` of the longest
/// thread. Threads whose first node has a smaller id begin before it, the others after it, and all
/// of them between its neighbouring matches.
fn choose<'a>(
    threads: &[Thread],
    fits: &'a [Fits],
    longest: usize,
    number: usize,
    tables: &Tables,
) -> Vec<Option<&'a [EventId]>> {
    let start_ns = |fit: &Vec<EventId>| tables.events.start_ns(fit[0]);
    let anchors = &fits[longest];
    let at_ns = start_ns(&anchors[number]);
    let before = number.checked_sub(1).map(|earlier| start_ns(&anchors[earlier]));
    let behind = anchors.get(number + 1).map(start_ns);
    let of_thread = |place: usize| {
        let fits = &fits[place];
        if place == longest {
            fits.get(number)
        } else if threads[place].rows()[0] < threads[longest].rows()[0] {
            let n_begun = fits.partition_point(|fit| start_ns(fit) <= at_ns);
            let last = n_begun.checked_sub(1).and_then(|last| fits.get(last));
            last.filter(|fit| before.is_none_or(|before| start_ns(fit) > before))
        } else {
            let first = fits.get(fits.partition_point(|fit| start_ns(fit) < at_ns));
            first.filter(|fit| behind.is_none_or(|behind| start_ns(fit) < behind))
        }
    };
    (0..threads.len()).map(|place| of_thread(place).map(Vec::as_slice)).collect()
}

fn iteration(threads: &[Thread], chosen: &[Option<&[EventId]>], tables: &Tables) -> Iteration {
    let mut found = Iteration { start_ns: i64::MAX, end_ns: i64::MIN, threads: Vec::new() };
    for (thread, fit) in threads.iter().zip(chosen) {
        let Some(events) = fit else { continue };
        for (start_ns, end_ns) in events.iter().filter_map(|&event| tables.events.span(event)) {
            found.start_ns = found.start_ns.min(start_ns);
            found.end_ns = found.end_ns.max(end_ns);
        }
        found.threads.push((thread.rows().to_vec(), events.to_vec()));
    }
    found
}

/// Returns the links for the selected iteration.
pub(super) fn link_iteration(
    trace: &ExecutionTrace,
    tables: &Tables,
    (iterations, is_complete): (Vec<Iteration>, bool),
    asked: Option<usize>,
) -> Result<ExecutionLink> {
    let chosen = asked.unwrap_or_else(|| median(&iterations));
    let Some(iteration) = iterations.get(chosen) else {
        let found = iterations.len();
        let cut = if is_complete { "" } else { SEARCH_CUT };
        let why = format!("there is no iteration {chosen}: {found} match, numbered from 0{cut}");
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

/// Returns the iteration of median length; of two, the earlier.
fn median(iterations: &[Iteration]) -> usize {
    let mut order: Vec<_> = (0..iterations.len()).collect();
    order.sort_by_key(|&number| (iterations[number].duration_ns(), number));
    order[(order.len() - 1) / 2]
}
