//! Changes of a program, and the edges they choose.

use crate::error::Result;

use crate::graph::{Edge, Graph, Kind, Role, matching, matching_kernels};
use crate::ids::{EventId, Order};
use crate::tables::{EventKind, Tables};

/// Something about the program that is imagined to be different.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What happens to the time of what is chosen.
    pub effect: Effect,
    /// Only what has this kind; without it, any work.
    pub kind: Option<Kind>,
    /// Only the time of events of this kind; for annotations, the time inside them.
    pub event_kind: Option<EventKind>,
    /// Only what has a name in which this pattern is found; of kernels, where it is the name of a
    /// family, only those of the family.
    pub matching: Option<String>,
    /// Only these events: the time inside them, or what they wait for.
    pub events: Option<Vec<EventId>>,
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Multiplies the time; by 0, what depends on it still depends on it.
    Scale(Ratio),
    /// Lets what is chosen no longer wait. It is chosen by the kind of its waiting.
    RemoveWait,
}

/// A factor, exact: the product of a time and it rounds half to even.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// Nothing is changed.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };
    /// It takes no time.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// It takes half the time.
    pub const HALF: Self = Self { numerator: 1, denominator: 2 };

    /// None where the denominator is 0.
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        (denominator > 0).then_some(Self { numerator, denominator })
    }

    /// The factor as a number with a point.
    #[allow(clippy::cast_precision_loss)] // for people to read
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The product of two factors. Beyond 64 bits it loses its last digits.
    fn times(self, other: Self) -> Self {
        let mut numerator = u128::from(self.numerator) * u128::from(other.numerator);
        let mut denominator = u128::from(self.denominator) * u128::from(other.denominator);
        let common = greatest_common_divisor(numerator, denominator).max(1);
        (numerator, denominator) = (numerator / common, denominator / common);
        while numerator.max(denominator) > u128::from(u64::MAX) {
            (numerator, denominator) = (numerator / 2, (denominator / 2).max(1));
        }
        let narrow = |value| u64::try_from(value).unwrap_or(u64::MAX);
        Self { numerator: narrow(numerator), denominator: narrow(denominator) }
    }

    /// The time multiplied.
    pub fn of(self, time_ns: i64) -> i64 {
        let product = i128::from(time_ns) * i128::from(self.numerator);
        let denominator = i128::from(self.denominator);
        let (floor, rest) = (product.div_euclid(denominator), product.rem_euclid(denominator));
        let up = match (rest * 2).cmp(&denominator) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => floor.rem_euclid(2),
            std::cmp::Ordering::Greater => 1,
        };
        i64::try_from(floor + up).unwrap_or(i64::MAX)
    }
}

fn greatest_common_divisor(mut one: u128, mut two: u128) -> u128 {
    while two > 0 {
        (one, two) = (two, one % two);
    }
    one
}

/// The lags of all edges after some changes, `i64::MIN` for edges that are gone. Where they are
/// made at a time `from_ns`, what has passed of a lag until then stays.
///
/// # Errors
///
/// When a pattern is no regular expression.
pub fn changed_lags_ns(
    graph: &Graph,
    tables: &Tables,
    lags_ns: &[i64],
    changes: &[Change],
    from_ns: Option<i64>,
) -> Result<Vec<i64>> {
    let from_ns = from_ns.unwrap_or(i64::MIN);
    let mut factors = vec![Ratio::ONE; graph.edges.len()];
    let mut changed_ns = lags_ns.to_vec();
    for change in changes {
        let chosen = Chosen::by(change, graph, tables)?;
        for (number, edge) in graph.edges.as_slice().iter().enumerate() {
            if graph.nodes.time_ns(edge.target) > from_ns && chosen.holds(number, edge, graph) {
                match change.effect {
                    Effect::Scale(ratio) => factors[number] = factors[number].times(ratio),
                    Effect::RemoveWait => changed_ns[number] = REMOVED,
                }
            }
        }
    }
    for ((lag_ns, factor), edge) in changed_ns.iter_mut().zip(factors).zip(graph.edges.as_slice()) {
        if *lag_ns != REMOVED && factor != Ratio::ONE {
            let passed_ns = edge.passed_ns(*lag_ns, from_ns, &graph.nodes);
            *lag_ns = passed_ns.saturating_add(factor.of(*lag_ns - passed_ns));
        }
    }
    Ok(changed_ns)
}

