//! Splits a file into pieces that together are the file byte for byte, and parses each.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use memchr::memchr;
use regex::bytes::Regex;

use super::grammar::{self, Gemm, NO_NUMBER, Operator, Reason};
use crate::error::Result;
use crate::extract::Status;
use crate::extract::numbers::{self, Number, Unit};
use crate::ids::{InColumn, NO_ROW, StringId};
use crate::names::named;
use crate::progress::{Progress, report};
use crate::strings::Strings;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The start of a line; at any other position, two lines were joined there.
static BEGINNING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        "(?-u)(?:ScaledGemm|GemmAndBias|GemmStridedBatched|Gemm)TunableOp_|Validator,(?:[A-Z])",
    )
    .expect("the pattern is a constant")
});

/// The number that a text begins with, in the forms of C.
static LEADING_NUMBER: LazyLock<regex::Regex> = LazyLock::new(|| {
    regex::Regex::new(
        r"^[ \t]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|(?i:inf|nan)))",
    )
    .expect("the pattern is a constant")
});

/// A line of the file, or a part of one. Strings are handles of [`TunableFile::strings`].
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// The number of its line, from 1.
    pub line: i64,
    /// The offset of its first byte.
    pub offset: i64,
    /// Its length in bytes, including the line ending.
    pub n_bytes: i64,
    /// Its line ending.
    pub ending: Ending,
    /// Its kind.
    pub kind: Kind,
    /// The reason why it is unknown.
    pub reason: Option<Reason>,
    /// The key of a validator.
    pub key: u32,
    /// The value of a validator.
    pub value: u32,
    /// The operator signature, such as `GemmTunableOp_float_TN`.
    pub operator: u32,
    /// The parameter signature, such as `tn_768_36_128`.
    pub parameters: u32,
    /// The parsed signatures.
    pub gemm: Gemm,
    /// The name of the solution.
    pub solution: u32,
    /// The family of the solution.
    pub family: u32,
    /// Its index in that family, or [`NO_NUMBER`].
    pub solution_index: i64,
    /// The time as written.
    pub time_text: u32,
    /// The time of one call; NaN if it is not positive and finite.
    pub time_ns: f64,
    /// The validity of the time.
    pub status: Option<Status>,
    /// The field that `BLAS_LOG` appends, which contains commas.
    pub blas_parameters: u32,
}

/// A file as a list of pieces.
#[derive(Debug)]
pub struct TunableFile {
    /// All strings.
    pub strings: Arc<Strings>,
    /// Every byte of the file, in order.
    pub pieces: Vec<Piece>,
}

/// Reads a file of results or of untuned GEMMs.
///
/// # Errors
///
/// Returns only [`Cancelled`](crate::error::ErrorKind::Cancelled), because every text can be read.
pub fn read(text: &[u8], progress: Progress<'_>) -> Result<TunableFile> {
    let mut reader = Reader::default();
    for_each_line(text, &mut reader, progress, |_| ())?;
    Ok(TunableFile { strings: reader.strings.freeze(), pieces: reader.pieces })
}

/// Reads the lines of a file, and calls `done` after each.
pub(super) fn for_each_line(
    text: &[u8],
    reader: &mut Reader,
    progress: Progress<'_>,
    mut done: impl FnMut(&mut Reader),
) -> Result<()> {
    let mut offset = 0;
    if text.starts_with(BYTE_ORDER_MARK) {
        let mark = reader.piece(BYTE_ORDER_MARK.len(), Ending::Nothing);
        reader.pieces.push(Piece { kind: Kind::ByteOrderMark, ..mark });
        offset = BYTE_ORDER_MARK.len();
    }
    while offset < text.len() {
        report(progress, offset as u64)?;
        let end = memchr(b'\n', &text[offset..]).map_or(text.len(), |at| offset + at + 1);
        reader.line(&text[offset..end]);
        done(reader);
        offset = end;
    }
    Ok(())
}

/// Parses lines to pieces.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) strings: Strings,
    /// By the handle of the signature.
    operators: HashMap<u32, std::result::Result<Operator, Reason>>,
    pub(super) pieces: Vec<Piece>,
    lines: i64,
    offset: i64,
}

