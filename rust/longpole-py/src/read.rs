//! Reads a trace: converts the arguments from Python to options of the core.

use std::sync::Arc;

use longpole_core::read::{self, Arguments, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::source::Source;
use crate::trace::Trace;
use crate::vocabulary::{Addition, with_additions};

/// Reads a trace; see `longpole.read_trace`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // keywords, by value, from Python
#[pyo3(signature = (source, *, args=None, vocabulary=None, strict=false, max_bytes=None, max_events=None, threads=None, progress=None))]
pub(crate) fn read_trace(
    py: Python<'_>,
    source: Source,
    args: Option<ArgumentChoice>,
    vocabulary: Option<Vec<Addition>>,
    strict: bool,
    max_bytes: Option<u64>,
    max_events: Option<u64>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Trace> {
    let arguments = args.map_or(Ok(Arguments::Default), ArgumentChoice::into_arguments)?;
    let options = Options {
        arguments,
        vocabulary: Arc::new(with_additions(&vocabulary.unwrap_or_default())?),
        strict,
        max_bytes,
        max_events,
        scan_all: false,
        threads: threads.unwrap_or_else(all_cores),
        part_bytes: None,
    };
    let outcome = source.enter(py, progress.as_ref(), |source, progress| match source {
        Source::Path(path) => read::read_path(&path, &options, progress),
        Source::Bytes(bytes) => read::read(&bytes[..], &options, progress),
        Source::Reader(reader) => read::read(reader, &options, progress),
    });
    Ok(Trace::new(outcome?))
}

/// Returns the number of threads that can run at once.
fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Which arguments to keep: `"ids"`, `"default"`, or a list of names.
#[derive(FromPyObject)]
pub(crate) enum ArgumentChoice {
    Named(String),
    Listed(Vec<String>),
}

impl ArgumentChoice {
    fn into_arguments(self) -> PyResult<Arguments> {
        match self {
            Self::Listed(names) => Ok(Arguments::Named(names)),
            Self::Named(name) => match name.as_str() {
                "ids" => Ok(Arguments::Ids),
                "default" => Ok(Arguments::Default),
                _ => Err(PyValueError::new_err(format!(
                    "args is \"ids\", \"default\" or a list of names, not {name:?}"
                ))),
            },
        }
    }
}
