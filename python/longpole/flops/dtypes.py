"""Element types by their names in torch: sizes, and the result type of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class _Kind(NamedTuple):
    """Properties of a type that determine promotion, and its Python name."""

    category: int
    """0 for booleans, then integers, floating-point and complex numbers."""
    n_bytes: int
    name: str


_INTEGRAL: Final = 1
_KINDS: Final[Mapping[str, _Kind]] = {
    "bool": _Kind(0, 1, "bool"),
    "unsigned char": _Kind(1, 1, "uint8"),
    "signed char": _Kind(1, 1, "int8"),
    "short int": _Kind(1, 2, "int16"),
    "short": _Kind(1, 2, "int16"),
    "int": _Kind(1, 4, "int32"),
    "long int": _Kind(1, 8, "int64"),
    "long": _Kind(1, 8, "int64"),
    "c10::Float8_e4m3fn": _Kind(2, 1, "float8_e4m3fn"),
    "c10::Float8_e4m3fnuz": _Kind(2, 1, "float8_e4m3fnuz"),
    "c10::Float8_e5m2": _Kind(2, 1, "float8_e5m2"),
    "c10::Float8_e5m2fnuz": _Kind(2, 1, "float8_e5m2fnuz"),
    "c10::Half": _Kind(2, 2, "float16"),
    "c10::BFloat16": _Kind(2, 2, "bfloat16"),
    "float": _Kind(2, 4, "float32"),
    "double": _Kind(2, 8, "float64"),
    "c10::complex<float>": _Kind(3, 8, "complex64"),
    "c10::complex<double>": _Kind(3, 16, "complex128"),
}

# Numbers of `c10::ScalarType`, which stand for types among the recorded argument values.
_NUMBERS: Final[Mapping[int, str]] = {
    0: "unsigned char",
    1: "signed char",
    2: "short",
    3: "int",
    4: "long",
    5: "c10::Half",
    6: "float",
    7: "double",
    9: "c10::complex<float>",
    10: "c10::complex<double>",
    11: "bool",
    15: "c10::BFloat16",
    23: "c10::Float8_e5m2",
    24: "c10::Float8_e4m3fn",
    25: "c10::Float8_e5m2fnuz",
    26: "c10::Float8_e4m3fnuz",
}


def item_bytes(dtype: str) -> int | None:
    """Return the size of an element in bytes; None for an unknown type."""
    kind = _KINDS.get(dtype)
    return None if kind is None else kind.n_bytes


def python_name(dtype: str) -> str | None:
    """Return the name of a type in Python code; None for an unknown type.

    Examples
    --------
    >>> python_name("c10::BFloat16"), python_name("unsigned char"), python_name("Scalar")
    ('bfloat16', 'uint8', None)
    """
    kind = _KINDS.get(dtype)
    return None if kind is None else kind.name


def is_integral(dtype: str) -> bool:
    """Whether a type holds integers or booleans."""
    kind = _KINDS.get(dtype)
    return kind is not None and kind.category <= _INTEGRAL


def scalar_type(number: object, default: str | None) -> str:
    """Return the type that the number in an argument `dtype` stands for.

    Examples
    --------
    >>> scalar_type(15, "float"), scalar_type(None, "float"), scalar_type(99, "float")
    ('c10::BFloat16', 'float', '')
    """
    if not isinstance(number, int) or isinstance(number, bool):
        return default or ""
    return _NUMBERS.get(number, "")


def promoted(tensors: Iterable[tuple[str, bool]]) -> str | None:
    """Return the result type of an operator on tensors; None if a type is unknown.

    A zero-dimensional tensor counts only if its category is higher, as in torch.

    Parameters
    ----------
    tensors
        Type of each tensor, and whether it has dimensions.

    Examples
    --------
    >>> half = ("c10::BFloat16", True)
    >>> promoted([half, ("float", True)]), promoted([half, ("double", False)])
    ('float', 'c10::BFloat16')
    """
    best: tuple[int, bool, int, str] | None = None
    for dtype, has_dimensions in tensors:
        kind = _KINDS.get(dtype)
        if kind is None:
            return None
        rank = (kind.category, has_dimensions, kind.n_bytes, dtype)
        if best is None or rank[:3] > best[:3]:
            best = rank
        elif rank[:3] == best[:3] and rank[3] != best[3] and {rank[3], best[3]} == _HALVES:
            best = (*rank[:2], *_FULL)
    return None if best is None else best[3]


_HALVES: Final = {"c10::Half", "c10::BFloat16"}
_FULL: Final = (4, "float")
