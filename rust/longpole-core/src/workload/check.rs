//! Checks a Chakra graph, and replays it as simulators would.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::replay::{Replay, ReplayNode, Resource, replay};
use crate::tables::chakra::{self, ChakraNode, ChakraTrace};

/// Declares all kinds of findings: name, whether simulators reject the graph for it, description
/// and consequence.
macro_rules! findings {
    ($($finding:ident $name:literal $refused:literal $sentence:literal $effect:literal;)*) => {
        /// A kind of finding.
        #[allow(clippy::doc_markdown)] // the sentences are for the terminal
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $(#[doc = $sentence] $finding,)* }

        impl Fault {
            /// Returns the machine-readable name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$finding => $name,)* }
            }

            /// Whether simulators reject the graph for it, or never finish.
            pub fn is_refused(self) -> bool {
                match self { $(Self::$finding => $refused,)* }
            }

            /// Returns the description.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$finding => $sentence,)* }
            }

            /// Returns the consequence.
            pub fn effect(self) -> &'static str {
                match self { $(Self::$finding => $effect,)* }
            }
        }
    };
}

findings! {
    Truncated "truncated" true "the file ends inside a message" "the nodes after it are missing";
    RepeatedId "repeated_id" true "several nodes have one id" "dependencies on this id are ambiguous";
    DanglingData "dangling_data_dependency" true "a data dependency on a node that is missing" "the node never starts";
    DanglingControl "dangling_control_dependency" true "a control dependency on a node that is missing" "ASTRA-sim rejects the graph";
    Cycle "cycle" true "nodes that depend on each other, or on nodes that do" "they never start";
    NotOver "source_not_over" false "a data dependency on a node that ended after the dependent one started" "the measured run contradicts it";
    UnknownType "unknown_node_type" true "a node of an invalid or unknown type" "simulators do not run it";
    NoCpuFlag "missing_is_cpu_op" true "a node that runs without the attribute is_cpu_op" "ASTRA-sim does not know where to run it";
    CommunicationOnCpu "communication_on_cpu" true "a node of a collective with is_cpu_op" "ASTRA-sim does not run it on a network";
    NoCommunicationType "missing_comm_type" true "a collective without comm_type" "its kind is undefined";
    NotSimulated "unsimulated_collective" true "a collective that ASTRA-sim does not simulate" "ASTRA-sim stops at it";
    NoSize "missing_comm_size" true "a communication without comm_size" "its size is undefined";
    NoPeer "missing_peer" true "a send without comm_dst, or a receive without comm_src" "its peer is undefined";
    BadGroup "group_not_a_number" true "a pg_name that is not a number" "ASTRA-sim stops at it";
    UnknownGroup "group_not_announced" true "a pg_name that no METADATA node announces" "its ranks are unknown";
    ZeroDurations "zero_durations" false "measured nodes with a duration of 0" "their durations were rounded to 0";
}

/// One kind of finding in one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub fault: Fault,
    /// Number of occurrences.
    pub count: u64,
    /// The first node with this finding, in file order.
    pub first_node: u64,
}

/// Returns all problems of a graph, one row for each kind.
pub fn check(trace: &ChakraTrace) -> Vec<Finding> {
    let mut found = Findings::default();
    if trace.trailing_bytes > 0 {
        found.add(Fault::Truncated, trace.nodes.last().map_or(0, |node| node.id));
    }
    let mut known: HashMap<u64, usize> = HashMap::new();
    for (row, node) in trace.nodes.iter().enumerate() {
        if known.insert(node.id, row).is_some() {
            found.add(Fault::RepeatedId, node.id);
        }
    }
    let groups = announced_groups(trace);
    for node in &trace.nodes {
        check_dependencies(node, trace, &known, &mut found);
        check_node(node, &mut found);
        if node.communicates() {
            check_communication(node, &groups, &mut found);
        }
    }
    let replay = replay_chakra(trace, true);
    if replay.stuck > 0 {
        let first = trace.nodes.iter().zip(&replay.has_run).find(|&(_, &has_run)| !has_run);
        found.add_many(Fault::Cycle, replay.stuck as u64, first.map_or(0, |(node, _)| node.id));
    }
    found.rows()
}

#[derive(Default)]
struct Findings {
    rows: BTreeMap<Fault, (u64, u64)>,
}

impl Findings {
    fn add(&mut self, fault: Fault, node: u64) {
        self.add_many(fault, 1, node);
    }

    fn add_many(&mut self, fault: Fault, count: u64, node: u64) {
        self.rows.entry(fault).or_insert((0, node)).0 += count;
    }

    fn rows(self) -> Vec<Finding> {
        let rows = self.rows.into_iter();
        rows.map(|(fault, (count, first_node))| Finding { fault, count, first_node }).collect()
    }
}

fn check_dependencies(
    node: &ChakraNode,
    trace: &ChakraTrace,
    known: &HashMap<u64, usize>,
    found: &mut Findings,
) {
    for id in &node.control {
        if !known.contains_key(id) {
            found.add(Fault::DanglingControl, node.id);
        }
    }
    for id in &node.data {
        match known.get(id) {
            None => found.add(Fault::DanglingData, node.id),
            Some(&row) if is_late(&trace.nodes[row], node) => found.add(Fault::NotOver, node.id),
            Some(_) => {}
        }
    }
}

