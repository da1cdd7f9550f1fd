//! Decodes the bytes between two quotes of a JSON document.

use std::borrow::Cow;

/// Longer strings are truncated, which is counted.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// Problems in the spelling of a string that could still be decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a finding of its own
pub struct SpellingFaults {
    /// Invalid UTF-8, replaced by U+FFFD.
    pub invalid_utf8: bool,
    /// Control characters that JSON requires to be escaped, kept.
    pub control_characters: bool,
    /// A backslash before an invalid escape, kept.
    pub unknown_escapes: bool,
    /// Half a surrogate pair, replaced by U+FFFD.
    pub lone_surrogates: bool,
    /// Longer than [`MAX_TEXT_BYTES`], truncated.
    pub cut: bool,
}

/// Returns the problems in the spelling of `raw`.
pub(crate) fn spelling_faults(raw: &[u8]) -> SpellingFaults {
    // Most strings that are not plain contain valid UTF-8 and nothing else.
    let is_sound = raw.len() <= MAX_TEXT_BYTES
        && !raw.iter().any(|&byte| byte < b' ' || byte == b'\\')
        && std::str::from_utf8(raw).is_ok();
    if is_sound {
        return SpellingFaults::default();
    }
    unescape(raw).1
}

/// Returns the string that `raw` spells.
pub(crate) fn spelled_text(raw: &[u8]) -> String {
    unescape(raw).0
}

/// Returns the string that `raw` spells, and the problems of the spelling.
pub(super) fn unescape(raw: &[u8]) -> (String, SpellingFaults) {
    let mut faults = SpellingFaults::default();
    let mut rest = &raw[..raw.len().min(MAX_TEXT_BYTES)];
    if rest.len() < raw.len() {
        faults.cut = true;
        rest = trim_to_character(rest);
    }
    faults.control_characters = rest.iter().any(|&byte| byte < b' ');
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest) {
        push_bytes(&mut text, &rest[..at], &mut faults);
        rest = push_escape(&mut text, &rest[at..], &mut faults);
    }
    push_bytes(&mut text, rest, &mut faults);
    (text, faults)
}

/// Removes an incomplete character at the end, so that truncation does not split a character.
fn trim_to_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

fn push_bytes(text: &mut String, bytes: &[u8], faults: &mut SpellingFaults) {
    let valid = String::from_utf8_lossy(bytes);
    faults.invalid_utf8 |= matches!(valid, Cow::Owned(_));
    text.push_str(&valid);
}

/// Decodes the escape at the front of `rest`, which begins with a backslash.
fn push_escape<'a>(text: &mut String, rest: &'a [u8], faults: &mut SpellingFaults) -> &'a [u8] {
    let simple = match rest.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return push_unicode_escape(text, rest, faults),
        _ => {
            faults.unknown_escapes = true;
            text.push('\\');
            return &rest[1..];
        }
    };
    text.push(simple);
    &rest[2..]
}

fn push_unicode_escape<'a>(
    text: &mut String,
    rest: &'a [u8],
    faults: &mut SpellingFaults,
) -> &'a [u8] {
    let Some(first) = code_unit(rest) else {
        faults.unknown_escapes = true;
        text.push('\\');
        return &rest[1..];
    };
    if let Some(character) = char::from_u32(first) {
        text.push(character);
        return &rest[6..];
    }
    let second = code_unit(&rest[6..]).filter(|unit| (0xdc00..0xe000).contains(unit));
    if let (0xd800..0xdc00, Some(second)) = (first, second) {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return &rest[12..];
    }
    faults.lone_surrogates = true;
    text.push(char::REPLACEMENT_CHARACTER);
    &rest[6..]
}

/// Returns the number in `\uXXXX` at the front of `bytes`.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = bytes else { return None };
    digits
        .get(..4)?
        .iter()
        .try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(raw: &[u8]) -> (String, Vec<&'static str>) {
        let (text, faults) = unescape(raw);
        let all = [
            (faults.invalid_utf8, "utf8"),
            (faults.control_characters, "control"),
            (faults.unknown_escapes, "escape"),
            (faults.lone_surrogates, "surrogate"),
        ];
        (text, all.into_iter().filter_map(|(set, name)| set.then_some(name)).collect())
    }

    #[test]
    fn sound_escapes_are_taken_literally() {
        let raw = br#"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"#;
        assert_eq!(faults(raw), ("\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600}\0".into(), vec![]));
    }

    #[test]
    fn damage_is_kept_or_replaced_and_named() {
        let cases: [(&[u8], &str, &str); 7] = [
            (br"C:\cuda\_x", "C:\\cuda\\_x", "escape"),
            (br"\u12g4", "\\u12g4", "escape"),
            (br"a\ud800b", "a\u{fffd}b", "surrogate"),
            (br"\udc00\ud800", "\u{fffd}\u{fffd}", "surrogate"),
            (br"\ud800\u0041", "\u{fffd}A", "surrogate"),
            (b"caf\xe9", "caf\u{fffd}", "utf8"),
            (b"a\nb", "a\nb", "control"),
        ];
        for (raw, text, fault) in cases {
            assert_eq!(faults(raw), (text.into(), vec![fault]), "{raw:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let raw = "\u{e9}".repeat(MAX_TEXT_BYTES / 2 + 1);
        let raw = [b"a", raw.as_bytes()].concat();
        let (text, faults) = unescape(&raw);
        assert!(faults.cut && !faults.invalid_utf8);
        assert_eq!(text.len(), MAX_TEXT_BYTES - 1);
    }
}
