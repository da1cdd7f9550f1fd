//! What a piece of a file is, and how it ends.

use crate::names::named;

named! {
    /// What a piece is.
    Kind {
        /// A line that ties the file to a version or a device.
        Validator "validator",
        /// A GEMM and the solution that is used for it.
        Result "result",
        /// A GEMM that was recorded and not tuned.
        Untuned "untuned",
        /// A line without text.
        Blank "blank",
        /// The mark that some editors put at the start of a file.
        ByteOrderMark "byte_order_mark",
        /// Anything else; its `Reason` says why.
        Unknown "unknown",
    }
}

named! {
    /// How a piece ends.
    Ending {
        /// A line feed, as torch writes.
        Lf "lf",
        /// Carriage return and line feed; torch takes the return for a part of the value.
        CrLf "crlf",
        /// Nothing: the file ends here, or the next piece is on the same line.
        Nothing "nothing",
    }
}
