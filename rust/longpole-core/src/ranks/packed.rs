//! Serializes a reduced rank, for transfer to another process of the same version.
//!
//! Fields are written one after another: integers in eight bytes or fewer, lists after their
//! length. The format is not meant for storage.

use super::model::{Boundary, BoundaryKind, Channel, Maybe, Member, Rank, Reduced};
use super::profile::{NameTotal, Profile, StepTotal, TimeClass};
use crate::measure::Group;
use crate::names::Names;
use crate::vocabulary::{Collective, DataType};

/// The first bytes. Another version may have other fields.
const HEAD: &str = concat!("longpole rank ", env!("CARGO_PKG_VERSION"));

/// Serializes a rank and its profile.
pub fn packed(rank: &Rank, profile: &Profile) -> Vec<u8> {
    let mut bytes = HEAD.as_bytes().to_vec();
    rank.pack(&mut bytes);
    profile.pack(&mut bytes);
    bytes
}

/// Deserializes a rank and its profile; `None` if another version wrote the bytes, or if they are
/// not valid.
pub fn unpacked(bytes: &[u8]) -> Option<(Rank, Profile)> {
    let mut left = bytes.strip_prefix(HEAD.as_bytes())?;
    let found = (Rank::unpack(&mut left)?, Profile::unpack(&mut left)?);
    left.is_empty().then_some(found)
}

/// A type that can be serialized and deserialized.
trait Packed: Sized {
    fn pack(&self, bytes: &mut Vec<u8>);
    fn unpack(left: &mut &[u8]) -> Option<Self>;
}

/// Implements [`Packed`] for integers, in little-endian byte order.
macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Packed for $type {
            fn pack(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn unpack(left: &mut &[u8]) -> Option<Self> {
                let (own, rest) = left.split_first_chunk()?;
                *left = rest;
                Some(Self::from_le_bytes(*own))
            }
        })*
    };
}

integers!(u8 u32 u64 i64);

/// Implements [`Packed`] for a struct, field by field.
macro_rules! fields {
    ($type:ty: $($field:ident)*) => {
        impl Packed for $type {
            fn pack(&self, bytes: &mut Vec<u8>) {
                $(self.$field.pack(bytes);)*
            }

            fn unpack(left: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Packed::unpack(left)?),* })
            }
        }
    };
}

fields!(Group: name description size ranks);
fields!(Member: event start_ns end_ns step sequence id peer in_elements bytes channel operation
    is_recorded data_type);
fields!(Boundary: kind node time_ns bound_by others_ns own_ns first);
fields!(Reduced: nodes sources latencies_ns);
fields!(Rank: rank world_size host base_ns window_ns entry_ns steps groups members reduced);
fields!(StepTotal: step class total_ns);
fields!(NameTotal: class name shape count total_ns);
fields!(Profile: steps names);

/// Implements [`Packed`] for an enum, by index in its list of names.
macro_rules! words {
    ($($type:ty)*) => {
        $(impl Packed for $type {
            fn pack(&self, bytes: &mut Vec<u8>) {
                let place = Self::ALL.iter().position(|it| it == self);
                place.and_then(|it| u8::try_from(it).ok()).unwrap_or(u8::MAX).pack(bytes);
            }

            fn unpack(left: &mut &[u8]) -> Option<Self> {
                Self::ALL.get(usize::from(u8::unpack(left)?)).copied()
            }
        })*
    };
}

words!(Collective TimeClass);

impl Packed for DataType {
    fn pack(&self, bytes: &mut Vec<u8>) {
        self.name().to_owned().pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        Self::named(&String::unpack(left)?)
    }
}

impl Packed for bool {
    fn pack(&self, bytes: &mut Vec<u8>) {
        u8::from(*self).pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        Some(u8::unpack(left)? == 1)
    }
}

impl Packed for Maybe {
    fn pack(&self, bytes: &mut Vec<u8>) {
        self.get().pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        Some(Option::<i64>::unpack(left)?.into())
    }
}

impl Packed for Channel {
    fn pack(&self, bytes: &mut Vec<u8>) {
        let (kind, place) = match *self {
            Self::Group(place) => (0_u8, place),
            Self::Stream(place) => (1, place),
            Self::Cpu => (2, 0),
        };
        (kind, place).pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        match Packed::unpack(left)? {
            (0_u8, place) => Some(Self::Group(place)),
            (1, place) => Some(Self::Stream(place)),
            (2, _) => Some(Self::Cpu),
            _ => None,
        }
    }
}

impl Packed for BoundaryKind {
    fn pack(&self, bytes: &mut Vec<u8>) {
        let (kind, place) = match *self {
            Self::Arrival(member) => (0_u8, member),
            Self::End(member) => (1, member),
            Self::Cut => (2, 0),
            Self::Completion(step) => (3, step),
        };
        (kind, place).pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        match Packed::unpack(left)? {
            (0_u8, member) => Some(Self::Arrival(member)),
            (1, member) => Some(Self::End(member)),
            (2, _) => Some(Self::Cut),
            (3, step) => Some(Self::Completion(step)),
            _ => None,
        }
    }
}

impl Packed for String {
    fn pack(&self, bytes: &mut Vec<u8>) {
        self.as_bytes().to_vec().pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Packed::unpack(left)?).ok()
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, bytes: &mut Vec<u8>) {
        self.is_some().pack(bytes);
        if let Some(value) = self {
            value.pack(bytes);
        }
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        if bool::unpack(left)? { Some(Some(T::unpack(left)?)) } else { Some(None) }
    }
}

impl<T: Packed, U: Packed> Packed for (T, U) {
    fn pack(&self, bytes: &mut Vec<u8>) {
        self.0.pack(bytes);
        self.1.pack(bytes);
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        Some((T::unpack(left)?, U::unpack(left)?))
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).pack(bytes);
        for value in self {
            value.pack(bytes);
        }
    }

    fn unpack(left: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u64::unpack(left)?).ok()?;
        let mut found = Self::with_capacity(length.min(left.len()));
        for _ in 0..length {
            found.push(T::unpack(left)?);
        }
        found.shrink_to_fit();
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_comes_back_as_it_was() {
        let member = Member {
            event: 7,
            start_ns: -3,
            end_ns: 9,
            step: Some(2).into(),
            sequence: Maybe::NONE,
            id: u64::MAX,
            peer: Maybe::NONE,
            in_elements: Some(4).into(),
            bytes: Some(8).into(),
            channel: Channel::Stream(1),
            operation: Some(Collective::Send),
            is_recorded: true,
            data_type: DataType::named("float16"),
        };
        let rank = Rank {
            rank: Some(3),
            host: Some("a host".to_owned()),
            steps: vec![1, 2],
            members: vec![member],
            ..Rank::default()
        };
        let step = StepTotal { step: None, class: TimeClass::Copies, total_ns: 5 };
        let profile = Profile { steps: vec![step], names: Vec::new() };
        let bytes = packed(&rank, &profile);
        assert_eq!(unpacked(&bytes), Some((rank, profile)));
        assert_eq!(unpacked(&bytes[..bytes.len() - 1]), None);
        assert_eq!(unpacked(b"something else"), None);
    }
}
