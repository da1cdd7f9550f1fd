//! Totals of a path by kind, or by kind and name.

use crate::names::Names;
use std::collections::HashMap;

use super::walk::Path;
use crate::graph::{Evidence, Graph, Kind};
use crate::ids::{EventId, StringId};
use crate::tables::Tables;

/// The segments of one kind, or of one kind and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// The kind.
    pub kind: Kind,
    /// Event name; `None` for gaps and for per-kind totals.
    pub name: Option<StringId>,
    /// The total time.
    pub duration_ns: i64,
    /// Number of segments.
    pub count: u64,
    /// The duration of the longest segment.
    pub longest_ns: i64,
    /// The event of the longest segment, the first of several; `None` for gaps.
    pub longest: Option<EventId>,
}

/// Returns the time of each kind on the path, or of each kind and name, largest first; ties are
/// sorted by name.
pub fn totals(tables: &Tables, path: &Path, by_name: bool) -> Vec<Total> {
    let mut row_of = HashMap::new();
    let mut rows: Vec<Total> = Vec::new();
    for segment in &path.segments {
        let name = segment.event.filter(|_| by_name).and_then(|event| tables.events.name(event));
        let row = *row_of.entry((segment.kind, name)).or_insert(rows.len());
        let (kind, longest) = (segment.kind, segment.event);
        if row == rows.len() {
            rows.push(Total { kind, name, duration_ns: 0, count: 0, longest_ns: -1, longest });
        }
        rows[row].add(segment.duration_ns(), longest);
    }
    let words = |row: &Total| (row.kind.name(), row.name.map(|name| tables.strings.get(name)));
    rows.sort_by(|one, two| {
        two.duration_ns.cmp(&one.duration_ns).then_with(|| words(one).cmp(&words(two)))
    });
    rows
}

impl Total {
    fn add(&mut self, length_ns: i64, event: Option<EventId>) {
        self.duration_ns += length_ns;
        self.count += 1;
        if (length_ns, self.longest) > (self.longest_ns, event) {
            (self.longest_ns, self.longest) = (length_ns, event);
        }
    }
}

/// Returns the number of waits on a path for GPU activities that are inferred, and the number of
/// all such waits.
pub fn waits_on_path(graph: &Graph, path: &Path) -> (u64, u64) {
    let edges = path.edges.iter().map(|&edge| &graph.edges.as_slice()[edge as usize]);
    edges.filter(|edge| edge.role.waits().is_some()).fold((0, 0), |(inferred, all), edge| {
        (inferred + u64::from(edge.evidence == Evidence::Inferred), all + 1)
    })
}
