"""What can be chosen: parameters with their values, and the combinations that are allowed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Self, TypeAlias

from longpole.bench.expressions import compute, names_in

__all__ = ["Point", "Space", "Value", "label_of", "powers_of_two"]

Value: TypeAlias = int | float | str | bool
Point: TypeAlias = Mapping[str, Value]

_LARGEST_LISTED: Final = 1_000_000
_DRAWS_A_POINT: Final = 1000


def powers_of_two(first: int, last: int) -> tuple[int, ...]:
    """Give the powers of two from one number to another, both included.

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
    """Name a point by its values.

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
        The values of each.
    constraints
        Expressions of parameters that have to be true, such as `"block * unroll <= 1024"`.
    listed
        The only points that there are, where they are no product of values.

    Raises
    ------
    ValueError
        A parameter has no value, or two that are equal or look alike, such as 1 and "1", or a
        constraint is not an expression of parameters.

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
        for name, values in self.parameters.items():
            if not len(values):
                message = f"parameter {name!r} needs at least one value"
                raise ValueError(message)
            _check_labels(name, values)
        for text in self.constraints:
            if unknown := sorted(names_in(text) - self.parameters.keys()):
                message = f"{text!r}: {unknown[0]!r} is not a parameter"
                raise ValueError(message)

    @classmethod
    def of_points(cls, points: Iterable[Point]) -> Self:
        """Make the space of these points alone."""
        listed = [dict(point) for point in points]
        values: dict[str, dict[str, Value]] = {}
        for point in listed:
            for name, value in point.items():
                values.setdefault(name, {})[repr(value)] = value
        return cls({name: tuple(each.values()) for name, each in values.items()}, (), listed)

    @classmethod
    def parse(cls, parameters: Mapping[str, Any], constraints: Iterable[str] = ()) -> Self:
        """Make a space of what a file declares.

        A parameter is a list of values, `{"powers_of_two": [first, last]}` or
        `{"range": [first, last, step]}`, whose ends are included.

        Raises
        ------
        ValueError
            Something else is declared.
        """
        return cls(
            {name: _values(name, given) for name, given in parameters.items()}, tuple(constraints)
        )

    @property
    def n_combinations(self) -> int:
        """How many points there are before constraints."""
        if self.listed is not None:
            return len(self.listed)
        return math.prod(len(values) for values in self.parameters.values())

    def __iter__(self) -> Iterator[Point]:
        """Give the allowed points, the last parameter changing fastest."""
        if self.listed is not None:
            return iter(self.listed)
        return self._extended({}, list(self.parameters), list(self.constraints))

    def allows(self, point: Point) -> bool:
        """Say whether a point is one of the space."""
        if self.listed is not None:
            return point in self.listed
        is_known = point.keys() == self.parameters.keys() and all(
            point[name] in values for name, values in self.parameters.items()
        )
        return is_known and all(compute(text, point) for text in self.constraints)

    def own(self, point: Point) -> Point:
        """Give an allowed point as the space itself has it: the same names, order and types."""
        if self.listed is not None:
            return next(each for each in self.listed if each == point)
        return {
            name: values[list(values).index(point[name])]
            for name, values in self.parameters.items()
        }

    def sample(self, count: int, seed: int = 0) -> list[Point]:
        """Draw points at random, each once; all of them, in random order, where there are fewer."""
        chance = random.Random(seed)  # noqa: S311 - an order, not a secret
        if self.n_combinations <= _LARGEST_LISTED:
            points = list(self)
            return chance.sample(points, min(count, len(points)))
        found: dict[str, Point] = {}
        for _ in range(_DRAWS_A_POINT * count):
            if len(found) == count:
                break
            point = {name: chance.choice(values) for name, values in self.parameters.items()}
            if self.allows(point):
                found.setdefault(label_of(point), point)
        return list(found.values())

    def first(self) -> Point:
        """Give the first allowed point.

        Raises
        ------
        ValueError
            There is none.
        """
        for point in islice(self, 1):
            return point
        message = "no combination of the parameters meets all constraints"
        raise ValueError(message)

    def _extended(
        self, chosen: dict[str, Value], left: list[str], unmet: list[str]
    ) -> Iterator[Point]:
        """Choose the parameters that are left; constraints count once their names are chosen."""
        known = [text for text in unmet if names_in(text) <= chosen.keys()]
        if not all(compute(text, chosen) for text in known):
            return
        if not left:
            yield dict(chosen)
            return
        name, *others = left
        unknown = [text for text in unmet if text not in known]
        for value in self.parameters[name]:
            yield from self._extended({**chosen, name: value}, others, unknown)


def _check_labels(name: str, values: Sequence[Value]) -> None:
    """Refuse values that could not be told apart by the label of a point, or are equal."""
    seen: dict[object, Value] = {}
    for value in values:
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
        case {"range": [int(first), int(last), *step], **others} if not others:
            return tuple(range(first, last + 1, *step))
    message = (
        f"parameter {name!r} has to be a list of values, {{powers_of_two = [first, last]}} or "
        "{range = [first, last, step]}"
    )
    raise ValueError(message)
