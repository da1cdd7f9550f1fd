//! What is asked for a verdict, with all that is known of the trace.

use crate::graph::{Graph, Kind};
use crate::ids::EventId;
use crate::path::walk::Path;
use crate::path::windows::Scope;
use crate::stack::Nesting;
use crate::tables::Tables;

/// What is asked, with all that is known.
pub(super) struct Question<'a> {
    pub(super) graph: &'a Graph,
    pub(super) tables: &'a Tables,
    pub(super) nesting: &'a Nesting,
    pub(super) scope: &'a Scope,
    pub(super) paths: &'a [Path],
    pub(super) lags_ns: &'a [i64],
}

impl Question<'_> {
    /// The time of each event on the paths, of the kinds that `counts` names.
    pub(super) fn time_on_path(&self, counts: impl Fn(Kind) -> bool) -> Vec<(EventId, i64)> {
        let segments = self.paths.iter().flat_map(|path| &path.segments);
        let of_kind = segments.filter(|segment| counts(segment.kind));
        let mut times: Vec<_> =
            of_kind.filter_map(|segment| Some((segment.event?, segment.duration_ns()))).collect();
        times.sort_unstable();
        times.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        times
    }
}
