//! Chakra files: nodes, checks and replay.

use longpole_core::ids::InColumn;
use longpole_core::read::chakra;
use longpole_core::tables::chakra::{ChakraNode, ChakraTrace as ChakraNodes, NODE_TYPES};
use longpole_core::workload::check;
use pyo3::prelude::*;

use crate::arrow::{Columns, Table};
use crate::enter::detached;
use crate::linked::{ReplayParts, replay_parts};
use crate::source::Source;

/// A Chakra graph read from a file.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct ChakraTrace {
    trace: ChakraNodes,
}

/// Reads a Chakra graph; see `longpole.chakra.read_chakra`.
#[pyfunction]
#[pyo3(signature = (source, *, progress=None))]
#[allow(clippy::needless_pass_by_value)] // arguments come by value from Python
pub(crate) fn read_chakra(
    py: Python<'_>,
    source: Source,
    progress: Option<Py<PyAny>>,
) -> PyResult<ChakraTrace> {
    let outcome = source.enter(py, progress.as_ref(), |source, progress| match source {
        Source::Path(path) => chakra::read_path(&path, progress),
        Source::Bytes(bytes) => chakra::read(&bytes[..], progress),
        Source::Reader(reader) => chakra::read(reader, progress),
    });
    Ok(ChakraTrace { trace: outcome? })
}

#[pymethods]
impl ChakraTrace {
    /// Returns one row for each node, in file order.
    fn nodes(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.node_table())
    }

    /// Returns one row for each dependency, in file order.
    fn dependencies(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.dependency_table())
    }

    /// Returns all problems of the graph, one row for each kind.
    fn check(&self, py: Python<'_>) -> PyResult<Table> {
        detached(py, || self.fault_table())
    }

    /// Returns the attributes of the file, as text.
    #[getter]
    fn attributes(&self) -> Vec<(String, String)> {
        self.trace
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect()
    }

    /// Returns the attributes of the node in a row, as text.
    fn attributes_of(&self, row: usize) -> Vec<(String, String)> {
        let found = self.trace.nodes.get(row).map_or(&[][..], |node| &node.attributes);
        found.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
    }

    /// Replays the graph; see `LinkedTrace.replay`.
    fn replay(&self, py: Python<'_>, gaps: bool) -> PyResult<ReplayParts> {
        detached(py, || Ok(replay_parts(&check::replay_chakra(&self.trace, gaps))))
    }

    /// Returns the number of nodes.
    fn __len__(&self) -> usize {
        self.trace.nodes.len()
    }
}

impl ChakraTrace {
    fn node_table(&self) -> PyResult<Table> {
        let nodes = &self.trace.nodes;
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let attribute = |name: &'static str| {
            nodes.iter().map(|node| node.integer(name).in_column()).collect::<Vec<_>>()
        };
        let node_type = |node: &ChakraNode| {
            NODE_TYPES.get(usize::try_from(node.node_type).unwrap_or(usize::MAX)).copied()
        };
        let cpu = |node: &ChakraNode| node.flag("is_cpu_op").map(i64::from).in_column();
        Columns::default()
            .integers("node", nodes.iter().map(|node| number(node.id)).collect())
            .strings("name", nodes.iter().map(|node| Some(node.name.as_str())))
            .strings("type", nodes.iter().map(node_type))
            .integers("start_us", nodes.iter().map(|node| number(node.start_us)).collect())
            .integers("duration_us", nodes.iter().map(|node| number(node.duration_us)).collect())
            .integers("duration_ns", attribute("duration_ns"))
            .integers("is_cpu_op", nodes.iter().map(cpu).collect())
            .integers("tid", attribute("tid"))
            .integers("stream", attribute("stream"))
            .integers("comm_type", attribute("comm_type"))
            .integers("comm_size", attribute("comm_size"))
            .strings("pg_name", nodes.iter().map(|node| node.text("pg_name")))
            .into_table()
    }

    fn dependency_table(&self) -> PyResult<Table> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (mut node, mut depends_on, mut kind) = (Vec::new(), Vec::new(), Vec::new());
        for target in &self.trace.nodes {
            for (code, ids) in [(0, &target.control), (1, &target.data)] {
                node.extend(ids.iter().map(|_| number(target.id)));
                depends_on.extend(ids.iter().map(|&id| number(id)));
                kind.extend(ids.iter().map(|_| code));
            }
        }
        Columns::default()
            .integers("node", node)
            .integers("depends_on", depends_on)
            .choices("kind", kind.into_iter(), &["control", "data"])
            .into_table()
    }

    fn fault_table(&self) -> PyResult<Table> {
        let rows = check::check(&self.trace);
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Columns::default()
            .strings("code", rows.iter().map(|row| Some(row.fault.name())))
            .booleans("refused", rows.iter().map(|row| row.fault.is_refused()).collect())
            .integers("count", rows.iter().map(|row| number(row.count)).collect())
            .integers("first_node", rows.iter().map(|row| number(row.first_node)).collect())
            .strings("sentence", rows.iter().map(|row| Some(row.fault.sentence())))
            .strings("effect", rows.iter().map(|row| Some(row.fault.effect())))
            .into_table()
    }
}
