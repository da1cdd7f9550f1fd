//! The grammar of one row, as written by PyTorch 2.3 to 2.15.
//!
//! An operator signature contains the operation, its data types and the layout. The parameter
//! signature contains the sizes in BLAS notation, in column-major order: `torch.matmul(A[M, K],
//! B[K, N])` has `m = N` and `n = M`. Type names contain underscores and colons, so neither
//! signature can be split at `_` alone.

use crate::names::named;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::ids::{InColumn, NO_ROW};
use crate::strings::Strings;

/// Represents null in integer columns.
pub const NO_NUMBER: i64 = i64::MIN;

/// The data types in operator signatures.
const DTYPE: &str = r"float|tf32|bfx9|double|BFloat16|Half|c10::complex<float>|c10::complex<double>|Float8_e4m3fnuz|Float8_e4m3fn|Float8_e5m2fnuz|Float8_e5m2|Float8_e8m0fnu|Float4_e2m1fn_x2|unknown";

/// A size, or a wildcard (PyTorch 2.15). Eighteen digits always fit 63 bits.
const SIZE: &str = r"\d{1,18}|\*";

const MOST_DIGITS: usize = 18;

const SIZES: [&str; 7] = ["m", "n", "k", "batch", "lda", "ldb", "ldc"];

/// The text after the sizes of scaled GEMMs on ROCm and CUDA, and of emulated float32.
const TAIL: &str = r"_rw_[01]_bias_(?P<bias>\w+?)(?:_swz_\d+_\d+)?|_a_\w+?_b_\w+?_c_\w+?_as_\w+?_bs_\w+?_ast_\d+_bst_\d+_dscale_\d+_fast_\d+_bias_(?P<cuda_bias>\w+)|_compute_bf16x9_r";

static OPERATOR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?:(?P<plain>Gemm|GemmAndBias|GemmStridedBatched)TunableOp_(?P<dtype>{DTYPE})|ScaledGemmTunableOp_(?P<a>{DTYPE})_(?P<b>{DTYPE})_(?P<c>{DTYPE}))_(?P<layout>[NT][NT])"
    ))
});

static PARAMETERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"(?P<transa>[ntc])(?P<transb>[ntc])_(?P<m>{SIZE})_(?P<n>{SIZE})_(?P<k>{SIZE})(?:_B_(?P<batch>{SIZE}))?(?:_ld_(?P<lda>{SIZE})_(?P<ldb>{SIZE})_(?P<ldc>{SIZE}))?(?P<tail>{TAIL})?"
    ))
});

static SOLUTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?P<word>Default|Null)|Gemm_(?P<library>Rocblas|Hipblaslt)_(?:[NT][NT]_)?(?P<index>-?\d{1,18})|Gemm_(?P<cublaslt>Cublaslt)_id_(?P<id>\d{1,18})(?:_[a-z]+_-?\d+)+|(?P<bare>-?\d{1,18})",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("^(?-u:{text})$")).expect("the pattern is a constant")
}

named! {
    /// Why a piece is invalid for PyTorch.
    Reason {
        /// It does not begin like a TunableOp line.
        Foreign "foreign",
        /// Fields are missing, for example at the end of a file whose writer crashed.
        TooFewFields "too_few_fields",
        /// The operator, a data type or the layout is unknown.
        Operator "operator",
        /// The parameters have an unknown form.
        Parameters "parameters",
        /// The name of the solution is empty or contains a space.
        Solution "solution",
        /// The bytes are not UTF-8.
        Encoding "encoding",
    }
}

/// A GEMM, parsed from its two signatures. Strings are handles. Missing sizes are [`NO_NUMBER`],
/// and so are wildcards, which are listed in `wildcards`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names of BLAS
pub struct Gemm {
    /// `Gemm`, `GemmAndBias`, `GemmStridedBatched` or `ScaledGemm`.
    pub operation: u32,
    pub dtype_a: u32,
    pub dtype_b: u32,
    pub dtype_c: u32,
    /// `NN`, `NT`, `TN` or `TT`.
    pub layout: u32,
    pub transa: u32,
    pub transb: u32,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub batch: i64,
    pub lda: i64,
    pub ldb: i64,
    pub ldc: i64,
    /// The text after the sizes, as written.
    pub tail: u32,
    /// The bias type of a scaled GEMM, including `None`.
    pub bias: u32,
    /// The names of the sizes that are `*`, separated by spaces.
    pub wildcards: u32,
}

