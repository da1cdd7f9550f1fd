//! Field numbers and values of the Perfetto messages that longpole reads and writes
//! (`protos/perfetto/trace` of <https://github.com/google/perfetto>).

use crate::read::protobuf::Field;

// Trace
pub(crate) const PACKET: Field = 1;
// TracePacket
pub(crate) const CHROME_EVENTS: Field = 5;
pub(crate) const CLOCK_SNAPSHOT: Field = 6;
pub(crate) const TIMESTAMP: Field = 8;
pub(crate) const SEQUENCE: Field = 10;
pub(crate) const TRACK_EVENT: Field = 11;
pub(crate) const INTERNED: Field = 12;
pub(crate) const SEQUENCE_FLAGS: Field = 13;
pub(crate) const PREVIOUS_DROPPED: Field = 42;
pub(crate) const PROCESS_DESCRIPTOR: Field = 43;
pub(crate) const THREAD_DESCRIPTOR: Field = 44;
pub(crate) const COMPRESSED: Field = 50;
pub(crate) const GPU_COUNTERS: Field = 52;
pub(crate) const RENDER_STAGE: Field = 53;
pub(crate) const TIMESTAMP_CLOCK: Field = 58;
pub(crate) const DEFAULTS: Field = 59;
pub(crate) const TRACK_DESCRIPTOR: Field = 60;
/// Packet fields that describe the packet or the recording and contain no events: configuration
/// (33), statistics (35), synchronization marker (36), system (45), service events (69), trace
/// identifier (89), and user, process and flags of the sequence (3, 41, 79, 87, 98).
pub(crate) const ABOUT_THE_TRACE: &[Field] = &[3, 33, 35, 36, 41, 45, 69, 79, 87, 89, 98];
pub(crate) const STATE_CLEARED: u64 = 1;
pub(crate) const NEEDS_STATE: u64 = 2;
// InternedData, EventName, InternedComputeKernel
pub(crate) const EVENT_CATEGORIES: Field = 1;
pub(crate) const EVENT_NAMES: Field = 2;
pub(crate) const ANNOTATION_NAMES: Field = 3;
pub(crate) const STAGES: Field = 24;
pub(crate) const ANNOTATION_TEXTS: Field = 29;
pub(crate) const COUNTERS_OF_GPU: Field = 47;
pub(crate) const KERNELS: Field = 1000;
pub(crate) const INTERNED_ID: Field = 1;
pub(crate) const INTERNED_NAME: Field = 2;
pub(crate) const DEMANGLED_NAME: Field = 3;
// TrackDescriptor, ProcessDescriptor, ThreadDescriptor, CounterDescriptor
pub(crate) const UUID: Field = 1;
pub(crate) const NAME_OF_TRACK: Field = 2;
pub(crate) const PROCESS: Field = 3;
pub(crate) const THREAD: Field = 4;
pub(crate) const PARENT: Field = 5;
pub(crate) const COUNTER: Field = 8;
pub(crate) const STATIC_NAME: Field = 10;
pub(crate) const DESCRIPTION: Field = 14;
pub(crate) const PID: Field = 1;
pub(crate) const TID: Field = 2;
pub(crate) const UNIT_MULTIPLIER: Field = 4;
pub(crate) const IS_INCREMENTAL: Field = 5;
pub(crate) const THREAD_NAME: Field = 5;
pub(crate) const PROCESS_NAME: Field = 6;
// TrackEvent
pub(crate) const CATEGORY_IDS: Field = 3;
pub(crate) const DEBUG_ANNOTATIONS: Field = 4;
pub(crate) const TYPE: Field = 9;
pub(crate) const NAME_ID: Field = 10;
pub(crate) const TRACK_UUID: Field = 11;
pub(crate) const CATEGORIES: Field = 22;
pub(crate) const NAME: Field = 23;
pub(crate) const LEGACY: Field = 6;
pub(crate) const INTEGER_VALUE: Field = 30;
pub(crate) const OLD_FLOW_IDS: Field = 36;
pub(crate) const OLD_TERMINATING_FLOW_IDS: Field = 42;
pub(crate) const CORRELATION: Field = 52;
pub(crate) const DOUBLE_VALUE: Field = 44;
pub(crate) const FLOW_IDS: Field = 47;
pub(crate) const TERMINATING_FLOW_IDS: Field = 48;
pub(crate) const SLICE_BEGIN: u64 = 1;
pub(crate) const SLICE_END: u64 = 2;
pub(crate) const INSTANT: u64 = 3;
pub(crate) const COUNTER_SAMPLE: u64 = 4;
// TrackEvent.LegacyEvent
pub(crate) const LEGACY_PHASE: Field = 2;
pub(crate) const LEGACY_DURATION_US: Field = 3;
pub(crate) const LEGACY_ID: Field = 6;
pub(crate) const LEGACY_LOCAL_ID: Field = 10;
pub(crate) const LEGACY_GLOBAL_ID: Field = 11;
pub(crate) const BIND_TO_ENCLOSING: Field = 12;
// ChromeEventBundle, ChromeMetadata
pub(crate) const CHROME_METADATA: Field = 2;
pub(crate) const METADATA_NAME: Field = 1;
pub(crate) const METADATA_TEXT: Field = 2;
pub(crate) const METADATA_BOOLEAN: Field = 3;
pub(crate) const METADATA_INTEGER: Field = 4;
pub(crate) const METADATA_JSON: Field = 5;
// TracePacketDefaults
pub(crate) const TRACK_EVENT_DEFAULTS: Field = 11;
// ClockSnapshot, ClockSnapshot.Clock
pub(crate) const CLOCKS: Field = 1;
pub(crate) const CLOCK_ID: Field = 1;
pub(crate) const CLOCK_TIME: Field = 2;
pub(crate) const CLOCK_IS_INCREMENTAL: Field = 3;
pub(crate) const CLOCK_UNIT_NS: Field = 4;
/// The clock of the trace, unless another one is given.
pub(crate) const BOOT_TIME: u64 = 6;
/// Clocks with this id or a larger one belong to one sequence.
pub(crate) const FIRST_CLOCK_OF_SEQUENCE: u64 = 64;
// GpuRenderStageEvent, its ExtraData and ComputeKernelLaunch, Dim3
pub(crate) const STAGE_DURATION: Field = 2;
pub(crate) const HARDWARE_QUEUE: Field = 3;
pub(crate) const EXTRA_DATA: Field = 6;
pub(crate) const GPU: Field = 11;
pub(crate) const HARDWARE_QUEUE_ID: Field = 13;
pub(crate) const STAGE_ID: Field = 14;
pub(crate) const NAME_OF_STAGE: Field = 17;
pub(crate) const KERNEL_ID: Field = 19;
pub(crate) const NAME_OF_STAGE_ID: Field = 20;
pub(crate) const LAUNCH: Field = 21;
pub(crate) const EXTRA_NAME: Field = 1;
pub(crate) const EXTRA_VALUE: Field = 2;
pub(crate) const GRID_SIZE: Field = 1;
pub(crate) const WORKGROUP_SIZE: Field = 2;
pub(crate) const DIMENSION_X: Field = 1;
pub(crate) const DIMENSION_Z: Field = 3;
// GpuCounterEvent, its GpuCounter, GpuCounterDescriptor, its GpuCounterSpec,
// InternedGpuCounterDescriptor
pub(crate) const COUNTERS_OF_EVENT: Field = 1;
pub(crate) const SAMPLES: Field = 2;
pub(crate) const GPU_OF_EVENT: Field = 3;
pub(crate) const COUNTERS_ID: Field = 4;
pub(crate) const COUNTER_ID: Field = 1;
pub(crate) const INTEGER_SAMPLE: Field = 2;
pub(crate) const DOUBLE_SAMPLE: Field = 3;
pub(crate) const COUNTER_SPECS: Field = 1;
pub(crate) const COUNTER_NAME: Field = 2;
pub(crate) const INTERNED_COUNTERS: Field = 2;
pub(crate) const INTERNED_GPU: Field = 3;
// DebugAnnotation
pub(crate) const ANNOTATION_NAME_ID: Field = 1;
pub(crate) const BOOLEAN: Field = 2;
pub(crate) const UNSIGNED: Field = 3;
pub(crate) const DOUBLE: Field = 5;
pub(crate) const POINTER: Field = 7;
pub(crate) const JSON: Field = 9;
pub(crate) const ENTRIES: Field = 11;
pub(crate) const VALUES: Field = 12;
pub(crate) const TEXT_ID: Field = 17;
pub(crate) const INTEGER: Field = 4;
pub(crate) const TEXT: Field = 6;
pub(crate) const NAME_OF_ANNOTATION: Field = 10;
// The sequence of traces that longpole writes, the argument for the kind of events whose category
// does not imply it, and the argument for a duration that has no end event.
pub(crate) const TRACE_SEQUENCE: u64 = 0x10_9b01d;
pub(crate) const KIND: &str = "longpole.kind";
pub(crate) const DURATION: &str = "longpole.duration_ns";
// longpole's sequence for slices that repeat a critical path and are not events of the program.
pub(crate) const OVERLAY_SEQUENCE: u64 = 0x10_9b01e;
pub(crate) const PATH_SEQUENCE: u64 = 0x10_9b020;
