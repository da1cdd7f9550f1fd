//! Checks one page of a tree: whether its cells and free bytes fill it.
//!
//! [The format](https://www.sqlite.org/fileformat2.html#b_tree_pages) accounts for every byte:
//! after the first cell, a page consists of cells, free blocks and the number of fragments in its
//! header. An altered cell count or pointer breaks the sum.

use std::iter;
use std::ops::RangeInclusive;

const INTERIOR_OF_INDEX: u8 = 2;
const INTERIOR_OF_TABLE: u8 = 5;
const LEAF_OF_INDEX: u8 = 10;
const LEAF_OF_TABLE: u8 = 13;

/// Minimum number of bytes of a cell, and of the space of a freed one.
const LEAST_CELL: usize = 4;

/// The range of row ids below a page: greater than the first (`None` at the left edge), up to the
/// last.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    pub(super) above: Option<i64>,
    pub(super) last: i64,
}

impl Ids {
    pub(super) const ALL: Self = Self { above: None, last: i64::MAX };

    /// Consumes the next id; `None` if it is not above the previous ids and within the range.
    fn take(&mut self, id: i64) -> Option<Self> {
        let taken = Self { above: self.above, last: id };
        (Some(id) > self.above && id <= self.last).then(|| {
            self.above = Some(id);
            taken
        })
    }
}

/// A page of a tree.
pub(super) struct Page<'a> {
    /// The page without the bytes reserved for extensions at its end.
    bytes: &'a [u8],
    /// The offset of the page header; in the first page it follows the file header.
    header: usize,
    kind: u8,
}

impl<'a> Page<'a> {
    /// Returns `None` if it cannot be a page of a tree.
    pub(super) fn of(bytes: &'a [u8], header: usize) -> Option<Self> {
        let kind = *bytes.get(header)?;
        is_of_tree(kind).then_some(Self { bytes, header, kind })
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.kind >= LEAF_OF_INDEX
    }

    pub(super) fn is_of_table(&self) -> bool {
        matches!(self.kind, INTERIOR_OF_TABLE | LEAF_OF_TABLE)
    }

    /// Returns the child pages with their row id ranges; `None` if they are invalid.
    pub(super) fn children(&self, mut ids: Ids) -> Option<Vec<(u32, Ids)>> {
        let mut children = Vec::new();
        for at in self.cells() {
            let below = if self.is_of_table() {
                ids.take(integer(varint(self.bytes, at + 4)?.0))?
            } else {
                ids
            };
            children.push((long(self.bytes, at)?, below));
        }
        children.push((long(self.bytes, self.header + 8)?, ids));
        Some(children)
    }

    /// Returns `Some` if the cells of a leaf fill it, their row ids increase, and the first cell
    /// has a valid number of values. Leaves of indexes, and of tables that are not read, are not
    /// checked.
    pub(super) fn checked(&self, ids: Ids, n_values: Option<&RangeInclusive<i64>>) -> Option<()> {
        let Some(n_values) = n_values.filter(|_| self.is_of_table()) else { return Some(()) };
        if let Some(at) = self.cells().next() {
            n_values.contains(&self.n_values(at)?).then_some(())?;
        }
        self.checked_rows(ids)
    }

    fn checked_rows(&self, mut ids: Ids) -> Option<()> {
        let begin = self.content();
        let mut n_bytes = self.n_free()?;
        for at in self.cells() {
            let (n_payload, id_at) = varint(self.bytes, at)?;
            let (id, end) = varint(self.bytes, id_at)?;
            ids.take(integer(id))?;
            let length = (end - at + self.n_local(n_payload)).max(LEAST_CELL);
            if at < begin || at + length > self.bytes.len() {
                return None;
            }
            n_bytes += length;
        }
        (self.pointers() + 2 * self.n_cells() <= begin && begin + n_bytes == self.bytes.len())
            .then_some(())
    }

    /// Returns the number of values of the row in a cell.
    fn n_values(&self, cell: usize) -> Option<i64> {
        let (_, id) = varint(self.bytes, cell)?;
        let (_, begin) = varint(self.bytes, id)?;
        let (n_header, mut at) = varint(self.bytes, begin)?;
        let mut n_values = 0;
        while ((at - begin) as u64) < n_header {
            (_, at) = varint(self.bytes, at)?;
            n_values += 1;
        }
        Some(n_values)
    }

    /// Returns the number of bytes in free blocks and fragments.
    fn n_free(&self) -> Option<usize> {
        let mut n_bytes = usize::from(*self.bytes.get(self.header + 7)?);
        let mut at = short(self.bytes, self.header + 1)?;
        while at > 0 {
            n_bytes += short(self.bytes, at + 2)?;
            let next = short(self.bytes, at)?;
            if next > 0 && next <= at {
                return None;
            }
            at = next;
        }
        Some(n_bytes)
    }

    /// Returns the number of payload bytes in the page itself, including the number of the overflow
    /// page.
    fn n_local(&self, n_payload: u64) -> usize {
        let usable = self.bytes.len();
        let (least, most) = ((usable - 12) * 32 / 255 - 23, usable - 35);
        let n_payload = usize::try_from(n_payload).unwrap_or(usize::MAX);
        if n_payload <= most {
            return n_payload;
        }
        let local = least + (n_payload - least) % (usable - 4);
        4 + if local <= most { local } else { least }
    }

    fn n_cells(&self) -> usize {
        short(self.bytes, self.header + 3).unwrap_or(0)
    }

    /// Returns the start of the cell content area; the last cell was written first.
    fn content(&self) -> usize {
        match short(self.bytes, self.header + 5) {
            Some(0) | None => 1 << 16,
            Some(at) => at,
        }
    }

    fn pointers(&self) -> usize {
        self.header + if self.is_leaf() { 8 } else { 12 }
    }

    /// Returns the offset of each cell; the end of the page if its pointer is outside the page.
    fn cells(&self) -> impl Iterator<Item = usize> {
        let pointers = iter::successors(Some(self.pointers()), |at| Some(at + 2));
        let cell = |at| short(self.bytes, at).unwrap_or(self.bytes.len());
        pointers.map(cell).take(self.n_cells())
    }
}

/// Whether a page with this first byte may be a page of a tree.
pub(super) fn is_of_tree(kind: u8) -> bool {
    matches!(kind, INTERIOR_OF_INDEX | INTERIOR_OF_TABLE | LEAF_OF_INDEX | LEAF_OF_TABLE)
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 2)?;
    Some(usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
}

/// Returns the four-byte number at an offset.
pub(super) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Returns the varint of one to nine bytes at an offset, and its end.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, &byte) in (at..at + 8).zip(bytes.get(at..)?) {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, place + 1));
        }
    }
    Some((value << 8 | u64::from(*bytes.get(at + 8)?), at + 9))
}

fn integer(bits: u64) -> i64 {
    i64::from_ne_bytes(bits.to_ne_bytes())
}
