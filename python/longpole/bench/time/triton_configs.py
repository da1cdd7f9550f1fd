"""Configurations of an autotuned Triton kernel, each timed as a separate function.

A kernel under `triton.autotune` has a list of configurations and picks one. Here the list is
reduced to one at a time, so that the function that launches the kernel can be timed with each of
them.
"""

from __future__ import annotations

import inspect
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.targets import find_member

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["config_labels", "under_config"]

_OPTIONS: Final = ("num_warps", "num_stages", "num_ctas", "maxnreg")


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
    """Return everything that a configuration sets, separated by commas."""
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
    found = ((name, getattr(config, name, None)) for name in _OPTIONS)
    return [(name, value) for name, value in found if value is not None]


def _joined(fields: list[tuple[str, Any]]) -> str:
    return ",".join(f"{name}={value}" for name, value in fields)
