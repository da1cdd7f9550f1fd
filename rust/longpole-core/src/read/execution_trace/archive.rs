//! Reads the first file of a tar archive.

use crate::diagnostics::Diagnostics;
use crate::error::Result;
use crate::read::window::Window;

const BLOCK: usize = 512;

/// Moves the window to the content of the first file, if the window is on a tar archive.
pub(super) fn enter(window: &mut Window<'_>, diagnostics: &mut Diagnostics) -> Result<()> {
    loop {
        while window.text().len() < BLOCK && window.more(diagnostics)? {}
        let text = window.text();
        if text.get(257..262) != Some(b"ustar") {
            return Ok(());
        }
        let is_file = matches!(text[156], b'0' | 0);
        let size = octal(&text[124..136]);
        window.consume(BLOCK);
        if is_file {
            return Ok(());
        }
        skip(window, size.next_multiple_of(BLOCK), diagnostics)?;
    }
}

fn octal(digits: &[u8]) -> usize {
    let digits = digits.iter().filter(|byte| (b'0'..=b'7').contains(byte));
    digits.fold(0, |size, digit| size.saturating_mul(8) + usize::from(digit - b'0'))
}

fn skip(window: &mut Window<'_>, mut count: usize, diagnostics: &mut Diagnostics) -> Result<()> {
    while count > 0 {
        let step = window.text().len().min(count);
        window.consume(step);
        count -= step;
        if count > 0 && !window.more(diagnostics)? {
            break;
        }
    }
    Ok(())
}
