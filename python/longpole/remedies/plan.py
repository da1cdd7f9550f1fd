"""The plan: remedies one after another, with what each saves then and all save together.

At each place stands the remedy that saves most after those before it; of those within 3 points, the
one of least effort. Removing an obstacle counts with what it opens: a remedy is looked for again in
the facts without what the earlier ones removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.engine.critical_path.changes import RemoveWait
from longpole.remedies.gains import (
    WORTH_SAYING,
    Saving,
    beyond,
    extended,
    gains_of,
    measured,
    unmeasured,
    values_of,
    widened,
)
from longpole.remedies.gone import Claims, claims_of, removed_by, unclaimed, waits_removed
from longpole.remedies.model import EFFORTS
from longpole.remedies.spans import Gone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts, Query
    from longpole.remedies.gains import Gain
    from longpole.remedies.model import Found, Remedy

MOST_LINES: Final = 4
"""Maximum number of lines of a plan."""

# Savings that differ by less count as alike: the easier change comes first.
_ALIKE: Final = 0.03

# Maximum number of remedies tried at each place, of these that may open others, and of exchanges.
_MOST_TRIED: Final = 8
_MOST_OPENING: Final = 2
_MOST_EXCHANGED: Final = 6

# Least that a remedy saves without what stands in its way, for that to be said.
_LEAST_OPENED: Final = 0.05

# Maximum number of places of one remedy that are tried.
_MOST_OF_ONE: Final = 8

# Least number of lines that one remedy replaces.
_FEWEST_CONTAINED: Final = 2

# A remedy that mostly claims what a line claims is an alternative to it.
_MOSTLY: Final = 0.5

Key = tuple[str, str | None]
"""What identifies a place to which a remedy applies: the remedy and the name of the place."""


@dataclass(frozen=True)
class Line:
    """A line of a plan."""

    remedy: Remedy
    found: Found
    """The place, after the lines before it; its changes touch nothing that those claim."""
    then: Saving
    gain: Gain
    """What this line and those before it save together."""
    parts: tuple[Candidate, ...] = ()
    """Other places that the same change fixes."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """What identifies the place and its parts."""
        return self.key, *(part.key for part in self.parts)

    @property
    def key(self) -> Key:
        """What identifies the place."""
        return self.remedy.id, self.found.name


class Obstacle(NamedTuple):
    """Calls that no remedy removes, and that prevent a remedy."""

    name: str
    """The operator or call that is most often in the way."""
    per_window: float
    remedy: str
    more: float
    """What the remedy would save after the plan without any of these calls."""


@dataclass(frozen=True)
class Plan:
    """Remedies that work together."""

    lines: tuple[Line, ...] = ()
    alternatives: Mapping[Key, int] = field(default_factory=dict)
    """For each remedy that changes what a line changes, the index of that line."""
    rest: Mapping[Key, float] = field(default_factory=dict)
    """For each remedy outside the plan, what it would save after all lines."""
    obstacle: Obstacle | None = None
    """What stands in the way of one more line."""

    @property
    def gain(self) -> Gain | None:
        """What all lines save together; None without lines."""
        return self.lines[-1].gain if self.lines else None

    @property
    def is_certain(self) -> bool:
        """Whether each line is known to be possible."""
        return not any(line.remedy.is_upper_bound for line in self.lines)


class Candidate(NamedTuple):
    """A place to which a remedy applies."""

    remedy: Remedy
    found: Found
    parts: tuple[Candidate, ...] = ()
    """Other places that the same change fixes; `found` contains their changes."""

    @property
    def key(self) -> Key:
        """What identifies the place."""
        return self.remedy.id, self.found.name

    @property
    def changes(self) -> tuple[Change, ...]:
        """The certain and the possible changes."""
        return (*self.found.careful, *self.found.hopeful)


class Search:
    """What each remedy finds in some facts, and the queries on which that depends."""

    def __init__(self, facts: Facts, remedies: Sequence[Remedy]) -> None:
        self.facts, self.remedies = facts, remedies
        self.failures: dict[str, str] = {}
        """Why a remedy failed, by its id."""
        self._known: dict[str, tuple[list[Found], set[Query]]] = {}

    @classmethod
    def of(cls, facts: Facts, remedies: Sequence[Remedy]) -> Search:
        """Search the places of all remedies."""
        found = cls(facts, remedies)
        for remedy in remedies:
            found._look_for(remedy)
        return found

    def _look_for(self, remedy: Remedy) -> None:
        try:
            self._known[remedy.id] = self.facts.asked_by(remedy.find)
        except Exception as error:  # noqa: BLE001 - one failing remedy must not break the verdict
            self.failures[remedy.id] = ": ".join(filter(None, [type(error).__name__, str(error)]))

    def after(self, changes: Sequence[Change]) -> Search:
        """Search again after changes, only what depends on a query that returns less than before.

        A remedy that found nothing finds nothing after changes either, unless these remove what
        prevented it, or it was not searched because its side gains little.
        """
        found = Search(self._left(changes), self.remedies)
        found._known = {**self._known}
        lost: dict[Query, bool] = {}
        for remedy in self.remedies:
            founds, asked = self._known.get(remedy.id, ([], set()))
            if founds or remedy.has_obstacles or "gains" in asked:
                for query in asked - lost.keys():
                    lost[query] = found.facts.has_lost(query, self.facts)
                if any(lost[query] for query in asked):
                    found._look_for(remedy)
        return found

    def opened_by(self, changes: Sequence[Change]) -> Search:
        """Search again after changes what these may open."""
        found = Search(self._left(changes, is_open=True), self.remedies)
        for remedy in self.remedies:
            if remedy.has_obstacles and remedy.id in self._known:
                found._look_for(remedy)
        return found

    def without(self, calls: Collection[int]) -> Search:
        """Search again without calls that can prevent a remedy."""
        gone = Gone(self.facts.gone.events | {*calls}, self.facts.gone.spans)
        found = Search(self.facts.without(gone, (), is_open=True), self.remedies)
        for remedy in self.remedies:
            if remedy.has_obstacles and remedy.id in self._known:
                found._look_for(remedy)
        return found

    def _left(self, changes: Sequence[Change], *, is_open: bool = False) -> Facts:
        """Return the facts without what changes remove."""
        return self.facts.without(removed_by(self.facts, changes), changes, is_open=is_open)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the places to which remedies apply."""
        for remedy in self.remedies:
            founds, _ = self._known.get(remedy.id, ([], set()))
            for found in founds[:_MOST_OF_ONE]:
                yield Candidate(remedy.at(found), found)


