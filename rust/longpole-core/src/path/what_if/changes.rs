//! Hypothetical changes to a program.

use super::ratio::Ratio;
use crate::graph::Kind;
use crate::ids::EventId;
use crate::tables::EventKind;

/// A hypothetical change to a program.
///
/// With `events` or `stretches`, it is limited to their time.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The effect on the time of what is selected.
    pub effect: Effect,
    /// Only edges of this kind; without it, any work.
    pub kind: Option<Kind>,
    /// Only the time of events of this kind; for annotations, the time inside them.
    pub event_kind: Option<EventKind>,
    /// Only events whose name matches this pattern; for kernels, the name of a family selects that
    /// family only.
    pub matching: Option<String>,
    /// Only these events: the time inside them, or their waits.
    pub events: Option<Vec<EventId>>,
    /// Only what a thread did during these time ranges.
    pub stretches: Option<Vec<Stretch>>,
}

/// A time range of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    /// The row of the thread in the lane table.
    pub lane: usize,
    /// Start time.
    pub start_ns: i64,
    /// End time.
    pub end_ns: i64,
}

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Multiplies the time. With a factor of 0, dependencies remain.
    Scale(Ratio),
    /// Sets the duration of each selected GPU activity.
    Replace(i64),
    /// Adds a time to each selected event, such as the cost of a mechanism.
    Insert(i64),
    /// Removes the wait of what is selected by its kind of wait.
    RemoveWait,
}

/// Replaces the latency of a removed edge.
pub(crate) const REMOVED: i64 = i64::MIN;

impl Change {
    /// Creates a change of everything of a kind.
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

    /// Creates a change of any work in the given events.
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

    /// Whether the change selects by kind only.
    pub(in crate::path) fn is_plain(&self) -> bool {
        let has_effect_of_kinds = matches!(self.effect, Effect::Scale(_) | Effect::RemoveWait);
        let is_of_all = self.events.is_none() && self.stretches.is_none();
        has_effect_of_kinds && is_of_all && self.matching.is_none() && self.event_kind.is_none()
    }
}
