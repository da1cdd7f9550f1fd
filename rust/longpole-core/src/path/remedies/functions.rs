//! The function of the program that has most of the host's time on the path.

use std::collections::HashMap;

use super::catalogue::Side;
use super::Question;
use crate::graph::Kind;
use crate::ids::{EventId, StringId};
use crate::tables::EventKind;

/// A function, module or annotation of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: StringId,
    /// Its share of the host's time on the path.
    pub share: f64,
    /// Its calls in the trace.
    pub events: Vec<EventId>,
}

/// From the outside one descends while a child has this share of its parent.
const MOST_OF_PARENT: f64 = 0.8;

/// Finds the innermost function that holds nearly all of the host's time on the path.
///
/// None where that is the loop itself, or a module that calls many others: then there is no
/// one place to look at.
pub(super) fn function(question: &Question<'_>) -> Option<Function> {
    let times = question.time_on_path(|kind| Side::Host.has(kind) && kind != Kind::Launch);
    let total_ns: i64 = times.iter().map(|(_, ns)| ns).sum();
    let mut tree = Tree::new(question);
    for &(event, ns) in &times {
        tree.add(event, ns);
    }
    let place = tree.descend(total_ns)?;
    let (name, ns) = (tree.places[place].name?, tree.places[place].time_ns);
    if is_module(question.tables.strings.get(name)) {
        return None;
    }
    #[allow(clippy::cast_precision_loss)] // a share
    let share = ns as f64 / total_ns.max(1) as f64;
    Some(Function { name, share, events: calls_of(name, question) })
}

/// The name that has most of the host's time on the path, with its share of all time.
pub(super) fn busiest(question: &Question<'_>) -> Option<(StringId, f64)> {
    let mut of_name: HashMap<StringId, i64> = HashMap::new();
    for (event, ns) in question.time_on_path(|kind| Side::Host.has(kind) && kind != Kind::Launch) {
        if let Some(name) = question.tables.events.name(event) {
            *of_name.entry(name).or_default() += ns;
        }
    }
    let mut names: Vec<_> = of_name.into_iter().collect();
    names.sort_unstable_by_key(|&(name, ns)| (std::cmp::Reverse(ns), name));
    let total_ns: i64 = question.paths.iter().map(|path| path.end_ns - path.start_ns).sum();
    #[allow(clippy::cast_precision_loss)] // a share
    names.first().map(|&(name, ns)| (name, ns as f64 / total_ns.max(1) as f64))
}

/// A module's `forward` spreads its time over the modules in it.
fn is_module(name: &str) -> bool {
    name.starts_with("nn.Module") || name.contains("): forward") || name.contains("_call_impl")
}

fn calls_of(name: StringId, question: &Question<'_>) -> Vec<EventId> {
    let timeline = &question.graph.timeline;
    let is_call = |kind| matches!(kind, EventKind::Python | EventKind::Annotation);
    timeline
        .orders()
        .filter(|&event| timeline.name(event) == Some(name) && is_call(timeline.kind(event)))
        .map(|event| timeline.event(event))
        .collect()
}

/// The functions around the host's time, from the outside in.
struct Tree<'a> {
    question: &'a Question<'a>,
    places: Vec<Place>,
    children: HashMap<(usize, StringId), usize>,
    place_of: HashMap<EventId, usize>,
    start_ns: i64,
    end_ns: i64,
}

struct Place {
    name: Option<StringId>,
    parent: usize,
    time_ns: i64,
    /// Whether a call of it is open from the first window to the last.
    is_loop: bool,
}

impl<'a> Tree<'a> {
    fn new(question: &'a Question<'a>) -> Self {
        let windows = &question.scope.windows;
        let root = Place { name: None, parent: 0, time_ns: 0, is_loop: true };
        Self {
            question,
            places: vec![root],
            children: HashMap::new(),
            place_of: HashMap::new(),
            start_ns: windows.first().map_or(0, |window| window.start_ns),
            end_ns: windows.last().map_or(0, |window| window.end_ns),
        }
    }

    fn add(&mut self, event: EventId, ns: i64) {
        let mut place = self.place(event);
        while place > 0 {
            self.places[place].time_ns += ns;
            place = self.places[place].parent;
        }
    }

    /// The place of the innermost function around an event, itself included.
    fn place(&mut self, event: EventId) -> usize {
        let mut unknown = Vec::new();
        let mut next = Some(event);
        let mut place = 0;
        while let Some(event) = next {
            if let Some(&known) = self.place_of.get(&event) {
                place = known;
                break;
            }
            unknown.push(event);
            next = self.question.nesting.parent(event);
        }
        for event in unknown.into_iter().rev() {
            place = self.inner(place, event);
            self.place_of.insert(event, place);
        }
        place
    }

    /// The place of an event inside another place: the same where it is no function.
    fn inner(&mut self, outer: usize, event: EventId) -> usize {
        let events = &self.question.tables.events;
        let is_function = matches!(events.kind(event), EventKind::Python | EventKind::Annotation);
        let Some(name) = events.name(event).filter(|_| is_function) else { return outer };
        if self.question.tables.strings.get(name).starts_with("ProfilerStep") {
            return outer;
        }
        let place = *self.children.entry((outer, name)).or_insert_with(|| {
            self.places.push(Place { name: Some(name), parent: outer, time_ns: 0, is_loop: false });
            self.places.len() - 1
        });
        let (start_ns, end_ns) = events.span(event).unwrap_or_default();
        self.places[place].is_loop |= start_ns <= self.start_ns && self.end_ns <= end_ns;
        place
    }

    /// The innermost place that holds most of its parent, all the way from the outside.
    fn descend(&self, total_ns: i64) -> Option<usize> {
        let mut heaviest: Vec<Option<usize>> = vec![None; self.places.len()];
        for place in 1..self.places.len() {
            let known = &mut heaviest[self.places[place].parent];
            let time_ns = |place: usize| self.places[place].time_ns;
            if known.is_none_or(|known| time_ns(place) > time_ns(known)) {
                *known = Some(place);
            }
        }
        let mut place = 0;
        let mut time_ns = total_ns;
        #[allow(clippy::cast_precision_loss)] // a share
        while let Some(child) = heaviest[place]
            .filter(|&child| self.places[child].time_ns as f64 >= MOST_OF_PARENT * time_ns as f64)
        {
            (place, time_ns) = (child, self.places[child].time_ns);
        }
        (!self.places[place].is_loop).then_some(place)
    }
}
