//! Which shape the next event has.

use super::shape::{Plan, Shape};
use super::value::Found;
use crate::ids::StringId;
use crate::read::chrome::arguments::Wanted;
use crate::read::json::Keys;
use crate::strings::Strings;

/// Files with more shapes than this have no order to predict.
const MAX_SHAPES: usize = 2048;

/// How many events may be looked into in vain for a shape; each that is predicted gives one
/// back.
const PATIENCE: u32 = 1 << 14;

/// How many shapes are tried behind each shape.
const MAX_SUCCESSORS: usize = 4;

/// How many shapes are tried where none of those matches: all of them cost less than scanning
/// an event and looking into it.
const MAX_TRIED: u16 = 32;

/// How many pairs of a shape and a name are remembered.
const N_PAIRS: usize = 1 << 12;

/// The shapes of a file, and which came behind which.
pub(in crate::read::chrome) struct Predictor {
    shapes: Vec<Shape>,
    /// The shapes that followed each shape, the last one first.
    successors: Vec<Vec<u16>>,
    /// What followed an event of some shape and name.
    pairs: Vec<Option<Guess>>,
    last: Option<Guess>,
    /// Where the pair of the last event stands.
    slot: usize,
    patience: u32,
    /// The values of the event that was predicted.
    pub(in crate::read::chrome) found: Found,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Guess {
    shape: u16,
    name: Option<StringId>,
}

impl Default for Predictor {
    fn default() -> Self {
        Self {
            shapes: Vec::new(),
            successors: Vec::new(),
            pairs: vec![None; N_PAIRS],
            last: None,
            slot: 0,
            patience: PATIENCE,
            found: Found::default(),
        }
    }
}

impl Predictor {
    /// Reads the values of the event at the front of `text`, if it is one that was expected;
    /// gives its shape and its length.
    #[inline]
    pub(in crate::read::chrome) fn read(
        &mut self,
        text: &[u8],
        strings: &Strings,
    ) -> Option<(u16, usize)> {
        let first = self.last.and_then(|_| self.pairs[self.slot]);
        if let Some(guess) = first
            && let Some(length) = self.try_shape(guess.shape, text, guess.name, strings)
        {
            return Some((guess.shape, length));
        }
        self.read_unexpected(text, first, strings)
    }

    /// Reads an event that `first` did not say, by the shapes that came next at other times, and
    /// then by any.
    fn read_unexpected(
        &mut self,
        text: &[u8],
        first: Option<Guess>,
        strings: &Strings,
    ) -> Option<(u16, usize)> {
        let name = first.and_then(|guess| guess.name);
        let n_successors = self.last.map_or(0, |last| self.successors_of(last).len());
        for row in 0..n_successors {
            let shape = self.last.map(|last| self.successors_of(last)[row])?;
            if first.is_some_and(|guess| guess.shape == shape) {
                continue;
            }
            if let Some(length) = self.try_shape(shape, text, name, strings) {
                return Some((shape, length));
            }
        }
        let n_tried = u16::try_from(self.shapes.len()).map_or(MAX_TRIED, |n| n.min(MAX_TRIED));
        (0..n_tried).find_map(|shape| Some((shape, self.try_shape(shape, text, name, strings)?)))
    }

    fn successors_of(&self, guess: Guess) -> &[u16] {
        &self.successors[usize::from(guess.shape)]
    }

    #[inline]
    fn try_shape(
        &mut self,
        shape: u16,
        text: &[u8],
        name: Option<StringId>,
        strings: &Strings,
    ) -> Option<usize> {
        self.shapes[usize::from(shape)].read(text, name, strings, &mut self.found)
    }

    pub(in crate::read::chrome) fn plan(&self, shape: u16) -> &Plan {
        &self.shapes[usize::from(shape)].plan
    }

    /// The event that was predicted is kept, and has this name.
    #[inline]
    pub(in crate::read::chrome) fn advance(&mut self, shape: u16, name: Option<StringId>) {
        self.patience = (self.patience + 1).min(PATIENCE);
        self.follow(Guess { shape, name });
    }

    /// Learns from an event that was read without a finding and is what `plan` says.
    pub(in crate::read::chrome) fn learn(
        &mut self,
        text: &[u8],
        name: Option<StringId>,
        plan: Plan,
        (keys, wanted): (&Keys, &Wanted),
    ) {
        let shape = Shape::new(text, plan, keys, wanted);
        let Some(shape) = shape.and_then(|shape| self.row(shape)) else { return self.forget() };
        self.follow(Guess { shape, name });
    }

    /// Whether another event may be looked into.
    pub(in crate::read::chrome) fn is_patient(&mut self) -> bool {
        self.patience = self.patience.saturating_sub(1);
        self.patience > 0
    }

    /// What comes next follows nothing that is known.
    pub(in crate::read::chrome) fn forget(&mut self) {
        self.last = None;
    }

    /// The row of a shape, which may be new.
    fn row(&mut self, shape: Shape) -> Option<u16> {
        let known = self.shapes.iter().position(|known| known.is(&shape));
        let row = known.unwrap_or(self.shapes.len());
        if row >= MAX_SHAPES {
            return None;
        }
        if known.is_none() {
            self.shapes.push(shape);
            self.successors.push(Vec::new());
        }
        u16::try_from(row).ok()
    }

    #[inline]
    fn follow(&mut self, now: Guess) {
        if let Some(last) = self.last {
            let pair = &mut self.pairs[self.slot];
            if *pair != Some(now) {
                *pair = Some(now);
                move_to_front(&mut self.successors[usize::from(last.shape)], now.shape);
            }
        }
        self.last = Some(now);
        self.slot = now.slot();
    }
}

/// The newest first; the oldest of too many is forgotten.
fn move_to_front(successors: &mut Vec<u16>, shape: u16) {
    let place = successors.iter().position(|&known| known == shape);
    let place = place.unwrap_or_else(|| {
        if successors.len() == MAX_SUCCESSORS {
            successors.pop();
        }
        successors.push(shape);
        successors.len() - 1
    });
    successors[..=place].rotate_right(1);
}

impl Guess {
    #[inline]
    fn slot(self) -> usize {
        let name = self.name.map_or(0, |name| name.row().wrapping_add(1));
        let shape = usize::from(self.shape).wrapping_mul(0x85eb);
        (name.wrapping_mul(0x9e37_79b1) ^ shape) % N_PAIRS
    }
}