impl Gemm {
    /// Returns the floating-point operations of one call, 2 m n k for each product; [`NO_NUMBER`]
    /// with wildcards, or if they do not fit 63 bits.
    pub fn flops(&self) -> i64 {
        let batch = if self.batch == NO_NUMBER { 1 } else { self.batch };
        let sizes = [self.m, self.n, self.k, batch];
        if self.wildcards != NO_ROW || sizes.contains(&NO_NUMBER) {
            return NO_NUMBER;
        }
        sizes.iter().try_fold(2_i64, |flops, &size| flops.checked_mul(size)).unwrap_or(NO_NUMBER)
    }
}

impl Default for Gemm {
    fn default() -> Self {
        Self {
            operation: NO_ROW,
            dtype_a: NO_ROW,
            dtype_b: NO_ROW,
            dtype_c: NO_ROW,
            layout: NO_ROW,
            transa: NO_ROW,
            transb: NO_ROW,
            m: NO_NUMBER,
            n: NO_NUMBER,
            k: NO_NUMBER,
            batch: NO_NUMBER,
            lda: NO_NUMBER,
            ldb: NO_NUMBER,
            ldc: NO_NUMBER,
            tail: NO_ROW,
            bias: NO_ROW,
            wildcards: NO_ROW,
        }
    }
}

/// The parts of an operator signature, as handles of texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    operation: u32,
    dtypes: [u32; 3],
    layout: u32,
}

/// Parses an operator signature.
pub(super) fn operator(signature: &str, strings: &mut Strings) -> Result<Operator, Reason> {
    let found = OPERATOR.captures(signature).ok_or(Reason::Operator)?;
    let scaled = found.name("plain").is_none();
    let dtypes = if scaled { ["a", "b", "c"] } else { ["dtype"; 3] };
    let operation = found.name("plain").map_or("ScaledGemm", |found| found.as_str());
    Ok(Operator {
        operation: text(Some(operation), strings),
        dtypes: dtypes.map(|name| group(&found, name, strings)),
        layout: group(&found, "layout", strings),
    })
}

/// Parses the parameter signature of a row with a known operator.
pub(super) fn gemm(
    operator: Operator,
    parameters: &str,
    strings: &mut Strings,
) -> Result<Gemm, Reason> {
    let gemm = match plain_sizes(parameters) {
        Some((trans, sizes)) => with_sizes(trans, sizes, strings),
        None => any_sizes(parameters, strings)?,
    };
    let [dtype_a, dtype_b, dtype_c] = operator.dtypes;
    let Operator { operation, layout, .. } = operator;
    Ok(Gemm { operation, dtype_a, dtype_b, dtype_c, layout, ..gemm })
}

/// The letters and sizes of a parameter signature with neither wildcards nor a tail, as most are:
/// the same as the regular expression finds, in a fraction of the time.
fn plain_sizes(parameters: &str) -> Option<([&str; 2], [i64; 7])> {
    let (trans, mut rest) = parameters.split_at_checked(2)?;
    let letters = trans.bytes().all(|letter| matches!(letter, b'n' | b't' | b'c'));
    let mut sizes = [NO_NUMBER; 7];
    for size in &mut sizes[..3] {
        *size = size_after("_", &mut rest)?;
    }
    if rest.starts_with("_B_") {
        sizes[3] = size_after("_B_", &mut rest)?;
    }
    if rest.starts_with("_ld_") {
        for (size, separator) in sizes[4..].iter_mut().zip(["_ld_", "_", "_"]) {
            *size = size_after(separator, &mut rest)?;
        }
    }
    (letters && rest.is_empty()).then(|| ([&trans[..1], &trans[1..]], sizes))
}

