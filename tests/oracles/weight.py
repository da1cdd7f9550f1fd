"""Print how much there is of the project: code by room, and what a user can ask for.

    python tests/oracles/weight.py [ROOT]

Code is counted in statements of Python (by `ast`, without docstrings) and tokens of Rust (without
comments), which formatting does not change. ROOT is another checkout in which the core is built.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_RUST_TESTS: Final = "#[cfg(test)]\nmod tests {"
_TOKEN: Final = re.compile(
    r"""(?s)//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|'?\w+|[^\s\w]"""
)
_SURFACE: Final = """
import click
from longpole.tables.questions import TABLES
from longpole.cli.program import longpole

def leaves(command, context):
    if not isinstance(command, click.Group):
        yield command
    else:
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            yield from leaves(found, click.Context(found, parent=context, info_name=name))

found = list(leaves(longpole, click.Context(longpole, info_name="longpole")))
options = [option.opts + option.secondary_opts for command in found for option in command.params
           if isinstance(option, click.Option)]
names = {name for opts in options for name in opts if name.startswith("--")}
print(len(found), "commands")
print(sum(map(len, TABLES.values())), "tables")
print(len(names), "long options, declared", len(options), "times")
"""


def statements(text: str) -> int:
    """Count the statements of Python code; docstrings do not count.

    >>> statements('"What it is."\\nif True:\\n    x = (1,\\n         2)')
    2
    """
    return sum(
        isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(ast.parse(text))
    )


def tokens(text: str) -> int:
    """Count the tokens of Rust code; comments do not count.

    >>> tokens('let x = "a b"; // one')
    5
    """
    found = (match[0] for match in _TOKEN.finditer(text))
    return sum(not token.startswith(("//", "/*")) for token in found)


def room_of(path: str) -> str:
    """Return the room of a file: a file or a folder of a crate, of the package or of the tests.

    >>> room_of("python/longpole/cli/ask/files.py"), room_of("rust/longpole-core/src/stack.rs")
    ('python/longpole/cli', 'rust/longpole-core/src/stack')
    """
    parts = Path(path).with_suffix("").parts
    depth = {"python": 3, "rust": 4, "tests": 2}.get(parts[0], 1)
    return "/".join(parts[:depth])


def weighed(root: Path) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Return the code of each room, by unit and purpose, and the lines of each top folder."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.rs"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rooms: dict[str, Counter[str]] = {}
    lines: Counter[str] = Counter()
    for path in listed:
        text, is_rust = (root / path).read_text("utf-8"), path.endswith(".rs")
        lines[path.partition("/")[0]] += text.count("\n")
        product, _, tests = text.partition(_RUST_TESTS) if is_rust else (text, "", "")
        if "tests" in Path(path).parts:
            product, tests = "", text
        for purpose, part in (("product", product), ("tests", tests)):
            unit = "tokens of Rust" if is_rust else "statements of Python"
            counts = rooms.setdefault(f"{unit}, {purpose}", Counter())
            counts[room_of(path)] += tokens(part) if is_rust else statements(part)
    return rooms, lines


def surface(root: Path) -> str:
    """Return the number of commands, tables and options of a checkout."""
    python = [root / ".venv/bin/python", Path(sys.executable)]
    return subprocess.run(
        [next(path for path in python if path.exists()), "-c", _SURFACE],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(root / "python")},
    ).stdout


def main() -> None:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    rooms, lines = weighed(root)
    for title, counts in {**rooms, "lines of Python and Rust in git": lines}.items():
        print(f"{title}: {counts.total():,}")
        for name, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
            if count:
                print(f"{count:>10,}  {name}")
    main_lines = sum(lines[folder] for folder in ("python", "rust", "tests"))
    print(f"python, rust and tests together: {main_lines:,} lines")
    print(surface(root), end="")


if __name__ == "__main__":
    main()
