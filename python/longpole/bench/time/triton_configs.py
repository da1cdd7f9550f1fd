"""Configurations of an autotuned Triton kernel, each timed as a function of its own.

A kernel under `triton.autotune` has a list of configurations and picks one. Here it is left one
at a time, so that the function that launches it can be timed under each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.bench.time.targets import find_member

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["config_labels", "under_config"]


def config_labels(name: str) -> list[str]:
    """Give the configurations of a kernel by what tells them apart.

    Parameters
    ----------
    name
        The kernel, as `MODULE:KERNEL`.

    Raises
    ------
    ValueError
        It is no autotuned kernel.
    """
    labels = [_label(config) for config in _configs(name)]
    if len(set(labels)) != len(labels):
        message = f"{name} has the same configuration twice"
        raise ValueError(message)
    return labels


def under_config(function: Callable[[], object], name: str, label: str) -> Callable[[], object]:
    """Give a function that calls another while a kernel has one configuration only.

    Parameters
    ----------
    function
        What launches the kernel.
    name
        The kernel, as `MODULE:KERNEL`.
    label
        The configuration, one of `config_labels`.
    """
    kernel: Any = find_member(name)
    (config,) = (each for each in _configs(name) if _label(each) == label)
    all_of_them, only = kernel.configs, [config]

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
    """Give all that a configuration sets, by comma."""
    fields = dict(getattr(config, "kwargs", {}))
    for name in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
        value = getattr(config, name, None)
        if value is not None:
            fields[name] = value
    return ",".join(f"{name}={value}" for name, value in fields.items())
