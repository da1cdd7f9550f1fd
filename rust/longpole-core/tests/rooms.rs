//! The modules of the crate are ordered. A module may use itself, the foundation and the modules
//! before it; this test reads the sources and checks that.

#![allow(clippy::unwrap_used)] // in helpers of tests as in tests

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules that all others may use, and that use no other.
const FOUNDATION: &[&str] = &[
    "error",
    "ids",
    "time",
    "strings",
    "columns",
    "names",
    "patterns",
    "intervals",
    "alignment",
    "diagnostics",
    "progress",
];

/// The order of the modules.
const RIVER: &[&str] = &[
    "vocabulary",
    "tables",
    "read",
    "link",
    "stack",
    "graph",
    "path",
    "measure",
    "overhead",
    "workload",
    "ranks",
    "write",
];

/// Modules outside the order, which use the foundation only.
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
        wrong.extend(uses(part, RIVER.iter().chain(BESIDE)));
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

#[test]
fn no_file_of_a_room_uses_one_that_uses_it() {
    let mut circles = Vec::new();
    for room in [FOUNDATION, RIVER, BESIDE].concat() {
        circles.extend(circles_of(room));
    }
    assert!(circles.is_empty(), "files that use each other:\n{}", circles.join("\n"));
}

#[test]
fn no_folder_of_a_room_uses_one_that_uses_it() {
    // `read::sniff` asks the formats what a file is, and they ask it what else a bad file may be.
    let rooms = [FOUNDATION, RIVER, BESIDE].concat().into_iter().filter(|room| *room != "read");
    let circles = rooms.filter_map(|room| {
        let part = |module: &str| module.splitn(3, "::").take(2).collect::<Vec<_>>().join("::");
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (user, used) in uses_in(room) {
            let folder = part(&user);
            let others = used.iter().map(|used| part(used)).filter(|used| *used != folder);
            uses.entry(folder.clone()).or_default().extend(others);
        }
        circle_in(&uses).map(|circle| circle.join(" -> "))
    });
    let circles: Vec<_> = circles.collect();
    assert!(circles.is_empty(), "folders that use each other:\n{}", circles.join("\n"));
}

#[test]
fn circles_are_found() {
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (user, used) in pairs {
            uses.entry((*user).to_owned()).or_default().insert((*used).to_owned());
        }
        uses
    };
    assert!(circle_in(&uses(&[("a", "b"), ("b", "c"), ("a", "c")])).is_none());
    let circle = circle_in(&uses(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")]));
    assert_eq!(circle.unwrap(), ["a", "b", "c", "a"]);
}

/// Returns a cycle of files of a module that use each other, formatted as a line.
fn circles_of(room: &str) -> Option<String> {
    circle_in(&uses_in(room)).map(|circle| circle.join(" -> "))
}

/// Returns, for each file of a room, the modules that it uses.
fn uses_in(room: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = rust_files(room);
    let names = Names::of(&files);
    let uses = files.iter().map(|file| {
        let here = module_of(file);
        let used = paths_in(file).into_iter().filter_map(|path| names.module(&path, file));
        (here.clone(), used.filter(|used| *used != here).collect())
    });
    uses.collect()
}

/// Returns the module of a file: `graph::model` for `graph/model/mod.rs`.
fn module_of(file: &Path) -> String {
    let path = file.strip_prefix(sources()).unwrap().with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    parts.join("::").trim_end_matches("::mod").to_owned()
}

/// The modules of a room, and what the front page of a folder re-exports.
struct Names {
    modules: BTreeSet<String>,
    /// The module from which a re-exported name comes.
    handed_on: BTreeMap<String, String>,
}

impl Names {
    fn of(files: &[PathBuf]) -> Self {
        let modules = files.iter().map(|file| module_of(file)).collect();
        let mut handed_on = BTreeMap::new();
        for file in files {
            let here = module_of(file);
            for found in hand_ons().captures_iter(&code_of(file)) {
                for name in found[2].split(',').map(str::trim).filter(|name| !name.is_empty()) {
                    let origin = format!("{here}::{}", &found[1]);
                    handed_on.insert(format!("{here}::{name}"), origin);
                }
            }
        }
        Self { modules, handed_on }
    }

    /// Returns the module that contains the definition of a path.
    fn module(&self, path: &str, file: &Path) -> Option<String> {
        let here = module_of(file);
        let parent = here.rsplit_once("::").map_or("", |(parent, _)| parent);
        let absolute = match path.split_once("::")? {
            ("crate", rest) => rest.to_owned(),
            ("super", rest) => format!("{parent}::{rest}"),
            ("self", rest) => format!("{here}::{rest}"),
            _ => format!("{here}::{path}"),
        };
        let mut path = absolute.as_str();
        loop {
            if self.modules.contains(path) {
                // A path inside this file refers to no other one.
                return Some(path.to_owned()).filter(|module| *module != here);
            }
            if let Some(origin) = self.handed_on.get(path) {
                return Some(origin.clone());
            }
            path = path.rsplit_once("::")?.0;
        }
    }
}

/// Returns the pattern of lines that re-export items of child modules.
fn hand_ons() -> regex::Regex {
    regex::Regex::new(r"pub(?:\([^)]*\))? use (\w+)::\{?([\w,\s]+)\}?;").unwrap()
}

/// Returns the code of a file without comments, tests and visibilities.
fn code_of(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let visibility = regex::Regex::new(r"pub\(in [^)]*\)").unwrap();
    visibility.replace_all(&code.collect::<Vec<_>>().join("\n"), "pub(super)").into_owned()
}

/// Returns all paths in the code of a file, with the braces of `use` lines expanded. Re-exports do
/// not count as uses.
fn paths_in(file: &Path) -> Vec<String> {
    let code = code_of(file);
    let code = hand_ons().replace_all(&code, "");
    let mut paths = Vec::new();
    let (mut prefixes, mut path) = (Vec::<String>::new(), String::new());
    for letter in code.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | ':' => path.push(letter),
            '{' if path.ends_with("::") => prefixes.push(std::mem::take(&mut path)),
            _ => {
                if path.contains("::") || !(path.is_empty() || prefixes.is_empty()) {
                    paths.push(prefixes.concat() + &path);
                }
                path.clear();
                match letter {
                    '}' => drop(prefixes.pop()),
                    ';' => prefixes.clear(),
                    _ => {}
                }
            }
        }
    }
    paths
}

/// Returns a cycle from a file over those it uses back to itself.
fn circle_in(uses: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    uses.keys().find_map(|start| circle_from(start, uses, &mut Vec::new(), &mut done))
}

fn circle_from(
    here: &str,
    uses: &BTreeMap<String, BTreeSet<String>>,
    way: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(first) = way.iter().position(|module| module == here) {
        return Some([&way[first..], &[here.to_owned()]].concat());
    }
    if !done.insert(here.to_owned()) {
        return None;
    }
    way.push(here.to_owned());
    let found = uses
        .get(here)
        .and_then(|used| used.iter().find_map(|next| circle_from(next, uses, way, done)));
    way.pop();
    found
}

/// Returns the places where the sources of `room` refer to one of `others`. Tests in them may,
/// because they read traces as test data.
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

/// Returns the files of a room, which is a file or a folder.
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
