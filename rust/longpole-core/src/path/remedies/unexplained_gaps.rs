//! Large unexplained gaps. If most of the unexplained time lies in a few gaps, each is reported
//! with what happened around it, and the verdict covers the remaining time.

use std::cmp::Reverse;

use super::question::Question;
use crate::graph::{Edge, Kind};
use crate::ids::{EventId, Order, row_in_column};
use crate::intervals::Spans;
use crate::path::walk::Path;
use crate::tables::EventKind;
use crate::vocabulary::ApiRole;

/// Maximum number of unexplained gaps.
const MOST_PIECES: usize = 3;

/// Minimum percentage of all unexplained time that these gaps must contain.
const MOST_OF_UNKNOWN: i64 = 90;

/// Maximum number of GPU activities before an activity that counts as one of the first of its
/// trace.
const FIRST_ACTIVITIES: usize = 5;

/// An unexplained gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnexplainedGap {
    pub(super) edge: u32,
    /// Its time on the path.
    pub duration_ns: i64,
    /// The event that begins or returns late.
    pub event: EventId,
    /// The host event that covers most of it, and whether that is a synchronizing call.
    pub host: Option<(EventId, bool)>,
    /// How long any device was busy during it.
    pub busy_ns: i64,
    /// Whether it comes before all but a few GPU activities, or in the first call of its kind,
    /// while devices are mostly idle, and no other gap in the trace is similar.
    pub is_first: bool,
    /// Whether a stream was made to wait for an event before the late activity, and a device had
    /// run something: it waits for earlier work, not for set-up.
    pub follows_wait: bool,
}

/// Returns the unexplained gaps on the paths, longest first; empty if unexplained time is
/// scattered.
pub(super) fn unexplained_gaps(question: &Question<'_>) -> Vec<UnexplainedGap> {
    let mut pieces = pieces(question);
    let all_ns: i64 = pieces.iter().map(Piece::duration_ns).sum();
    pieces.sort_by_key(|piece| (Reverse(piece.duration_ns()), piece.edge));
    let mut reached_ns = 0;
    let is_more = |piece: &Piece| {
        let more = reached_ns * 100 < MOST_OF_UNKNOWN * all_ns;
        reached_ns += piece.duration_ns();
        more
    };
    let longest: Vec<_> = pieces.into_iter().take_while(is_more).collect();
    if longest.len() > MOST_PIECES || recurs(&longest, question) {
        return Vec::new();
    }
    if longest.is_empty() {
        return Vec::new();
    }
    let busy = busy(question);
    longest.iter().map(|piece| UnexplainedGap::of(piece, &busy, question)).collect()
}

/// Returns the times at which any device was busy.
fn busy(question: &Question<'_>) -> Spans {
    let timeline = &question.graph.timeline;
    let works = timeline.orders().filter(|&it| timeline.kind(it).is_device_work());
    Spans::union_of(works.map(|it| (timeline.start_ns(it), timeline.end_ns(it))))
}

/// Whether most of several windows have such a gap. It is then part of every iteration.
fn recurs(pieces: &[Piece], question: &Question<'_>) -> bool {
    let has =
        |path: &&Path| pieces.iter().any(|piece| path.edges.contains(&row_in_column(piece.edge)));
    let n_windows = question.paths.len();
    n_windows > 1 && 2 * question.paths.iter().filter(has).count() > n_windows
}

/// The part of an edge inside the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    edge: usize,
    start_ns: i64,
    end_ns: i64,
}

impl Piece {
    fn duration_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}

/// Returns the unexplained edges of the paths, in order. Windows are adjacent: an edge that lies in
/// two of them is one piece.
fn pieces(question: &Question<'_>) -> Vec<Piece> {
    let (graph, edges) = (question.graph, question.graph.edges.as_slice());
    let of_path = |path: &Path| {
        let (start_ns, end_ns) = (path.start_ns, path.end_ns);
        let inside = move |number: &u32| {
            let edge = &edges[*number as usize];
            let start_ns = graph.nodes.time_ns(edge.source).max(start_ns);
            let end_ns = graph.nodes.time_ns(edge.target).min(end_ns);
            let is_unknown = edge.kind == Kind::Unexplained && end_ns > start_ns;
            is_unknown.then_some(Piece { edge: *number as usize, start_ns, end_ns })
        };
        path.edges.iter().filter_map(inside).collect::<Vec<_>>()
    };
    joined(question.paths.iter().flat_map(of_path).collect())
}

/// Merges the pieces of one edge.
fn joined(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| (piece.edge, piece.start_ns));
    pieces.dedup_by(|next, piece| {
        let is_same = next.edge == piece.edge;
        if is_same {
            piece.end_ns = piece.end_ns.max(next.end_ns);
        }
        is_same
    });
    pieces
}

