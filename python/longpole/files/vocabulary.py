"""Patterns for names that a user adds to the built-in tables, from a TOML file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from longpole.files.opening import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Additions = list[tuple[str, str, str]]
"""Section, meaning and pattern of each addition."""

_MOST_BYTES: Final = 1 << 24


def additions(source: str | os.PathLike[str] | Mapping[str, Any] | None) -> Additions:
    """List the patterns of a vocabulary.

    Parameters
    ----------
    source
        A TOML file, or its content as a mapping: each section (`api`, `kernels`, `categories`,
        `data_loading`) is a table of meanings, each with one or more regular expressions.

    Raises
    ------
    ValueError
        The file is not TOML, or does not have this form.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> additions({"kernels": {"communication": "my_ring"}})
    [('kernels', 'communication', 'my_ring')]
    """
    if source is None:
        return []
    sections = _parsed(source) if isinstance(source, str | os.PathLike) else source
    return [
        (section, meaning, pattern)
        for section, meanings in sections.items()
        for meaning, patterns in _items(section, meanings)
        for pattern in _patterns(f"{section}.{meaning}", patterns)
    ]


def _parsed(path: str | os.PathLike[str]) -> dict[str, Any]:
    import tomllib

    with open_file(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        message = f"{path} has more than 16 MB, which no vocabulary needs"
        raise ValueError(message)
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        message = f"{path} is not a TOML file: {why}"
        raise ValueError(message) from error


def _items(section: str, meanings: object) -> Iterator[tuple[str, object]]:
    if not isinstance(meanings, dict):
        message = f"{section!r} in a vocabulary is a table of meanings, not {meanings!r}"
        raise ValueError(message)  # noqa: TRY004 - the file is wrong, not the caller
    yield from meanings.items()


def _patterns(meaning: str, patterns: object) -> list[str]:
    listed = [patterns] if isinstance(patterns, str) else patterns
    if isinstance(listed, list) and all(isinstance(pattern, str) for pattern in listed):
        return listed
    message = f"{meaning} in a vocabulary is a regular expression or a list of them"
    raise ValueError(message)
