"""Write the pages of the documentation that follow from the code: the API, and every table.

    python tests/oracles/pages.py [--write]

Prints what differs and ends with 1; with `--write` the pages are made anew.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import longpole
from longpole.analyses.questions import questions
from longpole.cli.answer.table import tables
from longpole.cli.program import longpole as program
from longpole.cli.schema import schema_for

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS: Final = Path(__file__).parents[2] / "docs"
API_HEAD: Final = """# Python API

The public API is everything on this page, as attributes of `longpole`. A function that takes a
trace also accepts its path, its bytes or an open file. `help(longpole.kernels)` shows the
parameters and examples of a function. [Tables](tables.md) describes the columns of each table.
"""
TABLES_HEAD: Final = """# Tables

`longpole table TRACE NAME` prints a table, `longpole.NAME(trace)` returns it as a data frame, and
`longpole schema table NAME` prints its JSON Schema. Times are integers in nanoseconds, shares are
fractions of 1, and unknown values are null.
"""


def api() -> str:
    """List what is public, by groups."""
    parts = [API_HEAD]
    for group, names in longpole._GROUPS.items():
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


PAGES: Final = {"python.md": api, "tables.md": every_table}


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
