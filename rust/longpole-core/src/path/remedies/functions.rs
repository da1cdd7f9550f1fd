//! The function of the program with most of the host time on the path.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::model::Side;
use super::question::Question;
use crate::graph::Kind;
use crate::ids::{EventId, NO_ROW, Order, RowMap, StringId, row_in_column};
use crate::path::walk::{Path, Segment};
use crate::tables::EventKind;
use crate::vocabulary::{ApiRole, is_wrapper_frame};

/// A function, module or annotation of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: StringId,
    /// Its share of the host's time on the path.
    pub share: f64,
}

/// Minimum share of the host time on the path to report a function: most of it.
const LEAST_SHARE: f64 = 0.5;

/// A label that is open for this share of the time does not narrow down where the time went.
const MOST_OF_ALL: f64 = 0.95;

/// Returns the innermost function that contains most of the host time on the path.
///
/// `None` if this is the training loop itself, or a wrapper of the framework: then the time is not
/// in one place.
pub(super) fn function(question: &Question<'_>) -> Option<Function> {
    let mut tree = Tree::new(question);
    let mut total_ns = 0;
    for (event, ns) in question.time_on_path(|kind| Side::Host.has(kind) && kind != Kind::Launch) {
        tree.add(event, ns);
        total_ns += ns;
    }
    let (name, ns) = tree.innermost(share_of(total_ns, LEAST_SHARE))?;
    #[allow(clippy::cast_precision_loss)] // a share
    let share = ns as f64 / total_ns.max(1) as f64;
    Some(Function { name, share })
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // a share
fn share_of(total_ns: i64, share: f64) -> i64 {
    (total_ns as f64 * share) as i64
}

/// The name with the most host time on the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busiest {
    /// The name of the operators, calls or functions.
    pub name: StringId,
    /// Its share of the time.
    pub share: f64,
    /// Number of events of that name on the path.
    pub n_events: usize,
    /// The share of the longest of them.
    pub longest: f64,
    /// The role of the calls, if they are runtime API calls.
    pub role: Option<ApiRole>,
    /// Whether this is the first use of the device, and most windows have no such event.
    pub is_first_use: bool,
}

/// Returns the name with the most host time on the path.
pub(super) fn busiest(question: &Question<'_>) -> Option<Busiest> {
    let mut of_name = vec![(0_i64, 0_usize, 0_i64); question.tables.strings.len()];
    for (event, ns) in question.time_on_path(|kind| Side::Host.has(kind) && kind != Kind::Launch) {
        let is_label = question.tables.events.kind(event) == EventKind::Annotation;
        if let Some(name) = question.tables.events.name(event).filter(|_| !is_label) {
            let (total_ns, n_events, longest_ns) = &mut of_name[name.row()];
            (*total_ns, *n_events) = (*total_ns + ns, *n_events + 1);
            *longest_ns = ns.max(*longest_ns);
        }
    }
    let known = of_name.into_iter().enumerate().filter(|(_, (_, n_events, _))| *n_events > 0);
    let best = known
        .map(|(row, times)| (StringId::from_row(row), times))
        .max_by_key(|&(name, (ns, ..))| (ns, Reverse(name)));
    let total_ns: i64 = question.paths.iter().map(|path| path.end_ns - path.start_ns).sum();
    #[allow(clippy::cast_precision_loss)] // a share
    let share = |ns: i64| ns as f64 / total_ns.max(1) as f64;
    let role = |name: StringId| {
        let timeline = &question.graph.timeline;
        let of_name = |&event: &_| timeline.name(event) == Some(name);
        let is_call = timeline.orders().find(of_name).is_some_and(|it| timeline.kind(it).is_call());
        is_call.then(|| question.tables.role(name))
    };
    best.map(|(name, (ns, n_events, longest_ns))| Busiest {
        name,
        share: share(ns),
        n_events,
        longest: share(longest_ns),
        role: role(name),
        is_first_use: is_first_use(name, question),
    })
}

/// The reciprocal of the share of a window that counts as a large part of it.
const MUCH_OF_WINDOW: i64 = 10;

/// Whether the first event that needs the device has this name, and most windows have no such
/// event.
fn is_first_use(name: StringId, question: &Question<'_>) -> bool {
    let is_named = |event: Option<EventId>| {
        event.is_some_and(|event| question.tables.events.name(event) == Some(name))
    };
    let has_much = |path: &&Path| {
        let of_name =
            path.segments.iter().filter(|it| Side::Host.has(it.kind) && is_named(it.event));
        let time_ns: i64 = of_name.map(Segment::duration_ns).sum();
        MUCH_OF_WINDOW * time_ns > path.end_ns - path.start_ns
    };
    let n_windows = question.paths.len();
    if n_windows > 1 && 2 * question.paths.iter().filter(has_much).count() > n_windows {
        return false;
    }
    let (timeline, roles) = (&question.graph.timeline, question.tables.roles());
    let needs_device = |&event: &Order| {
        let role = timeline.name(event).map(|name| roles[name.row()]);
        timeline.kind(event).is_device_work()
            || timeline.kind(event).is_call()
                && !matches!(role, None | Some(ApiRole::Other | ApiRole::Query))
    };
    let first = timeline.orders().find(needs_device);
    first.is_some_and(|event| timeline.name(event) == Some(name))
}

/// The call tree around the host time, outermost function first.
struct Tree<'a> {
    question: &'a Question<'a>,
    places: Vec<Place>,
    children: RowMap<(usize, StringId), usize>,
    /// The place of each event; [`NO_ROW`] if not yet known.
    place_of: Vec<u32>,
}

