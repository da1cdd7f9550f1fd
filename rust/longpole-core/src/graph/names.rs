//! Matches patterns against the names of a trace.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::patterns;
use crate::tables::Tables;
use crate::vocabulary::{is_kernel_family, kernel_family};

/// Whether each name matches a pattern, one row for each string.
pub(crate) fn matching(pattern: &str, tables: &Tables) -> Result<Vec<bool>> {
    if let Some(names) = whole_names(pattern) {
        return Ok(tables.strings.matching(|name| names.contains(name)));
    }
    let pattern = patterns::compile(pattern, patterns::MOST_BYTES_JOINED)?;
    Ok(tables.strings.matching(|name| pattern.is_match(name)))
}

/// Whether each name matches a pattern for kernels, one row for each string. The name of a kernel
/// family selects all kernels of that family.
pub(crate) fn matching_kernels(pattern: &str, tables: &Tables) -> Result<Vec<bool>> {
    if is_kernel_family(pattern) {
        return Ok(tables.strings.matching(|name| kernel_family(name) == pattern));
    }
    matching(pattern, tables)
}

/// Returns a pattern that matches exactly the given names.
#[cfg(test)]
fn pattern_of(names: &[&str]) -> String {
    let escaped: Vec<_> = names.iter().map(|name| regex::escape(name)).collect();
    format!("^(?:{})$", escaped.join("|"))
}

/// Returns the names in a pattern of the form `^(?:one|two)$`, which are looked up directly: that
/// is faster than compiling the pattern.
fn whole_names(pattern: &str) -> Option<BTreeSet<String>> {
    let inner = pattern.strip_prefix("^(?:")?.strip_suffix(")$")?;
    let mut names = BTreeSet::new();
    let mut name = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => name.push(characters.next().filter(|next| is_escaped(*next))?),
            '|' => _ = names.insert(std::mem::take(&mut name)),
            other if is_escaped(other) => return None,
            other => name.push(other),
        }
    }
    names.insert(name);
    Some(names)
}

/// Whether [`regex::escape`] escapes this character.
fn is_escaped(character: char) -> bool {
    r"\.+*?()|[]{}^$#&-~".contains(character)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn names_are_told_from_other_patterns() {
        let names =
            ["void gemm<float, (Tile)1>(int const*)", "a|b", "\\d$^", "ä b\n", "~{#&-}[x]?+."];
        let found = whole_names(&pattern_of(&names)).unwrap();
        assert_eq!(found, names.map(str::to_owned).into());
        assert_eq!(whole_names(&pattern_of(&[""])).unwrap(), [String::new()].into());
        for other in ["gemm", "^(?:a.b)$", "^(?:a)|(?:b)$", r"^(?:\d)$", r"^(?:a\)$", "^(?:a[b])$"]
        {
            assert_eq!(whole_names(other), None, "{other}");
        }
    }

    #[test]
    fn names_match_as_the_pattern_does() {
        let names = ["a.b", "c|d", "(e)", "f\\", "g\n"];
        let pattern = pattern_of(&names);
        let compiled = Regex::new(&pattern).unwrap();
        let found = whole_names(&pattern).unwrap();
        for text in ["a.b", "axb", "c", "c|d", "d", "(e)", "e", "f\\", "g", "g\n", "", "a.b "] {
            assert_eq!(found.contains(text), compiled.is_match(text), "{text:?}");
        }
    }
}
