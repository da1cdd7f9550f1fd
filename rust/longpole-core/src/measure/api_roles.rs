//! What each runtime API call does, by its name.

use crate::ids::EventId;
use crate::tables::Tables;
use crate::vocabulary::ApiRole;

/// The role of each call, in the order of the file.
pub fn api_roles(tables: &Tables) -> Vec<(EventId, ApiRole)> {
    let roles = tables.roles();
    let events = &tables.events;
    let calls = events.ids().filter(|&event| events.kind(event).is_call());
    calls
        .map(|call| (call, events.name(call).map_or(ApiRole::Other, |name| roles[name.row()])))
        .collect()
}
