//! Caches for recent lookups, because events come in runs and names repeat.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use crate::strings::hash;

/// Values by key, with a cache of the last few.
pub(super) struct Recent<K, V> {
    last: Vec<(K, V)>,
    all: HashMap<K, V, Seed>,
    oldest: usize,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { last: Vec::new(), all: HashMap::default(), oldest: 0 }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Recent<K, V> {
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

/// Values by number, with the last one for each slot cached.
pub(super) struct ByNumber<V> {
    at_hand: Vec<Option<(i64, V)>>,
    all: HashMap<i64, V, Seed>,
}

impl<V: Copy> Default for ByNumber<V> {
    fn default() -> Self {
        Self { at_hand: vec![None; Self::PLACES], all: HashMap::default() }
    }
}

impl<V: Copy> ByNumber<V> {
    const PLACES: usize = 1024;

    #[inline]
    pub(super) fn get(&mut self, number: i64) -> Option<V> {
        let place = &mut self.at_hand[place_of(number, Self::PLACES)];
        if let Some((known, value)) = *place
            && known == number
        {
            return Some(value);
        }
        let value = *self.all.get(&number)?;
        *place = Some((number, value));
        Some(value)
    }

    /// Sets the value of a number, if it has none.
    pub(super) fn insert(&mut self, number: i64, value: V) {
        self.all.entry(number).or_insert(value);
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // any place will do
fn place_of(number: i64, n_places: usize) -> usize {
    number as usize % n_places
}

/// Hashes keys like strings, which takes far fewer instructions than the standard library.
struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0_u8) | 1)
    }
}

impl BuildHasher for Seed {
    type Hasher = State;

    fn build_hasher(&self) -> State {
        State(self.0)
    }
}

struct State(u64);

impl Hasher for State {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
