"""Output files: none is begun where one of them could not be finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.files import new_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["refuse_existing", "write_whole"]


def refuse_existing(
    paths: Iterable[Path], *, force: bool = False, inputs: Sequence[Path] = ()
) -> None:
    """Stop before work is done for a file that cannot be written.

    Raises
    ------
    FileExistsError
        One of them exists and `force` is not given, or is an input.
    """
    for path in paths:
        if any(path.exists() and each.exists() and path.samefile(each) for each in inputs):
            message = f"{path} is an input, which is never replaced"
            raise FileExistsError(message)
        if path.exists() and not force:
            message = f"{path} exists; to replace it, use -f (force=True in Python)"
            raise FileExistsError(message)


def write_whole(
    path: Path, content: bytes, *, force: bool = False, inputs: Sequence[Path] = ()
) -> None:
    """Write a file as a whole or not at all.

    Raises
    ------
    FileExistsError
        It exists and `force` is not given, or it is an input.
    """
    with new_file(path, force=force, inputs=inputs) as unfinished:
        unfinished.write_bytes(content)
