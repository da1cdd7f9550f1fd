//! Selects the arguments of events to keep.

use crate::read::json::{Key, Keys, Token};
use crate::tables::Arguments;

/// Arguments with their own column in the event table, or used by readers of the other tables.
/// Their order is that of the constants below.
const BUILT_IN: &[&str] = &[
    "correlation",
    "External id",
    "external id",
    "stream",
    "device",
    "name",
    "labels",
    "sort_index",
    "connection_id",
    "correlation_id",
    "corr_id",
];

pub(super) const CORRELATION: Key = Key::at(0);

pub(super) const EXTERNAL_ID: Key = Key::at(1);

pub(super) const EXTERNAL_ID_LOWER: Key = Key::at(2);

pub(super) const STREAM: Key = Key::at(3);

pub(super) const DEVICE: Key = Key::at(4);

/// CANN's name for the correlation id of a call and its activities.
pub(super) const CONNECTION_ID: Key = Key::at(8);

/// The correlation id of the task queue of `torch_npu`.
pub(super) const QUEUE_ID: Key = Key::at(9);

/// The correlation id of rocprofiler-systems.
pub(super) const CORR_ID: Key = Key::at(10);

impl Arguments {
    /// Returns the initial keys, and which of them are kept.
    pub(super) fn keys(&self) -> (Keys, Wanted) {
        let mut names: Vec<&str> = BUILT_IN.to_vec();
        for name in self.names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let kept = names.iter().map(|name| self.keeps(name)).collect();
        let wanted = Wanted { kept, counters: *self == Self::Default };
        (Keys::new(names.into_iter().map(str::to_owned)), wanted)
    }
}

/// Which keys are kept, by row.
pub(super) struct Wanted {
    kept: Vec<bool>,
    /// Whether all counters of a counter range are kept.
    pub(super) counters: bool,
}

impl Wanted {
    /// Whether the key at `row` is kept for events of any category.
    #[inline]
    pub(super) fn keeps(&self, row: usize) -> bool {
        self.kept.get(row).copied().unwrap_or(false)
    }
}

// Parses numbers and strings from the values of an event.

pub(super) fn number(text: &[u8]) -> Option<f64> {
    if let Some(value) = short_decimal(text) {
        return Some(value);
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Returns a short number with a decimal point, as a quotient of two integers that are exact as
/// floats, which rounds once.
fn short_decimal(text: &[u8]) -> Option<f64> {
    let (mut digits, mut point) = (0_u64, None);
    if text.len() > MAX_SHORT_BYTES {
        return None;
    }
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && at > 0 => point = Some(at),
            _ => return None,
        }
    }
    let n_decimals = text.len().checked_sub(point? + 2)? + 1;
    Some(f64::from(u32::try_from(digits).ok()?) / POWERS[n_decimals])
}

/// Nine digits, which fit into 32 bits, and a decimal point.
const MAX_SHORT_BYTES: usize = 10;

const POWERS: [f64; MAX_SHORT_BYTES] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Whether a number in the file has neither a decimal point nor an exponent.
pub(super) fn is_integer(number: &[u8]) -> bool {
    number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
}

/// Parses an integer, or a string that contains one, in decimal or with `0x`.
pub(super) fn integer(token: Token, text: &[u8]) -> Option<i64> {
    let quoted = match token {
        Token::Integer(value) => return Some(value),
        Token::Text(span) => std::str::from_utf8(span.of(text)).ok()?,
        _ => return None,
    };
    match quoted.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => quoted.parse().ok(),
    }
}

/// Returns the text of a value that is not a string, as written in the file.
pub(super) fn token_text(token: Token, text: &[u8]) -> String {
    match token {
        Token::Integer(value) => value.to_string(),
        Token::Number(span) | Token::Nested(span) | Token::Text(span) => {
            String::from_utf8_lossy(span.of(text)).into_owned()
        }
        Token::True => "true".to_owned(),
        Token::False => "false".to_owned(),
        Token::Null => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_decimals_are_what_the_library_reads() {
        for digits in (0..1_000_000_000).step_by(7_654_321) {
            for point in 1..9 {
                let mut text = format!("{digits:09}");
                text.insert(point, '.');
                assert_eq!(short_decimal(text.as_bytes()), text.parse().ok(), "{text}");
            }
        }
        for text in ["", ".", "1", "1.", ".5", "1.2.3", "-1.5", "1e5", "1234567890.5", "9999999999"]
        {
            assert_eq!(short_decimal(text.as_bytes()), None, "{text}");
        }
    }
}
