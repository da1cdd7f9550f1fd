//! The kind of an event, derived from the category that its profiler assigned.
//!
//! Every profiler has its own names for the same few kinds of events. The table below contains
//! those of libkineto (CUDA, HIP, XPU, MTIA, Gaudi and other back ends) in all versions, and of
//! `torch_npu`. `ascend` handles events of an Ascend profile without a category.
//!
//! Limits: a category that is not listed becomes [`EventKind::Other`], which is nested on its
//! thread and otherwise ignored.

use crate::names::named;

named! {
    /// The kind of an event, independent of the profiler.
    EventKind {
        /// An operator on the CPU.
        Operator "operator",
        /// A Python function of the program.
        Python "python",
        /// A CUDA or HIP runtime API call.
        Runtime "runtime",
        /// A driver API call.
        Driver "driver",
        /// A named range on the host, from `record_function` or `ProfilerStep`.
        Annotation "annotation",
        /// A kernel on the device.
        Kernel "kernel",
        /// A memcpy to, from or on a device.
        Copy "copy",
        /// A memset of device memory.
        Fill "fill",
        /// A named range on the device that spans the kernels launched inside.
        DeviceAnnotation "device_annotation",
        /// A synchronization record: which call or stream waited for which.
        Synchronization "synchronization",
        /// A range for which performance counters were read.
        CounterRange "counter_range",
        /// A part of a collective, or a mark on a stream that takes no device time.
        DeviceTask "device_task",
        /// A result that the profiler computed from other events, on a separate track.
        Derived "derived",
        /// Time of the profiler itself.
        Overhead "overhead",
        /// The span of the whole recording.
        Span "span",
        /// A point in time.
        Instant "instant",
        /// Anything else.
        Other "other",
    }
}

/// The category of operators up to PyTorch 1.9.
const OLD: &str = "Operator";

/// Categories by name: current ones, and with a capital letter those up to PyTorch 1.9.
const CATEGORIES: &[(&str, EventKind)] = &[
    ("cpu_op", EventKind::Operator),
    (OLD, EventKind::Operator),
    ("operator", EventKind::Operator),
    ("python_function", EventKind::Python),
    ("kernel", EventKind::Kernel),
    ("Kernel", EventKind::Kernel),
    ("mtia_ccp_events", EventKind::Kernel),
    ("hpu_op", EventKind::Kernel),
    ("cuda_graph", EventKind::Kernel),
    ("gpu_memcpy", EventKind::Copy),
    ("Memcpy", EventKind::Copy),
    ("gpu_memset", EventKind::Fill),
    ("Memset", EventKind::Fill),
    ("enqueue", EventKind::Operator),
    ("dequeue", EventKind::Operator),
    ("user_annotation", EventKind::Annotation),
    ("gpu_user_annotation", EventKind::DeviceAnnotation),
    ("cuda_sync", EventKind::Synchronization),
    ("cuda_profiler_range", EventKind::CounterRange),
    ("overhead", EventKind::Overhead),
    ("Trace", EventKind::Span),
    ("cpu_instant_event", EventKind::Instant),
    ("Runtime", EventKind::Runtime),
    // rocprofv3, and the render stages of a GPU in Perfetto.
    ("kernel_dispatch", EventKind::Kernel),
    ("memory_copy", EventKind::Copy),
    ("hip_api", EventKind::Runtime),
    ("hsa_api", EventKind::Driver),
    ("rccl_api", EventKind::Operator),
    ("marker_api", EventKind::Annotation),
    ("gpu_render_stage", EventKind::Kernel),
    // rocprofiler-systems, and Omnitrace before it.
    ("rocm_kernel_dispatch", EventKind::Kernel),
    ("rocm_memory_copy", EventKind::Copy),
    ("rocm_hip_api", EventKind::Runtime),
    ("rocm_hip_stream", EventKind::DeviceAnnotation),
    ("rocm_hsa_api", EventKind::Driver),
    ("rocm_marker_api", EventKind::Annotation),
    ("rocm_rccl_api", EventKind::Operator),
    ("rocm_rccl", EventKind::Operator),
    ("rocm_hip", EventKind::Runtime),
    ("rocm_hsa", EventKind::Driver),
    ("rocm_roctx", EventKind::Annotation),
    ("device_hip", EventKind::Kernel),
    // Nodes of CUDA graphs that record an event or call the host, of PyTorch.
    ("graph_event_node", EventKind::DeviceTask),
    ("graph_host_node", EventKind::DeviceTask),
    // unitrace of Intel.
    ("gpu_op", EventKind::Kernel),
];

