//! Process groups, numbered as simulators expect.

use std::collections::BTreeMap;

use super::message::metadata_message;
use crate::tables::ExecutionTrace;
use crate::workload::Communication;
use crate::write::protobuf::Message;

/// The number of each process group.
pub(super) struct Groups {
    numbers: BTreeMap<String, i64>,
    /// The sizes of groups that are not announced by a node of the execution trace.
    unannounced: Vec<(i64, Option<i64>)>,
    /// The groups that the execution trace announces, with their numbers.
    announced: Vec<serde_json::Value>,
}

/// Whether a node announces process groups.
pub(super) fn is_record(row: usize, trace: &ExecutionTrace) -> bool {
    trace.name(row).contains("process_group:init")
}

/// The id of the node that announces groups missing from the execution trace; larger than all other
/// ids.
const METADATA_ID: i64 = (1 << 52) + (3 << 50);

impl Groups {
    /// Numbers the groups. A group whose name is a number keeps it; others get free numbers, in
    /// order of their names.
    pub(super) fn of(communications: &[Communication], trace: &ExecutionTrace) -> Self {
        let records = (0..trace.nodes.len()).filter(|&row| is_record(row, trace));
        let announced: Vec<_> = records.flat_map(|row| announced(row, trace)).collect();
        let known: Vec<_> = announced.iter().filter_map(name).map(str::to_owned).collect();
        let used = communications.iter().filter_map(|found| found.group.clone());
        let mut names: Vec<_> = known.iter().cloned().chain(used).collect();
        names.sort();
        names.dedup();
        let mut numbers: BTreeMap<String, i64> =
            names.iter().filter_map(|name| Some((name.clone(), number(name)?))).collect();
        let mut next = numbers.values().max().map_or(0, |largest| largest + 1);
        for name in names {
            numbers.entry(name).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
        let mut unannounced: Vec<_> = communications
            .iter()
            .filter_map(|found| Some((found.group.as_ref()?, found.group_size)))
            .filter(|(name, _)| !known.contains(name))
            .map(|(name, size)| (numbers[name], size))
            .collect();
        unannounced.sort_unstable();
        unannounced.dedup_by_key(|group| group.0);
        Self { numbers, unannounced, announced }
    }

    pub(super) fn number(&self, group: Option<&str>) -> Option<i64> {
        self.numbers.get(group?).copied()
    }

    /// Returns a node for the groups that the execution trace does not announce, or whose names are
    /// not numbers; `None` if there are none.
    pub(super) fn metadata_node(&self, _trace: &ExecutionTrace) -> Option<Message> {
        let renamed = self
            .announced
            .iter()
            .filter(|group| name(group).is_some_and(|name| number(name).is_none()));
        let mut groups: Vec<_> = renamed.map(|group| self.numbered(group)).collect();
        groups.extend(self.unannounced.iter().map(|&(number, size)| {
            serde_json::json!({
                "pg_name": number.to_string(),
                "ranks": [],
                "group_size": size,
            })
        }));
        (!groups.is_empty())
            .then(|| metadata_message(METADATA_ID, &serde_json::Value::from(groups).to_string()))
    }

    fn numbered(&self, group: &serde_json::Value) -> serde_json::Value {
        let mut group = group.clone();
        let number = name(&group).and_then(|name| self.number(Some(name)));
        if let Some(number) = number {
            group["pg_name"] = number.to_string().into();
        }
        group
    }
}

fn number(name: &str) -> Option<i64> {
    name.parse().ok().filter(|&number: &i64| (0..1 << 31).contains(&number))
}

fn name(group: &serde_json::Value) -> Option<&str> {
    group["pg_name"].as_str()
}

/// Returns the groups that a node announces: a JSON list, stored as the text of its first input.
fn announced(row: usize, trace: &ExecutionTrace) -> Vec<serde_json::Value> {
    let inputs = trace.strings.get(trace.nodes[row].inputs.values);
    let inputs: Vec<serde_json::Value> = serde_json::from_str(inputs).unwrap_or_default();
    let text = inputs.first().and_then(|first| first.as_str()).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}
