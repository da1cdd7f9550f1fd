//! Which events a sweep looks at: all of them, or those that a filter let through.

use crate::ids::EventId;

/// A choice among the events of one trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen {
    /// Every event.
    #[default]
    All,
    /// Those whose row is true.
    Rows(Vec<bool>),
}

impl Chosen {
    /// The events with these rows, of `n_events`; rows beyond them are ignored.
    pub fn of_rows(rows: impl IntoIterator<Item = u32>, n_events: usize) -> Self {
        let mut is_chosen = vec![false; n_events];
        for row in rows {
            if let Some(slot) = is_chosen.get_mut(row as usize) {
                *slot = true;
            }
        }
        Self::Rows(is_chosen)
    }

    /// Whether an event is among them.
    pub fn holds(&self, event: EventId) -> bool {
        match self {
            Self::All => true,
            Self::Rows(is_chosen) => is_chosen.get(event.row()).copied().unwrap_or(false),
        }
    }
}