/// A node of the call tree: a function called by that of the parent place.
struct Place {
    name: Option<StringId>,
    parent: usize,
    depth: usize,
    self_ns: i64,
    is_loop: bool,
}

impl<'a> Tree<'a> {
    fn new(question: &'a Question<'a>) -> Self {
        let root = Place { name: None, parent: 0, depth: 0, self_ns: 0, is_loop: true };
        let place_of = vec![NO_ROW; question.tables.events.len()];
        Self { question, places: vec![root], children: RowMap::default(), place_of }
    }

    fn add(&mut self, event: EventId, ns: i64) {
        let place = self.place(event);
        self.places[place].self_ns += ns;
    }

    /// Returns the place of the innermost function around an event, or of the event itself.
    fn place(&mut self, event: EventId) -> usize {
        let mut unknown = Vec::new();
        let mut next = Some(event);
        let mut place = 0;
        while let Some(event) = next {
            let known = self.place_of[event.row()];
            if known != NO_ROW {
                place = known as usize;
                break;
            }
            unknown.push(event);
            next = self.question.nesting.parent(event);
        }
        for event in unknown.into_iter().rev() {
            place = self.inner(place, event);
            self.place_of[event.row()] = row_in_column(place);
        }
        place
    }

    /// Returns the place of an event inside another place; the same place if the event is not a
    /// function.
    fn inner(&mut self, outer: usize, event: EventId) -> usize {
        let events = &self.question.tables.events;
        let is_function = matches!(events.kind(event), EventKind::Python | EventKind::Annotation);
        let Some(name) = events.name(event).filter(|_| is_function) else { return outer };
        let depth = self.places[outer].depth + 1;
        let place = *self.children.entry((outer, name)).or_insert_with(|| {
            let place =
                Place { name: Some(name), parent: outer, depth, self_ns: 0, is_loop: false };
            self.places.push(place);
            self.places.len() - 1
        });
        self.places[place].is_loop |= self.is_loop(event);
        place
    }

    /// Whether an event is open nearly all the time from the first window to the last, and so does
    /// not narrow down the time; functions count only if they were called before the first window.
    fn is_loop(&self, event: EventId) -> bool {
        let (events, windows) = (&self.question.tables.events, &self.question.scope.windows);
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return false };
        let (start_ns, end_ns) = events.span(event).unwrap_or_default();
        let inside_ns = end_ns.min(last.end_ns) - start_ns.max(first.start_ns);
        let is_label = events.kind(event) == EventKind::Annotation;
        (is_label || start_ns <= first.start_ns)
            && inside_ns >= share_of(last.end_ns - first.start_ns, MOST_OF_ALL)
    }

    /// Of the functions with at least `least_ns` in all of their calls, returns the innermost.
    fn innermost(&self, least_ns: i64) -> Option<(StringId, i64)> {
        let mut found: Vec<_> = self.of_names().into_iter().collect();
        found.retain(|(_, of)| of.time_ns >= least_ns.max(1) && !of.is_loop);
        let text = |name: StringId| self.question.tables.strings.get(name);
        found.retain(|&(name, _)| !is_wrapper_frame(text(name)));
        let best =
            found.into_iter().min_by_key(|(name, of)| (Reverse(of.depth), of.time_ns, *name));
        best.map(|(name, of)| (name, of.time_ns))
    }

    /// Returns the total time of each function in all of its calls, including what it calls.
    fn of_names(&self) -> HashMap<StringId, Inclusive> {
        let totals_ns = self.totals_ns();
        let mut of_names: HashMap<StringId, Inclusive> = HashMap::new();
        let mut n_open: HashMap<StringId, u32> = HashMap::new();
        self.walk(|number, enters| {
            let place = &self.places[number];
            let Some(name) = place.name else { return };
            let open = n_open.entry(name).or_default();
            if !enters {
                *open -= 1;
                return;
            }
            let of = of_names.entry(name).or_default();
            of.is_loop |= place.is_loop;
            (of.longest_ns, of.depth) =
                (of.longest_ns, of.depth).max((totals_ns[number], place.depth));
            // The time of recursive calls is already included.
            of.time_ns += if *open == 0 { totals_ns[number] } else { 0 };
            *open += 1;
        });
        of_names
    }

    /// Returns the inclusive time of each place. A place comes after its parent.
    fn totals_ns(&self) -> Vec<i64> {
        let mut totals_ns: Vec<_> = self.places.iter().map(|place| place.self_ns).collect();
        for (number, place) in self.places.iter().enumerate().skip(1).rev() {
            totals_ns[place.parent] += totals_ns[number];
        }
        totals_ns
    }

    /// Visits each place twice: on entry and on exit.
    fn walk(&self, mut visit: impl FnMut(usize, bool)) {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.places.len()];
        for (number, place) in self.places.iter().enumerate().skip(1) {
            inside[place.parent].push(number);
        }
        let mut open = vec![(0, true)];
        while let Some((number, enters)) = open.pop() {
            visit(number, enters);
            if enters {
                open.push((number, false));
                open.extend(inside[number].iter().map(|&inner| (inner, true)));
            }
        }
    }
}

/// Totals over all calls of a function.
#[derive(Default)]
struct Inclusive {
    time_ns: i64,
    /// The time of the place with the most time, and the depth of that place.
    longest_ns: i64,
    depth: usize,
    is_loop: bool,
}
