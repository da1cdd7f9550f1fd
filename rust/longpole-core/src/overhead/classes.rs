//! Classes of events with the same recording cost.

use crate::ids::EventId;
use crate::names::named;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables};
use crate::vocabulary::ApiRole;

named! {
    /// A class of events with the same recording cost.
    Class {
        /// An operator that was not called by another operator.
        OuterOperator "outer_operator",
        /// An operator that was called by another operator.
        NestedOperator "nested_operator",
        /// A runtime API call that launches a kernel.
        Launch "launch",
        /// A runtime API call that launches a graph whose nodes are recorded individually.
        GraphLaunch "graph_launch",
        /// Any other runtime API call.
        Call "call",
        /// A Python function.
        PythonFunction "python_function",
        /// A range marked by the program.
        Annotation "annotation",
    }
}

/// Determines the class of each event.
pub(super) struct Classes<'a> {
    tables: &'a Tables,
    nesting: &'a Nesting,
    roles: Vec<ApiRole>,
}

impl<'a> Classes<'a> {
    pub(super) fn of(tables: &'a Tables, nesting: &'a Nesting) -> Self {
        Self { tables, nesting, roles: tables.roles() }
    }

    /// Returns the class of an event; `None` if it is not recorded on a thread.
    pub(super) fn class(&self, event: EventId) -> Option<Class> {
        let events = &self.tables.events;
        match events.kind(event) {
            EventKind::Operator => {
                let parent = self.nesting.parent(event).map(|parent| events.kind(parent));
                let is_nested = parent == Some(EventKind::Operator);
                Some(if is_nested { Class::NestedOperator } else { Class::OuterOperator })
            }
            EventKind::Runtime | EventKind::Driver => {
                let role = events.name(event).map(|name| self.roles[name.row()]);
                Some(match role {
                    Some(ApiRole::Launch) => Class::Launch,
                    Some(ApiRole::GraphLaunch) => Class::GraphLaunch,
                    _ => Class::Call,
                })
            }
            EventKind::Python => Some(Class::PythonFunction),
            EventKind::Annotation => Some(Class::Annotation),
            _ => None,
        }
    }
}
