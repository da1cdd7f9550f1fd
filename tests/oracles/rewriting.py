"""Pairs of simulated runs of which it is known what became of what."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longpole.diffs.matching import match_sequences
from longpole.diffs.sequences import activities
from oracles.simulator import Machine, Run, Scale
from oracles.simulator.program import Backward, Busy, Frame, Launch
from oracles.simulator.programs import training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Sequence as Row

    from longpole.diffs.sequences import Sequence
    from longpole.diffs.sides import Side
    from oracles.simulator.program import Item, Program


@dataclass
class Rewritten:
    """A program, and from which launches of the original each of its launches came.

    Launches are counted through all steps, in the order in which they are made.
    """

    program: Program
    origins: list[tuple[int, ...]]


def run_of(program: Program, seed: int, *, spread: float = 0.02, **options: bool) -> Run:
    """Run a program on a machine with so much noise."""
    return Run(program, Machine(seed=seed, spread=spread), **options)


def slowed(program: Program, name: str, seed: int, by: float) -> Run:
    """Run a program of which the kernels of a name take `by` times as long."""
    changes = [Scale("kernel", f"^{re.escape(name)}$", by=by)]
    return Run(program, Machine(seed=seed, spread=0.02), changes)


def launch_names(program: Program) -> list[str]:
    """Return the names of the GPU activities, in the order of their launches."""
    return [launch.works[0].name for launch in _launches(program.main)]


def edited(program: Program, edit: Callable[[Item], Iterable[Item]]) -> Program:
    """Return a program in which a function replaced every item by others, innermost first."""

    def body(items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            has_body = isinstance(item, Frame | Backward)
            yield from edit(replace(item, body=tuple(body(item.body))) if has_body else item)

    return replace(program, main=tuple(body(program.main)))


def rewritten(program: Program, seed: int, *, rename: float = 0.0, fuse: float = 0.0) -> Rewritten:
    """Rename a share of the kernels, and fuse a share of the pairs of neighbouring operators."""
    dice = random.Random(f"rewritten {seed}")  # noqa: S311 - no secret
    names = sorted({name for name in launch_names(program) if not name.startswith("Mem")})
    renamed = {name: f"renamed_{number}_kernel" for number, name in enumerate(names)}
    chosen = {name: new for name, new in renamed.items() if dice.random() < rename}
    return _Rewriter(chosen, fuse, dice).rewritten(program)


def other_device(program: Program) -> Rewritten:
    """Return every kernel the name that another device's libraries would give it."""
    names = sorted({name for name in launch_names(program) if not name.startswith("Mem")})
    return _Rewriter(
        {name: f"sm90_{number}_kernel" for number, name in enumerate(names)},
        0.0,
        random.Random(0),  # noqa: S311 - no secret
    ).rewritten(program)


def truly_matched(base: Side, new: Side, origins: list[tuple[int, ...]]) -> tuple[int, int]:
    """Match the median steps; give how many launches have the right counterparts, and all.

    Every step makes the same launches.
    """
    usual = [activities(side)[side.median_row] for side in (base, new)]
    nth = [_in_order_of_calls(side, step) for side, step in zip((base, new), usual, strict=True)]
    truth: dict[int, set[int]] = {number: set() for number in range(len(nth[0]))}
    for number, sources in enumerate(origins[: len(nth[1])]):
        for source in sources:
            truth[source].add(number)
    found: dict[int, set[int]] = {}
    for match in match_sequences(*usual):
        for place in match.base:
            found[nth[0][place]] = {nth[1][there] for there in match.new}
    return sum(found[number] == truth[number] for number in truth), len(truth)


def _in_order_of_calls(side: Side, step: Sequence) -> list[int]:
    """Return which launch of the step each place is."""
    calls = dict(side.trace.launches.select("event", "call").iter_rows())
    starts = side.trace.events["start_ns"]
    order = sorted(range(len(step.events)), key=lambda n: starts[calls[int(step.events[n])]])
    nth = [0] * len(order)
    for number, place in enumerate(order):
        nth[place] = number
    return nth


def with_layers(program: Program, larger: Program, n_layers: tuple[int, int]) -> Rewritten:
    """Return a program of the same layers and more of them behind, as one made from the other.

    `n_layers` are those of both. A launch comes from the one of the same layer, pass and place.
    """
    labels = [_labels(each, n) for each, n in zip((program, larger), n_layers, strict=True)]
    number = {label: launch for launch, label in enumerate(labels[0])}
    origins = [(number[label],) if label in number else () for label in labels[1]]
    return Rewritten(larger, origins)


