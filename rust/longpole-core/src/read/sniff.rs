//! What a file that is no trace is instead.

use crate::error::{Error, ErrorKind};

const EXPORT_HINT: &str =
    "give the Kineto trace that the PyTorch profiler exported (export_chrome_trace)";

/// The error for a file whose first bytes begin no JSON document, or one that
/// cannot be a trace.
pub(super) fn other_kind(text: &[u8], compressed: bool) -> Error {
    let kind = match known(text, compressed) {
        Some((what, hint)) => ErrorKind::OtherKind { what, hint },
        None => ErrorKind::UnknownFormat { starts_with: first_bytes(text) },
    };
    Error::new(kind, 0)
}

/// A file by its magic number or its first words, and what to do with it.
fn known(text: &[u8], compressed: bool) -> Option<(&'static str, &'static str)> {
    let unpack = "unpack it first";
    let magics: &[(&[u8], &str, &str)] = &[
        (b"\x28\xb5\x2f\xfd", "a zstd-compressed file", "decompress it first: `zstd -d FILE`"),
        (b"PK\x03\x04", "a zip archive", unpack),
        (b"BZh", "a bzip2-compressed file", "decompress it first: `bzip2 -d FILE`"),
        (b"\xfd7zXZ\0", "an xz-compressed file", "decompress it first: `xz -d FILE`"),
        (b"\xff\xfe", "a UTF-16 text", "convert it to UTF-8: `iconv -f UTF-16 -t UTF-8`"),
        (b"\xfe\xff", "a UTF-16 text", "convert it to UTF-8: `iconv -f UTF-16 -t UTF-8`"),
        (b"{\0", "a UTF-16 text", "convert it to UTF-8: `iconv -f UTF-16LE -t UTF-8`"),
        (b"\0{", "a UTF-16 text", "convert it to UTF-8: `iconv -f UTF-16BE -t UTF-8`"),
        (b"[\0", "a UTF-16 text", "convert it to UTF-8: `iconv -f UTF-16LE -t UTF-8`"),
        (b"\0[", "a UTF-16 text", "convert it to UTF-8: `iconv -f UTF-16BE -t UTF-8`"),
        (
            b"version https://git-lfs",
            "a Git LFS pointer (not JSON)",
            "fetch the file itself: `git lfs pull`",
        ),
        (b"SQLite format 3\0", "an SQLite database", EXPORT_HINT),
        (b"PAR1", "a Parquet file", EXPORT_HINT),
        (b"ARROW1", "an Arrow file", EXPORT_HINT),
        (b"\x80\x02", "a Python pickle", "longpole never reads pickles; export the trace as JSON"),
        (b"\x80\x03", "a Python pickle", "longpole never reads pickles; export the trace as JSON"),
        (b"\x80\x04", "a Python pickle", "longpole never reads pickles; export the trace as JSON"),
        (b"\x80\x05", "a Python pickle", "longpole never reads pickles; export the trace as JSON"),
    ];
    if let Some((_, what, hint)) = magics.iter().find(|(magic, ..)| text.starts_with(magic)) {
        return Some((what, hint));
    }
    if compressed && text.starts_with(b"\x1f\x8b") {
        return Some(("gzip inside gzip", "decompress it once: `gzip -d FILE`"));
    }
    if text.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", unpack));
    }
    let word = text.trim_ascii_start();
    let is_markup = word.starts_with(b"<")
        && word
            .get(1)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?'));
    is_markup.then_some(("an HTML or XML page", "the download gave a page in place of the file"))
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
        hint: EXPORT_HINT,
    };
    Error::new(kind, offset)
}

fn first_bytes(text: &[u8]) -> String {
    text[..text.len().min(24)].escape_ascii().to_string()
}
