//! Timestamp shifts of each device that make its clock agree with the host's.
//!
//! Only the graph uses shifted timestamps; the tables keep those of the file.

use crate::tables::LaneTable;

/// The correction of a device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockShift {
    /// The device number; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// Shift of the timestamps: positive if the device clock was behind the host's.
    pub shift_ns: i64,
}

/// How much further the timestamps of a device could be shifted, earlier and later, before an
/// activity starts before its call, or ends after a call that is known to have waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockSlack {
    /// The device number; `None` if the trace has no device numbers.
    pub device: Option<i64>,
    /// Maximum shift to earlier times.
    pub earlier_ns: i64,
    /// Maximum shift to later times.
    pub later_ns: i64,
    /// By how much the timestamps are probably off, although too little says so to shift them.
    pub doubt_ns: i64,
}

impl ClockSlack {
    /// Returns the slack of each lane; zero for lanes that are not on devices.
    pub(in crate::graph) fn by_lane(slacks: &[Self], lanes: &LaneTable) -> Vec<Self> {
        let of = |device| slacks.iter().find(|slack| slack.device == device).copied();
        lanes.places().iter().map(|place| of(place.device).unwrap_or_default()).collect()
    }
}

/// The corrections of all devices, by lane.
#[derive(Debug, Clone, Default)]
pub(in crate::graph) struct Clocks {
    of_lane: Vec<i64>,
}

impl Clocks {
    pub(in crate::graph) fn of(shifts: &[ClockShift], lanes: &LaneTable) -> Self {
        let shift_ns = |device: Option<i64>| {
            shifts.iter().find(|shift| shift.device == device).map_or(0, |shift| shift.shift_ns)
        };
        Self { of_lane: lanes.places().iter().map(|place| shift_ns(place.device)).collect() }
    }

    /// Returns the timestamp shift of the GPU activities on a lane.
    pub(super) fn shift_ns(&self, lane: usize) -> i64 {
        self.of_lane.get(lane).copied().unwrap_or(0)
    }
}
