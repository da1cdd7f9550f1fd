//! Kernels with which HIP performs memsets and memcpys, and the calls that request them.

use super::EventKind;

const KERNELS: &[(&str, EventKind)] =
    &[("__amd_rocclr_fillBuffer", EventKind::Fill), ("__amd_rocclr_copyBuffer", EventKind::Copy)];

const CALLS: &[(&str, EventKind)] =
    &[("hipMemset", EventKind::Fill), ("hipMemcpy", EventKind::Copy)];

/// Returns the effect of a kernel with which HIP performs memsets or memcpys. HIP also uses these
/// kernels internally: only the call shows that the program requested it.
pub fn blit_kernel(name: &str) -> Option<EventKind> {
    begin_of(name, KERNELS)
}

/// Returns the request of a HIP call, if it is a memset or a memcpy.
pub fn blit_call(name: &str) -> Option<EventKind> {
    begin_of(name, CALLS)
}

fn begin_of(name: &str, table: &[(&str, EventKind)]) -> Option<EventKind> {
    table.iter().find(|(begin, _)| name.starts_with(begin)).map(|&(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_calls_are_known_by_the_begin_of_their_names() {
        assert_eq!(blit_kernel("__amd_rocclr_fillBufferAligned.kd"), Some(EventKind::Fill));
        assert_eq!(blit_kernel("__amd_rocclr_copyBufferRectAligned"), Some(EventKind::Copy));
        assert_eq!(blit_kernel("__amd_rocclr_initHeap"), None);
        assert_eq!(blit_call("hipMemsetD8Async"), Some(EventKind::Fill));
        assert_eq!(blit_call("hipMemcpyWithStream"), Some(EventKind::Copy));
        assert_eq!(blit_call("hipGraphLaunch"), None);
    }
}