/// How many edges of the graph each change is about.
///
/// # Errors
///
/// When a pattern is no regular expression.
pub fn n_chosen(graph: &Graph, tables: &Tables, changes: &[Change]) -> Result<Vec<usize>> {
    let count = |change| {
        let chosen = Chosen::by(change, graph, tables)?;
        let edges = graph.edges.as_slice().iter().enumerate();
        Ok(edges.filter(|(number, edge)| chosen.holds(*number, edge, graph)).count())
    };
    changes.iter().map(count).collect()
}

/// Stands for the lag of an edge that is no longer there.
pub(crate) const REMOVED: i64 = i64::MIN;

impl Change {
    /// A change of all that has a kind.
    pub fn of_kind(effect: Effect, kind: Kind) -> Self {
        Self { effect, kind: Some(kind), event_kind: None, matching: None, events: None }
    }
}

/// The edges that a change is about: by kind, by name and place of the event whose time it
/// is, or of the one that waits.
pub(in crate::path) struct Chosen {
    kind: Option<Kind>,
    event_kind: Option<EventKind>,
    removes_wait: bool,
    is_named: Option<Vec<bool>>,
    /// The same for names of kernels.
    is_kernel_named: Option<Vec<bool>>,
    inside: Option<Inside>,
}

impl Chosen {
    /// # Errors
    ///
    /// When the pattern is no regular expression.
    pub(in crate::path) fn by(change: &Change, graph: &Graph, tables: &Tables) -> Result<Self> {
        let pattern = change.matching.as_ref();
        let is_named = pattern.map(|pattern| matching(pattern, tables)).transpose()?;
        let is_kernel_named =
            pattern.map(|pattern| matching_kernels(pattern, tables)).transpose()?;
        let removes_wait = change.effect == Effect::RemoveWait;
        if change.event_kind == Some(EventKind::Annotation) {
            let ranges = annotations(change, is_named.as_deref(), tables);
            let inside = Some(Inside::of(&ranges, true, graph));
            return Ok(Self {
                kind: None,
                event_kind: None,
                removes_wait,
                is_named: None,
                is_kernel_named: None,
                inside,
            });
        }
        Ok(Self {
            kind: change.kind,
            event_kind: change.event_kind,
            removes_wait,
            is_named,
            is_kernel_named,
            inside: change.events.as_ref().map(|events| Inside::of(events, !removes_wait, graph)),
        })
    }

    pub(in crate::path) fn holds(&self, number: usize, edge: &Edge, graph: &Graph) -> bool {
        if self.removes_wait {
            let waits = edge.role.waits() == Some(self.kind.unwrap_or(Kind::SyncReturn));
            let waiter = graph.nodes.event(edge.target);
            let is_inside = |inside: &Inside| inside.events[waiter.row()];
            return waits
                && self.has_name(Some(waiter), graph)
                && self.inside.as_ref().is_none_or(is_inside);
        }
        self.kind.map_or_else(|| edge.kind.is_work(), |kind| edge.kind == kind)
            && self.is_of_event_kind(edge.event(), graph)
            && self.has_name(edge.event(), graph)
            && self.inside.as_ref().is_none_or(|inside| inside.holds(number, edge))
    }

    fn is_of_event_kind(&self, event: Option<Order>, graph: &Graph) -> bool {
        let Some(kind) = self.event_kind else { return true };
        event.is_some_and(|event| graph.timeline.kind(event) == kind)
    }

