//! Detects the format of a file by its first bytes, or what it is instead of a trace.
//!
//! Binary formats have magic numbers; databases are identified later by their tables. JSON formats
//! are distinguished by their first keys, if these differ from those of the Chrome trace-event
//! format; the rest is decided while reading ([`without_events`]).
//!
//! Limits: only the first [`HEAD_BYTES`] are examined. The error for a rejected file says what it
//! is and what to do. File names are never used.

use super::packed::is_packed;
use super::perfetto::is_perfetto;
use super::rocm::is_csv;
use super::saved::is_saved;
use super::window::Window;
use super::xplane::is_xplane;
use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};

/// A supported format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The Chrome trace-event format in JSON, as the PyTorch profiler writes it.
    Chrome,
    /// A trace saved by longpole.
    Saved,
    /// JSON of `rocprofv3`.
    Rocprof,
    /// CSV of `rocprofv3` or the older `rocprof`.
    RocprofCsv,
    /// SQLite database of Nsight Systems or ROCm.
    Sqlite,
    /// Perfetto packets.
    Perfetto,
    /// XProf planes.
    XPlane,
}

/// Number of bytes that are examined.
const HEAD_BYTES: usize = 64 << 10;

/// A description of a file, and a hint.
type Known = (&'static str, &'static str);

const EXPORT_HINT: &str = "give the trace of a profiler: of PyTorch (export_chrome_trace), Nsight \
                           Systems (SQLite), ROCm, XProf or Perfetto";
const UNPACK_HINT: &str = "unpack it first";
const UTF16: &str = "a UTF-16 text";
const PICKLE: Known = ("a Python pickle", "longpole never reads pickles; export the trace as JSON");

/// Descriptions by magic number.
const MAGICS: &[(&[u8], Known)] = &[
    (b"PK\x03\x04", ("a zip archive", UNPACK_HINT)),
    (b"BZh", ("a bzip2-compressed file", "decompress it first: `bzip2 -d FILE`")),
    (b"\xff\xfe", (UTF16, "convert it to UTF-8: `iconv -f UTF-16 -t UTF-8`")),
    (b"\xfe\xff", (UTF16, "convert it to UTF-8: `iconv -f UTF-16 -t UTF-8`")),
    (b"{\0", (UTF16, "convert it to UTF-8: `iconv -f UTF-16LE -t UTF-8`")),
    (b"\0{", (UTF16, "convert it to UTF-8: `iconv -f UTF-16BE -t UTF-8`")),
    (b"[\0", (UTF16, "convert it to UTF-8: `iconv -f UTF-16LE -t UTF-8`")),
    (b"\0[", (UTF16, "convert it to UTF-8: `iconv -f UTF-16BE -t UTF-8`")),
    (
        b"version https://git-lfs",
        ("a Git LFS pointer (not JSON)", "fetch the file itself: `git lfs pull`"),
    ),
    (b"PAR1", ("a Parquet file", EXPORT_HINT)),
    (b"ARROW1", ("an Arrow file", EXPORT_HINT)),
    (b"\x7fELF", ("an ELF program or library", EXPORT_HINT)),
    (b"\x80\x02", PICKLE),
    (b"\x80\x03", PICKLE),
    (b"\x80\x04", PICKLE),
    (b"\x80\x05", PICKLE),
];

/// The first bytes of every SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Detects the format from the first bytes, which stay in the window.
pub(super) fn format(window: &mut Window<'_>, diagnostics: &mut Diagnostics) -> Result<Format> {
    while window.text().len() < HEAD_BYTES && window.more(diagnostics)? {}
    let text = window.text();
    if let Some(fault) = window.compression_fault().filter(|_| text.is_empty()) {
        return Err(Error::new(fault, 0));
    }
    let head = &text[..text.len().min(HEAD_BYTES)];
    if is_saved(head) {
        return Ok(Format::Saved);
    }
    if head.starts_with(SQLITE) {
        return Ok(Format::Sqlite);
    }
    if is_rocprof(significant(head)) {
        return Ok(Format::Rocprof);
    }
    if is_xplane(head) {
        return Ok(Format::XPlane);
    }
    if is_perfetto(head) {
        return Ok(Format::Perfetto);
    }
    if is_csv(significant(head)).map_err(refused)? {
        return Ok(Format::RocprofCsv);
    }
    match known(head, window.compression().is_some()) {
        Some(known) => Err(refused(known)),
        None if may_be_json(head) => Ok(Format::Chrome),
        None => Err(unknown(head)),
    }
}

