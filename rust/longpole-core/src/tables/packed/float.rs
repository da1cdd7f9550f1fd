//! Floats as the integers that are packed in their place.

use crate::ids::NO_INTEGER;

/// What makes of the float that stands for none, NaN, the integer that does.
const MASK: u64 = 0xfff8_0000_0000_0000;

/// A float as it is packed; NaN is none.
pub(crate) fn of_float(value: f64) -> i64 {
    if value.is_nan() { NO_INTEGER } else { (value.to_bits() ^ MASK).cast_signed() }
}

/// The float that a packed value stands for; NaN for none.
pub(crate) fn float_of(packed: i64) -> f64 {
    f64::from_bits(packed.cast_unsigned() ^ MASK)
}