impl UnexplainedGap {
    fn of(piece: &Piece, busy: &Spans, question: &Question<'_>) -> Self {
        let (graph, timeline) = (question.graph, &question.graph.timeline);
        let edge = &graph.edges.as_slice()[piece.edge];
        let late = graph.nodes.event(edge.target);
        let (start_ns, end_ns) = (piece.start_ns, piece.end_ns);
        let works = timeline.orders().filter(|&it| timeline.kind(it).is_device_work());
        let n_before = works.filter(|&it| timeline.end_ns(it) <= start_ns).count();
        let host = host(question, start_ns, end_ns);
        let busy_ns = busy.length_within_ns(start_ns, end_ns);
        let is_first_call = host.is_some_and(|(event, waits)| {
            waits && !synchronizes(event, question) && is_first(event, question)
        });
        Self {
            edge: row_in_column(piece.edge),
            duration_ns: piece.duration_ns(),
            event: timeline.event(late),
            host,
            busy_ns,
            is_first: (n_before < FIRST_ACTIVITIES || is_first_call)
                && 2 * busy_ns <= piece.duration_ns()
                && !comes_again(piece, question),
            follows_wait: n_before > 0 && follows_wait(late, question),
        }
    }
}

/// Whether the last call of a thread before it launched an activity made a stream wait.
fn follows_wait(work: Order, question: &Question<'_>) -> bool {
    let timeline = &question.graph.timeline;
    let Some(launch) = timeline.launcher(work) else { return false };
    let is_call = |&event: &Order| {
        timeline.lane(event) == timeline.lane(launch) && timeline.kind(event).is_call()
    };
    let mut before = (0..launch.row()).rev().map(Order::from_row);
    let name = before.find(is_call).and_then(|call| timeline.name(call));
    name.is_some_and(|name| question.tables.role(name) == ApiRole::StreamWait)
}

/// Returns the call, otherwise the operator or function, that is open for most of a time range: the
/// shortest of those that cover half of it.
fn host(question: &Question<'_>, start_ns: i64, end_ns: i64) -> Option<(EventId, bool)> {
    let timeline = &question.graph.timeline;
    let roles = question.tables.roles();
    let covers =
        |start: i64, end: i64| 2 * (end.min(end_ns) - start.max(start_ns)) > end_ns - start_ns;
    let open = timeline.orders().filter(|&event| {
        !timeline.kind(event).is_device_work()
            && timeline.kind(event) != EventKind::Annotation
            && covers(timeline.start_ns(event), timeline.end_ns(event))
    });
    let rank =
        |&event: &Order| (!timeline.kind(event).is_call(), timeline.duration_ns(event), event);
    let event = open.min_by_key(rank)?;
    let role = timeline.name(event).map(|name| roles[name.row()]);
    let waits = timeline.kind(event).is_call() && !matches!(role, Some(ApiRole::Launch));
    Some((timeline.event(event), waits))
}

/// Whether a call waits for devices, not counting calls that set them up.
fn synchronizes(call: EventId, question: &Question<'_>) -> bool {
    let role = question.tables.events.name(call).map(|name| question.tables.role(name));
    matches!(
        role,
        Some(
            ApiRole::StreamSynchronize
                | ApiRole::EventSynchronize
                | ApiRole::DeviceSynchronize
                | ApiRole::Query
        )
    )
}

/// Whether another unexplained gap at least half as long precedes an event of the same name.
fn comes_again(piece: &Piece, question: &Question<'_>) -> bool {
    let graph = question.graph;
    let edges = graph.edges.as_slice();
    let name = |edge: &Edge| graph.timeline.name(graph.nodes.event(edge.target));
    let gap_ns = |edge: &Edge| graph.nodes.time_ns(edge.target) - graph.nodes.time_ns(edge.source);
    let own = name(&edges[piece.edge]);
    edges.iter().enumerate().any(|(place, edge)| {
        place != piece.edge
            && edge.kind == Kind::Unexplained
            && 2 * gap_ns(edge) >= piece.duration_ns()
            && name(edge) == own
    })
}

/// Whether this is the first event of its name.
fn is_first(event: EventId, question: &Question<'_>) -> bool {
    let timeline = &question.graph.timeline;
    let Some(order) = timeline.order(event) else { return false };
    let name = timeline.name(order);
    !timeline.orders().take_while(|&other| other < order).any(|other| timeline.name(other) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(edge: usize, start_ns: i64, end_ns: i64) -> Piece {
        Piece { edge, start_ns, end_ns }
    }

    #[test]
    fn an_edge_that_lies_in_two_windows_is_one_piece() {
        let both = joined(vec![piece(7, 50, 90), piece(3, 0, 10), piece(7, 20, 50)]);
        assert_eq!(both, [piece(3, 0, 10), piece(7, 20, 90)]);
    }
}
