//! User-defined formats: regular expressions with named groups.
//!
//! The engine takes time linear in the text for any pattern, so a pattern that makes Python's `re`
//! backtrack for seconds is harmless here; look-around and backreferences are therefore not
//! supported. A pattern is matched within lines, on bytes, and `\d` and `\w` are ASCII.

use std::fmt;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::format::{Interest, Reader};
use super::found::Found;
use super::lines::Line;
use super::numbers::{self, Unit};
use super::records::{Measurement, Reason};

/// Longer patterns are rejected.
const MAX_PATTERN_BYTES: usize = 1024;

/// Maximum size of the compiled pattern and of its caches.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// A user-defined pattern.
///
/// The groups `time_ns`, `time_us`, `time_ms` and `time_s` are a time in that unit; `time` requires
/// a group `unit` as well. `operation` (or `op`) is the operation, `workspace` (or `ws`) and
/// `bytes` are numbers of bytes; a match of `failed` means that the run failed; all other named
/// groups are fields.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    time: Time,
}

/// The group with the time, and the source of its unit.
#[derive(Debug, Clone, Copy)]
enum Time {
    In(&'static str, Unit),
    WithUnit,
}

const TIMES: [(&str, Unit); 4] = [
    ("time_ns", Unit::Nanoseconds),
    ("time_us", Unit::Microseconds),
    ("time_ms", Unit::Milliseconds),
    ("time_s", Unit::Seconds),
];

/// Groups with their own columns.
const COLUMNS: [&str; 12] = [
    "time_ns",
    "time_us",
    "time_ms",
    "time_s",
    "time",
    "unit",
    "operation",
    "op",
    "workspace",
    "ws",
    "bytes",
    "failed",
];

/// Why a pattern is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// It is longer than a kilobyte.
    TooLong,
    /// It is invalid in this syntax, or takes too much memory; with the message of the engine.
    Invalid(String),
    /// It matches the empty string, and therefore everywhere.
    MatchesEmpty,
    /// It has no group for a time with its unit.
    NoTime,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the pattern is longer than {MAX_PATTERN_BYTES} bytes"),
            Self::Invalid(why) => write!(f, "the pattern cannot be used: {why}"),
            Self::MatchesEmpty => write!(f, "the pattern matches the empty text"),
            Self::NoTime => write!(
                f,
                "the pattern has no group for the time: name one time_ns, time_us, time_ms or time_s, \
                 or two time and unit"
            ),
        }
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be matched safely, or has no group for a time with a unit.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong);
        }
        let regex = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(MAX_PROGRAM_BYTES)
            .dfa_size_limit(MAX_PROGRAM_BYTES)
            .build()
            .map_err(|error| PatternError::Invalid(error.to_string()))?;
        if regex.is_match(b"") {
            return Err(PatternError::MatchesEmpty);
        }
        let time = time_group(&regex).ok_or(PatternError::NoTime)?;
        Ok(Self { regex, time })
    }

    pub(super) fn into_reader(self) -> Box<dyn Reader> {
        Box::new(self)
    }

    fn read(&self, line: Line<'_>, captures: &Captures<'_>, found: &mut Found) {
        match self.measurement(line, captures) {
            Ok(measurement) if found.measured(&measurement) => self.fields(captures, found),
            Ok(_) => {}
            Err(reason) => found.reject(line.place, line.text, reason),
        }
    }

    fn measurement<'a>(
        &self,
        line: Line<'a>,
        captures: &Captures<'a>,
    ) -> Result<Measurement<'a>, Reason> {
        let group = |name: &str| captures.name(name).map(|found| found.as_bytes());
        let bytes = |text: Option<&[u8]>| match text {
            Some(text) => numbers::bytes(text).map_err(|_| Reason::BadWorkspace),
            None => Ok(None),
        };
        let (time, unit) = match self.time {
            Time::In(name, unit) => (group(name), Some(unit)),
            Time::WithUnit => (group("time"), group("unit").and_then(Unit::parse)),
        };
        let measurement = Measurement::new(
            line,
            time.ok_or(Reason::MissingTime)?,
            unit.ok_or(Reason::UnknownUnit)?,
        );
        Ok(Measurement {
            operation: group("operation").or_else(|| group("op")),
            workspace_bytes: bytes(group("workspace").or_else(|| group("ws")))?,
            data_bytes: bytes(group("bytes"))?,
            failed: group("failed").is_some(),
            ..measurement
        })
    }

    fn fields(&self, captures: &Captures<'_>, found: &mut Found) {
        let names = self.regex.capture_names().flatten();
        for name in names.filter(|name| !COLUMNS.contains(name)) {
            if let Some(value) = captures.name(name) {
                found.field(name.as_bytes(), value.as_bytes());
            }
        }
    }
}

