"""Caches answers that several questions about a trace use, together with the trace."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Found = TypeVar("Found")


def kept(compute: Callable[..., Found]) -> Callable[..., Found]:
    """Cache the last answer of a function for each trace, its first argument.

    Only one answer is kept per trace and function, so that many windows do not fill the memory. The
    other arguments must be hashable. The answer must not be modified.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> asked = []
    >>> @kept
    ... def n_events(trace):
    ...     asked.append(trace)
    ...     return trace.n_events
    >>> trace = TraceBuilder().operator("aten::mm", (0, 20)).read()
    >>> n_events(trace), n_events(trace), len(asked)
    (1, 1, 1)
    """
    known: WeakKeyDictionary[Any, tuple[tuple[Hashable, ...], Any]] = WeakKeyDictionary()

    @wraps(compute)
    def answer(trace: Any, *arguments: Hashable) -> Found:
        last = known.get(trace)
        if last is None or last[0] != arguments:
            last = known[trace] = (arguments, compute(trace, *arguments))
        found: Found = last[1]
        return found

    return answer
