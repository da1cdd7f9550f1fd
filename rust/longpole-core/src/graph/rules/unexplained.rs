//! Late starts without a reason in the trace: the gap is marked as unexplained instead of being
//! attributed to the launch.

use crate::graph::facts::Facts;
use crate::graph::model::{Edge, Evidence, Kind, Role, limits};
use crate::ids::Order;

/// Renames the binding edge of a start that is too late for it.
pub(super) fn rename(work: Order, late_ns: i64, binding: &mut Edge, facts: &Facts<'_>) {
    let may_rename = matches!(binding.role, Role::StreamOrder | Role::Launch | Role::GraphOrder);
    let is_node = facts.is_in_graph(work);
    let least_ns = if is_node && starts_after_call(work, facts) {
        limits::GRAPH_GAP_NS
    } else if facts.timeline.launcher(work).is_none() {
        limits::LATE_START_NS // its launch may have come as late
    } else {
        limits::UNEXPLAINED_NS
    };
    if late_ns > least_ns && may_rename {
        binding.kind = if is_node { Kind::GraphGap } else { Kind::Unexplained };
        binding.role = Role::NoReason;
        binding.evidence = Evidence::None;
    }
}

fn starts_after_call(work: Order, facts: &Facts<'_>) -> bool {
    let timeline = facts.timeline;
    timeline.launcher(work).is_some_and(|call| timeline.end_ns(call) < timeline.start_ns(work))
}
