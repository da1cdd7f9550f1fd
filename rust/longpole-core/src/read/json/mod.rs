//! A JSON scanner over a window of text, independent of trace formats.
//!
//! A format reader requests the values that it needs, one element at a time, and learns where the
//! text is damaged. [`Keys`] represents object keys as small numbers, and `digits` parses decimal
//! numbers.
//!
//! Limits: an element that exceeds the window is scanned again in a longer one.

mod grammar;
mod keys;
mod scan;

pub(super) use grammar::{
    digit_count, is_number, is_whitespace, leading, leading_of, significant, special, thousandths,
    up_to_eight,
};
pub(super) use keys::{Key, Keys};
pub(super) use scan::{Scan, Scanner, Span, Stop, Token, starts_with_key};
