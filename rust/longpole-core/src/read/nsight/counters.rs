//! Reads hardware samples, and the memory usage of devices.

use std::collections::HashMap;

use super::export::Export;
use super::places::GlobalId;
use crate::error::Result;
use crate::ids::StringId;
use crate::read::sqlite::Row;

pub(super) const METRICS: &str = "GPU_METRICS";
pub(super) const MEMORY: &str = "CUDA_GPU_MEMORY_USAGE_EVENTS";
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
        self.each(MEMORY, &columns, |export, row| export.memory(row, &mut held))
    }

    /// Adds a sample of the device memory that a process has allocated since recording began.
    #[allow(clippy::cast_precision_loss)] // counters are floats
    fn memory(&mut self, row: &Row<'_>, held: &mut HashMap<[Option<i64>; 2], i64>) {
        let [start_ns, process, device, operation, bytes] = row.integers(0);
        let Some(bytes) = bytes else { return };
        let of_device = held.entry([process, device]).or_insert(0);
        let change = if operation == Some(ALLOCATION) { bytes } else { -bytes };
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
