//! By how much the stamps of each device are moved so that they agree with the host's.
//!
//! Only the graph sees moved stamps; the tables keep what the file says.

use crate::tables::LaneTable;

/// How a device's clock was corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockShift {
    /// The number of the device; none where the trace names none.
    pub device: Option<i64>,
    /// What its stamps are moved by: positive where its clock was behind the host's.
    pub shift_ns: i64,
}

/// How much more the stamps of a device may be moved, earlier and later, before its work begins
/// ahead of its call, or ends after a call that is known to have waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockSlack {
    /// The number of the device; none where the trace names none.
    pub device: Option<i64>,
    /// By how much they may be moved back.
    pub earlier_ns: i64,
    /// By how much they may be moved ahead.
    pub later_ns: i64,
}

impl ClockSlack {
    /// The slack of each lane, none but on devices.
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

    /// What the stamps of the device work on a lane are moved by.
    pub(super) fn shift_ns(&self, lane: usize) -> i64 {
        self.of_lane.get(lane).copied().unwrap_or(0)
    }
}
