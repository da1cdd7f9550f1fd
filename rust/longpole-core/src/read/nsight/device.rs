//! Reads GPU activities: kernels, memcpys, memsets, and graphs recorded as a whole.

use std::collections::HashMap;

use super::export::{
    BLOCK, BYTES, CONTEXT, Export, GRAPH_NODE, GRID, GlobalId, REGISTERS, SHARED_MEMORY,
};
use crate::diagnostics::Code;
use crate::error::Result;
use crate::ids::{EventId, StringId};
use crate::read::recent::Recent;
use crate::read::records::{Record, Records};
use crate::read::sqlite::Row;
use crate::tables::{ArgValue, EventKind};

pub(super) const KERNELS: &str = "CUPTI_ACTIVITY_KIND_KERNEL";

pub(super) const COPIES: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";

pub(super) const FILLS: &str = "CUPTI_ACTIVITY_KIND_MEMSET";

pub(super) const GRAPHS: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

/// Columns that all tables have; those of each table follow.
const COMMON: [&str; 7] =
    ["start", "end", "deviceId", "streamId", "globalPid", "correlationId", "contextId"];

const KERNEL: &[&str] = &["demangledName|shortName", "graphNodeId"];

const LAUNCH: &[&str] = &[
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
];

const COPY: &[&str] = &["bytes", "graphNodeId", "copyKind", "srcKind", "dstKind"];

const FILL: &[&str] = &["bytes", "graphNodeId", "memKind"];

const GRAPH: &[&str] = &["graphId"];

/// The directions of copies by their CUPTI numbers, with Kineto's names.
const DIRECTIONS: &[&str] = &[
    "Unknown",
    "HtoD",
    "DtoH",
    "HtoA",
    "AtoH",
    "AtoA",
    "AtoD",
    "DtoA",
    "DtoD",
    "HtoH",
    "PtoP",
    "Unified HtoD",
    "Unified DtoH",
    "Unified DtoD",
];

/// The kinds of memory by their Nsight Systems numbers, with Kineto's names.
const MEMORY: &[&str] = &[
    "Pageable",
    "Pinned",
    "Device",
    "Array",
    "Managed",
    "Device Static",
    "Managed Static",
    "Unknown",
];

/// Strings for grid and block sizes, which repeat.
type Sizes = Recent<[i64; 3], StringId>;

impl Export<'_> {
    /// Reads the GPU activities.
    pub(super) fn device(&mut self) -> Result<()> {
        self.kernels()?;
        let category = self.reading.records.tables.strings.intern("gpu_memcpy");
        let mut names = Recent::default();
        self.activities(COPIES, COPY, |export, row| {
            let kinds = row.integers(FIRST + 2);
            let records = &mut export.reading.records;
            let name = names.get(kinds, || records.tables.strings.intern(&name_of_copy(kinds)));
            let event = export.activity(row, EventKind::Copy, category, Some(name));
            export.moved(event, category, row);
        })?;
        let category = self.reading.records.tables.strings.intern("gpu_memset");
        self.activities(FILLS, FILL, |export, row| {
            let name = format!("Memset ({})", listed(MEMORY, row.integer(FIRST + 2)));
            let name = export.reading.records.tables.strings.intern(&name);
            let event = export.activity(row, EventKind::Fill, category, Some(name));
            export.moved(event, category, row);
        })?;
        let category = self.reading.records.tables.strings.intern("cuda_graph");
        self.activities(GRAPHS, GRAPH, |export, row| {
            let number = row.integer(FIRST).map_or_else(String::new, |id| format!(" {id}"));
            let records = &mut export.reading.records;
            let name = records.tables.strings.intern(&format!("CUDA graph{number}"));
            records.note(Code::WholeGraph);
            export.activity(row, EventKind::Kernel, category, Some(name));
        })
    }

    fn kernels(&mut self) -> Result<()> {
        let category = self.reading.records.tables.strings.intern("kernel");
        let mut sizes = Sizes::default();
        let keeps_launch = self.reading.records.keeps(GRID);
        let columns = [KERNEL, if keeps_launch { LAUNCH } else { &[] }].concat();
        self.activities(KERNELS, &columns, |export, row| {
            let name = export.reading.text(row.integer(FIRST));
            let event = export.activity(row, EventKind::Kernel, category, name);
            let Some(event) = event else { return };
            let records = &mut export.reading.records;
            records.argument(event, category, GRAPH_NODE, number(row.integer(FIRST + 1)));
            if keeps_launch {
                launch(row, (event, category), &mut sizes, records);
            }
        })
    }

    fn activities(
        &mut self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&mut Self, &Row<'_>),
    ) -> Result<()> {
        self.each(table, &[&COMMON, columns].concat(), |export, row| take(export, row))
    }

    /// Adds the event of a row.
    fn activity(
        &mut self,
        row: &Row<'_>,
        kind: EventKind,
        category: StringId,
        name: Option<StringId>,
    ) -> Option<EventId> {
        let [start_ns, end_ns, device, stream, process, correlation, context] = row.integers(0);
        self.places.learn([process, context], device);
        let records = &mut self.reading.records;
        let lane = self.places.of_stream([device, stream, process], records);
        let event = records.add(&Record {
            kind,
            category,
            name,
            lane,
            start_ns,
            end_ns,
            correlation: self.places.correlation(correlation, process),
        })?;
        records.argument(event, category, CONTEXT, number(context));
        Some(event)
    }

    /// Keeps the number of bytes of a memcpy or memset.
    fn moved(&mut self, event: Option<EventId>, category: StringId, row: &Row<'_>) {
        let Some(event) = event else { return };
        let records = &mut self.reading.records;
        records.argument(event, category, BYTES, number(row.integer(FIRST)));
        records.argument(event, category, GRAPH_NODE, number(row.integer(FIRST + 1)));
    }
}

