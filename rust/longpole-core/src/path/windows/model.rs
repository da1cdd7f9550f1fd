//! The window: two times, and the events that open and end it.

use crate::ids::EventId;
use crate::tables::Tables;

/// A time range of a trace, with the events that open and end it.
///
/// If these events move in a what-if, the window moves with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Start time.
    pub start_ns: i64,
    /// End time.
    pub end_ns: i64,
    /// Moments that may end it; the latest one does.
    pub candidates: Vec<Moment>,
    /// What opens it.
    pub opening: Opening,
}

/// The start or the end of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The start of an event.
    Start(EventId),
    /// The end of an event.
    End(EventId),
}

/// What opens a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// The latest of some moments.
    Moments(Vec<Moment>),
    /// A fixed time, regardless of events.
    Time,
}

/// Which part of a step or annotation ends its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// The latest of all parts; the window begins where the period of the previous step ended.
    Period,
    /// The latest of the annotation and the GPU activities launched inside it.
    Last,
    /// The annotation itself.
    Cpu,
    /// The latest of the GPU activities launched inside it.
    Gpu,
}

/// The choice of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All events of main threads and devices.
    Whole,
    /// The iteration of median length, or the closest alternative; see [`scope`](super::scope).
    Usual,
    /// The step with the given number.
    Step(i64, WindowEnd),
    /// One of the annotations with a name, by its index in order of time.
    Annotation(String, usize, WindowEnd),
    /// The range between two times, as recorded.
    Between(i64, i64),
    /// The range between two times that the events have now.
    Now(i64, i64),
}

impl Window {
    /// Creates a window that ends with the latest of its candidates, but never before its start.
    pub(super) fn new(tables: &Tables, candidates: Vec<Moment>, opening: Opening) -> Self {
        let last_ns = |of: &[Moment]| of.iter().map(|moment| moment.time_ns(tables)).max();
        let start_ns = match &opening {
            Opening::Moments(moments) => last_ns(moments).unwrap_or(i64::MIN),
            Opening::Time => i64::MIN,
        };
        let end_ns = last_ns(&candidates).unwrap_or(start_ns).max(start_ns);
        Self { start_ns, end_ns, candidates, opening }
    }

    /// Returns the start, if it is a fixed time instead of an event: everything before it stays the
    /// same in a what-if.
    pub fn fixed_start_ns(&self) -> Option<i64> {
        (self.opening == Opening::Time).then_some(self.start_ns)
    }
}

impl Moment {
    /// Returns the event that starts or ends.
    pub fn event(self) -> EventId {
        match self {
            Self::Start(event) | Self::End(event) => event,
        }
    }

    /// Returns the time of the moment; for the end of an event without an end, its start.
    pub fn time_ns(self, tables: &Tables) -> i64 {
        let events = &tables.events;
        match self {
            Self::Start(event) => events.start_ns(event),
            Self::End(event) => events.end_ns(event).unwrap_or(events.start_ns(event)),
        }
    }
}
