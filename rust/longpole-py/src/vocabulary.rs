//! The meaning of names, for Python.

use longpole_core::names::Names;
use longpole_core::patterns;
use longpole_core::vocabulary::{
    Vocabulary, api_names as names, is_own_frame as is_own, kernel_family as family,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A section of the vocabulary, a meaning in it, and a regular expression for names.
pub(crate) type Addition = (String, String, String);

/// Returns the built-in vocabulary with some additions.
pub(crate) fn with_additions(additions: &[Addition]) -> PyResult<Vocabulary> {
    let mut vocabulary = Vocabulary::default();
    for (section, meaning, pattern) in additions {
        vocabulary
            .add(section, meaning, pattern)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    Ok(vocabulary)
}

/// Returns every known name of a runtime API call, with its role.
#[pyfunction]
pub(crate) fn api_names() -> Vec<(String, &'static str)> {
    names().into_iter().map(|(name, role)| (name, role.name())).collect()
}

/// Whether the name of a Python frame belongs to the program, not to a library.
#[pyfunction]
pub(crate) fn is_own_frame(name: &str) -> bool {
    is_own(name)
}

/// Raises `ValueError` for a pattern that is not a regular expression or takes too much memory.
#[pyfunction]
pub(crate) fn check_pattern(pattern: &str) -> PyResult<()> {
    match patterns::compile(pattern, patterns::MOST_BYTES) {
        Ok(_) => Ok(()),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Returns the family of a kernel, derived from its name.
#[pyfunction]
pub(crate) fn kernel_family(name: &str) -> &'static str {
    family(name)
}
