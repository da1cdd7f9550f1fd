//! Finds the CSV files that `rocprofv3` writes for one process: one for each kind of record, with a
//! common name prefix.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
