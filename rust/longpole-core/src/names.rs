//! Enums whose variants have a public name.
//!
//! Each name is written once, next to its variant. Columns, the command line and the documentation
//! use the same name.

/// An enum whose variants have names in columns and on the command line.
pub trait Names: Copy + 'static {
    /// All variants, in enum order.
    const ALL: &'static [Self];
    /// The names of the variants, in the same order.
    const NAMES: &'static [&'static str];

    /// Returns the index of the variant.
    fn place(self) -> u32;

    /// Returns the name of the variant, stable between versions.
    fn name(self) -> &'static str {
        Self::NAMES[self.place() as usize]
    }

    /// Returns the variant with this name.
    fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|its| *its == name).map(|place| Self::ALL[place])
    }
}

/// Declares an enum whose variants have public names.
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

        impl<'a> $crate::columns::Cell<'a> for Option<$enum> {
            fn column(cells: impl Iterator<Item = Self>) -> $crate::columns::Column<'a> {
                use $crate::names::Names;
                let places = cells.map(|cell| cell.map_or($crate::ids::NO_ROW, Names::place));
                $crate::columns::Column::Names(places.collect(), $enum::NAMES.to_vec())
            }
        }

        impl<'a> $crate::columns::Cell<'a> for $enum {
            fn column(cells: impl Iterator<Item = Self>) -> $crate::columns::Column<'a> {
                Option::column(cells.map(Some))
            }
        }
    };
}

pub(crate) use named;
