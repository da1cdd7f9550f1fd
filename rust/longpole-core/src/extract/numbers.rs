//! Parses numbers as profilers print them, with their units.
//!
//! Only ASCII digits and a decimal point are accepted: `1.2.3`, `1,5` and `١.٥` are not numbers
//! here. A time is scaled to nanoseconds in its decimal form and rounded once, so that `9.5e-05` ms
//! is exactly 95 ns.

use crate::names::named;

named! {
    /// The unit of a printed time.
    Unit {
        /// Seconds.
        Seconds "s",
        /// Milliseconds.
        Milliseconds "ms",
        /// Microseconds.
        Microseconds "us",
        /// Nanoseconds.
        Nanoseconds "ns",
    }
}

impl Unit {
    /// Returns the unit with this name, in the spellings of the supported tools.
    pub fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"s" | b"sec" | b"second" | b"seconds" => Some(Self::Seconds),
            b"ms" | b"msec" | b"msecond" | b"milliseconds" => Some(Self::Milliseconds),
            b"us" | b"usec" | b"usecond" | b"microseconds" | b"\xc2\xb5s" | b"\xce\xbcs" => {
                Some(Self::Microseconds)
            }
            b"ns" | b"nsec" | b"nsecond" | b"nanoseconds" => Some(Self::Nanoseconds),
            _ => None,
        }
    }

    /// Returns the power of ten of the unit relative to a nanosecond.
    fn power_of_ten(self) -> i64 {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
            Self::Microseconds => 3,
            Self::Nanoseconds => 0,
        }
    }
}

/// A printed number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// A scaled value; infinite if it exceeds a double.
    Value(f64),
    /// `nan`.
    Undefined,
    /// `N/A` or similar: the tool has no number.
    Missing,
}

/// Parses a printed time to nanoseconds, rounded once; `None` if the text is not a number.
pub(super) fn nanoseconds(text: &[u8], unit: Unit) -> Option<Number> {
    scaled(text, unit.power_of_ten())
}

/// Parses a printed number without unit.
pub(super) fn plain(text: &[u8]) -> Option<Number> {
    scaled(text, 0)
}

/// Parses a number of bytes; `None` if it is negative, which means unknown.
pub(super) fn bytes(text: &[u8]) -> Result<Option<i64>, BadBytes> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadBytes::NotANumber);
    }
    if digits.len() < text.len() {
        return Ok(None);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| BadBytes::NotANumber)?;
    digits.parse().map(Some).map_err(|_| BadBytes::OutOfRange)
}

/// Why a text is not a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadBytes {
    NotANumber,
    /// It does not fit 63 bits, which exceeds any memory.
    OutOfRange,
}

fn scaled(text: &[u8], power_of_ten: i64) -> Option<Number> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some((digits, exponent)) = split_decimal(text) {
        let exponent = exponent.saturating_add(power_of_ten);
        return format!("{digits}e{exponent}").parse().ok().map(Number::Value);
    }
    word(text)
}

/// Returns the sign and digits of a decimal number, and its exponent.
fn split_decimal(text: &str) -> Option<(&str, i64)> {
    let (digits, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits =
        [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    (all_digits && whole.len() + fraction.len() > 0).then_some((digits, exponent))
}

/// Returns the exponent. Exponents with many digits saturate, because the value is infinite or zero
/// anyway.
fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(1_000_000_000_i64).min(1_000_000_000);
    Some(if text.starts_with('-') { -size } else { size })
}

/// Parses the words that C, Python and the tools print if there is no finite number.
fn word(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" if text.starts_with('-') => Some(Number::Value(f64::NEG_INFINITY)),
        "inf" | "infinity" => Some(Number::Value(f64::INFINITY)),
        "nan" => Some(Number::Undefined),
        "n/a" | "na" => Some(Number::Missing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> Option<Number> {
        nanoseconds(text.as_bytes(), Unit::Milliseconds)
    }

    #[test]
    fn a_time_is_scaled_in_decimal_and_rounded_once() {
        let times = ["9.5e-05", "1.23457e+06", "2.", ".5", "00001.50", "0.4172", "2.5E+01"];
        let expected = [95.0, 1_234_570e6, 2e6, 5e5, 1.5e6, 417_200.0, 25e6];
        assert_eq!(times.map(ns), expected.map(|value| Some(Number::Value(value))));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            ".",
            "-",
            "1.2.3",
            "1,5",
            "1.5ms",
            "1e",
            "e5",
            "--1",
            "0x10",
            "1_0",
            "\u{661}.\u{665}",
        ] {
            assert_eq!(ns(text), None, "{text:?}");
        }
    }

    #[test]
    fn words_and_extremes_say_what_they_are() {
        assert_eq!(ns("-inf"), Some(Number::Value(f64::NEG_INFINITY)));
        assert_eq!(ns("1e999999999999999999999"), Some(Number::Value(f64::INFINITY)));
        assert_eq!(ns("1e-999999999999999999999"), Some(Number::Value(0.0)));
        assert_eq!([ns("-nan"), ns("N/A")], [Some(Number::Undefined), Some(Number::Missing)]);
    }

    #[test]
    fn bytes_are_whole_and_never_wrap() {
        assert_eq!(bytes(b"1048576"), Ok(Some(1_048_576)));
        assert_eq!(bytes(b"-1"), Ok(None));
        assert_eq!(bytes(b"12.5KB"), Err(BadBytes::NotANumber));
        assert_eq!(bytes(b"18446744073709551616"), Err(BadBytes::OutOfRange));
    }
}
