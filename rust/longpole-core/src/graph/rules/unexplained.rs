//! A device that idles with its next work submitted, and no reason in the trace: the gap
//! is named openly, and no launch is blamed.

use crate::graph::facts::Facts;
use crate::graph::model::{limits, Edge, Evidence, Kind, Role};
use crate::ids::Order;

/// Renames the binding edge of a start that is too late for it.
pub(super) fn rename(work: Order, late_ns: i64, binding: &mut Edge, facts: &Facts<'_>) {
    let may_rename = matches!(binding.role, Role::StreamOrder | Role::Launch);
    if late_ns > limits::UNEXPLAINED_NS && may_rename {
        binding.kind = if facts.is_in_graph(work) { Kind::GraphGap } else { Kind::Unexplained };
        binding.role = Role::NoReason;
        binding.evidence = Evidence::None;
    }
}
