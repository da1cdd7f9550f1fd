//! The role of each runtime API call, derived from its name.

use crate::ids::EventId;
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// Returns the role of each call, in file order.
pub fn api_roles(tables: &Tables) -> Vec<(EventId, ApiRole)> {
    let roles = tables.roles();
    let events = &tables.events;
    let calls = events.ids().filter(|&event| events.kind(event).is_call());
    calls
        .map(|call| (call, events.name(call).map_or(ApiRole::Other, |name| roles[name.row()])))
        .collect()
}