def _labels(program: Program, n_layers: int) -> list[tuple[object, ...]]:
    """Return for each launch its layer, and its index within its frame."""
    found: list[tuple[object, ...]] = []
    counts: Counter[tuple[object, ...]] = Counter()
    first = min(f.sequence for f in _frames(program.main) if f.sequence is not None)
    place: list[object] = [None, None]

    def walk(items: Row[Item]) -> None:
        for item in items:
            if isinstance(item, Launch):
                counts[tuple(place)] += 1
                found.append((*place, counts[tuple(place)]))
            elif isinstance(item, Frame | Backward):
                _enter(item, place, first, n_layers)
                walk(item.body)

    walk(program.main)
    return found


def _enter(item: Item, place: list[object], first: int, n_layers: int) -> None:
    """Note the step, and the layer and pass, that begin with a frame."""
    if not isinstance(item, Frame):
        return
    if item.step is not None:
        place[:] = [item.step, "before"]
    if re.search(r"^nn\.Module: .*_(\d+)$", item.name):
        place[1] = ("forward", int(item.name.rpartition("_")[2]))
    elif item.sequence is not None and item.name.startswith("autograd::"):
        place[1] = ("backward", (item.sequence - first) % n_layers)
    elif item.name.startswith(("Optimizer.step", "aten::nll_loss", "aten::item")):
        place[1] = item.name


def _frames(items: Row[Item]) -> Iterator[Frame]:
    for item in items:
        if isinstance(item, Frame):
            yield item
        if isinstance(item, Frame | Backward):
            yield from _frames(item.body)


class _Rewriter:
    """Walks a program in the order of its launches and writes it anew."""

    def __init__(self, names: dict[str, str], fuse: float, dice: random.Random) -> None:
        self.names = names
        self.fuse = fuse
        self.dice = dice
        self.origins: list[tuple[int, ...]] = []
        self.n_launches = 0
        self.decisions: dict[tuple[str, ...], bool] = {}

    def rewritten(self, program: Program) -> Rewritten:
        main = self._body(program.main)
        return Rewritten(replace(program, main=main), self.origins)

    def _item(self, item: Item) -> Item:
        match item:
            case Frame():
                return replace(item, body=self._body(item.body))
            case Backward():
                return replace(item, body=self._body(item.body))
            case Launch():
                self.origins.append((self.n_launches,))
                self.n_launches += 1
                works = tuple(replace(w, name=self.names.get(w.name, w.name)) for w in item.works)
                return replace(item, works=works)
        return item

    def _body(self, body: Row[Item]) -> tuple[Item, ...]:
        items: list[Item] = []
        waiting = list(body)
        while waiting:
            item = waiting.pop(0)
            # The host does something of its own between two operators of a model.
            after = next((n for n, each in enumerate(waiting) if not isinstance(each, Busy)), None)
            if after is not None and self._is_fused(item, waiting[after]):
                items.append(self._fused(item, waiting[after]))
                del waiting[: after + 1]
            else:
                items.append(self._item(item))
        return tuple(items)

    def _is_fused(self, one: Item, other: Item) -> bool:
        """Fuse the same neighbours wherever they stand, as a compiler would."""
        if not (_is_simple(one) and _is_simple(other)):
            return False
        key = (one.name, other.name)
        if key not in self.decisions:
            self.decisions[key] = self.dice.random() < self.fuse
        return self.decisions[key]

    def _fused(self, one: Frame, other: Frame) -> Frame:
        [first], [second] = _launches([one]), _launches([other])
        self.origins.append((self.n_launches, self.n_launches + 1))
        self.n_launches += 2
        works = (first.works[0], second.works[0])
        short = "_".join(re.sub(r".*::", "", frame.name) for frame in (one, other))
        work = replace(
            works[0],
            name=f"triton_poi_fused_{short}",
            nominal_ns=(works[0].nominal_ns + works[1].nominal_ns) * 6 // 10,
        )
        launch = replace(first, works=(work,))
        return replace(one, name=f"fused_{short}", body=(launch,))


def _is_simple(item: Item) -> bool:
    """Whether an operator launches one kernel on a stream that needs no events."""
    if not isinstance(item, Frame) or item.category != "cpu_op":
        return False
    launches = list(_launches([item]))
    return len(launches) == 1 and launches[0].works[0].category == "kernel"


def _launches(items: Row[Item]) -> Iterator[Launch]:
    for item in items:
        if isinstance(item, Launch):
            yield item
        elif isinstance(item, Frame | Backward):
            yield from _launches(item.body)


def a_training(seed: int, **options: int) -> Program:
    """Return a training program without communication, one launch after the other."""
    return training(seed, **{"steps": 8, "layers": 6, "world_size": 1, **options})
