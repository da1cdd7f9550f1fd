//! The meaning of processes, threads and tasks of an Ascend profile, by name.
//!
//! msprof, and the profilers of PyTorch and MindSpore that embed it, write timelines in which most
//! events have no category. The name of the process identifies the layer, that of the thread the
//! track, and the argument `Task Type` the task on a stream.
//!
//! Limits: a task type that is not listed is [`TaskKind::Unknown`]. It does not count as a GPU
//! activity, and is reported.

use super::ApiRole;
use crate::names::named;

/// A layer of an Ascend profile, represented as a process in the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The streams of a device.
    Hardware,
    /// The collectives of a device and their tasks.
    Communication,
    /// Calls to the runtime and the libraries above it.
    Cann,
    /// Operators on the CPU.
    HostOperators,
    /// The program, with the framework.
    Framework,
    /// Results that the profiler computed from the other layers.
    Derived,
}

/// Layers by the names of their processes.
const LAYERS: &[(&str, Layer)] = &[
    ("Ascend Hardware", Layer::Hardware),
    ("HCCL", Layer::Communication),
    ("Communication", Layer::Communication),
    ("CANN", Layer::Cann),
    ("CPU OP", Layer::HostOperators),
    ("Host CPU OP", Layer::HostOperators),
    ("Python", Layer::Framework),
    ("MindSpore", Layer::Framework),
    ("Overlap Analysis", Layer::Derived),
    ("Scope Layer", Layer::Derived),
    ("Step Trace", Layer::Derived),
];

named! {
    /// A profiler, distinguished as far as its options differ from those of others.
    Profiler {
        /// `torch.profiler` and compatible profilers.
        Torch "torch",
        /// `torch.profiler` on ROCm.
        TorchRocm "torch_rocm",
        /// `torch.profiler` on Intel GPUs.
        TorchXpu "torch_xpu",
        /// `torch.profiler` with unknown GPUs, or without GPUs.
        TorchUnknown "torch_unknown",
        /// `torch_npu.profiler`.
        TorchNpu "torch_npu",
        /// `mindspore.profiler` and the older `mindspore.Profiler`.
        MindSpore "mindspore",
        /// Standalone msprof.
        Msprof "msprof",
        /// Nsight Systems.
        Nsys "nsys",
        /// rocprofv3.
        Rocprofv3 "rocprofv3",
        /// rocmProfileData.
        Rpd "rpd",
        /// `XProf`, the profiler of JAX and `TensorFlow`.
        XProf "xprof",
    }
}

impl Profiler {
    /// Returns the profiler that writes a process of this name into an Ascend profile, if only one
    /// does.
    pub fn of_process(name: &str) -> Option<Self> {
        match name {
            "Python" => Some(Self::TorchNpu),
            "MindSpore" | "CPU OP" | "Host CPU OP" | "Scope Layer" => Some(Self::MindSpore),
            _ => None,
        }
    }

    /// Returns the profiler that writes files of a format, if only one does.
    pub fn of_format(format: &str) -> Option<Self> {
        match format {
            "nsight-sqlite" => Some(Self::Nsys),
            "rocpd" | "rocprofv3-json" | "rocprofv3-csv" | "rocprof-json" | "rocprof-csv" => {
                Some(Self::Rocprofv3)
            }
            "rpd" => Some(Self::Rpd),
            "xprof-json" | "xplane" => Some(Self::XProf),
            _ => None,
        }
    }

    /// Returns the PyTorch profiler that writes a header field of this name.
    pub fn of_field(name: &str) -> Option<Self> {
        match name {
            "cuda_runtime_version" | "cuda_driver_version" | "cupti_version" => Some(Self::Torch),
            "hip_runtime_version" | "hip_driver_version" | "roctracer_version" => {
                Some(Self::TorchRocm)
            }
            _ => None,
        }
    }

