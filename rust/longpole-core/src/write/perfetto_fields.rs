//! Numbers of the fields and values of Perfetto's messages that longpole writes
//! (`protos/perfetto/trace` of <https://github.com/google/perfetto>).

use super::protobuf::Field;

// Trace
pub(super) const PACKET: Field = 1;
// TracePacket
pub(super) const TIMESTAMP: Field = 8;
pub(super) const SEQUENCE: Field = 10;
pub(super) const TRACK_EVENT: Field = 11;
pub(super) const INTERNED: Field = 12;
pub(super) const SEQUENCE_FLAGS: Field = 13;
pub(super) const TRACK_DESCRIPTOR: Field = 60;
pub(super) const STATE_CLEARED: u64 = 1;
pub(super) const NEEDS_STATE: u64 = 2;
// InternedData, EventName
pub(super) const EVENT_NAMES: Field = 2;
pub(super) const INTERNED_ID: Field = 1;
pub(super) const INTERNED_NAME: Field = 2;
// TrackDescriptor, ProcessDescriptor
pub(super) const UUID: Field = 1;
pub(super) const NAME_OF_TRACK: Field = 2;
pub(super) const PROCESS: Field = 3;
pub(super) const PARENT: Field = 5;
pub(super) const COUNTER: Field = 8;
pub(super) const PID: Field = 1;
pub(super) const PROCESS_NAME: Field = 6;
// TrackEvent
pub(super) const DEBUG_ANNOTATIONS: Field = 4;
pub(super) const TYPE: Field = 9;
pub(super) const NAME_ID: Field = 10;
pub(super) const TRACK_UUID: Field = 11;
pub(super) const CATEGORIES: Field = 22;
pub(super) const NAME: Field = 23;
pub(super) const DOUBLE_VALUE: Field = 44;
pub(super) const FLOW_IDS: Field = 47;
pub(super) const TERMINATING_FLOW_IDS: Field = 48;
pub(super) const SLICE_BEGIN: u64 = 1;
pub(super) const SLICE_END: u64 = 2;
pub(super) const COUNTER_SAMPLE: u64 = 4;
// DebugAnnotation
pub(super) const INTEGER: Field = 4;
pub(super) const TEXT: Field = 6;
pub(super) const NAME_OF_ANNOTATION: Field = 10;
