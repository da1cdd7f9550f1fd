//! Adds up why nothing ran on each device: the four reasons sum to its idle time.

use std::collections::BTreeMap;

use super::Gap;

/// Why nothing ran on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Idle {
    /// The call that launches the next work had not returned.
    pub host_ns: i64,
    /// The next work was launched and had not begun.
    pub launched_ns: i64,
    /// No work follows in the window.
    pub after_last_ns: i64,
    /// The call of the next work is not known.
    pub unlinked_ns: i64,
    /// How many gaps end with work whose call is known.
    pub n_linked: u64,
}

/// The idle time of each device that has any, by device.
pub fn idle(gaps: &[Gap]) -> Vec<(Option<i64>, Idle)> {
    let mut devices: BTreeMap<Option<i64>, Idle> = BTreeMap::new();
    for gap in gaps {
        let sums = devices.entry(gap.device).or_default();
        let length_ns = gap.end_ns - gap.start_ns;
        match (gap.next, gap.host_ns) {
            (None, _) => sums.after_last_ns += length_ns,
            (Some(_), None) => sums.unlinked_ns += length_ns,
            (Some(_), Some(host_ns)) => {
                sums.host_ns += host_ns;
                sums.launched_ns += length_ns - host_ns;
                sums.n_linked += 1;
            }
        }
    }
    devices.into_iter().collect()
}