impl Reader {
    /// Forgets the pieces and their strings.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.operators.clear();
        self.strings = Strings::default();
    }

    /// Reads a line with its line ending, if it has one.
    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        let (text, ending) = split_ending(line);
        let mut from = 0;
        for at in glued_at(text) {
            self.part(&text[from..at], at - from, Ending::Nothing);
            from = at;
        }
        self.part(&text[from..], line.len() - from, ending);
    }

    fn part(&mut self, text: &[u8], n_bytes: usize, ending: Ending) {
        let bare = self.piece(n_bytes, ending);
        let read = std::str::from_utf8(text)
            .map_err(|_| Reason::Encoding)
            .and_then(|text| self.fields(text, bare));
        self.pieces.push(read.unwrap_or_else(|reason| Piece { reason: Some(reason), ..bare }));
    }

    /// Returns a piece with only its position set.
    fn piece(&mut self, n_bytes: usize, ending: Ending) -> Piece {
        let n_bytes = i64::try_from(n_bytes).unwrap_or(i64::MAX);
        let offset = self.offset;
        self.offset += n_bytes;
        Piece {
            line: self.lines.max(1),
            offset,
            n_bytes,
            ending,
            kind: Kind::Unknown,
            reason: None,
            key: NO_ROW,
            value: NO_ROW,
            operator: NO_ROW,
            parameters: NO_ROW,
            gemm: Gemm::default(),
            solution: NO_ROW,
            family: NO_ROW,
            solution_index: NO_NUMBER,
            time_text: NO_ROW,
            time_ns: f64::NAN,
            status: None,
            blas_parameters: NO_ROW,
        }
    }

    fn fields(&mut self, text: &str, piece: Piece) -> std::result::Result<Piece, Reason> {
        if text.trim().is_empty() {
            return Ok(Piece { kind: Kind::Blank, ..piece });
        }
        if let Some(rest) = text.strip_prefix("Validator,") {
            let (key, rest) = rest.split_once(',').ok_or(Reason::TooFewFields)?;
            let value = rest.split(',').next().unwrap_or_default();
            let (key, value) = (self.text(key), self.text(value));
            return Ok(Piece { kind: Kind::Validator, key, value, ..piece });
        }
        if !begins_like_a_line(text.as_bytes()) {
            return Err(Reason::Foreign);
        }
        self.row(text, piece)
    }

    fn row(&mut self, text: &str, piece: Piece) -> std::result::Result<Piece, Reason> {
        let (row, blas_parameters) = match text.find(",BLAS_PARAMS: - {") {
            Some(at) => (&text[..at], self.text(&text[at + 1..])),
            None => (text, NO_ROW),
        };
        let fields: Vec<_> = row.split(',').collect();
        let [operator, parameters, outcome @ ..] = &fields[..] else {
            return Err(Reason::TooFewFields);
        };
        let operator = self.text(operator);
        let piece = Piece {
            kind: Kind::Untuned,
            gemm: grammar::gemm(self.operator(operator)?, parameters, &mut self.strings)?,
            operator,
            parameters: self.text(parameters),
            blas_parameters,
            ..piece
        };
        match outcome {
            [] => Ok(piece),
            [solution] => self.result(solution, None, piece),
            // As in PyTorch, further fields are ignored.
            [solution, time, ..] => self.result(solution, Some(time), piece),
        }
    }

    /// Returns the parts of an operator signature; files have few different ones.
    fn operator(&mut self, signature: u32) -> std::result::Result<Operator, Reason> {
        if let Some(known) = self.operators.get(&signature) {
            return *known;
        }
        let text =
            StringId::from_column(signature).map_or("", |id| self.strings.get(id)).to_owned();
        let found = grammar::operator(&text, &mut self.strings);
        self.operators.insert(signature, found);
        found
    }

    fn result(
        &mut self,
        solution: &str,
        time: Option<&str>,
        piece: Piece,
    ) -> std::result::Result<Piece, Reason> {
        let (family, solution_index) = grammar::solution(solution)?;
        let (time_ns, status) = time.map_or((f64::NAN, Status::Missing), measured);
        Ok(Piece {
            kind: Kind::Result,
            solution: self.text(solution),
            family: self.text(family),
            solution_index,
            time_text: time.map_or(NO_ROW, |time| self.text(time)),
            time_ns,
            status: Some(status),
            ..piece
        })
    }

    fn text(&mut self, text: &str) -> u32 {
        Some(self.strings.intern(text)).in_column()
    }
}

fn split_ending(line: &[u8]) -> (&[u8], Ending) {
    if let Some(text) = line.strip_suffix(b"\r\n") {
        return (text, Ending::CrLf);
    }
    line.strip_suffix(b"\n").map_or((line, Ending::Nothing), |text| (text, Ending::Lf))
}

fn begins_like_a_line(text: &[u8]) -> bool {
    BEGINNING.find(text).is_some_and(|found| found.start() == 0)
}

/// Returns the positions at which further rows begin in a line that begins with one. A comment that
/// quotes a row stays a comment.
fn glued_at(text: &[u8]) -> Vec<usize> {
    let mut beginnings = BEGINNING.find_iter(text).map(|found| found.start());
    if beginnings.next() == Some(0) { beginnings.collect() } else { Vec::new() }
}

