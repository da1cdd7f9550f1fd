//! What a window is: two times, and the events that open and end it.

use crate::ids::EventId;
use crate::tables::Tables;

/// A stretch of a trace and what opens and ends it.
///
/// That is more than two times: when events move, so does the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// What may end it: the last of these moments does.
    pub candidates: Vec<Moment>,
    /// What opens it.
    pub opening: Opening,
}

/// The start or the end of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Its start.
    Start(EventId),
    /// Its end.
    End(EventId),
}

/// What a window begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// The last of some moments.
    Moments(Vec<Moment>),
    /// A time, whatever happens then.
    Time,
}

/// Which of its parts end a step or an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// The last of all; and the window begins where the step before ended so.
    Period,
    /// The last of the annotation and the device work launched inside it.
    Last,
    /// The annotation.
    Cpu,
    /// The last of the device work launched inside it.
    Gpu,
}

/// What stretch of the trace is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// All work of main threads and devices.
    Whole,
    /// The iteration of median length, or what comes closest to one; see [`scope`](super::scope).
    Usual,
    /// The step with a number.
    Step(i64, WindowEnd),
    /// One of the annotations with a name, counted in order of time.
    Annotation(String, usize, WindowEnd),
    /// From one time to another.
    Between(i64, i64),
}

impl Window {
    /// A window that ends with the last of its candidates, never before it begins.
    pub(super) fn new(tables: &Tables, candidates: Vec<Moment>, opening: Opening) -> Self {
        let last_ns = |of: &[Moment]| of.iter().map(|moment| moment.time_ns(tables)).max();
        let start_ns = match &opening {
            Opening::Moments(moments) => last_ns(moments).unwrap_or(i64::MIN),
            Opening::Time => i64::MIN,
        };
        let end_ns = last_ns(&candidates).unwrap_or(start_ns).max(start_ns);
        Self { start_ns, end_ns, candidates, opening }
    }

    /// Where it begins, if that is a time and no event: what was before has happened, whatever
    /// is changed.
    pub fn fixed_start_ns(&self) -> Option<i64> {
        (self.opening == Opening::Time).then_some(self.start_ns)
    }
}

impl Moment {
    /// Whose start or end it is.
    pub fn event(self) -> EventId {
        match self {
            Self::Start(event) | Self::End(event) => event,
        }
    }

    /// When it was; an event without an end has none later than its start.
    pub fn time_ns(self, tables: &Tables) -> i64 {
        let events = &tables.events;
        match self {
            Self::Start(event) => events.start_ns(event),
            Self::End(event) => events.end_ns(event).unwrap_or(events.start_ns(event)),
        }
    }
}
