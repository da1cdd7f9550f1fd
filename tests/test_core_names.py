"""The names of the core's enums: Python repeats some as types, and they are the same."""

import re
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from longpole.bench.tunableop.records import GemmRow
from longpole.cli.bench.extract import ExtractedRow
from longpole.engine import windows
from longpole.engine.critical_path import changes
from longpole.engine.recording_cost import _CLASSES, _NOT_ESTIMATED, _SOURCES
from longpole.formats.convert.execution_trace import Method
from longpole.remedies import parts, sides
from longpole.tables.activities import ActivityRow
from longpole.tables.findings import Severity
from longpole.tables.served import Mark
from longpole.words.recording import Profiler

CORE = Path(__file__).parent.parent / "rust" / "longpole-core" / "src"


@cache
def names_in(path: str) -> dict[str, tuple[str, ...]]:
    """Return the names of every enum that a file declares."""
    found = {}
    for block in re.findall(r"named! \{(.*?)\n\}", (CORE / path).read_text("utf-8"), re.DOTALL):
        code = re.sub(r"//[^\n]*", "", block)
        enum = re.search(r"(\w+) \{", code)
        assert enum is not None
        found[enum[1]] = tuple(re.findall(r'\w+ "([^"]*)"', code))
    return found


def words(declared: Any) -> set[str]:
    """Return the words of a literal type, of several, or of a table with words as keys."""
    if isinstance(declared, dict):
        return set(declared)
    return {word for part in get_args(declared) for word in (words(part) or {part})} - {type(None)}


def field(row: type, name: str) -> Any:
    return get_type_hints(row)[name]


SAME = [
    ("vocabulary/category.rs", "EventKind", changes.EventKind),
    ("graph/model/kinds.rs", "Kind", changes.WorkKind),
    ("path/remedies/model.rs", "Side", sides.Side),
    ("path/remedies/loaders.rs", "Loader", parts.Loader),
    ("path/remedies/bounds.rs", "Fact", sides.Fact),
    ("path/windows/scope.rs", "Unit", windows.Unit),
    ("path/windows/serving.rs", "ServerMark", Mark),
    ("vocabulary/ascend.rs", "Profiler", Profiler),
    ("vocabulary/kernels.rs", "WorkClass", field(ActivityRow, "work_class")),
    ("link/execution/model.rs", "Method", Method),
    ("diagnostics.rs", "Severity", Severity),
    ("extract/records.rs", "Status", field(ExtractedRow, "status")),
    ("extract/tunable/pieces.rs", "Ending", field(GemmRow, "ending")),
    ("overhead/costs.rs", "Source", _SOURCES),
    ("overhead/costs.rs", "NotEstimated", _NOT_ESTIMATED),
    ("overhead/classes.rs", "Class", _CLASSES),
]


@pytest.mark.parametrize(("path", "enum", "declared"), SAME)
def test_python_has_the_names_of_the_core(path: str, enum: str, declared: object) -> None:
    assert words(declared) == set(names_in(path)[enum])