SearchOf = Callable[[Any], Search]
"""What returns the places that are found in some facts."""


@dataclass(frozen=True)
class _State:
    """The lines so far, and what they leave."""

    search: Search
    lines: tuple[Candidate, ...] = ()
    changes: tuple[Change, ...] = ()
    claims: Claims = field(default_factory=Claims)
    values: tuple[float, ...] = ()
    """What each line saves with those before it."""

    @property
    def value(self) -> float:
        """What all lines save."""
        return self.values[-1] if self.values else 0.0

    def left(self, one: Candidate) -> Candidate:
        """Return a candidate, limited to what the lines do not claim."""
        facts = self.search.facts
        careful = unclaimed(facts, one.found.careful, self.claims)
        hopeful = unclaimed(facts, one.found.hopeful, self.claims)
        return one._replace(found=replace(one.found, careful=careful, hopeful=hopeful))

    def with_line(self, one: Candidate, value: float, search: Search) -> _State:
        """Return the state after one more line."""
        claims = self.claims | claims_of(self.search.facts, one.changes)
        changes = (*self.changes, *one.found.careful)
        return _State(search, (*self.lines, one), changes, claims, (*self.values, value))


class _Tried(NamedTuple):
    one: Candidate
    value: float
    """What it saves with the lines before it."""
    score: float
    """The same, with what it opens."""