/// Returns the value of a hexadecimal number of C, such as `0x1.8p-3`.
fn hexadecimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"))?;
    let (digits, exponent) = number.split_once(['p', 'P']).unwrap_or((number, "0"));
    let n_fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits = digits.bytes().filter_map(|byte| char::from(byte).to_digit(16));
    let value = digits.fold(0.0, |value, digit| value * 16.0 + f64::from(digit));
    let least = if exponent.starts_with('-') { i32::MIN } else { i32::MAX };
    let exponent: i32 = exponent.parse().unwrap_or(least);
    let n_bits = i32::try_from(n_fraction.saturating_mul(4)).unwrap_or(i32::MAX);
    let value = value * 2_f64.powi(exponent.saturating_sub(n_bits));
    Some(if text.starts_with('-') { -value } else { value })
}

/// Converts a time in milliseconds to nanoseconds, with its validity. Like `atof` in PyTorch, reads
/// the number that the text begins with, or 0.
fn measured(time: &str) -> (f64, Status) {
    let number = numbers::nanoseconds(time.as_bytes(), Unit::Milliseconds).or_else(|| {
        let found = LEADING_NUMBER.captures(time)?;
        let decimal = || numbers::nanoseconds(found[1].as_bytes(), Unit::Milliseconds);
        let hexadecimal = hexadecimal(&found[1]).map(|time_ms| Number::Value(time_ms * 1e6));
        hexadecimal.or_else(decimal)
    });
    match number {
        Some(Number::Missing) => (f64::NAN, Status::Missing),
        Some(Number::Undefined) => (f64::NAN, Status::NotANumber),
        Some(Number::Value(time_ns)) if time_ns.is_infinite() => (f64::NAN, Status::Infinite),
        Some(Number::Value(time_ns)) if time_ns > 0.0 => (time_ns, Status::Ok),
        Some(Number::Value(time_ns)) if time_ns < 0.0 => (f64::NAN, Status::Negative),
        None | Some(Number::Value(_)) => (f64::NAN, Status::Zero),
    }
}

named! {
    /// The kind of a piece.
    Kind {
        /// A line that ties the file to a version or a device.
        Validator "validator",
        /// A GEMM and the solution used for it.
        Result "result",
        /// A GEMM that was recorded and not tuned.
        Untuned "untuned",
        /// An empty line.
        Blank "blank",
        /// The mark that some editors write at the start of a file.
        ByteOrderMark "byte_order_mark",
        /// Anything else; its `Reason` has the details.
        Unknown "unknown",
    }
}

named! {
    /// How a piece ends.
    Ending {
        /// A line feed, as PyTorch writes.
        Lf "lf",
        /// Carriage return and line feed; PyTorch reads the carriage return as part of the value.
        CrLf "crlf",
        /// No line ending: the file ends here, or the next piece is on the same line.
        Nothing "nothing",
    }
}

