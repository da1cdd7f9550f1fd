//! What was looked up last: events come in runs.

use std::collections::HashMap;

/// Values by key, with the last few at hand: events come in runs.
pub(super) struct Recent<K, V> {
    last: Vec<(K, V)>,
    all: HashMap<K, V>,
    oldest: usize,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { last: Vec::new(), all: HashMap::new(), oldest: 0 }
    }
}

impl<K: Copy + Eq + std::hash::Hash, V: Copy> Recent<K, V> {
    const AT_HAND: usize = 4;

    #[inline]
    pub(super) fn get(&mut self, key: K, make: impl FnOnce() -> V) -> V {
        if let Some(&(_, value)) = self.last.iter().find(|(known, _)| *known == key) {
            return value;
        }
        let value = *self.all.entry(key).or_insert_with(make);
        if self.last.len() < Self::AT_HAND {
            self.last.push((key, value));
        } else {
            self.last[self.oldest] = (key, value);
            self.oldest = (self.oldest + 1) % Self::AT_HAND;
        }
        value
    }
}
