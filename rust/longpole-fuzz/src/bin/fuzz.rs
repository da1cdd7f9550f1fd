//! Calls targets with mutated inputs for some time: `fuzz SECONDS [--from SEED] [TARGET]...`.
//!
//! Files under `corpus/TARGET` are also used as initial inputs. Seeds are consecutive numbers, so
//! that a failure can be reproduced: the message contains the target, the seed and the file with
//! the input.

#![allow(clippy::print_stdout, clippy::print_stderr)] // what it is for

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use longpole_fuzz::{Random, TARGETS, Target, mutated, target};

/// An input that takes longer counts as a failure.
const LONGEST: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let Some(seconds) = words.first().and_then(|word| word.parse::<u64>().ok()) else {
        eprintln!("usage: fuzz SECONDS [--from SEED] [TARGET]...");
        return ExitCode::from(2);
    };
    words.remove(0);
    let mut first = 0;
    if words.first().is_some_and(|word| word == "--from") {
        first = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        words.drain(..words.len().min(2));
    }
    let unknown = words.iter().find(|name| target(name).is_none());
    if let Some(name) = unknown {
        eprintln!("no target is called {name}");
        return ExitCode::from(2);
    }
    let chosen: Vec<_> = TARGETS
        .iter()
        .filter(|target| words.is_empty() || words.iter().any(|name| name == target.name))
        .collect();
    let share = Duration::from_secs(seconds) / u32::try_from(chosen.len()).unwrap_or(1);
    let n_found = chosen.iter().filter(|target| finds(target, first, share)).count();
    ExitCode::from(u8::from(n_found > 0))
}

/// Tries inputs until one fails or the time is over.
fn finds(target: &Target, first: u64, time: Duration) -> bool {
    let mut seeds = (target.seeds)();
    seeds.extend(files(&corpus(target.name)));
    let begun = Instant::now();
    let mut seed = first;
    while begun.elapsed() < time {
        let bytes = mutated(&seeds, &mut Random::new(seed));
        let one = Instant::now();
        let holds = catch_unwind(AssertUnwindSafe(|| (target.check)(&bytes))).is_ok();
        if !holds || one.elapsed() > LONGEST {
            let path = kept(target.name, seed, &bytes);
            let why = if holds { "takes too long" } else { "does not hold" };
            println!("{}: seed {seed} {why}: {}", target.name, path.display());
            return true;
        }
        seed += 1;
    }
    println!("{}: {} inputs from {} seeds, nothing found", target.name, seed - first, seeds.len());
    false
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// Returns the files of a folder, by name; empty if there is no folder.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Writes an input to a file for inspection.
#[expect(clippy::disallowed_methods, reason = "this program's finds are files of its own")]
fn kept(name: &str, seed: u64, bytes: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("finds");
    let path = folder.join(format!("{name}-{seed}"));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, bytes));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
    path
}
