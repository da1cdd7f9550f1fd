//! Reads the calls of host threads: CUDA, the operating system, and the profiler itself.

use super::export::Export;
use crate::error::Result;
use crate::ids::StringId;
use crate::read::records::Record;
use crate::read::sqlite::Row;
use crate::tables::EventKind;

pub(super) const RUNTIME: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
pub(super) const DRIVER: &str = "CUPTI_ACTIVITY_KIND_DRIVER";
pub(super) const SYSTEM: &str = "OSRT_API";
pub(super) const OVERHEAD: &str = "CUPTI_ACTIVITY_KIND_OVERHEAD";
pub(super) const PROFILER_OVERHEAD: &str = "PROFILER_OVERHEAD";

const CALL: &[&str] = &["start", "end", "globalTid", "correlationId", "nameId", "eventClass"];

/// The event class of driver calls.
const DRIVER_CLASS: i64 = 1;

impl Export<'_> {
    /// Reads the calls of threads.
    pub(super) fn calls(&mut self) -> Result<()> {
        let [runtime, driver, system, overhead] =
            ["cuda_runtime", "cuda_driver", "osrt", "overhead"]
                .map(|category| self.reading.records.tables.strings.intern(category));
        self.each(RUNTIME, CALL, |export, row| match row.integer(5) {
            Some(DRIVER_CLASS) => export.call(row, EventKind::Driver, driver),
            _ => export.call(row, EventKind::Runtime, runtime),
        })?;
        self.each(DRIVER, CALL, |export, row| export.call(row, EventKind::Driver, driver))?;
        // System calls have separate correlation ids.
        let uncorrelated = [&CALL[..3], &["", "nameId"]].concat();
        self.each(SYSTEM, &uncorrelated, |it, row| it.call(row, EventKind::Other, system))?;
        for table in [OVERHEAD, PROFILER_OVERHEAD] {
            self.each(table, &uncorrelated, |export, row| {
                export.call(row, EventKind::Overhead, overhead);
            })?;
        }
        Ok(())
    }

    fn call(&mut self, row: &Row<'_>, kind: EventKind, category: StringId) {
        let [start_ns, end_ns, thread, correlation, name] = row.integers(0);
        let name = self.name_of_call(name);
        let records = &mut self.reading.records;
        let lane = self.places.of_thread(thread, records);
        records.add(&Record {
            kind,
            category,
            name,
            lane,
            start_ns,
            end_ns,
            correlation: self.places.correlation(correlation, thread),
        });
    }

    /// Returns the name of a call without the version of the interface, as in
    /// `cudaLaunchKernel_v7000`.
    fn name_of_call(&mut self, number: Option<i64>) -> Option<StringId> {
        let number = number?;
        if let Some(name) = self.call_names.get(number) {
            return name;
        }
        let name = self.reading.text(Some(number));
        let strings = &mut self.reading.records.tables.strings;
        let name = name.map(|name| {
            let plain = without_version(strings.get(name)).to_owned();
            strings.intern(&plain)
        });
        self.call_names.insert(number, name);
        name
    }
}

/// Removes the version of a runtime call, which has four digits or more; `_v2` is part of driver
/// names.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((plain, version))
            if version.len() >= 4 && version.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            plain
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_the_runtime_has_its_name_without_a_version() {
        for (name, plain) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
            ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync_ptsz"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("cuLaunchKernel", "cuLaunchKernel"),
        ] {
            assert_eq!(without_version(name), plain);
        }
    }
}
