"""A search space: parameters with their values, and the allowed combinations."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, islice
from typing import Any, Final, Self, TypeAlias

from longpole.bench.expressions import ExpressionError, compute, names_in

Value: TypeAlias = int | float | str | bool
Point: TypeAlias = Mapping[str, Value]

_LARGEST_LISTED: Final = 500_000
"""Maximum number of combinations to enumerate."""
_DRAWS_A_POINT: Final = 1000
_FRUITLESS_DRAWS: Final = 100_000
_MOST_PARAMETERS: Final = 100
_MOST_VALUES: Final = 100_000
"""Maximum number of values of a parameter."""


_NOT_LISTED: Final = (
    f"{_LARGEST_LISTED:,} combinations of the parameters were enumerated, and more are left: "
    "give a baseline, use the strategy random or halving, or give fewer values"
)


class TaskError(ValueError):
    """The task cannot be searched and has to be changed."""


def powers_of_two(first: int, last: int) -> tuple[int, ...]:
    """Return the powers of two from one number to another, both included.

    Examples
    --------
    >>> powers_of_two(8, 64)
    (8, 16, 32, 64)
    """
    if not 0 < first <= last or first & (first - 1):
        message = f"there are no powers of two from {first} to {last}"
        raise ValueError(message)
    return tuple(first << shift for shift in range((last // first).bit_length()))


def label_of(point: Point) -> str:
    """Return the name of a point, composed of its values.

    Examples
    --------
    >>> label_of({"block": 32, "unroll": 2})
    'block=32 unroll=2'
    """
    return " ".join(f"{name}={value}" for name, value in point.items())


@dataclass(frozen=True)
class Space:
    """Parameters, their values, and constraints between them.

    Parameters
    ----------
    parameters
        Values of each parameter.
    constraints
        Expressions of parameters that must be true, such as `"block * unroll <= 1024"`.
    listed
        All points, if they are not a product of values.

    Raises
    ------
    ValueError
        A parameter has no value, too many, or two that are equal or look alike, such as 1 and
        "1", or a constraint is not an expression of parameters.

    Examples
    --------
    >>> space = Space({"block": powers_of_two(8, 32), "unroll": range(1, 3)}, ["block != 16"])
    >>> [label_of(point) for point in space]
    ['block=8 unroll=1', 'block=8 unroll=2', 'block=32 unroll=1', 'block=32 unroll=2']
    """

    parameters: Mapping[str, Sequence[Value]]
    constraints: Sequence[str] = ()
    listed: Sequence[Point] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.parameters) > _MOST_PARAMETERS:
            message = f"there are {len(self.parameters):,} parameters, more than {_MOST_PARAMETERS}"
            raise ValueError(message)
        for name, values in self.parameters.items():
            _check_number(name, len(values))
            _check_values(name, values)
        for text in self.constraints:
            if unknown := sorted(names_in(text) - self.parameters.keys()):
                message = f"{text!r}: {unknown[0]!r} is not a parameter"
                raise ValueError(message)

    @classmethod
    def of_points(cls, points: Iterable[Point]) -> Self:
        """Create a space of only these points."""
        listed = [dict(point) for point in points]
        values: dict[str, dict[str, Value]] = {}
        for point in listed:
            for name, value in point.items():
                values.setdefault(name, {})[repr(value)] = value
        return cls({name: tuple(each.values()) for name, each in values.items()}, (), listed)

    @classmethod
    def parse(cls, parameters: Mapping[str, Any], constraints: Iterable[str] = ()) -> Self:
        """Create a space from the declaration in a file.

        A parameter is a list of values, `{"powers_of_two": [first, last]}` or
        `{"range": [first, last, step]}`, whose ends are included.

        Raises
        ------
        ValueError
            The declaration has another form.
        """
        return cls(
            {name: _values(name, given) for name, given in parameters.items()}, tuple(constraints)
        )

    @property
    def n_combinations(self) -> int:
        """Number of points before constraints."""
        if self.listed is not None:
            return len(self.listed)
        return math.prod(len(values) for values in self.parameters.values())

    def __iter__(self) -> Iterator[Point]:
        """Return the allowed points, with the last parameter changing fastest.

        Raises
        ------
        TaskError
            There are too many combinations to enumerate.
        """
        if self.listed is not None:
            return iter(self.listed)
        return self._walked()

    def allows(self, point: Point) -> bool:
        """Whether a point belongs to the space."""
        if self.listed is not None:
            return point in self.listed
        is_known = point.keys() == self.parameters.keys() and all(
            point[name] in values for name, values in self.parameters.items()
        )
        return is_known and _meets(point, self.constraints)

    def own(self, point: Point) -> Point:
        """Return an allowed point in the space's own form: the same names, order and types."""
        if self.listed is not None:
            return next(each for each in self.listed if each == point)
        return {
            name: values[list(values).index(point[name])]
            for name, values in self.parameters.items()
        }

    def sample(self, count: int, seed: int = 0) -> list[Point]:
        """Draw distinct points at random; if there are fewer, all of them in random order."""
        chance = random.Random(seed)  # noqa: S311 - an order, not a secret
        if self.n_combinations <= _LARGEST_LISTED:
            return self._drawn(chance, count)
        found: dict[str, Point] = {}
        n_fruitless = 0
        for _ in range(min(_DRAWS_A_POINT * count, _LARGEST_LISTED)):
            if len(found) == count or n_fruitless == _FRUITLESS_DRAWS:
                break
            point = {name: chance.choice(values) for name, values in self.parameters.items()}
            n_fruitless += 1
            if self.allows(point) and found.setdefault(label_of(point), point) is point:
                n_fruitless = 0
        return list(found.values())

    def first(self) -> Point:
        """Return the first allowed point.

        Raises
        ------
        TaskError
            No point is allowed, or none of the combinations enumerated.
        """
        return self._first

    @cached_property
    def _first(self) -> Point:
        for point in islice(self, 1):
            return point
        message = "no combination of the parameters meets all constraints"
        raise TaskError(message)

    def _drawn(self, chance: random.Random, count: int) -> list[Point]:
        """Choose points at random; all points are enumerated, stored as values without names."""
        if self.listed is not None:
            return chance.sample(self.listed, min(count, len(self.listed)))
        points = [tuple(point.values()) for point in self]
        drawn = chance.sample(points, min(count, len(points)))
        return [dict(zip(self.parameters, values, strict=True)) for values in drawn]

    def _walked(self) -> Iterator[Point]:
        """Choose one parameter after another; a constraint is checked once its names are chosen."""
        names = list(self.parameters)
        due: list[list[str]] = [[] for _ in range(len(names) + 1)]
        for text in self.constraints:
            due[max((names.index(name) + 1 for name in names_in(text)), default=0)].append(text)
        ends = count()
        chosen: dict[str, Value] = {}

        def extended(n_chosen: int) -> Iterator[Point]:
            is_met = not due[n_chosen] or _meets(chosen, due[n_chosen])
            is_end = not is_met or n_chosen == len(names)
            if is_end and next(ends) == _LARGEST_LISTED:
                raise TaskError(_NOT_LISTED)
            if is_end:
                yield from [dict(chosen)] if is_met else []
                return
            name = names[n_chosen]
            for value in self.parameters[name]:
                chosen[name] = value
                yield from extended(n_chosen + 1)
            del chosen[name]

        return extended(0)


