"""Converts and checks the arguments of public functions, such as paths of traces.

Every public function of `longpole` passes through `gated`, which checks each argument by the name
of its parameter, so that a name has one meaning in all functions. An argument may be None if that
is its default. Inside the package, arguments are not checked again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar

from longpole.engine.question import QuestionParts, two_times
from longpole.engine.windows import Window
from longpole.formats.read import read_trace
from longpole.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.jobs.dump_set import DumpSet
    from longpole.jobs.trace_set import TraceSet
    from longpole.trace.allocations import Allocations

Public = TypeVar("Public", bound="Callable[..., Any]")
_PATH: Final = (str, PathLike)


def gated(function: Public) -> Public:
    """Accept paths in place of objects read from them, and raise for invalid arguments.

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
    if not isinstance(function, FunctionType) or function.__name__ in _CHECKED_BY_THE_CORE:
        return function
    parameters = inspect.signature(function).parameters
    own = [name for name, it in parameters.items() if it.kind is not it.VAR_KEYWORD]
    checks = {name: _check_of(function.__name__, name) for name in own}
    if len(own) < len(parameters):  # the parameters of a question
        checks |= {name: _CHECKS[name] for name in QuestionParts.__annotations__}
    optional = {name for name in checks if name not in parameters}
    optional |= {name for name in own if parameters[name].default is None}
    names = function.__code__.co_varnames[: function.__code__.co_argcount]

    def checked(name: str, value: Any) -> Any:
        is_given = value is not None or name not in optional
        return checks[name](name, value) if is_given and name in checks else value

    @wraps(function)
    def ask(*arguments: Any, **options: Any) -> Any:
        placed = [checked(*argument) for argument in zip(names, arguments, strict=False)]
        named = {name: checked(name, value) for name, value in options.items()}
        return function(*placed, *arguments[len(names) :], **named)

    return ask  # type: ignore[return-value]


def _check_of(function: str, name: str) -> Callable[[str, Any], Any]:
    return _CHECKS.get(f"{function}.{name}") or _CHECKS[name]


def _refuse(name: str, what: str, value: object) -> TypeError:
    return TypeError(f"{name} is {what}, not {type(value).__name__}")


def _trace(name: str, value: Any) -> Trace:
    if isinstance(value, Trace):
        return value
    if isinstance(value, str | PathLike | bytes) or hasattr(value, "read"):
        return read_trace(value)
    raise _refuse(name, "a longpole.Trace, or the path, bytes or open file of one", value)


def _traces(name: str, value: Any) -> TraceSet:
    from longpole.jobs.joining import read_traces
    from longpole.jobs.trace_set import TraceSet

    if isinstance(value, TraceSet):
        return value
    if _is_paths(value):
        return read_traces(value)
    raise _refuse(name, "a longpole.TraceSet, or the folder or the paths of ranks", value)


def _side(name: str, value: Any) -> Any:
    from longpole.jobs.trace_set import TraceSet

    if isinstance(value, list | tuple):
        return [_side(name, each) for each in value]
    return value if isinstance(value, TraceSet) else _trace(name, value)


def _each(name: str, value: Any) -> Any:
    from longpole.jobs.trace_set import TraceSet

    if isinstance(value, Trace | TraceSet | str | PathLike | Iterable):
        return value
    raise _refuse(name, "traces, a longpole.TraceSet, or paths", value)


def _recording(name: str, value: Any) -> Trace | Allocations:
    from longpole.trace.allocations import Allocations, is_memory_file, read_memory

    if isinstance(value, Allocations):
        return value
    is_memory = isinstance(value, _PATH) and Path(value).is_file() and is_memory_file(value)
    return read_memory(value) if is_memory else _trace(name, value)


def _dumps(name: str, value: Any) -> DumpSet:
    from longpole.jobs.dump_set import DumpSet, read_dumps

    if isinstance(value, DumpSet):
        return value
    if _is_paths(value):
        return read_dumps(value)
    raise _refuse(name, "a longpole.DumpSet, or the paths of dumps", value)


