//! Detects the content of a CSV file of the ROCm profilers, by its columns.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::read::csv::columns;

/// The content of the rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) enum Rows {
    Kernels,
    Copies,
    /// Calls of an interface, or ranges.
    Calls,
    Agents,
    /// Allocations, which are not used.
    Others,
}

/// The description of a file that cannot be read, and a hint.
pub(in crate::read) type Refused = (&'static str, &'static str);

/// Returns the content of a file; `None` for files of other programs.
pub(in crate::read) fn rows_of(head: &[u8]) -> Option<Result<Rows, Refused>> {
    if !head.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'"') {
        return None;
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    rows_with(&columns(line))
}

/// Returns the content of a file with these columns.
pub(super) fn rows_with(columns: &[String]) -> Option<Result<Rows, Refused>> {
    let has = |names: &[&str]| names.iter().all(|name| columns.iter().any(|column| column == name));
    let is_timed = has(&["starttimestamp", "endtimestamp"]) || has(&["beginns", "endns"]);
    if has(&["countername"]) {
        return Some(Err(COUNTERS));
    }
    if has(&["name", "calls", "totaldurationns"]) {
        return Some(Err(STATISTICS));
    }
    if has(&["kernelname"]) && is_timed {
        return Some(Ok(Rows::Kernels));
    }
    if has(&["kernelname", "gpuid"]) {
        return Some(Err(NO_TIMES));
    }
    if has(&["nodeid", "agenttype"]) {
        return Some(Ok(Rows::Agents));
    }
    let calls = if has(&["threadid"]) { Ok(Rows::Calls) } else { Err(NO_THREADS) };
    let known = [
        (["kind", "direction"], Ok(Rows::Copies)),
        (["domain", "function"], calls),
        (["kind", "operation"], Ok(Rows::Others)),
    ];
    known.into_iter().find(|(names, _)| is_timed && has(names)).map(|(_, rows)| rows)
}

const COUNTERS: Refused = (
    "a CSV file of rocprofv3 with values of counters",
    "record with `rocprofv3 --kernel-trace --hip-trace` and give the `_kernel_trace.csv`",
);

const STATISTICS: Refused = (
    "a CSV file of rocprof with statistics, which have no times",
    "give the `_kernel_trace.csv` beside it (rocprofv3), or the `results.json` (rocprof)",
);

const NO_THREADS: Refused = (
    "a CSV file of rocprofv2 with calls, which names no threads",
    "give the `results_*.csv`, or record with `rocprofv3 --kernel-trace --hip-trace`",
);

const NO_TIMES: Refused = (
    "a CSV file of rocprof without the times of kernels",
    "record with `rocprof --timestamp on`, or with `rocprofv3 --kernel-trace --hip-trace`",
);

// Finds the CSV files that `rocprofv3` writes for one process: one for each kind of record, with a
// common name prefix.

/// The name suffixes of the files, in the order in which they are read.
const KINDS: [&str; 11] = [
    "agent_info",
    "kernel_trace",
    "memory_copy_trace",
    "hip_api_trace",
    "hsa_api_trace",
    "marker_api_trace",
    "rccl_api_trace",
    "rocdecode_api_trace",
    "rocjpeg_api_trace",
    "memory_allocation_trace",
    "scratch_memory_trace",
];

const PACKED: [&str; 4] = ["", ".gz", ".zst", ".xz"];

/// Returns all files of the process to which a file belongs, including the file itself, in the
/// order in which they are read.
pub(super) fn files(given: &Path) -> Vec<PathBuf> {
    let name = given.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((prefix, kind)) = parts(name) else { return vec![given.to_owned()] };
    let one = |other: &&str| {
        if *other == kind {
            return Some(given.to_owned());
        }
        let paths = PACKED.map(|packed| {
            given.with_file_name(OsString::from(format!("{prefix}{other}.csv{packed}")))
        });
        paths.into_iter().find(|path| path.is_file())
    };
    KINDS.iter().filter_map(one).collect()
}

/// Returns the prefix of a file name before the kind, and the kind.
fn parts(name: &str) -> Option<(&str, &str)> {
    let packed = PACKED.iter().rev().find(|packed| name.ends_with(**packed))?;
    let stem = name.strip_suffix(packed)?.strip_suffix(".csv")?;
    let kind = KINDS.iter().find(|kind| stem.ends_with(**kind))?;
    let prefix = stem.strip_suffix(kind)?;
    (prefix.is_empty() || prefix.ends_with('_')).then_some((prefix, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_process_is_what_stands_before_the_kind() {
        assert_eq!(parts("12_kernel_trace.csv"), Some(("12_", "kernel_trace")));
        assert_eq!(parts("a_b_hip_api_trace.csv.gz"), Some(("a_b_", "hip_api_trace")));
        assert_eq!(parts("kernel_trace.csv"), Some(("", "kernel_trace")));
        assert_eq!(parts("12_kernel_stats.csv"), None);
        assert_eq!(parts("results.csv"), None);
    }
}
