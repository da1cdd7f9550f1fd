//! The lanes of events: threads of processes and streams of devices, each once.
//!
//! Lanes are identified by the process and thread ids in the file, which may be text.

use std::collections::HashMap;

use crate::ids::{InColumn, LaneId, NO_INTEGER, StringId};

/// The place of an event: a thread of a process, or a stream of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The `pid` in the file, as a string, because it may be a name.
    pub process: StringId,
    /// The `tid` in the file, as a string.
    pub thread: StringId,
    /// The device, for device lanes.
    pub device: Option<i64>,
    /// The stream of that device.
    pub stream: Option<i64>,
}

/// The lanes of one trace, in order of first use.
#[derive(Debug, Clone, Default)]
pub struct LaneTable {
    places: Vec<Place>,
    rows: HashMap<Place, LaneId>,
}

impl LaneTable {
    /// Returns the handle of a place, which is added if it is new.
    pub fn intern(&mut self, place: Place) -> LaneId {
        *self.rows.entry(place).or_insert_with(|| {
            self.places.push(place);
            LaneId::from_row(self.places.len() - 1)
        })
    }

    /// Returns the place of a lane.
    pub fn place(&self, lane: LaneId) -> Place {
        self.places[lane.row()]
    }

    /// Returns all places, in handle order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns all lanes.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = LaneId> + Clone + use<> {
        (0..self.len()).map(LaneId::from_row)
    }

    /// Returns the number of lanes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no lanes.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the processes as a column.
    pub fn processes(&self) -> Vec<u32> {
        self.places.iter().map(|place| Some(place.process).in_column()).collect()
    }

    /// Returns the threads as a column.
    pub fn threads(&self) -> Vec<u32> {
        self.places.iter().map(|place| Some(place.thread).in_column()).collect()
    }

    /// Returns the devices as a column; [`NO_INTEGER`] for none.
    pub fn devices(&self) -> Vec<i64> {
        self.places.iter().map(|place| place.device.unwrap_or(NO_INTEGER)).collect()
    }

    /// Returns the streams as a column; [`NO_INTEGER`] for none.
    pub fn streams(&self) -> Vec<i64> {
        self.places.iter().map(|place| place.stream.unwrap_or(NO_INTEGER)).collect()
    }
}
