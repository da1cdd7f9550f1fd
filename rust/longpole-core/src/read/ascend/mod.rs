//! Assigns kinds, streams and threads to the events of an Ascend profile.
//!
//! In the timelines of msprof, `torch_npu` and MindSpore most events have no category. The names of
//! processes and threads identify them, and may come after the events. The events are therefore
//! interpreted once all of them are known:
//!
//! | process | events become |
//! |---|---|
//! | Ascend Hardware | kernels and copies on the stream, by `Task Type`; waits; marks |
//! | HCCL, Communication | one kernel for each collective, on the stream of its tasks |
//! | CANN | runtime calls on the calling thread of the program |
//! | CPU OP | operators |
//! | Overlap Analysis, Scope Layer, Step Trace | derived; not counted as activities |
//!
//! The tasks of a collective occur two or three times in the timeline (as a whole, on a plane, on a
//! stream). Only the whole counts as a GPU activity.
//!
//! Limits: a trace without any of these processes is not changed. The device number is known only
//! if the profiler put it into the process id; otherwise it is null.

mod layers;
mod parts;
mod tasks;

use crate::ids::EventId;
use crate::vocabulary::{CollectiveTrack, EventKind, Layer, step_number};
use layers::Layers;
pub(super) use parts::Parts;
use tasks::Tasks;

/// Interprets the events of an Ascend profile. Returns the number of tasks of an unknown type.
/// Other traces are not changed.
pub(super) fn interpret(mut parts: Parts<'_>) -> u64 {
    let parts = &mut parts;
    let Some(layers) = Layers::of(parts.metadata, parts.strings) else { return 0 };
    let tasks = Tasks::of(parts, &layers);
    parts.events.reopen_lanes();
    let mut n_unknown = 0;
    for event in parts.events.ids() {
        let place = parts.lanes.place(parts.events.lane(event));
        let Some(layer) = layers.of_process(place.process) else { continue };
        let is_span = !matches!(parts.events.kind(event), EventKind::Instant);
        match layer {
            _ if !is_span => {}
            Layer::Hardware => n_unknown += u64::from(tasks.hardware(event, &layers, parts)),
            Layer::Communication => match layers.track(place) {
                Some(CollectiveTrack::Operations) => tasks.collective(event, &layers, parts),
                Some(CollectiveTrack::Tasks) | None => tasks.part(event, &layers, parts),
            },
            Layer::Cann => {
                let lane = parts.lanes.intern(layers.host_place(place));
                parts.events.assign_kind(event, EventKind::Runtime);
                parts.events.assign_lane(event, lane);
            }
            Layer::HostOperators => parts.events.assign_kind(event, EventKind::Operator),
            Layer::Derived => parts.events.assign_kind(event, EventKind::Derived),
            Layer::Framework => framework(event, parts),
        }
    }
    parts.events.finish();
    n_unknown
}

/// Handles the framework layer, in which `torch_npu` lists steps among the operators.
fn framework(event: EventId, parts: &mut Parts<'_>) {
    let name = parts.events.name(event).map_or("", |name| parts.strings.get(name));
    if parts.events.kind(event) == EventKind::Operator && step_number(name).is_some() {
        parts.events.assign_kind(event, EventKind::Annotation);
    }
}
