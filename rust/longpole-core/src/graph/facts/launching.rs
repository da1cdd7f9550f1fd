//! The threads that launch to each device.

use crate::graph::model::Streams;

/// Returns the threads that launch activities to each device, sorted.
pub(super) fn threads_of_devices(streams: &Streams<'_>) -> Vec<Vec<usize>> {
    let timeline = streams.timeline;
    let threads = |device: usize| {
        let works = streams.of_device(device).iter().flat_map(|&it| &streams.all[it].works);
        let launchers = works.filter_map(|&work| timeline.launcher(work));
        let mut threads: Vec<_> = launchers.map(|call| timeline.lane(call)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    (0..streams.n_devices()).map(threads).collect()
}
