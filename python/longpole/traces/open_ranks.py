"""Reopens reduced ranks, to list the path through them and to solve them after changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from longpole.errors import RanksError
from longpole.traces.engines import Lost, run
from longpole.traces.reading import give_back_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole._core import ReducedRank
    from longpole.trace import Trace
    from longpole.traces.engines import Engine
    from longpole.traces.reading import Change, Expanded, PathSection, Reading

__all__ = ["OpenRanks"]


class OpenRanks:
    """The files of the ranks, reopened in the workers of the engine.

    With threads, the most recent traces are kept, as many as there are workers.
    """

    def __init__(
        self,
        files: Sequence[str],
        reading: Reading,
        *,
        engine: Engine,
        workers: int,
        timeout_s: float,
        kept: Mapping[str, Trace],
    ) -> None:
        self.files = files
        self._reading = reading
        self._engine: Engine = engine
        self._workers = workers
        self._timeout_s = timeout_s
        self._places = {path: place for place, path in enumerate(files)}
        self._open = OrderedDict((self._places[path], trace) for path, trace in kept.items())
        self._lock = threading.Lock()

    def trace(self, place: int) -> Trace:
        """Read a rank into this process."""
        with self._lock:
            found = self._open.pop(place, None)
            if found is None:
                while len(self._open) >= self._workers:
                    self._open.popitem(last=False)
                    give_back_memory()
                found = self._reading.open(self.files[place])
            self._open[place] = found
            return found

    def reduced(self, changes: Sequence[Change]) -> list[ReducedRank]:
        """Reduce ranks again, after changes."""
        if self._engine == "threads":
            return [
                self._reading.reduced(self.trace(self._places[change.path]), change)
                for change in changes
            ]
        return self._run(self._reading.change, changes)

    def expanded(self, sections: Mapping[int, PathSection]) -> Mapping[int, Expanded]:
        """Return the segments of the path in some ranks, by rank index."""
        if self._engine == "threads":
            return {
                place: self._reading.expanded(self.trace(place), section)
                for place, section in sections.items()
            }
        found = self._run(self._reading.expand, list(sections.values()))
        return dict(zip(sections, found, strict=True))

    def _run(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = run(self._engine, work, items, workers=self._workers, timeout_s=self._timeout_s)
        for item, result in zip(items, found, strict=True):
            if isinstance(result, Lost):
                message = f"{item.path} cannot be read again: {result.reason}"
                raise RanksError(message)
        return found
