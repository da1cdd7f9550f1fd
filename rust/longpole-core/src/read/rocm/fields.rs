//! Extracts selected members of a JSON object by path, skipping the rest.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value that is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Integer(i64),
    Text(String),
}

/// The members of an object, in the order of the requested paths.
#[derive(Debug)]
pub(super) struct Fields<const N: usize>([Option<Scalar>; N]);

impl<const N: usize> Fields<N> {
    pub(super) fn integer(&self, place: usize) -> Option<i64> {
        match self.0[place] {
            Some(Scalar::Integer(number)) => Some(number),
            _ => None,
        }
    }

    pub(super) fn text(&self, place: usize) -> Option<&str> {
        match &self.0[place] {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Reads an object; a member at `a.b` is in a nested object.
pub(super) struct Paths<'p, const N: usize>(pub(super) &'p [&'p str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Paths<'_, N> {
    type Value = Fields<N>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Fields<N>, D::Error> {
        let mut found = Fields([const { None }; N]);
        let within = Within { paths: &self.0.map(Some), found: &mut found.0 };
        within.deserialize(input)?;
        Ok(found)
    }
}

/// A nested object, with the rest of each path that leads to it.
struct Within<'a, 'p, const N: usize> {
    paths: &'a [Option<&'p str>; N],
    found: &'a mut [Option<Scalar>; N],
}

impl<'de, const N: usize> DeserializeSeed<'de> for Within<'_, '_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<const N: usize> Within<'_, '_, N> {
    fn keep(self, value: Scalar) {
        let place = self.paths.iter().position(|path| *path == Some(""));
        if let Some(place) = place {
            self.found[place] = Some(value);
        }
    }
}

impl<'de, const N: usize> Visitor<'de> for Within<'_, '_, N> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let paths = self.paths.map(|path| behind(path?, &key));
            if paths.iter().any(Option::is_some) {
                map.next_value_seed(Within { paths: &paths, found: &mut *self.found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.keep(Scalar::Integer(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        if let Ok(value) = i64::try_from(value) {
            self.keep(Scalar::Integer(value));
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.keep(Scalar::Text(value.to_owned()));
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Returns the rest of a path after a key, if the path begins with it.
fn behind<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(key)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('.') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_paths_and_others_are_skipped() {
        let text = r#"{"x": [1, {"a": 2}], "a": {"b": 3, "bc": "no"}, "name": "n", "e": 1.5, "f": {"g": 1}}"#;
        let mut input = serde_json::Deserializer::from_str(text);
        let found = Paths(&["a.b", "name", "e", "f"]).deserialize(&mut input).unwrap();
        assert_eq!((found.integer(0), found.text(1)), (Some(3), Some("n")));
        assert_eq!((found.integer(2), found.integer(3)), (None, None));
    }
}
