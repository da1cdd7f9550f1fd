//! The meaning of planes, lines and events of an XProf profile, by name.
//!
//! XProf (JAX, TensorFlow, PyTorch/XLA) has a plane for the host and one for each device. A plane
//! has lines: the host threads, the streams of a GPU, and views of the same activities at other
//! levels (steps, modules, framework operators). The names are those of
//! `tsl/profiler/utils/xplane_schema.cc`.
//!
//! Limits: a device event on a line that is not listed does not count as a GPU activity, and is
//! reported.

use super::{ApiRole, EventKind};

/// A plane, which the trace viewer displays as a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// A device, with its number.
    Device(Option<i64>),
    /// The host threads.
    Host,
}

/// A line of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// The activities on a GPU stream.
    Stream(i64),
    /// The operations that XLA ran: all activities of a TPU or, on a GPU, a repetition of those on
    /// the streams.
    Operations,
    /// The activities of other lines at another level, or asynchronous operations from start to
    /// end, which keep no unit busy.
    Repeated,
    /// An unknown line.
    Unknown,
}

/// Lines that repeat the activities of others at another level, and lines of marks.
const REPEATED: &[&str] = &[
    "Steps",
    "XLA Modules",
    "XLA TraceMe",
    "Async XLA Ops",
    "Framework Name Scope",
    "Framework Ops",
    "TensorFlow Name Scope",
    "TensorFlow Ops",
    "Source code",
    "Launch Stats",
    "Host Offload Ops",
    "Sparse Core Steps",
    "Sparse Core Modules",
    "Sparse Core Syncs",
    "Tensor Core Sync Flag",
    "_counters_",
];

impl Plane {
    /// Returns the plane with this name, if it is an XProf plane.
    pub fn of_name(name: &str) -> Option<Self> {
        if name.starts_with("/host:") {
            return Some(Self::Host);
        }
        let (_, device) = name.strip_prefix("/device:")?.split_once(':')?;
        let digits = device.split(|letter: char| !letter.is_ascii_digit()).next()?;
        Some(Self::Device(digits.parse().ok()))
    }
}

impl Line {
    /// Returns the device line with this name.
    pub fn of_name(name: &str) -> Self {
        if let Some(number) = name.strip_prefix("Stream #") {
            let digits = number.split(|letter: char| !letter.is_ascii_digit()).next();
            return digits.and_then(|it| it.parse().ok()).map_or(Self::Unknown, Self::Stream);
        }
        match name {
            "XLA Ops" | "Sparse Core Ops" => Self::Operations,
            _ if REPEATED.contains(&name) => Self::Repeated,
            _ => Self::Unknown,
        }
    }
}

/// Returns the kind of a GPU activity on an XProf stream.
pub fn xprof_activity(name: &str) -> EventKind {
    if name.starts_with("Memcpy") {
        EventKind::Copy
    } else if name.starts_with("Memset") {
        EventKind::Fill
    } else {
        EventKind::Kernel
    }
}

/// Returns the kind of an event on an XProf thread. CUDA and HIP calls have a correlation id or the
/// name of a call; Python frames begin with `$`.
pub fn xprof_host_event(name: &str, has_correlation: bool, role: ApiRole) -> EventKind {
    let is_driver = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_uppercase());
    if name.starts_with('$') {
        EventKind::Python
    } else if !has_correlation && role == ApiRole::Other {
        EventKind::Operator
    } else if name.strip_prefix("cu").is_some_and(is_driver) {
        EventKind::Driver
    } else {
        EventKind::Runtime
    }
}

/// Returns the value after `key:` in the details of a GPU activity, as in `kind:device size:64
/// async:1`.
pub fn xprof_detail<'a>(details: &'a str, key: &str) -> Option<&'a str> {
    details.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_and_lines_are_known_by_name() {
        assert_eq!(Plane::of_name("/device:GPU:3"), Some(Plane::Device(Some(3))));
        assert_eq!(Plane::of_name("/device:TPU:0 SparseCore 1"), Some(Plane::Device(Some(0))));
        assert_eq!(Plane::of_name("/host:CPU"), Some(Plane::Host));
        assert_eq!(Plane::of_name("python"), None);
        assert_eq!(Line::of_name("Stream #14(Compute,MemcpyH2D)"), Line::Stream(14));
        assert_eq!(Line::of_name("XLA Ops"), Line::Operations);
        assert_eq!(Line::of_name("Steps"), Line::Repeated);
        assert_eq!(Line::of_name("Something new"), Line::Unknown);
    }

    #[test]
    fn events_of_threads_are_calls_by_number_or_name() {
        let kind = |name, has| xprof_host_event(name, has, ApiRole::of_name(name));
        assert_eq!(kind("cuLaunchKernel", true), EventKind::Driver);
        assert_eq!(kind("hipLaunchKernel", false), EventKind::Runtime);
        assert_eq!(kind("MemcpyH2D", true), EventKind::Runtime);
        assert_eq!(kind("PjitFunction(f)", false), EventKind::Operator);
        assert_eq!(kind("$train.py:7 step", false), EventKind::Python);
    }

    #[test]
    fn details_are_words_with_a_colon() {
        let details = "kind_src:pageable kind_dst:device size:4096 dest:0 async:1";
        assert_eq!(xprof_detail(details, "size"), Some("4096"));
        assert_eq!(xprof_detail(details, "kind"), None);
    }
}