/// Suffixes of categories, as in `cuda_runtime` and `privateuse1_driver`.
const ENDINGS: &[(&str, EventKind)] =
    &[("_runtime", EventKind::Runtime), ("_driver", EventKind::Driver)];

/// Events whose kind differs from that of their category, by the start of the name: up to PyTorch
/// 1.9 annotations had the category of operators, MTIA lists waits and copies as kernels, and
/// unitrace all Level Zero commands.
const EXCEPTIONS: &[(&str, &str, EventKind)] = &[
    (OLD, "ProfilerStep#", EventKind::Annotation),
    (OLD, "enumerate(DataLoader)#", EventKind::Annotation),
    (OLD, "Optimizer.", EventKind::Annotation),
    ("mtia_ccp_events", "event_wait", EventKind::Synchronization),
    ("mtia_ccp_events", "dma_request", EventKind::Copy),
    ("gpu_op", "zeCommandListAppendMemoryCopy", EventKind::Copy),
    ("gpu_op", "zeCommandListAppendMemoryFill", EventKind::Fill),
    ("gpu_op", "zeCommandListAppend", EventKind::DeviceTask),
    ("device_hip", "Copy", EventKind::Copy),
    ("device_hip", "Fill", EventKind::Fill),
];

impl EventKind {
    /// Returns the kind of a category.
    pub fn of_category(category: &str) -> Self {
        let is_named = |&&(name, _): &&(&str, Self)| name == category;
        let ends_so = |&&(ending, _): &&(&str, Self)| category.ends_with(ending);
        let found = CATEGORIES.iter().find(is_named).or_else(|| ENDINGS.iter().find(ends_so));
        found.map_or(Self::Other, |&(_, kind)| kind)
    }

    /// Returns the kinds of events of a category that depend on the start of their names.
    pub fn exceptions(category: &str) -> impl Iterator<Item = (&'static str, Self)> + use<'_> {
        EXCEPTIONS.iter().filter(move |row| row.0 == category).map(|&(_, name, kind)| (name, kind))
    }

    /// Whether a category is that of all thread events up to PyTorch 1.9.
    pub fn is_old_category(category: &str) -> bool {
        category == OLD
    }

    /// Whether it is a GPU activity, which keeps a stream busy.
    pub fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Fill)
    }

    /// Whether it is on a device stream rather than on a thread.
    pub fn is_on_device(self) -> bool {
        self.is_device_work()
            || matches!(self, Self::DeviceAnnotation | Self::Synchronization | Self::DeviceTask)
    }

    /// Whether it may launch GPU activities.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver)
    }

    /// Whether it is nested on a thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_of_any_vendor_is_known() {
        for (category, kind) in [
            ("cpu_op", EventKind::Operator),
            ("cuda_runtime", EventKind::Runtime),
            ("xpu_runtime", EventKind::Runtime),
            ("privateuse1_driver", EventKind::Driver),
            ("Memset", EventKind::Fill),
            ("ac2g", EventKind::Other),
        ] {
            assert_eq!(EventKind::of_category(category), kind, "{category}");
        }
    }

    #[test]
    fn no_category_is_listed_twice() {
        for (row, (name, _)) in CATEGORIES.iter().enumerate() {
            assert!(CATEGORIES[row + 1..].iter().all(|(other, _)| other != name), "{name}");
        }
    }

    #[test]
    fn some_events_are_known_by_name() {
        let kind = |category, name: &str| {
            EventKind::exceptions(category)
                .find(|(begin, _)| name.starts_with(begin))
                .map_or(EventKind::of_category(category), |(_, kind)| kind)
        };
        assert_eq!(kind("Operator", "Optimizer.step#SGD.step"), EventKind::Annotation);
        assert_eq!(kind("Operator", "aten::add"), EventKind::Operator);
        assert_eq!(kind("cpu_op", "Optimizer.step#SGD.step"), EventKind::Operator);
        assert_eq!(kind("mtia_ccp_events", "event_wait"), EventKind::Synchronization);
        assert_eq!(kind("mtia_ccp_events", "dma_request"), EventKind::Copy);
        assert_eq!(kind("mtia_ccp_events", "fused_add"), EventKind::Kernel);
    }
}
