//! The Python face of the core: arguments, GIL, errors, Arrow. No logic.

#![forbid(unsafe_code)]

mod arrow;
mod critical_path;
mod enter;
mod errors;
mod execution;
mod extract;
mod guard;
mod ranks;
mod source;
mod trace;
mod tunable;
mod verdict;
mod vocabulary;

/// What `longpole` is made of below Python.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arrow::Table;
    #[pymodule_export]
    use crate::critical_path::CriticalPath;
    #[pymodule_export]
    use crate::errors::{InternalError, LongpoleError, PairError, TraceError, WindowError};
    #[pymodule_export]
    use crate::execution::{
        link_execution_trace, read_chakra, read_execution_trace, ChakraTrace, ExecutionTrace,
        LinkedTrace,
    };
    #[pymodule_export]
    use crate::extract::{extract_formats, Extraction, Extractor};
    #[pymodule_export]
    use crate::guard::guard_main;
    #[pymodule_export]
    use crate::ranks::{
        collectives, expand_hops, reduce_rank, JointRanks, JointSolution, ReducedRank,
    };
    #[pymodule_export]
    use crate::trace::{read_trace, Trace};
    #[pymodule_export]
    use crate::tunable::read_tunable;
    #[pymodule_export]
    use crate::vocabulary::api_names;

    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps)] // the form that PyO3 asks for
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::enter::keep_panics_quiet();
        Ok(())
    }
}
