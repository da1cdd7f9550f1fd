//! The words of short lists, each with its name outside.
//!
//! Each name is written once, beside its variant, and is the one seen in columns, on the
//! command line and in the documentation.

/// A word of a short list, with its name in columns and on the command line.
pub trait Names: Copy + 'static {
    /// Every one, in the order of the enum.
    const ALL: &'static [Self];
    /// Their names, in the same order.
    const NAMES: &'static [&'static str];

    /// Its place in the order of the enum.
    fn place(self) -> u32;

    /// Its name, stable between versions.
    fn name(self) -> &'static str {
        Self::NAMES[self.place() as usize]
    }

    /// The one with a name.
    fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|its| *its == name).map(|place| Self::ALL[place])
    }
}

/// Declares an enum whose variants each have a name outside.
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $enum { $($(#[$variant_doc])* $variant,)* }

        impl $crate::names::Names for $enum {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];
            const NAMES: &'static [&'static str] = &[$($name,)*];

            fn place(self) -> u32 {
                self as u32
            }
        }
    };
}

pub(crate) use named;