impl Ending {
    /// Returns its length in bytes.
    pub(super) fn n_bytes(self) -> i64 {
        match self {
            Self::Lf => 1,
            Self::CrLf => 2,
            Self::Nothing => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;

    fn pieces(text: &str) -> TunableFile {
        read(text.as_bytes(), &silent).unwrap()
    }

    fn text(file: &TunableFile, code: u32) -> &str {
        StringId::from_column(code).map_or("", |id| file.strings.get(id))
    }

    fn kinds(text: &str) -> Vec<(Kind, Option<Reason>)> {
        pieces(text).pieces.iter().map(|piece| (piece.kind, piece.reason)).collect()
    }

    #[test]
    fn pieces_tile_the_file() {
        let file = "\u{feff}Validator,PT_VERSION,2.9\r\n\n# note\nGemmTunableOp_Half_NN,nn_1_2_3";
        let read = pieces(file);
        let mut next = 0;
        for piece in &read.pieces {
            assert_eq!(piece.offset, next);
            next += piece.n_bytes;
        }
        assert_eq!(next, i64::try_from(file.len()).unwrap());
        let lines: Vec<_> = read.pieces.iter().map(|piece| (piece.line, piece.kind)).collect();
        assert_eq!(
            lines,
            [
                (1, Kind::ByteOrderMark),
                (1, Kind::Validator),
                (2, Kind::Blank),
                (3, Kind::Unknown),
                (4, Kind::Untuned)
            ]
        );
    }

    #[test]
    fn names_of_types_may_hold_what_separates_them() {
        let file = pieces(
            "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e5m2_BFloat16_TN,tn_64_12288_2048_ld_2048_2048_64_rw_1_bias_None\n\
             GemmStridedBatchedTunableOp_c10::complex<float>_NT,nt_4_5_*_B_6\n",
        );
        let [scaled, batched] = [file.pieces[0].gemm, file.pieces[1].gemm];
        let types = [scaled.dtype_a, scaled.dtype_b, scaled.dtype_c].map(|code| text(&file, code));
        assert_eq!(types, ["Float8_e4m3fn", "Float8_e5m2", "BFloat16"]);
        assert_eq!(text(&file, scaled.tail), "_rw_1_bias_None");
        assert_eq!(text(&file, batched.dtype_a), "c10::complex<float>");
        assert_eq!((batched.k, batched.batch), (NO_NUMBER, 6));
        assert_eq!(text(&file, batched.wildcards), "k");
    }

    #[test]
    fn solutions_of_every_library_have_a_family_and_an_index() {
        let solutions = [
            ("Default", "default", NO_NUMBER),
            ("Null", "null", NO_NUMBER),
            ("Gemm_Rocblas_-1140855908", "rocblas", -1_140_855_908),
            ("Gemm_Hipblaslt_1285", "hipblaslt", 1285),
            ("Gemm_Hipblaslt_TN_12", "hipblaslt", 12),
            (
                "Gemm_Cublaslt_id_66_tile_20_stages_36_splitk_1_red_0_swizzle_0_custom_0_inner_0_cluster_2",
                "cublaslt",
                66,
            ),
            ("-7", "index", -7),
            ("Gemm_Someday_1", "other", NO_NUMBER),
        ];
        for (solution, family, index) in solutions {
            let file = pieces(&format!("GemmTunableOp_float_NN,nn_1_2_3,{solution},0.5"));
            let [row] = &file.pieces[..] else { panic!("one row") };
            assert_eq!((text(&file, row.family), row.solution_index), (family, index));
            assert_eq!((row.time_ns, row.status), (500_000.0, Some(Status::Ok)));
        }
    }

    #[test]
    fn a_time_that_cannot_win_says_why() {
        let row = "GemmTunableOp_float_NN,nn_1_2_3,Default";
        for (time, status) in [
            (",inf", Status::Infinite),
            (",-nan", Status::NotANumber),
            (",0", Status::Zero),
            (",-1", Status::Negative),
            (",-0x1p-3", Status::Negative),
            (",0x1p9999", Status::Infinite),
            ("", Status::Missing),
        ] {
            let file = pieces(&format!("{row}{time}"));
            assert_eq!(file.pieces[0].status, Some(status));
            assert!(file.pieces[0].time_ns.is_nan());
        }
        for (time, time_ns) in [
            (",0.1.2", 1e5),
            (", 0.5", 5e5),
            (",0.5 ms,note", 5e5),
            (",.5e1x", 5e6),
            (",0x1p-3", 125_000.0),
            (",0X1.8p+1x", 3e6),
            (",0x.8", 5e5),
        ] {
            let file = pieces(&format!("{row}{time}"));
            assert_eq!((file.pieces[0].kind, file.pieces[0].time_ns), (Kind::Result, time_ns));
        }
        assert_eq!(pieces(&format!("{row},note")).pieces[0].status, Some(Status::Zero));
    }

    #[test]
    fn glued_rows_are_taken_apart_and_comments_are_not() {
        let row = "GemmTunableOp_float_NN,nn_1_2_3,Default,0.5";
        let file = pieces(&format!("{row}{row}\n"));
        assert_eq!(file.pieces.len(), 2);
        assert!(file.pieces.iter().all(|piece| piece.kind == Kind::Result && piece.line == 1));
        assert_eq!(kinds(&format!("# {row}")), [(Kind::Unknown, Some(Reason::Foreign))]);
        assert_eq!(
            kinds(&format!("GemmTunableOp_float_NN,nn_1{row}")),
            [(Kind::Unknown, Some(Reason::Parameters)), (Kind::Result, None)]
        );
    }

    #[test]
    fn the_field_of_the_blas_log_may_hold_commas() {
        let log = "BLAS_PARAMS: - { function: matmul, M: 1, N: 2 }";
        let file = pieces(&format!("GemmTunableOp_float_NN,nn_1_2_3,Default,0.5,{log}\n"));
        assert_eq!(text(&file, file.pieces[0].blas_parameters), log);
        assert_eq!(text(&file, file.pieces[0].solution), "Default");
    }

    #[test]
    fn digits_of_other_scripts_are_no_numbers() {
        assert_eq!(
            kinds("GemmTunableOp_float_NN,nn_\u{661}_2_3"),
            [(Kind::Unknown, Some(Reason::Parameters))]
        );
    }
}
