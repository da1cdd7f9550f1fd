//! The event kind of each category, looked up once per category.

use std::sync::Arc;

use crate::ids::StringId;
use crate::strings::Strings;
use crate::tables::EventKind;
use crate::vocabulary::Vocabulary;

/// The kind of each category seen so far.
#[derive(Default)]
pub(super) struct Kinds {
    of_category: Vec<Option<Meaning>>,
    vocabulary: Arc<Vocabulary>,
}

/// What a category implies for its events.
#[derive(Clone)]
pub(super) struct Meaning {
    kind: EventKind,
    exceptions: Vec<(&'static str, EventKind)>,
}

impl Kinds {
    pub(super) fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { vocabulary, ..Self::default() }
    }

    pub(super) fn of(&mut self, category: StringId, strings: &Strings) -> &Meaning {
        if category.row() >= self.of_category.len() {
            self.of_category.resize(category.row() + 1, None);
        }
        self.of_category[category.row()].get_or_insert_with(|| {
            let category = strings.get(category);
            let kind = self.vocabulary.kind(category);
            Meaning { kind, exceptions: EventKind::exceptions(category).collect() }
        })
    }
}

impl Meaning {
    /// Whether the kind also depends on the event name.
    pub(super) fn depends_on_name(&self) -> bool {
        !self.exceptions.is_empty()
    }

    /// Returns the kind of an event by its name. A name for a wait counts only if the event records
    /// the awaited stream.
    #[inline]
    pub(super) fn kind(&self, name: &[u8], says_stream: impl FnOnce() -> bool) -> EventKind {
        let named = self.exceptions.iter().find(|(begin, _)| name.starts_with(begin.as_bytes()));
        match named {
            Some((_, EventKind::Synchronization)) if !says_stream() => self.kind,
            Some(&(_, kind)) => kind,
            None => self.kind,
        }
    }
}
