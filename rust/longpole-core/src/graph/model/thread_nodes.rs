//! The nodes of each thread in order of time, for binary search.

use super::nodes::Nodes;
use super::timeline::Timeline;
use crate::ids::NodeId;

/// The starts and ends of the events of each thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadNodes {
    /// Sorted by lane, then by time.
    nodes: Vec<NodeId>,
    /// Index of the first node of each lane in `nodes`; the last row is the total number.
    first: Vec<usize>,
}

impl ThreadNodes {
    pub(in crate::graph) fn of(timeline: &Timeline, nodes: &Nodes) -> Self {
        let n_lanes = timeline.orders().map(|event| timeline.lane(event) + 1).max().unwrap_or(0);
        let is_of_thread = |event| !timeline.kind(event).is_device_work();
        let mut first = vec![0; n_lanes + 1];
        for event in timeline.orders().filter(|&event| is_of_thread(event)) {
            first[timeline.lane(event) + 1] += 2; // its start and its end
        }
        for lane in 0..n_lanes {
            first[lane + 1] += first[lane];
        }
        let mut next = first.clone();
        let mut found = vec![NodeId::from_row(0); first[n_lanes]];
        for node in nodes.ids() {
            let event = nodes.event(node);
            if is_of_thread(event) {
                let place = &mut next[timeline.lane(event)];
                found[*place] = node;
                *place += 1;
            }
        }
        Self { nodes: found, first }
    }

    /// Returns the last node of a thread at or before a time and the first after it; `None` unless
    /// both exist.
    pub(crate) fn around(
        &self,
        lane: usize,
        time_ns: i64,
        nodes: &Nodes,
    ) -> Option<(NodeId, NodeId)> {
        let of_lane = self.of_lane(lane);
        let behind = of_lane.partition_point(|&node| nodes.time_ns(node) <= time_ns);
        Some((of_lane[behind.checked_sub(1)?], *of_lane.get(behind)?))
    }

    /// Returns the nodes of a thread after one of them, up to another.
    pub(crate) fn between(&self, lane: usize, before: NodeId, until: NodeId) -> &[NodeId] {
        let of_lane = self.of_lane(lane);
        let [first, behind] =
            [before, until].map(|node| of_lane.partition_point(|&other| other <= node));
        of_lane.get(first..behind).unwrap_or_default()
    }

    /// Returns the nodes of a thread, in order; empty for device lanes.
    pub(crate) fn of_lane(&self, lane: usize) -> &[NodeId] {
        match self.first.get(lane..lane + 2) {
            Some(&[first, behind]) => &self.nodes[first..behind],
            _ => &[],
        }
    }

    /// Returns the first node of each thread that has nodes, in order of lane.
    pub(in crate::graph) fn firsts(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.first.len()).filter_map(|lane| self.of_lane(lane).first().copied())
    }
}
