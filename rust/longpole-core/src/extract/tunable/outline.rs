//! Columns to distinguish and order rows, in a fraction of the memory.
//!
//! All columns of a large file take about ten times its size. GEMMs and solutions are numbers
//! here, the same in all files that are read together.

use std::collections::HashMap;
use std::hash::Hash;

use super::grammar::{FAMILIES, NO_NUMBER};
use super::pieces::{Ending, Kind, Piece, Reader, for_each_line};
use crate::error::Result;
use crate::ids::{NO_ROW, StringId, row_in_column};
use crate::progress::Progress;
use crate::strings::Strings;

/// How many pieces share a table of strings, which is then dropped.
const PIECES_AT_A_TIME: usize = 1024;

/// The pieces of files: a row for each, in the order of the files.
#[derive(Debug, Default)]
pub struct Outline {
    /// The number of its file.
    pub file: Vec<u32>,
    /// The number of its line in the file, from 1.
    pub line: Vec<u32>,
    /// The offset of its first byte in the file.
    pub offset: Vec<i64>,
    /// Its length in bytes, without the line ending.
    pub length: Vec<u32>,
    /// Its line ending.
    pub ending: Vec<Ending>,
    /// Its kind.
    pub kind: Vec<Kind>,
    /// The number of its GEMM, in order of first appearance.
    pub gemm: Vec<u32>,
    /// The number of its solution, in order of first appearance.
    pub solution: Vec<u32>,
    /// The number of the family of the solution in [`FAMILIES`].
    pub family: Vec<u32>,
    /// The time of one call; NaN if it is not positive and finite.
    pub time_ns: Vec<f64>,
    /// Floating-point operations of one call; see [`Gemm::flops`](super::Gemm::flops).
    pub flops: Vec<i64>,
    /// Whether a size is a wildcard.
    pub has_wildcards: Vec<bool>,
    /// Its index among the sorted rows: by the signatures, then the best first (the shortest time,
    /// then no time; ties by the name of the solution, then by the text). Empty if the order was
    /// not requested.
    pub place: Vec<u32>,
}

/// Reads files of results or of untuned GEMMs, with `place` if `is_sorted`.
///
/// # Errors
///
/// Returns only [`Cancelled`](crate::error::ErrorKind::Cancelled), because every text can be read.
pub fn outline(texts: &[&[u8]], is_sorted: bool, progress: Progress<'_>) -> Result<Outline> {
    let mut found = Outline::default();
    let mut names = Names::default();
    for (number, text) in texts.iter().enumerate() {
        let number = row_in_column(number);
        let mut reader = Reader::default();
        for_each_line(text, &mut reader, progress, |reader| {
            if reader.pieces.len() >= PIECES_AT_A_TIME {
                found.add(number, text, reader, &mut names);
            }
        })?;
        found.add(number, text, &mut reader, &mut names);
    }
    if is_sorted {
        found.place = found.places(texts, &names);
    }
    Ok(found)
}

impl Outline {
    fn add<'t>(&mut self, file: u32, text: &'t [u8], reader: &mut Reader, names: &mut Names<'t>) {
        for piece in &reader.pieces {
            self.add_piece(file, text, piece, &reader.strings, names);
        }
        reader.clear();
    }

    fn add_piece<'t>(
        &mut self,
        file: u32,
        text: &'t [u8],
        piece: &Piece,
        strings: &Strings,
        names: &mut Names<'t>,
    ) {
        let get = |code| StringId::from_column(code).map(|id| strings.get(id));
        let length = piece.n_bytes - piece.ending.n_bytes();
        let mut after = usize::try_from(piece.offset).unwrap_or(usize::MAX);
        let mut field = |code| {
            let name = get(code)?;
            let found = text.get(after..after + name.len())?;
            after += name.len() + 1;
            Some(found)
        };
        let is_row = matches!(piece.kind, Kind::Result | Kind::Untuned);
        let key = if is_row { field(piece.operator).zip(field(piece.parameters)) } else { None };
        let solution = field(piece.solution);
        let family = get(piece.family).and_then(|name| FAMILIES.iter().position(|&f| f == name));
        self.file.push(file);
        self.line.push(u32::try_from(piece.line).unwrap_or(u32::MAX));
        self.offset.push(piece.offset);
        self.length.push(u32::try_from(length).unwrap_or(u32::MAX));
        self.ending.push(piece.ending);
        self.kind.push(piece.kind);
        self.gemm.push(key.map_or(NO_ROW, |key| names.gemms.number(key)));
        self.solution.push(solution.map_or(NO_ROW, |name| names.solutions.number(name)));
        self.family.push(family.map_or(NO_ROW, row_in_column));
        self.time_ns.push(piece.time_ns);
        self.flops.push(if is_row { piece.gemm.flops() } else { NO_NUMBER });
        self.has_wildcards.push(piece.gemm.wildcards != NO_ROW);
    }

    fn places(&self, texts: &[&[u8]], names: &Names<'_>) -> Vec<u32> {
        let gemms =
            names.gemms.ranks_by(|&(operator, parameters)| (operator, Begin::of(parameters)));
        let solutions = names.solutions.ranks_by(|&name| name);
        let mut rows: Vec<_> =
            (0..self.gemm.len()).filter(|&row| self.gemm[row] != NO_ROW).collect();
        rows.sort_unstable_by(|&one, &other| {
            let gemm = |row: usize| gemms[self.gemm[row] as usize];
            let solution = |row: usize| solutions.get(self.solution[row] as usize);
            let text = |row: usize| &texts[self.file[row] as usize][self.bytes_of(row)];
            gemm(one)
                .cmp(&gemm(other))
                // NaN, a missing time, sorts after all numbers.
                .then_with(|| self.time_ns[one].total_cmp(&self.time_ns[other]))
                .then_with(|| solution(one).cmp(&solution(other)))
                .then_with(|| text(one).cmp(text(other)))
                .then(one.cmp(&other))
        });
        let mut places = vec![NO_ROW; self.gemm.len()];
        for (place, &row) in rows.iter().enumerate() {
            places[row] = row_in_column(place);
        }
        places
    }

    fn bytes_of(&self, row: usize) -> std::ops::Range<usize> {
        let begin = usize::try_from(self.offset[row]).unwrap_or_default();
        begin..begin + self.length[row] as usize
    }
}

