//! Aligns the launches of one graph, to find nodes that are missing from some of them.
//!
//! Every launch of a graph runs the same nodes. If the profiler records graph and node ids, these
//! identify them. Otherwise, launches belong to one graph if most of their nodes are the same, in
//! the same order on each stream, and if there is a gap long enough for each missing node. Without
//! such a gap, it is another graph.

use std::collections::BTreeMap;

use crate::alignment::align;
use crate::graph::model::{Streams, limits};
use crate::ids::Order;
use crate::tables::{Tables, argument};

/// The launches of a graph. Nodes are sorted by stream.
pub(super) struct Template {
    /// Number of nodes.
    pub(super) n_nodes: usize,
    /// The nodes of each launch, one row for each node; `None` if the node is missing.
    pub(super) replays: Vec<Replayed>,
    /// For each node, the previous one on its stream.
    pub(super) before: Vec<Option<usize>>,
}

impl Template {
    /// Whether there are dependencies to find beyond the order of one stream.
    pub(super) fn tells_something(&self) -> bool {
        let n_streams = self.before.iter().filter(|before| before.is_none()).count();
        n_streams > 1 || self.replays.iter().any(|replay| replay.nodes.contains(&None))
    }
}

/// The nodes of one launch.
pub(super) struct Replayed {
    /// The launch call.
    pub(super) call: Order,
    /// One row for each node of the graph.
    pub(super) nodes: Vec<Option<Order>>,
}

/// Identifies a node of a graph: its stream and its label.
type Key = (usize, u64);

/// Launches with the same nodes.
struct Class {
    graph: Option<i64>,
    keys: Vec<Key>,
    launches: Vec<(Order, Vec<Order>)>,
}

/// Groups launches by graph.
pub(super) fn of_launches(
    calls: &[Order],
    streams: &Streams<'_>,
    tables: &Tables,
) -> Vec<Template> {
    let mut classes: BTreeMap<(Option<i64>, Vec<Key>), Class> = BTreeMap::new();
    for &call in calls {
        let (graph, keys, works) = described(call, streams, tables);
        let class = classes.entry((graph, keys.clone())).or_insert_with(|| Class {
            graph,
            keys,
            launches: Vec::new(),
        });
        class.launches.push((call, works));
    }
    let mut classes: Vec<_> = classes.into_values().collect();
    classes.sort_by_key(|class| (std::cmp::Reverse(class.keys.len()), class.launches[0].0));
    let mut unions: Vec<Union> = Vec::new();
    for class in classes {
        let latest = (0..unions.len()).rev().take(limits::MOST_GRAPHS_TRIED);
        let near: Vec<_> = latest.filter(|&place| unions[place].is_like(&class)).collect();
        match near.into_iter().find(|&place| unions[place].admit(&class, streams)) {
            Some(place) => unions[place].classes.push(class),
            None => unions.push(Union::of(class, streams)),
        }
    }
    unions.into_iter().flat_map(Union::templates).collect()
}

/// Returns the graph id of a launch if recorded, and its nodes by stream.
fn described(
    call: Order,
    streams: &Streams<'_>,
    tables: &Tables,
) -> (Option<i64>, Vec<Key>, Vec<Order>) {
    let timeline = streams.timeline;
    let mut works = streams.launched_by(call).to_vec();
    works.sort_by_key(|&work| (streams.stream_of(work), work));
    let node_id = |work: Order| argument(timeline.event(work), "graph node id", tables);
    let ids: Option<Vec<i64>> = works.iter().map(|&work| node_id(work)).collect();
    let graph = ids.as_ref().and_then(|_| argument(timeline.event(works[0]), "graph id", tables));
    let by_name = |work: Order| timeline.name(work).map_or(0, |name| name.row() as u64 + 1);
    let label = |place: usize| match &ids {
        Some(ids) => ids[place].unsigned_abs(),
        None => by_name(works[place]),
    };
    let keys = (0..works.len()).map(|place| (streams.stream_of(works[place]), label(place)));
    let keys = keys.collect();
    (graph, keys, works)
}

/// The union of the nodes of all launches of a graph.
struct Union {
    graph: Option<i64>,
    keys: Vec<Key>,
    /// The shortest duration of each node.
    durations_ns: Vec<i64>,
    classes: Vec<Class>,
    /// One launch: its call and its nodes.
    call: Order,
    example: Vec<Option<Order>>,
}

impl Union {
    fn of(class: Class, streams: &Streams<'_>) -> Self {
        let (call, works) = &class.launches[0];
        Self {
            graph: class.graph,
            keys: class.keys.clone(),
            durations_ns: works.iter().map(|&it| streams.timeline.duration_ns(it)).collect(),
            call: *call,
            example: works.iter().copied().map(Some).collect(),
            classes: vec![class],
        }
    }

    /// Whether a class may belong to the same graph. A class that is launched repeatedly and always
    /// lacks the same nodes is another graph.
    fn is_like(&self, class: &Class) -> bool {
        let n_same = class.keys.len() * limits::LEAST_SAME_NODES.1;
        self.graph == class.graph
            && self.keys[0].0 == class.keys[0].0
            && n_same >= self.keys.len() * limits::LEAST_SAME_NODES.0
            && (class.graph.is_some() || class.launches.len() < limits::LEAST_REPLAYS)
    }