fn refused((what, hint): Known) -> Error {
    Error::new(ErrorKind::OtherKind { what, hint }, 0)
}

/// Returns the error for a file of unknown format.
pub(super) fn unknown(text: &[u8]) -> Error {
    let starts_with = text[..text.len().min(24)].escape_ascii().to_string();
    Error::new(ErrorKind::UnknownFormat { starts_with }, 0)
}

/// Whether a file may be JSON. Empty files, and files that begin with a lot of white space, are
/// handled by the JSON reader.
fn may_be_json(head: &[u8]) -> bool {
    matches!(significant(head).first(), None | Some(b'{' | b'['))
}

/// Returns the text after a byte order mark and white space.
fn significant(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// Returns the description of a file that cannot be read, from its first bytes.
fn known(head: &[u8], compressed: bool) -> Option<Known> {
    let magic = MAGICS.iter().find(|(magic, _)| head.starts_with(magic));
    magic
        .map(|&(_, known)| known)
        .or_else(|| hatchet(significant(head)))
        .or_else(|| thread_trace(significant(head)))
        .or_else(|| requests(significant(head)))
        .or_else(|| stacks(significant(head)))
        .or_else(|| markup(significant(head)))
        .or_else(|| archive(head, compressed))
}

/// Whether a file is from `rocprofv3`, which writes an object with one key.
fn is_rocprof(text: &[u8]) -> bool {
    let key = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    key.is_some_and(|key| key.starts_with(b"\"rocprofiler-sdk-tool\""))
}

const HATCHET: Known = (
    "a frame tree of Triton Proton (hatchet) without times",
    "record with `proton.start(NAME, data=\"trace\")` and give NAME.chrome_trace",
);

fn hatchet(text: &[u8]) -> Option<Known> {
    let keys: [&[u8]; 2] = [b"\"frame\"", b"\"metrics\""];
    let is_tree = text.starts_with(b"[") && !contains(text, b"\"ph\"");
    (is_tree && keys.iter().all(|key| contains(text, key))).then_some(HATCHET)
}

const THREAD_TRACE: Known = (
    "a thread trace of rocprofv3 (instructions of waves, without kernels or calls in time)",
    "record a timeline: `rocprofv3 --runtime-trace --output-format rocpd -- PROGRAM`",
);

/// Recognizes the JSON files of `rocprofv3 --att`: the list of waves, the code, and one wave.
fn thread_trace(text: &[u8]) -> Option<Known> {
    let keys: [&[&[u8]]; 3] = [
        &[b"\"wave_filenames\""],
        &[b"\"code\"", b"ISA, _, LineNumber"],
        &[b"\"wave\"", b"\"instructions\"", b"\"timeline\""],
    ];
    let has_all = |keys: &&[&[u8]]| keys.iter().all(|key| contains(text, key));
    let is_object = text.starts_with(b"{") && !contains(text, b"\"traceEvents\"");
    (is_object && keys.iter().any(has_all)).then_some(THREAD_TRACE)
}

const REQUESTS: Known = (
    "a request trace of the Triton Inference Server (times of requests, without GPU work)",
    "its `trace_summary.py` reads it; for the GPU work, run the server under `nsys profile \
     --trace=cuda,nvtx` and give the SQLite export",
);

/// Recognizes the list of requests and their timestamps.
fn requests(text: &[u8]) -> Option<Known> {
    let keys: [&[&[u8]]; 2] =
        [&[b"\"model_name\"", b"\"model_version\""], &[b"\"timestamps\"", b"\"name\"", b"\"ns\""]];
    let has_all = |keys: &&[&[u8]]| keys.iter().all(|key| contains(text, key));
    let is_list = text.starts_with(b"[") && !contains(text, b"\"ph\"");
    (is_list && keys.iter().any(has_all)).then_some(REQUESTS)
}

const STACKS: Known = (
    "a speedscope profile (stacks of the CPU, without GPU work)",
    "https://www.speedscope.app shows it; for the GPU work, record with torch.profiler, Nsight \
     Systems or rocprofv3",
);

fn stacks(text: &[u8]) -> Option<Known> {
    let is_object = text.starts_with(b"{") && !contains(text, b"\"traceEvents\"");
    (is_object && contains(text, b"speedscope.app/file-format-schema")).then_some(STACKS)
}

fn markup(text: &[u8]) -> Option<Known> {
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?');
    (text.first() == Some(&b'<') && text.get(1).is_some_and(is_name))
        .then_some(("an HTML or XML page", "the download returned a web page instead of the file"))
}

fn archive(head: &[u8], compressed: bool) -> Option<Known> {
    if compressed && is_packed(head) {
        return Some(("a compressed file inside another", "decompress it once"));
    }
    (head.get(257..262) == Some(b"ustar")).then_some(("a tar archive", UNPACK_HINT))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// Returns the error for a JSON document without `traceEvents`, which identifies it by its fields.
pub(super) fn without_events(fields: &[(String, String)], offset: u64) -> Error {
    let has = |name: &str| fields.iter().any(|(field, _)| field == name);
    let kind = if has("nodes") && (has("schema") || has("pid")) {
        ErrorKind::OtherKind {
            what: "a PyTorch execution trace (`nodes`, no `traceEvents`)",
            hint: "give the Kineto trace that was recorded with it",
        }
    } else {
        ErrorKind::NoEvents
    };
    Error::new(kind, offset)
}

/// Returns the error for a Kineto trace in place of an execution trace.
pub(super) fn not_an_execution_trace(offset: u64) -> Error {
    let kind = ErrorKind::NotAnExecutionTrace {
        what: "a Kineto trace (`traceEvents`, no `nodes`)",
        hint: "give the execution trace that was recorded with it",
    };
    Error::new(kind, offset)
}

/// Returns the error for an array of arrays: PyTorch's memory profiler writes `[ts, action, bytes,
/// category]` rows.
pub(super) fn array_of_arrays(offset: u64) -> Error {
    let kind = ErrorKind::OtherKind {
        what: "a memory timeline of the PyTorch memory profiler",
        hint: "`longpole table FILE memory` shows it",
    };
    Error::new(kind, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(head: &[u8]) -> Option<&'static str> {
        known(head, false).map(|(what, _)| what)
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_by_its_head() {
        let cases: &[(&[u8], &str)] = &[
            (b"[{\"children\":[],\"frame\":{\"name\":\"ROOT\"},\"metrics\":{}}]", "Proton"),
            (b"{\"wave_filenames\":{\"0\":{}},\"gfxv\":\"vega\"}", "thread trace"),
            (b"{\"code\":[[]],\"header\":\"ISA, _, LineNumber, Source\"}", "thread trace"),
            (b"[{\"id\":1,\"model_name\":\"m\",\"model_version\":1}]", "Triton Inference Server"),
            (b"[{\"id\":1,\"timestamps\":[{\"name\":\"QUEUE_START\",\"ns\":5}]}]", "Triton"),
            (b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}", "speedscope"),
            (b"\x7fELF\x02\x01\x01", "ELF"),
            (b"\x80\x04\x95\x1e", "pickle"),
            (b"PK\x03\x04", "zip"),
            (b"\n <!DOCTYPE html>", "HTML"),
        ];
        for (head, part) in cases {
            assert!(what(head).is_some_and(|what| what.contains(part)), "{part}: {:?}", what(head));
        }
    }

    #[test]
    fn a_trace_is_taken_for_nothing_else() {
        let heads: &[&[u8]] = &[
            b"{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":[]}",
            b"{\"traceEvents\": [], \"metadata\": {\"highres-ticks\": true}}",
            b"\n{\"traceEvents\": []}",
            b"\n\n[]",
            b"\xef\xbb\xbf [",
            b"",
            b"  \n",
        ];
        for head in heads {
            assert_eq!(what(head), None, "{head:?}");
            assert!(!is_perfetto(head) && !is_xplane(head));
            assert!(may_be_json(head));
        }
        assert!(!may_be_json(b"\nrank 3"));
        assert!(is_perfetto(b"\x0a\x04\x40\x01\x50\x0a\x0a\x02\x50\x01"));
        assert!(is_xplane(b"\x0a\x0d\x08\x01\x12\x09/host:CPU"));
        assert!(is_perfetto(b"\x0a\x86\x01\x40\x01"));
    }
}
