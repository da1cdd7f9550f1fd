//! Several ranks as one Perfetto trace.

use std::collections::HashMap;

use longpole_core::write::{self, MergedRank, MergedSegment};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::enter::enter;
use crate::joint::JointRanks;
use crate::trace::Trace;

#[pymethods]
impl JointRanks {
    /// Returns a rank as packets of a Perfetto trace, in pieces, shifted to `earlier_ns` before its
    /// common times.
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // from Python
    #[pyo3(signature = (trace, place, *, number, title, lanes, calls, earlier_ns))]
    fn merged_rank<'py>(
        &self,
        py: Python<'py>,
        trace: &Trace,
        place: usize,
        number: u32,
        title: &str,
        lanes: Vec<String>,
        calls: HashMap<u32, u32>,
        earlier_ns: i64,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let clock = *self
            .fitted()
            .get(place)
            .ok_or_else(|| PyIndexError::new_err("no rank has that index"))?;
        let tables = trace.tables();
        let pieces = enter(py, None, None, |_| {
            let time_ns = |time_ns: i64| clock.common_ns(time_ns) - earlier_ns;
            let number = i64::from(number);
            let rank =
                MergedRank { number, title, lanes: &lanes, time_ns: &time_ns, calls: &calls };
            Ok(write::merged_rank(tables, &rank))
        })?;
        Ok(pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }
}

/// Returns the path across ranks as packets of a Perfetto trace: `(rank, start_ns, end_ns, kind,
/// title)`.
#[pyfunction]
pub(crate) fn merged_path(
    py: Python<'_>,
    segments: Vec<(u32, i64, i64, String, String)>,
) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = enter(py, None, None, |_| {
        let segment = |(rank, start_ns, end_ns, kind, title)| {
            let rank = i64::from(rank);
            MergedSegment { rank, start_ns, end_ns, kind, title }
        };
        let segments: Vec<_> = segments.into_iter().map(segment).collect();
        Ok(write::merged_path(&segments))
    })?;
    Ok(PyBytes::new(py, &bytes))
}