/// Removes a separator and a size from the front of a text.
fn size_after(separator: &str, rest: &mut &str) -> Option<i64> {
    let text = rest.strip_prefix(separator)?;
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = text.split_at(length);
    *rest = after;
    (1..=MOST_DIGITS).contains(&length).then(|| digits.parse().ok())?
}

fn with_sizes(trans: [&str; 2], sizes: [i64; 7], strings: &mut Strings) -> Gemm {
    let [m, n, k, batch, lda, ldb, ldc] = sizes;
    let [left, right] = trans.map(|letter| text(Some(letter), strings));
    Gemm { transa: left, transb: right, m, n, k, batch, lda, ldb, ldc, ..Gemm::default() }
}

fn any_sizes(parameters: &str, strings: &mut Strings) -> Result<Gemm, Reason> {
    let sizes = PARAMETERS.captures(parameters).ok_or(Reason::Parameters)?;
    let bias = if sizes.name("bias").is_some() { "bias" } else { "cuda_bias" };
    let trans = ["transa", "transb"].map(|name| &sizes[name]);
    Ok(Gemm {
        tail: group(&sizes, "tail", strings),
        bias: group(&sizes, bias, strings),
        wildcards: wildcards(&sizes, strings),
        ..with_sizes(trans, SIZES.map(|name| number(&sizes, name)), strings)
    })
}

fn wildcards(sizes: &Captures<'_>, strings: &mut Strings) -> u32 {
    let is_any = |name: &&str| sizes.name(name).is_some_and(|size| size.as_str() == "*");
    let names: Vec<_> = SIZES.iter().copied().filter(is_any).collect();
    text((!names.is_empty()).then(|| names.join(" ")).as_deref(), strings)
}

/// The families of solutions.
pub const FAMILIES: [&str; 7] =
    ["default", "null", "rocblas", "hipblaslt", "cublaslt", "index", "other"];

/// Returns the family of a solution and its index in its library.
///
/// Names of unknown families are `other`: a later PyTorch may know them, and a version that does
/// not know them rejects them.
pub(super) fn solution(name: &str) -> Result<(&'static str, i64), Reason> {
    if let Some(known) = numbered_solution(name) {
        return Ok(known);
    }
    let Some(found) = SOLUTION.captures(name) else {
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        return if is_name { Ok(("other", NO_NUMBER)) } else { Err(Reason::Solution) };
    };
    Ok(match found.name("word").or(found.name("library")).map(|word| word.as_str()) {
        Some("Default") => ("default", NO_NUMBER),
        Some("Null") => ("null", NO_NUMBER),
        Some("Rocblas") => ("rocblas", number(&found, "index")),
        Some(_) => ("hipblaslt", number(&found, "index")),
        None if found.name("cublaslt").is_some() => ("cublaslt", number(&found, "id")),
        None => ("index", number(&found, "bare")),
    })
}

/// Returns the family and the index of a solution of rocBLAS or hipBLASLt without a layout.
fn numbered_solution(name: &str) -> Option<(&'static str, i64)> {
    let rest = name.strip_prefix("Gemm_")?;
    let (family, index) = match rest.strip_prefix("Rocblas_") {
        Some(index) => ("rocblas", index),
        None => ("hipblaslt", rest.strip_prefix("Hipblaslt_")?),
    };
    let digits = index.strip_prefix('-').unwrap_or(index);
    let is_number = (1..=MOST_DIGITS).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| index.parse().ok().map(|index| (family, index)))?
}

fn number(found: &Captures<'_>, name: &str) -> i64 {
    found.name(name).and_then(|digits| digits.as_str().parse().ok()).unwrap_or(NO_NUMBER)
}

fn group(found: &Captures<'_>, name: &str, strings: &mut Strings) -> u32 {
    text(found.name(name).map(|part| part.as_str()), strings)
}

fn text(text: Option<&str>, strings: &mut Strings) -> u32 {
    text.map(|text| strings.intern(text)).in_column()
}
