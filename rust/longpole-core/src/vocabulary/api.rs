//! The role of runtime API calls, derived from their names.
//!
//! The interfaces of all vendors use the same verbs after different prefixes: `cuda` and `cu`,
//! `hip`, `musa` and `mu`, `aclrt`, `ze`, `ur`, `pi`. The lower-case prefix is removed, and the
//! beginning of the rest is looked up. Before that, the CANN layer (`AscendCL@`) is removed.
//! Suffixes for versions and streams (`_v2`, `_ptsz`, `_ptds`) therefore need no separate entries.
//! Names without a prefix (MTIA) are listed in full.
//!
//! Limits: a name shows what a call may do, not what it did. The graph determines whether a call
//! that may wait did wait. `cuStreamWaitValue32` and similar calls wait for a value in memory, not
//! for an event; they are [`ApiRole::Other`].

use crate::names::named;

named! {
    /// The role of a runtime API call.
    ApiRole {
        /// Launches a kernel.
        Launch "launch",
        /// Launches a graph of activities at once.
        GraphLaunch "graph_launch",
        /// Enqueues a memcpy or memset and returns.
        Copy "copy",
        /// Copies, and returns when the copy has ended.
        BlockingCopy "blocking_copy",
        /// Waits for one stream.
        StreamSynchronize "stream_synchronize",
        /// Waits for a recorded event.
        EventSynchronize "event_synchronize",
        /// Waits for all streams of a device.
        DeviceSynchronize "device_synchronize",
        /// Records an event on a stream.
        EventRecord "event_record",
        /// Makes a stream wait for an event.
        StreamWait "stream_wait",
        /// Queries whether an activity has ended, and never waits.
        Query "query",
        /// Allocates, reserves, pins or maps memory, or unmaps it.
        Allocate "allocate",
        /// Allocates or frees memory in the order of a stream.
        StreamOrderedAllocate "stream_ordered_allocate",
        /// Frees memory, or unpins it.
        Free "free",
        /// Loads code.
        LoadModule "load_module",
        /// Unloads code, or destroys the context that holds it.
        UnloadModule "unload_module",
        /// Anything else.
        Other "other",
    }
}

/// Whether calls with a role wait for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// They return immediately.
    Never,
    /// They may wait, depending on the state of the device.
    Sometimes,
    /// They wait, unless there is nothing to wait for.
    Always,
}

/// Calls without a prefix, by the start of the name: MTIA, SYCL and Gaudi.
const WHOLE: &[(&str, ApiRole)] = &[
    ("runFunction", ApiRole::Launch),
    ("synchronizeStream", ApiRole::StreamSynchronize),
    ("synchronizeEvent", ApiRole::EventSynchronize),
    ("synchronizeDevice", ApiRole::DeviceSynchronize),
    ("sycl::queue::wait", ApiRole::StreamSynchronize),
    ("sycl::event::wait", ApiRole::EventSynchronize),
];

/// Calls without a prefix, by the complete name.
const EXACT: &[(&str, ApiRole)] =
    &[("synchronize", ApiRole::DeviceSynchronize), ("Launch", ApiRole::Launch)];

/// CANN calls by the complete name after the layer.
const CANN: &[(&str, ApiRole)] = &[
    ("launch", ApiRole::Launch),
    ("KernelLaunch", ApiRole::Launch),
    ("KernelLaunchWithHandle", ApiRole::Launch),
    ("ModelExecute", ApiRole::GraphLaunch),
    ("Infer", ApiRole::GraphLaunch),
];

/// The layers of CANN, which precede the names of its calls: `AscendCL@aclrtMalloc`.
const LAYERS: &[&str] =
    &["AscendCL", "Runtime", "Node", "Model", "Hccl", "HCCL", "Communication", "GE"];

