use super::NO_INTEGER;
use crate::ids::{EventId, InColumn, LaneId, StringId};

/// Declares the kinds of event with the name each has outside.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// What an event is, whichever profiler wrote it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum EventKind { $($(#[$doc])* $kind,)* }

        impl EventKind {
            /// Every kind, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Its name in columns and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// An operator on the CPU.
    Operator "operator",
    /// A function of the Python program.
    Python "python",
    /// A call into the CUDA or HIP runtime.
    Runtime "runtime",
    /// A call into the driver below the runtime.
    Driver "driver",
    /// A named range on the CPU side, as `record_function` and `ProfilerStep` make.
    Annotation "annotation",
    /// A kernel on the device.
    Kernel "kernel",
    /// A copy to, from or on a device.
    Copy "copy",
    /// A fill of device memory.
    Fill "fill",
    /// A named range on the device side, spanning the kernels launched inside.
    DeviceAnnotation "device_annotation",
    /// A record of who waited for whom on a device.
    Synchronization "synchronization",
    /// A range over which performance counters were read.
    CounterRange "counter_range",
    /// Time the profiler itself took.
    Overhead "overhead",
    /// The frame the profiler draws around all it recorded.
    Span "span",
    /// A point in time.
    Instant "instant",
    /// Anything else.
    Other "other",
}

impl EventKind {
    /// The kind that a category of a profiler stands for.
    ///
    /// The names are those of libkineto's `ActivityType` (CUDA, HIP, XPU, MTIA)
    /// and of older versions of it.
    pub fn of_category(category: &str) -> Self {
        match category {
            "cpu_op" | "Operator" | "operator" => Self::Operator,
            "python_function" => Self::Python,
            "kernel" | "Kernel" | "mtia_ccp_events" | "hpu_op" => Self::Kernel,
            "gpu_memcpy" | "Memcpy" => Self::Copy,
            "gpu_memset" | "Memset" => Self::Fill,
            "user_annotation" => Self::Annotation,
            "gpu_user_annotation" => Self::DeviceAnnotation,
            "cuda_sync" => Self::Synchronization,
            "cuda_profiler_range" => Self::CounterRange,
            "overhead" => Self::Overhead,
            "Trace" => Self::Span,
            "cpu_instant_event" => Self::Instant,
            "Runtime" => Self::Runtime,
            _ if category.ends_with("_runtime") => Self::Runtime,
            _ if category.ends_with("_driver") => Self::Driver,
            _ => Self::Other,
        }
    }

    /// Whether it keeps a stream of a device busy.
    pub fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Fill)
    }

    /// Whether it stands on a stream of a device rather than on a thread.
    pub fn is_on_device(self) -> bool {
        self.is_device_work() || matches!(self, Self::DeviceAnnotation | Self::Synchronization)
    }

    /// Whether it may launch work on a device.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver)
    }

    /// Whether it takes part in the nesting of a thread.
    pub fn is_on_thread(self) -> bool {
        matches!(
            self,
            Self::Operator
                | Self::Python
                | Self::Runtime
                | Self::Driver
                | Self::Annotation
                | Self::Other
        )
    }
}

/// One event, as the reader appends it.
#[derive(Debug, Clone, Copy)]
pub struct EventRow {
    /// What it is.
    pub kind: EventKind,
    /// What the profiler called that.
    pub category: Option<StringId>,
    /// Its name.
    pub name: Option<StringId>,
    /// Where it happened.
    pub lane: LaneId,
    /// When it began.
    pub start_ns: i64,
    /// How long it took; none for instants and what never ended.
    pub duration_ns: Option<i64>,
    /// The number that a call and what it launched have in common.
    pub correlation: Option<i64>,
    /// The number that the profiler of the framework gave to its operator.
    pub external_id: Option<i64>,
    /// Its place among the elements of the event list.
    pub position: u32,
}

/// The events of one trace that have a place in time, in the order of the file.
///
/// Written once, by the reader, and never changed after.
#[derive(Debug, Clone, Default)]
pub struct EventTable {
    kind: Vec<u8>,
    category: Vec<u32>,
    name: Vec<u32>,
    lane: Vec<u32>,
    start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    correlation: Vec<i64>,
    external_id: Vec<i64>,
    position: Vec<u32>,
}

