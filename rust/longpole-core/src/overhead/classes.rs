//! The classes of events that cost alike to record.

use crate::ids::EventId;
use crate::names::named;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::ApiRole;

named! {
    /// Events that cost alike to record.
    Class {
        /// An operator that no other operator called.
        OuterOperator "outer_operator",
        /// An operator that another one called.
        NestedOperator "nested_operator",
        /// A runtime API call that launches a kernel or a graph.
        Launch "launch",
        /// Any other runtime API call.
        Call "call",
        /// A Python function.
        PythonFunction "python_function",
        /// A range that the program marks.
        Annotation "annotation",
    }
}

/// Which class each event of a trace is of.
pub(super) struct Classes<'a> {
    tables: &'a Tables,
    nesting: &'a Nesting,
    launches: Vec<bool>,
}

impl<'a> Classes<'a> {
    pub(super) fn of(tables: &'a Tables, nesting: &'a Nesting) -> Self {
        let launching =
            |role: &ApiRole| matches!(role, ApiRole::Launch | ApiRole::GraphLaunch);
        let launches = tables.roles().iter().map(launching).collect();
        Self { tables, nesting, launches }
    }

    /// The class of an event; none for what is not recorded on a thread.
    pub(super) fn class(&self, event: EventId) -> Option<Class> {
        let events = &self.tables.events;
        match events.kind(event) {
            EventKind::Operator => {
                let parent = self.nesting.parent(event).map(|parent| events.kind(parent));
                let is_nested = parent == Some(EventKind::Operator);
                Some(if is_nested { Class::NestedOperator } else { Class::OuterOperator })
            }
            EventKind::Runtime | EventKind::Driver => {
                let launches = events.name(event).is_some_and(|name| self.launches[name.row()]);
                Some(if launches { Class::Launch } else { Class::Call })
            }
            EventKind::Python => Some(Class::PythonFunction),
            EventKind::Annotation => Some(Class::Annotation),
            _ => None,
        }
    }
}
