//! Detects the content of a CSV file of the ROCm profilers, by its columns.

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
