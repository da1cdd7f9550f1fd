//! Reads PyTorch execution traces into nodes.
//!
//! `ExecutionTraceObserver` writes one JSON document: a header and a list of nodes, children mostly
//! before their parents, the process last. Schemas 1.0.1 to 1.1.1 are supported, as plain text,
//! gzip, or the first member of a tar archive, and the ET+ files written by Chakra's linker and by
//! longpole. The list is read in one pass, through the same window as traces; at the end, the nodes
//! are sorted by id.
//!
//! PyTorch does not escape the names of nodes, so a quotation mark in a name makes the file invalid
//! JSON. Such a node is read nevertheless, and counted. Files of a killed process end in a comma;
//! their complete nodes are kept.

mod document;
mod node;

pub use document::Options;

use std::io::Read;
use std::path::Path;

use super::source;
use super::window::Window;
use crate::error::Result;
use crate::progress::Progress;
use crate::tables::ExecutionTrace;

/// Reads the execution trace in a file.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or read, contains no execution trace, or (with
/// `strict`) is not valid, and if `progress` asks to stop.
pub fn read_path(path: &Path, options: Options, progress: Progress<'_>) -> Result<ExecutionTrace> {
    read(source::open_named(path)?, options, progress)
}

/// Reads the execution trace from a reader.
///
/// # Errors
///
/// As for [`read_path`].
pub fn read(source: impl Read, options: Options, progress: Progress<'_>) -> Result<ExecutionTrace> {
    let window = Window::new(Box::new(source), options.max_bytes)?;
    document::read(window, options, progress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Code;
    use crate::progress::silent;
    use crate::tables::{NodeLayout, Root};

    const FLAT: &str = r#"{"schema": "1.0.1", "pid": 7, "nodes": [
      {"name": "aten::mm", "id": 9, "rf_id": 3, "parent": 2, "fw_parent": 0, "seq_id": -1,
       "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": "aten::mm()",
       "inputs": [[8,9,0,4,4,"cpu"]], "input_shapes": [[2,2]], "input_types": ["Tensor(float)"],
       "outputs": [], "output_shapes": [], "output_types": []},
      {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "parent": 1}],
      "finish_ts": 5}"#;

    const NESTED: &str = r#"{"schema": "1.1.1-chakra.0.0.4", "nodes": [
      {"id": 4, "name": "a", "ctrl_deps": 2, "inputs": {"values": [1], "shapes": [[]],
       "types": ["Int"], "strides": [[]]}, "outputs": {"values": [], "shapes": [], "types": []},
       "attrs": [{"name": "rf_id", "type": "uint64", "value": 6},
                 {"name": "pg_name", "type": "string", "value": "0"}], "sync_dep": [3]},
      {"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1}]}"#;

    fn read_bytes(bytes: &[u8], options: Options) -> Result<ExecutionTrace> {
        read(bytes, options, &silent)
    }

    fn read_text(text: &str) -> ExecutionTrace {
        read_bytes(text.as_bytes(), Options::default()).unwrap()
    }

    #[test]
    fn the_flat_layout_is_read_and_put_in_order_of_ids() {
        let trace = read_text(FLAT);
        let ids: Vec<_> = trace.nodes.iter().map(|node| (node.id, node.parent)).collect();
        assert_eq!(ids, [(1, 1), (9, 2)]);
        assert_eq!((trace.root(0), trace.header.layout), (Some(Root::Process), NodeLayout::Flat));
        let text = |id| trace.strings.get(id);
        assert_eq!(text(trace.nodes[1].inputs.values), r#"[[8,9,0,4,4,"cpu"]]"#);
        assert_eq!(text(trace.nodes[1].inputs.shapes), "[[2,2]]");
        assert_eq!(trace.header.pid, Some(7));
        assert_eq!(trace.diagnostics.count(Code::MissingParent), 1);
    }

    #[test]
    fn the_layout_with_attributes_keeps_what_has_no_column() {
        let trace = read_text(NESTED);
        assert_eq!((trace.nodes[1].rf_id, trace.header.layout), (6, NodeLayout::Attributes));
        assert_eq!(trace.extra(1, "pg_name").unwrap(), "0");
        assert_eq!(trace.extra(1, "sync_dep").unwrap()[0], 3);
        assert_eq!(trace.extra(1, "missing"), None);
    }

    #[test]
    fn a_quotation_mark_in_a_name_does_not_cost_the_node() {
        let broken = FLAT.replace("aten::mm\"", "load \"x\", \"y\": z\"");
        let trace = read_text(&broken);
        assert_eq!(trace.name(1), r#"load "x", "y": z"#);
        assert_eq!(trace.diagnostics.count(Code::UnescapedName), 1);
        assert_eq!(trace.nodes[1].rf_id, 3);
    }

    #[test]
    fn every_cut_keeps_the_nodes_that_are_whole() {
        for text in [FLAT, NESTED] {
            let first_end = text.find("},\n      {").unwrap() + 1;
            for end in text.find('[').unwrap() + 1..text.len() {
                let Ok(trace) = read_bytes(&text.as_bytes()[..end], Options::default()) else {
                    panic!("no trace at {end}")
                };
                let expected = usize::from(end >= first_end);
                assert!(trace.nodes.len() >= expected, "{end}");
                assert!(trace.diagnostics.is_recovered(), "{end}");
            }
        }
    }

    #[test]
    fn damage_inside_a_node_costs_that_node_only() {
        let broken = NESTED.replace("\"values\": [1]", "\"values\": [1}");
        let trace = read_text(&broken);
        assert_eq!(trace.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [2]);
        assert_eq!(trace.diagnostics.count(Code::MalformedNode), 1);
        let strict = Options { strict: true, ..Options::default() };
        assert_eq!(read_bytes(broken.as_bytes(), strict).unwrap_err().code(), "malformed_node");
    }

    #[test]
    fn a_trace_without_nodes_is_refused() {
        for (text, code) in [
            ("", "empty"),
            (r#"{"traceEvents": []}"#, "other_kind_of_file"),
            (r#"{"schema": "1.0.1"}"#, "no_nodes"),
            (r#"{"schema": "1.0.1", "#, "truncated"),
        ] {
            let error = read_bytes(text.as_bytes(), Options::default()).unwrap_err();
            assert_eq!(error.code(), code, "{text}");
        }
    }
}
