//! The formats, one file for each, and the list of them.
//!
//! A format has anchors, which are strings that must be on every line that starts a record, and a
//! reader that sees such lines. To add a format, add a file and an entry of [`FORMATS`].

mod aitemplate;
mod autotuning;
mod blas;
mod cutlass;
mod google_benchmark;
mod nccl;
mod ncu;
mod nvbench;
mod rocprof;
mod serving;

use super::format::Format;

/// All formats, in the order in which they are listed to users.
pub const FORMATS: &[Format] = &[
    aitemplate::FORMAT,
    cutlass::TEXT_FORMAT,
    cutlass::CSV_FORMAT,
    blas::HIPBLASLT,
    blas::ROCBLAS,
    blas::CK_PROFILER,
    blas::CUBLASLT,
    ncu::FORMAT,
    nvbench::FORMAT,
    rocprof::FORMAT,
    nccl::FORMAT,
    autotuning::INDUCTOR,
    autotuning::TRITON,
    serving::FORMAT,
    serving::LATENCY_FORMAT,
    google_benchmark::FORMAT,
    google_benchmark::CSV_FORMAT,
];

/// Returns the format of this name.
pub fn format(name: &str) -> Option<Format> {
    FORMATS.iter().find(|format| format.name == name).copied()
}

#[cfg(test)]
pub(super) mod testing {
    use super::super::Extraction;
    use super::super::stream::{End, Extractor};
    use super::Format;
    use crate::names::Names;

    /// Extracts the records of one format from `text`.
    pub(in super::super) fn extract(format: Format, text: &str, end: End) -> Extraction {
        let mut extractor = Extractor::new(&[format], Vec::new());
        extractor.feed(text.as_bytes());
        extractor.finish(end)
    }

    /// Returns operation, time in ns (NaN if missing) and status of every record.
    pub(in super::super) fn records(found: &Extraction) -> Vec<(String, f64, &'static str)> {
        (0..found.records.len())
            .map(|row| {
                let records = &found.records;
                (
                    text(found, records.operation[row]),
                    records.time_ns[row],
                    records.status[row].name(),
                )
            })
            .collect()
    }

    /// Returns reason and excerpt of every rejected row.
    pub(in super::super) fn rejections(found: &Extraction) -> Vec<(&'static str, String)> {
        let rejections = &found.rejections;
        let reasons = rejections.reason.iter().map(|reason| reason.name());
        reasons.zip(rejections.excerpt.iter().map(|&excerpt| text(found, excerpt))).collect()
    }

    /// Returns the value of a record's first field of this name.
    pub(in super::super) fn field(found: &Extraction, record: u32, name: &str) -> Option<String> {
        let fields = &found.fields;
        (0..fields.record.len())
            .find(|&row| fields.record[row] == record && text(found, fields.name[row]) == name)
            .map(|row| text(found, fields.value[row]))
    }

    fn text(found: &Extraction, code: u32) -> String {
        crate::ids::StringId::from_column(code)
            .map_or_else(String::new, |id| found.strings.get(id).into())
    }
}
