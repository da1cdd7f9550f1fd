//! Python bindings of the core: arguments, GIL, errors, Arrow. No logic.
#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value)] // arguments come by value from Python

mod arrow;
mod critical_path;
mod enter;
mod execution;
mod extract;
mod facts;
mod figures;
mod guard;
mod joint;
mod linked;
mod measure;
mod overhead;
mod path;
mod ranks;
mod source;
mod statistics;
mod tables;
mod trace;
mod verdict;
mod vocabulary;
mod written;

/// The extension module of the `longpole` package.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arrow::Table;
    #[pymodule_export]
    use crate::critical_path::CriticalPath;
    #[pymodule_export]
    use crate::enter::{InternalError, LongpoleError, PairError, TraceError, WindowError};
    #[pymodule_export]
    use crate::execution::{ChakraTrace, read_chakra};
    #[pymodule_export]
    use crate::execution::{ExecutionTrace, read_execution_trace};
    #[pymodule_export]
    use crate::extract::{Extraction, Extractor, extract_formats};
    #[pymodule_export]
    use crate::extract::{outline_tunable, read_tunable};
    #[pymodule_export]
    use crate::facts::{Facts, extended_bounds};
    #[pymodule_export]
    use crate::guard::guard_main;
    #[pymodule_export]
    use crate::joint::{JointRanks, JointSolution, expand_hops};
    #[pymodule_export]
    use crate::linked::{LinkedTrace, link_execution_trace};
    #[pymodule_export]
    use crate::measure::context_times;
    #[pymodule_export]
    use crate::ranks::{ReducedRank, rank_of_calls, reduce_rank, unpack_rank};
    #[pymodule_export]
    use crate::source::{confine, is_confined};
    #[cfg(unix)]
    #[pymodule_export]
    use crate::source::{open_file, open_folder};
    #[pymodule_export]
    use crate::statistics::align;
    #[pymodule_export]
    use crate::statistics::{sequences, spreads};
    #[pymodule_export]
    use crate::trace::Trace;
    #[pymodule_export]
    use crate::trace::read_trace;
    #[pymodule_export]
    use crate::vocabulary::{api_names, check_pattern, is_own_frame, kernel_family};
    #[pymodule_export]
    use crate::written::Cut;
    #[pymodule_export]
    use crate::written::counter_tracks;
    #[pymodule_export]
    use crate::written::merged_path;
    #[pymodule_export]
    use crate::written::repair_trace;

    #[pymodule_export]
    const FULL_QUEUE_OPERATIONS: usize = longpole_core::graph::limits::FULL_QUEUE_OPERATIONS;

    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps)] // the form that PyO3 asks for
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::enter::keep_panics_quiet();
        Ok(())
    }
}
