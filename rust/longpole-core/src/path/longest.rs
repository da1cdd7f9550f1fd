use super::walk::Schedule;
use super::windows::Window;
use crate::graph::{Edge, Graph};
use crate::ids::{row_in_column, NodeId, NO_ROW};

/// Reaches every node by the chain that holds most work inside a window. Waiting and
/// order weigh nothing; between chains of the same work the binding order decides.
///
/// This is the longest path in the sense of project plans. The binding chain is what
/// really decided; this one is for comparison.
pub fn longest(graph: &Graph, window: &Window) -> Schedule {
    let mut work_ns = vec![0_i64; graph.nodes.len()];
    let mut reached_by = vec![NO_ROW; graph.nodes.len()];
    for node in graph.nodes.ids() {
        let mut most = i64::MIN;
        for number in graph.edges.range(node) {
            let edge = &graph.edges.as_slice()[number];
            let reached = work_ns[edge.source.row()].saturating_add(weight_ns(edge, graph, window));
            if reached > most {
                most = reached;
                reached_by[node.row()] = row_in_column(number);
            }
        }
        work_ns[node.row()] = most.max(0);
    }
    Schedule { times_ns: graph.nodes.times_ns().to_vec(), reached_by }
}

/// The part of an edge's work that lies in the window.
fn weight_ns(edge: &Edge, graph: &Graph, window: &Window) -> i64 {
    if !edge.kind.is_work() {
        return 0;
    }
    let clipped = |node: NodeId| graph.nodes.time_ns(node).clamp(window.start_ns, window.end_ns);
    clipped(edge.target) - clipped(edge.source)
}
