//! What work on a device is for: its class, for each event.
//!
//! A kernel with the record of a collective communicates, whatever its name; else the
//! [`Vocabulary`](crate::vocabulary::Vocabulary) is asked for its name.

use super::{argument_text, EventKind, Tables};
use crate::ids::EventId;
use crate::vocabulary::{pageable_ends, WorkClass, MEMORY_KINDS};

impl Tables {
    /// The class of each event that is work on a device, asked often: the names
    /// are looked at once.
    pub(crate) fn work_classes(&self) -> impl Fn(EventId) -> Option<WorkClass> + '_ {
        let class_of_name: Vec<_> =
            self.strings.iter().map(|name| self.vocabulary.class(name)).collect();
        move |event| match self.events.kind(event) {
            EventKind::Kernel if self.is_collective(event) => Some(WorkClass::Communication),
            EventKind::Kernel => {
                let name = self.events.name(event);
                Some(name.map_or(WorkClass::Compute, |name| class_of_name[name.row()]))
            }
            EventKind::Copy | EventKind::Fill => Some(WorkClass::Copy),
            _ => None,
        }
    }

    /// Whether the profiler attached the record of a collective.
    fn is_collective(&self, event: EventId) -> bool {
        argument_text(event, "Collective name", self).is_some_and(|name| !name.is_empty())
    }

    /// Whether the source and the destination of a memcpy are pageable memory, which the
    /// driver stages itself.
    pub(crate) fn pageable_ends(&self, event: EventId) -> [bool; 2] {
        let kinds = MEMORY_KINDS.map(|key| argument_text(event, key, self));
        let name = self.events.name(event).map_or("", |name| self.strings.get(name));
        pageable_ends(name, kinds)
    }
}
