//! A column of integers in blocks, each in the narrowest form for its values.
//!
//! A trace of a million events has a dozen columns of ids, strings and places, in which
//! neighbouring values are similar, equal, or missing. [`block`] describes how blocks use this.
//!
//! Values are appended to an open end, which [`seal`](Packed::seal) packs. Packed values do not
//! change any more. Reading a random row takes a few more instructions than in a slice, so columns
//! that inner loops read, such as times, remain slices.

mod block;

use std::fmt;

use self::block::{BLOCK, Block};
pub(crate) use self::block::{float_of, of_float};
use crate::ids::{NO_INTEGER, NO_ROW};

/// Number of rows that are packed together.
const BATCH: usize = 4 * BLOCK;

/// A column of nullable integers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Packed {
    blocks: Vec<Block>,
    bytes: Vec<u8>,
    /// The rows after the blocks; [`NO_INTEGER`] for null.
    open: Vec<i64>,
    /// Number of null rows after the open ones.
    n_padded: usize,
}

impl Packed {
    /// Returns the value of a row; `None` for null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        let value = match self.blocks.get(row / BLOCK) {
            Some(block) => block.get(&self.bytes, row % BLOCK),
            None => *self.open.get(row - self.blocks.len() * BLOCK)?,
        };
        (value != NO_INTEGER).then_some(value)
    }

    /// Returns the value of a row as a row number of another table; [`NO_ROW`] for null.
    #[inline]
    pub fn row(&self, row: usize) -> u32 {
        self.get(row).map_or(NO_ROW, to_row)
    }

    /// Returns all values; [`NO_INTEGER`] for null.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        Iter { column: self, row: 0, length: self.len(), block: [NO_INTEGER; BLOCK] }
    }

    /// Returns all values as row numbers of another table; [`NO_ROW`] for null.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.iter().map(|value| if value == NO_INTEGER { NO_ROW } else { to_row(value) })
    }

    /// Returns all values as floats; NaN for null.
    pub fn floats(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.iter().map(float_of)
    }

    /// Returns the row of a value, in a column without nulls that is strictly ascending.
    pub fn find(&self, value: i64) -> Option<usize> {
        let number = self.blocks.partition_point(|block| block.base <= value);
        if number == self.blocks.len()
            && let Ok(place) = self.open.binary_search(&value)
        {
            return Some(number * BLOCK + place);
        }
        let number = number.checked_sub(1)?;
        let value_of = |place| self.blocks[number].get(&self.bytes, place);
        let (mut low, mut high) = (0, BLOCK);
        while low < high {
            let middle = usize::midpoint(low, high);
            if value_of(middle) < value {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < BLOCK && value_of(low) == value).then_some(number * BLOCK + low)
    }

    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.stored() + self.n_padded
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of the last row.
    pub(crate) fn last(&self) -> Option<i64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Appends a value; [`NO_INTEGER`] for null.
    #[inline]
    pub(crate) fn push(&mut self, value: i64) {
        if self.n_padded > 0 {
            self.fill(self.len());
        }
        self.open.push(value);
    }

    /// Appends a row number of another table; [`NO_ROW`] for null.
    #[inline]
    pub(crate) fn push_row(&mut self, row: u32) {
        self.push(from_row(row));
    }

    /// Sets the value of a row, which is the last or a new one; rows in between are null.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: i64) {
        if row < self.stored() {
            let place = row - self.blocks.len() * BLOCK;
            self.open[place] = value;
        } else {
            self.fill(row);
            self.open.push(value);
        }
    }

    /// Replaces the value of any row, in a column that was [reopened](Self::reopen).
    pub(crate) fn replace(&mut self, row: usize, value: i64) {
        self.open[row] = value;
    }

    /// Unpacks all rows, so that each can be replaced.
    pub(crate) fn reopen(&mut self) {
        self.open = self.iter().collect();
        self.n_padded = 0;
        self.blocks.clear();
        self.bytes.clear();
    }

    /// Adds nulls up to `length`. They take no space until another value follows.
    pub(crate) fn pad(&mut self, length: usize) {
        self.n_padded = length.max(self.len()) - self.stored();
    }

    /// Appends the values of another column.
    pub(crate) fn append(&mut self, later: &Self) {
        self.append_each(later, |value| value);
    }

    /// Appends the values of another column, each increased by `distance`.
    pub(crate) fn append_shifted(&mut self, later: &Self, distance: u32) {
        let distance = i64::from(distance);
        // Row numbers and element indices are far below the limit of 64 bits.
        let shifted =
            |value: i64| if value == NO_INTEGER { value } else { value.wrapping_add(distance) };
        self.append_each(later, shifted);
    }

    /// Appends the values of another column, each replaced by its entry in `numbers`.
    pub(crate) fn append_renumbered(&mut self, later: &Self, numbers: &[u32]) {
        // Every value is a valid row, except the negative mark for null.
        let row = |value: i64| usize::try_from(value).ok().and_then(|row| numbers.get(row));
        self.append_each(later, |value| row(value).map_or(NO_INTEGER, |&number| number.into()));
    }

    /// Appends the results of `value_of` for the values of another column; nulls must remain nulls.
    fn append_each(&mut self, later: &Self, value_of: impl Fn(i64) -> i64) {
        for block in &later.blocks {
            if block.base == NO_INTEGER {
                self.n_padded += BLOCK;
            } else {
                self.fill(self.len());
                self.open.extend(block.values(&later.bytes).into_iter().map(&value_of));
            }
        }
        if !later.open.is_empty() {
            self.fill(self.len());
            self.open.extend(later.open.iter().map(|&value| value_of(value)));
        }
        self.n_padded += later.n_padded;
    }

    /// Removes the values that are not kept.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        let kept = self.iter().zip(is_kept).filter(|&(_, &is_kept)| is_kept);
        *self = kept.map(|(value, _)| value).collect();
    }

    /// Removes all rows but keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.bytes.clear();
        self.open.clear();
        self.n_padded = 0;
    }

    /// Packs the rows so far, except the last ones, which may still change.
    #[inline]
    pub(crate) fn seal(&mut self) {
        if self.open.len() > BATCH {
            self.pack((self.open.len() - 1) / BLOCK);
        }
    }

    /// Packs all rows. Nothing can be added afterwards.
    pub(crate) fn finish(&mut self) {
        self.pack(self.open.len() / BLOCK);
        self.blocks.shrink_to_fit();
        self.bytes.shrink_to_fit();
        self.open.shrink_to_fit();
    }

    /// Returns the number of rows that are packed or open.
    #[inline]
    fn stored(&self) -> usize {
        self.blocks.len() * BLOCK + self.open.len()
    }

    /// Stores the nulls up to `length`.
    #[inline]
    fn fill(&mut self, length: usize) {
        if length > self.stored() {
            self.fill_gap(length);
        }
        self.n_padded = 0;
    }

    #[cold]
    fn fill_gap(&mut self, length: usize) {
        if length - self.stored() > 2 * BLOCK {
            self.open.resize(self.open.len().next_multiple_of(BLOCK), NO_INTEGER);
            self.pack(self.open.len() / BLOCK);
            let n_blocks = (length - self.stored()) / BLOCK;
            self.blocks.extend(std::iter::repeat_n(Block::EMPTY, n_blocks));
        }
        let missing = length - self.stored();
        self.open.resize(self.open.len() + missing, NO_INTEGER);
    }

    /// Packs the given number of blocks from the open rows.
    fn pack(&mut self, n_blocks: usize) {
        for values in self.open.as_chunks::<BLOCK>().0.iter().take(n_blocks) {
            self.blocks.push(Block::of(values, &mut self.bytes));
        }
        self.open.drain(..n_blocks * BLOCK);
    }
}

