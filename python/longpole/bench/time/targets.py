"""Finds what to time by name: a function of a module, at a point of the axes.

A kernel under `triton.autotune` has a list of configurations and picks one. Here the list is
reduced to one at a time, so that the function that launches the kernel can be timed with each of
them.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial
from importlib import import_module
from itertools import cycle, product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Function: TypeAlias = Callable[..., object]
    Point: TypeAlias = Mapping[str, int | float | str]


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
        raise ValueError(message)  # noqa: TRY004 - the value is wrong, not its type
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
    """Return a function without arguments; if creating it fails, timing it reports the failure."""
    if not factory:
        return partial(function, **point)
    try:
        made = function(**point)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - functions of users can raise anything
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


LAUNCH_OPTIONS: Final = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of a Triton configuration other than the arguments of the kernel."""


def config_labels(name: str) -> list[str]:
    """Return a label for each configuration of a kernel, with everything it sets.

    Parameters
    ----------
    name
        The kernel, as `MODULE:KERNEL`.

    Raises
    ------
    ValueError
        It is not an autotuned kernel.
    """
    labels = [_label(config) for config in _configs(name)]
    if len(set(labels)) != len(labels):
        message = f"{name} has the same configuration twice"
        raise ValueError(message)
    return labels


def under_config(function: Callable[[], object], name: str, label: str) -> Callable[[], object]:
    """Return a function that calls another one while a kernel has only one configuration.

    Parameters
    ----------
    function
        The function that launches the kernel.
    name
        The kernel, as `MODULE:KERNEL`.
    label
        The configuration: one of `config_labels`, or the same without options at the defaults of
        `triton.Config`, which source code leaves out.

    Raises
    ------
    ValueError
        The label does not identify exactly one configuration of the kernel.
    """
    kernel: Any = find_member(name)
    found = [each for each in _configs(name) if label in _labels(each)]
    if len(found) != 1:
        known = "; ".join(map(_label, kernel.configs))
        message = f"{name} has {len(found)} configurations {label}; it has: {known}"
        raise ValueError(message)
    all_of_them, only = kernel.configs, found

    def call() -> object:
        kernel.configs = only
        try:
            return function()
        finally:
            kernel.configs = all_of_them

    return call


def _configs(name: str) -> list[Any]:
    kernel = find_member(name)
    configs = getattr(kernel, "configs", None)
    if not isinstance(configs, list | tuple) or not configs:
        message = f"{name} is not a kernel under triton.autotune"
        raise ValueError(message)
    return list(configs)


def _label(config: Any) -> str:
    """Return everything that a configuration sets, as comma-separated text."""
    return _joined([*_arguments(config), *_options(config)])


def _labels(config: Any) -> set[str]:
    """Return all labels of a configuration: with and without options at their defaults."""
    defaults = inspect.signature(type(config).__init__).parameters
    choices = [
        (True, False) if name in defaults and defaults[name].default == value else (True,)
        for name, value in _options(config)
    ]
    return {
        _joined([*_arguments(config), *(each for each, is_kept in kept if is_kept)])
        for kept in (zip(_options(config), flags, strict=True) for flags in product(*choices))
    }


def _arguments(config: Any) -> list[tuple[str, Any]]:
    return list(getattr(config, "kwargs", {}).items())


def _options(config: Any) -> list[tuple[str, Any]]:
    """Return the launch options that are set."""
    found = ((name, getattr(config, name, None)) for name in LAUNCH_OPTIONS)
    return [(name, value) for name, value in found if value is not None]


def _joined(fields: list[tuple[str, Any]]) -> str:
    return ",".join(f"{name}={value}" for name, value in fields)
