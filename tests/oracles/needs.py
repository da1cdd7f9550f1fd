"""What a test needs beyond the packages of the group `dev`, and tests of real time.

`@pytest.mark.needs("scipy")` names modules, `program="chromium"` a program; a test without them is
skipped with the reason. `pytest --beyond .venv/bin/python` runs only the tests that this Python
lacks a module for: `make test` skips exactly these, `make test-real` runs them.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ASKS = (
    "import importlib.util, json, sys\n"
    "find = importlib.util.find_spec\n"
    "print(json.dumps([name for name in sys.argv[1:] if find(name) is None]))"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--beyond", metavar="PYTHON", help="run only the tests that this Python lacks a module for"
    )
    parser.addoption(
        "--needing", metavar="MODULES", help="of these only the tests that need one of the modules"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files in which no test needs anything: reading them takes a while."""
    if not config.option.beyond or not collection_path.match("test_*.py"):
        return None
    return "mark.needs(" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = list(items)
    if config.option.beyond:
        lacking = absent_from(
            config.option.beyond, {name for item in items for name in modules(item)}
        )
        kept = [item for item in kept if not lacking.isdisjoint(modules(item))]
    if config.option.needing:
        wanted = config.option.needing.split(",")
        kept = [item for item in kept if not modules(item).isdisjoint(wanted)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
    for item in items:
        if missing := absent(item):
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


def modules(item: pytest.Item) -> set[str]:
    """Return the modules that a test needs."""
    return {name for mark in item.iter_markers("needs") for name in mark.args}


def absent(item: pytest.Item) -> list[str]:
    """Return what is not on this machine of what a test needs."""
    programs = {mark.kwargs.get("program") for mark in item.iter_markers("needs")} - {None}
    return sorted(
        [name for name in modules(item) if not is_here(name)]
        + [name for name in programs if shutil.which(name) is None]
    )


@cache
def is_here(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def absent_from(python: str, names: Iterable[str]) -> set[str]:
    """Return the modules that another Python does not find."""
    command = [python, "-c", ASKS, *sorted(names)]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120)
    return set(json.loads(found.stdout))