    /// Adds the nodes of a class if it belongs to the same graph.
    fn admit(&mut self, class: &Class, streams: &Streams<'_>) -> bool {
        let merged = Merged::of(&self.keys, &class.keys);
        let n_same = merged.rows.iter().filter(|row| row.0.is_some() && row.1.is_some()).count();
        if n_same * limits::LEAST_SAME_NODES.1 < merged.rows.len() * limits::LEAST_SAME_NODES.0 {
            return false;
        }
        let (call, works) = &class.launches[0];
        let timeline = streams.timeline;
        let least = |row: &(Option<usize>, Option<usize>)| match *row {
            (Some(old), Some(new)) => self.durations_ns[old].min(timeline.duration_ns(works[new])),
            (Some(old), None) => self.durations_ns[old],
            (None, Some(new)) => timeline.duration_ns(works[new]),
            (None, None) => 0,
        };
        let durations_ns: Vec<_> = merged.rows.iter().map(least).collect();
        let keys = merged.keys(&self.keys, &class.keys);
        let theirs: Vec<_> = merged.rows.iter().map(|row| row.1.map(|new| works[new])).collect();
        let ours: Vec<_> = merged.rows.iter().map(|row| self.example[row.0?]).collect();
        let has_room = |call: Order, nodes: &[Option<Order>]| {
            has_room(call, nodes, &keys, &durations_ns, streams)
        };
        let is_same =
            self.graph.is_some() || (has_room(*call, &theirs) && has_room(self.call, &ours));
        if is_same {
            (self.keys, self.durations_ns, self.example) = (keys, durations_ns, ours);
        }
        is_same
    }

    /// Returns one template for all classes, or one for each class if there are too few launches to
    /// learn from.
    fn templates(self) -> Vec<Template> {
        let n_launches: usize = self.classes.iter().map(|class| class.launches.len()).sum();
        if n_launches < limits::LEAST_REPLAYS {
            return self.classes.iter().map(|class| template(&class.keys, [class])).collect();
        }
        vec![template(&self.keys, &self.classes)]
    }
}

fn template<'c>(keys: &[Key], classes: impl IntoIterator<Item = &'c Class>) -> Template {
    let mut replays = Vec::new();
    for class in classes {
        let pairs = align(&[hashed(keys)], &[hashed(&class.keys)]);
        for (call, works) in &class.launches {
            let mut nodes = vec![None; keys.len()];
            for pair in &pairs {
                nodes[pair.base] = Some(works[pair.new]);
            }
            replays.push(Replayed { call: *call, nodes });
        }
    }
    replays.sort_by_key(|replay| replay.call);
    let follows = |node: usize| node > 0 && keys[node - 1].0 == keys[node].0;
    let before = (0..keys.len()).map(|node| follows(node).then(|| node - 1)).collect();
    Template { n_nodes: keys.len(), replays, before }
}

/// Whether the gaps of a launch are long enough for the missing nodes: at least half of their
/// shortest duration in other launches.
fn has_room(
    call: Order,
    nodes: &[Option<Order>],
    keys: &[Key],
    durations_ns: &[i64],
    streams: &Streams<'_>,
) -> bool {
    let timeline = streams.timeline;
    let (mut ended_ns, mut missing_ns) = (timeline.start_ns(call), 0);
    for (node, work) in nodes.iter().enumerate() {
        if node > 0 && keys[node - 1].0 != keys[node].0 {
            (ended_ns, missing_ns) = (timeline.start_ns(call), 0);
        }
        let Some(work) = *work else {
            missing_ns += durations_ns[node] / 2;
            continue;
        };
        if missing_ns > 0 && timeline.start_ns(work) - ended_ns < missing_ns {
            return false;
        }
        (ended_ns, missing_ns) = (timeline.end_ns(work), 0);
    }
    true
}

/// The rows of two merged node lists: index in the first, in the second, or in both.
struct Merged {
    rows: Vec<(Option<usize>, Option<usize>)>,
}

impl Merged {
    fn of(base: &[Key], new: &[Key]) -> Self {
        let mut rows = Vec::with_capacity(base.len());
        let mut from = (0, 0);
        let pairs = align(&[hashed(base)], &[hashed(new)]);
        let ends = pairs.iter().map(|pair| (pair.base, pair.new));
        for end in ends.chain([(base.len(), new.len())]) {
            let old = (from.0..end.0).map(|place| (base[place].0, (Some(place), None)));
            let added = (from.1..end.1).map(|place| (new[place].0, (None, Some(place))));
            let mut gap: Vec<_> = old.chain(added).collect();
            gap.sort_by_key(|&(stream, _)| stream);
            rows.extend(gap.into_iter().map(|(_, row)| row));
            if end.0 < base.len() {
                rows.push((Some(end.0), Some(end.1)));
            }
            from = (end.0 + 1, end.1 + 1);
        }
        Self { rows }
    }

    fn keys(&self, base: &[Key], new: &[Key]) -> Vec<Key> {
        let key = |&(old, added): &(Option<usize>, Option<usize>)| {
            old.map(|place| base[place]).or_else(|| added.map(|place| new[place]))
        };
        self.rows.iter().filter_map(key).collect()
    }
}

/// Packs each key into one number, the stream in the upper bits and the label in the lower ones.
fn hashed(keys: &[Key]) -> Vec<u64> {
    keys.iter().map(|&(stream, label)| ((stream as u64) << 44) ^ label).collect()
}