def _window(name: str, value: Any) -> Window:
    if isinstance(value, Window):
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
    if isinstance(value, str) or hasattr(value, "meta"):
        return value
    raise _refuse(name, "a condition as in SQL or an expression of polars", value)


def _peaks(name: str, value: Any) -> Any:
    from longpole.devices.peaks import Peaks

    return _plain("a longpole.devices.peaks.Peaks", Peaks)(name, value)


def _critical_path(name: str, value: Any) -> Any:
    from longpole.engine.critical_path.path import CriticalPath

    return _plain("a longpole.CriticalPath", CriticalPath)(name, value)


def _plain(what: str, *types: type) -> Callable[[str, Any], Any]:
    """Return a check that accepts values of the given types unchanged."""

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
    if callable(value):
        return value
    raise _refuse(name, "a function", value)


def _times(_name: str, value: Any) -> tuple[int, int]:
    return two_times(value)


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
    if isinstance(value, str | SupportsIndex) and not isinstance(value, bool):
        return value
    raise _refuse(name, "the number of a step, or ProfilerStep#N", value)


def _numbers(name: str, value: Any) -> Any:
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [None]
    if all(isinstance(each, SupportsIndex) for each in listed):
        return listed
    raise _refuse(name, "a list of integers", value)


def _source(name: str, value: Any) -> Any:
    if isinstance(value, str | PathLike | bytes) or hasattr(value, "read"):
        return value
    raise _refuse(name, "a path, bytes or an open file", value)


def _execution(name: str, value: Any) -> Any:
    from longpole.formats.convert.execution_trace import ExecutionTrace

    return value if isinstance(value, ExecutionTrace) else _source(name, value)


def _is_paths(value: Any) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, bytes)
    return isinstance(value, _PATH) or (is_list and all(isinstance(each, _PATH) for each in value))


def _profiler(name: str, value: Any) -> Any:
    if all(hasattr(value, each) for each in ("schedule", "step_num", "add_metadata_json")):
        return value
    raise _refuse(name, "a torch.profiler.profile", value)


_integer: Final = _plain("an integer", SupportsIndex)
_number: Final = _plain("a number", float, SupportsIndex)
_text: Final = _plain("a text", str)
_CHECKED_BY_THE_CORE: Final = frozenset(("read_trace",))
_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "against": _integer,
    "annotation": _text,
    "annotations": _text,
    "around": _integer,
    "as_recorded": _flag,
    "base": _side,
    "between": _times,
    "by": _text,
    "critical_path": _critical_path,
    "data_load": _text,
    "engine": _text,
    "execution": _execution,
    "folder": _path,
    "force": _flag,
    "found": _dumps,
    "gate": _number,
    "instance": _integer,
    "is_same_program": _flag,
    "iteration": _integer,
    "long_delay_ns": _integer,
    "max_bytes": _integer,
    "max_length": _integer,
    "min_length": _integer,
    "new": _side,
    "output": _path,
    "overwrite": _flag,
    "path": _path,
    "peak": _plain("a number for each name", Mapping),
    "peaks": _peaks,
    "profiler": _profiler,
    "progress": _callback,
    "ranks": _numbers,
    "recording": _recording,
    "shapes": _flag,
    "short_ns": _integer,
    "show": _flag,
    "slow_call_ns": _integer,
    "sort": _text,
    "source": _source,
    "sources": _paths,
    "stacks": _flag,
    "step": _step,
    "diff_steps.step": _integer,
    "ranks.step": _integer,
    "step_name": _text,
    "step_time_ns": _integer,
    "step_times_ns": _step_times,
    "steps": _integer,
    "strict": _flag,
    "target": _target,
    "timed_steps": _integer,
    "timeout_s": _number,
    "top": _integer,
    "trace": _trace,
    "traces": _traces,
    "get_counter_data_with_operators.traces": _each,
    "vocabulary": _text,
    "warm_up": _integer,
    "where": _condition,
    "whole": _flag,
    "window": _window,
    "workers": _integer,
}
"""Check of an argument, by the name of its parameter; a function may have its own."""
