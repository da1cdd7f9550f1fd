//! Whether a thread issued a wait call for a stream before it launched a GPU activity there.
//!
//! A wait call (`cudaStreamWaitEvent`) without a synchronization record names neither the stream
//! nor the event. All that is known is that the next activity the thread launches may have waited.

use super::purposes::Purposes;
use crate::graph::model::Streams;
use crate::ids::{LaneId, Order, RowMap, StringId};
use crate::link::{SyncRecord, WaitsFor};
use crate::tables::LaneTable;
use crate::vocabulary::ApiRole;

/// Whether the launching thread had issued a wait call before it launched a GPU activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) enum Asked {
    /// No wait call since the thread's previous launch to this stream.
    No,
    /// None by this thread, but another thread of the process issued one since any thread's
    /// previous launch to this stream.
    ByOther,
    /// A wait call, followed by launches to other streams.
    Before,
    /// A wait call, with no launch after it.
    JustNow,
}

/// For each GPU activity, returns whether its thread issued a wait call since its previous launch
/// to the same stream. Calls with a synchronization record are left out, because their effect is
/// known.
pub(super) fn of_works(
    streams: &Streams<'_>,
    purposes: &Purposes,
    records: &[SyncRecord],
    lanes: &LaneTable,
    has_wait_calls: bool,
) -> Vec<Asked> {
    let timeline = streams.timeline;
    let mut asked = vec![Asked::No; timeline.len()];
    if !has_wait_calls {
        return asked;
    }
    let recorded = recorded_wait_calls(streams, records);
    let lets_wait = |call| purposes.purpose(call, timeline) == ApiRole::StreamWait;
    let mut n_waits = vec![0_u32; streams.n_lanes()];
    let mut n_launched = vec![0_u32; streams.n_lanes()];
    let mut n_seen: RowMap<(usize, usize), u32> = RowMap::default();
    let mut of_process: RowMap<StringId, u32> = RowMap::default();
    let mut of_stream: RowMap<usize, u32> = RowMap::default();
    for call in timeline.orders().filter(|&event| timeline.kind(event).is_call()) {
        let thread = timeline.lane(call);
        let waits = &mut n_waits[thread];
        let n_new = u32::from(lets_wait(call) && recorded.binary_search(&call).is_err());
        *waits += n_new;
        let process = lanes.place(LaneId::from_row(thread)).process;
        let n_of_process = of_process.entry(process).or_default();
        *n_of_process += n_new;
        let works = streams.launched_by(call);
        let seen = |work: Order| (thread, streams.stream_of(work));
        for &work in works {
            if n_launched[thread] < *waits {
                asked[work.row()] = Asked::JustNow;
            } else if n_seen.get(&seen(work)).copied().unwrap_or(0) < *waits {
                asked[work.row()] = Asked::Before;
            } else if of_stream.get(&streams.stream_of(work)).is_some_and(|it| it < n_of_process) {
                asked[work.row()] = Asked::ByOther;
            }
        }
        for &work in works {
            of_stream.insert(streams.stream_of(work), *n_of_process);
            n_seen.insert(seen(work), *waits);
            n_launched[thread] = *waits;
        }
    }
    asked
}

fn recorded_wait_calls(streams: &Streams<'_>, records: &[SyncRecord]) -> Vec<Order> {
    let is_wait = |record: &&SyncRecord| matches!(record.waits_for, WaitsFor::EventOfStream(_));
    let call = |record: &SyncRecord| streams.timeline.order(record.call?);
    let mut calls: Vec<_> = records.iter().filter(is_wait).filter_map(call).collect();
    calls.sort_unstable();
    calls
}