/// Index of the first column that is not common.
const FIRST: usize = COMMON.len();

/// Keeps the launch parameters of a kernel.
fn launch(
    row: &Row<'_>,
    (event, category): (EventId, StringId),
    sizes: &mut Sizes,
    records: &mut Records<'_>,
) {
    const PLACE: usize = FIRST + KERNEL.len();
    let [registers, fixed, dynamic] = row.integers(PLACE);
    records.argument(event, category, REGISTERS, number(registers));
    let shared = fixed.zip(dynamic).and_then(|(fixed, dynamic)| fixed.checked_add(dynamic));
    records.argument(event, category, SHARED_MEMORY, number(shared));
    for (argument, place) in [(GRID, PLACE + 3), (BLOCK, PLACE + 6)] {
        if let [Some(x), Some(y), Some(z)] = row.integers(place) {
            let text = || records.tables.strings.intern(&format!("[{x}, {y}, {z}]"));
            let text = sizes.get([x, y, z], text);
            records.argument(event, category, argument, Some(ArgValue::Text(text)));
        }
    }
}

/// Returns Kineto's name for a copy: `Memcpy HtoD (Pageable -> Device)`.
fn name_of_copy([direction, from, to]: [Option<i64>; 3]) -> String {
    let direction = listed(DIRECTIONS, direction);
    format!("Memcpy {direction} ({} -> {})", listed(MEMORY, from), listed(MEMORY, to))
}

fn listed(names: &[&'static str], number: Option<i64>) -> &'static str {
    let place = number.and_then(|number| usize::try_from(number).ok());
    place.and_then(|place| names.get(place).copied()).unwrap_or("Unknown")
}

pub(super) fn number(value: Option<i64>) -> Option<ArgValue> {
    value.map(ArgValue::Integer)
}

// Reads hardware samples, and the memory usage of devices.

pub(super) const METRICS: &str = "GPU_METRICS";

pub(super) const MEMORY_USAGE: &str = "CUDA_GPU_MEMORY_USAGE_EVENTS";

const METRIC_NAMES: &str = "TARGET_INFO_GPU_METRICS";

/// The operation code of an allocation; the other code is a deallocation.
const ALLOCATION: i64 = 0;

/// Names of metrics, by type id and metric id.
type Names = HashMap<[Option<i64>; 2], (StringId, StringId)>;

impl Export<'_> {
    /// Reads samples.
    pub(super) fn counters(&mut self) -> Result<()> {
        let mut names = Names::new();
        let columns = ["typeId", "metricId", "typeName", "metricName"];
        self.each(METRIC_NAMES, &columns, |export, row| {
            let records = &mut export.reading.records;
            let mut text = |column| row.text(column).map(|text| records.text(text));
            if let (Some(device), Some(name)) = (text(2), text(3)) {
                names.insert(row.integers(0), (device, name));
            }
        })?;
        let columns = ["typeId", "metricId", "timestamp", "value"];
        self.each(METRICS, &columns, |export, row| {
            let records = &mut export.reading.records;
            let unnamed = || {
                let [_, metric] = row.integers::<2>(0);
                let name = format!("metric {}", metric.unwrap_or(0));
                (records.tables.strings.intern("GPU metrics"), records.tables.strings.intern(&name))
            };
            let (device, name) = names.get(&row.integers(0)).copied().unwrap_or_else(unnamed);
            let series = records.tables.strings.intern("value");
            records.sample(name, series, device, row.integer(2), row.number(3));
        })?;
        let mut held = HashMap::new();
        let columns = ["start", "globalPid", "deviceId", "memoryOperationType", "bytes"];
        self.each(MEMORY_USAGE, &columns, |export, row| export.memory(row, &mut held))
    }

    /// Adds a sample of the device memory that a process has allocated since recording began.
    #[allow(clippy::cast_precision_loss)] // counters are floats
    fn memory(&mut self, row: &Row<'_>, held: &mut HashMap<[Option<i64>; 2], i64>) {
        let [start_ns, process, device, operation, bytes] = row.integers(0);
        let Some(bytes) = bytes else { return };
        let of_device = held.entry([process, device]).or_insert(0);
        let change = if operation == Some(ALLOCATION) { bytes } else { bytes.saturating_neg() };
        *of_device = of_device.saturating_add(change);
        let value = *of_device as f64;
        let records = &mut self.reading.records;
        let name = format!("GPU {} memory allocated by CUDA", device.unwrap_or(0));
        let process = GlobalId(process.unwrap_or(0)).process().to_string();
        let [name, series, process] =
            [name.as_str(), "bytes", &process].map(|text| records.tables.strings.intern(text));
        records.sample(name, series, process, start_ns, Some(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_name_that_kineto_gives_it() {
        let name = name_of_copy([Some(1), Some(0), Some(2)]);
        assert_eq!(name, "Memcpy HtoD (Pageable -> Device)");
        assert_eq!(name_of_copy([Some(99), None, Some(-1)]), "Memcpy Unknown (Unknown -> Unknown)");
    }
}
