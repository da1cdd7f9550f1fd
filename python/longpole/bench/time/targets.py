"""Finds what to time by name: a function of a module, at a point of the axes."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from itertools import cycle
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Function: TypeAlias = Callable[..., object]
    Point: TypeAlias = Mapping[str, int | float | str]

__all__ = ["bound", "find_function", "find_member", "key_of", "rotating"]


def find_function(name: str) -> Function:
    """Find a function, and its module as `python -m` would.

    Raises
    ------
    ValueError
        The name does not exist, or its module cannot be imported.
    """
    function = find_member(name)
    if not callable(function):
        message = f"{name} is not a function"
        raise ValueError(message)  # noqa: TRY004 - what was asked for is wrong, not a type
    found: Function = function
    return found


def find_member(name: str) -> object:
    """Find an object of a module by name, a function or not.

    Raises
    ------
    ValueError
        The name does not exist, or its module cannot be imported.
    """
    module_name, _, function_name = name.partition(":")
    if not (module_name and function_name):
        message = f"{name!r} is not of the form MODULE:FUNC"
        raise ValueError(message)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = attrgetter(function_name)(import_module(module_name))
    except (ImportError, AttributeError) as error:
        message = f"{name} cannot be found: {error}"
        raise ValueError(message) from error
    except (Exception, SystemExit) as error:
        message = f"{module_name} cannot be imported: {type(error).__name__}: {error}"
        raise ValueError(message) from error
    return found


def key_of(name: str, point: Point) -> str:
    """Return the key of a function at a point.

    Examples
    --------
    >>> key_of("kernels:gemm", {"n": 1024})
    'kernels:gemm n=1024'
    """
    return " ".join([name, *(f"{axis}={value}" for axis, value in point.items())])


def bound(function: Function, point: Point, *, factory: bool) -> Function:
    """Return a function without arguments; if it cannot be created, timing it fails."""
    if not factory:
        return partial(function, **point)
    try:
        made = function(**point)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's own
        return partial(_fail, error)
    if not callable(made):
        return partial(_fail, TypeError("with --factory, FUNC must return a function"))
    return made


def rotating(functions: Iterable[Callable[[], object]]) -> Callable[[], object]:
    """Return a function that calls several in rotation, each with its own buffers.

    Examples
    --------
    >>> call = rotating([lambda: "a", lambda: "b"])
    >>> call(), call(), call()
    ('a', 'b', 'a')
    """
    turns = cycle(functions)

    def call() -> object:
        return next(turns)()

    return call


def _fail(error: BaseException) -> NoReturn:
    raise error
