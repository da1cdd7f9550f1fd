"""ARCHITECTURE.md names every room once, in the order in which rooms may import each other."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def listed(folder):
    """Return the names of the modules in the table of a folder, without suffixes."""
    table = PAGE.partition(f"| `{folder}` |")[2].partition("\n\n")[0]
    names = " ".join(row.split("|")[1] for row in table.splitlines()[2:])
    return re.findall(r"`(\w[\w-]*)(?:\.py|/)?`", names)


def there(folder):
    """Return the modules, packages and crates in a folder, except its front page."""
    fronts = ("__init__.py", "mod.rs", "Cargo.toml")
    held = (ROOT / folder).iterdir()
    names = {
        path.stem
        for path in held
        if path.suffix in {".py", ".rs"} or any((path / front).exists() for front in fronts)
    }
    return names - {"lib", "__init__", "__main__"}


@pytest.mark.parametrize("folder", ["rust/", "rust/longpole-core/src/", "python/longpole/"])
def test_every_room_is_listed_once(folder):
    assert sorted(listed(folder)) == sorted(there(folder))


def test_the_rooms_of_python_stand_in_the_order_of_the_layers():
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = configured["tool"]["importlinter"]["contracts"][0]["layers"]
    height = {room: -place for place, row in enumerate(layers) for room in row.split(" | ")}
    heights = [height[room] for room in listed("python/longpole/")]
    assert heights == sorted(heights)


def test_the_rooms_of_the_core_stand_in_the_order_of_its_own_test():
    source = (ROOT / "rust/longpole-core/tests/rooms.rs").read_text(encoding="utf-8")
    declared = {
        name: re.findall(r'"(\w+)"', text)
        for name, text in re.findall(r"const (\w+): [^=]+=([^;]+);", source)
    }
    order = [room for name in ("FOUNDATION", "BESIDE", "RIVER") for room in declared[name]]
    rooms = listed("rust/longpole-core/src/")
    assert sorted(rooms, key=order.index) == rooms


def test_the_root_holds_no_data():
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: what is tracked is not known")
    listed_files = subprocess.run(
        [shutil.which("git") or "git", "ls-files", ":(glob)*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    suffixes = {Path(name).suffix for name in listed_files.stdout.split()}
    assert suffixes <= {"", ".md", ".toml", ".lock", ".txt", ".cff"}


def test_every_file_that_is_named_exists():
    tops = ("python", "rust", "tests", "docs")
    files = [f"/{path.name}" for path in ROOT.iterdir()]
    files += [path.as_posix() for top in tops for path in (ROOT / top).rglob("*.*")]
    named = re.findall(r"`([\w/-]+\.(?:py|pyi|rs|md|toml))`", PAGE)
    assert named
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []


# The page of the benchmarks.

BENCHMARKS = (ROOT / "python/longpole/bench/ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRACTS = {
    each["name"]: each
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}
HALF = {"bench"}


def named_in_table(header):
    """Return the names in the first column of a table of the page, row by row."""
    table = BENCHMARKS.partition(f"| {header} |")[2].partition("\n\n")[0]
    return [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()[2:]]


@pytest.mark.parametrize("folder", ["bench", "devices"])
def test_every_room_of_the_benchmarks_is_listed_once(folder):
    listed_names = [name for row in named_in_table(f"`{folder}/`") for name in row]
    assert sorted(listed_names) == sorted(there(f"python/longpole/{folder}/"))


def test_the_rooms_of_bench_stand_in_the_order_of_the_layers():
    layers = [set(row.split(" | ")) for row in CONTRACTS["The rooms of bench"]["layers"]]
    rows = [set(row) for row in named_in_table("`bench/`")]
    assert rows == [*layers[:-2], layers[-2] | layers[-1]]


def test_every_room_belongs_to_one_half_or_is_named_as_shared():
    forbidden = CONTRACTS["Benchmarks use only the shared rooms"]["forbidden_modules"]
    traces = {name.removeprefix("longpole.") for name in forbidden}
    shared = {name for row in named_in_table("shared") for name in row}
    rooms = there("python/longpole/")
    assert traces | shared | HALF == rooms
    assert len(traces) + len(shared) + len(HALF) == len(rooms)  # each stands in one list


def test_both_contracts_of_the_border_are_about_the_same_rooms():
    one_way = CONTRACTS["Benchmarks use only the shared rooms"]
    other = CONTRACTS["Traces use benchmarks only for tuned GEMMs and for figures of searches"]
    assert set(one_way["forbidden_modules"]) - {"longpole.cli"} == set(other["source_modules"])
    assert one_way["source_modules"] == other["forbidden_modules"]
    assert {name.removeprefix("longpole.") for name in one_way["source_modules"]} == HALF


RENDERERS = ("cli", "plot", "report")
DECIDES = ("longpole.engine.critical_path", "longpole.remedies.facts", "longpole._core")
ASKS = {
    # A change is asked for in words.
    ("cli/whatif/__init__.py", "longpole.engine.critical_path.changes"),
    ("cli/whatif/computed.py", "longpole.engine.critical_path.changes"),
    ("cli/whatif/remedy.py", "longpole.engine.critical_path.changes"),
    # A process with less memory.
    ("cli/mcp/worker.py", "longpole._core"),
}
DRAWN = {
    # The width of what is drawn, and how little of a known kind of time is worth a bar.
    *("plot/flame_lanes.py", "plot/picture.py", "report/overview_html.py", "report/paths.py"),
    # How alike a word is, how often a screen is drawn, how long an interrupt may take.
    *("cli/ask/suggestions.py", "cli/answer/live.py", "cli/interrupts.py"),
    # Figures that stand beside an answer about a step, not in it.
    *("cli/answer/overview.py", "cli/answer/graphs.py", "cli/bench/timings.py"),
    # The gate of `diff` and what its page lists; how little is called little in `whatif`.
    *("cli/diff.py", "cli/whatif/remedy.py"),
}


def renderers():
    package = ROOT / "python/longpole"
    for room in RENDERERS:
        for path in sorted((package / room).rglob("*.py")):
            yield path.relative_to(package).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def run(tree):
    """Yield the nodes of a module, except what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from run(node)


def test_what_renders_an_answer_does_not_compute_it():
    found = set()
    for path, tree in renderers():
        for node in run(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(DECIDES):
                found.add((path, node.module))
    assert found == ASKS


def test_what_renders_an_answer_has_no_thresholds_of_its_own():
    def is_share(node):
        return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value < 1

    found = set()
    for path, tree in renderers():
        for node in run(tree):
            values = [node.value] if isinstance(node, (ast.Assign, ast.AnnAssign)) else []
            if isinstance(node, ast.Compare):
                values = [node.left, *node.comparators]
            if any(is_share(value) and value.value for value in values):
                found.add(path)
    assert found == DRAWN
