//! The open brackets of a nested value, without recursion, so that the depth of the file does not
//! use our stack.

/// Deeper values are rejected. JSON sets no limit; other readers stop at 512 to 1024.
const MAX_DEPTH: usize = 512;

/// The open brackets of a nested value, one bit each, set for objects.
#[derive(Default)]
pub(super) struct Brackets {
    bits: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Brackets {
    pub(super) fn push(&mut self, object: bool) -> bool {
        if self.depth == MAX_DEPTH {
            return false;
        }
        let bit = 1 << (self.depth % 64);
        let word = &mut self.bits[self.depth / 64];
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
        true
    }

    pub(super) fn pop(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    pub(super) fn innermost_is_object(&self) -> bool {
        let top = self.depth - 1;
        self.bits[top / 64] >> (top % 64) & 1 == 1
    }
}
