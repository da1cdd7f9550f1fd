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

// Parses decimal digits, eight at a time in one register.
//
// A third of the work of reading a trace is parsing short integers. The arithmetic is that of
// Lemire's `fast_float` (2020): mark the bytes that are not digits, shift them out, and combine
// pairs, fours and eights by multiplication.

/// Returns the number at the front of `text` and its number of digits, up to 16. `None` if the text
/// ends before that is known.
#[inline(always)]
#[allow(clippy::inline_always)] // a call would cost as much as the arithmetic
pub(in crate::read) fn leading(text: &[u8]) -> Option<(u64, usize)> {
    match text.first_chunk() {
        Some(front) => Some(leading_of(front)),
        None => leading_of_few(text),
    }
}

/// Returns the number at the front of `text` and its number of digits.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(in crate::read) fn leading_of(text: &[u8; 16]) -> (u64, usize) {
    let ([front, behind], _) = text.as_chunks::<8>() else { return (0, 0) };
    let (value, count) = up_to_eight(*front);
    if count < 8 {
        return (value, count);
    }
    let (low, more) = up_to_eight(*behind);
    // At most sixteen digits, which fit.
    (value.wrapping_mul(POWERS[more]).wrapping_add(low), 8 + more)
}

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Returns eight bytes as digit values, and marks at those that are not digits. A carry only marks
/// bytes after the first of these.
#[inline]
fn digits_and_others(bytes: u64) -> (u64, u64) {
    let word = bytes ^ 0x3030_3030_3030_3030;
    (word, (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080)
}

/// Returns the number of leading digits in eight bytes.
#[inline]
pub(in crate::read) fn digit_count(bytes: [u8; 8]) -> usize {
    let (_, others) = digits_and_others(u64::from_le_bytes(bytes));
    others.trailing_zeros() as usize / 8
}

/// Returns the leading digits of four bytes as decimals, in thousandths, and their count. If all
/// four are digits, the value is unspecified.
#[inline]
pub(in crate::read) fn thousandths(bytes: [u8; 4]) -> (u64, usize) {
    let (word, others) = digits_and_others(u32::from_le_bytes(bytes).into());
    let count = others.trailing_zeros() as usize / 8;
    let digits = word & !(u64::MAX << (8 * count));
    let [tenths, hundredths, thousandths] = [0, 8, 16].map(|place| digits >> place & 0xff);
    (tenths.wrapping_mul(100) + hundredths.wrapping_mul(10) + thousandths, count)
}

/// Returns the number at the front of eight bytes and its number of digits.
#[inline]
pub(in crate::read) fn up_to_eight(bytes: [u8; 8]) -> (u64, usize) {
    let (word, others) = digits_and_others(u64::from_le_bytes(bytes));
    let count = others.trailing_zeros() as usize / 8;
    if count == 0 {
        return (0, 0);
    }
    let digits = word << (8 * (8 - count));
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let fours = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let rest = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (fours.wrapping_add(rest) >> 32, count)
}

/// Parses digits one by one, near the end of the window.
#[cold]
fn leading_of_few(text: &[u8]) -> Option<(u64, usize)> {
    let count = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let value = text[..count].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    Some((value, count))
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

    #[test]
    fn numbers_of_every_length_come_out_and_end_at_the_first_other_byte() {
        for end in 0..=u8::MAX {
            for count in 0..16 {
                let digits: String =
                    (0..count).map(|place| char::from(b'9' - place % 10)).collect();
                let mut text = digits.clone().into_bytes();
                text.push(if end.is_ascii_digit() { b',' } else { end });
                text.extend_from_slice(b"7777777777777777");
                let expected = (digits.parse().unwrap_or(0), usize::from(count));
                assert_eq!(leading(&text), Some(expected), "{digits} before {end}");
            }
        }
        assert_eq!(leading(b"12345678901234567"), Some((1_234_567_890_123_456, 16)));
        assert_eq!(leading(b"00000000000000001"), Some((0, 16)));
    }

    #[test]
    fn where_the_text_ends_nothing_is_said() {
        assert_eq!((leading(b"123"), leading(b"")), (None, None));
        assert_eq!(leading(b"123,"), Some((123, 3)));
    }

    #[test]
    fn digits_behind_a_point_are_thousandths() {
        for (text, found) in [(b"5,77", (500, 1)), (b"25 7", (250, 2)), (b"125}", (125, 3))] {
            assert_eq!(thousandths(*text), found);
        }
        assert_eq!((thousandths(*b",123").1, thousandths(*b"1234").1), (0, 4));
    }

    #[test]
    fn digits_are_counted() {
        let texts = [*b",1234567", *b"1:345678", *b"123456/8", *b"12345678"];
        assert_eq!(texts.map(digit_count), [0, 1, 6, 8]);
    }
}
