"""Check what longpole is built from: licences, sources, and advisories where these can be had.

The list in `rust/DEPENDENCIES.md` holds every crate of the lock file with its licence; a crate
that is not on it, or is not allowed, fails. `cargo deny`, where it is installed, checks the same
by `deny.toml`, and `cargo audit` the advisories where its database is on the machine. The texts
of the licences of what is linked into the wheel stand in `THIRD-PARTY-LICENSES.txt`, which goes
with it.

    python tests/oracles/audit.py [--write]
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).parents[2]
LIST: Final = ROOT / "rust" / "DEPENDENCIES.md"
TEXTS: Final = ROOT / "THIRD-PARTY-LICENSES.txt"
LINKED: Final = "longpole-py"
REGISTRY: Final = "registry+https://github.com/rust-lang/crates.io-index"
ALLOWED: Final = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}
HEAD: Final = """# Dependencies

Every crate of `Cargo.lock` that is not part of longpole, with its licence, from
`python tests/oracles/audit.py --write`. All come from crates.io; the lock file holds their
checksums.

The advisories of RustSec are **not** checked where their database cannot be reached: `make audit`
says whether it was. With a network, run `cargo audit`.

| crate | version | licence |
| --- | --- | --- |
"""
TEXTS_HEAD: Final = """\
Licences of the Rust crates that are linked into longpole's wheel, as the crates hold them. Made by
`python tests/oracles/audit.py --write`.
"""


def main() -> int:
    """Check, or write the list; 1 where something is wrong."""
    crates = dependencies()
    if "--write" in sys.argv:
        LIST.write_text(listed(crates), encoding="utf-8")
        TEXTS.write_text(license_texts(linked()), encoding="utf-8")
    problems = [problem for crate in crates for problem in problems_of(crate)] + doubles(crates)
    if not LIST.exists() or LIST.read_text(encoding="utf-8") != listed(crates):
        problems.append(f"{LIST.relative_to(ROOT)} is not what the lock file says: --write it")
    for problem in problems:
        print(problem)
    print(f"{len(crates)} crates: licences and sources {'wrong' if problems else 'as allowed'}")
    failed = [name for name, command in TOOLS.items() if not passes(name, command)]
    return int(bool(problems or failed))


RELEASE: Final = (
    "before a release, on a machine with a network: "
    "`cargo install cargo-deny cargo-audit`, `cargo audit`, `make audit`"
)
TOOLS: Final = {
    "cargo-deny": ["cargo", "deny", "--offline", "check", "licenses", "bans", "sources"],
    "cargo-audit": ["cargo", "audit", "--no-fetch", "--stale"],
}


def passes(name: str, command: list[str]) -> bool:
    """Run a tool; one that is not here, or lacks its database, is said and fails nothing."""
    if shutil.which(name) is None:
        print(f"{name}: not installed, not run; {RELEASE}")
        return True
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if name == "cargo-audit" and "advisory database" in done.stderr and done.returncode > 1:
        print(f"cargo-audit: no advisory database on this machine, not run; {RELEASE}")
        return True
    print(f"{name}: {'passed' if done.returncode == 0 else done.stdout + done.stderr}")
    return done.returncode == 0


def metadata() -> dict[str, Any]:
    """Ask cargo what longpole is built from."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def dependencies() -> list[dict[str, Any]]:
    """List the crates that are not part of longpole, by name and version."""
    shown = metadata()
    members = set(shown["workspace_members"])
    return _in_order(crate for crate in shown["packages"] if crate["id"] not in members)


def linked() -> list[dict[str, Any]]:
    """List those of them that are linked into the wheel, on any platform."""
    shown = metadata()
    crates = {crate["id"]: crate for crate in shown["packages"]}
    used = {node["id"]: _normal(node) for node in shown["resolve"]["nodes"]}
    [root] = [crate["id"] for crate in crates.values() if crate["name"] == LINKED]
    found, waiting = set[str](), [root]
    while waiting:
        one = waiting.pop()
        waiting += used[one] - found
        found |= used[one]
    members = set(shown["workspace_members"])
    return _in_order(crates[one] for one in found - members)


def _normal(node: dict[str, Any]) -> set[str]:
    """Return the crates that another one is linked with; a macro runs while it is built."""
    kinds = {one["pkg"]: {kind["kind"] for kind in one["dep_kinds"]} for one in node["deps"]}
    return {crate for crate, of_crate in kinds.items() if None in of_crate}


def doubles(crates: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with crates of several versions: `deny.toml` gives a reason for each."""
    versions: dict[str, list[str]] = {}
    for crate in crates:
        versions.setdefault(crate["name"], []).append(crate["version"])
    bans = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["bans"]
    known = {each["crate"] for each in bans["skip"]}
    others = {
        name: [it for it in of if f"{name}@{it}" not in known] for name, of in versions.items()
    }
    several = [
        f"{name} has several versions: {', '.join(of)}"
        for name, of in others.items()
        if len(of) > 1
    ]
    there = {f"{name}@{version}" for name, of in versions.items() for version in of}
    return several + [
        f"deny.toml names {name}, which is not used" for name in sorted(known - there)
    ]


def _in_order(crates: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def license_texts(crates: list[dict[str, Any]]) -> str:
    """Write the texts of licences down, each once, with the crates that have it."""
    holders: dict[str, list[str]] = {}
    for crate in crates:
        name = f"{crate['name']} {crate['version']} ({crate['license']})"
        for text in _texts_of(Path(crate["manifest_path"]).parent) or ["(no text in the crate)"]:
            holders.setdefault(text, []).append(name)
    parts = [f"{chr(10).join(names)}\n\n{text}\n" for text, names in holders.items()]
    line = "=" * 80
    return f"{TEXTS_HEAD}\n{line}\n" + f"\n{line}\n".join(parts)


def _texts_of(folder: Path) -> list[str]:
    files = sorted(folder.glob("*"))
    named = [file for file in files if re.match(r"(?i)(licen[cs]e|copying|notice)", file.name)]
    return [file.read_text("utf-8", errors="replace").strip() for file in named if file.is_file()]


def problems_of(crate: dict[str, Any]) -> list[str]:
    """Return the problems of a crate."""
    name = f"{crate['name']} {crate['version']}"
    found = [] if crate["source"] == REGISTRY else [f"{name} is not from crates.io"]
    licence = crate["license"] or ""
    return found if is_allowed(licence) else [*found, f"the licence of {name} is {licence!r}"]


def is_allowed(licence: str) -> bool:
    """Whether an expression of licences can be met by allowed ones.

    Examples
    --------
    >>> is_allowed("MIT OR GPL-3.0"), is_allowed("(MIT OR ISC) AND GPL-3.0"), is_allowed("")
    (True, False, False)
    """
    parts = re.split(r"\s+AND\s+(?![^()]*\))", licence)
    return all(
        any(choice.strip("() ") in ALLOWED for choice in re.split(r"\s+OR\s+|/", part))
        for part in parts
    )


def listed(crates: list[dict[str, Any]]) -> str:
    """Write the list down."""
    rows = (f"| {crate['name']} | {crate['version']} | {crate['license']} |" for crate in crates)
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
