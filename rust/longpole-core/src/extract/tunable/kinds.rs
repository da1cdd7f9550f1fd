//! What a piece of a file is, and how it ends.

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A line that ties the file to a version or a device.
    Validator,
    /// A GEMM and the solution that is used for it.
    Result,
    /// A GEMM that was recorded and not tuned.
    Untuned,
    /// A line without text.
    Blank,
    /// The mark that some editors put at the start of a file.
    ByteOrderMark,
    /// Anything else; its `Reason` says why.
    Unknown,
}

impl Kind {
    /// Every kind, in the order of the enum.
    pub const ALL: &'static [Self] = &[
        Self::Validator,
        Self::Result,
        Self::Untuned,
        Self::Blank,
        Self::ByteOrderMark,
        Self::Unknown,
    ];

    /// Its name for programs, stable between versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Validator => "validator",
            Self::Result => "result",
            Self::Untuned => "untuned",
            Self::Blank => "blank",
            Self::ByteOrderMark => "byte_order_mark",
            Self::Unknown => "unknown",
        }
    }
}

/// How a piece ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// A line feed, as torch writes.
    Lf,
    /// Carriage return and line feed; torch takes the return for a part of the value.
    CrLf,
    /// Nothing: the file ends here, or the next piece is on the same line.
    Nothing,
}

impl Ending {
    /// Every ending, in the order of the enum.
    pub const ALL: &'static [Self] = &[Self::Lf, Self::CrLf, Self::Nothing];

    /// Its name for programs, stable between versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lf => "lf",
            Self::CrLf => "crlf",
            Self::Nothing => "nothing",
        }
    }
}
