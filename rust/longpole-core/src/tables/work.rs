//! The class of each GPU activity.
//!
//! A kernel with the record of a collective communicates, regardless of its name; for other
//! kernels, the [`Vocabulary`](crate::vocabulary::Vocabulary) decides by name.

use std::cell::Cell;

use super::{EventKind, Tables, Values, argument_text};
use crate::ids::{EventId, StringId};
use crate::vocabulary::{MEMORY_KINDS, WorkClass, pageable_ends};

impl Tables {
    /// Returns a function for the class of GPU activities. Each name is looked up once, and records
    /// are looked up in advance.
    pub(crate) fn work_classes(&self) -> impl Fn(EventId) -> Option<WorkClass> + '_ {
        let class_of_name: Vec<Cell<Option<WorkClass>>> = vec![Cell::new(None); self.strings.len()];
        let class_of = move |name: StringId| {
            let known = &class_of_name[name.row()];
            known.get().unwrap_or_else(|| {
                let class = self.vocabulary.class(self.strings.get(name));
                known.set(Some(class));
                class
            })
        };
        let is_collective = self.collectives();
        move |event| match self.events.kind(event) {
            EventKind::Kernel if is_collective.get(event.row()) == Some(&true) => {
                Some(WorkClass::Communication)
            }
            EventKind::Kernel => {
                Some(self.events.name(event).map_or(WorkClass::Compute, &class_of))
            }
            EventKind::Copy | EventKind::Fill => Some(WorkClass::Copy),
            _ => None,
        }
    }

    /// Whether the profiler attached the record of a collective to each event; empty if it attached
    /// none.
    fn collectives(&self) -> Vec<bool> {
        let mut found = Vec::new();
        for (_, table) in self.args.iter() {
            let column = table.column("Collective name");
            let Some(Values::Texts(names)) = column.map(|column| &column.values) else { continue };
            found.resize(self.events.len(), false);
            for (event, name) in table.events().zip(names.rows()) {
                let name = StringId::from_column(name);
                found[event.row()] = name.is_some_and(|name| !self.strings.get(name).is_empty());
            }
        }
        found
    }

    /// Whether the source and the destination of a memcpy are pageable memory, which the driver
    /// stages.
    pub(crate) fn pageable_ends(&self, event: EventId) -> [bool; 2] {
        let kinds = MEMORY_KINDS.map(|key| argument_text(event, key, self));
        let name = self.events.name(event).map_or("", |name| self.strings.get(name));
        pageable_ends(name, kinds)
    }
}
