"""Write the pages that follow from the code: the API, every table, what `check` finds.

    python tests/oracles/pages.py [--write]

Prints what differs and ends with 1; with `--write` the pages are made anew.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import longpole
from longpole.analyses.findings import KINDS, SEVERITIES
from longpole.analyses.questions import questions
from longpole.cli.answer.table import tables
from longpole.cli.program import longpole as program
from longpole.cli.schema import schema_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
API_HEAD: Final = """# Python API

The public API is everything on this page and every [table](tables.md), as attributes of `longpole`.
A function that takes a trace also accepts its path, its bytes or an open file.
`help(longpole.kernels)` shows the parameters and examples of a function.
"""
TABLES_HEAD: Final = """# Tables

`longpole table TRACE NAME` prints a table, `longpole.NAME(trace)` returns it in Python, and
`longpole schema table NAME` prints its JSON Schema. The tables of the critical path are attributes
of `trace.critical_path()`: `segments`, `slack`, `violations`, and `sync_dependencies` for `sync`.
Times are integers in nanoseconds, shares are fractions of 1, and unknown values are null.
"""
FINDINGS_HEAD: Final = """# What `longpole check` reports

`longpole check` lists the problems of a trace. Each has a stable code, a severity, a count, the
first place where it occurs, its effect on the answers and, where one exists, a hint.

| severity | meaning | exit code |
| --- | --- | --- |
| `data_loss` | some of the file is missing from the tables | `1` |
| `altered` | longpole changed some of the file to be able to read it | `1` |
| `warning` | the file may be wrong; the tables hold what it says | `0`, with `--strict` `1` |
| `info` | good to know | `0` |

Words in italics stand for names and figures. A GPU activity is a kernel, memcpy or memset. The
[glossary](glossary.md) explains the other terms. `clock_shift` is reported above 20 µs.

## Problems of the events

| code | severity | problem | effect |
| --- | --- | --- | --- |
"""
OF_READING_HEAD: Final = """
## Problems of the file

`trace.diagnostics` has the same rows. With `strict=True`, `read_trace` raises an error at the first
problem of severity `altered` or `data_loss`, and at a byte order mark.

| code | severity | problem | effect |
| --- | --- | --- | --- |
"""
DECLARED: Final = re.compile(r'^ +\w+ "(\w+)" (\w+) "(.+)" "(.+)";$', re.MULTILINE)
"""A finding of the reader, as the core declares it."""
NAMES: Final = {"Info": "info", "Warning": "warning", "Altered": "altered", "Loss": "data_loss"}


def api() -> str:
    """List what is public besides the tables, by groups."""
    parts = [API_HEAD]
    for group, names in longpole._GROUPS.items():
        if group == "Tables":
            continue
        rows = [f"| `{name}` | {_summary(getattr(longpole, name))} |" for name in names]
        parts.append(
            "\n".join([f"## {group}", "", "| name | what it is |", "| --- | --- |", *rows])
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _summary(value: Any) -> str:
    """Give the first sentence of what something says of itself."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "The instructions that `flops` counts, and their weights"
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").removesuffix(".")


def every_table() -> str:
    """List every table with its columns."""
    parts = [TABLES_HEAD]
    for name, sentence in tables().items():
        parts += [f"## {name}\n\n{sentence}.", *(_columns(name) if name in questions() else [])]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _columns(name: str) -> Iterator[str]:
    """List the columns of a table, and of the others that stand beside its rows."""
    properties = schema_for(f"table {name}", program)["properties"]
    for key, schema in properties.items():
        columns = schema.get("items", {}).get("properties")
        if columns and schema.get("type") == "array":
            title = "" if key == "rows" else f"`{key}`:\n\n"
            rows = (_row(column, its) for column, its in columns.items())
            yield title + "\n".join(
                ["| column | type | what it is |", "| --- | --- | --- |", *rows]
            )


def _row(column: str, schema: dict[str, Any]) -> str:
    text = schema.get("description", "").replace("\n", " ").removesuffix(".").replace("|", "\\|")
    return f"| `{column}` | {_type(schema)} | {text} |"


def _type(schema: dict[str, Any]) -> str:
    """Name the type of a column."""
    declared = schema.get("type", "any")
    types = [declared] if isinstance(declared, str) else declared
    return " or ".join(sorted(types, key=lambda each: each == "null"))


def every_finding() -> str:
    """List what `check` finds, the gravest first."""
    of_events = [(code, kind.severity, kind.sentence, kind.effect) for code, kind in KINDS.items()]
    core = (ROOT / "rust/longpole-core/src/diagnostics.rs").read_text(encoding="utf-8")
    declared = DECLARED.findall(core)
    of_reading = [(code, NAMES[severity], *texts) for code, severity, *texts in declared]
    return FINDINGS_HEAD + _findings(of_events) + OF_READING_HEAD + _findings(of_reading)


def _findings(findings: list[tuple[str, ...]]) -> str:
    rows = sorted(findings, key=lambda finding: SEVERITIES.index(finding[1]))
    texts = (
        f"| `{code}` | `{severity}` | {found} | {cost} |" for code, severity, found, cost in rows
    )
    return "".join(re.sub(r"\{(\w+)\}", r"*\1*", text) + "\n" for text in texts)


PAGES: Final = {"check.md": every_finding, "python.md": api, "tables.md": every_table}


def main() -> int:
    """Check the pages, or write them."""
    texts = {DOCS / name: made() for name, made in PAGES.items()}
    if "--write" in sys.argv:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    differing = [path for path, text in texts.items() if path.read_text("utf-8") != text]
    for path in differing:
        print(f"{path} is not what the code says: --write it")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
