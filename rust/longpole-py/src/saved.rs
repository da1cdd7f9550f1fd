//! Saves all tables of a trace to a file that is read without parsing.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use longpole_core::write;
use pyo3::prelude::*;

use crate::trace::Trace;

#[pymethods]
impl Trace {
    /// Writes the tables to a new file, for `read_trace`.
    #[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            write::save(self.tables(), &mut out)?;
            out.flush()
        })
        .map_err(PyErr::from)
    }
}
