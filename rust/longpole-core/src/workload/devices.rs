//! Assigns GPU activities to the operators that launched them.

use std::collections::HashMap;

use super::model::{DeviceReason, LinkedDevice, Sources};
use crate::ids::{EventId, NO_ROW, row_in_column};
use crate::tables::NODE_IDS_BELOW;

/// For each event, returns the row of the innermost node of the execution trace that is or encloses
/// it; [`NO_ROW`] for none.
pub(super) fn owners(sources: Sources<'_>) -> Vec<u32> {
    const UNKNOWN: u32 = NO_ROW - 1;
    let mut owner = vec![UNKNOWN; sources.tables.events.len()];
    for (row, _) in sources.trace.nodes.iter().enumerate() {
        if let Some(event) = sources.link.event(row) {
            owner[event.row()] = row_in_column(row);
        }
    }
    let mut open = Vec::new();
    for event in sources.tables.events.ids() {
        let mut next = Some(event);
        while let Some(event) = next.filter(|event| owner[event.row()] == UNKNOWN) {
            open.push(event);
            next = sources.nesting.parent(event);
        }
        let found = next.map_or(NO_ROW, |event| owner[event.row()]);
        for event in open.drain(..) {
            owner[event.row()] = found;
        }
    }
    owner
}

/// Returns the GPU activities with their nodes, sorted by id, and those without a node.
pub(super) fn devices(
    sources: Sources<'_>,
    owners: &[u32],
) -> (Vec<LinkedDevice>, Vec<(EventId, DeviceReason)>) {
    let events = &sources.tables.events;
    let by_external_id: HashMap<_, _> =
        sources.launches.operators_by_external_id().iter().copied().collect();
    let mut found = Vec::new();
    let mut unlinked = Vec::new();
    for event in events.ids().filter(|&event| events.kind(event).is_device_work()) {
        let call = sources.launches.launcher(event);
        let launcher = call.or_else(|| by_external_id.get(&event).copied());
        let row = launcher.map(|launcher| owners[launcher.row()]).filter(|&row| row != NO_ROW);
        match (events.span(event), launcher, row) {
            (None, ..) => unlinked.push((event, DeviceReason::NoDuration)),
            (_, None, _) => unlinked.push((event, DeviceReason::NoCall)),
            (_, _, None) => unlinked.push((event, DeviceReason::OutsideOperators)),
            (Some(_), Some(_), Some(row)) => {
                found.push(LinkedDevice { id: 0, event, call, row: row as usize });
            }
        }
    }
    give_ids(&mut found, sources);
    (found, unlinked)
}

/// First id of GPU activities with a correlation id. The id consists of the correlation id and the
/// index among activities with the same one, and stays below 2^51.
const FIRST_DEVICE: i64 = NODE_IDS_BELOW;
const PLACES_PER_NUMBER: i64 = 1 << 16;
/// First id of other GPU activities, in order of time.
const FIRST_WITHOUT_NUMBER: i64 = 1 << 51;

/// Assigns an id to each GPU activity that depends only on its correlation id, if it has one, and
/// not on other activities or file order.
fn give_ids(devices: &mut [LinkedDevice], sources: Sources<'_>) {
    let events = &sources.tables.events;
    devices.sort_by_cached_key(|device| {
        let lane = crate::tables::track(events.lane(device.event), sources.tables);
        let lane = lane.map(|(is_name, number, name)| (is_name, number, name.to_owned()));
        let name = events.name(device.event).map(|name| sources.tables.strings.get(name));
        (events.span(device.event), lane, name, events.correlation(device.event))
    });
    let mut places: HashMap<i64, i64> = HashMap::new();
    for (place, device) in devices.iter_mut().enumerate() {
        let number = events.correlation(device.event);
        let number = number.filter(|number| (1..1 << 32).contains(number));
        let within = number.map(|number| places.entry(number).or_insert(0));
        device.id = match (number, within) {
            (Some(number), Some(within)) if *within < PLACES_PER_NUMBER => {
                *within += 1;
                FIRST_DEVICE + number * PLACES_PER_NUMBER + *within - 1
            }
            _ => FIRST_WITHOUT_NUMBER + i64::try_from(place).unwrap_or(0),
        };
    }
    devices.sort_by_key(|device| device.id);
}
