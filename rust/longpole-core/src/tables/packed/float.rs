//! Packs floats as integers.

use crate::ids::NO_INTEGER;

/// Maps NaN, which represents null, to the integer that represents null.
const MASK: u64 = 0xfff8_0000_0000_0000;

/// Returns a float as a packed integer; NaN is null.
pub(crate) fn of_float(value: f64) -> i64 {
    if value.is_nan() { NO_INTEGER } else { (value.to_bits() ^ MASK).cast_signed() }
}

/// Returns the float of a packed integer; NaN for null.
pub(crate) fn float_of(packed: i64) -> f64 {
    f64::from_bits(packed.cast_unsigned() ^ MASK)
}