def _meets(point: Point, constraints: Iterable[str]) -> bool:
    try:
        return all(compute(text, point) for text in constraints)
    except ExpressionError as error:
        message = f"{error}, for {label_of(point) or 'any point'}"
        raise TaskError(message) from error


def _check_number(name: str, n_values: int) -> None:
    if not n_values:
        message = f"parameter {name!r} needs at least one value"
        raise ValueError(message)
    if n_values > _MOST_VALUES:
        message = (
            f"parameter {name!r} has {n_values:,} values, more than {_MOST_VALUES:,}: use a "
            "larger step"
        )
        raise ValueError(message)


def _check_values(name: str, values: Sequence[Any]) -> None:
    """Raise for values that are equal or have the same label."""
    if isinstance(values, range):
        return
    seen: dict[object, Value] = {}
    for value in values:
        if not isinstance(value, int | float | str) or value != value:  # noqa: PLR0124 - only NaN differs from itself
            message = (
                f"parameter {name!r} has {value!r}, which is not a number, text or truth value"
            )
            raise ValueError(message)
        for key in (value, str(value)):
            if key in seen:
                message = f"parameter {name!r} has {seen[key]!r} and {value!r}, which are alike"
                raise ValueError(message)
        seen |= {value: value, str(value): value}


def _values(name: str, given: Any) -> tuple[Value, ...]:
    match given:
        case [*values] if all(isinstance(value, int | float | str) for value in values):
            return tuple(values)
        case {"powers_of_two": [int(first), int(last)], **others} if not others:
            return powers_of_two(first, last)
        case {"range": [int(first), int(last)], **others} if not others:
            return _range(name, first, last, 1)
        case {"range": [int(first), int(last), int(step)], **others} if not others and step:
            return _range(name, first, last, step)
    message = (
        f"parameter {name!r} must be a list of values, {{powers_of_two = [first, last]}} or "
        "{range = [first, last, step]}"
    )
    raise ValueError(message)


def _range(name: str, first: int, last: int, step: int) -> tuple[Value, ...]:
    n_values = max(0, (last - first) // step + 1)
    _check_number(name, n_values)
    return tuple(first + place * step for place in range(n_values))
