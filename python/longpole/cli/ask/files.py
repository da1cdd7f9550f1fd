"""Finds the files that a command reads and writes, and the arguments after `--`."""

from __future__ import annotations

import glob
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEHIND: Final = "after --"
_OUTPUTS: Final = (
    *(".csv", ".json", ".jsonl", ".html", ".md", ".txt", ".parquet", ".gz", ".longpole", ".svg"),
    *(".pftrace", ".perfetto-trace", ".et", ".zip", ".py", ".db"),
)


class OutputPath(click.Path):
    """Type of a parameter for a file or folder to write or append to.

    The values of all other parameters count as inputs of the command, which are never written to:
    see `longpole.files.writing`.
    """

    def __init__(
        self, *, is_folder: bool = False, is_either: bool = False, is_path: bool = False
    ) -> None:
        super().__init__(
            file_okay=is_either or not is_folder,
            dir_okay=is_either or is_folder,
            readable=False,
            path_type=Path if is_path else None,
        )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse a name that is only a suffix, which is a mistake and a hidden file."""
        name = Path(value).name
        if name.lower() in _OUTPUTS:
            self.fail(
                f"{name!r} is only a suffix; give a name before it, as answer{name}", param, ctx
            )
        return super().convert(value, param, ctx)


def given_files() -> list[Path]:
    """List the files and folders that the current command was given to read.

    Any string in a parameter may be a file or a pattern of files; folders count if the parameter is
    declared as a path. Too many files are listed rather than too few. Called when an existing file
    is about to be replaced.
    """
    from longpole.formats.profiles import files_read_with

    context = click.get_current_context(silent=True)
    if context is None:
        return []
    found = [path for text in behind_dashes() or () for path in _paths(text) if path.is_file()]
    for parameter in context.command.params:
        if isinstance(parameter.type, OutputPath):
            continue
        named = [
            path
            for text in _texts(context.params.get(parameter.name or ""))
            for path in _paths(text)
        ]
        is_path = isinstance(parameter.type, click.Path)
        found += named if is_path else filter(Path.is_file, named)
    return [*found, *(other for path in found for other in files_read_with(path))]


def _texts(value: object) -> Iterator[str]:
    """Yield the strings in a parameter's value."""
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _paths(text: str) -> Iterator[Path]:
    """Yield the files and folders that a string, or its part after a `=`, may name."""
    for name in {text, text.partition("=")[2]} - {""}:
        pattern = name.replace("%d", "*")  # placeholder for device ordinals
        with suppress(OSError, ValueError):
            if Path(name).exists():
                yield Path(name)
            if glob.has_magic(pattern):
                yield from map(Path, glob.iglob(pattern, recursive=True))  # noqa: PTH207


class CommandBehindDashes(click.Command):
    """Keeps the arguments after `--` separate: they are a command to run, never options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the arguments at the first `--`."""
        if "--" in args:
            middle = args.index("--")
            args, ctx.meta[_BEHIND] = args[:middle], args[middle + 1 :]
        return super().parse_args(ctx, args)


def behind_dashes() -> list[str] | None:
    """Return the arguments after `--` on this command line; None without `--`."""
    found: list[str] | None = click.get_current_context().meta.get(_BEHIND)
    return found