    /// Returns the PyTorch profiler for the vendor of a runtime API call of this name.
    pub fn of_call(name: &str) -> Option<Self> {
        let of_prefix = [
            ("cu", Self::Torch),
            ("hip", Self::TorchRocm),
            ("ur", Self::TorchXpu),
            ("pi", Self::TorchXpu),
            ("ze", Self::TorchXpu),
        ];
        let (_, found) = of_prefix.into_iter().find(|(prefix, _)| name.starts_with(prefix))?;
        (ApiRole::of_name(name) != ApiRole::Other).then_some(found)
    }
}

/// A track of the collective layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectiveTrack {
    /// Complete collectives of one group.
    Operations,
    /// The tasks of collectives on one of their streams.
    Tasks,
}

/// The effect of a task on a device stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// Computes.
    Compute,
    /// Moves data.
    Copy,
    /// Waits for an event or a notification.
    Wait,
    /// Records an event, notifies, or is a mark of the profiler.
    Mark,
    /// Determined by its name, because the profiler has no name for its type.
    Unnamed,
    /// Unknown type.
    Unknown,
}

/// Tasks by type, in capital letters with `_` for spaces and without `_SQE`.
const TASKS: &[(&str, TaskKind)] = &[
    ("AI_CORE", TaskKind::Compute),
    ("AI_VECTOR_CORE", TaskKind::Compute),
    ("AIV", TaskKind::Compute),
    ("AIC", TaskKind::Compute),
    ("MIX_AIC", TaskKind::Compute),
    ("MIX_AIV", TaskKind::Compute),
    ("MIX_AICORE", TaskKind::Compute),
    ("MIX_VECTOR_CORE", TaskKind::Compute),
    ("AI_CPU", TaskKind::Compute),
    ("AICPU", TaskKind::Compute),
    ("DSA", TaskKind::Compute),
    ("DVPP", TaskKind::Compute),
    ("VPC", TaskKind::Compute),
    ("KERNEL_AICORE", TaskKind::Compute),
    ("KERNEL_AIVEC", TaskKind::Compute),
    ("KERNEL_AICPU", TaskKind::Compute),
    ("KERNEL_MIX_AIC", TaskKind::Compute),
    ("KERNEL_MIX_AIV", TaskKind::Compute),
    ("MEMCPY_ASYNC", TaskKind::Copy),
    ("PCIE_DMA", TaskKind::Copy),
    ("SDMA", TaskKind::Copy),
    ("RDMA", TaskKind::Copy),
    ("REDUCE_ASYNC", TaskKind::Copy),
    ("REDUCE_ASYNC_V2", TaskKind::Copy),
    ("EVENT_WAIT", TaskKind::Wait),
    ("NOTIFY_WAIT", TaskKind::Wait),
    ("EVENT_RECORD", TaskKind::Mark),
    ("EVENT_RESET", TaskKind::Mark),
    ("NOTIFY_RECORD", TaskKind::Mark),
    ("WRITE_VALUE", TaskKind::Mark),
    ("WRITE_VALUE_WITH_NOTIFY", TaskKind::Mark),
    ("PLACE_HOLDER", TaskKind::Mark),
    ("PROFILING_ENABLE", TaskKind::Mark),
    ("PROFILING_DISABLE", TaskKind::Mark),
    ("PROFILER_TRACE_EX", TaskKind::Mark),
    ("MODEL_MAINTAINCE", TaskKind::Mark),
    ("MODEL_EXECUTE", TaskKind::Mark),
    ("STREAM_ACTIVE", TaskKind::Mark),
    ("STREAM_SWITCH", TaskKind::Mark),
    ("LABEL_SET", TaskKind::Mark),
    ("LABEL_SWITCH", TaskKind::Mark),
    ("CMO", TaskKind::Mark),
    ("FFTS_PLUS", TaskKind::Mark),
    ("OTHER", TaskKind::Unnamed),
];

/// The category of device ranges that are iterations of the program.
const ITERATION: &str = "Iteration Time";

/// Categories of the profiler's summary of an iteration.
const SUMMARIES: &[&str] = &["FP_BP Time", "Iteration Refresh", "Reduce", "Data_aug Bound"];

