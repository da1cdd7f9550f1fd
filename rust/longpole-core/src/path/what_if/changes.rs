//! What may be imagined to be different about a program.

use super::ratio::Ratio;
use crate::graph::Kind;
use crate::ids::EventId;
use crate::tables::EventKind;

/// Something about the program that is imagined to be different.
///
/// With `events` or `stretches` it is only about the time of these.
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
    /// Only what a thread did during these stretches.
    pub stretches: Option<Vec<Stretch>>,
}

/// A part of the time of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    /// The thread, as a row of the lanes.
    pub lane: usize,
    /// When it begins.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Multiplies the time; by 0, what depends on it still depends on it.
    Scale(Ratio),
    /// Sets the time of each chosen event to a length. It is chosen among GPU activities.
    Replace(i64),
    /// Adds a time to each chosen event: what a mechanism costs.
    Insert(i64),
    /// Removes the wait of what is chosen. It is chosen by the kind of its waiting.
    RemoveWait,
}

/// Stands for the lag of an edge that is no longer there.
pub(crate) const REMOVED: i64 = i64::MIN;

impl Change {
    /// A change of all that has a kind.
    pub fn of_kind(effect: Effect, kind: Kind) -> Self {
        Self {
            effect,
            kind: Some(kind),
            event_kind: None,
            matching: None,
            events: None,
            stretches: None,
        }
    }

    /// A change of given events, of any work in them.
    pub fn of_events(effect: Effect, events: Vec<EventId>) -> Self {
        Self {
            effect,
            kind: None,
            event_kind: None,
            matching: None,
            events: Some(events),
            stretches: None,
        }
    }

    /// Whether it is about all that has a kind, and nothing else.
    pub(in crate::path) fn is_plain(&self) -> bool {
        let has_effect_of_kinds = matches!(self.effect, Effect::Scale(_) | Effect::RemoveWait);
        let is_of_all = self.events.is_none() && self.stretches.is_none();
        has_effect_of_kinds && is_of_all && self.matching.is_none() && self.event_kind.is_none()
    }
}