impl Reader for Pattern {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        // Captures cost several times as much as a search.
        if self.regex.is_match(line.text) {
            for captures in self.regex.captures_iter(line.text) {
                self.read(line, &captures, found);
            }
        }
        Interest::Anchors
    }
}

/// Returns the reader of a built-in format that is a pattern; an invalid pattern finds nothing.
pub(super) fn built_in(text: &str) -> Box<dyn Reader> {
    Box::new(Pattern::new(text).ok())
}

impl Reader for Option<Pattern> {
    fn line(&mut self, line: Line<'_>, found: &mut Found) -> Interest {
        self.as_mut().map_or(Interest::Anchors, |pattern| pattern.line(line, found))
    }
}

fn time_group(regex: &Regex) -> Option<Time> {
    let has = |name: &str| regex.capture_names().flatten().any(|other| other == name);
    if has("time") && has("unit") {
        return Some(Time::WithUnit);
    }
    TIMES.iter().find(|(name, _)| has(name)).map(|&(name, unit)| Time::In(name, unit))
}

#[cfg(test)]
mod tests {
    use super::super::formats::testing::{field, records, rejections};
    use super::super::{End, Extraction, Extractor, FORMATS};
    use super::*;

    fn extract(pattern: &str, text: &str) -> Extraction {
        let mut extractor = Extractor::new(&[], vec![Pattern::new(pattern).unwrap()]);
        extractor.feed(text.as_bytes());
        extractor.finish(End::Whole)
    }

    #[test]
    fn groups_become_columns_and_fields() {
        let pattern = r"Perf: (?P<time_ms>\S+) ms, (?<tflops>\S+) TFlops, .* GB/s, (?<op>.+)$";
        let found = extract(
            pattern,
            "Perf: 1.3421 ms, 109.356 TFlops, 248.561 GB/s, Device<256, 128>\nnoise\n",
        );
        assert_eq!(records(&found), [("Device<256, 128>".into(), 1_342_100.0, "ok")]);
        assert_eq!(field(&found, 0, "tflops").as_deref(), Some("109.356"));
        assert_eq!(found.formats, ["regex"]);
    }

    #[test]
    fn a_line_may_hold_several_and_each_carries_its_unit() {
        let found = extract(
            r"(?P<op>\w+)=(?P<time>[\d.]+) ?(?P<unit>\w+)",
            "a=1.5ms b=2 us c=3 h d=. ms\n",
        );
        assert_eq!(records(&found), [("a".into(), 1.5e6, "ok"), ("b".into(), 2e3, "ok")]);
        let reasons: Vec<_> = rejections(&found).into_iter().map(|rejection| rejection.0).collect();
        assert_eq!(reasons, ["unknown_unit", "not_a_number"]);
    }

    #[test]
    fn a_pattern_never_matches_across_lines() {
        assert_eq!(extract(r"a\s+(?P<time_s>\d)$", "a\n1\r\na 2\r\n").records.time_ns, [2e9]);
    }

    #[test]
    fn what_cannot_be_looked_for_is_told() {
        let error = |text: &str| Pattern::new(text).unwrap_err();
        assert_eq!(error(r"(?P<time_s>\d)*"), PatternError::MatchesEmpty);
        assert_eq!(error(r"(?P<time>\d+)"), PatternError::NoTime);
        assert_eq!(error(&"a".repeat(2000)), PatternError::TooLong);
        for text in [r"(?<=a)(?P<time_s>\d)", r"(a)\1", r"(?P<time_s>\d{500}{500}{500})"] {
            assert!(matches!(error(text), PatternError::Invalid(_)), "{text}");
        }
    }

    #[test]
    fn built_in_formats_are_found_beside_patterns() {
        let mut extractor =
            Extractor::new(FORMATS, vec![Pattern::new(r"^t=(?P<time_us>\d+)").unwrap()]);
        extractor.feed(b"t=5\nOP:a,TIME:1,WS:0\n");
        assert_eq!(records(&extractor.finish(End::Whole)).len(), 2);
    }
}
