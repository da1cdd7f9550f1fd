//! Selection of the events for a sweep: all of them, or those that a filter keeps.

use crate::ids::EventId;

/// A selection of the events of one trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen {
    /// Every event.
    #[default]
    All,
    /// The events whose row is true.
    Rows(Vec<bool>),
}

impl Chosen {
    /// Selects the events with these rows, out of `n_events`; larger row numbers are ignored.
    pub fn of_rows(rows: impl IntoIterator<Item = u32>, n_events: usize) -> Self {
        let mut is_chosen = vec![false; n_events];
        for row in rows {
            if let Some(slot) = is_chosen.get_mut(row as usize) {
                *slot = true;
            }
        }
        Self::Rows(is_chosen)
    }

    /// Whether an event is selected.
    pub fn holds(&self, event: EventId) -> bool {
        match self {
            Self::All => true,
            Self::Rows(is_chosen) => is_chosen.get(event.row()).copied().unwrap_or(false),
        }
    }
}
