"""Frozen dataclasses that are fast to define.

`dataclasses.dataclass(frozen=True)` compiles six methods of each class, which takes a millisecond;
a command imports about a hundred such classes. Here only `__init__` is compiled, and all classes
share the other methods.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field

T = TypeVar("T")

_set: Final = object.__setattr__


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(
    *, init: bool = True, kw_only: bool = False, slots: bool = True
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[T] | None = None, /, *, init: bool = True, kw_only: bool = False, slots: bool = True
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a frozen dataclass with slots.

    It behaves as one of `dataclasses.dataclass(frozen=True, slots=True)`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> @frozen
    ... class Stream:
    ...     number: int
    ...     busy_ns: int | None = None
    >>> stream = Stream(7)
    >>> stream, replace(stream, busy_ns=5) == Stream(7, 5)
    (Stream(number=7, busy_ns=None), True)
    >>> stream.number = 8
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'number'
    """

    def made(cls: type[T]) -> type[T]:
        plain = dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
        if init and "__init__" not in vars(plain):
            plain.__init__ = _init_of(plain)  # type: ignore[method-assign]
        for name, method in (_SHARED | _SLOTTED if slots else _SHARED).items():
            if vars(plain).get(name) is None:
                setattr(plain, name, method)
        return plain

    return made if cls is None else made(cls)


class _Factory:
    """Default of an argument whose value a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Final = _Factory()


def _init_of(cls: Any) -> Any:
    """Compile the method that sets the fields."""
    given = [it for it in fields(cls) if it.init]
    by_place = [_argument(it) for it in given if not it.kw_only]
    by_name = [_argument(it) for it in given if it.kw_only]
    arguments = ["self", *by_place, *(["*", *by_name] if by_name else [])]
    body = [f"_set(self, {it.name!r}, {value})" for it in fields(cls) if (value := _value(it))]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    known: dict[str, Any] = {"__name__": cls.__module__, "_set": _set, "_FACTORY": _FACTORY}
    for it in fields(cls):
        made = it.default_factory is not MISSING
        known[f"_of_{it.name}"] = it.default_factory if made else it.default
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(body or ["pass"]), known)  # noqa: S102
    found = known["__init__"]
    found.__annotations__ = {**{it.name: it.type for it in given}, "return": None}
    found.__qualname__ = f"{cls.__qualname__}.__init__"
    return found


def _argument(it: Field[Any]) -> str:
    if it.default_factory is not MISSING:
        return f"{it.name}=_FACTORY"
    return it.name if it.default is MISSING else f"{it.name}=_of_{it.name}"


def _value(it: Field[Any]) -> str:
    """Return the expression of what a field is set to; empty if nothing sets it."""
    if it.default_factory is not MISSING:
        made = f"_of_{it.name}()"
        return f"{made} if {it.name} is _FACTORY else {it.name}" if it.init else made
    if it.init:
        return it.name
    return "" if it.default is MISSING else f"_of_{it.name}"


# The methods that all classes share.


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{it.name}={getattr(self, it.name)!r}" for it in fields(self) if it.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    cls: Any = type(self)
    compared = _compared(cls)
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    cls: Any = type(self)
    return hash(_hashed(cls)(self))


@cache
def _compared(cls: Any) -> Callable[[Any], Any]:
    return _getter([it.name for it in fields(cls) if it.compare])


@cache
def _hashed(cls: Any) -> Callable[[Any], Any]:
    return _getter([it.name for it in fields(cls) if (it.compare if it.hash is None else it.hash)])


def _getter(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _setattr(_self: object, name: str, _value: object) -> None:
    message = f"cannot assign to field {name!r}"
    raise FrozenInstanceError(message)


def _delattr(_self: object, name: str) -> None:
    message = f"cannot delete field {name!r}"
    raise FrozenInstanceError(message)


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, it.name) for it in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for it, value in zip(fields(self), state, strict=True):
        _set(self, it.name, value)


_SHARED: Final[dict[str, Any]] = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
}
_SLOTTED: Final[dict[str, Any]] = {"__getstate__": _getstate, "__setstate__": _setstate}
