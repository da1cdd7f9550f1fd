"""Flight recorder dumps as the input of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.errors import LongpoleError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.traces.dump_set import DumpSet

__all__ = ["answer_dumps", "are_dumps"]


def are_dumps(sources: Sequence[str]) -> bool:
    """Whether the inputs are dumps: some files are, or a directory has dumps but no traces."""
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


def answer_dumps(
    sources: Sequence[str], options: Options, schema: str, answer: Callable[[DumpSet], Answer]
) -> int:
    """Write the result of `answer` for the dumps; return the exit code."""
    from longpole.traces.dump_set import read_dumps

    path = ", ".join(sources)
    return options.emit(options.attempt(schema, path, lambda: answer(read_dumps(list(sources)))))
