//! Compiles regular expressions from users and files within a memory limit.
//!
//! `\w{80}` has six characters and takes megabytes, so a file of a few kilobytes could fill the
//! memory. The compiler only reports whether a pattern fits a limit, so the memory of a pattern is
//! estimated as the smallest power of two that it fits.

use regex::{Regex, RegexBuilder};

use crate::error::{Error, ErrorKind, Result};

/// Minimum memory counted for a pattern, in bytes.
const LEAST_BYTES: usize = 1 << 13;

/// Maximum size of a pattern from a file or an agent, in bytes of its compiled form.
pub const MOST_BYTES: usize = 1 << 20;

/// Maximum memory of all patterns of one vocabulary, in bytes.
const MOST_BYTES_TOGETHER: usize = 8 << 20;

/// Maximum size of the joined pattern of a vocabulary, in bytes.
pub const MOST_BYTES_JOINED: usize = 2 * MOST_BYTES_TOGETHER;

/// Memory for the search cache, in bytes.
const CACHE_BYTES: usize = 1 << 18;

/// Compiles a pattern to at most `most_bytes`.
///
/// # Errors
///
/// Returns an error if the pattern is not a regular expression, or if its compiled form is too
/// large.
pub fn compile(pattern: &str, most_bytes: usize) -> Result<Regex> {
    let why = match within(pattern, most_bytes) {
        Ok(regex) => return Ok(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            format!("{:?} takes more than {} MB of memory", shortened(pattern), most_bytes >> 20)
        }
        Err(error) => sentence(&error),
    };
    Err(Error::new(ErrorKind::Pattern(why), 0))
}

/// The memory budget of patterns that are kept together.
#[derive(Debug, Clone)]
pub struct Budget {
    left_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left_bytes: MOST_BYTES_TOGETHER }
    }
}

impl Budget {
    /// Compiles another pattern.
    ///
    /// # Errors
    ///
    /// As for [`compile`], and if all patterns together take too much memory.
    pub fn compile(&mut self, pattern: &str) -> Result<Regex> {
        let regex = compile(pattern, MOST_BYTES)?;
        let mut bytes = LEAST_BYTES;
        while bytes < MOST_BYTES && within(pattern, bytes).is_err() {
            bytes *= 2;
        }
        let Some(left_bytes) = self.left_bytes.checked_sub(bytes) else {
            let why = "all patterns together take more than 8 MB of memory".to_owned();
            return Err(Error::new(ErrorKind::Pattern(why), 0));
        };
        self.left_bytes = left_bytes;
        Ok(regex)
    }
}

fn within(pattern: &str, bytes: usize) -> std::result::Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(bytes).dfa_size_limit(CACHE_BYTES).build()
}

/// Returns the error message without the drawing of the position.
fn sentence(error: &regex::Error) -> String {
    let drawn = error.to_string();
    drawn.rsplit("error: ").next().unwrap_or(&drawn).trim().to_owned()
}

fn shortened(pattern: &str) -> String {
    pattern.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_patterns_are_small_and_repeated_classes_are_refused() {
        for pattern in ["^fetch_batch$", r"(?i)my_\w+loader", r"gemm|matmul|conv\d+d", r"^\w+$"] {
            assert!(within(pattern, 1 << 18).is_ok(), "{pattern}");
        }
        let error = compile(r"\w{80}", MOST_BYTES).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"invalid regular expression: "\\w{80}" takes more than 1 MB of memory"#
        );
    }

    #[test]
    fn patterns_are_counted_together() {
        let mut budget = Budget::default();
        let n_kept = (0..5_000).take_while(|_| budget.compile("gemm").is_ok()).count();
        assert_eq!(n_kept, MOST_BYTES_TOGETHER / LEAST_BYTES);
        let mut budget = Budget::default();
        let n_kept = (0..500).take_while(|_| budget.compile(r"\w{10}").is_ok()).count();
        assert!((4..64).contains(&n_kept), "{n_kept}");
    }
}
