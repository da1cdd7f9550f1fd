//! The byte classes of JSON.

/// Whether a byte is JSON white space.
#[inline]
pub(in crate::read) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Returns the text after any white space at its front.
pub(in crate::read) fn significant(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|&&byte| is_whitespace(byte)).count();
    &text[blank..]
}

/// Whether a byte continues a number or word that began before it.
#[inline]
pub(super) fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'-' | b'+' | b'/' | b'_' | b'#' | b'(' | b')')
}

/// Whether a text is a number by the grammar of RFC 8259, section 6.
pub(in crate::read) fn is_number(text: &[u8]) -> bool {
    fn digits(text: &[u8]) -> (usize, &[u8]) {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count, &text[count..])
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, rest) = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let rest = match rest {
        [b'.', rest @ ..] => match digits(rest) {
            (0, _) => return false,
            (_, rest) => rest,
        },
        rest => rest,
    };
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            matches!(digits(rest), (1.., []))
        }
        _ => false,
    }
}

/// Whether a word is what `printf` or Python prints for non-finite numbers.
pub(super) fn is_non_finite(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    ["nan", "inf", "infinity", "nan(ind)", "nan(snan)", "1.#inf", "1.#ind", "1.#qnan"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns the index of the first byte of `text` that is a quote, a backslash, a control character
/// or not ASCII.
///
/// Checks eight bytes at a time in one register ("SIMD within a register", Mycroft 1987): names are
/// too short for wider vectors to pay off.
#[inline]
pub(in crate::read) fn special(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(chunk) = text.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let found = word
            | word.wrapping_sub(ONES * 0x20)
            | quote.wrapping_sub(ONES)
            | backslash.wrapping_sub(ONES);
        // A borrow may mark a byte after the first true mark, never before it.
        if found & HIGHS != 0 {
            return Some(at + (found & HIGHS).trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text.get(at..)?;
    let found = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0x80.. | ..0x20))?;
    Some(at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_wherever_they_stand() {
        for special_byte in [b'"', b'\\', 0, 0x1f, 0x80, 0xff] {
            for length in 0..40 {
                for at in 0..length {
                    let mut text = vec![b'a'; length];
                    text[at] = special_byte;
                    text[length - 1] = if at == length - 1 { special_byte } else { b'"' };
                    assert_eq!(special(&text), Some(at));
                }
                assert_eq!(special(&vec![b'!'; length]), None);
            }
        }
    }
}