/// Beginnings of names, after the prefix. The first match is used.
const BEHIND_PREFIX: &[(&str, ApiRole)] = &[
    // CUDA, HIP, MUSA
    ("LaunchKernel", ApiRole::Launch),
    ("LaunchCooperativeKernel", ApiRole::Launch),
    ("LaunchByPtr", ApiRole::Launch),
    ("ModuleLaunchKernel", ApiRole::Launch),
    ("ModuleLaunchCooperativeKernel", ApiRole::Launch),
    ("ExtModuleLaunchKernel", ApiRole::Launch),
    ("ExtLaunchKernel", ApiRole::Launch),
    ("ExtLaunchMultiKernel", ApiRole::Launch),
    ("HccModuleLaunchKernel", ApiRole::Launch),
    ("GraphLaunch", ApiRole::GraphLaunch),
    ("DeviceSynchronize", ApiRole::DeviceSynchronize),
    ("CtxSynchronize", ApiRole::DeviceSynchronize),
    ("StreamSynchronize", ApiRole::StreamSynchronize),
    ("EventSynchronize", ApiRole::EventSynchronize),
    ("StreamWaitEvent", ApiRole::StreamWait),
    ("EventRecord", ApiRole::EventRecord),
    ("EventQuery", ApiRole::Query),
    ("StreamQuery", ApiRole::Query),
    ("Memset", ApiRole::Copy),
    ("Memcpy", ApiRole::BlockingCopy),
    ("Malloc", ApiRole::Allocate),
    ("ExtMalloc", ApiRole::Allocate),
    ("HostMalloc", ApiRole::Allocate),
    ("HostAlloc", ApiRole::Allocate),
    ("HostRegister", ApiRole::Allocate),
    ("MemAlloc", ApiRole::Allocate),
    ("MemHostAlloc", ApiRole::Allocate),
    ("MemHostRegister", ApiRole::Allocate),
    ("MemCreate", ApiRole::Allocate),
    ("MemMap", ApiRole::Allocate),
    ("MemUnmap", ApiRole::Allocate),
    ("MemSetAccess", ApiRole::Allocate),
    ("MemRelease", ApiRole::Allocate),
    ("MemAddressReserve", ApiRole::Allocate),
    ("MemAddressFree", ApiRole::Allocate),
    ("FreeArray", ApiRole::Free),
    ("FreeMipmappedArray", ApiRole::Free),
    ("FreeHost", ApiRole::Free),
    ("FreeAsync", ApiRole::Free),
    ("Free", ApiRole::Free),
    ("HostFree", ApiRole::Free),
    ("HostUnregister", ApiRole::Free),
    ("MemFree", ApiRole::Free),
    ("MemHostFree", ApiRole::Free),
    ("MemHostUnregister", ApiRole::Free),
    ("DeviceReset", ApiRole::Free),
    ("ModuleLoad", ApiRole::LoadModule),
    ("ModuleUnload", ApiRole::UnloadModule),
    ("LibraryUnload", ApiRole::UnloadModule),
    ("CtxDestroy", ApiRole::UnloadModule),
    ("LibraryLoad", ApiRole::LoadModule),
    // ACL
    ("SynchronizeDevice", ApiRole::DeviceSynchronize),
    ("SynchronizeStream", ApiRole::StreamSynchronize),
    ("SynchronizeEvent", ApiRole::EventSynchronize),
    ("RecordEvent", ApiRole::EventRecord),
    ("QueryEvent", ApiRole::Query),
    ("QueryStream", ApiRole::Query),
    // Level Zero
    ("CommandListAppendLaunch", ApiRole::Launch),
    ("CommandQueueExecuteCommandLists", ApiRole::Launch),
    ("CommandListAppendMemoryCopy", ApiRole::Copy),
    ("CommandListAppendMemoryFill", ApiRole::Copy),
    ("CommandListAppendWaitOnEvents", ApiRole::StreamWait),
    ("CommandListAppendSignalEvent", ApiRole::EventRecord),
    ("CommandQueueSynchronize", ApiRole::StreamSynchronize),
    ("CommandListHostSynchronize", ApiRole::StreamSynchronize),
    ("EventHostSynchronize", ApiRole::EventSynchronize),
    ("FenceHostSynchronize", ApiRole::EventSynchronize),
    ("FenceQueryStatus", ApiRole::Query),
    ("ModuleCreate", ApiRole::LoadModule),
    ("ModuleDestroy", ApiRole::UnloadModule),
    // Unified Runtime and its predecessor
    ("EnqueueKernelLaunch", ApiRole::Launch),
    ("EnqueueCooperativeKernelLaunch", ApiRole::Launch),
    ("EnqueueCommandBuffer", ApiRole::GraphLaunch),
    ("CommandBufferEnqueue", ApiRole::GraphLaunch),
    ("EnqueueUSM", ApiRole::Copy),
    ("USMEnqueue", ApiRole::Copy),
    ("EnqueueMemBuffer", ApiRole::Copy),
    ("EnqueueEventsWait", ApiRole::StreamWait),
    ("EventWait", ApiRole::EventSynchronize),
    ("EventsWait", ApiRole::EventSynchronize),
    ("QueueFinish", ApiRole::StreamSynchronize),
    ("USMDeviceAlloc", ApiRole::Allocate),
    ("USMHostAlloc", ApiRole::Allocate),
    ("USMSharedAlloc", ApiRole::Allocate),
    ("USMFree", ApiRole::Free),
    ("ProgramBuild", ApiRole::LoadModule),
    ("ProgramLink", ApiRole::LoadModule),
    ("ProgramCreateWith", ApiRole::LoadModule),
];