    fn has_name(&self, event: Option<Order>, graph: &Graph) -> bool {
        let (Some(is_named), Some(is_kernel_named)) = (&self.is_named, &self.is_kernel_named)
        else {
            return true;
        };
        event.is_some_and(|event| {
            let is_kernel = graph.timeline.kind(event) == EventKind::Kernel;
            let is_meant = if is_kernel { is_kernel_named } else { is_named };
            graph.timeline.name(event).is_some_and(|name| is_meant[name.row()])
        })
    }
}

/// The annotations that a change is about.
fn annotations(change: &Change, is_named: Option<&[bool]>, tables: &Tables) -> Vec<EventId> {
    let events = &tables.events;
    let is_one = |&event: &EventId| {
        let name = events.name(event);
        events.kind(event) == EventKind::Annotation
            && is_named.is_none_or(|is_named| name.is_some_and(|name| is_named[name.row()]))
    };
    match &change.events {
        Some(rows) => rows.iter().copied().filter(is_one).collect(),
        None => events.ids().filter(is_one).collect(),
    }
}

/// The time inside some events: their own, and on threads all that is nested in them.
struct Inside {
    /// One row for each event of the timeline.
    events: Vec<bool>,
    /// One row for each edge; empty where no event of a thread was chosen.
    edges: Vec<bool>,
}

impl Inside {
    fn of(chosen: &[EventId], nested: bool, graph: &Graph) -> Self {
        let mut events = vec![false; graph.timeline.len()];
        let mut on_thread = false;
        for order in chosen.iter().filter_map(|&event| graph.timeline.order(event)) {
            events[order.row()] = true;
            on_thread |= !graph.timeline.kind(order).is_device_work();
        }
        let mut inside = Self { events, edges: Vec::new() };
        if on_thread && nested {
            inside.add_nested(graph);
        }
        inside
    }

    /// Adds what happens on a thread while a chosen event is open.
    fn add_nested(&mut self, graph: &Graph) {
        self.edges = vec![false; graph.edges.len()];
        let is_chosen = self.events.clone();
        let mut n_open: Vec<u32> = Vec::new(); // by lane
        for node in graph.nodes.ids() {
            let event = graph.nodes.event(node);
            if graph.timeline.kind(event).is_device_work() {
                continue;
            }
            let lane = graph.timeline.lane(event);
            n_open.resize(n_open.len().max(lane + 1), 0);
            let open = &mut n_open[lane];
            if *open > 0 {
                self.events[event.row()] |= !graph.nodes.is_end(node);
                for number in graph.edges.range(node) {
                    let role = graph.edges.as_slice()[number].role;
                    self.edges[number] = role == Role::ThreadOrder;
                }
            }
            match (is_chosen[event.row()], graph.nodes.is_end(node)) {
                (true, false) => *open += 1,
                (true, true) => *open -= 1,
                (false, _) => {}
            }
        }
    }

    fn holds(&self, number: usize, edge: &Edge) -> bool {
        if edge.role == Role::ThreadOrder && !self.edges.is_empty() {
            return self.edges[number];
        }
        edge.event().is_some_and(|event| self.events[event.row()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_round_half_to_even() {
        let rounded: Vec<_> = [1, 2, 3, 5].iter().map(|&ns| Ratio::HALF.of(ns)).collect();
        assert_eq!(rounded, [0, 1, 2, 2]);
        assert_eq!(Ratio::new(1, 3).map(|third| third.of(8)), Some(3));
    }

    #[test]
    fn factors_multiply_exactly() {
        let third = Ratio::new(1, 3).unwrap();
        assert_eq!(third.times(Ratio::new(3, 2).unwrap()), Ratio::HALF);
        assert_eq!(Ratio::new(3, 0), None);
    }

    #[test]
    fn a_factor_beyond_all_bounds_stays_in_bounds() {
        let huge = Ratio::new(u64::MAX, 1).unwrap();
        assert_eq!(huge.times(huge).of(i64::MAX), i64::MAX);
    }
}
