//! The effect of each call on ordering, derived from its name.

use crate::graph::model::Timeline;
use crate::ids::Order;
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// The purpose of each name in a trace.
pub(in crate::graph) struct Purposes {
    of_name: Vec<ApiRole>,
}

impl Purposes {
    pub(super) fn of(tables: &Tables) -> Self {
        Self { of_name: tables.roles() }
    }

    pub(super) fn purpose(&self, event: Order, timeline: &Timeline) -> ApiRole {
        timeline.name(event).map_or(ApiRole::Other, |name| self.of_name[name.row()])
    }
}