/// The signatures and solutions of all files.
#[derive(Default)]
struct Names<'t> {
    gemms: Numbers<(&'t [u8], &'t [u8])>,
    solutions: Numbers<&'t [u8]>,
}

/// Numbers distinct values in order of first appearance.
struct Numbers<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    fn number(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            row_in_column(self.values.len() - 1)
        })
    }

    /// Returns the rank of each value, by number.
    fn ranks_by<K: Ord>(&self, key: impl Fn(&T) -> K) -> Vec<u32> {
        let mut sorted: Vec<_> = self.values.iter().map(key).zip(0_u32..).collect();
        sorted.sort_unstable();
        let mut ranks = vec![0; sorted.len()];
        for (rank, &(_, number)) in sorted.iter().enumerate() {
            ranks[number as usize] = row_in_column(rank);
        }
        ranks
    }
}

/// A text, compared by its first bytes without reading the file, then as a whole.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Begin<'t>(u128, &'t [u8]);

impl<'t> Begin<'t> {
    fn of(text: &'t [u8]) -> Self {
        let mut bytes = [0; 16];
        for (byte, &first) in bytes.iter_mut().zip(text) {
            *byte = first;
        }
        Self(u128::from_be_bytes(bytes), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;

    const FIRST: &[u8] = b"Validator,PT_VERSION,2.9.1\r\n\
        GemmTunableOp_float_NN,nn_4_5_6,Gemm_Rocblas_7,0.5\n\
        GemmTunableOp_float_NN,nn_1_2_*,Default\n";
    const SECOND: &[u8] = b"GemmTunableOp_float_NN,nn_4_5_6,Gemm_Rocblas_3,0.5,note\n\
        GemmTunableOp_float_NN,nn_4_5_6\n\
        # note";

    #[test]
    fn rows_of_several_files_share_numbers_and_places() {
        let found = outline(&[FIRST, SECOND], true, &silent).unwrap();
        assert_eq!(found.file, [0, 0, 0, 1, 1, 1]);
        assert_eq!(found.gemm, [NO_ROW, 0, 1, 0, 0, NO_ROW]);
        assert_eq!(found.solution, [NO_ROW, 0, 1, 2, NO_ROW, NO_ROW]);
        assert_eq!(found.place, [NO_ROW, 2, 0, 1, 3, NO_ROW]);
        assert_eq!(found.flops, [NO_NUMBER, 240, NO_NUMBER, 240, 240, NO_NUMBER]);
        assert_eq!(found.has_wildcards, [false, false, true, false, false, false]);
        let text = |row| {
            let text = if found.file[row] == 0 { FIRST } else { SECOND };
            std::str::from_utf8(&text[found.bytes_of(row)]).unwrap()
        };
        assert_eq!(text(0), "Validator,PT_VERSION,2.9.1");
        assert_eq!(text(5), "# note");
    }

    #[test]
    fn an_outline_has_the_pieces_of_the_file() {
        let text = FIRST.repeat(2 * PIECES_AT_A_TIME);
        let whole = super::super::read(&text, &silent).unwrap();
        let found = outline(&[&text], false, &silent).unwrap();
        let places: Vec<_> = whole.pieces.iter().map(|piece| (piece.offset, piece.kind)).collect();
        assert_eq!(found.offset.into_iter().zip(found.kind).collect::<Vec<_>>(), places);
        let lines: Vec<_> = whole.pieces.iter().map(|piece| piece.line).collect();
        assert_eq!(found.line.into_iter().map(i64::from).collect::<Vec<_>>(), lines);
        assert!(found.place.is_empty());
    }
}
