"""Frozen dataclasses behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from longpole.words.frozen import frozen


class _Doubled:
    __slots__ = ()
    number: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.number)


@frozen
class Ours(_Doubled):
    number: int
    names: list[str] = field(default_factory=list, compare=False)
    _: dataclasses.KW_ONLY
    hidden: int = field(default=3, repr=False, hash=False)
    twice: int = field(init=False, default=0)
    known: ClassVar[int] = 5


@dataclass(frozen=True, slots=True)
class Theirs(_Doubled):
    number: int
    names: list[str] = field(default_factory=list, compare=False)
    _: dataclasses.KW_ONLY
    hidden: int = field(default=3, repr=False, hash=False)
    twice: int = field(init=False, default=0)
    known: ClassVar[int] = 5


@frozen
class OursMore(Ours):
    more: str = "more"


@dataclass(frozen=True, slots=True)
class TheirsMore(Theirs):
    more: str = "more"


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, ["a"]), {}),
    ((2,), {"hidden": 4}),
    ((), {"number": 2, "names": ["b"]}),
    ((), {}),
    ((1, [], 3), {}),
    ((1,), {"twice": 3}),
]


def _made(cls: type, call: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    try:
        return cls(*call[0], **call[1])
    except TypeError:
        return TypeError


def _shown(made: object) -> str:
    return repr(made).replace("Theirs", "Ours")


@pytest.mark.parametrize(("ours", "theirs"), [(Ours, Theirs), (OursMore, TheirsMore)])
def test_they_are_made_shown_and_compared_alike(ours: type, theirs: type) -> None:
    own, others = ([_made(cls, call) for call in CALLS] for cls in (ours, theirs))
    assert [*map(_shown, own)] == [*map(_shown, others)]
    assert TypeError in own
    pairs = [(a, b) for a in range(len(CALLS)) for b in range(len(CALLS))]
    assert [own[a] == own[b] for a, b in pairs] == [others[a] == others[b] for a, b in pairs]
    is_same = [hash(own[a]) == hash(own[b]) for a, b in pairs]
    assert is_same == [hash(others[a]) == hash(others[b]) for a, b in pairs]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__  # type: ignore[attr-defined]


def test_a_field_cannot_be_set_or_deleted() -> None:
    made = Ours(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'number'"):
        made.number = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'number'"):
        del made.number  # type: ignore[misc]


def test_they_have_slots_and_are_equal_after_a_copy() -> None:
    made = OursMore(1, ["a"], hidden=7, more="b")
    assert not hasattr(made, "__dict__")
    copies = [copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))]  # noqa: S301
    assert copies == [made] * 3
    assert dataclasses.replace(made, number=4).twice == 8
    assert dataclasses.asdict(made)["names"] == ["a"]


def test_what_a_class_defines_itself_is_kept() -> None:
    @frozen
    class Own:
        number: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        __hash__ = None  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "own"

    assert Own(1) == Own(2)
    assert repr(Own(1)) == "own"
