//! Kernels, copies and threads as events, for all ROCm formats.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::ids::{EventId, LaneId, StringId};
use crate::read::records::{Record, Records};
use crate::tables::{ArgValue, EventKind, Place};

/// The arguments of events, with Kineto's names; the constants are their indices.
pub(super) const ARGUMENTS: &[&str] =
    &["grid", "block", "shared memory", "bytes", "registers per thread"];
const GRID: usize = 0;
const BLOCK: usize = 1;
const SHARED_MEMORY: usize = 2;
const BYTES: usize = 3;
const REGISTERS: usize = 4;

const IDS_OF_RECORDING: i64 = 10_000_000_000;

/// A kernel dispatch or a memory copy.
#[derive(Default)]
pub(super) struct Activity {
    pub(super) start_ns: Option<i64>,
    pub(super) end_ns: Option<i64>,
    pub(super) correlation: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
}

/// The launch parameters of a kernel: number of work items or blocks, and block size, in each
/// dimension.
#[derive(Default)]
pub(super) struct Launch {
    pub(super) work_items: [Option<i64>; 3],
    pub(super) blocks: [Option<i64>; 3],
    pub(super) block: [Option<i64>; 3],
    pub(super) shared_memory: Option<i64>,
    /// Vector registers of a work item, with those for accumulation.
    pub(super) registers: Option<i64>,
}

/// What is known about a kernel before it is launched.
#[derive(Clone, Copy)]
pub(super) struct Symbol {
    pub(super) name: StringId,
    pub(super) registers: Option<i64>,
}

/// Returns the sum of the vector registers and those for accumulation.
pub(super) fn registers(vector: Option<i64>, accumulation: Option<i64>) -> Option<i64> {
    vector?.checked_add(accumulation.unwrap_or(0))
}

/// Returns a correlation id that is unique in the file, because each recording and process counts
/// separately.
pub(super) fn of_recording(number: i64, correlation: Option<i64>) -> Option<i64> {
    number.checked_mul(IDS_OF_RECORDING)?.checked_add(correlation?)
}

pub(super) fn kernel(
    activity: &Activity,
    launch: &Launch,
    name: Option<StringId>,
    records: &mut Records<'_>,
) -> Option<EventId> {
    let category = records.tables.strings.intern("kernel");
    let event = add_activity(activity, EventKind::Kernel, category, name, records)?;
    let blocks = |place: usize| {
        let of_items = || launch.work_items[place]?.checked_div(launch.block[place]?);
        launch.blocks[place].or_else(of_items)
    };
    let grid = [blocks(0), blocks(1), blocks(2)];
    for (argument, sizes) in [(GRID, grid), (BLOCK, launch.block)] {
        if let [Some(x), Some(y), Some(z)] = sizes {
            let text = records.tables.strings.intern(&format!("[{x}, {y}, {z}]"));
            records.argument(event, category, argument, Some(ArgValue::Text(text)));
        }
    }
    let shared = launch.shared_memory.map(ArgValue::Integer);
    records.argument(event, category, SHARED_MEMORY, shared);
    let registers = launch.registers.map(ArgValue::Integer);
    records.argument(event, category, REGISTERS, registers);
    Some(event)
}

pub(super) fn memory_copy(
    activity: &Activity,
    operation: &str,
    bytes: Option<i64>,
    records: &mut Records<'_>,
) {
    let category = records.tables.strings.intern("gpu_memcpy");
    let name = records.tables.strings.intern(&name_of_copy(operation));
    let event = add_activity(activity, EventKind::Copy, category, Some(name), records);
    if let Some(event) = event {
        records.argument(event, category, BYTES, bytes.map(ArgValue::Integer));
    }
}

/// Adds a memset.
pub(super) fn fill(activity: &Activity, records: &mut Records<'_>) {
    let [category, name] =
        ["gpu_memset", "Memset (Device)"].map(|text| records.tables.strings.intern(text));
    add_activity(activity, EventKind::Fill, category, Some(name), records);
}