/// Whether the times of two nodes contradict a dependency between them. An operator that launched a
/// GPU activity, or encloses another operator of its thread, only needs to have begun.
fn is_late(source: &ChakraNode, target: &ChakraNode) -> bool {
    let starts = (source.integer("start_ns"), target.integer("start_ns"));
    let (Some(source_ns), Some(target_ns)) = starts else { return false };
    let end_ns = source_ns.saturating_add(source.integer("inclusive_ns").unwrap_or(0));
    let same_thread = source.integer("os_thread") == target.integer("os_thread");
    let has_begun =
        on_thread(source) && source_ns <= target_ns && (same_thread || !on_thread(target));
    end_ns > target_ns && !has_begun
}

/// Whether a node runs on a thread. CPU communication does, regardless of the flag.
fn on_thread(node: &ChakraNode) -> bool {
    let is_device = node.integer("device").is_some() || node.integer("stream").unwrap_or(0) != 0;
    node.flag("is_cpu_op").unwrap_or(true) || !is_device
}

fn check_node(node: &ChakraNode, found: &mut Findings) {
    if node.node_type == 0 || node.node_type >= chakra::NODE_TYPES.len() as u64 {
        found.add(Fault::UnknownType, node.id);
    }
    let runs = node.node_type != chakra::METADATA;
    if runs && node.flag("is_cpu_op").is_none() {
        found.add(Fault::NoCpuFlag, node.id);
    }
    if runs && node.duration_us == 0 && node.integer("duration_ns").is_some_and(|ns| ns >= 500) {
        found.add(Fault::ZeroDurations, node.id);
    }
}

/// Collectives that ASTRA-sim does not support: reduce, gather, scatter, barrier.
const NOT_SIMULATED: [i64; 4] = [1, 3, 4, 9];

fn check_communication(node: &ChakraNode, groups: &HashSet<String>, found: &mut Findings) {
    if node.flag("is_cpu_op") == Some(true) {
        found.add(Fault::CommunicationOnCpu, node.id);
    }
    if node.integer("comm_size").is_none() {
        found.add(Fault::NoSize, node.id);
    }
    match node.node_type {
        chakra::COLLECTIVE => match node.integer("comm_type") {
            None => found.add(Fault::NoCommunicationType, node.id),
            Some(kind) if NOT_SIMULATED.contains(&kind) => found.add(Fault::NotSimulated, node.id),
            Some(_) => {}
        },
        chakra::SEND if node.integer("comm_dst").is_none() => found.add(Fault::NoPeer, node.id),
        chakra::RECEIVE if node.integer("comm_src").is_none() => found.add(Fault::NoPeer, node.id),
        _ => {}
    }
    let group = node.text("pg_name").unwrap_or_default();
    if !group.is_empty() && group.parse::<i32>().is_err() {
        found.add(Fault::BadGroup, node.id);
    } else if !group.is_empty() && group != "0" && !groups.contains(group) {
        found.add(Fault::UnknownGroup, node.id);
    }
}

/// Returns the process group names that METADATA nodes announce.
fn announced_groups(trace: &ChakraTrace) -> HashSet<String> {
    let metadata = trace.nodes.iter().filter(|node| node.node_type == chakra::METADATA);
    let lists = metadata.filter_map(|node| {
        let text = node.inputs[0].strip_prefix("['")?.strip_suffix("']")?;
        serde_json::from_str::<Vec<serde_json::Value>>(text).ok()
    });
    lists.flatten().filter_map(|group| Some(group["pg_name"].as_str()?.to_owned())).collect()
}

/// Replays a graph with its recorded durations, in ns if available; without `gaps`, as if no time
/// passed between operators. `tid` and `stream` identify threads and streams.
pub fn replay_chakra(trace: &ChakraTrace, gaps: bool) -> Replay {
    let rows: HashMap<u64, usize> =
        trace.nodes.iter().enumerate().map(|(row, node)| (node.id, row)).collect();
    let nodes: Vec<_> = trace.nodes.iter().map(|node| replay_node(node, gaps)).collect();
    let mut dependencies = Vec::new();
    for (target, node) in trace.nodes.iter().enumerate() {
        let sources = node.data.iter().filter_map(|id| rows.get(id));
        dependencies.extend(sources.map(|&source| (source, target)));
    }
    replay(&nodes, &dependencies)
}

fn replay_node(node: &ChakraNode, gaps: bool) -> ReplayNode {
    let device = node.integer("device").unwrap_or(0);
    let stream = node.integer("stream").unwrap_or(0);
    let resource = if on_thread(node) {
        Resource::Thread(node.integer("os_thread").or(node.integer("tid")).unwrap_or(0))
    } else {
        Resource::Stream(device.wrapping_mul(1 << 32).wrapping_add(stream))
    };
    let micros = i64::try_from(node.duration_us).unwrap_or(i64::MAX / 1_000).saturating_mul(1_000);
    let is_gap = node.flag("is_gap") == Some(true);
    let duration_ns = node.integer("duration_ns").unwrap_or(micros);
    let measured = node.integer("start_ns").zip(node.integer("inclusive_ns"));
    ReplayNode {
        id: i64::try_from(node.id).unwrap_or(i64::MAX),
        resource: (node.node_type != chakra::METADATA).then_some(resource),
        duration_ns: if is_gap && !gaps { 0 } else { duration_ns },
        measured: measured
            .filter(|_| !is_gap)
            .map(|(start, length)| (start, start.saturating_add(length))),
    }
}