def plan_of(facts: Facts, search_of: SearchOf, alone: Mapping[Key, float]) -> Plan:
    """Choose the lines of the plan; `alone` is what each place saves by itself."""
    search = search_of(facts)
    start_up = [one for one in search.candidates() if one.found.takes is not None]
    if start_up:
        return Plan(_lines(facts, start_up[:1]))
    state = _State(search)
    last = _tried(state, alone)
    opened = _opened(state, last)
    while len(state.lines) < MOST_LINES:
        best = _best(state, [_scored(state, row, opened.get(row.one.key, 0.0)) for row in last])
        if best is None:
            break
        after = state.search.after(best.one.found.careful)
        state = state.with_line(best.one, best.value, after)
        last = _tried(state, alone)
    state = _exchanged(state, search, alone)
    state = _contained(state, search)
    obstacle = _obstacle(state)
    state = replace(state, lines=_joined(facts, state.lines))
    state, lines = _sure(facts, state, opened)
    lines = _at_ends(facts, lines, search_of)
    chosen = {key for line in lines for key in line.keys}
    others = [it for it in search.candidates() if it.key not in chosen]
    rest = {row.one.key: row.value - state.value for row in last}
    return Plan(lines, _alternatives(facts, state.lines, others), rest, obstacle)


def _exchanged(state: _State, search: Search, alone: Mapping[Key, float]) -> _State:
    """Exchange the line for which another remedy saves most more, if one does.

    A remedy that claims what an early line claims may save more with the later lines than it did
    by itself.
    """
    before = (0.0, *state.values)
    thens = [after - first for first, after in pairwise(before)]
    chosen = {one.key for one in state.lines}
    others = [it for it in search.candidates() if it.remedy.is_computed and it.key not in chosen]
    pairs = [
        (place, one)
        for one in sorted(others, key=lambda it: -alone.get(it.key, 0.0))
        for place, then in enumerate(thens)
        if _weight(one) * alone.get(one.key, 0.0) > then + _ALIKE
    ][:_MOST_EXCHANGED]
    tried = []
    for place, one in pairs:
        kept = [line for at, line in enumerate(state.lines) if at != place]
        claims = Claims()
        for line in kept:
            claims |= claims_of(search.facts, line.changes)
        careful = unclaimed(search.facts, one.found.careful, claims)
        tried.append([change for line in kept for change in line.found.careful] + careful)
    values = values_of(search.facts.core, tried)
    best = max(range(len(pairs)), key=values.__getitem__, default=None)
    if best is None or values[best] <= state.value + _ALIKE:
        return state
    place, one = pairs[best]
    kept = [line for at, line in enumerate(state.lines) if at != place]
    return _in_order(search, [one.key, *(line.key for line in kept)])


def _contained(state: _State, search: Search) -> _State:
    """Replace lines by a remedy that contains them, if it saves about as much: it is one change."""
    facts = search.facts
    for one in search.candidates():
        parts = [line for line in state.lines if _contains(facts, one, line)]
        is_as_sure = all(
            line.remedy.is_upper_bound or not one.remedy.is_upper_bound for line in parts
        )
        if len(parts) < _FEWEST_CONTAINED or not is_as_sure or not one.remedy.is_computed:
            continue
        first, *others = parts
        kept = [line for line in state.lines if line not in others]
        keys = [one.key if line is first else line.key for line in kept]
        found = _in_order(search, keys)
        if len(found.lines) == len(keys) and found.value >= state.value - _ALIKE:
            return found
    return state


def _contains(facts: Facts, one: Candidate, line: Candidate) -> bool:
    """Whether a remedy changes most of what a line changes, and removes its waits."""
    if one.key == line.key:
        return True
    own, waits = _claims(facts, line), waits_removed(facts, line.changes)
    own_ns = own.total_ns(facts)
    surely = claims_of(facts, one.found.careful)
    left_ns = own.without(surely).total_ns(facts)
    left = waits - waits_removed(facts, one.found.careful)
    has_most = left_ns <= (1 - _MOSTLY) * own_ns and len(left) <= (1 - _MOSTLY) * len(waits)
    return has_most and bool(own_ns or waits)