/// Iterates over the values of a column, unpacking a block at a time.
struct Iter<'a> {
    column: &'a Packed,
    row: usize,
    length: usize,
    block: [i64; BLOCK],
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let (row, column) = (self.row, self.column);
        if row >= self.length {
            return None;
        }
        self.row += 1;
        let Some(block) = column.blocks.get(row / BLOCK) else {
            let place = row - column.blocks.len() * BLOCK;
            return Some(column.open.get(place).copied().unwrap_or(NO_INTEGER));
        };
        if row.is_multiple_of(BLOCK) {
            self.block = block.values(&column.bytes);
        }
        Some(self.block[row % BLOCK])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.length - self.row;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[inline]
fn from_row(row: u32) -> i64 {
    if row == NO_ROW { NO_INTEGER } else { row.into() }
}

/// Converts a value that came from a row number and therefore fits.
#[inline]
fn to_row(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(NO_ROW)
}

impl FromIterator<i64> for Packed {
    fn from_iter<T: IntoIterator<Item = i64>>(values: T) -> Self {
        let (mut values, mut column) = (values.into_iter(), Self::default());
        loop {
            let n_open = column.open.len();
            column.open.extend(values.by_ref().take(BATCH));
            let n_new = column.open.len() - n_open;
            if n_new < BATCH {
                column.finish();
                return column;
            }
            column.pack(BATCH / BLOCK);
        }
    }
}

