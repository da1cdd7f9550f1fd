//! A JSON scanner over a window of text, which knows nothing of traces.
//!
//! A reader of a format asks it for the values it wants, one element at a time, and finds out
//! where the text is damaged. [`Keys`] are the keys of objects as small numbers, `digits` the
//! arithmetic of decimal numbers.
//!
//! Limits: an element that does not fit the window is scanned again in a longer one.

mod brackets;
mod digits;
mod grammar;
mod keys;
mod scan;
mod span;

pub(super) use digits::{digit_count, leading, leading_of, thousandths, up_to_eight};
pub(super) use grammar::{is_number, is_whitespace, significant, special};
pub(super) use keys::{Key, Keys};
pub(super) use scan::{Scan, Scanner, Stop, starts_with_key};
pub(super) use span::{Span, Token};