impl ApiRole {
    /// Returns the role of calls with this name.
    pub fn of_name(name: &str) -> Self {
        if let Some(name) = behind_layer(name) {
            return of_cann(name);
        }
        exact(name).or_else(|| begin_of(name, WHOLE)).unwrap_or_else(|| behind_prefix(name))
    }

    /// Whether calls with this role wait for a device.
    pub fn waiting(self) -> Waiting {
        match self {
            Self::DeviceSynchronize
            | Self::StreamSynchronize
            | Self::EventSynchronize
            | Self::BlockingCopy
            | Self::Free => Waiting::Always,
            Self::Allocate | Self::LoadModule => Waiting::Sometimes,
            _ => Waiting::Never,
        }
    }
}

/// Returns the name after the CANN layer.
fn behind_layer(name: &str) -> Option<&str> {
    let (layer, rest) = name.split_once('@')?;
    LAYERS.contains(&layer).then_some(rest)
}

fn of_cann(name: &str) -> ApiRole {
    let whole = CANN.iter().find(|(its, _)| *its == name).map(|&(_, role)| role);
    whole.unwrap_or_else(|| behind_prefix(name))
}

fn exact(name: &str) -> Option<ApiRole> {
    EXACT.iter().find(|(whole, _)| *whole == name).map(|&(_, role)| role)
}

fn begin_of(name: &str, table: &[(&str, ApiRole)]) -> Option<ApiRole> {
    table.iter().find(|(begin, _)| name.starts_with(begin)).map(|&(_, role)| role)
}

fn behind_prefix(name: &str) -> ApiRole {
    let rest = name.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    let has_prefix = rest.len() < name.len();
    let role = has_prefix.then(|| begin_of(rest, BEHIND_PREFIX)).flatten();
    match role {
        Some(ApiRole::BlockingCopy) if rest.contains("Async") => ApiRole::Copy,
        Some(ApiRole::Allocate | ApiRole::Free) if rest.contains("Async") => {
            ApiRole::StreamOrderedAllocate
        }
        role => role.unwrap_or(ApiRole::Other),
    }
}

/// The interface prefixes listed with every name.
const PREFIXES: [&str; 7] = ["cuda", "cu", "hip", "musa", "aclrt", "ze", "ur"];

