"""Converts and checks the arguments of public functions, such as paths of what they read.

Every public function of `longpole` passes through `gated`, which finds the type of its arguments in
their annotations. Inside the package, arguments are not checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar

from longpole.read import read_trace
from longpole.trace import Trace
from longpole.windows import Window, two_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.allocations import Allocations
    from longpole.traces.dump_set import DumpSet
    from longpole.traces.trace_set import TraceSet

__all__ = ["gated"]

Question = TypeVar("Question", bound="Callable[..., Any]")
_PATH: Final = (str, PathLike)


def gated(question: Question) -> Question:
    """Accept paths in place of what is read from them, and raise for invalid arguments.

    Examples
    --------
    >>> def n_events(trace: Trace) -> int:
    ...     return trace.n_events
    >>> gated(n_events)(b"[]")
    0
    >>> gated(n_events)(3)
    Traceback (most recent call last):
    TypeError: trace is a longpole.Trace, or the path, bytes or open file of one, not int
    """
    if not isinstance(question, FunctionType):
        return question
    takes = question.__annotations__
    readers = {name: _READERS[kind] for name, kind in takes.items() if kind in _READERS}
    names = question.__code__.co_varnames[: question.__code__.co_argcount]

    def read(name: str, value: Any) -> Any:
        return readers[name](name, value) if name in readers else value

    @wraps(question)
    def ask(*arguments: Any, **options: Any) -> Any:
        placed = [read(*argument) for argument in zip(names, arguments, strict=False)]
        named = {name: read(name, value) for name, value in options.items()}
        return question(*placed, *arguments[len(names) :], **named)

    return ask  # type: ignore[return-value]


def _refuse(name: str, what: str, value: object) -> TypeError:
    return TypeError(f"{name} is {what}, not {type(value).__name__}")


def _trace(name: str, value: Any) -> Trace:
    if isinstance(value, Trace):
        return value
    if isinstance(value, str | PathLike | bytes) or hasattr(value, "read"):
        return read_trace(value)
    raise _refuse(name, "a longpole.Trace, or the path, bytes or open file of one", value)


def _traces(name: str, value: Any) -> TraceSet:
    from longpole.traces.joining import read_traces
    from longpole.traces.trace_set import TraceSet

    if isinstance(value, TraceSet):
        return value
    if _is_paths(value):
        return read_traces(value)
    raise _refuse(name, "a longpole.TraceSet, or the folder or the paths of ranks", value)


def _side(name: str, value: Any) -> Any:
    from longpole.traces.trace_set import TraceSet

    if isinstance(value, list | tuple):
        return [_side(name, each) for each in value]
    return value if isinstance(value, TraceSet) else _trace(name, value)


def _each(name: str, value: Any) -> Any:
    from longpole.traces.trace_set import TraceSet

    if isinstance(value, Trace | TraceSet | str | PathLike | Iterable):
        return value
    raise _refuse(name, "traces, a longpole.TraceSet, or paths", value)


def _recording(name: str, value: Any) -> Trace | Allocations:
    from longpole.allocations import Allocations, is_memory_file, read_memory

    if isinstance(value, Allocations):
        return value
    is_memory = isinstance(value, _PATH) and Path(value).is_file() and is_memory_file(value)
    return read_memory(value) if is_memory else _trace(name, value)


def _dumps(name: str, value: Any) -> DumpSet:
    from longpole.traces.dump_set import DumpSet, read_dumps

    if isinstance(value, DumpSet):
        return value
    if _is_paths(value):
        return read_dumps(value)
    raise _refuse(name, "a longpole.DumpSet, or the paths of dumps", value)


def _window(name: str, value: Any) -> Window | None:
    if value is None or isinstance(value, Window):
        return value
    raise _refuse(name, "what longpole.choose_window gives", value)


def _path(name: str, value: Any) -> Any:
    if isinstance(value, _PATH):
        return value
    raise _refuse(name, "a path", value)


def _paths(name: str, value: Any) -> Any:
    if _is_paths(value):
        return value
    raise _refuse(name, "a path or a list of paths", value)


def _condition(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str) or hasattr(value, "meta"):
        return value
    raise _refuse(name, "a condition as in SQL or an expression of polars", value)


def _peaks(name: str, value: Any) -> Any:
    from longpole.peaks import Peaks

    return _plain("a longpole.peaks.Peaks", Peaks, type(None))(name, value)


def _plain(what: str, *types: type) -> Callable[[str, Any], Any]:
    """Accept values of some types unchanged."""

    def take(name: str, value: Any) -> Any:
        if isinstance(value, types):
            return value
        raise _refuse(name, what, value)

    return take


def _flag(name: str, value: Any) -> bool:
    # numpy has its own bool type for the results of array comparisons.
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        return bool(value)
    raise _refuse(name, "True or False", value)


def _callback(name: str, value: Any) -> Any:
    if value is None or callable(value):
        return value
    raise _refuse(name, "a function", value)


def _times(_name: str, value: Any) -> tuple[int, int] | None:
    return None if value is None else two_times(value)


def _step_times(name: str, value: Any) -> Any:
    """Return the step times of both sides in ns; each may be unknown."""
    match value:
        case (int() | None, int() | None):
            return value
        case _:
            what = "two times in whole ns, or None for each that is not known"
            raise _refuse(name, what, value)


def _target(name: str, value: Any) -> Any:
    return value if callable(value) else _path(name, value)


def _step(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, str | SupportsIndex) and not isinstance(value, bool)):
        return value
    raise _refuse(name, "the number of a step, or ProfilerStep#N", value)


def _numbers(name: str, value: Any) -> Any:
    if value is None:
        return None
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [None]
    if all(isinstance(each, SupportsIndex) for each in listed):
        return listed
    raise _refuse(name, "a list of integers", value)


def _source(name: str, value: Any) -> Any:
    if isinstance(value, str | PathLike | bytes) or hasattr(value, "read"):
        return value
    raise _refuse(name, "a path, bytes or an open file", value)


def _execution(name: str, value: Any) -> Any:
    from longpole.convert.execution_trace import ExecutionTrace

    return value if isinstance(value, ExecutionTrace) else _source(name, value)


def _is_paths(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, bytes)
    return isinstance(value, _PATH) or (is_list and all(isinstance(each, _PATH) for each in value))


_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "Trace": _trace,
    "Marked": _trace,
    "TraceSet": _traces,
    "Trace | TraceSet | Sequence[Trace | TraceSet]": _side,
    "TraceSet | Source | Iterable[Source] | Mapping[int, Source]": _each,
    "Trace | Allocations": _recording,
    "DumpSet": _dumps,
    "Window | None": _window,
    "pl.Expr | str | None": _condition,
    "Peaks | None": _peaks,
    "Mapping[str, float] | None": _plain("a number for each name", Mapping, type(None)),
    "int": _plain("an integer", SupportsIndex),
    "int | None": _plain("an integer", SupportsIndex, type(None)),
    "float": _plain("a number", float, SupportsIndex),
    "float | None": _plain("a number", float, SupportsIndex, type(None)),
    "str | None": _plain("a text", str, type(None)),
    "Literal['path', 'layer']": _plain("a text", str),
    "Engine": _plain("a text", str),
    "bool": _flag,
    "int | str | None": _step,
    "tuple[int, int] | None": _times,
    "tuple[int | None, int | None]": _step_times,
    "Iterable[int] | None": _numbers,
    "Callable[[int], object] | None": _callback,
    "Callable[[int, int], object] | None": _callback,
    "str | os.PathLike[str] | bytes | BinaryIO": _source,
    "ExecutionTrace | Source": _execution,
    "Trace | Source": _trace,
    "str | os.PathLike[str]": _path,
    "str | Path | None": lambda name, value: None if value is None else _path(name, value),
    "str | Path | Callable[[], object]": _target,
    "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]": _paths,
}
"""Reader of an argument, by its annotation. A test checks that all are listed."""