def _joined(facts: Facts, lines: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Join the lines that removing the code of one place fixes."""
    found: list[Candidate] = []
    for line in lines:
        at = next((at for at, it in enumerate(found) if _are_one(facts, it, line)), None)
        if at is None:
            found.append(line)
        else:
            found[at] = _together(found[at], line)
    return tuple(found)


def _are_one(facts: Facts, one: Candidate, other: Candidate) -> bool:
    """Whether two lines remove code of one function, or code and the wait next to it."""
    if not (one.remedy.removes_code and other.remedy.removes_code):
        return False
    functions = {_function(facts, it) for it in (one, other)}
    if len(functions) == 1 and None not in functions:
        return True
    return _waits_in(facts, one, other) or _waits_in(facts, other, one)


def _waits_in(facts: Facts, one: Candidate, other: Candidate) -> bool:
    """Whether a line only removes waits, and another one removes these with the code next to it."""
    waits = waits_removed(facts, one.changes)
    has_only_waits = all(isinstance(change, RemoveWait) for change in one.found.careful)
    return bool(waits) and has_only_waits and waits <= waits_removed(facts, other.changes)


def _function(facts: Facts, one: Candidate) -> str | None:
    return facts.own_frame(one.found.events[0]) if one.found.events else None


def _together(one: Candidate, other: Candidate) -> Candidate:
    """Return two lines as one, in the words of the first."""
    first, second = one.found, other.found
    found = replace(
        first,
        careful=[*first.careful, *second.careful],
        hopeful=[*(first.hopeful or first.careful), *(second.hopeful or second.careful)],
        evidence="; ".join(filter(None, [first.evidence, second.evidence])),
    )
    is_sure = not (one.remedy.is_upper_bound or other.remedy.is_upper_bound)
    remedy = replace(one.remedy, is_upper_bound=not is_sure)
    return Candidate(remedy, found, (*one.parts, other))


def _in_order(search: Search, keys: Sequence[Key]) -> _State:
    """Return the state after places in an order, without those that others leave nothing of."""
    state = _State(search)
    for key in keys:
        ones = (it for it in state.search.candidates() if it.key == key)
        one = next(map(state.left, ones), None)
        if one is None or not one.found.careful:
            continue
        [value] = values_of(search.facts.core, [(*state.changes, *one.found.careful)])
        state = state.with_line(one, value, state.search.after(one.found.careful))
    return state


def _weight(one: Candidate) -> float:
    """Return how much of a saving counts: half, if it may not be possible."""
    return 0.5 if one.remedy.is_upper_bound else 1.0


def _obstacle(state: _State) -> Obstacle | None:
    """Return what no remedy removes and what prevents another from saving much."""
    facts = state.search.facts
    chosen = {one.remedy.id for one in state.lines}
    closed = {it.id for it in state.search.remedies if it.has_obstacles} - chosen
    if not closed or len(state.lines) == MOST_LINES or facts.gains_less("host", _LEAST_OPENED):
        return None
    calls = [wait.call for wait in facts.waits]
    calls += facts.calls("allocate", "free", "blocking_copy")
    events = {call.event for call in calls}
    if not events:
        return None
    search = state.search.without(events)
    ones = [state.left(it) for it in search.candidates() if it.remedy.id in closed]
    sets = [(*state.changes, *one.found.careful) for one in ones]
    values = values_of(facts.core, sets)
    best = max(range(len(ones)), key=values.__getitem__, default=None)
    if best is None or values[best] - state.value < _LEAST_OPENED:
        return None
    names = Counter(_place_of(facts, event) for event in sorted(events))
    [(name, number)] = names.most_common(1)
    more = values[best] - state.value
    return Obstacle(name, facts.per_window(number), ones[best].remedy.id, more)


def _place_of(facts: Facts, event: int) -> str:
    """Return the outermost operator around a call, or its own name without one."""
    operators = [name for _, kind, name in facts.around(event) if kind == "operator"]
    return operators[-1] if operators else facts.name(event)


def _sure(facts: Facts, state: _State, openers: Collection[Key]) -> tuple[_State, tuple[Line, ...]]:
    """Return the lines that surely save enough, or open the next one."""
    lines = _lines(facts, state.lines)
    for place in reversed(range(len(lines))):
        is_opener = lines[place].key in openers and place + 1 < len(lines)
        is_refuted = place == 0 and lines[place].remedy.is_refuted
        if is_refuted or (lines[place].then.low < WORTH_SAYING and not is_opener):
            left = replace(state, lines=(*state.lines[:place], *state.lines[place + 1 :]))
            is_last = place + 1 == len(lines)
            if not is_last:
                return _sure(facts, left, openers)
            state, lines = left, lines[:place]
    return state, lines


def lines_of(
    facts: Facts, search_of: SearchOf, keys: Sequence[Key], ids: Collection[str]
) -> tuple[Line, ...]:
    """Return lines for some places in their order, then those that they open of some remedies."""
    state, left = _State(search_of(facts)), [*keys]
    while True:
        ones = {it.key: it for it in state.search.candidates() if it.remedy.id in ids}
        taken = {one.key for one in state.lines}
        key = next((key for key in (*left, *ones) if key in ones and key not in taken), None)
        if key is None:
            return _at_ends(facts, _lines(facts, state.lines), search_of)
        one = state.left(ones[key])
        state = state.with_line(one, 0.0, state.search.after(one.found.careful))


def _tried(state: _State, alone: Mapping[Key, float]) -> list[_Tried]:
    """Try the remedies with the largest gains after the lines so far."""
    chosen = {one.key for one in state.lines}
    ones = [it for it in state.search.candidates() if it.remedy.is_computed]
    ones = [it for it in ones if it.key not in chosen]
    # What applies only after earlier lines has no gain of its own yet.
    ones.sort(key=lambda it: -alone.get(it.key, 1.0))
    ones = [state.left(one) for one in ones[:_MOST_TRIED]]
    ones = [one for one in ones if one.found.careful]
    sets = [(*state.changes, *one.found.careful) for one in ones]
    values = values_of(state.search.facts.core, sets)
    return [_Tried(one, value, value) for one, value in zip(ones, values, strict=True)]


def _opened(state: _State, tried: list[_Tried]) -> dict[Key, float]:
    """Return for remedies that remove obstacles what another one saves after them, and only then.

    Those with the largest gains are tried, once: before the first line.
    """
    opening = sorted(
        (row for row in tried if _removes_waits(row.one.found)), key=lambda row: -row.value
    )
    alone = {row.one.key: row.value for row in tried}
    pairs: list[tuple[_Tried, Candidate]] = []
    sets: list[tuple[Change, ...]] = []
    for row in opening[:_MOST_OPENING]:
        search = state.search.opened_by(row.one.found.careful)
        after = state.with_line(row.one, row.value, search)
        for one in map(after.left, search.candidates()):
            pairs.append((row, one))
            sets.append((*after.changes, *one.found.careful))
    found: dict[Key, float] = {}
    values = values_of(state.search.facts.core, sets)
    for (row, one), value in zip(pairs, values, strict=True):
        more = value - row.value
        if more - alone.get(one.key, 0.0) >= WORTH_SAYING:
            found[row.one.key] = max(found.get(row.one.key, 0.0), more)
    return found


def _scored(state: _State, row: _Tried, opened: float) -> _Tried:
    """Count half of what a remedy saves together with what it opens, which is another line.

    Of a remedy that may not be possible, half counts, but not of what only it opens.
    """
    own = row.value - state.value
    pair = (own + opened) / 2 if opened else 0.0
    return row._replace(score=state.value + max(_weight(row.one) * own, pair))


def _removes_waits(found: Found) -> bool:
    return any(isinstance(change, RemoveWait) for change in found.careful)


def _best(state: _State, tried: Sequence[_Tried]) -> _Tried | None:
    """Return the remedy that saves most; of those that save about as much, the easiest."""
    worth = [row for row in tried if row.score - state.value >= WORTH_SAYING]
    worth = [row for row in worth if state.lines or not row.one.remedy.is_refuted]
    most = max(worth, key=lambda row: row.score, default=None)
    if most is None:
        return None
    alike = [row for row in worth if row.score >= most.score - _ALIKE]
    return min((row for row in alike if row.value >= most.value - _ALIKE), key=_ease)


def _ease(row: _Tried) -> tuple[int, bool, float]:
    remedy = row.one.remedy
    return EFFORTS.index(remedy.effort), remedy.is_upper_bound, -row.score


# What the lines save.


def _lines(facts: Facts, ones: Sequence[Candidate]) -> tuple[Line, ...]:
    """Compute what the chosen lines save, within bounds for every cost of recording."""
    careful: list[tuple[Change, ...]] = [()]
    hopeful: list[tuple[Change, ...]] = [()]
    mixed = []
    for one in ones:
        most = one.found.hopeful or one.found.careful
        mixed += [(*hopeful[-1], *most), (*careful[-1], *most), (*hopeful[-1], *one.found.careful)]
        careful.append((*careful[-1], *one.found.careful))
        hopeful.append((*hopeful[-1], *most))
    gains = gains_of(facts.core, [*zip(careful, hopeful, strict=True)][1:])
    values = iter(values_of(facts.core, mixed))
    lines: list[Line] = []
    of_unmeasured = 0.0
    is_wider = False
    before: Gain | None = None
    least = most_before = 0.0
    for one, gain in zip(ones, gains, strict=True):
        all_most, with_most, with_least = next(values), next(values), next(values)
        then = Saving(gain.low, gain.value, gain.high)
        if before is not None:
            steps = [gain.value - least, all_most - most_before]
            steps += [with_most - least, with_least - most_before]
            low = min(*steps, gain.low - before.low)
            high = max(*steps, gain.high - before.high)
            then = Saving(low, gain.value - least, high)
        all_of_sides = most_of(facts, gain)
        is_wider = is_wider or one.remedy.may_exceed
        of_unmeasured += 0.0 if one.remedy.is_measured else then.value
        total = measured(gain, all_of_sides) if is_wider else gain
        total = unmeasured(total, of_unmeasured, all_of_sides) if of_unmeasured else total
        then = _by_evidence(one.remedy, then, all_of_sides)
        lines.append(Line(one.remedy, one.found, then, total, one.parts))
        before, least, most_before = gain, gain.value, all_most
    return tuple(lines)


def _by_evidence(remedy: Remedy, then: Saving, most: float) -> Saving:
    """Widen what a line saves by what was measured of its remedy."""
    if not remedy.is_measured:
        low, high = widened(then.low, then.high, then.value, most=most)
        return Saving(low, then.value, high)
    return replace(then, high=beyond(then.high, most)) if remedy.may_exceed else then


def most_of(facts: Facts, gain: Gain) -> float:
    """Return what all that a gain shortens takes, at most."""
    sides = facts.parts["gains"]
    return min(sum(max(sides[side].high, 0.0) for side in gain.sides if side in sides), 1.0)


def _at_ends(facts: Facts, lines: tuple[Line, ...], search_of: SearchOf) -> tuple[Line, ...]:
    """Extend what the lines save to what they save if a step takes another measured time."""
    for end in facts.ends():
        state = _State(search_of(end))
        for line in lines:
            of_key = {it.key: it for it in state.search.candidates()}
            if not of_key.keys() >= {*line.keys}:
                break
            first, *parts = (state.left(of_key[key]) for key in line.keys)
            left = reduce(_together, parts, first)
            state = state.with_line(left, 0.0, state.search.after(left.found.careful))
        if len(state.lines) == len(lines):
            others = _lines(end, state.lines)
            lines = tuple(map(_extended, lines, others))
    return lines


def _extended(line: Line, other: Line) -> Line:
    low, high = min(line.then.low, other.then.low), max(line.then.high, other.then.high)
    then = replace(line.then, low=low, high=high)
    return replace(line, then=then, gain=extended(line.gain, other.gain))


def _alternatives(
    facts: Facts, lines: Sequence[Candidate], others: Iterable[Candidate]
) -> dict[Key, int]:
    """Return for each other remedy that changes mostly what a line changes the index of it."""
    of_lines = [_claims(facts, line) for line in lines]
    found = {}
    for one in others:
        own = _claims(facts, one)
        own_ns = own.total_ns(facts)
        lefts = [own.without(other).total_ns(facts) for other in of_lines]
        if own_ns and lefts and min(lefts) <= (1 - _MOSTLY) * own_ns:
            found[one.key] = lefts.index(min(lefts))
    return found


def _claims(facts: Facts, one: Candidate) -> Claims:
    return claims_of(facts, one.changes)
