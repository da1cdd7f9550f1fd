//! What each call does to the order of things, by its name.

use crate::graph::model::Timeline;
use crate::ids::Order;
use crate::link::{self, Purpose};
use crate::strings::Strings;

/// The purpose of every name of a trace.
pub(in crate::graph) struct Purposes {
    of_name: Vec<Purpose>,
}

impl Purposes {
    pub(super) fn of(strings: &Strings) -> Self {
        Self { of_name: link::purposes(strings) }
    }

    pub(super) fn purpose(&self, event: Order, timeline: &Timeline) -> Purpose {
        timeline.name(event).map_or(Purpose::Other, |name| self.of_name[name.row()])
    }
}
