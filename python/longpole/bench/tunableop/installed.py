"""The validators of the torch that is installed."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from longpole.bench.tunableop.environment import installed_version

__all__ = ["Installed", "installed_validators"]


class Installed(NamedTuple):
    """The validators that are known, and whether these are all."""

    validators: dict[str, str]
    is_complete: bool


def installed_validators() -> Installed:
    """Ask the installed torch what a results file has to be tied to.

    torch knows its validators where it sees a GPU; elsewhere only its version is known, and
    nothing where it is not installed.
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
        pass  # a build without TunableOp, or whose libraries are missing
    return Installed({"PT_VERSION": version}, is_complete=False)