/// Returns every known name with its role: complete names unchanged, and names after a prefix with
/// each of the prefixes.
pub fn api_names() -> Vec<(String, ApiRole)> {
    let bare = WHOLE.iter().chain(EXACT).map(|&(name, role)| (name.to_owned(), role));
    let prefixed = |prefix: &'static str| {
        BEHIND_PREFIX.iter().map(move |(stem, _)| {
            let name = format!("{prefix}{stem}");
            let role = ApiRole::of_name(&name);
            (name, role)
        })
    };
    bare.chain(PREFIXES.into_iter().flat_map(prefixed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_known_by_the_name_whoever_made_the_interface() {
        for (name, role) in [
            ("cudaLaunchKernel", ApiRole::Launch),
            ("cudaLaunchKernelExC_v11060", ApiRole::Launch),
            ("cuLaunchKernelEx", ApiRole::Launch),
            ("hipExtModuleLaunchKernel", ApiRole::Launch),
            ("muLaunchKernel", ApiRole::Launch),
            ("urEnqueueKernelLaunchWithArgsExp", ApiRole::Launch),
            ("zeCommandListAppendLaunchKernelWithArguments", ApiRole::Launch),
            ("runFunction - job_prep_and_submit_for_execution", ApiRole::Launch),
            ("cudaLaunchHostFunc", ApiRole::Other),
            ("cudaGraphLaunch_ptsz", ApiRole::GraphLaunch),
            ("cudaMemcpyAsync", ApiRole::Copy),
            ("cuMemcpyHtoDAsync_v2", ApiRole::Copy),
            ("cuMemcpyDtoH_v2", ApiRole::BlockingCopy),
            ("cudaMemcpy2D", ApiRole::BlockingCopy),
            ("hipMemcpyWithStream", ApiRole::BlockingCopy),
            ("cudaMemset", ApiRole::Copy),
            ("cuMemsetD8Async", ApiRole::Copy),
            ("piextUSMEnqueueMemcpy", ApiRole::Copy),
            ("cudaDeviceSynchronize", ApiRole::DeviceSynchronize),
            ("cuCtxSynchronize", ApiRole::DeviceSynchronize),
            ("aclrtSynchronizeDeviceWithTimeout", ApiRole::DeviceSynchronize),
            ("synchronize", ApiRole::DeviceSynchronize),
            ("cudaStreamSynchronize_ptsz", ApiRole::StreamSynchronize),
            ("synchronizeStream", ApiRole::StreamSynchronize),
            ("zeCommandQueueSynchronize", ApiRole::StreamSynchronize),
            ("urQueueFinish", ApiRole::StreamSynchronize),
            ("hipEventSynchronize", ApiRole::EventSynchronize),
            ("piEventsWait", ApiRole::EventSynchronize),
            ("cudaStreamWaitEvent", ApiRole::StreamWait),
            ("cuEventRecord", ApiRole::EventRecord),
            ("aclrtRecordEvent", ApiRole::EventRecord),
            ("AscendCL@aclrtSynchronizeStreamWithTimeout", ApiRole::StreamSynchronize),
            ("AscendCL@aclrtMemcpyAsync", ApiRole::Copy),
            ("AscendCL@aclrtStreamWaitEvent", ApiRole::StreamWait),
            ("AscendCL@aclrtQueryEventStatus", ApiRole::Query),
            ("AscendCL@aclnnMm", ApiRole::Other),
            ("Node@launch", ApiRole::Launch),
            ("Hccl@Launch_Ffts", ApiRole::Other),
            ("dog@launch", ApiRole::Other),
            ("cudaEventQuery", ApiRole::Query),
            ("aclrtQueryEvent", ApiRole::Query),
            ("cudaMalloc", ApiRole::Allocate),
            ("cuMemAlloc_v2", ApiRole::Allocate),
            ("hipHostMalloc", ApiRole::Allocate),
            ("cuMemCreate", ApiRole::Allocate),
            ("zeMemAllocDevice", ApiRole::Allocate),
            ("cudaMallocAsync", ApiRole::StreamOrderedAllocate),
            ("cuMemFreeAsync", ApiRole::StreamOrderedAllocate),
            ("cuMemFree_v2", ApiRole::Free),
            ("cudaFreeHost", ApiRole::Free),
            ("urUSMFree", ApiRole::Free),
            ("cuModuleLoadData", ApiRole::LoadModule),
            ("DeviceSynchronize", ApiRole::Other),
            ("my_DeviceSynchronize", ApiRole::Other),
            ("synchronized", ApiRole::Other),
        ] {
            assert_eq!(ApiRole::of_name(name), role, "{name}");
        }
    }

    #[test]
    fn every_entry_can_be_reached() {
        for (row, (stem, role)) in BEHIND_PREFIX.iter().enumerate() {
            let earlier = &BEHIND_PREFIX[..row];
            let hidden = earlier.iter().find(|(other, its)| stem.starts_with(other) && its != role);
            assert!(hidden.is_none(), "{stem} is hidden by {hidden:?}");
        }
    }
}
