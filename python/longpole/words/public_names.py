"""Public names of a package, imported on first use, so that importing the package is cheap."""

from __future__ import annotations

import sys
from importlib import import_module

# As `typing` says it, which costs more than all of this.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def imported_on_use(
    package: str,
    modules: Mapping[str, str],
    prepared: Callable[[object], object] | None = None,
    *,
    within: str | None = None,
) -> tuple[Callable[[str], object], Callable[[], Iterable[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package
        The name of the package.
    modules
        The module of each public name, relative to `within`.
    prepared
        Called with an object when it is first used; its result becomes the public object.
    within
        The package of the modules; by default the package itself.
    """

    def get(name: str) -> object:
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        found = getattr(import_module(f"{within or package}.{modules[name]}"), name)
        if prepared is not None:
            found = prepared(found)
        # A module of the same name was bound by its import: keep the object.
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(modules)
