"""Matches the work of one run with the work of another.

The launches of the median steps are aligned in order, by the strictest key first: equal stack,
shape and name; then equal stack. Launches between the same two pairs on both sides replaced each
other if they are of the same operator, or if names show it. The rest is paired by name anywhere in
the step; what then remains was added or removed.

Work counts as fused only if the name of what replaced it says so: Inductor names a kernel after the
operators in it, `triton_poi_fused_add_relu_0`; an attention kernel replaces a softmax. Where
several fused kernels replaced a longer sequence, the sequence is divided in order so that each
fused kernel gets the operators it is named after.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from longpole._core import align
from longpole.words.kernel_names import family_of

if TYPE_CHECKING:
    from collections import abc

    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.sequences import Sequence

Relation = Literal[
    "same", "reshaped", "renamed", "moved", "fused", "split", "replaced", "added", "removed"
]

# The relation that each key of `Sequence.keys` establishes.
_OF_ROUND: Final[tuple[Relation, ...]] = (
    "same",
    "same",
    "reshaped",
    "renamed",
    "renamed",
    "moved",
)
_STRICT, _BY_STACK, _BY_OPERATOR, _BY_NAME = 0, 1, 2, 5

# This many times as many launches were replaced by fewer ones at the same place.
_SEVERAL: Final = 3
FUSED: Final = "fused"
# A gap that takes more steps of the search is reported as a whole.
_MOST_STEPS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Match:
    """Matching positions of one step on both sides."""

    relation: Relation
    base: tuple[int, ...]
    new: tuple[int, ...]


def match_sequences(base: Sequence, new: Sequence) -> list[Match]:
    """Match two steps; each position is in one match."""
    pairs = align([_ints(key) for key in base.keys], [_ints(key) for key in new.keys])
    found = [Match(_relation(base, new, pair), (pair[0],), (pair[1],)) for pair in pairs]
    open_base, open_new = [], []
    for old, now in _gaps(pairs, len(base.events), len(new.events)):
        for one, other in _by_class(base, new, old, now):
            if one and other:
                found += _in_gap(base, new, one, other)
            open_base += [] if other else one
            open_new += [] if one else other
    found += _moved(base, new, open_base, open_new)
    return found


def places_of(step: Sequence, usual: Sequence) -> NDArray[np.int64]:
    """Return the position of a step's events in a typical step of the run; -1 without one."""
    import numpy as np

    if len(step.events) == len(usual.events) and (step.keys[0] == usual.keys[0]).all():
        return np.arange(len(step.events))
    places = np.full(len(step.events), -1)
    pairs = align([_ints(key) for key in step.keys], [_ints(key) for key in usual.keys])
    for here, there, _ in pairs:
        places[here] = there
    return places


def _relation(base: Sequence, new: Sequence, pair: tuple[int, int, int]) -> Relation:
    """Return what a pair has in common, regardless of the round that found it."""
    old, now, found_in = pair
    for round_ in (_STRICT, _BY_STACK):
        if base.keys[round_][old] == new.keys[round_][now]:
            return "same"
    return _OF_ROUND[found_in]


def _gaps(
    pairs: list[tuple[int, int, int]], n_base: int, n_new: int
) -> list[tuple[list[int], list[int]]]:
    """List the launches between pairs."""
    gaps = []
    old, now = 0, 0
    for base, new, _ in [*pairs, (n_base, n_new, 0)]:
        gaps.append((list(range(old, base)), list(range(now, new))))
        old, now = base + 1, new + 1
    return [gap for gap in gaps if gap[0] or gap[1]]


def _by_class(
    base: Sequence, new: Sequence, old: list[int], now: list[int]
) -> list[tuple[list[int], list[int]]]:
    """Split a gap by type of activity, since a kernel never replaces a copy."""
    classes = {int(base.classes[place]) for place in old}
    classes |= {int(new.classes[place]) for place in now}
    return [
        (
            [place for place in old if base.classes[place] == kind],
            [place for place in now if new.classes[place] == kind],
        )
        for kind in sorted(classes)
    ]


def _in_gap(base: Sequence, new: Sequence, old: list[int], now: list[int]) -> list[Match]:
    """Match the launches in a gap: those of the same outermost operator, then the others."""
    of_old, of_now = _by_operator(base, old), _by_operator(new, now)
    found = []
    rest_old, rest_now = [], []
    for name in {**of_old, **of_now}:
        one, other = of_old.get(name, []), of_now.get(name, [])
        if name is not None and one and other:
            found += _alike(base, new, one, other, one_for_one="renamed")
        else:
            rest_old += one
            rest_now += other
    rest_old, rest_now = sorted(rest_old), sorted(rest_now)
    if rest_old and rest_now and _is_replaced(base, rest_old, new, rest_now):
        return found + _alike(base, new, rest_old, rest_now, one_for_one="replaced")
    found += [Match("removed", (place,), ()) for place in rest_old]
    return found + [Match("added", (), (place,)) for place in rest_now]


def _is_replaced(base: Sequence, old: list[int], new: Sequence, now: list[int]) -> bool:
    """Whether launches replaced those between the same two pairs on the other side.

    They did if names show it, or if several times as many of them are on one side, and none has a
    counterpart of its operator and name elsewhere.
    """
    if _is_evident(base, old, new, now) or _is_evident(new, now, base, old):
        return True
    if max(len(old), len(now)) < _SEVERAL * min(len(old), len(now)):
        return False
    return not (_has_any(base, old, new) or _has_any(new, now, base))


def _has_any(side: Sequence, places: list[int], other: Sequence) -> bool:
    """Whether the other side has any of some launches, by operator and name."""
    keys = set(side.keys[_BY_OPERATOR][places].tolist())
    return not keys.isdisjoint(other.keys[_BY_OPERATOR].tolist())


