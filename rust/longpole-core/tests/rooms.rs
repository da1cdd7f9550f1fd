//! The rooms of the crate lie along one river. A room may use itself, the
//! foundation and the rooms upstream of it; this test reads the sources and holds
//! them to that.

#![allow(clippy::unwrap_used)] // in helpers of tests as in tests

use std::fs;
use std::path::{Path, PathBuf};

/// Used by all, and using no room.
const FOUNDATION: &[&str] =
    &["error", "ids", "time", "strings", "intervals", "diagnostics", "progress"];

/// Upstream first.
const RIVER: &[&str] = &["tables", "read", "link", "stack", "graph", "path", "measure", "workload", "write"];

/// Beside the river: uses the foundation only.
const BESIDE: &[&str] = &["extract"];

#[test]
fn rooms_look_upstream_only() {
    let mut wrong = Vec::new();
    for (here, room) in RIVER.iter().enumerate() {
        let downstream = RIVER[here + 1..].iter().chain(BESIDE);
        wrong.extend(uses(room, downstream));
    }
    for room in BESIDE {
        wrong.extend(uses(room, RIVER.iter()));
    }
    for part in FOUNDATION {
        // The one exception: "none" among integers is told in `tables`.
        let rooms = RIVER.iter().chain(BESIDE).filter(|room| (*part, **room) != ("ids", "tables"));
        wrong.extend(uses(part, rooms));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_is_listed() {
    let mut unknown: Vec<_> = fs::read_dir(sources())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "lib")
        .filter(|name| ![FOUNDATION, RIVER, BESIDE].concat().contains(&name.as_str()))
        .collect();
    unknown.sort();
    assert!(unknown.is_empty(), "rooms without a place in the order: {unknown:?}");
}

/// Where the sources of `room` name one of `others`. Tests within may: they read
/// traces to have something to test.
fn uses<'a>(room: &str, others: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    let others: Vec<_> = others.collect();
    let mut found = Vec::new();
    for file in rust_files(room) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            for other in &others {
                if line.contains(&format!("crate::{other}::")) {
                    found.push(format!(
                        "{}: `{room}` uses `{other}`: {}",
                        file.display(),
                        line.trim()
                    ));
                }
            }
        }
    }
    found
}

/// The files of a room, which is a file or a folder.
fn rust_files(room: &str) -> Vec<PathBuf> {
    let file = sources().join(format!("{room}.rs"));
    if file.exists() {
        return vec![file];
    }
    let mut found = Vec::new();
    let mut folders = vec![sources().join(room)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}
