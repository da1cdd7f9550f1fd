//! Finds pages that SQLite cannot have written, and from which it reads fewer rows, or rows of
//! another table, without an error.
//!
//! Each page of a tree is referenced once, by its parent page or by the schema; free pages are
//! referenced by the free list. A page that looks like one of a tree and is not referenced was
//! therefore lost. The leaves of the tables that are read are checked cell by cell (`page`); for
//! other trees, only the pages above the leaves.
//!
//! Limits: deleted rows leave no trace. Values and overflow chains are not checked.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::iter;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::Result;
use crate::progress::{Progress, report};
use crate::read::source;

const FILE_HEADER: usize = 100;

/// SQLite does not use the page that contains this byte.
const LOCK_BYTE: u64 = 1 << 30;

/// Maximum depth of a tree in SQLite.
const MOST_LEVELS: usize = 20;

/// In larger files, an overflow page can begin like a page of a tree.
const MOST_PAGES: usize = 1 << 25;

const PAGES_A_REPORT: u64 = 1024;

/// A tree of the schema.
pub(super) struct Tree {
    pub(super) root: u32,
    /// The possible numbers of values in its rows; `None` if its rows are not read.
    pub(super) n_values: Option<RangeInclusive<i64>>,
}

/// The pages with faults.
#[derive(Default)]
pub(super) struct Damaged {
    pub(super) n_pages: u64,
    /// The offset of the first of them in the file.
    pub(super) first_offset: u64,
}

impl Damaged {
    /// The page in which the schema begins.
    pub(super) const SCHEMA: Self = Self { n_pages: 1, first_offset: 0 };
}

/// Checks the pages of a database with these trees.
pub(super) fn damaged(path: &Path, trees: &[Tree], progress: Progress<'_>) -> Result<Damaged> {
    let Some(mut pages) = Pages::open(path, progress) else { return Ok(Damaged::default()) };
    let first = pages.bytes.clone();
    pages.name_free(long(&first, 32).unwrap_or(0));
    if long(&first, 52) > Some(0) {
        pages.name_maps();
    }
    for tree in trees {
        pages.walk(tree.root, Ids::ALL, tree, MOST_LEVELS)?;
    }
    pages.find_lost()?;
    Ok(pages.damaged)
}

struct Pages<'a> {
    file: File,
    /// The page that was read last.
    bytes: Vec<u8>,
    n_usable: usize,
    /// Whether each page was referenced so far.
    is_named: Vec<bool>,
    damaged: Damaged,
    n_read: u64,
    progress: Progress<'a>,
}

impl<'a> Pages<'a> {
    /// Returns `None` if the file header is invalid; SQLite has rejected the file in this case.
    fn open(path: &Path, progress: Progress<'a>) -> Option<Self> {
        let mut file = source::open_regular(path).ok()?;
        let n_bytes = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let mut header = [0; FILE_HEADER];
        file.read_exact(&mut header).ok()?;
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        let n_usable = size.checked_sub(header[20].into()).filter(|usable| *usable >= 480)?;
        // The page count is valid only if its writer set both counters to the same value.
        let counted = long(&header, 28).filter(|_| header[24..28] == header[92..96]);
        let n_pages = counted.map_or(usize::MAX, |counted| counted as usize).min(n_bytes / size);
        let (is_named, damaged) = (vec![false; n_pages], Damaged::default());
        let mut pages =
            Self { file, bytes: vec![0; size], n_usable, is_named, damaged, n_read: 0, progress };
        pages.read(1).then_some(pages)
    }

    fn read(&mut self, number: u32) -> bool {
        let at = offset(number, self.bytes.len());
        let found = self.file.seek(SeekFrom::Start(at));
        found.and_then(|_| self.file.read_exact(&mut self.bytes)).is_ok()
    }

    /// Marks a page as referenced. Returns whether it was not referenced before.
    fn name(&mut self, number: u32) -> bool {
        let index = (number as usize).wrapping_sub(1);
        let is_first = self.is_named.get_mut(index).is_some_and(|it| !std::mem::replace(it, true));
        if !is_first {
            self.note(number);
        }
        is_first
    }

