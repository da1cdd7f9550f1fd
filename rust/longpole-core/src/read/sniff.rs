//! Which format a file is, by its first bytes, or what it is instead.
//!
//! Binary formats are told by their magic numbers; a database is asked for its tables later.
//! JSON is told by the keys at its front, as far as they differ from those of the Chrome
//! trace-event format; the rest is found out on the way ([`without_events`]).
//!
//! Limits: only the first [`HEAD_BYTES`] are looked at. A file that is refused is named with
//! what to do; nothing is ever guessed from the name of the file.

use super::chakra::variable;
use super::saved::is_saved;
use super::window::Window;
use crate::diagnostics::Diagnostics;
use crate::error::{Error, ErrorKind, Result};

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The Chrome trace-event format in JSON, as the PyTorch profiler writes it.
    Chrome,
    /// A trace that longpole saved.
    Saved,
    /// A database in SQLite, of Nsight Systems or ROCm.
    Sqlite,
}

/// How much of a file is looked at.
const HEAD_BYTES: usize = 64 << 10;

/// What a file is, and what to do with it.
type Known = (&'static str, &'static str);

const EXPORT_HINT: &str =
    "give the Kineto trace that the PyTorch profiler exported (export_chrome_trace)";
const RECORD_HINT: &str =
    "record the program with torch.profiler and give the trace that export_chrome_trace writes";
const UNPACK_HINT: &str = "unpack it first";
const UTF16: &str = "a UTF-16 text";
const PICKLE: Known = ("a Python pickle", "longpole never reads pickles; export the trace as JSON");

/// Files by their magic numbers.
const MAGICS: &[(&[u8], Known)] = &[
    (b"\x28\xb5\x2f\xfd", ("a zstd-compressed file", "decompress it first: `zstd -d FILE`")),
    (b"PK\x03\x04", ("a zip archive", UNPACK_HINT)),
    (b"BZh", ("a bzip2-compressed file", "decompress it first: `bzip2 -d FILE`")),
    (b"\xfd7zXZ\0", ("an xz-compressed file", "decompress it first: `xz -d FILE`")),
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

/// How every SQLite database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// JSON documents by a key that stands before any `traceEvents`.
const DOCUMENTS: &[(&[u8], Known)] =
    &[(b"\"rocprofiler-sdk-tool\"", ("a JSON file of rocprofv3", RECORD_HINT))];

/// Looks at the first bytes of a file, and leaves them in the window.
pub(super) fn format(window: &mut Window<'_>, diagnostics: &mut Diagnostics) -> Result<Format> {
    while window.text().len() < HEAD_BYTES && window.more(diagnostics)? {}
    let text = window.text();
    if let Some(fault) = window.compression_fault().filter(|_| text.is_empty()) {
        return Err(Error::new(ErrorKind::Compression(fault), 0));
    }
    let head = &text[..text.len().min(HEAD_BYTES)];
    if is_saved(head) {
        return Ok(Format::Saved);
    }
    if head.starts_with(SQLITE) {
        return Ok(Format::Sqlite);
    }
    match known(head, window.compression().is_some()) {
        Some((what, hint)) => Err(Error::new(ErrorKind::OtherKind { what, hint }, 0)),
        None if may_be_json(head) => Ok(Format::Chrome),
        None => Err(unknown(head)),
    }
}

/// The error for a file that begins like nothing known.
pub(super) fn unknown(text: &[u8]) -> Error {
    let starts_with = text[..text.len().min(24)].escape_ascii().to_string();
    Error::new(ErrorKind::UnknownFormat { starts_with }, 0)
}

/// Blank files and those that begin with a lot of white space are told by their reader.
fn may_be_json(head: &[u8]) -> bool {
    matches!(significant(head).first(), None | Some(b'{' | b'['))
}

/// What stands behind a byte order mark and white space.
fn significant(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// A file that cannot be read by its first bytes, and what to do with it.
fn known(head: &[u8], compressed: bool) -> Option<Known> {
    let magic = MAGICS.iter().find(|(magic, _)| head.starts_with(magic));
    magic
        .map(|&(_, known)| known)
        .or_else(|| document(significant(head)))
        .or_else(|| markup(significant(head)))
        .or_else(|| archive(head, compressed))
        .or_else(|| is_perfetto(head).then_some(("a Perfetto trace (protobuf)", RECORD_HINT)))
}

fn document(text: &[u8]) -> Option<Known> {
    let end = find(text, b"\"traceEvents\"").unwrap_or(text.len());
    let front = text.starts_with(b"{").then(|| &text[..end])?;
    DOCUMENTS.iter().find(|(key, _)| contains(front, key)).map(|&(_, known)| known)
}

fn markup(text: &[u8]) -> Option<Known> {
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?');
    (text.first() == Some(&b'<') && text.get(1).is_some_and(is_name))
        .then_some(("an HTML or XML page", "the download gave a page in place of the file"))
}

fn archive(head: &[u8], compressed: bool) -> Option<Known> {
    if compressed && head.starts_with(b"\x1f\x8b") {
        return Some(("gzip inside gzip", "decompress it once: `gzip -d FILE`"));
    }
    (head.get(257..262) == Some(b"ustar")).then_some(("a tar archive", UNPACK_HINT))
}

/// A Perfetto trace is a row of packets, each with the tag 0x0a and its length. The tag is
/// also a line break, so that the next packet must stand where the first one ends.
fn is_perfetto(head: &[u8]) -> bool {
    const TAG: u8 = 0x0a;
    let Some((&TAG, rest)) = head.split_first() else { return false };
    let Some((length @ 1.., n_bytes @ ..=4)) = variable(rest) else { return false };
    let next = usize::try_from(length).ok().and_then(|length| head.get(1 + n_bytes + length));
    !may_be_json(head) && next.is_none_or(|&byte| byte == TAG)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// The kind of a JSON document without `traceEvents`, by its fields.
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

/// The error for a Kineto trace where an execution trace was asked for.
pub(super) fn not_an_execution_trace(offset: u64) -> Error {
    let kind = ErrorKind::OtherKind {
        what: "a Kineto trace (`traceEvents`, no `nodes`)",
        hint: "give the execution trace that was recorded with it",
    };
    Error::new(kind, offset)
}

/// The error for an array whose first element is an array: torch's memory
/// profiler writes `[ts, action, bytes, category]` rows.
pub(super) fn array_of_arrays(offset: u64) -> Error {
    let kind = ErrorKind::OtherKind {
        what: "a memory timeline of the PyTorch memory profiler",
        hint: "`longpole memory FILE` shows it",
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
            (b"{\n  \"rocprofiler-sdk-tool\": [{\"metadata\": {}}]}", "rocprofv3"),
            (b"\x0a\x03\x08\x01\x10\x0a\x02\x08\x01", "Perfetto"),
            (b"\x0a\x86\x01\x08\x01", "Perfetto"),
            (b"\x7fELF\x02\x01\x01", "ELF"),
            (b"\x80\x04\x95\x1e", "pickle"),
            (b"PK\x03\x04", "zip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
            (b"\xfd7zXZ\0", "xz"),
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
            assert!(may_be_json(head));
        }
        assert!(!may_be_json(b"\nrank 3"));
    }
}
