"""Declares the data of answers: the fields of a dataclass are what programs read.

Its fields, and the properties with `@computed`, are the keys of an object, in this order; the
docstring of a field is its description. A frame is a field of type `Annotated[pl.DataFrame, R]`, in
which `R` is a `Row` whose keys are the columns. The JSON Schema of an answer is derived from the
same declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import islice
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    TypedDict,
    TypeVar,
    get_type_hints,
    is_typeddict,
    overload,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

T = TypeVar("T")
HIDDEN: Final[Mapping[str, bool]] = {"hidden": True}
"""Metadata of a field that is not part of the data, for example one used only for display."""
# Number of elements of a sequence that a representation shows.
_MOST_SHOWN: Final = 3

_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


class Data:
    """Base class of dataclasses that hold the data of an answer.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Stream(Data):
    ...     number: int
    ...     busy_ns: int | None
    >>> Stream(7, None).to_dict()
    {'number': 7, 'busy_ns': None}

    Its representation shortens long sequences, and answers within answers.

    >>> @dataclass(frozen=True, slots=True)
    ... class Streams(Data):
    ...     streams: list[Stream]
    >>> Streams([Stream(number, None) for number in range(20)])
    Streams(streams=[Stream(number=0, ...), Stream(number=1, ...), Stream(number=2, ...), 17 more])
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Keep `dataclass` from writing a representation of all fields at any length."""
        super().__init_subclass__()
        if "__repr__" not in vars(cls):
            cls.__repr__ = Data.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the fields, shortened."""
        return _shortened(self, _all_fields)

    def to_dict(self) -> dict[str, Any]:
        """Return all data as JSON values, in a fixed order."""
        found: dict[str, Any] = plain(self)
        return found


class Row(TypedDict):
    """Base class of a row of a frame, or of another dictionary with fixed keys."""


class computed(Generic[T]):  # noqa: N801 (a decorator, as `property` is)
    """A property that is part of an answer's data."""

    def __init__(self, ask: Callable[[Any], T]) -> None:
        self.ask = ask
        self.__doc__ = ask.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        return self if instance is None else self.ask(instance)


def _shortened(value: Any, of_fields: Callable[[Any], str]) -> str:
    """Return a representation with a few elements of each sequence."""
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__qualname__}({of_fields(value)})"
    if isinstance(value, Mapping):
        parts = [f"{key!r}: {_inside(value[key])}" for key in islice(value, _MOST_SHOWN)]
        return f"{{{', '.join(_with_rest(parts, len(value)))}}}"
    if isinstance(value, list | tuple):
        parts = _with_rest([*map(_inside, value[:_MOST_SHOWN])], len(value))
        opening, closing = "[]" if isinstance(value, list) else "()"
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"{opening}{', '.join(parts)}{comma}{closing}"
    if hasattr(value, "to_dicts"):
        return f"<{type(value).__name__}: {' x '.join(map(str, value.shape))}>"
    return repr(value)


def _inside(value: Any) -> str:
    return _shortened(value, _first_field)


def _with_rest(parts: list[str], n_all: int) -> list[str]:
    return [*parts, f"{n_all - len(parts)} more"] if n_all > len(parts) else parts


def _all_fields(value: Any) -> str:
    shown = [field.name for field in fields(value) if field.repr]
    return ", ".join(f"{name}={_inside(getattr(value, name))}" for name in shown)


def _first_field(value: Any) -> str:
    first, *others = [field.name for field in fields(value) if field.repr] or [""]
    return f"{first}={getattr(value, first)!r}{', ...' * bool(others)}" if first else ""


def plain(value: Any) -> Any:
    """Return a value as JSON objects, arrays, strings, numbers, booleans and null.

    A class whose data is not its fields has a method `__data__` that returns it; the return
    annotation of the method defines the schema.
    """
    if type(value) in _PLAIN:
        return value
    if hasattr(type(value), "__data__"):
        return plain(value.__data__())
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in names_of(type(value))}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return _single(value)


def _single(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return value.to_dicts() if hasattr(value, "to_dicts") else value


@cache
def names_of(cls: Any) -> tuple[str, ...]:
    """Return the keys of an answer's data, or of a row, in order."""
    if is_typeddict(cls):
        return tuple(get_type_hints(cls))
    shown = (field.name for field in fields(cls) if "hidden" not in field.metadata)
    return (*shown, *_computed(cls))


def _computed(cls: type) -> list[str]:
    members = {name: found for base in reversed(cls.__mro__) for name, found in vars(base).items()}
    return [name for name, found in members.items() if isinstance(found, computed)]