/// Adds a barrier, which does not count as a GPU activity.
pub(super) fn barrier(activity: &Activity, name: Option<StringId>, records: &mut Records<'_>) {
    let category = records.tables.strings.intern("gpu_barrier");
    add_activity(activity, EventKind::DeviceTask, category, name, records);
}

fn add_activity(
    activity: &Activity,
    kind: EventKind,
    category: StringId,
    name: Option<StringId>,
    records: &mut Records<'_>,
) -> Option<EventId> {
    let lane = stream(activity, records);
    records.add(&Record {
        kind,
        category,
        name,
        lane,
        start_ns: activity.start_ns,
        end_ns: activity.end_ns,
        correlation: activity.correlation,
    })
}

fn stream(activity: &Activity, records: &mut Records<'_>) -> LaneId {
    let mut text = |number: Option<i64>| {
        records.tables.strings.intern(&number.map_or_else(String::new, |number| number.to_string()))
    };
    let (process, thread) = (text(activity.device), text(activity.stream));
    let (device, stream) = (activity.device, activity.stream);
    records.lane(Place { process, thread, device, stream })
}

pub(super) fn thread([process, thread]: [Option<i64>; 2], records: &mut Records<'_>) -> LaneId {
    let [process, thread] =
        [process, thread].map(|id| records.tables.strings.intern(&id.unwrap_or(0).to_string()));
    records.lane(Place { process, thread, device: None, stream: None })
}

/// Returns the kind of a call or range, by the name of its interface.
pub(super) fn kind_of_interface(name: &str) -> (EventKind, &'static str) {
    const INTERFACES: &[(&str, EventKind, &str)] = &[
        ("HIP_", EventKind::Runtime, "hip_runtime"),
        ("HSA_", EventKind::Driver, "hsa_driver"),
        ("MARKER_", EventKind::Annotation, "user_annotation"),
    ];
    let known = INTERFACES.iter().find(|(begin, ..)| name.starts_with(begin));
    known.map_or((EventKind::Other, "rocm_api"), |&(_, kind, category)| (kind, category))
}

/// Returns Kineto's name for a copy, by operation: `MEMORY_COPY_HOST_TO_DEVICE`.
pub(super) fn name_of_copy(operation: &str) -> String {
    let operation = operation.trim_start_matches("MEMORY_COPY_");
    let Some((from, to)) = operation.split_once("_TO_") else {
        return format!("Memcpy {operation}");
    };
    let letter = |side: &str| side.chars().next().unwrap_or('?');
    format!("Memcpy {}to{}", letter(from), letter(to))
}

/// The devices by agent number.
#[derive(Default)]
pub(super) struct Devices {
    of_agent: HashMap<i64, i64>,
    described: Vec<Value>,
}

impl Devices {
    /// Adds a device with its number among the devices.
    pub(super) fn add(&mut self, agent: i64, device: i64, name: Option<&str>) {
        if self.of_agent.insert(agent, device).is_none() {
            self.described.push(json!({"id": device, "name": name}));
        }
    }

    /// Returns the device of an agent.
    pub(super) fn of_agent(&self, agent: Option<i64>) -> Option<i64> {
        self.of_agent.get(&agent?).copied()
    }

    /// Returns the device properties for the header.
    pub(super) fn properties(self) -> Option<(String, String)> {
        let described = Value::Array(self.described);
        let is_any = described.as_array().is_some_and(|list| !list.is_empty());
        is_any.then(|| ("deviceProperties".to_owned(), described.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_name_that_kineto_gives_it() {
        assert_eq!(name_of_copy("MEMORY_COPY_HOST_TO_DEVICE"), "Memcpy HtoD");
        assert_eq!(name_of_copy("MEMORY_COPY_DEVICE_TO_DEVICE"), "Memcpy DtoD");
        assert_eq!(name_of_copy("MEMORY_COPY_NONE"), "Memcpy NONE");
    }
}
