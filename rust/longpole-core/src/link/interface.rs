use crate::strings::Strings;

/// What a call of CUDA, HIP or another interface does to the order of things, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Waits for all streams of a device.
    WaitForDevice,
    /// Waits for one stream.
    WaitForStream,
    /// Waits for a recorded event.
    WaitForEvent,
    /// Frees, allocates, pins memory or loads code, and may wait for the device.
    MayWait,
    /// Makes a stream wait for an event.
    LetStreamWait,
    /// Records an event on a stream.
    RecordEvent,
    /// Asks, and never waits.
    Query,
    /// Launches a graph of work at once.
    LaunchGraph,
    /// Anything else.
    Other,
}

/// Begins of names behind the prefix of their interface, which is in small letters:
/// `cuda`, `cu`, `hip`, `musa`, `aclrt` and so on.
const PURPOSES: [(&str, Purpose); 15] = [
    ("DeviceSynchronize", Purpose::WaitForDevice),
    ("CtxSynchronize", Purpose::WaitForDevice),
    ("StreamSynchronize", Purpose::WaitForStream),
    ("EventSynchronize", Purpose::WaitForEvent),
    ("SynchronizeDevice", Purpose::WaitForDevice),
    ("SynchronizeStream", Purpose::WaitForStream),
    ("SynchronizeEvent", Purpose::WaitForEvent),
    ("StreamWaitEvent", Purpose::LetStreamWait),
    ("EventRecord", Purpose::RecordEvent),
    ("RecordEvent", Purpose::RecordEvent),
    ("EventQuery", Purpose::Query),
    ("StreamQuery", Purpose::Query),
    ("QueryEvent", Purpose::Query),
    ("QueryStream", Purpose::Query),
    ("GraphLaunch", Purpose::LaunchGraph),
];

/// Begins of names behind the prefix, and behind `Mem` if that follows.
const MAY_WAIT: [&str; 12] = [
    "Free",
    "Malloc",
    "ExtMalloc",
    "Alloc",
    "HostAlloc",
    "HostMalloc",
    "HostFree",
    "HostRegister",
    "HostUnregister",
    "ModuleLoad",
    "ModuleUnload",
    "LibraryLoad",
];

/// The purpose of each name, one row for each text.
pub fn purposes(strings: &Strings) -> Vec<Purpose> {
    strings.iter().map(purpose).collect()
}

/// Whether a call puts kernels on a device. `cudaLaunchHostFunc` does not.
pub fn launches_kernels(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let behind = name.find("launch").map(|place| &name[place..]);
    behind.is_some_and(|behind| behind.contains("kernel")) || name.contains("graphlaunch")
}

/// Whether a call gives memory of the device or of the host, or takes it back.
pub fn is_allocation(name: &str) -> bool {
    let rest = name.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    let rest = rest.strip_prefix("Mem").unwrap_or(rest);
    let begins = ["Map", "Unmap", "Create", "Release", "AddressReserve", "AddressFree"];
    let is_mapping = begins.iter().any(|begin| rest == *begin);
    let allocates = !rest.contains("Module") && !rest.contains("Library");
    rest.len() < name.len() && (is_mapping || (allocates && (may_wait(rest) || is_async(rest))))
}

fn is_async(rest: &str) -> bool {
    rest.contains("Async") && (rest.starts_with("Malloc") || rest.starts_with("Free"))
}

fn purpose(name: &str) -> Purpose {
    let rest = name.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    let has_prefix = rest.len() < name.len();
    has_prefix.then(|| purpose_behind_prefix(rest)).flatten().unwrap_or(Purpose::Other)
}

fn purpose_behind_prefix(rest: &str) -> Option<Purpose> {
    let named =
        PURPOSES.iter().find(|(begin, _)| rest.starts_with(begin)).map(|&(_, purpose)| purpose);
    named.or_else(|| may_wait(rest).then_some(Purpose::MayWait))
}

fn may_wait(rest: &str) -> bool {
    let rest = rest.strip_prefix("Mem").unwrap_or(rest);
    MAY_WAIT
        .iter()
        .filter_map(|begin| rest.strip_prefix(begin))
        .any(|behind| !behind.contains("Async"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_known_by_the_name_whoever_made_the_interface() {
        let cases = [
            ("cudaDeviceSynchronize", Purpose::WaitForDevice),
            ("cuCtxSynchronize", Purpose::WaitForDevice),
            ("hipStreamSynchronize", Purpose::WaitForStream),
            ("cudaStreamSynchronize_ptsz", Purpose::WaitForStream),
            ("hipEventSynchronize", Purpose::WaitForEvent),
            ("cudaStreamWaitEvent", Purpose::LetStreamWait),
            ("cuEventRecord", Purpose::RecordEvent),
            ("cudaEventQuery", Purpose::Query),
            ("cudaGraphLaunch", Purpose::LaunchGraph),
            ("cudaMalloc", Purpose::MayWait),
            ("cuMemAlloc_v2", Purpose::MayWait),
            ("hipHostMalloc", Purpose::MayWait),
            ("cudaMallocAsync", Purpose::Other),
            ("cudaLaunchKernel", Purpose::Other),
            ("musaStreamSynchronize", Purpose::WaitForStream),
            ("aclrtSynchronizeDevice", Purpose::WaitForDevice),
            ("aclrtRecordEvent", Purpose::RecordEvent),
            ("aclrtQueryEvent", Purpose::Query),
            ("hipExtMallocWithFlags", Purpose::MayWait),
            ("DeviceSynchronize", Purpose::Other),
            ("my_DeviceSynchronize", Purpose::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(purpose(name), expected, "{name}");
        }
    }
}