    fn note(&mut self, number: u32) {
        let Damaged { n_pages, first_offset } = &mut self.damaged;
        let offset = offset(number, self.bytes.len());
        *first_offset = if *n_pages == 0 { offset } else { offset.min(*first_offset) };
        *n_pages += 1;
    }

    /// Marks the free pages, which are listed in some of them.
    fn name_free(&mut self, first: u32) {
        let mut list = first;
        while list > 0 && self.name(list) && self.read(list) {
            let numbers = self.bytes[..self.n_usable].chunks_exact(4);
            let mut numbers = numbers.filter_map(|bytes| long(bytes, 0));
            list = numbers.next().unwrap_or(0);
            let n_free = numbers.next().unwrap_or(0) as usize;
            let free: Vec<_> = numbers.take(n_free).collect();
            for number in free {
                self.name(number);
            }
        }
    }

    /// Marks the pointer map pages of auto-vacuum databases.
    fn name_maps(&mut self) {
        let lock = self.lock();
        for index in (1..self.is_named.len()).step_by(self.n_usable / 5 + 1) {
            let index = if index == lock { index + 1 } else { index };
            self.is_named.get_mut(index).into_iter().for_each(|it| *it = true);
        }
    }

    /// Returns the index of the page that SQLite does not use.
    fn lock(&self) -> usize {
        usize::try_from(LOCK_BYTE).unwrap_or(usize::MAX) / self.bytes.len()
    }

    /// Checks a page and its children. Returns whether it is a leaf.
    fn walk(&mut self, number: u32, ids: Ids, tree: &Tree, n_levels: usize) -> Result<bool> {
        if !self.name(number) {
            return Ok(false);
        }
        self.report()?;
        let is_there = self.read(number);
        let header = if number == 1 { FILE_HEADER } else { 0 };
        let page = Page::of(&self.bytes[..self.n_usable], header).filter(|_| is_there);
        let is_leaf = page.as_ref().is_some_and(Page::is_leaf);
        let below = match page {
            Some(page) if is_leaf => page.checked(ids, tree.n_values.as_ref()).map(|()| Vec::new()),
            Some(page) if n_levels > 0 => page.children(ids),
            _ => None,
        };
        if below.is_none() {
            self.note(number);
        }
        self.walk_below(below.unwrap_or_default(), tree, n_levels.saturating_sub(1))?;
        Ok(is_leaf)
    }

    /// Checks the children of a page. If the first is a leaf, all are.
    fn walk_below(&mut self, below: Vec<(u32, Ids)>, tree: &Tree, n_levels: usize) -> Result<()> {
        let mut is_enough = false;
        for (child, ids) in below {
            if is_enough {
                self.name(child);
            } else {
                is_enough = self.walk(child, ids, tree, n_levels)? && tree.n_values.is_none();
            }
        }
        Ok(())
    }

    /// Finds the tree pages that are not referenced.
    fn find_lost(&mut self) -> Result<()> {
        let lock = self.lock();
        if self.is_named.len() > MOST_PAGES {
            return Ok(());
        }
        for (number, index) in (1..).zip(0..self.is_named.len()) {
            if !self.is_named[index] && index != lock {
                self.report()?;
                if self.read(number) && is_of_tree(self.bytes[0]) {
                    self.note(number);
                }
            }
        }
        Ok(())
    }

    fn report(&mut self) -> Result<()> {
        self.n_read += 1;
        if self.n_read.is_multiple_of(PAGES_A_REPORT) {
            report(self.progress, self.is_named.len() as u64 * self.bytes.len() as u64)?;
        }
        Ok(())
    }
}

fn offset(number: u32, page_bytes: usize) -> u64 {
    u64::from(number.saturating_sub(1)) * page_bytes as u64
}

// Checks one page of a tree: whether its cells and free bytes fill it.
//
// [The format](https://www.sqlite.org/fileformat2.html#b_tree_pages) accounts for every byte:
// after the first cell, a page consists of cells, free blocks and the number of fragments in its
// header. An altered cell count or pointer breaks the sum.

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
fn is_of_tree(kind: u8) -> bool {
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
