"""The dumps of a flight recorder that a command is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.cli.answer.emit import failed
from longpole.cli.answer.problems import Problem
from longpole.errors import LongpoleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.traces.dump_set import DumpSet

__all__ = ["are_dumps", "joined_dumps"]


def are_dumps(sources: Sequence[str]) -> bool:
    """Whether dumps are asked about: files that are some, or a directory that holds no trace."""
    from longpole.traces.dump_set import dump_paths
    from longpole.traces.sources import find_sources

    try:
        dumps = set(dump_paths(sources))
    except (LongpoleError, OSError):
        return False
    try:
        traces = {it.path for it in find_sources(sources)}
    except LongpoleError:
        return bool(dumps)
    return bool(traces) and traces <= dumps


def joined_dumps(
    sources: Sequence[str], options: Options, *, answer: Callable[[DumpSet], Answer]
) -> Iterator[Answer]:
    """Read the dumps and give the answer, or why there is none."""
    from longpole.traces.dump_set import read_dumps

    try:
        yield answer(read_dumps(list(sources)))
    except (LongpoleError, OSError) as error:
        if options.debug:
            raise
        yield failed("longpole.dumps/1", Problem.of(error).at(", ".join(sources)))