impl Layer {
    /// Returns the layer of a process with this name, if any.
    pub fn of_process(name: &str) -> Option<Self> {
        LAYERS.iter().find(|(its, _)| *its == name).map(|&(_, layer)| layer)
    }

    /// Whether only Ascend or MindSpore profiles have a process of this name; other names are
    /// common words.
    pub fn is_telling(self, name: &str) -> bool {
        !matches!(self, Self::Framework) && name != "Communication"
    }
}

impl CollectiveTrack {
    /// Returns the track of a thread with this name, in a process of collectives.
    pub fn of_thread(name: &str) -> Option<Self> {
        let is_operations = name == "Communication Kernel" || name.ends_with(" Communication");
        if is_operations {
            return Some(Self::Operations);
        }
        name.starts_with("Plane").then_some(Self::Tasks)
    }
}

impl TaskKind {
    /// Returns the effect of tasks of this type; for a task without a type, its name is used.
    pub fn of_type(word: &str) -> Self {
        let upper: String = word.trim().to_ascii_uppercase().replace(' ', "_");
        let word = upper.strip_suffix("_SQE").unwrap_or(&upper);
        TASKS.iter().find(|(its, _)| *its == word).map_or(Self::Unknown, |&(_, kind)| kind)
    }
}

/// The meaning of a range with its own category on an Ascend device track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceRange {
    /// One iteration of the program.
    Iteration,
    /// A part of an iteration, as computed by the profiler.
    Summary,
}

impl DeviceRange {
    /// Returns the meaning of a category, if it is a category of ranges on a device track.
    pub fn of_category(category: &str) -> Option<Self> {
        if category == ITERATION {
            return Some(Self::Iteration);
        }
        SUMMARIES.contains(&category).then_some(Self::Summary)
    }
}

/// Returns the group, and the number within it, in the name that HCCL gives to a collective:
/// `hcom_allReduce__586_3_1` is number 3 of the group whose number ends in 586.
pub fn hccl_number(name: &str) -> Option<(&str, i64)> {
    let (_, numbers) = name.strip_prefix("hcom_")?.split_once("__")?;
    let mut numbers = numbers.split('_');
    let (group, number) = (numbers.next()?, numbers.next()?);
    let is_group = !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    is_group.then_some((group, number.parse().ok()?))
}

/// Returns the stream in the name of a thread (`Stream 4`).
pub fn stream_number(thread: &str) -> Option<i64> {
    thread.strip_prefix("Stream ")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_tasks_are_known_in_every_spelling() {
        for (word, kind) in [
            ("AI_CORE", TaskKind::Compute),
            ("DSA_SQE", TaskKind::Compute),
            ("PCIE_DMA_SQE", TaskKind::Copy),
            ("Notify Wait", TaskKind::Wait),
            ("NOTIFY_WAIT", TaskKind::Wait),
            ("EVENT_WAIT_SQE", TaskKind::Wait),
            ("Write Value", TaskKind::Mark),
            ("PLACE_HOLDER_SQE", TaskKind::Mark),
            ("Other", TaskKind::Unnamed),
            ("QUANTUM_CORE", TaskKind::Unknown),
        ] {
            assert_eq!(TaskKind::of_type(word), kind, "{word}");
        }
    }

    #[test]
    fn names_of_collectives_give_their_group_and_number() {
        assert_eq!(hccl_number("hcom_allReduce__586_3_1"), Some(("586", 3)));
        assert_eq!(hccl_number("hcom_broadcast__1_0"), Some(("1", 0)));
        for name in ["hcom_allReduce_", "Default/AllReduce-op534_0", "hcom_send__x_1"] {
            assert_eq!(hccl_number(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_of_a_common_name_is_not_telling() {
        let telling = |name: &str| Layer::of_process(name).map(|layer| layer.is_telling(name));
        assert_eq!(telling("Ascend Hardware"), Some(true));
        assert_eq!(telling("Python"), Some(false));
        assert_eq!(telling("Communication"), Some(false));
        assert_eq!(telling("python train.py"), None);
    }
}
