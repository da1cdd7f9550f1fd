"""The validators of the installed torch."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from longpole.bench.tunableop.environment import installed_version

__all__ = ["Installed", "installed_validators"]


class Installed(NamedTuple):
    """Known validators, and whether these are all."""

    validators: dict[str, str]
    is_complete: bool


def installed_validators() -> Installed:
    """Return the validators of the installed torch.

    torch knows its validators if it sees a GPU; otherwise only its version is known, and nothing if
    it is not installed.
    """
    version = installed_version()
    if version is None:
        return Installed({}, is_complete=False)
    try:
        torch = import_module("torch")
        if torch.cuda.is_available():
            found = dict(import_module("torch.cuda.tunable").get_validators())
            return Installed(found, is_complete=bool(found))
    except (ImportError, OSError, RuntimeError, AttributeError):
        pass  # a build without TunableOp, or with missing libraries
    return Installed({"PT_VERSION": version}, is_complete=False)
