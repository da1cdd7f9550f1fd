//! Additions by the user to the vocabulary: regular expressions for the names in their code.
//!
//! Additions take precedence over the built-in tables, so that they can also correct them.

use regex::Regex;

use super::{ApiRole, EventKind, WorkClass};
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::patterns::Budget;

/// An addition: the meaning of names that match a pattern.
#[derive(Debug, Clone)]
struct Rule<T> {
    pattern: Regex,
    meaning: T,
}

/// The meaning of names: the built-in tables and additions.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    api: Vec<Rule<ApiRole>>,
    kernels: Vec<Rule<WorkClass>>,
    categories: Vec<Rule<EventKind>>,
    data_loading: Vec<Regex>,
    additions: Vec<[String; 3]>,
    budget: Budget,
}

/// The sections that accept additions.
pub const SECTIONS: &[&str] = &["api", "kernels", "categories", "data_loading"];

impl Vocabulary {
    /// Adds a pattern for names that mean `meaning` in a section: `api` (a role), `kernels` (a
    /// class of GPU activities), `categories` (a kind of event), or `data_loading` (`functions`,
    /// its only meaning).
    ///
    /// # Errors
    ///
    /// Returns an error for an unknown section or meaning, with a list of the known ones, for a
    /// pattern that is not a regular expression, and for patterns that take too much memory.
    pub fn add(&mut self, section: &str, meaning: &str, pattern: &str) -> Result<()> {
        let addition = [section, meaning, pattern].map(str::to_owned);
        let pattern =
            self.budget.compile(pattern).map_err(|error| vocabulary_error(error.to_string()))?;
        match section {
            "api" => self.api.push(Rule { pattern, meaning: named(section, meaning)? }),
            "kernels" => self.kernels.push(Rule { pattern, meaning: named(section, meaning)? }),
            "categories" => {
                self.categories.push(Rule { pattern, meaning: named(section, meaning)? });
            }
            "data_loading" if meaning == "functions" => {
                // Compiled alone in its group, as it is later joined: `a)(b` and `(?x) a # b` are
                // different patterns inside a group.
                self.data_loading.push(self.budget.compile(&grouped(pattern.as_str()))?);
            }
            "data_loading" => return Err(unknown("data_loading", meaning, &["functions"])),
            _ => return Err(unknown("vocabulary", section, SECTIONS)),
        }
        self.additions.push(addition);
        Ok(())
    }

    /// Returns the additions in order: section, meaning and pattern of each.
    pub fn additions(&self) -> &[[String; 3]] {
        &self.additions
    }

    /// Returns the role of runtime API calls with this name.
    pub fn role(&self, name: &str) -> ApiRole {
        first(&self.api, name).unwrap_or_else(|| ApiRole::of_name(name))
    }

    /// Returns the class of kernels with this name.
    pub fn class(&self, name: &str) -> WorkClass {
        first(&self.kernels, name).unwrap_or_else(|| WorkClass::of_kernel(name))
    }

    /// Returns the kind of events of a category.
    pub fn kind(&self, category: &str) -> EventKind {
        first(&self.categories, category).unwrap_or_else(|| EventKind::of_category(category))
    }

    /// Returns the regular expression for data-loading names.
    pub fn data_loading(&self) -> String {
        let added = self.data_loading.iter().map(|pattern| pattern.as_str().to_owned());
        let all: Vec<_> = [grouped(super::DATA_LOADING)].into_iter().chain(added).collect();
        all.join("|")
    }
}

/// Returns a pattern in a group, which limits the scope of its flags.
fn grouped(pattern: &str) -> String {
    format!("(?:{pattern})")
}

fn first<T: Copy>(rules: &[Rule<T>], name: &str) -> Option<T> {
    rules.iter().find(|rule| rule.pattern.is_match(name)).map(|rule| rule.meaning)
}

fn named<T: Names>(section: &str, meaning: &str) -> Result<T> {
    T::named(meaning).ok_or_else(|| unknown(section, meaning, T::NAMES))
}

fn unknown(where_: &str, word: &str, known: &[&str]) -> Error {
    vocabulary_error(format!("{where_} has no {word:?}; it has {}", known.join(", ")))
}

fn vocabulary_error(why: String) -> Error {
    Error::new(ErrorKind::Vocabulary(why), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_come_before_the_tables() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add("api", "launch", "^acmeSubmit").unwrap();
        vocabulary.add("kernels", "compute", "^fused_all_reduce_gemm").unwrap();
        vocabulary.add("categories", "kernel", "^acme_kernel$").unwrap();
        vocabulary.add("data_loading", "functions", "fetch_batch").unwrap();
        assert_eq!(vocabulary.role("acmeSubmitWork"), ApiRole::Launch);
        assert_eq!(vocabulary.role("cudaFree"), ApiRole::Free);
        assert_eq!(vocabulary.class("fused_all_reduce_gemm_bf16"), WorkClass::Compute);
        assert_eq!(vocabulary.kind("acme_kernel"), EventKind::Kernel);
        assert_eq!(vocabulary.data_loading(), "(?:(?i)data_?loader)|(?:fetch_batch)");
    }

    #[test]
    fn patterns_of_users_keep_their_case_and_their_flags() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add("data_loading", "functions", "^fetch_batch$").unwrap();
        vocabulary.add("data_loading", "functions", "(?i)^next_rows$").unwrap();
        let pattern = Regex::new(&vocabulary.data_loading()).unwrap();
        let found = ["DataLoader", "fetch_batch", "FETCH_BATCH", "NEXT_ROWS"]
            .map(|name| pattern.is_match(name));
        assert_eq!(found, [true, true, false, true]);
        let error = vocabulary.add("data_loading", "functions", "(?x) fetch # rows").unwrap_err();
        assert!(error.to_string().starts_with("invalid regular expression"), "{error}");
    }

    #[test]
    fn patterns_that_take_much_memory_are_refused() {
        let mut vocabulary = Vocabulary::default();
        let error = vocabulary.add("kernels", "communication", r"\w{80}").unwrap_err();
        assert!(error.to_string().contains("takes more than 1 MB of memory"), "{error}");
        let added: Result<()> =
            (0..500).try_for_each(|_| vocabulary.add("kernels", "communication", r"\w{8}"));
        let message = added.unwrap_err().to_string();
        assert!(message.contains("all patterns together take more than 8 MB"), "{message}");
    }

    #[test]
    fn what_does_not_exist_is_answered_with_what_does() {
        let mut vocabulary = Vocabulary::default();
        let why = |found: Result<()>| found.unwrap_err().to_string();
        assert_eq!(
            why(vocabulary.add("kernels", "comm", "x")),
            "kernels has no \"comm\"; it has compute, communication, copy"
        );
        assert!(why(vocabulary.add("kernel", "copy", "x")).contains("it has api, kernels"));
        assert!(why(vocabulary.add("api", "copy", "(")).starts_with("invalid regular expression"));
    }
}
