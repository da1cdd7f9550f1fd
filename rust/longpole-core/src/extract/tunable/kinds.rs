//! The kind and the line ending of a piece of a file.

use crate::names::named;

named! {
    /// The kind of a piece.
    Kind {
        /// A line that ties the file to a version or a device.
        Validator "validator",
        /// A GEMM and the solution used for it.
        Result "result",
        /// A GEMM that was recorded and not tuned.
        Untuned "untuned",
        /// An empty line.
        Blank "blank",
        /// The mark that some editors write at the start of a file.
        ByteOrderMark "byte_order_mark",
        /// Anything else; its `Reason` has the details.
        Unknown "unknown",
    }
}

named! {
    /// How a piece ends.
    Ending {
        /// A line feed, as PyTorch writes.
        Lf "lf",
        /// Carriage return and line feed; PyTorch reads the carriage return as part of the value.
        CrLf "crlf",
        /// No line ending: the file ends here, or the next piece is on the same line.
        Nothing "nothing",
    }
}

impl Ending {
    /// Returns its length in bytes.
    pub(super) fn n_bytes(self) -> i64 {
        match self {
            Self::Lf => 1,
            Self::CrLf => 2,
            Self::Nothing => 0,
        }
    }
}
