"""Programs with planted costs of recording, and what is found of them.

    python tests/oracles/planted_costs.py [FIRST:END]

A program runs without a profiler, and again with the time that a profiler adds to each class of
event: operators, nested or not, launches, Python functions and annotations.
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from longpole import Trace, read_trace
from oracles.simulator import Machine, Run
from oracles.simulator.losses import PlantedCosts, with_overhead
from oracles.simulator.program import (
    Busy,
    Launch,
    Program,
    Stream,
    Work,
    annotation,
    operator,
    python,
)

if TYPE_CHECKING:
    from oracles.simulator.program import Item

_STREAM: Final = Stream(0, 7)
_WRAPPERS: Final = ("aten::t", "aten::reshape", "aten::to", "aten::detach", "aten::linear")

WITHIN: Final = 0.2
"""A cost is found if it is at most this share off."""


@dataclass(frozen=True)
class Found:
    """What was planted, and what a trace shows of it."""

    planted: dict[str, int]
    costs: dict[str, tuple[int, int, int]]
    """The least, the usual and the most of each class."""
    real_step_ns: int
    interval_ns: tuple[int, int]

    def is_found(self, event_class: str) -> bool:
        """Whether the cost of a class is found."""
        planted, (_, usual, _) = self.planted[event_class], self.costs[event_class]
        return abs(usual - planted) <= WITHIN * planted

    def is_bounded(self, event_class: str) -> bool:
        """Whether the cost of a class lies within the printed bounds."""
        least, _, most = self.costs[event_class]
        return least <= self.planted[event_class] <= most

    @property
    def is_inside(self) -> bool:
        """Whether the real step lies within the printed interval."""
        least_ns, most_ns = self.interval_ns
        return least_ns <= self.real_step_ns <= most_ns


def found(seed: int, folder: Path) -> Found:
    """Run the program of a seed without a profiler and with one, and read both traces."""
    dice = random.Random(f"planted {seed}")  # noqa: S311 - no secret
    program, costs = _program(dice), _costs(dice)
    real = _trace(program, seed, folder).verdict()
    cost = _trace(with_overhead(program, costs), seed, folder).recording_cost()
    return Found(
        planted={
            "outer_operator": costs.operator,
            "nested_operator": costs.operator,
            "launch": costs.call,
            "python_function": costs.python,
            "annotation": costs.annotation,
        },
        costs={
            row["event_class"]: (row["least_ns"], row["cost_ns"], row["most_ns"])
            for row in cost["classes"]
        },
        real_step_ns=real.window.length_ns,
        interval_ns=(cost["least_step_ns"] or 0, cost["most_step_ns"] or 0),
    )


def _trace(program: Program, seed: int, folder: Path) -> Trace:
    Run(program, Machine(seed=seed), python_frames=True).write(folder / "trace.json")
    return read_trace(folder / "trace.json")


def _costs(dice: random.Random) -> PlantedCosts:
    """Return costs whose proportions differ from the usual ones by up to a tenth."""
    operator_ns = dice.randint(800, 4_000)

    def of(proportion: float) -> int:
        return round(operator_ns * proportion * dice.uniform(0.9, 1.1))

    return PlantedCosts(operator_ns, call=of(1.3), annotation=of(2.0), python=of(0.2))


def balanced(seed: int, folder: Path) -> Trace:
    """Record a program whose host and kernels take about equally long."""
    dice = random.Random(f"balanced {seed}")  # noqa: S311 - no secret
    program = _program(dice, kernel_ns=dice.randint(7_500, 13_500))
    return _trace(with_overhead(program, _costs(dice)), seed, folder)


def _program(dice: random.Random, kernel_ns: int | None = None) -> Program:
    kernel_ns = kernel_ns or dice.choice((1_500, 4_000, 12_000))
    n_layers = dice.randint(40, 80)
    layers = [_layer(dice, kernel_ns) for _ in range(n_layers)]
    steps = [annotation(f"ProfilerStep#{step}", *layers, step=step) for step in range(6)]
    return Program("planted costs", tuple(steps))


def _layer(dice: random.Random, kernel_ns: int) -> Item:
    """Return a function that calls others, an operator that calls another, and a launch."""
    work = Work("kernel", f"gemm_{dice.randrange(3)}", kernel_ns)
    launch = operator("aten::add", Busy(dice.randint(500, 2_500)), Launch((work,), _STREAM))
    body: list[Item] = [
        *(it for row in range(3) for it in (python(f"m.py({row}): small", Busy(300)), Busy(50))),
        Busy(dice.randint(300, 3_000)),
        operator(dice.choice(_WRAPPERS), Busy(80), launch, Busy(40)),
        operator("aten::view", Busy(dice.randint(200, 700))),
    ]
    if dice.random() < 0.3:
        body = [annotation("forward", *body)]
    return python("model.py(10): forward", *body)


def main() -> None:
    """Print how often each cost is found, and how often the step lies in its interval."""
    first, _, end = (sys.argv[1:] or ["0:30"])[0].partition(":")
    with tempfile.TemporaryDirectory() as folder:
        rows = [found(seed, Path(folder)) for seed in range(int(first), int(end))]
    for event_class in rows[0].planted:
        n_found = sum(row.is_found(event_class) for row in rows)
        n_bounded = sum(row.is_bounded(event_class) for row in rows)
        print(f"{event_class}: {n_found} within 20 %, {n_bounded} in the bounds")  # noqa: T201
    print(f"step: {sum(row.is_inside for row in rows)} of {len(rows)} in the interval")  # noqa: T201


if __name__ == "__main__":
    main()
