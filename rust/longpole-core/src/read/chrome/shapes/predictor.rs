//! Predicts the shape of the next event.

use super::shape::{Plan, Shape};
use super::value::Found;
use crate::ids::StringId;
use crate::read::chrome::arguments::Wanted;
use crate::read::json::Keys;
use crate::strings::Strings;

/// A file with more shapes is too irregular to predict.
const MAX_SHAPES: usize = 2048;

/// Maximum number of events examined for a shape without success; each predicted event allows one
/// more.
const PATIENCE: u32 = 1 << 14;

/// Maximum number of successors tried for each shape.
const MAX_SUCCESSORS: usize = 4;

/// Maximum number of shapes tried if no successor matches. Trying all of them costs less than
/// scanning and examining an event.
const MAX_TRIED: u16 = 32;

/// Number of remembered pairs of a shape and a name.
const N_PAIRS: usize = 1 << 12;

/// The shapes of a file, and their successors.
pub(in crate::read::chrome) struct Predictor {
    shapes: Vec<Shape>,
    /// The successors of each shape, latest first.
    successors: Vec<Vec<u16>>,
    /// The event that followed an event of a given shape and name.
    pairs: Vec<Option<Guess>>,
    last: Option<Guess>,
    /// The slot of the pair of the last event.
    slot: usize,
    patience: u32,
    /// The values of the predicted event.
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
    /// Reads the values of the event at the front of `text`, if it was predicted. Returns its shape
    /// and its length.
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

    /// Reads an event that differs from the guess `first`, by trying earlier successors, then other
    /// shapes.
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

    /// Records that the predicted event is kept, with this name.
    #[inline]
    pub(in crate::read::chrome) fn advance(&mut self, shape: u16, name: Option<StringId>) {
        self.patience = (self.patience + 1).min(PATIENCE);
        self.follow(Guess { shape, name });
    }

    /// Learns from an event that was read without findings; `plan` is what the collector did with
    /// it.
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

    /// Whether another event may be examined.
    pub(in crate::read::chrome) fn is_patient(&mut self) -> bool {
        self.patience = self.patience.saturating_sub(1);
        self.patience > 0
    }

    /// Forgets the last event.
    pub(in crate::read::chrome) fn forget(&mut self) {
        self.last = None;
    }

    /// Returns the row of a shape, which is added if it is new.
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

/// Moves a shape to the front, and drops the oldest if there are too many.
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
