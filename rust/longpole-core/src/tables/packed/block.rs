//! A block of rows of a column, in the narrowest form for its values.
//!
//! A block stores its smallest value and the distance of each value from it, in the fewest bytes
//! that hold the largest distance. If all rows have the same value, the distances take no bytes.
//! Null rows are left out, and marked in a bitmap.

use crate::ids::NO_INTEGER;

/// Number of rows in a block.
pub(super) const BLOCK: usize = 256;

/// Size of the bitmap of non-null rows in a block.
pub(super) const BITMAP_BYTES: usize = BLOCK / 8;

/// The location of the values of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The smallest value; [`NO_INTEGER`] if all rows are null.
    pub(super) base: i64,
    /// The offset of the bytes in the upper bits, then the width and whether there are nulls.
    place: u64,
}

impl Block {
    /// A block of nulls.
    pub(super) const EMPTY: Self = Self { base: NO_INTEGER, place: 0 };

    fn new(base: i64, at: usize, width: u8, has_gaps: bool) -> Self {
        Self { base, place: (at as u64) << 8 | u64::from(has_gaps) << 7 | u64::from(width) }
    }

    /// Returns the offset of the bytes.
    #[allow(clippy::cast_possible_truncation)] // it came from a usize
    fn at(self) -> usize {
        (self.place >> 8) as usize
    }

    /// Returns the number of bytes of each distance: 0, 1, 2, 4 or 8.
    fn width(self) -> usize {
        (self.place & 0xf) as usize
    }

    /// Whether there is a bitmap before the distances, because null rows are left out.
    fn has_gaps(self) -> bool {
        self.place >> 7 & 1 == 1
    }

    /// Packs values and appends their bytes.
    pub(super) fn of(values: &[i64; BLOCK], bytes: &mut Vec<u8>) -> Self {
        let (mut low, high) = bounds(values);
        let (at, has_gaps) = (bytes.len(), low == NO_INTEGER);
        if has_gaps {
            let mut known = [0; BLOCK];
            let mut n_known = 0;
            for &value in values.iter().filter(|&&value| value != NO_INTEGER) {
                known[n_known] = value;
                n_known += 1;
            }
            let known = &known[..n_known];
            let Some(&lowest) = known.iter().min() else { return Self::EMPTY };
            low = lowest;
            bytes.extend(bitmap(values));
            extend(bytes, known, low, width_between(low, high));
        } else {
            extend(bytes, values, low, width_between(low, high));
        }
        Self::new(low, at, width_between(low, high), has_gaps)
    }

    #[inline]
    pub(super) fn get(self, bytes: &[u8], place: usize) -> i64 {
        let at = self.at();
        if !self.has_gaps() {
            return self.value(bytes, at, place);
        }
        match rank(&bytes[at..at + BITMAP_BYTES], place) {
            Some(place) => self.value(bytes, at + BITMAP_BYTES, place),
            None => NO_INTEGER,
        }
    }

    #[inline]
    fn value(self, bytes: &[u8], at: usize, place: usize) -> i64 {
        let at = at + place * self.width();
        let distance = match self.width() {
            0 => 0,
            1 => u64::from(bytes[at]),
            2 => u64::from(u16::from_le_bytes(array(&bytes[at..at + 2]))),
            4 => u64::from(u32::from_le_bytes(array(&bytes[at..at + 4]))),
            _ => u64::from_le_bytes(array(&bytes[at..at + 8])),
        };
        self.base.wrapping_add(distance.cast_signed())
    }

    /// Returns all values.
    pub(super) fn values(self, bytes: &[u8]) -> [i64; BLOCK] {
        let mut values = [self.base; BLOCK];
        if self.has_gaps() {
            for (place, value) in values.iter_mut().enumerate() {
                *value = self.get(bytes, place);
            }
        } else if self.width() > 0 {
            let bytes = &bytes[self.at()..self.at() + BLOCK * self.width()];
            match self.width() {
                1 => add(&mut values, bytes.iter().map(|&byte| byte.into())),
                2 => add(&mut values, words(bytes).map(|word| u16::from_le_bytes(word).into())),
                4 => add(&mut values, words(bytes).map(|word| u32::from_le_bytes(word).into())),
                _ => add(&mut values, words(bytes).map(u64::from_le_bytes)),
            }
        }
        values
    }
}

/// Returns the smallest and the largest value. The mark for null is the smallest integer.
fn bounds(values: &[i64; BLOCK]) -> (i64, i64) {
    values
        .iter()
        .fold((i64::MAX, i64::MIN), |(low, high), &value| (low.min(value), high.max(value)))
}

fn width_between(low: i64, high: i64) -> u8 {
    match high.wrapping_sub(low).cast_unsigned() {
        0 => 0,
        0x1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

fn bitmap(values: &[i64; BLOCK]) -> impl Iterator<Item = u8> + '_ {
    values.chunks(8).map(|values| {
        let bits = values.iter().enumerate();
        bits.fold(0, |byte, (bit, &value)| byte | (u8::from(value != NO_INTEGER) << bit))
    })
}

/// Returns the number of non-null rows before a row; `None` if the row itself is null.
#[inline]
fn rank(bitmap: &[u8], place: usize) -> Option<usize> {
    let word = |number: usize| u64::from_le_bytes(array(&bitmap[8 * number..8 * number + 8]));
    let (number, bit) = (place / 64, place % 64);
    let here = word(number);
    let before = (0..number).map(|number| word(number).count_ones()).sum::<u32>();
    let in_word = (here & ((1 << bit) - 1)).count_ones();
    (here >> bit & 1 == 1).then_some((before + in_word) as usize)
}

/// Appends the distances of values from the smallest; all of them fit the width.
#[allow(clippy::cast_possible_truncation)] // the width was chosen so
fn extend(bytes: &mut Vec<u8>, values: &[i64], low: i64, width: u8) {
    match width {
        0 => {}
        1 => extend_words(bytes, values, low, |distance| [distance as u8]),
        2 => extend_words(bytes, values, low, |distance| (distance as u16).to_le_bytes()),
        4 => extend_words(bytes, values, low, |distance| (distance as u32).to_le_bytes()),
        _ => extend_words(bytes, values, low, u64::to_le_bytes),
    }
}

fn extend_words<const N: usize>(
    bytes: &mut Vec<u8>,
    values: &[i64],
    low: i64,
    word_of: impl Fn(u64) -> [u8; N],
) {
    let at = bytes.len();
    bytes.resize(at + N * values.len(), 0);
    for (word, value) in bytes[at..].as_chunks_mut().0.iter_mut().zip(values) {
        *word = word_of(value.wrapping_sub(low).cast_unsigned());
    }
}

fn add(values: &mut [i64; BLOCK], distances: impl Iterator<Item = u64>) {
    for (value, distance) in values.iter_mut().zip(distances) {
        *value = value.wrapping_add(distance.cast_signed());
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

/// Maps NaN, which represents null, to the integer that represents null.
const MASK: u64 = 0xfff8_0000_0000_0000;

/// Returns a float as a packed integer; NaN is null.
pub(crate) fn of_float(value: f64) -> i64 {
    if value.is_nan() { NO_INTEGER } else { (value.to_bits() ^ MASK).cast_signed() }
}

/// Returns the float of a packed integer; NaN for null.
pub(crate) fn float_of(packed: i64) -> f64 {
    f64::from_bits(packed.cast_unsigned() ^ MASK)
}
