//! Parses numbers and strings from the values of an event.

use crate::read::json::Token;

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
