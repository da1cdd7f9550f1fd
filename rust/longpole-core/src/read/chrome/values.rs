//! Numbers and texts out of the values of an event.

use crate::read::json::Token;

pub(super) fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Whether a number of the file has neither point nor exponent.
pub(super) fn is_integer(number: &[u8]) -> bool {
    number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
}

/// An integer, or a text that is one, in decimal or with `0x`.
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

/// What stands in the file for a value that is no text.
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
