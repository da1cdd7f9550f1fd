//! What an event is, by the category its profiler gave it.
//!
//! Every profiler has its own names for the same few kinds of event. The table below
//! holds those of libkineto (CUDA, HIP, XPU, MTIA, Gaudi and back ends of others) in all
//! its versions, and of `torch_npu`. Events of an Ascend profile that have none are told apart
//! in `ascend`.
//!
//! Limits: a category that is not listed becomes [`EventKind::Other`], which takes part in
//! the nesting of its thread and in nothing else.

use crate::names::named;

named! {
    /// What an event is, whichever profiler wrote it.
    EventKind {
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
        /// A part of a collective, or a mark on a stream that takes the device no time.
        DeviceTask "device_task",
        /// What the profiler computed from other events, shown as a track of its own.
        Derived "derived",
        /// Time the profiler itself took.
        Overhead "overhead",
        /// The frame the profiler draws around all it recorded.
        Span "span",
        /// A point in time.
        Instant "instant",
        /// Anything else.
        Other "other",
    }
}

/// The category of operators until torch 1.9.
const OLD: &str = "Operator";

/// Categories by name: of today, and with a capital letter those until torch 1.9.
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

/// Endings of categories, as in `cuda_runtime` and `privateuse1_driver`.
const ENDINGS: &[(&str, EventKind)] =
    &[("_runtime", EventKind::Runtime), ("_driver", EventKind::Driver)];

/// Events that are something else than their category says, by the beginning of the name:
/// until torch 1.9 annotations had the category of operators, MTIA lists waits and
/// copies among its kernels, and unitrace all commands of Level Zero.
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
    /// The kind that a category of a profiler stands for.
    pub fn of_category(category: &str) -> Self {
        let is_named = |&&(name, _): &&(&str, Self)| name == category;
        let ends_so = |&&(ending, _): &&(&str, Self)| category.ends_with(ending);
        let found = CATEGORIES.iter().find(is_named).or_else(|| ENDINGS.iter().find(ends_so));
        found.map_or(Self::Other, |&(_, kind)| kind)
    }

    /// The kinds that events of a category have by the beginning of their names.
    pub fn exceptions(category: &str) -> impl Iterator<Item = (&'static str, Self)> + use<'_> {
        EXCEPTIONS.iter().filter(move |row| row.0 == category).map(|&(_, name, kind)| (name, kind))
    }

    /// Whether a category is that of all work on threads until torch 1.9.
    pub fn is_old_category(category: &str) -> bool {
        category == OLD
    }

    /// Whether it keeps a stream of a device busy.
    pub fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Fill)
    }

    /// Whether it stands on a stream of a device rather than on a thread.
    pub fn is_on_device(self) -> bool {
        self.is_device_work()
            || matches!(self, Self::DeviceAnnotation | Self::Synchronization | Self::DeviceTask)
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