def _is_evident(side: Sequence, several: list[int], other: Sequence, fewer: list[int]) -> bool:
    """Whether names show that launches of other operators replaced several."""
    if not fewer or len(several) < len(fewer):
        return False
    names = _names(side, several)
    directions = _directions(names)
    if None not in directions and directions == _directions(_names(other, fewer)):
        return True
    return any(is_fused(names, other.name(place)) for place in fewer)


def _directions(names: list[str]) -> list[str | None]:
    """Return the direction of each memcpy, without the kinds of memory; None for other work."""
    return [name.split(" (")[0] if name.startswith("Memcpy ") else None for name in names]


def _by_operator(side: Sequence, places: list[int]) -> dict[str | None, list[int]]:
    """Group launches by their outermost operator; None without one."""
    found: dict[str | None, list[int]] = {}
    for place in places:
        around = side.operators_around(place)
        found.setdefault(around[-1] if around else None, []).append(place)
    return found


def _alike(
    base: Sequence, new: Sequence, old: list[int], now: list[int], *, one_for_one: Relation
) -> list[Match]:
    """Match launches that replaced each other: as many, fused or split, or with no order known."""
    if len(old) == len(now):
        return [Match(one_for_one, (one,), (other,)) for one, other in zip(old, now, strict=True)]
    if len(now) == 1:
        relation: Relation = (
            "fused" if is_fused(_names(base, old), new.name(now[0])) else "replaced"
        )
        return [Match(relation, tuple(old), tuple(now))]
    if len(old) == 1:
        relation = "split" if is_fused(_names(new, now), base.name(old[0])) else "replaced"
        return [Match(relation, tuple(old), tuple(now))]
    operators = [base.operators_around(place) for place in old]
    shared = shared_out(operators, [new.name(place) for place in now])
    if shared is None or len(now) > len(old):
        return [Match("replaced", tuple(old), tuple(now))]
    return [
        Match("fused" if end - start > 1 else "renamed", tuple(old[start:end]), (there,))
        for (start, end), there in zip(shared, now, strict=True)
    ]


def _names(side: Sequence, places: list[int]) -> list[str]:
    return [side.name(place) for place in places]


def is_fused(parts: abc.Iterable[str], whole: str) -> bool:
    """Whether the name of one kernel or operator shows that it does the work of several others.

    Examples
    --------
    >>> is_fused(["mul_kernel", "relu_kernel"], "triton_poi_fused_mul_relu_0")
    True
    >>> is_fused(["aten::to", "aten::detach"], "aten::copy_")
    False
    """
    if family_of(whole) == "attention":
        return any(family_of(part) == "softmax" for part in parts)
    return any(word in whole.lower() for word in (FUSED, "fusion"))


def _moved(base: Sequence, new: Sequence, old: list[int], now: list[int]) -> list[Match]:
    """Pair moved launches; the rest was added or removed."""
    found = []
    for round_ in (_STRICT, _BY_NAME):
        waiting = defaultdict(list)
        for place in reversed(now):
            waiting[int(new.keys[round_][place])].append(place)
        rest = []
        for place in old:
            there = waiting[int(base.keys[round_][place])]
            if there:
                found.append(Match("moved", (place,), (there.pop(),)))
            else:
                rest.append(place)
        old, now = rest, sorted(place for places in waiting.values() for place in places)
    found += [Match("removed", (place,), ()) for place in old]
    return found + [Match("added", (), (place,)) for place in now]


def _ints(keys: NDArray[np.uint64]) -> list[int]:
    whole: list[int] = keys.tolist()
    return whole


def shared_out(
    operators: abc.Sequence[abc.Sequence[str]], fused: abc.Sequence[str]
) -> list[tuple[int, int]] | None:
    """Assign launches to the fused kernels that replaced them, in order.

    Parameters
    ----------
    operators
        The operators around each launch.
    fused
        The names of the kernels that replaced them, fewer than the launches.

    Returns
    -------
    list or None
        For each fused kernel, its range of launches (end excluded); None if the names do not show
        it.

    Examples
    --------
    >>> launches = [["aten::add"], ["aten::relu"], ["aten::mul"], ["aten::relu"]]
    >>> shared_out(launches, ["triton_poi_fused_add_relu_0", "triton_poi_fused_mul_relu_1"])
    [(0, 2), (2, 4)]
    """
    if not all(FUSED in name for name in fused):
        return None
    if len(operators) ** 2 * len(fused) > _MOST_STEPS:
        return None
    words = [{word_of(name) for name in names} - {""} for names in operators]
    matched = [[{word for word in each if word in name} for each in words] for name in fused]
    return _best(matched, len(operators))


def word_of(operator: str) -> str:
    """Return the name of an operator in the form used in names of fused kernels."""
    return operator.rpartition("::")[2].strip("_").lower()


def _best(matched: list[list[set[str]]], n_launches: int) -> list[tuple[int, int]] | None:
    """Find the boundaries that assign the most launches and words."""
    # scores[end]: the best score if the kernels so far cover the launches before `end`.
    scores: dict[int, tuple[int, list[tuple[int, int]]]] = {0: (0, [])}
    for nth, words in enumerate(matched):
        last = n_launches - (len(matched) - nth - 1)
        found: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        for start, (score, borders) in scores.items():
            n_named, named = 0, set[str]()
            for end in range(start + 1, last + 1):
                n_named += bool(words[end - 1])
                named |= words[end - 1]
                total = score + n_named + len(named)
                if end not in found or total > found[end][0]:
                    found[end] = (total, [*borders, (start, end)])
        scores = found
    total, borders = scores.get(n_launches, (0, []))
    # Each kernel has to cover something; otherwise, the names do not match the gap.
    return borders if total >= 2 * len(matched) else None
