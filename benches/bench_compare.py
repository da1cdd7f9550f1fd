"""How often a comparison is right: simulated runs, and turns on this machine.

Prints the tables of benches/accuracy.md. Run sizes are those of a table that is printed in a few
minutes; `--repetitions` asks for more.
"""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from longpole.bench import Verdict, compare
from longpole.bench.comparison.differences import LOOKS

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def normal(generator: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Bell-shaped noise."""
    return generator.normal(0, 1, size)


def heavy_tails(generator: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Noise with long tails."""
    return generator.standard_t(3, size)


def two_speeds(generator: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Noise of two kinds of runs, 5 spreads apart."""
    return generator.normal(0, 0.3, size) + 5 * (generator.random(size) < 0.4)


def wild_runs(generator: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Noise with a wild run in every seven."""
    wild = np.where(generator.random(size) < 0.15, generator.exponential(25, size), 0)
    return generator.normal(0, 1, size) + wild


def correlated(generator: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Noise in which a run is much like the one before (AR(1), 0.95)."""
    noise = generator.normal(0, 1, size)
    for place in range(1, size[-1]):
        noise[..., place] = 0.95 * noise[..., place - 1] + np.sqrt(1 - 0.95**2) * noise[..., place]
    return noise


SHAPES = {
    "normal": normal,
    "heavy tails (t, 3)": heavy_tails,
    "two speeds, 5 spreads apart": two_speeds,
    "15 % wild runs": wild_runs,
}


def separate(logs: np.ndarray, start_s: float, key: str = "k") -> list[dict]:
    """Give a record for each run; both sides alternate unless one starts much later."""
    return [
        {
            "key": key,
            "outcome": "ok",
            "samples_ns": [1e6 * float(np.exp(log))],
            "started_at": (EPOCH + timedelta(seconds=start_s + 2 * number)).isoformat(),
            "sampling": {"looks": list(LOOKS)},
        }
        for number, log in enumerate(logs)
    ]


def in_turns(numbers: np.ndarray) -> list[dict]:
    """Give the records of runs in which two sides took turns."""
    rows = []
    for number, change in enumerate(numbers):
        names = {"run": f"r{number}", "pair": f"r{number}"}
        for key, log in (("old", 0.0), ("new", float(change))):
            rows += [{**row, **names} for row in separate(np.array([log]), 2.0 * number, key)]
    return rows


def plan(verdict_at: list[Verdict]) -> tuple[Verdict, int]:
    """Give the first verdict that is no abstention, and the runs it took."""
    for verdict, n_runs in zip(verdict_at, LOOKS, strict=True):
        if verdict is not Verdict.INCONCLUSIVE:
            return verdict, n_runs
    return Verdict.INCONCLUSIVE, LOOKS[-1]


def change_in_turns(shape: Callable, generator: np.random.Generator) -> np.ndarray:
    """Give the log change of each run: what both sides have of their own."""
    sides = shape(generator, (2, LOOKS[-1]))
    return 0.003 / np.sqrt(2) * (sides[1] - sides[0])


def judge_turns(numbers: np.ndarray, gate: float) -> tuple[Verdict, int]:
    """Judge by the plan of three looks, in turns."""
    found = []
    for n_runs in LOOKS:
        rows = in_turns(numbers[:n_runs])
        found.append(compare(rows, rows, gate, base_key="old", new_key="new").verdict)
        if found[-1] is not Verdict.INCONCLUSIVE:
            break
    return plan(found + [Verdict.INCONCLUSIVE] * (3 - len(found)))


def judge_separate(
    base: np.ndarray, new: np.ndarray, gate: float, lag_s: float
) -> tuple[Verdict, int]:
    """Judge by the plan of three looks, separate processes."""
    found = []
    for n_runs in LOOKS:
        sides = separate(base[:n_runs], 0.0), separate(new[:n_runs], lag_s)
        found.append(compare(*sides, gate).verdict)
        if found[-1] is not Verdict.INCONCLUSIVE:
            break
    return plan(found + [Verdict.INCONCLUSIVE] * (3 - len(found)))


def row(name: str, answers: list[tuple[Verdict, int]]) -> str:
    """Give a row of a table, in percent."""
    counts = Counter(verdict for verdict, _ in answers)
    shares = [
        f"{100 * counts[each] / len(answers):.1f}"
        for each in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.INCONCLUSIVE)
    ]
    mean_runs = np.mean([n_runs for _, n_runs in answers])
    return f"| {name} | {' | '.join(shares)} | {mean_runs:.1f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    repetitions = range(options.repetitions)
    print(f"{options.repetitions} comparisons a row, looks at {LOOKS} runs, in percent\n")
    print_in_turns(generator, repetitions)
    print_separate(generator, repetitions)
    print_without_change(generator, repetitions)


def print_head(title: str) -> None:
    """Print the head of a table."""
    print(f"| {title} | slower | faster | same | inconclusive | mean runs |")
    print("|---|--:|--:|--:|--:|--:|")


def print_in_turns(generator: np.random.Generator, repetitions: range) -> None:
    """Print what is said of changes between runs in turns."""
    print_head("in turns, spread 0.3 %, gate 1 %")
    for change in (0.0, 0.01, 0.03, 0.1):
        for name, shape in SHAPES.items():
            answers = [
                judge_turns(change_in_turns(shape, generator) + np.log1p(change), 0.01)
                for _ in repetitions
            ]
            print(row(f"{change:.0%} slower, {name}", answers))


def print_separate(generator: np.random.Generator, repetitions: range) -> None:
    """Print what is said of changes between separate runs."""
    print()
    print_head("separate and alternating, spread 1 %, gate 3 %")
    for change in (0.0, 0.05, 0.1):
        for name, shape in SHAPES.items():
            answers = [
                judge_separate(
                    0.01 * shape(generator, (28,)),
                    0.01 * shape(generator, (28,)) + np.log1p(change),
                    0.03,
                    1.0,
                )
                for _ in repetitions
            ]
            print(row(f"{change:.0%} slower, {name}", answers))


def print_without_change(generator: np.random.Generator, repetitions: range) -> None:
    """Print how often a change is claimed where there is none."""
    print()
    print_head("no change, gate 0: every claim is false")
    for name, shape in SHAPES.items():
        turns = [judge_turns(change_in_turns(shape, generator), 0.0) for _ in repetitions]
        print(row(f"in turns, {name}", turns))
        both = [0.01 * shape(generator, (2, 28)) for _ in repetitions]
        print(row(f"alternating, {name}", [judge_separate(*each, 0.0, 1.0) for each in both]))
    both = [0.01 * correlated(generator, (56,)) for _ in repetitions]
    alternating = [judge_separate(each[::2], each[1::2], 0.0, 1.0) for each in both]
    print(row("alternating, each run like the one before", alternating))
    apart = [judge_separate(each[:28], each[28:], 0.03, 1000.0) for each in both]
    print(row("apart, each run like the one before, gate 3 %", apart))


if __name__ == "__main__":
    main()
