//! How long the devices were busy during unexplained time.
//!
//! Unexplained time does not imply idle devices. A gap with a busy device has other causes than one
//! with an idle device, so device activity is measured.

use super::schedule::Schedule;
use super::walk::Path;
use crate::graph::{Evidence, Graph};
use crate::intervals::Spans;

/// For each unexplained segment of a path, returns how long any device was busy in it; `None` for
/// other segments. All times are those of the schedule.
pub fn busy_ns(graph: &Graph, path: &Path, schedule: &Schedule) -> Vec<Option<i64>> {
    let is_unknown = |evidence| evidence == Evidence::None;
    if !path.segments.iter().any(|segment| is_unknown(segment.evidence)) {
        return vec![None; path.segments.len()];
    }
    let is_work = |order: &_| graph.timeline.kind(*order).is_device_work();
    let works = graph.timeline.orders().filter(is_work);
    let time_ns = |node| schedule.time_ns(node, graph);
    let spans =
        works.map(|work| (time_ns(graph.nodes.start(work)), time_ns(graph.nodes.end(work))));
    let busy = Spans::union_of(spans);
    let within = |start_ns, end_ns| busy.length_within_ns(start_ns, end_ns);
    let segments = path.segments.iter();
    segments.map(|it| is_unknown(it.evidence).then(|| within(it.start_ns, it.end_ns))).collect()
}