impl FromIterator<u32> for Packed {
    fn from_iter<T: IntoIterator<Item = u32>>(rows: T) -> Self {
        rows.into_iter().map(from_row).collect()
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.iter().map(|value| (value != NO_INTEGER).then_some(value));
        formatter.debug_list().entries(values).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::block::BITMAP_BYTES;
    use super::*;

    /// Returns columns of every width, with and without nulls, with long runs of equal values and
    /// of nulls.
    fn columns() -> Vec<Vec<i64>> {
        let mut columns = Vec::new();
        for shift in [0, 6, 14, 30, 62] {
            for gap in [1, 2, 7, 300, 5000] {
                let value = |row: i64| (row * 37 % 5 - 2) << shift;
                let is_some = |row: i64| if gap == 1 { true } else { row % gap == gap / 2 };
                let values =
                    (0..3000).map(|row| if is_some(row) { value(row) } else { NO_INTEGER });
                columns.push(values.collect());
            }
        }
        columns.push((0..3000).map(|row| if row < 1500 { 7 } else { i64::MAX }).collect());
        columns
            .push((0..700).map(|row| if row % 2 == 0 { i64::MIN + 1 } else { i64::MAX }).collect());
        columns
    }

    #[test]
    fn every_value_is_what_it_was() {
        for values in columns() {
            let column: Packed = values.iter().copied().collect();
            assert_eq!(column.iter().collect::<Vec<_>>(), values);
            for (row, &value) in values.iter().enumerate() {
                assert_eq!(column.get(row).unwrap_or(NO_INTEGER), value, "{row}");
            }
        }
    }

    #[test]
    fn a_column_is_the_same_in_whatever_steps_it_was_made() {
        for values in columns() {
            let at_once: Packed = values.iter().copied().collect();
            for step in [1, 255, 256, 700] {
                let mut joined = Packed::default();
                for part in values.chunks(step) {
                    let mut later = Packed::default();
                    let rows = part.iter().enumerate().filter(|&(_, &value)| value != NO_INTEGER);
                    rows.for_each(|(row, &value)| later.set(row, -value));
                    later.pad(part.len());
                    joined.append_each(&later, i64::wrapping_neg);
                    joined.seal();
                }
                let mut one_by_one = Packed::default();
                for (row, &value) in values.iter().enumerate() {
                    if value != NO_INTEGER {
                        one_by_one.set(row, 0);
                        one_by_one.set(row, value);
                        one_by_one.seal();
                    }
                }
                one_by_one.pad(values.len());
                for mut column in [joined, one_by_one] {
                    assert_eq!(column.len(), values.len());
                    assert!(column.iter().eq(values.iter().copied()), "step {step}");
                    column.finish();
                    assert!(column.iter().eq(at_once.iter()), "step {step}");
                }
            }
        }
    }

    #[test]
    fn rows_are_renumbered_and_shifted_where_they_have_a_value() {
        let later: Packed = [2, NO_INTEGER, 0, 1, 2].repeat(200).into_iter().collect();
        let (mut renumbered, mut shifted) = (Packed::default(), Packed::default());
        renumbered.append_renumbered(&later, &[7, 5, 6]);
        shifted.append_shifted(&later, 9);
        assert!(renumbered.iter().eq([6, NO_INTEGER, 7, 5, 6].repeat(200)));
        assert!(shifted.iter().eq([11, NO_INTEGER, 9, 10, 11].repeat(200)));
    }

    #[test]
    fn a_row_of_a_rising_column_is_found_by_its_value() {
        let values: Vec<i64> = (0..2000).map(|row| row * 3 + row / 300 * 1000).collect();
        let column: Packed = values.iter().copied().collect();
        for value in -2..values[1999] + 3 {
            assert_eq!(column.find(value), values.binary_search(&value).ok(), "{value}");
        }
    }

    #[test]
    fn values_take_the_bytes_that_their_distances_need() {
        let bytes =
            |values: &dyn Fn(i64) -> i64| (0..2560).map(values).collect::<Packed>().bytes.len();
        assert_eq!(bytes(&|_| 1 << 40), 0);
        assert_eq!(bytes(&|row| (1 << 40) + row), 2560);
        assert_eq!(bytes(&|row| row * 200), 2 * 2560);
        assert_eq!(bytes(&|row| if row < 1000 { NO_INTEGER } else { 5 }), BITMAP_BYTES);
    }
}
