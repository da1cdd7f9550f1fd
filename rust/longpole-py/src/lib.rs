//! Python bindings of the core: arguments, GIL, errors, Arrow. No logic.

#![forbid(unsafe_code)]

mod alignment;
mod arrow;
mod chakra;
mod collectives;
mod contexts;
mod counter_tracks;
mod critical_path;
mod cut;
mod enter;
mod errors;
mod execution;
mod extract;
mod facts;
mod figures;
mod guard;
mod joint;
mod linked;
mod measure;
mod merged;
mod opening;
mod overhead;
mod path;
mod ranks;
mod read;
mod repaired;
mod saved;
mod serving;
mod source;
mod statistics;
mod sweeps;
mod tables;
mod trace;
mod tunable;
mod verdict;
mod vocabulary;
mod written;

/// The extension module of the `longpole` package.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::alignment::align;
    #[pymodule_export]
    use crate::arrow::Table;
    #[pymodule_export]
    use crate::chakra::{ChakraTrace, read_chakra};
    #[pymodule_export]
    use crate::collectives::{collective_waits, collectives};
    #[pymodule_export]
    use crate::contexts::{backward_links, context_times};
    #[pymodule_export]
    use crate::counter_tracks::counter_tracks;
    #[pymodule_export]
    use crate::critical_path::CriticalPath;
    #[pymodule_export]
    use crate::cut::Cut;
    #[pymodule_export]
    use crate::errors::{InternalError, LongpoleError, PairError, TraceError, WindowError};
    #[pymodule_export]
    use crate::execution::{ExecutionTrace, read_execution_trace};
    #[pymodule_export]
    use crate::extract::{Extraction, Extractor, extract_formats};
    #[pymodule_export]
    use crate::facts::Facts;
    #[pymodule_export]
    use crate::guard::guard_main;
    #[pymodule_export]
    use crate::joint::{JointRanks, JointSolution, expand_hops};
    #[pymodule_export]
    use crate::linked::{LinkedTrace, link_execution_trace};
    #[pymodule_export]
    use crate::merged::merged_path;
    #[pymodule_export]
    use crate::opening::{confine, is_confined};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::opening::{open_file, open_folder};
    #[pymodule_export]
    use crate::ranks::{ReducedRank, rank_of_calls, reduce_rank, unpack_rank};
    #[pymodule_export]
    use crate::read::read_trace;
    #[pymodule_export]
    use crate::repaired::repair_trace;
    #[pymodule_export]
    use crate::serving::{host_parts, server_iterations};
    #[pymodule_export]
    use crate::statistics::{sequences, spreads};
    #[pymodule_export]
    use crate::sweeps::{
        activities, busy, class_times, device_ranges, enclosing, gaps, idle_causes, overlaps,
        queues, running_at,
    };
    #[pymodule_export]
    use crate::trace::Trace;
    #[pymodule_export]
    use crate::tunable::{outline_tunable, read_tunable};
    #[pymodule_export]
    use crate::vocabulary::{api_names, check_pattern, is_own_frame, kernel_family};

    #[pymodule_export]
    const FULL_QUEUE_OPERATIONS: usize = longpole_core::graph::limits::FULL_QUEUE_OPERATIONS;

    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps)] // the form that PyO3 asks for
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::enter::keep_panics_quiet();
        Ok(())
    }
}