impl EventTable {
    /// Appends an event and returns its handle.
    pub fn push(&mut self, row: &EventRow) -> EventId {
        let id = EventId::from_row(self.kind.len());
        self.kind.push(row.kind as u8);
        self.category.push(row.category.in_column());
        self.name.push(row.name.in_column());
        self.lane.push(Some(row.lane).in_column());
        self.start_ns.push(row.start_ns);
        self.duration_ns.push(row.duration_ns.unwrap_or(NO_INTEGER));
        self.correlation.push(row.correlation.unwrap_or(NO_INTEGER));
        self.external_id.push(row.external_id.unwrap_or(NO_INTEGER));
        self.position.push(row.position);
        id
    }

    /// The reader found the end of a begin event.
    pub(crate) fn close(&mut self, event: EventId, end_ns: i64) {
        self.duration_ns[event.row()] = end_ns.saturating_sub(self.start_ns[event.row()]);
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether the trace held no event.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Every handle, in the order of the file.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = EventId> {
        (0..self.len()).map(EventId::from_row)
    }

    /// What the event is.
    pub fn kind(&self, event: EventId) -> EventKind {
        EventKind::ALL[usize::from(self.kind[event.row()])]
    }

    /// What the profiler called its kind.
    pub fn category(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.category[event.row()])
    }

    /// Its name.
    pub fn name(&self, event: EventId) -> Option<StringId> {
        StringId::from_column(self.name[event.row()])
    }

    /// Where it happened.
    pub fn lane(&self, event: EventId) -> LaneId {
        LaneId::from_row(self.lane[event.row()] as usize)
    }

    /// When it began.
    pub fn start_ns(&self, event: EventId) -> i64 {
        self.start_ns[event.row()]
    }

    /// How long it took. None for instants and for what never ended.
    pub fn duration_ns(&self, event: EventId) -> Option<i64> {
        some(self.duration_ns[event.row()])
    }

    /// When it ended: none without a duration, with a negative one, or beyond
    /// what 64 bits hold.
    pub fn end_ns(&self, event: EventId) -> Option<i64> {
        let duration = self.duration_ns(event).filter(|&duration| duration >= 0)?;
        self.start_ns(event).checked_add(duration)
    }

    /// When it began and ended, where both are known and in order.
    pub fn span(&self, event: EventId) -> Option<(i64, i64)> {
        Some((self.start_ns(event), self.end_ns(event)?))
    }

    /// The number that a runtime call and what it launched have in common.
    /// Zero means "none" to the profilers, but is kept as they wrote it.
    pub fn correlation(&self, event: EventId) -> Option<i64> {
        some(self.correlation[event.row()])
    }

    /// The number that the framework gave to the operator around it.
    pub fn external_id(&self, event: EventId) -> Option<i64> {
        some(self.external_id[event.row()])
    }

    /// Its place among the elements of the event list of the file.
    pub fn position(&self, event: EventId) -> u32 {
        self.position[event.row()]
    }

    /// The column of kinds, as [`EventKind::ALL`] counts them.
    pub fn kinds(&self) -> &[u8] {
        &self.kind
    }

    /// The column of categories, [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn categories(&self) -> &[u32] {
        &self.category
    }

    /// The column of names, [`NO_ROW`](crate::ids::NO_ROW) for none.
    pub fn names(&self) -> &[u32] {
        &self.name
    }

    /// The column of lanes.
    pub fn lanes(&self) -> &[u32] {
        &self.lane
    }

    /// The column of starts.
    pub fn starts_ns(&self) -> &[i64] {
        &self.start_ns
    }

    /// The column of durations, [`NO_INTEGER`] for none.
    pub fn durations_ns(&self) -> &[i64] {
        &self.duration_ns
    }

    /// The column of correlations, [`NO_INTEGER`] for none.
    pub fn correlations(&self) -> &[i64] {
        &self.correlation
    }

    /// The column of external ids, [`NO_INTEGER`] for none.
    pub fn external_ids(&self) -> &[i64] {
        &self.external_id
    }

    /// The column of positions.
    pub fn positions(&self) -> &[u32] {
        &self.position
    }
}

fn some(value: i64) -> Option<i64> {
    (value != NO_INTEGER).then_some(value)
}
