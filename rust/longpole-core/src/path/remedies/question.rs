//! The input of a verdict.

use crate::graph::{Graph, Kind};
use crate::ids::EventId;
use crate::path::walk::{Path, Segment};
use crate::path::windows::Scope;
use crate::stack::Nesting;
use crate::tables::Tables;

/// The input of a verdict.
pub(super) struct Question<'a> {
    pub(super) graph: &'a Graph,
    pub(super) tables: &'a Tables,
    pub(super) nesting: &'a Nesting,
    pub(super) scope: &'a Scope,
    pub(super) paths: &'a [Path],
    pub(super) latencies_ns: &'a [i64],
    /// Whether the device catches up with a backlog in the windows, so that everything before them
    /// stays as recorded.
    pub(super) is_catching_up: bool,
    /// Whether the windows take as long with these latencies as in the trace.
    pub(super) is_as_timed: bool,
    /// The time on the paths by event and kind, in the order of events.
    pub(super) times: Vec<(EventId, Kind, i64)>,
}

/// Returns the time on paths by event and kind, in the order of events.
pub(super) fn times_of(paths: &[Path]) -> Vec<(EventId, Kind, i64)> {
    let segments = paths.iter().flat_map(|path| &path.segments);
    let with_event =
        |segment: &Segment| Some((segment.event?, segment.kind, segment.duration_ns()));
    let mut times = Vec::with_capacity(paths.iter().map(|path| path.segments.len()).sum());
    times.extend(segments.filter_map(with_event));
    times.sort_unstable_by_key(|&(event, kind, _)| (event, kind));
    times
}

impl Question<'_> {
    /// Returns the time of each event on the paths, for the kinds that `counts` accepts.
    pub(super) fn time_on_path<'q>(
        &'q self,
        counts: impl Fn(Kind) -> bool + 'q,
    ) -> impl Iterator<Item = (EventId, i64)> + 'q {
        let of_kind = self.times.iter().filter(move |&&(_, kind, _)| counts(kind));
        let mut of_kind = of_kind.map(|&(event, _, ns)| (event, ns)).peekable();
        std::iter::from_fn(move || {
            let (event, mut time_ns) = of_kind.next()?;
            while let Some((_, more_ns)) = of_kind.next_if(|next| next.0 == event) {
                time_ns += more_ns;
            }
            Some((event, time_ns))
        })
    }
}
