"""How right verdicts are: simulated programs that are changed and run again.

python benches/bench_gains.py --seeds 5000:6000
python benches/bench_gains.py --seeds 5000:5100 --worst 10

Each side of a program is scaled to a fiftieth, and the program runs again. `right` counts the
programs whose first side is the one that gains most, where the first two differ by 5 points. Errors
are in points of the program's length; a gain is `exceeded` where the program gains over a point
more. Programs without a verdict are counted and otherwise left out.
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import workloads  # noqa: F401 - finds the oracles
from oracles.rerun import judged, varied_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracles.rerun import Judged

EXCEEDED = 0.01


class Answer(NamedTuple):
    """A verdict beside the truth, without the trace."""

    seed: int
    status: str
    sides: tuple[str, ...]
    gains: dict[str, float]
    truth: dict[str, float]
    is_clear: bool
    is_right: bool
    inferred: float

    def errors(self, *, named: bool) -> dict[str, float]:
        """By how much sides gain more than is said, of the named sides or of all."""
        sides = self.sides if named else tuple(self.truth)
        return {side: self.truth[side] - max(self.gains[side].value, 0.0) for side in sides}


def main() -> None:
    """Print a row with synchronization records and one without."""
    options = _parser().parse_args()
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    columns = ["traces", "programs", "no verdict", "clear", "right, %"]
    for what in ("named gains", "all gains"):
        columns += [f"{what}: error of nine in ten", "worst", "exceeded, %"]
    print(f"| {' | '.join(columns)} |")
    print(f"|---|{'--:|' * (len(columns) - 1)}")
    for sync_records in (True, False):
        with ProcessPoolExecutor(options.jobs) as pool:
            ask = partial(_answer, sync_records=sync_records)
            answers = list(pool.map(ask, seeds, chunksize=10))
        name = "with records" if sync_records else "without"
        print(f"| {name} | {' | '.join(_cells(answers))} |", flush=True)
        _print_worst(answers, options.worst)


def _answer(seed: int, *, sync_records: bool) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        answer = judged(varied_program(seed), Path(folder), sync_records=sync_records)
    return _plain(seed, answer)


def _plain(seed: int, answer: Judged) -> Answer:
    verdict = answer.verdict
    return Answer(
        seed=seed,
        status=verdict.status,
        sides=verdict.sides,
        gains={side: max(gain.value, 0.0) for side, gain in verdict.gains.items()},
        truth=answer.truth,
        is_clear=answer.is_clear,
        is_right=answer.is_right,
        inferred=verdict.uncertainty.inferred,
    )


def _cells(answers: Sequence[Answer]) -> list[str]:
    rows = [answer for answer in answers if answer.status != "inconclusive"]
    clear = [answer for answer in rows if answer.is_clear]
    right = sum(answer.is_right for answer in clear)
    cells = [len(answers), len(answers) - len(rows), len(clear)]
    return [*map(str, cells), f"{100 * right / max(len(clear), 1):.1f}", *_errors(rows)]


def _errors(told: Sequence[Answer]) -> list[str]:
    cells = []
    for named in (True, False):
        errors = [error for answer in told for error in answer.errors(named=named).values()]
        sizes = sorted(map(abs, errors))
        exceeded = sum(error > EXCEEDED for error in errors) / max(len(errors), 1)
        shares = [sizes[int(0.9 * len(sizes))], sizes[-1], exceeded] if sizes else [0.0] * 3
        cells += [f"{100 * share:.1f}" for share in shares]
    return cells


def _print_worst(answers: Sequence[Answer], count: int) -> None:
    def size(answer: Answer) -> float:
        return max(map(abs, answer.errors(named=False).values()))

    for answer in sorted(answers, key=size, reverse=True)[:count]:
        both = [
            f"{side} {100 * answer.gains[side].value:.1f} ({100 * true:.1f})"
            for side, true in answer.truth.items()
        ]
        wrong = "" if answer.is_right or not answer.is_clear else " WRONG"
        about = f"inferred {100 * answer.inferred:.0f} %"
        print(f"  seed {answer.seed}: {answer.status}{wrong} {', '.join(both)}; {about}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Judge verdicts on simulated programs.")
    parser.add_argument("--seeds", default="0:100", help="FIRST:END, the end left out")
    parser.add_argument("--worst", type=int, default=0, help="list so many programs")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    return parser


if __name__ == "__main__":
    main()
