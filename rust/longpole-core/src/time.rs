//! Parses decimal microseconds, as profilers write them, to exact nanoseconds.
//!
//! Floats are not used: for microseconds since 1970, doubles are 250 ns apart, so that 99 % of such
//! timestamps would be wrong.

use std::cmp::Ordering;

/// Larger absolute times (146 years) are rejected, so that the difference of any two times, and the
/// end of any event, fits 64 bits.
pub const MAX_TIME_NS: i64 = (1 << 62) - 1;

/// Clips a window to the range of event times.
pub(crate) fn in_range((start_ns, end_ns): (i64, i64)) -> (i64, i64) {
    let clamped = |time_ns: i64| time_ns.clamp(-MAX_TIME_NS, MAX_TIME_NS);
    (clamped(start_ns), clamped(end_ns))
}

/// Why a text is not a valid time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadTime {
    /// The text is not a decimal number.
    NotANumber,
    /// The number exceeds [`MAX_TIME_NS`].
    OutOfRange,
}

/// Converts decimal microseconds to nanoseconds.
///
/// Accepts JSON numbers, including exponents. Digits below a nanosecond are rounded half to even,
/// like Python's `decimal`.
///
/// # Errors
///
/// Returns an error if the text is not a number, or if the number is too large.
///
/// ```
/// use longpole_core::time::nanoseconds;
/// assert_eq!(nanoseconds(b"1712195495506752.812"), Ok(1_712_195_495_506_752_812));
/// assert_eq!(nanoseconds(b"1e-05"), Ok(0));
/// ```
pub fn nanoseconds(microseconds: &[u8]) -> Result<i64, BadTime> {
    let (negative, digits) = match microseconds {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let decimal = Decimal::parse(digits).ok_or(BadTime::NotANumber)?;
    let value = decimal.times_ten_to(3).ok_or(BadTime::OutOfRange)?;
    let value = i64::try_from(if negative { -value } else { value });
    value
        .ok()
        .filter(|value| (-MAX_TIME_NS..=MAX_TIME_NS).contains(value))
        .ok_or(BadTime::OutOfRange)
}

/// An unsigned decimal number: the digits, and the position of the decimal point.
struct Decimal<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (whole, rest) = split_digits(text);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                let (fraction, rest) = split_digits(rest);
                if fraction.is_empty() {
                    return None;
                }
                (fraction, rest)
            }
            rest => (&rest[..0], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => parse_exponent(rest)?,
            _ => return None,
        };
        let padded = whole.len() > 1 && whole[0] == b'0';
        (!whole.is_empty() && !padded).then_some(Self { whole, fraction, exponent })
    }

    /// Returns the value times ten to `power`, rounded to the nearest integer, half to even.
    fn times_ten_to(&self, power: i64) -> Option<i128> {
        let point =
            i64::try_from(self.whole.len()).ok()?.checked_add(self.exponent)?.checked_add(power)?;
        let digits = self.whole.iter().chain(self.fraction).map(|digit| digit - b'0');
        let mut value: i128 = 0;
        let mut taken: i64 = 0;
        let mut rest = Rest::default();
        for digit in digits {
            if taken < point {
                value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
            } else {
                rest.push(digit, taken == point);
            }
            taken += 1;
        }
        // A zero stays zero for any position of the decimal point.
        while value != 0 && taken < point {
            value = value.checked_mul(10)?;
            taken += 1;
        }
        Some(value + i128::from(rest.rounds_up(value % 2 != 0)))
    }
}

/// The digits that were cut off, as far as rounding needs them.
#[derive(Default)]
struct Rest {
    first: u8,
    more: bool,
}

impl Rest {
    fn push(&mut self, digit: u8, is_first: bool) {
        if is_first {
            self.first = digit;
        } else {
            self.more |= digit != 0;
        }
    }

    fn rounds_up(&self, odd: bool) -> bool {
        match self.first.cmp(&5) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => self.more || odd,
        }
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns the exponent. Exponents beyond 18 digits saturate, because the value is out of range or
/// zero anyway.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let cap = 1_000_000_000_i64;
    let value =
        digits.iter().fold(0_i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(cap));
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> i64 {
        nanoseconds(text.as_bytes()).unwrap()
    }

    #[test]
    fn nineteen_digits_are_kept() {
        assert_eq!(ns("1767225600001000.001"), 1_767_225_600_001_000_001);
        assert_eq!(ns("-0.005"), -5);
    }

    #[test]
    fn finer_digits_round_half_to_even() {
        assert_eq!(
            ["0.0005", "0.0015", "0.00150001", "0.0025", "12.0004999"].map(ns),
            [0, 2, 2, 2, 12_000]
        );
    }

    #[test]
    fn exponents_are_exact() {
        assert_eq!(
            ["1.5e3", "15E-1", "0e999999999999", "1e-400"].map(ns),
            [1_500_000, 1_500, 0, 0]
        );
    }

    #[test]
    fn what_is_no_json_number_is_no_time() {
        for text in ["", "-", ".5", "1.", "007", "+9", "0.-05", "1e", "1e+", "nan", "1.2.3", " 1"] {
            assert_eq!(nanoseconds(text.as_bytes()), Err(BadTime::NotANumber), "{text:?}");
        }
    }

    #[test]
    fn a_century_and_a_half_is_too_far() {
        assert_eq!(ns("-4611686018427387.903"), -MAX_TIME_NS);
        for text in
            ["4611686018427387.904", "-9223372036854775.808", "1e30", "1e999999999999999999999"]
        {
            assert_eq!(nanoseconds(text.as_bytes()), Err(BadTime::OutOfRange), "{text}");
        }
    }
}
